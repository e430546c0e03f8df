// Package access stores the access that users give to applications.
//
// A [Grant] is the permission of one user for one application (the grant of the FAPI Grant
// Management draft). Codes, device codes and refresh tokens belong to a grant and end with
// it. Revoking a grant therefore ends every token that was issued for it, on every process,
// as each use of such a token reads the grant.
//
// A grant ends with the session in which the user gave it, unless it has the scope
// offline_access (OIDC Core §11). Whether the user and the session still exist is decided by
// the identity module, through [Users].
//
// The consent of users, which outlives grants, is stored beside them: the scopes to which a
// user agreed for an application ([Authorization]).
package access

import (
	"time"

	"stonetown/internal/groupcommit"
	"stonetown/internal/seal"
	"stonetown/internal/sqldb"
)

// Store stores grants, codes, refresh tokens and consents of all tenants. It is safe for
// concurrent use.
type Store struct {
	db    *sqldb.DB
	users Users
	seal  *seal.Key
	clock func() time.Time

	commits *groupcommit.Committer[*change]
}

// NewStore returns the store in a database. Refresh tokens are derived from keys that key derives.
func NewStore(db *sqldb.DB, users Users, key *seal.Key, clock func() time.Time) *Store {
	s := &Store{db: db, users: users, seal: key, clock: clock}
	s.commits = s.newCommits()
	return s
}
