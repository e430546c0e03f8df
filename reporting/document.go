package reporting

import (
	"context"

	"stonetown/internal/document"
	"stonetown/internal/eventlog"
)

// Document is the public representation of a report, in responses and in events.
type Document struct {
	ID         string              `json:"id"`
	Name       string              `json:"name"`
	Kind       Kind                `json:"kind"`
	Parameters Parameters          `json:"parameters"`
	Schedule   *Schedule           `json:"schedule"`
	NextRunAt  *document.Timestamp `json:"next_run_at"`
	CreatedAt  document.Timestamp  `json:"created_at"`
	CreatedBy  *eventlog.Actor     `json:"created_by"`
	UpdatedAt  document.Timestamp  `json:"updated_at"`
}

// Document returns the public representation of the report.
func (r Report) Document() Document {
	return Document{
		ID: r.ID, Name: r.Name, Kind: r.Kind, Parameters: r.Parameters, Schedule: r.Schedule, NextRunAt: document.TimeOrNull(r.NextRunAt),
		CreatedAt: document.Timestamp(r.CreatedAt), CreatedBy: actorOrNull(r.CreatedBy), UpdatedAt: document.Timestamp(r.UpdatedAt),
	}
}

func actorOrNull(a eventlog.Actor) *eventlog.Actor {
	if a == (eventlog.Actor{}) {
		return nil
	}
	return &a
}

// RunDocument is the public representation of a run.
type RunDocument struct {
	ID         string              `json:"id"`
	ReportID   string              `json:"report_id"`
	Name       string              `json:"name"`
	Kind       Kind                `json:"kind"`
	Parameters Parameters          `json:"parameters"`
	State      State               `json:"state"`
	Scheduled  bool                `json:"scheduled"`
	Columns    []string            `json:"columns"`
	Rows       int                 `json:"rows"`
	Truncated  bool                `json:"truncated"`
	Figures    []Figure            `json:"figures"`
	Error      *Failure            `json:"error"`
	CreatedAt  document.Timestamp  `json:"created_at"`
	CreatedBy  *eventlog.Actor     `json:"created_by"` // null: the product
	StartedAt  *document.Timestamp `json:"started_at"`
	FinishedAt *document.Timestamp `json:"finished_at"`
	ExpiresAt  document.Timestamp  `json:"expires_at"`
	Mails      []MailDocument      `json:"mails"`
}

// MailDocument is the public representation of a mail.
type MailDocument struct {
	UserID string  `json:"user_id"`
	State  string  `json:"state"`
	Reason *string `json:"reason"`
}

// Document returns the public representation of the run, with its mails.
func (r Run) Document(mails []Mail) RunDocument {
	d := RunDocument{
		ID: r.ID, ReportID: r.ReportID, Name: r.Name, Kind: r.Kind, Parameters: r.Parameters, State: r.State, Scheduled: r.Scheduled,
		Columns: Columns(r.Kind), Rows: r.Rows, Truncated: r.Truncated, Figures: append([]Figure{}, r.Figures...), Error: r.Failure,
		CreatedAt: document.Timestamp(r.CreatedAt), CreatedBy: actorOrNull(r.CreatedBy),
		StartedAt: document.TimeOrNull(r.StartedAt), FinishedAt: document.TimeOrNull(r.FinishedAt), ExpiresAt: document.Timestamp(r.ExpiresAt()),
		Mails: []MailDocument{},
	}
	for _, m := range mails {
		d.Mails = append(d.Mails, MailDocument{m.UserID, m.State, document.OrNull(m.Reason)})
	}
	return d
}

// reportEvent is the data of an event about a report.
type reportEvent struct {
	Report  Document         `json:"report"`
	Changes document.Changes `json:"changes,omitzero"`
}

func created(ctx context.Context, r Report) eventlog.Event {
	return eventlog.Of(ctx, eventlog.ReportCreated, reportEvent{Report: r.Document()})
}

func updated(ctx context.Context, before, after Report) eventlog.Event {
	changes := document.Difference(before.Document(), after.Document())
	delete(changes, "updated_at")
	return eventlog.Of(ctx, eventlog.ReportUpdated, reportEvent{after.Document(), changes})
}

func deleted(ctx context.Context, r Report) eventlog.Event {
	return eventlog.Of(ctx, eventlog.ReportDeleted, reportEvent{Report: r.Document()})
}

// completedEvent is the data of the event of a run that ended. It has neither rows nor figures,
// because the log may be read by those who may not read the report.
type completedEvent struct {
	Report struct {
		ID   string `json:"id"`
		Name string `json:"name"`
		Kind Kind   `json:"kind"`
	} `json:"report"`
	Run struct {
		ID        string  `json:"id"`
		State     State   `json:"state"`
		Scheduled bool    `json:"scheduled"`
		Error     *string `json:"error"` // the code
	} `json:"run"`
}

func completed(ctx context.Context, r Run) eventlog.Event {
	var e completedEvent
	e.Report.ID, e.Report.Name, e.Report.Kind = r.ReportID, r.Name, r.Kind
	e.Run.ID, e.Run.State, e.Run.Scheduled = r.ID, r.State, r.Scheduled
	if r.Failure != nil {
		e.Run.Error = &r.Failure.Code
	}
	return eventlog.Of(ctx, eventlog.ReportCompleted, e)
}
