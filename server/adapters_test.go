package server

import (
	"context"
	"errors"
	"slices"
	"testing"
	"time"

	"stonetown/identity"
	"stonetown/identity/session"
	"stonetown/internal/sqldb"
	"stonetown/oauth/access"
	"stonetown/oauth/dpop"
	"stonetown/oauth/protocol"
	"stonetown/oauth/token"
)

var errDatabase = errors.New("database")

type fakeUsers map[string]identity.User

func (u fakeUsers) User(_ context.Context, _, userID string) (identity.User, error) {
	found, ok := u[userID]
	switch {
	case userID == "usr_error":
		return identity.User{}, errDatabase
	case !ok:
		return identity.User{}, identity.ErrUserNotFound
	}
	return found, nil
}

func (u fakeUsers) QueueUser(_ *sqldb.Batch, tenantID, userID string) func() (identity.User, error) {
	return func() (identity.User, error) { return u.User(context.Background(), tenantID, userID) }
}

// fakeScopes are the scopes of a tenant, which all users have.
type fakeScopes []string

func (s fakeScopes) QueueNames(*sqldb.Batch, string) func() []string {
	return func() []string { return s }
}

func (fakeScopes) HeldBy(_ context.Context, _, _ string, names []string) ([]string, error) {
	return names, nil
}

func sent(context.Context, *sqldb.Batch) error { return nil }

func (fakeUsers) Groups(_ context.Context, _, _, userID string, _ *identity.Position, _ int) ([]identity.Group, error) {
	if userID != "usr_a" {
		return nil, nil
	}
	return []identity.Group{{Slug: "writers"}, {Slug: "editors"}}, nil
}

// fakeSessions are sessions by id, which is also their token without the prefix.
type fakeSessions map[string]session.Session

func (s fakeSessions) ByID(_ context.Context, _, sessionID string) (session.Session, error) {
	found, ok := s[sessionID]
	switch {
	case sessionID == "ses_error":
		return session.Session{}, errDatabase
	case !ok:
		return session.Session{}, session.ErrEnded
	}
	return found, nil
}

func (s fakeSessions) QueueByID(_ *sqldb.Batch, tenantID, sessionID string) func(context.Context) (session.Session, error) {
	return func(ctx context.Context) (session.Session, error) { return s.ByID(ctx, tenantID, sessionID) }
}

func (s fakeSessions) ByToken(ctx context.Context, tenantID, token string) (session.Session, error) {
	return s.ByID(ctx, tenantID, token[len(session.Prefix):])
}

func (s fakeSessions) LiveSessions(_ context.Context, _ string, ids []string) (live []session.Session, err error) {
	for _, id := range ids {
		if one, ok := s[id]; ok {
			live = append(live, one)
		}
	}
	return live, nil
}

var (
	now   = time.Date(2026, 11, 22, 0, 0, 0, 0, time.UTC)
	known = fakeSessions{
		"ses_a":     {ID: "ses_a", UserID: "usr_a", ExpiresAt: now, Methods: []string{"pwd"}},
		"ses_later": {ID: "ses_later", UserID: "usr_a", ExpiresAt: now.Add(time.Hour)},
		"ses_enrol": {ID: "ses_enrol", UserID: "usr_a", MustEnrol: true, ExpiresAt: now},
	}
)

func TestUsers(t *testing.T) {
	a := &users{Send: sent, Scopes: fakeScopes{"users:read"}, Sessions: known, Users: fakeUsers{
		"usr_a":        {ID: "usr_a", State: identity.Active, Email: "ann@example.com", SignedOutAt: now},
		"usr_pending":  {ID: "usr_pending", State: identity.Pending},
		"usr_disabled": {ID: "usr_disabled", State: identity.Disabled},
	}}
	for userID, want := range map[string]error{
		"usr_a": nil, "usr_pending": nil, "usr_disabled": access.ErrUserGone, "usr_deleted": access.ErrUserGone, "usr_error": errDatabase,
	} {
		if _, err := a.User(t.Context(), "tnt_a", userID); !errors.Is(err, want) {
			t.Errorf("User(%s): %v, want %v", userID, err, want)
		}
		if _, err := a.ValidFrom(t.Context(), "tnt_a", userID); !errors.Is(err, want) {
			t.Errorf("ValidFrom(%s): %v, want %v", userID, err, want)
		}
	}
	p, err := a.User(t.Context(), "tnt_a", "usr_a")
	if err != nil || p.ID != "usr_a" || p.Email != "ann@example.com" || len(p.Scopes) != 1 || !p.ValidFrom.Equal(now) {
		t.Errorf("%+v, %v", p, err)
	}
	person, err := a.Person(t.Context(), "tnt_a", "usr_a")
	if err != nil || person.Email != "ann@example.com" || !slices.Equal(person.Groups, []string{"editors", "writers"}) {
		t.Errorf("%+v, %v", person, err)
	}
	if _, err := a.Person(t.Context(), "tnt_a", "usr_disabled"); !errors.Is(err, access.ErrUserGone) {
		t.Errorf("Person: %v, want ErrUserGone", err)
	}
	for sessionID, want := range map[string]bool{"ses_a": true, "ses_enrol": false, "ses_ended": false} {
		if live, err := a.SessionLive(t.Context(), "tnt_a", sessionID); err != nil || live != want {
			t.Errorf("SessionLive(%s) = %v, %v, want %v", sessionID, live, err, want)
		}
		user, live, err := a.SignedIn(t.Context(), "tnt_a", "usr_a", sessionID)
		if err != nil || live != want || live && len(user.Scopes) != 1 {
			t.Errorf("SignedIn(%s) = %+v, %v, %v, want %v", sessionID, user, live, err, want)
		}
	}
	if _, err := a.SessionLive(t.Context(), "tnt_a", "ses_error"); !errors.Is(err, errDatabase) {
		t.Errorf("SessionLive: %v, want the error of the database", err)
	}
	if n, latest, err := a.LiveSessions(t.Context(), "tnt_a", []string{"ses_later", "ses_a", "ses_ended"}); n != 2 || !latest.Equal(now.Add(time.Hour)) || err != nil {
		t.Errorf("LiveSessions = %d, %v, %v", n, latest, err)
	}
}

// fakeTokens verifies access tokens, which are the ids of their sessions.
type fakeTokens struct{}

func (fakeTokens) Verify(_ context.Context, _ protocol.Tenant, bearer string) (*token.Principal, error) {
	if bearer == "forged" {
		return nil, &token.Error{}
	}
	return &token.Principal{Subject: "usr_a", SessionID: bearer}, nil
}

func (t fakeTokens) VerifyBound(ctx context.Context, tenant protocol.Tenant, token string, _ dpop.Request) (*token.Principal, error) {
	return t.Verify(ctx, tenant, token)
}

func (t fakeTokens) VerifyCertified(ctx context.Context, tenant protocol.Tenant, token string, _ func() string) (*token.Principal, error) {
	return t.Verify(ctx, tenant, token)
}

func TestVerifier(t *testing.T) {
	other := fakeSessions{"ses_b": {ID: "ses_b", UserID: "usr_b"}}
	for id, one := range known {
		other[id] = one
	}
	v := &verifier{Tokens: fakeTokens{}, Sessions: other}
	tenant := protocol.Tenant{ID: "tnt_a"}

	p, err := v.Verify(t.Context(), tenant, session.Prefix+"ses_a")
	if err != nil || p.Subject != "usr_a" || p.SessionID != "ses_a" || p.ClientID != token.FirstParty || !p.Scopes.Has("me:write") || p.Scopes.Has("users:read") {
		t.Errorf("session token: %+v, %v", p, err)
	}
	if p, err := v.Verify(t.Context(), tenant, session.Prefix+"ses_enrol"); err != nil || !p.MustEnrol {
		t.Errorf("token of a session that must add a factor: %+v, %v", p, err)
	}
	for name, c := range map[string]struct {
		token  string
		reason token.Reason // of the [*token.Error]
		err    error
	}{
		"access token of a live session":         {token: "ses_a"},
		"access token without a session":         {token: ""},
		"token of an ended session":              {token: session.Prefix + "ses_ended", reason: token.Revoked},
		"access token of an ended session":       {token: "ses_ended", reason: token.Revoked},
		"access token of another user's session": {token: "ses_b", reason: token.Revoked},
		"failing database":                       {token: "ses_error", err: errDatabase},
		"failing database, session token":        {token: session.Prefix + "ses_error", err: errDatabase},
	} {
		check := func(p *token.Principal, err error) {
			t.Helper()
			refused, _ := errors.AsType[*token.Error](err)
			switch {
			case c.reason != "" && (refused == nil || refused.Reason != c.reason):
				t.Errorf("%s: %v, want %s", name, err, c.reason)
			case c.reason == "" && !errors.Is(err, c.err):
				t.Errorf("%s: %v, want %v", name, err, c.err)
			case (err == nil) != (p != nil):
				t.Errorf("%s: a principal with an error: %+v", name, p)
			}
		}
		check(v.Verify(t.Context(), tenant, c.token))
		if c.token == "" || c.token[:3] != session.Prefix {
			check(v.VerifyBound(t.Context(), tenant, c.token, dpop.Request{}))
		}
	}
	if p, err := v.Verify(t.Context(), tenant, "forged"); p != nil || err == nil {
		t.Errorf("forged token: %+v, %v", p, err)
	}
}
