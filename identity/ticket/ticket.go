// Package ticket stores one-time tokens: the link in a mail, a sign-in that waits for its
// second factor, a challenge that waits for its answer.
//
// A ticket is a secret of 256 random bits, of which only the hash is stored, with
// encrypted data for its use. It is valid for one purpose, its kind, until it expires, and
// for one use: the transaction that uses it deletes it ([Use]). If a ticket is verified
// with short codes, such as six digits, each attempt is counted before the code is
// compared ([Store.Try]), so that parallel guesses cannot exceed the limit.
package ticket

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

// ErrInvalid is returned for a secret that no ticket of the kind has: it never had, was
// used, tried too often, or is over.
var ErrInvalid = errors.New("the one-time token is unknown, used or expired")

// Kind is what a ticket is for.
type Kind string

// RevertEmail is the kind that [Discard] spares unless it is named: the link by which the owner
// of an account takes a change of address back must survive whatever an intruder does next,
// such as changing the password.
const RevertEmail Kind = "revert_email"

// Ticket is what has been handed out.
type Ticket struct {
	TenantID  string
	Kind      Kind
	UserID    string // empty: nobody in particular
	Attempts  int    // so far
	CreatedAt time.Time
	ExpiresAt time.Time

	id      string
	payload []byte // JSON
}

// Read decodes what is remembered.
func (t Ticket) Read(payload any) error { return json.Unmarshal(t.payload, payload) }

// New is what handing one out takes.
type New struct {
	Kind     Kind
	TenantID string
	UserID   string
	Payload  any // becomes JSON
	For      time.Duration
}

// Store keeps tickets. It is safe for concurrent use.
type Store struct {
	db    *sqldb.DB
	seal  *seal.Key
	clock func() time.Time
}

// NewStore returns the tickets kept in db, whose tables are [Migrations].
func NewStore(db *sqldb.DB, key *seal.Key, clock func() time.Time) *Store {
	return &Store{db, key, clock}
}

func (s *Store) now() time.Time { return s.clock().UTC().Truncate(time.Microsecond) }

// Issue queues a new ticket and returns its secret, which is not kept.
func (s *Store) Issue(b *sqldb.Batch, n New) (secret string, t Ticket) {
	raw := make([]byte, 32)
	rand.Read(raw)
	secret = base64.RawURLEncoding.EncodeToString(raw)
	payload, err := json.Marshal(n.Payload)
	if err != nil {
		panic("ticket: " + err.Error()) // of our own types
	}
	now := s.now()
	t = Ticket{
		TenantID: n.TenantID, Kind: n.Kind, UserID: n.UserID, CreatedAt: now, ExpiresAt: now.Add(n.For),
		id: idOf(secret), payload: payload,
	}
	b.Queue(`
		INSERT INTO tickets (tenant_id, id, kind, user_id, payload, attempts, created_at, expires_at) VALUES ($1, $2, $3, $4, $5, 0, $6, $7)`,
		[]any{t.TenantID, t.id, string(t.Kind), t.UserID, s.seal.Seal(t.TenantID, t.id, payload), t.CreatedAt.UnixMicro(), t.ExpiresAt.UnixMicro()}, nil)
	return secret, t
}

// Hand issues a ticket that nothing else commits with.
func (s *Store) Hand(ctx context.Context, n New) (secret string, t Ticket, err error) {
	err = s.db.Tx(ctx, func(tx *sqldb.Tx) error {
		var b sqldb.Batch
		secret, t = s.Issue(&b, n)
		return tx.Send(ctx, &b)
	})
	if err != nil {
		return "", Ticket{}, fmt.Errorf("hand out ticket: %w", err)
	}
	return secret, t, nil
}

// Find returns the ticket of a kind that a secret leads to. It fails with [ErrInvalid].
func (s *Store) Find(ctx context.Context, tenantID string, kind Kind, secret string) (Ticket, error) {
	row := s.db.QueryRow(ctx, `SELECT `+columns+` FROM tickets WHERE tenant_id = $1 AND id = $2`, tenantID, idOf(secret))
	return s.scan(row, tenantID, kind, idOf(secret))
}

// Try counts a guess at a ticket and returns it. Beyond most of them the ticket is
// gone. It fails with [ErrInvalid].
func (s *Store) Try(ctx context.Context, tenantID string, kind Kind, secret string, most int) (t Ticket, err error) {
	err = s.db.Tx(ctx, func(tx *sqldb.Tx) error {
		row := tx.QueryRow(ctx, `
			UPDATE tickets SET attempts = attempts + 1 WHERE tenant_id = $1 AND id = $2 AND kind = $3 AND attempts < $4 RETURNING `+columns,
			tenantID, idOf(secret), string(kind), int64(most))
		t, err = s.scan(row, tenantID, kind, idOf(secret))
		return err
	})
	return t, err
}

// Left is how many guesses a ticket that was tried has left.
func (t Ticket) Left(most int) int { return max(0, most-t.Attempts) }

// Use deletes a ticket within the transaction that does what it is for. It fails with
// [ErrInvalid] if another did so first.
func Use(ctx context.Context, tx *sqldb.Tx, t Ticket) error {
	n, err := tx.Exec(ctx, `DELETE FROM tickets WHERE tenant_id = $1 AND id = $2`, t.TenantID, t.id)
	if err == nil && n == 0 {
		err = ErrInvalid
	}
	return err
}

// Discard queues the end of the tickets of a user: of some kinds or, without one, of
// all but [RevertEmail].
func Discard(b *sqldb.Batch, tenantID, userID string, kinds ...Kind) {
	if len(kinds) == 0 {
		b.Queue(`DELETE FROM tickets WHERE tenant_id = $1 AND user_id = $2 AND user_id <> '' AND kind <> $3`, []any{tenantID, userID, string(RevertEmail)}, nil)
	}
	for _, kind := range kinds {
		b.Queue(`DELETE FROM tickets WHERE tenant_id = $1 AND user_id = $2 AND user_id <> '' AND kind = $3`, []any{tenantID, userID, string(kind)}, nil)
	}
}

// Tidy deletes the tickets whose time is over.
func (s *Store) Tidy(ctx context.Context) error {
	_, err := s.db.Exec(ctx, `DELETE FROM tickets WHERE expires_at <= $1`, s.now().UnixMicro())
	return err
}

func idOf(secret string) string {
	sum := sha256.Sum256([]byte(secret))
	return base64.RawURLEncoding.EncodeToString(sum[:])
}
