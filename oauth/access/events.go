package access

import (
	"context"

	"stonetown/internal/eventlog"
	"stonetown/oauth/client"
)

// asClient returns the context of a request that names an application without proof: its
// tokens may have been stolen.
func asClient(ctx context.Context, clientID string) context.Context {
	return client.WithOrigin(ctx, func(o *eventlog.Origin) { o.ClientID = clientID })
}

// UserRef names a user in an event.
type UserRef struct {
	ID string `json:"id"`
}

type consentEvent struct {
	Application client.Ref `json:"application"`
	User        UserRef    `json:"user"`
	Scopes      []string   `json:"scopes"`
	Claims      []string   `json:"claims"`
}

func consentGranted(ctx context.Context, a client.Application, userID string, c Consent) eventlog.Event {
	return eventlog.Of(ctx, eventlog.ConsentGranted, ofConsent(a, userID, c))
}

func consentRevoked(ctx context.Context, a client.Application, userID string, c Consent) eventlog.Event {
	return eventlog.Of(ctx, eventlog.ConsentRevoked, ofConsent(a, userID, c))
}

func ofConsent(a client.Application, userID string, c Consent) consentEvent {
	return consentEvent{a.Ref(), UserRef{userID}, c.Scopes, append([]string{}, c.Claims...)}
}

// Event returns an event of a grant that ends.
type Event func(context.Context, Grant) eventlog.Event

func AuthorizationCodeReused(ctx context.Context, g Grant) eventlog.Event {
	return eventlog.Of(ctx, eventlog.SecurityAuthorizationCodeReused, g.data())
}

func RefreshTokenReused(ctx context.Context, g Grant) eventlog.Event {
	return eventlog.Of(ctx, eventlog.SecurityRefreshTokenReused, g.data())
}

func TokenFamilyRevoked(ctx context.Context, g Grant) eventlog.Event {
	return eventlog.Of(ctx, eventlog.TokenFamilyRevoked, g.data())
}

// data is the data of events of a grant.
func (g Grant) data() any {
	var data struct {
		Grant struct {
			ID       string `json:"id"`
			ClientID string `json:"client_id"`
		} `json:"grant"`
		User UserRef `json:"user"`
	}
	data.Grant.ID, data.Grant.ClientID, data.User.ID = g.ID, g.ClientID, g.Authentication.UserID
	return data
}
