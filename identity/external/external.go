// Package external stores the external identities of users: the links between a subject
// at a federation connection and a user.
//
// An identity is found by its connection and its subject, the provider's identifier of
// the user (`sub` of OpenID Connect, NameID of SAML), compared bytewise, and never by an
// e-mail address. Only connection and subject together identify a user permanently (OpenID
// Connect Core §5.7): an address can pass to another person, and some providers let users
// claim addresses of others. The address in an identity is for display.
//
//	connection   subject               user
//	google       10769150350006150715  usr_ann
//	staff (SAML) ann@example.com       usr_ann
//	google       11029387465019283746  usr_bob
//
// A subject is one user, and a user has one identity at a connection, by whose id it is
// named. Slug and kind of the connection are kept with it: they never change.
package external

import (
	"context"
	"errors"
	"fmt"
	"time"

	"stonetown/internal/sqldb"
)

var (
	// ErrNotFound is returned for a subject that is no user, and for a connection at
	// which a user has no identity.
	ErrNotFound = errors.New("no such external identity")
	// ErrSubject is returned for what cannot be a subject.
	ErrSubject = errors.New("a subject must have 1 to 1024 bytes")
	// ErrTaken is returned for a subject that is another user.
	ErrTaken = errors.New("the external identity belongs to another user")
	// ErrOther is returned for a second identity of a user at a connection.
	ErrOther = errors.New("the user already has another identity at this connection")
	// ErrLimit is returned for an identity beyond [MostPerUser].
	ErrLimit = errors.New("a user can have at most 50 external identities")
)

const (
	// MostPerUser is how many identities a user can have.
	MostPerUser = 50
	// maxSubject is the longest subject, in bytes. Providers keep to 255 characters
	// (OpenID Connect Core §2) and 256 (SAML Core §8.3.7), of up to four bytes.
	maxSubject = 1024
	// maxEmail is the longest address that is kept, in bytes.
	maxEmail = 254
)

// Identity is who a user is at a federation connection.
type Identity struct {
	TenantID     string
	UserID       string
	ConnectionID string
	Slug, Kind   string // of the connection
	Subject      string
	Email        string    // as the provider gave it last; empty if it did not
	LinkedAt     time.Time // UTC, as is the other
	LastUsedAt   time.Time // to sign in; zero: never
}

// Store keeps identities. It is safe for concurrent use.
type Store struct {
	db    *sqldb.DB
	clock func() time.Time
}

// NewStore returns the identities kept in db, whose tables are [Migrations].
func NewStore(db *sqldb.DB, clock func() time.Time) *Store { return &Store{db, clock} }

func (s *Store) now() time.Time { return s.clock().UTC().Truncate(time.Microsecond) }

// Find returns the identity that a subject at a connection is. It fails with
// [ErrNotFound].
func (s *Store) Find(ctx context.Context, tenantID, connectionID, subject string) (Identity, error) {
	return selectIdentity(ctx, s.db, tenantID, connectionID, subject)
}

// List returns the identities of a user, the oldest first.
func (s *Store) List(ctx context.Context, tenantID, userID string) ([]Identity, error) {
	found, err := selectOfUser(ctx, s.db, tenantID, userID)
	if err != nil {
		return nil, fmt.Errorf("list external identities: %w", err)
	}
	return found, nil
}

// OfUser is [Store.List] as a transaction sees it.
func OfUser(ctx context.Context, tx *sqldb.Tx, tenantID, userID string) ([]Identity, error) {
	return selectOfUser(ctx, tx, tenantID, userID)
}

// Link makes a subject a user's, from now on. It reports false if it has been before: that
// stays as it was. The caller sees to it that there is such a user until the transaction
// ends. It fails with [ErrSubject], [ErrTaken], [ErrOther] or [ErrLimit].
func (s *Store) Link(ctx context.Context, tx *sqldb.Tx, i Identity) (added bool, err error) {
	if i.Subject == "" || len(i.Subject) > maxSubject || !sqldb.IsText(i.Subject) {
		return false, ErrSubject
	}
	have, err := selectOfUser(ctx, tx, i.TenantID, i.UserID)
	if err != nil {
		return false, fmt.Errorf("link external identity: %w", err)
	}
	for _, other := range have {
		switch {
		case other.ConnectionID == i.ConnectionID && other.Subject == i.Subject:
			return false, nil
		case other.ConnectionID == i.ConnectionID:
			return false, ErrOther
		}
	}
	if len(have) >= MostPerUser {
		return false, ErrLimit
	}
	i.LinkedAt, i.Email = s.now(), readable(i.Email)
	if err := insert(ctx, tx, i); err != nil {
		return false, fmt.Errorf("link external identity: %w", err)
	}
	return true, nil
}

// Used queues that somebody has just signed in with an identity, of whom the provider
// gave i.Email.
func (s *Store) Used(b *sqldb.Batch, i Identity) {
	i.LastUsedAt, i.Email = s.now(), readable(i.Email)
	update(b, i)
}

// readable is an address as it is kept. One that nobody could read is none, and no
// reason to turn anybody away.
func readable(email string) string {
	if len(email) > maxEmail || !sqldb.IsText(email) {
		return ""
	}
	return email
}
