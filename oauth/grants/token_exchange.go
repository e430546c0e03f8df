package grants

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"stonetown/engine"
	"stonetown/oauth/access"
	"stonetown/oauth/client"
	"stonetown/oauth/internal/storage"
	"stonetown/oauth/protocol"
	"stonetown/oauth/scope"
	"stonetown/oauth/token"
	"stonetown/schema"
	"stonetown/tuplestore"
)

const (
	// maxActors is how many may have acted for each other in one token.
	maxActors = 4
	// maxTargets is how many audiences one token may be asked for.
	maxTargets = 10
)

// TokenExchange is what token exchange takes (RFC 8693 §2.1).
type TokenExchange struct {
	SubjectToken, SubjectTokenType string
	ActorToken, ActorTokenType     string
	RequestedTokenType             string
}

// presented is what a token says that was presented for an exchange, whatever its type.
type presented struct {
	subject   tuplestore.Subject
	clientID  string // that it was issued to
	tokenID   string // empty for refresh tokens and ID tokens
	scopes    []string
	audience  []string
	expires   time.Time
	sessionID string
	grantID   string
	authTime  int64
	acr       string
	amr       []string
	act       *token.Actor
	ancestors []token.Ancestor
	key       string // JWK thumbprint that the presenter must prove; empty: none

	app    client.Application // that it was issued to; zero: the product itself
	person *access.User       // that it speaks for; nil: an application
}

// exchange is one exchange under way, as it is put on record.
type exchange struct {
	app           client.Application
	authenticated bool // the application did, and did not only hold the subject's token
	subject       presented
	actor         *presented
	audience      []string  // asked for
	scopes        []string  // asked for
	key           string    // thumbprint of the one that was proved; empty: none
	until         time.Time // when the first of the relations that permit it expires; zero: never
	carries       token.Entitlement
	granted       token.Claims
}

// denial is why an exchange was refused: in a word for the record, and to the client.
type denial struct {
	reason string
	*protocol.Error
}

// exchangeToken answers the token exchange grant (RFC 8693). What it may lead to is asked
// of the engine, at one revision: whether the application may exchange tokens, whether for
// these audiences, whether the subject may call them, and whether the actor may act as the
// subject. Scopes and lifetimes never grow. Every exchange of a known application is on
// record, allowed or denied.
func (s *Service) exchangeToken(ctx context.Context, tenant protocol.Tenant, req Request) (token.Response, error) {
	req.Start()
	e := exchange{audience: req.Audience}
	denied, err := s.judgeExchange(ctx, tenant, req, &e)
	if err == nil && denied == nil {
		denied, err = refusedAs("used_before", s.authn.Admit(ctx, req.Credentials, e.countedFor()))
	}
	if err != nil {
		return token.Response{}, err
	}
	if denied != nil {
		if e.app.ClientID != "" {
			if err := s.record.Record(ctx, tenant.ID, tokenExchangeDenied(client.AsActor(ctx, e.app), e, denied.reason)); err != nil {
				return token.Response{}, err
			}
		}
		return token.Response{}, req.Refused(ctx, denied.Error)
	}
	raw, err := s.minter.AccessToken(ctx, tenant, e.app, e.carries, &e.granted)
	if err == nil {
		err = s.record.Record(ctx, tenant.ID, tokenExchanged(client.AsActor(ctx, e.app), e))
	}
	if err == nil {
		err = s.clients.NoteUse(ctx, e.app)
	}
	if err != nil {
		return token.Response{}, err
	}
	return token.Response{
		AccessToken: raw, TokenType: e.granted.Confirmation.TokenType(), ExpiresIn: token.Seconds(e.granted.Expires).Sub(token.Seconds(e.granted.IssuedAt)), Scope: e.granted.Scope,
		IssuedTokenType: protocol.TypeAccessToken,
	}, nil
}

// countedFor is whose limit an exchange counts against: the user's that the token speaks
// for, or the application's that exchanges it.
func (e *exchange) countedFor() string {
	if e.subject.person != nil {
		return e.subject.person.ID
	}
	return e.app.ClientID
}

// judgeExchange decides about an exchange and fills in what is known of it. The order is
// that in which refusals are told.
func (s *Service) judgeExchange(ctx context.Context, tenant protocol.Tenant, req Request, e *exchange) (*denial, error) {
	x := req.Exchange
	if d := wellFormedExchange(x); d != nil {
		return d, nil
	}
	if len(req.ClientAuthMethods) > 0 {
		app, err := s.authn.Authenticate(ctx, tenant, &req.Credentials)
		if d, err := refusedAs("client", err); d != nil || err != nil {
			if d != nil { // on record for the application that the request names
				e.app, err = s.named(ctx, tenant, req.ClientID, client.Application{})
			}
			return d, err
		}
		e.app, e.authenticated = app, true
	}
	var err error
	if e.subject, err = s.readPresented(ctx, tenant, e.app, x.SubjectToken, x.SubjectTokenType); err != nil {
		return invalidToken("subject", err)
	}
	if !e.authenticated {
		if d, err := s.performer(ctx, tenant, req, e); d != nil || err != nil {
			return d, err
		}
	}
	if x.ActorToken != "" {
		p, err := s.readPresented(ctx, tenant, e.app, x.ActorToken, x.ActorTokenType)
		if err != nil {
			return invalidToken("actor", err)
		}
		e.actor = &p
	}
	if e.app.TokenExchange.SubjectTokens == client.OwnSubjectTokens && !e.isOwn() {
		return &denial{"subject_token_not_own", protocol.NewError(protocol.InvalidGrant, "the application may exchange only tokens that were issued to it or name it as audience")}, nil
	}
	if e.key, err = s.authn.BindingKey(tenant, e.app, req.Credentials); err != nil {
		return refusedAs("dpop_proof", err)
	}
	if d := e.bound(); d != nil {
		return d, nil
	}
	if e.scopes, err = scope.Parse(req.Scope); err != nil {
		return refusedAs("scope_malformed", err)
	}
	if len(e.audience) > maxTargets {
		return &denial{"audience_too_many", protocol.NewError(protocol.InvalidRequest, fmt.Sprintf("more than %d audiences", maxTargets))}, nil
	}
	if !all(e.audience, client.ValidAudience) {
		return &denial{"audience_malformed", protocol.NewError(protocol.InvalidTarget, "an audience is not an absolute URI without fragment")}, nil
	}
	if d, err := s.permitted(ctx, tenant, e); d != nil || err != nil {
		return d, err
	}
	return s.grant(ctx, tenant, e)
}

// isOwn reports whether the subject's token was issued to the application that exchanges
// it, or names it as an audience.
func (e *exchange) isOwn() bool {
	return e.subject.clientID == e.app.ClientID || slices.Contains(e.subject.audience, e.app.ClientID) ||
		e.app.Audience != "" && slices.Contains(e.subject.audience, e.app.Audience)
}

// named is the application of a client id; zero if there is none. known, which may be zero,
// has been read for the same request and is not read again.
func (s *Service) named(ctx context.Context, tenant protocol.Tenant, clientID string, known client.Application) (client.Application, error) {
	if clientID == known.ClientID {
		return known, nil
	}
	app, err := client.Select(ctx, s.db, tenant.ID, clientID)
	if client.IsNotFound(err) {
		return client.Application{}, nil
	}
	return app, err
}

func wellFormedExchange(x TokenExchange) *denial {
	types := []string{protocol.TypeAccessToken, protocol.TypeRefreshToken, protocol.TypeIDToken, protocol.TypeJWT}
	malformed := func(description string) *denial {
		return &denial{"malformed", protocol.NewError(protocol.InvalidRequest, description)}
	}
	switch {
	case x.SubjectToken == "" || x.SubjectTokenType == "":
		return malformed("subject_token and subject_token_type are required")
	case (x.ActorToken == "") != (x.ActorTokenType == ""):
		return malformed("actor_token and actor_token_type must be given together")
	case !slices.Contains(types, x.SubjectTokenType):
		return malformed("subject_token_type is not supported")
	case x.ActorToken != "" && !slices.Contains(types, x.ActorTokenType):
		return malformed("actor_token_type is not supported")
	case x.RequestedTokenType != "" && x.RequestedTokenType != protocol.TypeAccessToken:
		return malformed("requested_token_type must be the type of access tokens")
	}
	return nil
}

// bound refuses tokens that are bound to another key than the one that was proved. That one
// the new token is bound to, so that no exchange leads to a token that is good without.
func (e *exchange) bound() *denial {
	if e.subject.key != "" && e.subject.key != e.key {
		return &denial{"subject_token_key", protocol.NewError(protocol.InvalidRequest, "subject_token is bound to a key, and the request has no DPoP proof for that key")}
	}
	if e.actor != nil && e.actor.key != "" && e.actor.key != e.key {
		return &denial{"actor_token_key", protocol.NewError(protocol.InvalidRequest, "actor_token is bound to a key, and the request has no DPoP proof for that key")}
	}
	return nil
}

// refusedAs is the denial that an error is, if it is one.
func refusedAs(reason string, err error) (*denial, error) {
	var refused *protocol.Error
	if errors.As(err, &refused) {
		return &denial{reason, refused}, nil
	}
	return nil, err
}

// invalidToken refuses a token that is not good, whatever is wrong with it (RFC 8693
// §2.2.2).
func invalidToken(which string, err error) (*denial, error) {
	var refused *token.Error
	if errors.As(err, &refused) || errors.Is(err, access.ErrInvalidGrant) || errors.Is(err, access.ErrUserGone) {
		return &denial{which + "_token_invalid", protocol.NewError(protocol.InvalidRequest, which+"_token is not valid")}, nil
	}
	return nil, err
}

// performer finds the application that exchanges a token without having authenticated: the
// one that the token was issued to, if it need not.
func (s *Service) performer(ctx context.Context, tenant protocol.Tenant, req Request, e *exchange) (*denial, error) {
	refused := &denial{"client", protocol.NewError(protocol.InvalidClient, "the client must authenticate")}
	if req.ClientID != "" && req.ClientID != e.subject.clientID {
		var err error
		e.app, err = s.named(ctx, tenant, req.ClientID, client.Application{})
		return refused, err
	}
	e.app = e.subject.app
	switch {
	case e.app.ClientID == "": // the product itself issued the token
		return refused, nil
	case e.app.TokenExchange.RequireClientAuthentication:
		return refused, nil
	case e.app.State != client.Enabled:
		return &denial{"client", protocol.NewError(protocol.UnauthorizedClient, "the application is disabled")}, nil
	}
	return nil, nil
}

// permitted asks the engine.
func (s *Service) permitted(ctx context.Context, tenant protocol.Tenant, e *exchange) (*denial, error) {
	self := tuplestore.Object{Type: schema.ApplicationType, ID: e.app.ClientID}
	of := question{subject: tuplestore.Subject{Type: schema.ApplicationType, ID: e.app.ClientID}, queries: []engine.Query{{Resource: self, Action: schema.Exchange}}}
	calls := question{subject: e.subject.subject}
	for _, audience := range e.audience {
		of.queries = append(of.queries, engine.Query{Resource: client.AudienceObject(audience), Action: schema.AudienceExchanger})
		calls.queries = append(calls.queries, engine.Query{Resource: client.AudienceObject(audience), Action: schema.AudienceCaller})
	}
	questions := []question{of, calls}
	if e.actor != nil {
		questions[0].queries = append(questions[0].queries, engine.Query{Resource: self, Action: client.ActAsRelations[e.subject.subject.Type]})
		questions = append(questions, question{
			subject: e.actor.subject,
			queries: []engine.Query{{Resource: tuplestore.Object{Type: e.subject.subject.Type, ID: e.subject.subject.ID}, Action: schema.ActAs}},
		})
	}
	answers, until, err := s.ask(ctx, tenant.ID, questions)
	if err != nil {
		return nil, err
	}
	e.until = until
	targets := answers[0][1 : 1+len(e.audience)]
	switch {
	case !answers[0][0]:
		return &denial{"not_enabled", protocol.NewError(protocol.InvalidGrant, "the application is not allowed to exchange tokens")}, nil
	case slices.Contains(targets, false):
		return &denial{"audience_not_permitted", protocol.NewError(protocol.InvalidTarget, "the application is not allowed tokens for this audience")}, nil
	case slices.Contains(answers[1], false):
		return &denial{"audience_denied", protocol.NewError(protocol.InvalidTarget, "the subject is not allowed to call this audience")}, nil
	case e.actor != nil && !answers[0][1+len(e.audience)]:
		return &denial{"act_as_not_enabled", protocol.NewError(protocol.InvalidGrant, "the application does not allow delegation for subjects of this type")}, nil
	case e.actor != nil && !answers[2][0]:
		return &denial{"act_as_denied", protocol.NewError(protocol.InvalidGrant, "the actor is not allowed to act as the subject")}, nil
	}
	return nil, nil
}

// grant is what an exchange that is permitted leads to.
func (s *Service) grant(ctx context.Context, tenant protocol.Tenant, e *exchange) (_ *denial, err error) {
	from := e.subject
	q := token.EntitlementRequest{App: from.app, Person: from.person, Scopes: from.scopes}
	if len(e.audience) > 0 || e.app.ClientID != from.clientID { // the token is for another audience or client than before
		q.Also = &e.app
	}
	if e.carries, err = s.tokens.Entitled(ctx, tenant, q); err != nil {
		return nil, err
	}
	if len(e.scopes) > 0 {
		asked := len(e.scopes)
		if e.carries = e.carries.Narrowed(e.scopes); len(e.carries.Scopes) < asked {
			return &denial{"scope", protocol.NewError(protocol.InvalidScope, "scope exceeds what the subject has or what the application is allowed")}, nil
		}
	}
	act, acr := from.act, from.acr
	expires := from.expires
	if !e.until.IsZero() && e.until.Before(expires) {
		expires = e.until
	}
	if e.actor != nil {
		act = &token.Actor{Subject: e.actor.subject.ID, ClientID: e.actor.clientID, Act: from.act}
		if act.Depth() > maxActors {
			return &denial{"act_chain", protocol.NewError(protocol.InvalidGrant, fmt.Sprintf("the chain of actors would be longer than %d", maxActors))}, nil
		}
		if acr != "" {
			acr = protocol.AAL1
		}
		if e.actor.expires.Before(expires) {
			expires = e.actor.expires
		}
	}
	ancestors := lineage(from, e.actor)
	if len(ancestors) > token.MaxAncestors {
		return &denial{"too_many_exchanges", protocol.NewError(protocol.InvalidGrant, fmt.Sprintf("the token would have more than %d ancestors", token.MaxAncestors))}, nil
	}
	aud := token.Audience(from.audience)
	if len(e.audience) > 0 {
		aud = token.Audience(e.audience)
	}
	e.granted = token.Claims{
		Subject: from.subject.ID, Audience: aud, Expires: expires.Unix(),
		SessionID: from.sessionID, GrantID: from.grantID, AuthTime: from.authTime, ACR: acr, AMR: from.amr, Act: act, Parent: from.tokenID, Ancestors: ancestors,
		Confirmation: token.Confirmation{Thumbprint: e.key},
	}
	return nil, nil
}

func all[T any](list []T, holds func(T) bool) bool {
	return !slices.ContainsFunc(list, func(item T) bool { return !holds(item) })
}

// readPresented reads a token that is still good. It fails with [*TokenError],
// invalidGrant or [ErrPersonGone]. by is the application that presents it, if it has
// authenticated: refresh tokens and ID tokens are good in the hands of their own only.
func (s *Service) readPresented(ctx context.Context, tenant protocol.Tenant, by client.Application, raw, typ string) (p presented, err error) {
	switch typ {
	case protocol.TypeRefreshToken:
		r, err := s.access.SelectRefreshToken(ctx, tenant, raw)
		if err != nil {
			return p, err
		}
		if by.ClientID != "" && r.ClientID != by.ClientID || r.Rotated || !storage.Now(s.clock).Before(r.ExpiresAt) {
			return p, access.ErrInvalidGrant
		}
		p, err := s.ofGrant(ctx, tenant, by, r.Grant, r.ClientID, r.ExpiresAt)
		if by.ClientID == "" { // one that authenticates needs no key (RFC 9449 §5)
			p.key = r.Key
		}
		return p, err
	case protocol.TypeIDToken:
		c, err := s.tokens.ReadIDToken(ctx, tenant, raw)
		if err != nil {
			return p, err
		}
		if by.ClientID != "" && c.Audience != by.ClientID {
			return p, &token.Error{Reason: token.WrongAudience}
		}
		g, err := access.SelectGrant(ctx, s.db, tenant, c.GrantID)
		if err != nil {
			return p, err
		}
		p, err := s.ofGrant(ctx, tenant, by, g, c.Audience, token.Seconds(c.Expires))
		p.key = c.Confirmation.Thumbprint
		return p, err
	}
	c, err := s.tokens.Read(ctx, tenant, raw, s.clock())
	if err == nil {
		err = s.tokens.Alive(ctx, tenant, c)
	}
	if err != nil {
		return p, err
	}
	p = presented{
		subject: token.SubjectOf(c.Subject), clientID: c.ClientID, tokenID: c.TokenID, scopes: strings.Fields(c.Scope), audience: c.Audience, expires: token.Seconds(c.Expires),
		sessionID: c.SessionID, grantID: c.GrantID, authTime: c.AuthTime, acr: c.ACR, amr: c.AMR, act: c.Act, ancestors: c.Ancestors,
		key: c.Confirmation.Thumbprint,
	}
	if p.app, err = s.named(ctx, tenant, c.ClientID, by); err != nil { // none: the product itself issued the token
		return p, err
	}
	if p.app.ClientID != "" && p.app.ClientID != by.ClientID && p.app.State != client.Enabled && by.ClientID != "" { // tokens of a disabled application lead to no new ones
		return p, access.ErrInvalidGrant
	}
	if p.subject.Type == schema.UserType {
		person, err := s.users.User(ctx, tenant.ID, p.subject.ID)
		if err != nil {
			return p, err
		}
		p.person = &person
	}
	return p, nil
}

// ofGrant is what a token stands for that says which grant it is of. by is as for
// readPresented.
func (s *Service) ofGrant(ctx context.Context, tenant protocol.Tenant, by client.Application, g access.Grant, clientID string, expires time.Time) (p presented, err error) {
	person, err := s.access.Holder(ctx, tenant, g, false)
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
	var asked []string
	if g.Audience != "" {
		asked = []string{g.Audience}
	}
	aud, err := client.Audience(tenant, app, asked, g.Scopes)
	p = presented{
		subject: tuplestore.Subject{Type: schema.UserType, ID: g.Authentication.UserID}, clientID: clientID, scopes: g.Scopes, audience: aud, expires: expires,
		sessionID: g.Authentication.SessionID, grantID: g.ID, authTime: g.Authentication.AuthTime.Unix(), acr: g.Authentication.ACR(), amr: g.Authentication.Methods,
		app: app, person: &person,
	}
	if g.Offline() {
		p.sessionID = ""
	}
	return p, err
}

// lineage is the ancestors of a token that is exchanged from a subject's, and an actor's
// if there is one.
func lineage(subject presented, actor *presented) []token.Ancestor {
	// The token itself has session and grant of its subject.
	all := append([]token.Ancestor{{TokenID: subject.tokenID, ClientID: subject.clientID}}, subject.ancestors...)
	if actor != nil {
		all = append(all, token.Ancestor{TokenID: actor.tokenID, ClientID: actor.clientID, SessionID: actor.sessionID, GrantID: actor.grantID, Subject: actor.subject.ID})
		all = append(all, actor.ancestors...)
	}
	var distinct []token.Ancestor
	for _, a := range all {
		if !slices.Contains(distinct, a) {
			distinct = append(distinct, a)
		}
	}
	return distinct
}
