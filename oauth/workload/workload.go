// Package workload lets workloads get tokens without a stored secret: a job of a CI service, a pod
// of a cluster or a SPIFFE workload presents the token that its own platform gave it (RFC 7523
// §2.1).
//
// Three things must be in place, and each is absent by default:
//
//   - An [Issuer]: the tenant trusts the platform, with these keys, for this audience.
//   - A workload identity of an application ([client.WorkloadIdentity]): the sub of the tokens, or
//     claims with their values. All are compared byte for byte.
//   - The relation application:<client_id>#impersonator@workload_identity:<id>, which the engine
//     has as long as the application has the workload identity. The grant asks the engine.
//
// [Registry.Verify] verifies an assertion (RFC 7523 §3):
//
//	alg  one that the issuer is allowed, all of which are asymmetric
//	kid  selects among the keys of this issuer; keys and URLs in the header are ignored
//	typ  none, JWT or JOSE: access tokens, logout tokens and proofs have another one
//	iss  an enabled issuer of the tenant, and never the tenant itself
//	aud  the audience of the issuer, and nothing else
//	exp  ahead by at most the lifetime that the issuer is allowed, and after iat by no more
//	jti  required and accepted once, unless the issuer has reusable tokens
//
// A token that was issued stays valid until it expires, at the latest with its assertion. Who may
// change an issuer can become every workload of it, so a change of what is trusted requires the
// rights of all applications that name the issuer.
package workload

import (
	"context"
	"log/slog"
	"time"

	"stonetown/engine/authority"
	"stonetown/internal/jwks/published"
	"stonetown/internal/outbound"
	"stonetown/internal/sqldb"
)

// Config is the configuration of a [Registry]. All fields are required.
type Config struct {
	DB        *sqldb.DB
	Authority *authority.Checker // compares the rights of applications with those of the caller
	Outbound  *outbound.Client   // fetches keys
	Logger    *slog.Logger       // logs keys that cannot be fetched
	Clock     func() time.Time
}

// Registry stores the trusted issuers of all tenants, and verifies their tokens. It is safe for
// concurrent use.
type Registry struct {
	db        *sqldb.DB
	authority *authority.Checker
	fetch     *outbound.Client
	clock     func() time.Time
	keys      *published.Keys
}

// NewRegistry returns the registry of the issuers in c.DB.
func NewRegistry(c Config) *Registry {
	r := &Registry{db: c.DB, authority: c.Authority, fetch: c.Outbound, clock: c.Clock}
	r.keys = published.New(r.fetchKeys, c.Clock, c.Logger)
	return r
}

// Any queues whether a tenant has an enabled issuer. When the batch was sent, result returns it.
func Any(b *sqldb.Batch, tenantID string) (result func() bool) {
	found := false
	b.Queue(`SELECT 1 FROM trusted_issuers WHERE tenant_id = $1 AND enabled LIMIT 1`, []any{tenantID}, func(rows *sqldb.Rows) error {
		found = rows.Next()
		return rows.Err()
	})
	return func() bool { return found }
}

// Get finds an issuer. It fails with [ErrNotFound].
func (r *Registry) Get(ctx context.Context, tenantID, issuerID string) (Issuer, error) {
	return selectIssuer(ctx, r.db, tenantID, `id`, issuerID)
}
