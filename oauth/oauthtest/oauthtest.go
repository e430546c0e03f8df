// Package oauthtest builds the OAuth module for tests.
package oauthtest

import (
	"context"
	"slices"
	"testing"
	"time"

	"stonetown/engine"
	"stonetown/engine/authority"
	"stonetown/internal/jobs"
	"stonetown/oauth"
	"stonetown/oauth/access"
	"stonetown/oauth/protocol"
	"stonetown/oauth/scope"
	"stonetown/tuplestore/sqlstore"
)

// New returns a module with c. DB and Seal are required, and the migrations of the module, of
// sqlstore, the jobs and the event log must have been applied. Missing parts are: no users,
// an engine on the database, a queue of jobs that does not run, and no tenants.
func New(t testing.TB, c oauth.Config) *oauth.Service {
	t.Helper()
	if c.Users == nil {
		c.Users = NoUsers{}
	}
	if c.Relations == nil {
		c.Relations = Engine(t, c)
	}
	if c.Authority == nil {
		e, ok := c.Relations.(*engine.Engine)
		if !ok {
			e = Engine(t, c)
		}
		c.Authority = authority.New(e, scope.Administrative)
	}
	if c.Jobs == nil {
		q, err := jobs.New(jobs.Config{DB: c.DB, Seal: c.Seal, Clock: c.Clock})
		if err != nil {
			t.Fatal(err)
		}
		c.Jobs = q
	}
	if c.Tenants == nil {
		c.Tenants = func(_ context.Context, tenantID string) (protocol.Tenant, error) {
			return protocol.Tenant{ID: tenantID, BaseURL: "https://" + tenantID + ".example.com"}, nil
		}
	}
	s, err := oauth.New(c)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// Engine returns an engine on the database of c.
func Engine(t testing.TB, c oauth.Config) *engine.Engine {
	t.Helper()
	store, err := sqlstore.New(sqlstore.Config{DB: c.DB})
	if err != nil {
		t.Fatal(err)
	}
	e, err := engine.New(engine.Config{Store: store})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		e.Close()
		if err := store.Close(); err != nil {
			t.Error(err)
		}
	})
	return e
}

// NoUsers has no users.
type NoUsers struct{}

// User implements [access.Users].
func (NoUsers) User(context.Context, string, string) (access.User, error) {
	return access.User{}, access.ErrUserGone
}

// SignedIn implements [access.Users].
func (NoUsers) SignedIn(context.Context, string, string, string) (access.User, bool, error) {
	return access.User{}, false, access.ErrUserGone
}

// ValidFrom implements [access.Users].
func (NoUsers) ValidFrom(context.Context, string, string) (time.Time, error) {
	return time.Time{}, access.ErrUserGone
}

// Groups implements [access.Users].
func (NoUsers) Groups(context.Context, string, string) ([]access.Group, error) { return nil, nil }

// SessionLive implements [access.Users].
func (NoUsers) SessionLive(context.Context, string, string) (bool, error) { return false, nil }

// LiveSessions implements [access.Users].
func (NoUsers) LiveSessions(context.Context, string, []string) (int, time.Time, error) {
	return 0, time.Time{}, nil
}

// Users are users who are signed in. All have the address ann@example.com and no groups. A
// user or session whose id is in Gone does not exist.
type Users struct{ Gone []string }

// User implements [access.Users].
func (u *Users) User(_ context.Context, _, userID string) (access.User, error) {
	if slices.Contains(u.Gone, userID) {
		return access.User{}, access.ErrUserGone
	}
	return access.User{ID: userID, Email: "ann@example.com"}, nil
}

// SignedIn implements [access.Users].
func (u *Users) SignedIn(ctx context.Context, tenantID, userID, sessionID string) (access.User, bool, error) {
	user, err := u.User(ctx, tenantID, userID)
	return user, !slices.Contains(u.Gone, sessionID), err
}

// ValidFrom implements [access.Users].
func (u *Users) ValidFrom(_ context.Context, _, userID string) (time.Time, error) {
	if slices.Contains(u.Gone, userID) {
		return time.Time{}, access.ErrUserGone
	}
	return time.Time{}, nil
}

// Groups implements [access.Users].
func (*Users) Groups(context.Context, string, string) ([]access.Group, error) { return nil, nil }

// SessionLive implements [access.Users].
func (u *Users) SessionLive(_ context.Context, _, sessionID string) (bool, error) {
	return !slices.Contains(u.Gone, sessionID), nil
}

// LiveSessions implements [access.Users].
func (u *Users) LiveSessions(_ context.Context, _ string, ids []string) (n int, _ time.Time, _ error) {
	for _, id := range ids {
		if !slices.Contains(u.Gone, id) {
			n++
		}
	}
	return n, time.Time{}, nil
}
