package grants

import (
	"context"
	"errors"
	"fmt"

	"stonetown/internal/eventlog"
	"stonetown/internal/sqldb"
	"stonetown/oauth/access"
	"stonetown/oauth/client"
	"stonetown/oauth/detail"
	"stonetown/oauth/protocol"
	"stonetown/oauth/scope"
	"stonetown/oauth/token"
)

// phase is a step of the runner, by the reason that events state if it refuses a request.
type phase string

const (
	phaseForm     phase = "malformed"
	phaseClient   phase = "client"
	phaseKey      phase = "dpop_proof"
	phaseDecision phase = "decision"
	phaseLimits   phase = "used_before"
)

// request is a request in progress.
type request struct {
	Request
	tenant        protocol.Tenant
	phase         phase
	app           client.Application
	authenticated bool   // the client authenticated, or is one that has no credentials
	key           string // to which tokens are bound, see [client.Authenticator.BindingKey]; empty: none
}

// grant is a grant type. Each method is a phase, which the runner calls in this order.
type grant interface {
	// form validates the parameters before anything is read.
	form(r *request) error

	// queue queues reads that are sent with that of the client.
	queue(b *sqldb.Batch, r *request)

	// optionalAuthentication reports whether a request may come without client
	// authentication. Then present finds the client.
	optionalAuthentication() bool

	// present reads what must be known before the key is proved, and finds the client of a
	// request without authentication. It refuses clients that may not use the grant.
	present(ctx context.Context, r *request) error

	// decide decides about what the request presents. If another request consumes it first,
	// the runner calls decide again, and it finds the other's result.
	decide(ctx context.Context, r *request) (*issuance, error)

	// refused records a refusal.
	refused(ctx context.Context, r *request, refusal error) error
}

// ofUsers is the part that grants have in common that issue tokens of users.
type ofUsers struct {
	noForm
	grantType string
}

func (g ofUsers) present(_ context.Context, r *request) error {
	switch {
	case !r.app.Type.HasUsers():
		return protocol.NewError(protocol.UnauthorizedClient, "applications of this type cannot get tokens for users")
	case !r.app.Uses(g.grantType):
		return protocol.NewError(protocol.UnauthorizedClient, "the application cannot use this grant type")
	}
	return nil
}

// noForm is the part of grants without parameters to validate, in which the client must
// authenticate, nothing is read before and refusals are not recorded.
type noForm struct{}

func (noForm) form(*request) error                            { return nil }
func (noForm) queue(*sqldb.Batch, *request)                   {}
func (noForm) optionalAuthentication() bool                   { return false }
func (noForm) refused(context.Context, *request, error) error { return nil }

// issuance describes the tokens to which a request leads.
type issuance struct {
	// entitlement asks for the scopes of the tokens.
	entitlement token.EntitlementRequest
	// claims returns the claims of the access token with the scopes that it carries, which
	// can only be fewer than those of the entitlement. The runner adds the key.
	claims func(token.Entitlement) (token.Entitlement, token.Claims, error)
	// details are the authorization details of the access token; nil: none.
	details []detail.Detail
	// countedFor is the user or client against whose limit the request counts.
	countedFor string
	// ofUser describes the refresh token and the ID token; nil: there are none.
	ofUser *userTokens
	// consumes is the one-time use of what the request presents; zero: nothing is used.
	consumes access.Use
	// event records the new token; nil: it is not recorded.
	event func(context.Context, token.Entitlement, token.Claims) eventlog.Event
	// issuedType is the issued_token_type of the response (RFC 8693 §2.2.1); empty: none.
	issuedType string
}

// userTokens describes the tokens that a user's grant has beside the access token.
type userTokens struct {
	grant       access.Grant
	user        access.User
	first       bool                // the user has just signed in
	predecessor access.RefreshToken // that the new one replaces; zero: none
	successor   string              // that replaced it before, or itself if it stays; empty: a new one is issued
}

// maxDecisions bounds how often a request is decided about: the second time, another request
// has consumed what this one presents.
const maxDecisions = 3

// run executes the phases.
func (s *Service) run(ctx context.Context, g grant, r *request) (token.Response, error) {
	r.phase = phaseForm
	if err := g.form(r); err != nil {
		return token.Response{}, err
	}
	r.phase = phaseClient
	authenticates := !g.optionalAuthentication() || len(r.ClientAuthMethods) > 0
	if !authenticates {
		var err error
		if authenticates, err = s.authn.ByCertificate(ctx, r.tenant, r.Credentials); err != nil {
			return token.Response{}, err
		}
	}
	if authenticates {
		r.With = func(b *sqldb.Batch) { g.queue(b, r) }
		app, err := s.authn.Authenticate(ctx, r.tenant, &r.Credentials)
		if err != nil {
			return token.Response{}, err
		}
		r.app, r.authenticated = app, true
	}
	err := g.present(ctx, r)
	if err != nil {
		return token.Response{}, err
	}
	r.phase = phaseKey
	if r.key, err = s.authn.BindingKey(r.tenant, r.app, r.Credentials); err != nil {
		return token.Response{}, err
	}
	for n := 1; ; n++ {
		r.phase = phaseDecision
		described, err := g.decide(ctx, r)
		if err != nil {
			return token.Response{}, err
		}
		issued, err := s.issue(ctx, r, described)
		if err == nil || !errors.Is(err, access.ErrUsed) || n == maxDecisions {
			return issued, err
		}
	}
}

// issue issues the tokens of a description: entitlement, limits, signatures and commit. It
// fails with [access.ErrUsed] if another request has consumed what this one presents.
func (s *Service) issue(ctx context.Context, r *request, of *issuance) (issued token.Response, err error) {
	carries, err := s.tokens.Entitled(ctx, r.tenant, of.entitlement)
	if err != nil {
		return issued, err
	}
	carries, claims, err := of.claims(carries)
	if err != nil {
		return issued, err
	}
	places := []client.ClaimPlace{client.InAccessToken}
	if of.ofUser != nil && carries.Has("openid") {
		places = append(places, client.InIDToken)
	}
	signIn := ""
	if of.ofUser != nil {
		signIn = of.ofUser.grant.Authentication.Claims
	}
	configured, err := s.tokens.Configured(ctx, r.tenant, r.app, claims.Subject, of.entitlement.User, signIn, carries.Has, places...)
	if err != nil {
		return issued, err
	}
	claims.Configured = configured.In[client.InAccessToken]
	r.phase = phaseLimits
	if err := s.authn.Admit(ctx, r.Credentials, of.countedFor); err != nil {
		return issued, err
	}
	claims.Details, issued.Details = of.details, of.details
	claims.Confirmation = token.ConfirmationOf(r.key)
	claims.DPoPNonce = claims.Confirmation.Thumbprint != "" && r.app.RequireDPoPNonce
	issued.AccessToken, err = s.minter.AccessToken(ctx, r.tenant, r.app, carries, &claims)
	if err != nil {
		return token.Response{}, err
	}
	issued.TokenType, issued.Scope, issued.IssuedTokenType = claims.Confirmation.TokenType(), carries.String(), of.issuedType
	issued.ExpiresIn = token.Seconds(claims.Expires).Sub(token.Seconds(claims.IssuedAt))
	if u := of.ofUser; u != nil && carries.Has("openid") {
		issued.IDToken, err = s.minter.IDToken(ctx, r.tenant, r.app, u.grant, u.user, scope.SetOf(issued.Scope), configured, issued.AccessToken, u.first, r.key)
		if err != nil {
			return token.Response{}, err
		}
	}
	if err := s.commit(ctx, r, of, carries, claims, &issued); err != nil {
		return token.Response{}, fmt.Errorf("issue tokens: %w", err)
	}
	return issued, nil
}

// commit consumes what the request presents, in the transaction that stores the refresh token,
// and records the event and the use of the application.
func (s *Service) commit(ctx context.Context, r *request, of *issuance, carries token.Entitlement, claims token.Claims, issued *token.Response) error {
	if u := of.ofUser; u != nil && u.successor != "" {
		issued.RefreshToken = u.successor
	} else if u != nil {
		refresh, add := "", func(*sqldb.Batch) {}
		if r.app.Uses(protocol.GrantRefreshToken) {
			var err error
			if refresh, add, err = s.access.NewRefreshToken(r.tenant, u.grant, r.app.ClientID, r.key, u.predecessor, r.app.RefreshTokenTTL); err != nil {
				return err
			}
		}
		if err := s.access.Redeem(ctx, of.consumes, add); err != nil {
			return err
		}
		issued.RefreshToken = refresh
	}
	if of.event != nil {
		if err := s.record.Record(ctx, r.tenant.ID, of.event(client.AsActor(ctx, r.app), carries, claims)); err != nil {
			return err
		}
	}
	return s.clients.NoteUse(ctx, r.app)
}
