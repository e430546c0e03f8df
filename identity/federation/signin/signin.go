package signin

import (
	"context"
	"errors"
	"log/slog"
	"net/url"
	"strings"
	"time"

	"stonetown/identity"
	"stonetown/identity/authn"
	"stonetown/identity/external"
	"stonetown/identity/federation"
	"stonetown/identity/federation/claims"
	"stonetown/identity/federation/relyingparty"
	"stonetown/identity/federation/serviceprovider"
	"stonetown/identity/onetime"
	"stonetown/identity/session"
	"stonetown/internal/eventlog"
	"stonetown/internal/seal"
	"stonetown/internal/sqldb"
)

var (
	// ErrDisabled is returned for a connection that is disabled.
	ErrDisabled = errors.New("the connection is disabled")
	// ErrTestExpired is returned for the URL of a test that has expired or was used before.
	ErrTestExpired = errors.New("the test has expired, or its URL was used before")
	// ErrExpired is returned for an answer to no sign-in of this browser that is in progress: it was
	// completed before, it has expired, or another browser began it.
	ErrExpired = errors.New("the sign-in has expired, or another browser began it")
)

const (
	// For is how long a sign-in waits for the answer of the provider.
	For = 15 * time.Minute
	// completeFor bounds the requests to the provider at the end.
	completeFor = 30 * time.Second

	kindPending onetime.Kind = "federation"
)

// Connections is the part of [federation.Registry] that the package uses.
type Connections interface {
	Get(ctx context.Context, tenantID, connectionID string) (federation.Connection, error)
	BySlug(ctx context.Context, tenantID, slug string) (federation.Connection, error)
	Provider(c federation.Connection) (relyingparty.Provider, error)
	Refresh(ctx context.Context, tenantID, connectionID string) (federation.Connection, error)
	List(ctx context.Context, tenantID string, f federation.Filter) ([]federation.Summary, error)
	ByDomain(ctx context.Context, tenantID, domain string) (federation.Summary, error)
}

// Accounts is the part of [authn.Service] that the package uses.
type Accounts interface {
	SignInFederated(ctx context.Context, t authn.Tenant, a authn.Assertion, d authn.Device) (authn.Result, error)
	Link(ctx context.Context, i external.Identity) error
	SessionAtProvider(ctx context.Context, tenantID, sessionID string) (external.Session, error)
	EndAtProvider(ctx context.Context, tenantID string, at authn.AtProvider, also func(ctx context.Context, tx *sqldb.Tx) error) error
}

// Groups is the part of [identity.Directory] that the package uses.
type Groups interface {
	AddMembers(ctx context.Context, tenantID, groupID string, userIDs []string, commitID string) (map[string]identity.Outcome, error)
	RemoveMembers(ctx context.Context, tenantID, groupID string, userIDs []string, commitID string) (map[string]identity.Outcome, error)
	Member(ctx context.Context, tenantID, groupID, userID string) (identity.Member, error)
}

// Config contains the dependencies of a service. All fields but Observe are required.
type Config struct {
	DB          *sqldb.DB
	Seal        *seal.Key
	Connections Connections
	Accounts    Accounts
	Groups      Groups
	Providers   *relyingparty.Service
	Keys        Keys
	// Observe receives the kind of the connection and the outcome of each start and each callback
	// of a sign-in or a link: one of a fixed set of values. The default ignores them.
	Observe func(kind federation.Kind, outcome string)
	Clock   func() time.Time
	Logger  *slog.Logger
}

// Service signs users in at connections. It is safe for concurrent use.
type Service struct {
	Config
	tokens *onetime.Store
}

// New returns a service. Its tables are [Migrations] and those of package onetime.
func New(c Config) *Service {
	if c.Observe == nil {
		c.Observe = func(federation.Kind, string) {}
	}
	return &Service{c, onetime.NewStore(c.DB, c.Seal, c.Clock)}
}

func (s *Service) now() time.Time { return s.Clock().UTC().Truncate(time.Microsecond) }

// Choices lists the connections at which users can sign in, newest first.
func (s *Service) Choices(ctx context.Context, tenantID string) ([]federation.Summary, error) {
	return s.Connections.List(ctx, tenantID, federation.Filter{State: federation.Enabled})
}

// HomeRealm returns the slug of the connection at which the users with addresses of a domain sign in;
// empty if there is none. It depends on the domain alone, so it does not reveal accounts.
func (s *Service) HomeRealm(ctx context.Context, tenantID, email string) (slug string, err error) {
	c, err := s.Connections.ByDomain(ctx, tenantID, email[strings.LastIndex(email, "@")+1:])
	if errors.Is(err, federation.ErrNotFound) {
		return "", nil
	}
	return c.Slug, err
}

// pending is a sign-in between [Service.Begin] and [Service.Complete].
type pending struct {
	ConnectionID string                   `json:"connection_id"`
	Party        relyingparty.Pending     `json:"party,omitzero"`
	SAML         *serviceprovider.Pending `json:"saml,omitzero"` // instead of Party
	Next         string                   `json:"next,omitzero"`
	SessionID    string                   `json:"session_id,omitzero"` // in which a link began
	TestID       string                   `json:"test_id,omitzero"`
}

// begun returns the time at which the sign-in began; zero if the provider began it.
func (p pending) begun() time.Time {
	if p.SAML != nil {
		return p.SAML.Begun
	}
	return p.Party.Begun
}

// Request describes a sign-in.
type Request struct {
	Slug      string // of the connection
	Next      string // the path to which the user returns
	LoginHint string // the address of the user, if it is known
	Demands   Demands
	SessionID string // in which a link begins; empty: a sign-in begins
}

// Begun is a sign-in whose user is at the provider.
type Begun struct {
	URL    string     // of the provider, to which the browser is sent
	Form   url.Values // that it posts there; nil: it is redirected
	State  string     // identifies the sign-in in the answer
	Secret string     // for the browser alone
}

// Begin begins a sign-in at a connection. It fails with [federation.ErrNotFound], [ErrDisabled] or
// [*Failure].
func (s *Service) Begin(ctx context.Context, t federation.Tenant, r Request) (Begun, error) {
	c, err := s.Connections.BySlug(ctx, t.ID, r.Slug)
	if err == nil && c.State != federation.Enabled {
		err = ErrDisabled
	}
	if err != nil {
		return Begun{}, err
	}
	b, err := s.begin(ctx, t, c, pending{Next: r.Next, SessionID: r.SessionID}, r.LoginHint, r.Demands)
	s.observed(c, outcomeStarted, err)
	return b, s.logged(ctx, c, err)
}

func (s *Service) begin(ctx context.Context, t federation.Tenant, c federation.Connection, p pending, loginHint string, d Demands) (b Begun, err error) {
	if c.Kind == federation.SAML {
		p.SAML = new(serviceprovider.Pending)
		b, *p.SAML, err = s.beginSAML(ctx, t, c, d)
	} else {
		b, p.Party, err = s.beginOpenID(ctx, t, c, loginHint, d)
	}
	if err != nil {
		return Begun{}, failing(err)
	}
	p.ConnectionID = c.ID
	b.Secret, _, err = s.tokens.Create(ctx, onetime.New{Kind: kindPending, TenantID: t.ID, Payload: p, For: For})
	return b, err
}

// beginOpenID begins a sign-in at a connection of any kind but SAML.
func (s *Service) beginOpenID(ctx context.Context, t federation.Tenant, c federation.Connection, loginHint string, d Demands) (b Begun, p relyingparty.Pending, err error) {
	provider, err := s.Connections.Provider(c)
	if err != nil {
		return Begun{}, p, err
	}
	r, err := s.request(ctx, c, provider, d)
	if err != nil {
		return Begun{}, p, err
	}
	r.RedirectURI, r.LoginHint = c.URLs(t).Callback, loginHint
	b.URL, p, err = s.Providers.Begin(ctx, provider, r)
	b.State = p.State
	return b, p, err
}

// Outcome is the end of a sign-in or of a test.
type Outcome struct {
	Next   string
	Result *authn.Result // of a sign-in: its next step
	Test   *Test         // a test that has ended
}

// Answer is the answer of a provider, as the browser brings it.
type Answer struct {
	Slug       string // of the connection whose callback received it
	Secret     string // of the browser, see [Begun.Secret]; empty: a SAML response to no request
	Parameters url.Values
}

// Complete completes a sign-in or a test with the answer of the provider, once. It fails with
// [ErrExpired], [ErrDisabled] or [*Failure], or as [authn.Service.SignInFederated] does.
//
// An answer without a secret is a sign-in that a SAML identity provider begins. It is never a test.
// Any site that gets the response of a user can send it to the browser of another one, who is then
// signed in as the first; see [serviceprovider.Provider.Finish]. Therefore connections refuse such
// responses by default, and Next is empty.
func (s *Service) Complete(ctx context.Context, t authn.Tenant, a Answer, d authn.Device) (Outcome, error) {
	p, c, err := s.take(ctx, t.ID, a, "")
	if err != nil {
		s.observed(c, outcomeAccepted, err)
		return Outcome{Next: p.Next}, err
	}
	ctx, cancel := context.WithTimeout(ctx, completeFor)
	defer cancel()
	at := federation.Tenant{ID: t.ID, BaseURL: t.BaseURL}
	i, err := s.finish(ctx, at, c, p, a.Parameters)
	if p.TestID != "" {
		report, err := s.report(ctx, at, c, p.TestID, i, err)
		return Outcome{Test: &Test{ID: p.TestID, State: TestCompleted, Report: report}}, err
	}
	if err != nil {
		s.observed(c, outcomeAccepted, err)
		return Outcome{Next: p.Next}, s.logged(ctx, c, err)
	}
	user, _, err := c.User(i.Claims)
	if err != nil {
		return Outcome{Next: p.Next}, err
	}
	proved := assertion(c, i, user, p.Next)
	proved.AuthTime = authTime(i.AuthTime, p.begun(), s.now())
	r, err := s.Accounts.SignInFederated(ctx, t, proved, d)
	s.observed(c, outcomeAccepted, err)
	return Outcome{Next: p.Next, Result: &r}, err
}

// take returns what an answer completes, once, and its connection: a link that began in a session
// or, without one, a sign-in or a test.
func (s *Service) take(ctx context.Context, tenantID string, a Answer, sessionID string) (p pending, c federation.Connection, err error) {
	if a.Secret == "" && sessionID == "" {
		c, err = s.unsolicited(ctx, tenantID, a.Slug)
		return pending{}, c, err
	}
	token, err := s.tokens.Find(ctx, tenantID, kindPending, a.Secret)
	if err == nil {
		err = token.Read(&p)
	}
	if err == nil && p.SessionID != sessionID {
		err = onetime.ErrInvalid
	}
	if err == nil {
		err = s.DB.Tx(ctx, func(tx *sqldb.Tx) error { return onetime.Use(ctx, tx, token) })
	}
	if errors.Is(err, onetime.ErrInvalid) {
		return pending{}, c, ErrExpired
	}
	if err != nil {
		return p, c, err
	}
	c, err = s.Connections.Get(ctx, tenantID, p.ConnectionID)
	switch {
	case errors.Is(err, federation.ErrNotFound): // deleted meanwhile
		err = ErrExpired
	case err != nil:
	case c.Slug != a.Slug: // the answer of another provider (RFC 9700 §4.4.2.2)
		err = ErrExpired
	case p.TestID == "" && c.State != federation.Enabled:
		err = ErrDisabled
	}
	return p, c, err
}

// statement is what a provider states about a user who has signed in there.
type statement struct {
	Subject  string         // the key of links
	Claims   map[string]any // for the mappings of the connection
	AMR, ACR []string       // methods and contexts of the authentication
	AuthTime time.Time      // of the authentication; zero: not stated
	// SessionID and Hint are ProviderID and Hint of [external.Session].
	SessionID, Hint string
	Warnings        []claims.Warning // for the report of a test
}

// finish verifies an answer. A statement that is returned with an error is for reports only.
func (s *Service) finish(ctx context.Context, t federation.Tenant, c federation.Connection, p pending, answer url.Values) (i statement, err error) {
	if c.Kind == federation.SAML {
		i, err = s.finishSAML(ctx, t, c, p.SAML, answer)
	} else {
		i, err = s.finishOpenID(ctx, c, p.Party, answer)
	}
	return i, failing(err)
}

func (s *Service) finishOpenID(ctx context.Context, c federation.Connection, p relyingparty.Pending, answer url.Values) (statement, error) {
	provider, err := s.Connections.Provider(c)
	if err != nil {
		return statement{}, err
	}
	i, err := s.Providers.Finish(ctx, provider, p, answer)
	return statement{Subject: i.Subject, Claims: i.Claims, AMR: i.AMR, ACR: []string{i.ACR}, AuthTime: i.AuthTime, SessionID: i.SessionID, Hint: i.IDToken}, err
}

// CompleteLink links the identity in the answer of a provider with the user of the session in which
// the link began. It fails with [ErrExpired], [ErrDisabled] or [*Failure], or as
// [authn.Service.Link] does.
func (s *Service) CompleteLink(ctx context.Context, t federation.Tenant, a Answer, current session.Session) (err error) {
	p, c, err := s.take(ctx, t.ID, a, current.ID)
	defer func() { s.observed(c, outcomeAccepted, err) }()
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, completeFor)
	defer cancel()
	i, err := s.finish(ctx, t, c, p, a.Parameters)
	if err != nil {
		return s.logged(ctx, c, err)
	}
	user, _, err := c.User(i.Claims)
	if err != nil {
		return err
	}
	return s.Accounts.Link(ctx, external.Identity{
		TenantID: t.ID, UserID: current.UserID, ConnectionID: c.ID, Slug: c.Slug, Kind: string(c.Kind), Subject: i.Subject, Email: user.Email,
	})
}

// assertion returns what a connection asserts about a user, who continues at the path next.
func assertion(c federation.Connection, i statement, u federation.User, next string) authn.Assertion {
	return authn.Assertion{
		ConnectionID: c.ID, Slug: c.Slug, Kind: string(c.Kind), Subject: i.Subject,
		Email: u.Email, EmailVerified: u.EmailVerified, Profile: profile(u.Profile),
		SecondFactor: c.SecondFactor == federation.AcceptSecondFactor && secondFactor(i.AMR, i.ACR...),
		ProviderID:   i.SessionID, Hint: i.Hint,
		Provision: c.JITProvisioning, Link: authn.LinkPolicy(c.LinkPolicy), Groups: u.GroupIDs, Next: next,
	}
}

func profile(p claims.Profile) identity.Profile {
	return identity.Profile{Name: p.Name, GivenName: p.GivenName, FamilyName: p.FamilyName, Picture: p.Picture, Locale: p.Locale, Attributes: p.Attributes}
}

// logged logs the details of an error, which are not for the user.
func (s *Service) logged(ctx context.Context, c federation.Connection, err error) error {
	if failed, ok := errors.AsType[*Failure](err); ok {
		s.Logger.WarnContext(ctx, "sign-in at connection failed", "tenant", c.TenantID, "connection", c.ID,
			"class", failed.Reason, "step", failed.Step, "detail", failed.Detail, "error", errors.Unwrap(failed.Unwrap()), "request_id", eventlog.OriginOf(ctx).RequestID)
	}
	return err
}
