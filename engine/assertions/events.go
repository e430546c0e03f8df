//go:build !js

package assertions

import (
	"context"

	"stonetown/internal/eventlog"
)

type setEvent struct {
	Assertions setData `json:"assertions"`
}

type setData struct {
	Count int    `json:"count,omitzero"`
	Name  string `json:"name"`
}

func setStored(ctx context.Context, set Stored) eventlog.Event {
	return eventlog.Of(ctx, eventlog.AssertionsStored, setEvent{setData{set.Assertions, set.Name}})
}

func setDeleted(ctx context.Context, name string) eventlog.Event {
	return eventlog.Of(ctx, eventlog.AssertionsDeleted, setEvent{setData{Name: name}})
}
