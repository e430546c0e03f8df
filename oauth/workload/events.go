package workload

import (
	"context"

	"github.com/go-json-experiment/json/jsontext"

	"stonetown/internal/document"
	"stonetown/internal/eventlog"
)

// Document is the public representation of an issuer, in responses and in events.
type Document struct {
	ID          string             `json:"id"`
	Issuer      string             `json:"issuer"`
	Description string             `json:"description"`
	Enabled     bool               `json:"enabled"`
	JWKS        jsontext.Value     `json:"jwks"` // null: none
	JWKSURI     *string            `json:"jwks_uri"`
	Audience    *string            `json:"audience"` // null: the issuer of the tenant
	Algs        []string           `json:"signing_algs"`
	MaxLifetime int                `json:"max_lifetime_s"`
	SingleUse   bool               `json:"single_use"`
	CreatedAt   document.Timestamp `json:"created_at"`
	UpdatedAt   document.Timestamp `json:"updated_at"`
}

// Document returns the public representation of the issuer.
func (i Issuer) Document() Document {
	return Document{
		ID: i.ID, Issuer: i.Issuer, Description: i.Description, Enabled: i.Enabled, JWKS: jsontext.Value(i.JWKS), JWKSURI: document.OrNull(i.JWKSURI),
		Audience: document.OrNull(i.Audience), Algs: i.Algs, MaxLifetime: i.MaxLifetimeS, SingleUse: i.SingleUse,
		CreatedAt: document.Timestamp(i.CreatedAt), UpdatedAt: document.Timestamp(i.UpdatedAt),
	}
}

// Ref names an issuer in an event.
type Ref struct {
	ID     string `json:"id"`
	Issuer string `json:"issuer"`
}

func (i Issuer) Ref() Ref { return Ref{i.ID, i.Issuer} }

// issuerEvent is the data of an event about an issuer.
type issuerEvent struct {
	Issuer  any              `json:"trusted_issuer"`
	Changes document.Changes `json:"changes,omitzero"`
}

func created(ctx context.Context, i Issuer) eventlog.Event {
	return eventlog.Of(ctx, eventlog.TrustedIssuerCreated, issuerEvent{Issuer: i.Document()})
}

func updated(ctx context.Context, before, after Issuer) eventlog.Event {
	changes := document.Difference(before.Document(), after.Document())
	delete(changes, "updated_at")
	return eventlog.Of(ctx, eventlog.TrustedIssuerUpdated, issuerEvent{after.Document(), changes})
}

func deleted(ctx context.Context, i Issuer) eventlog.Event {
	return eventlog.Of(ctx, eventlog.TrustedIssuerDeleted, issuerEvent{Issuer: i.Ref()})
}
