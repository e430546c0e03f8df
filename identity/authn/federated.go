package authn

import (
	"context"
	"errors"
	"slices"
	"time"

	"stonetown/identity"
	"stonetown/identity/external"
	"stonetown/identity/onetime"
	"stonetown/identity/session"
	"stonetown/internal/eventlog"
	"stonetown/internal/sqldb"
)

// LinkRequired is the state of a sign-in at a connection whose user has the address of an account,
// but has not proved to own that account: [Service.LinkWithPassword] continues it.
const LinkRequired Status = "link_required"

// LinkPolicy is the condition under which the first sign-in at a connection links the identity with
// the account that has its e-mail address.
type LinkPolicy string

// The policies of linking.
const (
	// LinkVerified links if the provider and the account have both verified the address, and
	// requires a proof of the account otherwise.
	LinkVerified LinkPolicy = "verified_email"
	// LinkNever refuses the sign-in.
	LinkNever LinkPolicy = "never"
	// LinkPrompt always requires a proof of the account.
	LinkPrompt LinkPolicy = "always_prompt"
)

// Assertion is the statement of an identity provider about a user who has signed in there. The
// caller must have authenticated it.
type Assertion struct {
	ConnectionID string
	Slug, Kind   string // of the connection
	Subject      string // the provider's identifier of the user

	Email         string
	EmailVerified bool // by the provider, or the connection trusts its addresses
	Profile       identity.Profile

	// AuthTime is the time at which the user authenticated at the provider, which can be long before
	// the assertion; zero: the provider has not stated it, and the session begins with it.
	AuthTime time.Time
	// SecondFactor: the provider has verified a second factor, and the connection accepts it.
	SecondFactor bool
	// ProviderID is the provider's identifier of its session, and Hint names the session in a
	// request for logout; see [external.Session].
	ProviderID, Hint string

	// Provision creates an account for a user who has none.
	Provision bool
	Link      LinkPolicy
	// Groups are ids of groups, for [Connections.SessionBegan].
	Groups []string
	// Next is the path that the link in a mail to the new user leads to in the end; empty: none.
	Next string
}

func (a Assertion) identity(tenantID, userID string) external.Identity {
	return external.Identity{
		TenantID: tenantID, UserID: userID, ConnectionID: a.ConnectionID, Slug: a.Slug, Kind: a.Kind, Subject: a.Subject, Email: a.Email,
	}
}

// federated is the proof that an identity provider gave.
type federated struct {
	Identity external.Identity `json:"identity"`
	Session  external.Session  `json:"session"`
	// Link: the session of this sign-in links the identity.
	Link   bool     `json:"link,omitzero"`
	Groups []string `json:"groups,omitzero"`
}

// Connections are the connections at which users sign in. They can change while a sign-in waits for
// its next step.
type Connections interface {
	// Usable reports, in the transaction that begins a session, whether users can sign in at a
	// connection.
	Usable(ctx context.Context, tx *sqldb.Tx, tenantID, connectionID string) (bool, error)
	// SessionBegan is called after a session has begun at a connection, before its user gets it.
	// groups are [Assertion.Groups].
	SessionBegan(ctx context.Context, tenantID, connectionID, userID string, groups []string) error
}

// UseConnections sets the connections, which depend on the service. It must be called before the
// first sign-in at a connection.
func (s *Service) UseConnections(c Connections) { s.connections = c }

// proof returns the proof of a user.
func (a Assertion) proof(tenantID, userID string) proof {
	p := proof{
		Methods: []string{"fed"}, At: a.AuthTime,
		Federated: &federated{
			Groups:   a.Groups,
			Identity: a.identity(tenantID, userID),
			Session:  external.Session{TenantID: tenantID, ConnectionID: a.ConnectionID, Subject: a.Subject, ProviderID: a.ProviderID, Hint: a.Hint},
		},
	}
	if a.SecondFactor {
		p.Methods, p.Second = append(p.Methods, "mfa"), true
	}
	return p
}

const kindLink onetime.Kind = "link"

// SignInFederated begins a sign-in with the assertion of an identity provider. The user is the one
// who is linked with the subject. If there is none, the account with the same address is linked
// according to the policy, or an account is created. SignInFederated fails with
// [ErrNotProvisioned], [ErrAccountExists], [ErrNoEmail], [ErrThreat], [ErrDisabled], [*flow.DeniedError], or as
// [Service.Link] does.
func (s *Service) SignInFederated(ctx context.Context, t Tenant, a Assertion, d Device) (Result, error) {
	found, err := s.external.Find(ctx, t.ID, a.ConnectionID, a.Subject)
	if err == nil {
		u, err := s.users.User(ctx, t.ID, found.UserID)
		if err != nil {
			return Result{}, err
		}
		return s.proceed(ctx, t, u, a.proof(t.ID, u.ID), d)
	}
	if !errors.Is(err, external.ErrNotFound) {
		return Result{}, err
	}
	if !identity.ValidEmail(a.Email) {
		if !a.Provision {
			return Result{}, ErrNotProvisioned
		}
		return Result{}, ErrNoEmail
	}
	u, err := s.users.UserByEmail(ctx, t.ID, a.Email)
	if errors.Is(err, identity.ErrUserNotFound) {
		if u, err = s.provision(ctx, t, a, d); err != nil {
			return Result{}, err
		}
		return s.proceed(ctx, t, u, a.proof(t.ID, u.ID), d)
	}
	switch {
	case err != nil:
		return Result{}, err
	case u.State == identity.Disabled:
		return Result{}, ErrDisabled
	case a.Link == LinkNever:
		return Result{}, ErrAccountExists
	}
	p := a.proof(t.ID, u.ID)
	p.Federated.Link = true
	if a.Link == LinkVerified && a.EmailVerified && u.EmailVerified {
		return s.proceed(ctx, t, u, p, d)
	}
	r := Result{Status: LinkRequired, User: u}
	var token onetime.Token
	r.Continue, token, err = s.tokens.Create(ctx, onetime.New{Kind: kindLink, TenantID: t.ID, UserID: u.ID, Payload: p.Federated, For: mfaFor})
	r.ExpiresAt = token.ExpiresAt
	return r, err
}

// provision creates the account of a user of a connection, linked with the subject.
func (s *Service) provision(ctx context.Context, t Tenant, a Assertion, d Device) (u identity.User, err error) {
	if !a.Provision {
		return u, ErrNotProvisioned
	}
	settings, err := s.users.Settings(ctx, t.ID)
	if err != nil {
		return u, err
	}
	if err := s.screenSignUp(ctx, t, settings, a.Email); err != nil {
		return u, err
	}
	candidate := identity.User{TenantID: t.ID, Email: a.Email, EmailVerified: a.EmailVerified, Profile: a.Profile}
	if err := s.admitSignUp(ctx, t, settings, candidate, a.Slug, d); err != nil {
		return u, err
	}
	err = s.db.Tx(ctx, func(tx *sqldb.Tx) error {
		u, err = s.users.CreateUser(ctx, tx, t.ID, identity.NewUser{Email: a.Email, EmailVerified: a.EmailVerified, Profile: a.Profile})
		if err != nil {
			return err
		}
		i := a.identity(t.ID, u.ID)
		if _, err := s.external.Link(ctx, tx, i); err != nil {
			return err
		}
		var b sqldb.Batch
		ctx := as(ctx, u.ID)
		eventlog.Append(&b, t.ID, identity.UserCreated(ctx, u, identity.FromFederation), signedUp(ctx, u), identityLinked(ctx, u, i))
		if !u.EmailVerified {
			queueVerification(s.jobs, &b, u, a.Next)
		}
		return tx.Send(ctx, &b)
	})
	if errors.Is(err, identity.ErrUserExists) { // created meanwhile
		err = ErrAccountExists
	}
	if err == nil {
		s.jobs.Wake()
	}
	return u, err
}

// LinkWithPassword continues a sign-in with the state [LinkRequired]: the password proves that the
// account belongs to the user. The identity is linked when the session begins, after a second
// factor if the account has one. LinkWithPassword fails with [ErrToken], or as [Service.SignIn]
// does.
func (s *Service) LinkWithPassword(ctx context.Context, t Tenant, token, plain string, d Device) (Result, error) {
	found, f, owner, err := s.linking(ctx, t, token)
	if err != nil {
		return Result{}, err
	}
	u, err := s.verifyPassword(ctx, t, owner.Email, plain)
	if err != nil {
		return Result{}, err
	}
	return s.link(ctx, t, found, f, u, proof{Methods: []string{"pwd"}}, d)
}

// LinkWithPasskey is [Service.LinkWithPassword] with a passkey. It fails with [ErrToken], or as
// [Service.CompletePasskey] does.
func (s *Service) LinkWithPasskey(ctx context.Context, t Tenant, token, ceremonyID string, credential []byte, d Device) (Result, error) {
	found, f, _, err := s.linking(ctx, t, token)
	if err != nil {
		return Result{}, err
	}
	u, p, err := s.verifyPasskey(ctx, t, ceremonyID, credential)
	if err != nil {
		return Result{}, err
	}
	return s.link(ctx, t, found, f, u, p, d)
}

// linking reads a token of kindLink and its user.
func (s *Service) linking(ctx context.Context, t Tenant, token string) (found onetime.Token, f *federated, u identity.User, err error) {
	if found, err = s.tokens.Find(ctx, t.ID, kindLink, token); err != nil {
		return found, f, u, invalid(err)
	}
	if err = found.Read(&f); err != nil {
		return found, f, u, err
	}
	u, err = s.users.User(ctx, t.ID, found.UserID)
	if errors.Is(err, identity.ErrUserNotFound) {
		err = ErrToken
	}
	return found, f, u, err
}

// link uses a token of kindLink, and proceeds with the proof of its user's account.
func (s *Service) link(ctx context.Context, t Tenant, token onetime.Token, f *federated, u identity.User, p proof, d Device) (Result, error) {
	if u.ID != token.UserID {
		return Result{}, ErrToken
	}
	err := s.db.Tx(ctx, func(tx *sqldb.Tx) error { return invalid(onetime.Use(ctx, tx, token)) })
	if err != nil {
		return Result{}, err
	}
	p.Federated = f
	return s.proceed(ctx, t, u, p, d)
}

// beginFederated links the identity of a federated sign-in if it is to be linked, and records at
// which session of the provider the session began. It fails with [ErrToken] if the connection has
// been disabled or deleted since the sign-in began, and with [ErrCredentials] if the identity has
// been removed.
func (s *Service) beginFederated(ctx context.Context, tx *sqldb.Tx, b *sqldb.Batch, u identity.User, f *federated, begun session.Session) (events []eventlog.Event, err error) {
	if f == nil {
		return nil, nil
	}
	usable, err := s.connections.Usable(ctx, tx, u.TenantID, f.Identity.ConnectionID)
	if err == nil && !usable {
		err = ErrToken
	}
	if err != nil {
		return nil, err
	}
	if f.Link {
		added, err := s.external.Link(ctx, tx, f.Identity)
		if err != nil {
			return nil, err
		}
		if added {
			events = append(events, identityLinked(ctx, u, f.Identity))
			s.notify(b, u.TenantID, u.ID, identityAdded)
		}
	}
	have, err := external.OfUser(ctx, tx, u.TenantID, u.ID)
	if err != nil {
		return nil, err
	}
	if !slices.ContainsFunc(have, func(i external.Identity) bool {
		return i.ConnectionID == f.Identity.ConnectionID && i.Subject == f.Identity.Subject
	}) {
		return nil, ErrCredentials
	}
	s.external.Used(b, f.Identity)
	at := f.Session
	at.SessionID, at.ExpiresAt = begun.ID, begun.ExpiresAt
	s.external.Began(b, at)
	return events, nil
}

// federatedBegan reports the session of a federated sign-in.
func (s *Service) federatedBegan(ctx context.Context, u identity.User, f *federated) error {
	if f == nil {
		return nil
	}
	return s.connections.SessionBegan(ctx, u.TenantID, f.Identity.ConnectionID, u.ID, f.Groups)
}
