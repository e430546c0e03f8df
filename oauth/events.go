package oauth

import (
	"context"
	"errors"
	"strings"

	"stonetown/internal/document"
	"stonetown/internal/eventlog"
	"stonetown/internal/outbound"
	"stonetown/schema"
	"stonetown/tuplestore"
)

// Each type of event has one constructor. Events carry public representations, or ids.
// Their origin is that of the context; the functions below change the actor.

// asApplication is the context of an application that has authenticated by its
// credentials, rather than by a token.
func asApplication(ctx context.Context, a Application) context.Context {
	return withOrigin(ctx, func(o *eventlog.Origin) {
		o.ClientID, o.Actor = a.ClientID, eventlog.Actor{Type: schema.ApplicationType, ID: a.ClientID}
	})
}

// asClient is the context of a request that names an application but does not prove it, as
// its tokens may have been stolen.
func asClient(ctx context.Context, clientID string) context.Context {
	return withOrigin(ctx, func(o *eventlog.Origin) { o.ClientID = clientID })
}

// asProduct is the context of changes that the product makes without a caller.
func asProduct(ctx context.Context) context.Context {
	return eventlog.WithOrigin(ctx, func() eventlog.Origin { return eventlog.Origin{} })
}

func withOrigin(ctx context.Context, change func(*eventlog.Origin)) context.Context {
	return eventlog.WithOrigin(ctx, func() eventlog.Origin {
		o := eventlog.OriginOf(ctx)
		change(&o)
		return o
	})
}

type applicationEvent struct {
	Application any              `json:"application"`
	Changes     document.Changes `json:"changes,omitzero"`
}

func applicationCreated(ctx context.Context, a Application) eventlog.Event {
	return eventlog.Of(ctx, eventlog.ApplicationCreated, applicationEvent{Application: a.Document()})
}

// applicationChanged returns the events of a change: one of a new state, and one of the
// rest. There are none if only secrets differ.
func applicationChanged(ctx context.Context, before, after Application) (events []eventlog.Event) {
	changes := document.Difference(before.Document(), after.Document())
	delete(changes, "updated_at")
	delete(changes, "audit_summary")
	if before.State != after.State {
		t := eventlog.ApplicationEnabled
		if after.State == Disabled {
			t = eventlog.ApplicationDisabled
		}
		events = append(events, eventlog.Of(ctx, t, applicationEvent{after.Document(), document.Changes{"state": changes["state"]}}))
		delete(changes, "state")
	}
	if len(changes) > 0 {
		events = append(events, eventlog.Of(ctx, eventlog.ApplicationUpdated, applicationEvent{after.Document(), changes}))
	}
	return events
}

func applicationDeleted(ctx context.Context, a Application) eventlog.Event {
	return eventlog.Of(ctx, eventlog.ApplicationDeleted, applicationEvent{Application: a.ref()})
}

func secretRotated(ctx context.Context, a Application) eventlog.Event {
	return eventlog.Of(ctx, eventlog.ApplicationSecretRotated, applicationEvent{Application: a.ref()})
}

type scopeEvent struct {
	Scope   any              `json:"scope"`
	Changes document.Changes `json:"changes,omitzero"`
}

func scopeCreated(ctx context.Context, s Scope) eventlog.Event {
	return eventlog.Of(ctx, eventlog.ScopeCreated, scopeEvent{Scope: s.Document()})
}

func scopeUpdated(ctx context.Context, before, after Scope) eventlog.Event {
	return eventlog.Of(ctx, eventlog.ScopeUpdated, scopeEvent{after.Document(), document.Difference(before.Document(), after.Document())})
}

func scopeDeleted(ctx context.Context, name string) eventlog.Event {
	return eventlog.Of(ctx, eventlog.ScopeDeleted, scopeEvent{Scope: map[string]string{"name": name}})
}

// userRef names a user that an event is about.
type userRef struct {
	ID string `json:"id"`
}

type consentEvent struct {
	Application applicationRef `json:"application"`
	User        userRef        `json:"user"`
	Scopes      []string       `json:"scopes"`
}

func consentGranted(ctx context.Context, a Application, userID string, scopes []string) eventlog.Event {
	return eventlog.Of(ctx, eventlog.ConsentGranted, consentEvent{a.ref(), userRef{userID}, scopes})
}

func consentRevoked(ctx context.Context, a Application, userID string, scopes []string) eventlog.Event {
	return eventlog.Of(ctx, eventlog.ConsentRevoked, consentEvent{a.ref(), userRef{userID}, scopes})
}

// logoutFailed is the event of an application that could not be told that a session has
// ended.
func logoutFailed(ctx context.Context, a Application, j logoutJob, failure error) eventlog.Event {
	var data struct {
		Application applicationRef `json:"application"`
		Session     struct {
			ID string `json:"id"`
		} `json:"session"`
		User   userRef `json:"user"`
		Reason string  `json:"reason"`
	}
	data.Application, data.Session.ID, data.User.ID, data.Reason = a.ref(), j.SessionID, j.UserID, "failed"
	if refused := new(outbound.Error); errors.As(failure, &refused) {
		data.Reason = string(refused.Class)
	}
	return eventlog.Of(ctx, eventlog.ApplicationLogoutFailed, data)
}

// grantEvent is an event of a grant that ends.
type grantEvent func(context.Context, grant) eventlog.Event

func authorizationCodeReused(ctx context.Context, g grant) eventlog.Event {
	return eventlog.Of(ctx, eventlog.SecurityAuthorizationCodeReused, g.data())
}

func refreshTokenReused(ctx context.Context, g grant) eventlog.Event {
	return eventlog.Of(ctx, eventlog.SecurityRefreshTokenReused, g.data())
}

func tokenFamilyRevoked(ctx context.Context, g grant) eventlog.Event {
	return eventlog.Of(ctx, eventlog.TokenFamilyRevoked, g.data())
}

// data is what events say about a grant.
func (g grant) data() any {
	var data struct {
		Grant struct {
			ID       string `json:"id"`
			ClientID string `json:"client_id"`
		} `json:"grant"`
		User userRef `json:"user"`
	}
	data.Grant.ID, data.Grant.ClientID, data.User.ID = g.id, g.clientID, g.auth.UserID
	return data
}

func tokenRevoked(ctx context.Context, c claims) eventlog.Event {
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

// exchangeEvent is what events say about a token exchange.
type exchangeEvent struct {
	Application   applicationRef `json:"application"`
	Authenticated bool           `json:"client_authenticated"`
	Subject       *partyRef      `json:"subject"` // null: its token was not good
	SubjectJTI    string         `json:"subject_jti,omitzero"`
	Actor         *partyRef      `json:"actor"`
	NewJTI        string         `json:"new_jti,omitzero"`
	Requested     exchangeTerms  `json:"requested"`
	Granted       *exchangeTerms `json:"granted"`
	Decision      string         `json:"decision"`
	Reason        string         `json:"reason,omitzero"`
}

// partyRef names a user or an application.
type partyRef struct {
	Type string `json:"type"`
	ID   string `json:"id"`
}

func refOf(s tuplestore.Subject) *partyRef { return &partyRef{s.Type, s.ID} }

// exchangeTerms are the audience and the scope of a token.
type exchangeTerms struct {
	Audience []string `json:"audience"`
	Scope    string   `json:"scope"`
}

func exchangeData(e exchange) exchangeEvent {
	data := exchangeEvent{Application: e.app.ref(), Authenticated: e.authenticated, Requested: exchangeTerms{e.audience, strings.Join(e.scopes, " ")}}
	if e.subject.subject.ID != "" {
		data.Subject, data.SubjectJTI = refOf(e.subject.subject), e.subject.tokenID
	}
	if e.actor != nil {
		data.Actor = refOf(e.actor.subject)
	}
	return data
}

func tokenExchanged(ctx context.Context, e exchange) eventlog.Event {
	data := exchangeData(e)
	data.Decision, data.NewJTI, data.Granted = "allowed", e.granted.TokenID, &exchangeTerms{e.granted.Audience, e.carries.String()}
	return eventlog.Of(ctx, eventlog.TokenExchanged, data)
}

func tokenExchangeDenied(ctx context.Context, e exchange, reason string) eventlog.Event {
	data := exchangeData(e)
	data.Decision, data.Reason = "denied", reason
	return eventlog.Of(ctx, eventlog.TokenExchangeDenied, data)
}

// signingKeysRotated is the event of keys that have entered a state.
func signingKeysRotated(ctx context.Context, emergency bool, changed []SigningKey) eventlog.Event {
	type key struct {
		KID   string   `json:"kid"`
		Alg   Alg      `json:"alg"`
		State KeyState `json:"state"`
	}
	var data struct {
		Emergency bool  `json:"emergency"`
		Keys      []key `json:"signing_keys"`
	}
	data.Emergency = emergency
	for _, k := range changed {
		data.Keys = append(data.Keys, key{k.KID, k.Alg, k.State})
	}
	return eventlog.Of(ctx, eventlog.TenantSigningKeyRotated, data)
}
