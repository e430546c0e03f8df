package access

import (
	"context"
	"fmt"
	"time"

	"stonetown/internal/sqldb"
	"stonetown/oauth/client"
	"stonetown/oauth/internal/storage"
	"stonetown/oauth/protocol"
)

// codeTTL is the lifetime of an authorization code.
const codeTTL = time.Minute

// Code is a stored authorization code (RFC 6749 §4.1.2).
type Code struct {
	Grant                  Grant
	ClientID               string
	RedirectURI, Challenge string
	Key                    string // thumbprint of the key that the request named; empty: none
	Used                   bool
	ExpiresAt              time.Time

	hash string
}

// Issue stores a new grant and its first code, which it returns.
func (s *Store) Issue(ctx context.Context, tenant protocol.Tenant, settings client.Settings, g Grant, redirectURI, challenge, key string) (string, error) {
	code := protocol.NewToken("ac_")
	return code, s.commits.Commit(ctx, &change{note: notedBy(tenant, g), add: func(b *sqldb.Batch) {
		s.insertGrant(b, tenant, settings, g)
		b.Queue(`
			INSERT INTO codes (tenant_id, hash, grant_id, client_id, redirect_uri, challenge, dpop_jkt, expires_at, used_at) VALUES ($1, $2, $3, $4, $5, $6, $7, $8, 0)`,
			[]any{tenant.ID, protocol.Hash(code), g.ID, g.ClientID, redirectURI, challenge, key, storage.Now(s.clock).Add(codeTTL).UnixMicro()}, nil)
	}})
}

// Code finds an authorization code, valid or not, and its grant. It fails with
// [ErrInvalidGrant].
func (s *Store) Code(ctx context.Context, tenant protocol.Tenant, code string) (Code, error) {
	var b sqldb.Batch
	read := s.QueueCode(&b, tenant, code)
	if err := s.db.Send(ctx, &b); err != nil {
		return Code{}, fmt.Errorf("read code: %w", err)
	}
	return read()
}

// QueueCode queues the read of a code. When the batch was sent, result returns it, as
// [Store.Code] does.
func (s *Store) QueueCode(b *sqldb.Batch, tenant protocol.Tenant, code string) (result func() (Code, error)) {
	c := Code{hash: protocol.Hash(code)}
	var err error
	b.Queue(`
		SELECT c.client_id, c.redirect_uri, c.challenge, c.dpop_jkt, c.expires_at, c.used_at, `+grantColumns+`
		FROM codes c JOIN grants g ON g.tenant_id = c.tenant_id AND g.id = c.grant_id WHERE c.tenant_id = $1 AND c.hash = $2`,
		[]any{tenant.ID, c.hash}, func(rows *sqldb.Rows) error {
			var expires, used int64
			c.Grant, err = grantRow(rows.First(), tenant, &c.ClientID, &c.RedirectURI, &c.Challenge, &c.Key, &expires, &used)
			c.ExpiresAt, c.Used = sqldb.Instant(expires), used != 0
			return nil
		})
	return func() (Code, error) { return c, err }
}

// UseOfCode is the use of a code.
func (s *Store) UseOfCode(tenant protocol.Tenant, c Code) Use {
	return Use{
		update: `UPDATE codes SET used_at = $3 WHERE tenant_id = $1 AND hash = $2 AND used_at = 0`,
		args:   []any{tenant.ID, c.hash, storage.Now(s.clock).UnixMicro()}, hash: c.hash,
	}
}
