package grants

import (
	"context"
	"errors"
	"strings"
	"time"

	"stonetown/internal/eventlog"
	"stonetown/internal/sqldb"
	"stonetown/oauth/access"
	"stonetown/oauth/client"
	"stonetown/oauth/detail"
	"stonetown/oauth/internal/storage"
	"stonetown/oauth/protocol"
	"stonetown/oauth/scope"
	"stonetown/oauth/token"
	"stonetown/schema"
	"stonetown/tuplestore"
)

// TokenExchange are the parameters of token exchange (RFC 8693 §2.1).
type TokenExchange struct {
	SubjectToken, SubjectTokenType string
	ActorToken, ActorTokenType     string
	RequestedTokenType             string
}

// tokenExchange exchanges a token for one that can do less, is for another audience, or names
// an actor who acts for the subject (RFC 8693). The policy is relations, all read at one
// revision: whether the application may exchange tokens and for which audiences, whether the
// subject may call them, and whether the actor may act as the subject. Scopes and lifetimes
// never grow. Each decision about a known application is recorded.
//
// Which conditions hold is decided by the rules in exchange_rules.go. The phases here only
// read what the rules are about.
type tokenExchange struct {
	sources
	record *eventlog.Recorder
	exchange
}

// exchange is what is known of one token exchange. Rules and events are about it.
type exchange struct {
	params        TokenExchange
	app           client.Application // that exchanges the token
	authenticated bool               // the application authenticated, and did not only have the token
	subject       presented
	actor         *presented // nil: no delegation
	audience      []string   // requested
	key           string     // to which the new token is bound; empty: none
	scopes        []string   // requested
	scopesErr     error      // the scope parameter is malformed
	allowed       answers
	until         time.Time // when the first of the relations that permit it expires; zero: never
	exceeds       bool      // more scopes are requested than the subject has
	carries       token.Entitlement
	granted       token.Claims
}

// answers are what the relations say about an exchange.
type answers struct {
	exchange  bool   // the application may exchange tokens
	targets   []bool // for each audience, the application may exchange tokens for it
	callers   []bool // for each audience, the subject may call it
	delegates bool   // the application may let actors act as subjects of this type
	acts      bool   // the actor may act as the subject
}

// presented is a token that was presented, of any type.
type presented struct {
	subject   tuplestore.Subject
	clientID  string // to which it was issued
	tokenID   string // empty for refresh tokens and ID tokens
	scopes    []string
	details   []detail.Detail
	audience  []string
	expires   time.Time
	sessionID string
	grantID   string
	authTime  int64
	acr       string
	amr       []string
	act       *token.Actor
	ancestors []token.Ancestor
	key       string // to which it is bound; empty: none

	app  client.Application // to which it was issued; zero: the product itself
	user *access.User       // that it speaks for; nil: an application
}

func (g *tokenExchange) form(r *request) error {
	g.params, g.audience = r.Exchange, r.Audience
	return g.check(stageForm)
}

func (g *tokenExchange) queue(*sqldb.Batch, *request) {}

func (g *tokenExchange) optionalAuthentication() bool { return true }

// present reads the tokens. Without client authentication, the client is the one to which the
// subject token was issued.
func (g *tokenExchange) present(ctx context.Context, r *request) (err error) {
	g.app, g.authenticated = r.app, r.authenticated
	if g.subject, err = g.read(ctx, r.tenant, g.app, g.params.SubjectToken, g.params.SubjectTokenType); err != nil {
		return invalidToken("subject", err)
	}
	if !g.authenticated {
		if err := g.clientOfToken(ctx, r); err != nil {
			return err
		}
		r.app = g.app
	}
	if g.params.ActorToken != "" {
		actor, err := g.read(ctx, r.tenant, g.app, g.params.ActorToken, g.params.ActorTokenType)
		if err != nil {
			return invalidToken("actor", err)
		}
		g.actor = &actor
	}
	return g.check(stageTokens)
}

// clientOfToken finds the application that exchanges a token without authentication: the one
// to which the token was issued, if it may.
func (g *tokenExchange) clientOfToken(ctx context.Context, r *request) error {
	refusal := &denial{string(phaseClient), protocol.NewError(protocol.InvalidClient, "the client must authenticate")}
	if r.ClientID != "" && r.ClientID != g.subject.clientID {
		var err error
		if g.app, err = g.named(ctx, r.tenant, r.ClientID, client.Application{}); err != nil {
			return err
		}
		return refusal
	}
	g.app = g.subject.app
	switch {
	case g.app.ClientID == "": // the product itself issued the token
		return refusal
	case g.app.TokenExchange.RequireClientAuthentication:
		return refusal
	case g.app.State != client.Enabled:
		return &denial{string(phaseClient), protocol.NewError(protocol.UnauthorizedClient, "the application is disabled")}
	}
	return nil
}

func (g *tokenExchange) decide(ctx context.Context, r *request) (*issuance, error) {
	g.key = r.key
	if err := g.check(stageKey); err != nil {
		return nil, err
	}
	g.scopes, g.scopesErr = scope.Parse(r.Scope)
	if err := g.check(stageRequest); err != nil {
		return nil, err
	}
	if err := g.readPolicy(ctx, r.tenant); err != nil {
		return nil, err
	}
	if err := g.check(stagePolicy); err != nil {
		return nil, err
	}
	from := g.subject
	entitlement := token.EntitlementRequest{App: from.app, User: from.user, Scopes: from.scopes}
	if len(g.audience) > 0 || g.app.ClientID != from.clientID { // for another audience or client than before
		entitlement.Also = &g.app
	}
	countedFor := g.app.ClientID
	if from.user != nil {
		countedFor = from.user.ID
	}
	details, err := g.heldDetails(ctx, r, from.subject, from.details)
	if refused := new(protocol.Error); errors.As(err, &refused) {
		err = &denial{detail.Parameter, refused}
	}
	if err != nil {
		return nil, err
	}
	return &issuance{
		details:     details,
		entitlement: entitlement,
		claims: func(carries token.Entitlement) (token.Entitlement, token.Claims, error) {
			g.result(carries)
			return g.carries, g.granted, g.check(stageResult)
		},
		countedFor: countedFor,
		event: func(ctx context.Context, _ token.Entitlement, claims token.Claims) eventlog.Event {
			g.granted = claims
			return tokenExchanged(ctx, g.exchange)
		},
		issuedType: protocol.TypeAccessToken,
	}, nil
}

// refused records a refusal, if the application is known: the one that authenticated, or the
// one that the request names.
func (g *tokenExchange) refused(ctx context.Context, r *request, refusal error) error {
	if r.phase == phaseClient && len(r.ClientAuthMethods) > 0 && !r.authenticated {
		var err error
		if g.app, err = g.named(ctx, r.tenant, r.ClientID, client.Application{}); err != nil {
			return err
		}
	}
	if g.app.ClientID == "" {
		return nil
	}
	reason := string(r.phase)
	var d *denial
	if errors.As(refusal, &d) {
		reason = d.reason
	}
	return g.record.Record(ctx, r.tenant.ID, tokenExchangeDenied(client.AsActor(ctx, g.app), g.exchange, reason))
}

// result fills in the claims of the new token: those of the subject token, with the actor and
// the ancestors, and the earliest of all expiries.
func (e *exchange) result(entitled token.Entitlement) {
	from := e.subject
	e.carries = entitled
	if len(e.scopes) > 0 {
		e.carries = entitled.Narrowed(e.scopes)
		e.exceeds = len(e.carries.Scopes()) < len(e.scopes)
	}
	act, acr, expires := from.act, from.acr, from.expires
	if !e.until.IsZero() && e.until.Before(expires) {
		expires = e.until
	}
	if e.actor != nil {
		act = &token.Actor{Subject: e.actor.subject.ID, ClientID: e.actor.clientID, Act: from.act}
		if acr != "" {
			acr = protocol.AAL1
		}
		if e.actor.expires.Before(expires) {
			expires = e.actor.expires
		}
	}
	audience := from.audience
	if len(e.audience) > 0 {
		audience = e.audience
	}
	e.granted = token.Claims{
		Subject: from.subject.ID, Audience: audience, Expires: expires.Unix(),
		SessionID: from.sessionID, GrantID: from.grantID, AuthTime: from.authTime, ACR: acr, AMR: from.amr,
		Act: act, Parent: from.tokenID, Ancestors: ancestorsOf(from, e.actor),
	}
}

// ancestorsOf returns the ancestors of a token that is exchanged for a subject's token, and an
// actor's if there is one.
func ancestorsOf(subject presented, actor *presented) []token.Ancestor {
	// The new token itself has the session and the grant of its subject.
	all := append([]token.Ancestor{{TokenID: subject.tokenID, ClientID: subject.clientID}}, subject.ancestors...)
	if actor != nil {
		all = append(all, token.Ancestor{TokenID: actor.tokenID, ClientID: actor.clientID, SessionID: actor.sessionID, GrantID: actor.grantID, Subject: actor.subject.ID})
		all = append(all, actor.ancestors...)
	}
	var distinct []token.Ancestor
	seen := map[token.Ancestor]bool{}
	for _, a := range all {
		if !seen[a] {
			seen[a] = true
			distinct = append(distinct, a)
		}
	}
	return distinct
}

// named returns the application of a client id; zero if there is none. known, which may be
// zero, was read for the same request and is not read again.
func (s sources) named(ctx context.Context, tenant protocol.Tenant, clientID string, known client.Application) (client.Application, error) {
	if clientID == known.ClientID {
		return known, nil
	}
	app, err := client.Select(ctx, s.db, tenant.ID, clientID)
	if client.IsNotFound(err) {
		return client.Application{}, nil
	}
	return app, err
}

// invalidToken refuses a token that is not valid, for any reason (RFC 8693 §2.2.2). name is
// subject or actor.
func invalidToken(name string, err error) error {
	var refusal *token.Error
	if errors.As(err, &refusal) || errors.Is(err, access.ErrInvalidGrant) || errors.Is(err, access.ErrUserGone) {
		return &denial{name + "_token_invalid", protocol.NewError(protocol.InvalidRequest, name+"_token is not valid")}
	}
	return err
}

// read reads a valid token. It fails with [*token.Error], [access.ErrInvalidGrant] or
// [access.ErrUserGone]. by is the application that presents it, if it has authenticated:
// refresh tokens and ID tokens are valid only for the application to which they were issued.
func (s sources) read(ctx context.Context, tenant protocol.Tenant, by client.Application, raw, typ string) (presented, error) {
	switch typ {
	case protocol.TypeRefreshToken:
		return s.readRefreshToken(ctx, tenant, by, raw)
	case protocol.TypeIDToken:
		return s.readIDToken(ctx, tenant, by, raw)
	}
	return s.readAccessToken(ctx, tenant, by, raw)
}

func (s sources) readRefreshToken(ctx context.Context, tenant protocol.Tenant, by client.Application, raw string) (p presented, err error) {
	stored, err := s.access.RefreshToken(ctx, tenant, raw)
	if err != nil {
		return p, err
	}
	if by.ClientID != "" && stored.ClientID != by.ClientID || stored.Rotated() || !storage.Now(s.clock).Before(stored.ExpiresAt) {
		return p, access.ErrInvalidGrant
	}
	p, err = s.presentGrant(ctx, tenant, by, stored.Grant, stored.ClientID, stored.ExpiresAt)
	if by.ClientID == "" { // a client that authenticates needs no key (RFC 9449 §5)
		p.key = stored.Key
	}
	return p, err
}

func (s sources) readIDToken(ctx context.Context, tenant protocol.Tenant, by client.Application, raw string) (p presented, err error) {
	c, err := s.tokens.ReadIDToken(ctx, tenant, raw)
	if err != nil {
		return p, err
	}
	if by.ClientID != "" && c.Audience != by.ClientID {
		return p, &token.Error{Reason: token.WrongAudience}
	}
	g, err := s.access.Grant(ctx, tenant, c.GrantID)
	if err != nil {
		return p, err
	}
	p, err = s.presentGrant(ctx, tenant, by, g, c.Audience, token.Seconds(c.Expires))
	p.key = c.Confirmation.Key()
	return p, err
}

func (s sources) readAccessToken(ctx context.Context, tenant protocol.Tenant, by client.Application, raw string) (p presented, err error) {
	c, err := s.tokens.Read(ctx, tenant, raw, s.clock())
	if err == nil {
		err = s.tokens.Alive(ctx, tenant, c)
	}
	if err != nil {
		return p, err
	}
	p = presented{
		subject: token.SubjectOf(c.Subject), clientID: c.ClientID, tokenID: c.TokenID, scopes: strings.Fields(c.Scope), details: c.Details, audience: c.Audience, expires: token.Seconds(c.Expires),
		sessionID: c.SessionID, grantID: c.GrantID, authTime: c.AuthTime, acr: c.ACR, amr: c.AMR, act: c.Act, ancestors: c.Ancestors,
		key: c.Confirmation.Key(),
	}
	if p.app, err = s.named(ctx, tenant, c.ClientID, by); err != nil { // none: the product itself issued the token
		return p, err
	}
	if p.app.ClientID != "" && p.app.ClientID != by.ClientID && p.app.State != client.Enabled && by.ClientID != "" { // tokens of a disabled application lead to no new ones
		return p, access.ErrInvalidGrant
	}
	if p.subject.Type == schema.UserType {
		user, err := s.users.User(ctx, tenant.ID, p.subject.ID)
		if err != nil {
			return p, err
		}
		p.user = &user
	}
	return p, nil
}

// presentGrant returns what a refresh token or an ID token of a grant stands for. by is as for
// read.
func (s sources) presentGrant(ctx context.Context, tenant protocol.Tenant, by client.Application, g access.Grant, clientID string, expires time.Time) (p presented, err error) {
	user, err := s.access.Holder(ctx, tenant, g, false)
	if err != nil {
		return p, err
	}
	app, err := s.named(ctx, tenant, clientID, by)
	if err == nil && app.State != client.Enabled {
		err = access.ErrInvalidGrant
	}
	if err != nil {
		return p, err
	}
	p = presented{
		subject: tuplestore.Subject{Type: schema.UserType, ID: g.Authentication.UserID}, clientID: clientID, scopes: g.Scopes, details: g.Details, audience: client.Audience(tenant, app, strings.Fields(g.Audience), g.Scopes), expires: expires,
		sessionID: g.Authentication.SessionID, grantID: g.ID, authTime: g.Authentication.AuthTime.Unix(), acr: g.Authentication.ACR(), amr: g.Authentication.Methods,
		app: app, user: &user,
	}
	if g.Offline() {
		p.sessionID = ""
	}
	return p, err
}
