package grants

import (
	"context"
	"strings"

	"stonetown/internal/document"
	"stonetown/internal/eventlog"
	"stonetown/oauth/client"
	"stonetown/oauth/token"
	"stonetown/oauth/workload"
	"stonetown/tuplestore"
)

// exchangeEvent is the data of events of a token exchange.
type exchangeEvent struct {
	Application   client.Ref      `json:"application"`
	Authenticated bool            `json:"client_authenticated"`
	Subject       *partyRef       `json:"subject"` // null: its token was not valid
	SubjectJTI    string          `json:"subject_jti,omitzero"`
	Actor         *partyRef       `json:"actor"`
	NewJTI        string          `json:"new_jti,omitzero"`
	Requested     exchangeTarget  `json:"requested"`
	Granted       *exchangeTarget `json:"granted"`
	Decision      string          `json:"decision"`
	Reason        string          `json:"reason,omitzero"`
}

// partyRef names a user or an application.
type partyRef struct {
	Type string `json:"type"`
	ID   string `json:"id"`
}

func refOf(s tuplestore.Subject) *partyRef { return &partyRef{s.Type, s.ID} }

// exchangeTarget are the audience and the scope of a token.
type exchangeTarget struct {
	Audience []string `json:"audience"`
	Scope    string   `json:"scope"`
}

func exchangeData(e exchange) exchangeEvent {
	data := exchangeEvent{Application: e.app.Ref(), Authenticated: e.authenticated, Requested: exchangeTarget{e.audience, strings.Join(e.scopes, " ")}}
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
	data.Decision, data.NewJTI, data.Granted = "allowed", e.granted.TokenID, &exchangeTarget{e.granted.Audience, e.carries.String()}
	return eventlog.Of(ctx, eventlog.TokenExchanged, data)
}

// workloadEvent is the data of the event of a token that a workload got.
type workloadEvent struct {
	Application client.Ref     `json:"application"`
	Issuer      workload.Ref   `json:"trusted_issuer"`
	Subject     string         `json:"subject"`
	JTI         *string        `json:"jti"` // of the assertion; null: it has none
	NewJTI      string         `json:"new_jti"`
	Granted     exchangeTarget `json:"granted"`
}

func workloadExchanged(ctx context.Context, app client.Application, w workload.Workload, carries token.Entitlement, claims token.Claims) eventlog.Event {
	return eventlog.Of(ctx, eventlog.TokenWorkloadExchanged, workloadEvent{
		app.Ref(), w.Issuer.Ref(), w.Subject, document.OrNull(w.TokenID), claims.TokenID, exchangeTarget{claims.Audience, carries.String()},
	})
}

func tokenExchangeDenied(ctx context.Context, e exchange, reason string) eventlog.Event {
	data := exchangeData(e)
	data.Decision, data.Reason = "denied", reason
	return eventlog.Of(ctx, eventlog.TokenExchangeDenied, data)
}
