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
// A subject belongs to one user, and a user has one identity at a connection, so that the id of
// the connection names it. An identity also stores the slug and the kind of the connection, which
// never change.
package external

import (
	"context"
	"errors"
	"fmt"
	"time"

	"stonetown/internal/seal"
	"stonetown/internal/sqldb"
)

var (
	// ErrNotFound is returned for a subject that belongs to no user, and for a connection
	// at which a user has no identity.
	ErrNotFound = errors.New("no such external identity")
	// ErrSubject is returned for an invalid subject.
	ErrSubject = errors.New("a subject must have 1 to 1024 bytes")
	// ErrTaken is returned for a subject that belongs to another user.
	ErrTaken = errors.New("the external identity belongs to another user")
	// ErrOther is returned for a second identity of a user at a connection.
	ErrOther = errors.New("the user already has another identity at this connection")
	// ErrLimit is returned for an identity beyond [MostPerUser].
	ErrLimit = errors.New("a user can have at most 50 external identities")
)

const (
	// MostPerUser is the maximum number of identities of a user.
	MostPerUser = 50
	// maxSubject is the maximum length of a subject, in bytes. The limits of the standards
	// are 255 characters (OpenID Connect Core §2) and 256 (SAML Core §8.3.7), of up to four
	// bytes each.
	maxSubject = 1024
	// maxEmail is the maximum length of a stored address, in bytes.
	maxEmail = 254
)

// Identity links a user with a subject at a federation connection.
type Identity struct {
	TenantID     string
	UserID       string
	ConnectionID string
	Slug, Kind   string // of the connection
	Subject      string
	Email        string    // the latest from the provider; empty if there is none
	LinkedAt     time.Time // UTC
	LastUsedAt   time.Time // the last sign-in, UTC; zero: never
}

// Store stores identities. It is safe for concurrent use.
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

// Find returns the identity with a subject at a connection. It fails with [ErrNotFound].
func (s *Store) Find(ctx context.Context, tenantID, connectionID, subject string) (Identity, error) {
	return selectIdentity(ctx, s.db, tenantID, connectionID, subject)
}

// List returns the identities of a user, oldest first.
func (s *Store) List(ctx context.Context, tenantID, userID string) ([]Identity, error) {
	found, err := selectOfUser(ctx, s.db, tenantID, userID)
	if err != nil {
		return nil, fmt.Errorf("list external identities: %w", err)
	}
	return found, nil
}

// OfUser is [Store.List] within a transaction.
func OfUser(ctx context.Context, tx *sqldb.Tx, tenantID, userID string) ([]Identity, error) {
	return selectOfUser(ctx, tx, tenantID, userID)
}

// Link links a subject with a user. It reports false if they are linked already. The caller must
// make sure that the user exists until the transaction ends. Link fails with [ErrSubject],
// [ErrTaken], [ErrOther] or [ErrLimit].
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

// Used queues that a user has signed in with an identity, and that the provider has sent i.Email.
func (s *Store) Used(b *sqldb.Batch, i Identity) {
	i.LastUsedAt, i.Email = s.now(), readable(i.Email)
	update(b, i)
}

// readable returns an address as it is stored: empty if it is too long or not text. Addresses are
// for display, so an invalid one is no error.
func readable(email string) string {
	if len(email) > maxEmail || !sqldb.IsText(email) {
		return ""
	}
	return email
}
