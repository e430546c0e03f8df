package flow

import (
	"context"

	"stonetown/identity"
	"stonetown/internal/document"
	"stonetown/internal/eventlog"
)

// publishedEvent is the data of the event of a version that becomes the active one.
type publishedEvent struct {
	Flow VersionDocument `json:"sign_in_flow"`
	From int             `json:"from_version"` // 0: none
	To   int             `json:"to_version"`
}

func published(ctx context.Context, v Version, before int) eventlog.Event {
	return eventlog.Of(ctx, eventlog.SignInFlowPublished, publishedEvent{v.Public(), before, v.Number})
}

func secretRotated(ctx context.Context, action string) eventlog.Event {
	return eventlog.Of(ctx, eventlog.SignInFlowSecretRotated, struct {
		Action string `json:"action"`
	}{action})
}

// stepEvent is the data of an event about a step of a sign-up or a sign-in.
type stepEvent struct {
	User    *eventUser `json:"user"` // null: at a sign-up
	Version int        `json:"version"`
	Point   Point      `json:"point"`
	Step    eventStep  `json:"step"`
	Action  *string    `json:"action"`
	Reason  *string    `json:"reason"` // of a failed action, or of a condition without a result
	Outcome StepResult `json:"outcome"`
}

type eventUser struct {
	ID    string `json:"id"`
	Email string `json:"email"`
}

type eventStep struct {
	Position int    `json:"position"` // from 1
	Name     string `json:"name"`
	Kind     Kind   `json:"kind"`
}

// stepEvents returns the events of a run: of a denial, and of each action that failed.
func stepEvents(ctx context.Context, version int, p Point, u identity.User, steps []StepOutcome) (events []eventlog.Event) {
	for _, s := range steps {
		e := stepEvent{
			Version: version, Point: p, Step: eventStep{s.Position + 1, s.Name, s.Kind}, Action: document.OrNull(s.Action),
			Reason: document.OrNull(string(s.Reason)), Outcome: s.Result,
		}
		if u.ID != "" {
			e.User = &eventUser{u.ID, u.Email}
		}
		if s.Reason != "" {
			events = append(events, eventlog.Of(ctx, eventlog.SignInFlowActionFailed, e))
		}
		if s.Result == Denied {
			if s.Fault != "" {
				e.Reason = document.OrNull("condition: " + s.Fault)
			}
			events = append(events, eventlog.Of(ctx, eventlog.SignInFlowDenied, e))
		}
	}
	return events
}
