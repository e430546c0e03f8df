package oauth

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"stonetown/engine"
	"stonetown/internal/id"
	"stonetown/schema"
	"stonetown/tuplestore"
)

// GrantTokenExchange is the grant of RFC 8693.
const GrantTokenExchange = "urn:ietf:params:oauth:grant-type:token-exchange"

// The types of token (RFC 8693 §3).
const (
	TypeAccessToken  = "urn:ietf:params:oauth:token-type:access_token"
	TypeRefreshToken = "urn:ietf:params:oauth:token-type:refresh_token"
	TypeIDToken      = "urn:ietf:params:oauth:token-type:id_token"
	TypeJWT          = "urn:ietf:params:oauth:token-type:jwt"
)

const (
	// maxActors is how many may have acted for each other in one token.
	maxActors = 4
	// maxTargets is how many audiences one token may be asked for.
	maxTargets = 10
)

// ExchangeRequest is what token exchange takes (RFC 8693 §2.1).
type ExchangeRequest struct {
	SubjectToken, SubjectTokenType string
	ActorToken, ActorTokenType     string
	RequestedTokenType             string
}

// Actor is who acts for the subject of a token, and who acted before (RFC 8693 §4.1).
type Actor struct {
	Subject  string `json:"sub"`
	ClientID string `json:"client_id,omitempty"`
	Act      *Actor `json:"act,omitempty"`
}

func (a *Actor) depth() int {
	if a == nil {
		return 0
	}
	return 1 + a.Act.depth()
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
	act       *Actor
	ancestors []Ancestor
	key       string // JWK thumbprint that the presenter must prove; empty: none

	app    Application // that it was issued to; zero: the product itself
	person *Person     // that it speaks for; nil: an application
}

// exchange is one exchange under way, as it is put on record.
type exchange struct {
	app           Application
	authenticated bool // the application did, and did not only hold the subject's token
	subject       presented
	actor         *presented
	audience      []string  // asked for
	scopes        []string  // asked for
	key           string    // thumbprint of the one that was proved; empty: none
	until         time.Time // when the first of the relations that permit it expires; zero: never
	carries       entitlement
	granted       claims
}

// denial is why an exchange was refused: in a word for the record, and to the client.
type denial struct {
	reason string
	*Error
}

// exchangeToken answers the token exchange grant (RFC 8693). What it may lead to is asked
// of the engine, at one revision: whether the application may exchange tokens, whether for
// these audiences, whether the subject may call them, and whether the actor may act as the
// subject. Scopes and lifetimes never grow. Every exchange of a known application is on
// record, allowed or denied.
func (s *Service) exchangeToken(ctx context.Context, tenant Tenant, req TokenRequest) (TokenResponse, error) {
	req.start()
	e := exchange{audience: req.Audience}
	denied, err := s.judgeExchange(ctx, tenant, req, &e)
	if err == nil && denied == nil {
		denied, err = refusedAs("used_before", s.admit(ctx, req.Credentials, e.countedFor()))
	}
	if err != nil {
		return TokenResponse{}, err
	}
	if denied != nil {
		if e.app.ClientID != "" {
			if err := s.record.Record(ctx, tenant.ID, tokenExchangeDenied(asApplication(ctx, e.app), e, denied.reason)); err != nil {
				return TokenResponse{}, err
			}
		}
		return TokenResponse{}, req.refused(ctx, denied.Error)
	}
	token, err := s.mint(ctx, tenant, e.app, e.carries, &e.granted)
	if err == nil {
		err = s.record.Record(ctx, tenant.ID, tokenExchanged(asApplication(ctx, e.app), e))
	}
	if err == nil {
		err = s.used(ctx, e.app)
	}
	if err != nil {
		return TokenResponse{}, err
	}
	return TokenResponse{
		AccessToken: token, TokenType: e.granted.Confirmation.tokenType(), ExpiresIn: seconds(e.granted.Expires).Sub(seconds(e.granted.IssuedAt)), Scope: e.granted.Scope,
		IssuedTokenType: TypeAccessToken,
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
func (s *Service) judgeExchange(ctx context.Context, tenant Tenant, req TokenRequest, e *exchange) (*denial, error) {
	x := req.Exchange
	if s.relations == nil || s.people == nil {
		return &denial{"unsupported", &Error{UnsupportedGrantType, "token exchange is not set up"}}, nil
	}
	if d := wellFormedExchange(x); d != nil {
		return d, nil
	}
	if len(req.ClientAuthMethods) > 0 {
		app, err := s.authenticate(ctx, tenant, &req.Credentials)
		if d, err := refusedAs("client", err); d != nil || err != nil {
			if d != nil { // on record for the application that the request names
				e.app, err = s.named(ctx, tenant, req.ClientID, Application{})
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
	if e.app.TokenExchange.SubjectTokens == OwnSubjectTokens && !e.isOwn() {
		return &denial{"subject_token_not_own", &Error{InvalidGrant, "the application may exchange only tokens that were issued to it or name it as audience"}}, nil
	}
	if e.key, err = s.bindingKey(tenant, e.app, req.Credentials); err != nil {
		return refusedAs("dpop_proof", err)
	}
	if d := e.bound(); d != nil {
		return d, nil
	}
	if e.scopes, err = parseScopes(req.Scope); err != nil {
		return refusedAs("scope_malformed", err)
	}
	if len(e.audience) > maxTargets {
		return &denial{"audience_too_many", &Error{InvalidRequest, fmt.Sprintf("more than %d audiences", maxTargets)}}, nil
	}
	if !all(e.audience, validAudience) {
		return &denial{"audience_malformed", &Error{InvalidTarget, "an audience is not an absolute URI without fragment"}}, nil
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
func (s *Service) named(ctx context.Context, tenant Tenant, clientID string, known Application) (Application, error) {
	if clientID == known.ClientID {
		return known, nil
	}
	app, err := selectApplication(ctx, s.db, tenant.ID, clientID)
	if notFound(err) {
		return Application{}, nil
	}
	return app, err
}

func wellFormedExchange(x ExchangeRequest) *denial {
	types := []string{TypeAccessToken, TypeRefreshToken, TypeIDToken, TypeJWT}
	malformed := func(description string) *denial { return &denial{"malformed", &Error{InvalidRequest, description}} }
	switch {
	case x.SubjectToken == "" || x.SubjectTokenType == "":
		return malformed("subject_token and subject_token_type are required")
	case (x.ActorToken == "") != (x.ActorTokenType == ""):
		return malformed("actor_token and actor_token_type must be given together")
	case !slices.Contains(types, x.SubjectTokenType):
		return malformed("subject_token_type is not supported")
	case x.ActorToken != "" && !slices.Contains(types, x.ActorTokenType):
		return malformed("actor_token_type is not supported")
	case x.RequestedTokenType != "" && x.RequestedTokenType != TypeAccessToken:
		return malformed("requested_token_type must be the type of access tokens")
	}
	return nil
}

// bound refuses tokens that are bound to another key than the one that was proved. That one
// the new token is bound to, so that no exchange leads to a token that is good without.
func (e *exchange) bound() *denial {
	if e.subject.key != "" && e.subject.key != e.key {
		return &denial{"subject_token_key", &Error{InvalidRequest, "subject_token is bound to a key, and the request has no DPoP proof for that key"}}
	}
	if e.actor != nil && e.actor.key != "" && e.actor.key != e.key {
		return &denial{"actor_token_key", &Error{InvalidRequest, "actor_token is bound to a key, and the request has no DPoP proof for that key"}}
	}
	return nil
}

// refusedAs is the denial that an error is, if it is one.
func refusedAs(reason string, err error) (*denial, error) {
	var refused *Error
	if errors.As(err, &refused) {
		return &denial{reason, refused}, nil
	}
	return nil, err
}

// invalidToken refuses a token that is not good, whatever is wrong with it (RFC 8693
// §2.2.2).
func invalidToken(which string, err error) (*denial, error) {
	var refused *TokenError
	if errors.As(err, &refused) || errors.Is(err, invalidGrant) || errors.Is(err, ErrPersonGone) {
		return &denial{which + "_token_invalid", &Error{InvalidRequest, which + "_token is not valid"}}, nil
	}
	return nil, err
}

// performer finds the application that exchanges a token without having authenticated: the
// one that the token was issued to, if it need not.
func (s *Service) performer(ctx context.Context, tenant Tenant, req TokenRequest, e *exchange) (*denial, error) {
	refused := &denial{"client", &Error{InvalidClient, "the client must authenticate"}}
	if req.ClientID != "" && req.ClientID != e.subject.clientID {
		var err error
		e.app, err = s.named(ctx, tenant, req.ClientID, Application{})
		return refused, err
	}
	e.app = e.subject.app
	switch {
	case e.app.ClientID == "": // the product itself issued the token
		return refused, nil
	case e.app.TokenExchange.RequireClientAuthentication:
		return refused, nil
	case e.app.State != Enabled:
		return &denial{"client", &Error{UnauthorizedClient, "the application is disabled"}}, nil
	}
	return nil, nil
}

// permitted asks the engine.
func (s *Service) permitted(ctx context.Context, tenant Tenant, e *exchange) (*denial, error) {
	self := tuplestore.Object{Type: schema.ApplicationType, ID: e.app.ClientID}
	of := question{subject: tuplestore.Subject{Type: schema.ApplicationType, ID: e.app.ClientID}, queries: []engine.Query{{Resource: self, Action: schema.Exchange}}}
	calls := question{subject: e.subject.subject}
	for _, audience := range e.audience {
		of.queries = append(of.queries, engine.Query{Resource: audienceObject(audience), Action: schema.AudienceExchanger})
		calls.queries = append(calls.queries, engine.Query{Resource: audienceObject(audience), Action: schema.AudienceCaller})
	}
	questions := []question{of, calls}
	if e.actor != nil {
		questions[0].queries = append(questions[0].queries, engine.Query{Resource: self, Action: actAsRelations[e.subject.subject.Type]})
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
		return &denial{"not_enabled", &Error{InvalidGrant, "the application is not allowed to exchange tokens"}}, nil
	case slices.Contains(targets, false):
		return &denial{"audience_not_permitted", &Error{InvalidTarget, "the application is not allowed tokens for this audience"}}, nil
	case slices.Contains(answers[1], false):
		return &denial{"audience_denied", &Error{InvalidTarget, "the subject is not allowed to call this audience"}}, nil
	case e.actor != nil && !answers[0][1+len(e.audience)]:
		return &denial{"act_as_not_enabled", &Error{InvalidGrant, "the application does not allow delegation for subjects of this type"}}, nil
	case e.actor != nil && !answers[2][0]:
		return &denial{"act_as_denied", &Error{InvalidGrant, "the actor is not allowed to act as the subject"}}, nil
	}
	return nil, nil
}

// grant is what an exchange that is permitted leads to.
func (s *Service) grant(ctx context.Context, tenant Tenant, e *exchange) (_ *denial, err error) {
	from := e.subject
	q := entitling{app: from.app, person: from.person, scopes: from.scopes}
	if len(e.audience) > 0 || e.app.ClientID != from.clientID { // the token is for another audience or client than before
		q.also = &e.app
	}
	if e.carries, err = s.entitled(ctx, tenant, q); err != nil {
		return nil, err
	}
	if len(e.scopes) > 0 {
		asked := len(e.scopes)
		if e.carries = e.carries.narrowed(e.scopes); len(e.carries.scopes) < asked {
			return &denial{"scope", &Error{InvalidScope, "scope exceeds what the subject has or what the application is allowed"}}, nil
		}
	}
	act, acr := from.act, from.acr
	expires := from.expires
	if !e.until.IsZero() && e.until.Before(expires) {
		expires = e.until
	}
	if e.actor != nil {
		act = &Actor{Subject: e.actor.subject.ID, ClientID: e.actor.clientID, Act: from.act}
		if act.depth() > maxActors {
			return &denial{"act_chain", &Error{InvalidGrant, fmt.Sprintf("the chain of actors would be longer than %d", maxActors)}}, nil
		}
		if acr != "" {
			acr = AAL1
		}
		if e.actor.expires.Before(expires) {
			expires = e.actor.expires
		}
	}
	ancestors := lineage(from, e.actor)
	if len(ancestors) > maxAncestors {
		return &denial{"too_many_exchanges", &Error{InvalidGrant, fmt.Sprintf("the token would have more than %d ancestors", maxAncestors)}}, nil
	}
	aud := audience(from.audience)
	if len(e.audience) > 0 {
		aud = audience(e.audience)
	}
	e.granted = claims{
		Subject: from.subject.ID, Audience: aud, Expires: expires.Unix(),
		SessionID: from.sessionID, GrantID: from.grantID, AuthTime: from.authTime, ACR: acr, AMR: from.amr, Act: act, Parent: from.tokenID, Ancestors: ancestors,
		Confirmation: confirmation{e.key},
	}
	return nil, nil
}

func all[T any](list []T, holds func(T) bool) bool {
	return !slices.ContainsFunc(list, func(item T) bool { return !holds(item) })
}

// intersect are those of some that are among others.
func intersect(some, others []string) []string {
	var both []string
	for _, item := range some {
		if slices.Contains(others, item) {
			both = append(both, item)
		}
	}
	return both
}

// readPresented reads a token that is still good. It fails with [*TokenError],
// invalidGrant or [ErrPersonGone]. by is the application that presents it, if it has
// authenticated: refresh tokens and ID tokens are good in the hands of their own only.
func (s *Service) readPresented(ctx context.Context, tenant Tenant, by Application, token, typ string) (p presented, err error) {
	switch typ {
	case TypeRefreshToken:
		r, err := s.selectRefreshToken(ctx, tenant, token)
		if err != nil {
			return p, err
		}
		if by.ClientID != "" && r.clientID != by.ClientID || r.rotated || !moment(s.clock).Before(r.expiresAt) {
			return p, invalidGrant
		}
		p, err := s.ofGrant(ctx, tenant, by, r.grant, r.clientID, r.expiresAt)
		if by.ClientID == "" { // one that authenticates needs no key (RFC 9449 §5)
			p.key = r.key
		}
		return p, err
	case TypeIDToken:
		c, err := s.readIDToken(ctx, tenant, token)
		if err != nil {
			return p, err
		}
		if by.ClientID != "" && c.Audience != by.ClientID {
			return p, &TokenError{WrongAudience}
		}
		g, err := selectGrant(ctx, s.db, tenant, c.GrantID)
		if err != nil {
			return p, err
		}
		p, err := s.ofGrant(ctx, tenant, by, g, c.Audience, seconds(c.Expires))
		p.key = c.Confirmation.Thumbprint
		return p, err
	}
	c, err := s.readToken(ctx, tenant, token, s.clock())
	if err == nil {
		err = s.alive(ctx, tenant, c)
	}
	if err != nil {
		return p, err
	}
	p = presented{
		subject: c.subject(), clientID: c.ClientID, tokenID: c.TokenID, scopes: strings.Fields(c.Scope), audience: c.Audience, expires: seconds(c.Expires),
		sessionID: c.SessionID, grantID: c.GrantID, authTime: c.AuthTime, acr: c.ACR, amr: c.AMR, act: c.Act, ancestors: c.Ancestors,
		key: c.Confirmation.Thumbprint,
	}
	if p.app, err = s.named(ctx, tenant, c.ClientID, by); err != nil { // none: the product itself issued the token
		return p, err
	}
	if p.app.ClientID != "" && p.app.ClientID != by.ClientID && p.app.State != Enabled && by.ClientID != "" { // tokens of a disabled application lead to no new ones
		return p, invalidGrant
	}
	if p.subject.Type == schema.UserType {
		person, err := s.people.Person(ctx, tenant.ID, p.subject.ID)
		if err != nil {
			return p, err
		}
		p.person = &person
	}
	return p, nil
}

// ofGrant is what a token stands for that says which grant it is of. by is as for
// readPresented.
func (s *Service) ofGrant(ctx context.Context, tenant Tenant, by Application, g grant, clientID string, expires time.Time) (p presented, err error) {
	person, err := s.holder(ctx, tenant, g, false)
	if err != nil {
		return p, err
	}
	app, err := s.named(ctx, tenant, clientID, by)
	if err == nil && app.State != Enabled {
		err = invalidGrant
	}
	if err != nil {
		return p, err
	}
	var asked []string
	if g.audience != "" {
		asked = []string{g.audience}
	}
	aud, err := tokenAudience(tenant, app, asked, g.scopes)
	p = presented{
		subject: tuplestore.Subject{Type: schema.UserType, ID: g.auth.UserID}, clientID: clientID, scopes: g.scopes, audience: aud, expires: expires,
		sessionID: g.auth.SessionID, grantID: g.id, authTime: g.auth.AuthTime.Unix(), acr: g.auth.acr(), amr: g.auth.Methods,
		app: app, person: &person,
	}
	if g.offline() {
		p.sessionID = ""
	}
	return p, err
}

// subject is the user or application that a token speaks for, in the engine's terms.
func (c claims) subject() tuplestore.Subject { return subjectOf(c.Subject) }

// subjectOf tells a user from an application by the id. That the client is another one
// proves nothing: it may have exchanged the token of an application.
func subjectOf(sub string) tuplestore.Subject {
	if strings.HasPrefix(sub, id.Client+"_") {
		return tuplestore.Subject{Type: schema.ApplicationType, ID: sub}
	}
	return tuplestore.Subject{Type: schema.UserType, ID: sub}
}
