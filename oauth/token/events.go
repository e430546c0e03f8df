package token

import (
	"context"

	"stonetown/internal/eventlog"
)

func tokenRevoked(ctx context.Context, c Claims) eventlog.Event {
	var data struct {
		Token struct {
			ID       string `json:"jti"`
			ClientID string `json:"client_id"`
			Subject  string `json:"sub"`
		} `json:"token"`
	}
	data.Token.ID, data.Token.ClientID, data.Token.Subject = c.TokenID, c.ClientID, c.Subject
	return eventlog.Of(ctx, eventlog.TokenRevoked, data)
}
