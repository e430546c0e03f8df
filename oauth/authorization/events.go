package authorization

import (
	"context"
	"errors"

	"stonetown/internal/eventlog"
	"stonetown/internal/outbound"
	"stonetown/oauth/access"
	"stonetown/oauth/client"
)

// logoutFailed is the event of a logout token that could not be delivered.
func logoutFailed(ctx context.Context, a client.Application, j logoutJob, failure error) eventlog.Event {
	var data struct {
		Application client.Ref `json:"application"`
		Session     struct {
			ID string `json:"id"`
		} `json:"session"`
		User   access.UserRef `json:"user"`
		Reason string         `json:"reason"`
	}
	data.Application, data.Session.ID, data.User.ID, data.Reason = a.Ref(), j.SessionID, j.UserID, "failed"
	if refused := new(outbound.Error); errors.As(failure, &refused) {
		data.Reason = string(refused.Class)
	}
	return eventlog.Of(ctx, eventlog.ApplicationLogoutFailed, data)
}
