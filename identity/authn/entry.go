package authn

import (
	"context"
	"errors"
	"fmt"
	"time"

	"stonetown/identity"
	"stonetown/identity/onetime"
	"stonetown/identity/session"
	"stonetown/internal/sqldb"
)

// A member of an organisation enters the console of a tenant with a one-time token that the control
// plane has issued. The token is used in the transaction that begins the session, so that an entry
// that fails for another reason can be repeated while the token is valid.

// EntryFor is the lifetime of the token of an entry.
const EntryFor = time.Minute

const kindEntry onetime.Kind = "console_entry"

// entry is the proof of an entry.
type entry struct {
	origin session.Origin
	token  onetime.Token
}

// Entry describes a token of [Service.IssueEntry].
type Entry struct {
	User      identity.User // the managed user
	Origin    session.Origin
	ExpiresAt time.Time
}

// IssueEntry queues a one-time token with which the person of a session of the control plane enters
// the console of a tenant, as a managed user. It takes the place of tokens that the user has not used.
func (s *Service) IssueEntry(b *sqldb.Batch, tenantID, userID string, o session.Origin) (token string, expiresAt time.Time) {
	onetime.Discard(b, tenantID, userID, kindEntry)
	token, issued := s.tokens.Issue(b, onetime.New{Kind: kindEntry, TenantID: tenantID, UserID: userID, Payload: o, For: EntryFor})
	return token, issued.ExpiresAt
}

// ReadEntry describes a token of [Service.IssueEntry] and has no other effect. It fails with [ErrToken],
// also if the origin of the token does not hold any more.
func (s *Service) ReadEntry(ctx context.Context, t Tenant, token string) (Entry, error) {
	e, _, _, err := s.readEntry(ctx, t, token)
	return e, err
}

// Enter begins a session with a token of [Service.IssueEntry]. The session has the second factor of the
// session of the control plane. Enter fails with [ErrToken], [ErrDisabled] or [ErrThreat].
func (s *Service) Enter(ctx context.Context, t Tenant, token string, d Device) (Result, error) {
	e, found, control, err := s.readEntry(ctx, t, token)
	if err != nil {
		return Result{}, err
	}
	p := proof{Methods: []string{"control_plane"}, At: control.AuthTime, Entry: &entry{e.Origin, found}}
	if !control.SecondFactor.IsZero() {
		p.Methods, p.Second = append(p.Methods, "mfa"), true
	}
	return s.proceed(ctx, t, e.User, p, d)
}

// readEntry also returns the session of the control plane.
func (s *Service) readEntry(ctx context.Context, t Tenant, token string) (e Entry, found onetime.Token, control session.Session, err error) {
	if found, err = s.tokens.Find(ctx, t.ID, kindEntry, token); err != nil {
		return e, found, control, invalid(err)
	}
	if err = found.Read(&e.Origin); err != nil {
		return e, found, control, fmt.Errorf("read entry: %w", err)
	}
	e.ExpiresAt = found.ExpiresAt
	if e.User, err = s.users.User(ctx, t.ID, found.UserID); err == nil {
		control, err = s.origins.Origin(ctx, t.ID, e.Origin)
	}
	if errors.Is(err, identity.ErrUserNotFound) || errors.Is(err, session.ErrEnded) {
		err = ErrToken
	}
	return e, found, control, err
}
