// Package onetime stores one-time tokens: of links in mails, of sign-ins in progress, of
// challenges.
//
// The secret of a token has 256 random bits, of which only the hash is stored, with encrypted
// data for its use. A token is valid for one purpose, its kind, until it expires, and for one
// use: the transaction that uses it deletes it ([Use]). Where a short code belongs to a token,
// such as one of six digits, each attempt is counted before the code is compared
// ([Store.Try]), so that parallel guesses cannot exceed the limit.
package onetime

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"stonetown/internal/seal"
	"stonetown/internal/sqldb"
)

// ErrInvalid is returned for a secret without a token of the kind: an unknown one, or that of
// a token that was used, was tried too often, or has expired.
var ErrInvalid = errors.New("the one-time token is unknown, used or expired")

// Kind is the purpose of a token.
type Kind string

// RevertEmail is the kind of the links that revert a change of address. [Discard] deletes them
// only if the kind is named: they must survive what an intruder can do to the account, such as
// changing the password.
const RevertEmail Kind = "revert_email"

// Token is a one-time token without its secret.
type Token struct {
	TenantID  string
	Kind      Kind
	UserID    string // empty: the token belongs to no user
	Attempts  int    // at a code
	CreatedAt time.Time
	ExpiresAt time.Time

	id      string
	payload []byte // JSON
}

// Read decodes the data of the token.
func (t Token) Read(payload any) error { return json.Unmarshal(t.payload, payload) }

// New describes a new token.
type New struct {
	Kind     Kind
	TenantID string
	UserID   string
	Payload  any           // stored as JSON, encrypted
	For      time.Duration // the lifetime
}

// Store stores tokens. It is safe for concurrent use.
type Store struct {
	db    *sqldb.DB
	seal  *seal.Key
	clock func() time.Time
}

// NewStore returns a store in db. Its tables are [Migrations].
func NewStore(db *sqldb.DB, key *seal.Key, clock func() time.Time) *Store {
	return &Store{db, key, clock}
}

func (s *Store) now() time.Time { return s.clock().UTC().Truncate(time.Microsecond) }

// Issue queues a new token and returns its secret, which is not stored.
func (s *Store) Issue(b *sqldb.Batch, n New) (secret string, t Token) {
	raw := make([]byte, 32)
	rand.Read(raw)
	secret = base64.RawURLEncoding.EncodeToString(raw)
	payload, err := json.Marshal(n.Payload)
	if err != nil {
		panic("onetime: " + err.Error()) // a programming error
	}
	now := s.now()
	t = Token{
		TenantID: n.TenantID, Kind: n.Kind, UserID: n.UserID, CreatedAt: now, ExpiresAt: now.Add(n.For),
		id: idOf(secret), payload: payload,
	}
	b.Queue(`
		INSERT INTO onetime_tokens (tenant_id, id, kind, user_id, payload, attempts, created_at, expires_at) VALUES ($1, $2, $3, $4, $5, 0, $6, $7)`,
		[]any{t.TenantID, t.id, string(t.Kind), t.UserID, s.seal.Seal(t.TenantID, t.id, payload), t.CreatedAt.UnixMicro(), t.ExpiresAt.UnixMicro()}, nil)
	return secret, t
}

// Create issues a token in a transaction of its own.
func (s *Store) Create(ctx context.Context, n New) (secret string, t Token, err error) {
	err = s.db.Tx(ctx, func(tx *sqldb.Tx) error {
		var b sqldb.Batch
		secret, t = s.Issue(&b, n)
		return tx.Send(ctx, &b)
	})
	if err != nil {
		return "", Token{}, fmt.Errorf("create one-time token: %w", err)
	}
	return secret, t, nil
}

// Find returns the token of a kind with a secret. It fails with [ErrInvalid].
func (s *Store) Find(ctx context.Context, tenantID string, kind Kind, secret string) (Token, error) {
	row := s.db.QueryRow(ctx, `SELECT `+columns+` FROM onetime_tokens WHERE tenant_id = $1 AND id = $2`, tenantID, idOf(secret))
	return s.scan(row, tenantID, kind, idOf(secret))
}

// Try counts an attempt at the code of a token and returns the token. After most attempts it
// fails with [ErrInvalid].
func (s *Store) Try(ctx context.Context, tenantID string, kind Kind, secret string, most int) (t Token, err error) {
	err = s.db.Tx(ctx, func(tx *sqldb.Tx) error {
		row := tx.QueryRow(ctx, `
			UPDATE onetime_tokens SET attempts = attempts + 1 WHERE tenant_id = $1 AND id = $2 AND kind = $3 AND attempts < $4 RETURNING `+columns,
			tenantID, idOf(secret), string(kind), int64(most))
		t, err = s.scan(row, tenantID, kind, idOf(secret))
		return err
	})
	return t, err
}

// Left is the number of attempts that a token has left after [Store.Try].
func (t Token) Left(most int) int { return max(0, most-t.Attempts) }

// Use deletes a token, in the transaction of its purpose. It fails with [ErrInvalid] if the
// token has been used.
func Use(ctx context.Context, tx *sqldb.Tx, t Token) error {
	n, err := tx.Exec(ctx, `DELETE FROM onetime_tokens WHERE tenant_id = $1 AND id = $2`, t.TenantID, t.id)
	if err == nil && n == 0 {
		err = ErrInvalid
	}
	return err
}

// Discard queues the deletion of the tokens of a user: of some kinds or, if none is named, of all
// but [RevertEmail].
func Discard(b *sqldb.Batch, tenantID, userID string, kinds ...Kind) {
	if len(kinds) == 0 {
		b.Queue(`DELETE FROM onetime_tokens WHERE tenant_id = $1 AND user_id = $2 AND user_id <> '' AND kind <> $3`, []any{tenantID, userID, string(RevertEmail)}, nil)
	}
	for _, kind := range kinds {
		b.Queue(`DELETE FROM onetime_tokens WHERE tenant_id = $1 AND user_id = $2 AND user_id <> '' AND kind = $3`, []any{tenantID, userID, string(kind)}, nil)
	}
}

// DeleteExpired deletes the tokens that have expired.
func (s *Store) DeleteExpired(ctx context.Context) error {
	_, err := s.db.Exec(ctx, `DELETE FROM onetime_tokens WHERE expires_at <= $1`, s.now().UnixMicro())
	return err
}

func idOf(secret string) string {
	sum := sha256.Sum256([]byte(secret))
	return base64.RawURLEncoding.EncodeToString(sum[:])
}
