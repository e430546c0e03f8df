package userimport

import (
	"context"

	"stonetown/internal/eventlog"
)

// completedEvent is the data of the event of a completed import.
type completedEvent struct {
	Import struct {
		ID       string `json:"id"`
		Total    int    `json:"total"`
		Imported int    `json:"imported"`
		Failed   int    `json:"failed"`
	} `json:"import"`
}

func completed(ctx context.Context, job Job) eventlog.Event {
	var e completedEvent
	e.Import.ID, e.Import.Total, e.Import.Imported, e.Import.Failed = job.ID, job.Total, job.Imported, job.Failed
	return eventlog.Of(ctx, eventlog.UserImportCompleted, e)
}
