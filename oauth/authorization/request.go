package authorization

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"slices"
	"strings"
	"time"

	"stonetown/internal/sqldb"
	"stonetown/oauth/access"
	"stonetown/oauth/audience"
	"stonetown/oauth/client"
	"stonetown/oauth/detail"
	"stonetown/oauth/protocol"
	"stonetown/oauth/requestobject"
	"stonetown/oauth/saml/identityprovider"
	"stonetown/oauth/token"
	"stonetown/tuplestore"
)

// Request is an authorization request whose client and redirect URI belong together (RFC 6749
// §4.1.1, OIDC Core §3.1.2.1).
type Request struct {
	ClientID    string   `json:"client_id"`
	RedirectURI string   `json:"redirect_uri"`
	Scopes      []string `json:"scopes"` // those of the requested scopes that the application may have
	State       string   `json:"state"`
	Challenge   string   `json:"challenge"`          // RFC 7636, S256
	Thumbprint  string   `json:"dpop_jkt,omitempty"` // of the key with which the code is redeemed; empty: any or none
	Nonce       string   `json:"nonce,omitempty"`
	Prompt      []string `json:"prompt,omitempty"`
	MaxAge      int      `json:"max_age"`           // seconds since the authentication; -1: any number
	AAL2        bool     `json:"aal2,omitempty"`    // a recent second factor is preferred
	StepUp      bool     `json:"step_up,omitempty"` // a recent second factor is required, see assurance
	LoginHint   string   `json:"login_hint,omitempty"`
	UILocales   string   `json:"ui_locales,omitempty"` // the languages of the pages, in the order of preference
	Connection  string   `json:"connection,omitempty"` // slug of the federation connection at which a user signs in
	UserID      string   `json:"user,omitempty"`       // of the ID token that was given as a hint
	Users       []string `json:"users,omitempty"`      // of which one has to sign in; none: any user may
	Levels      []string `json:"levels,omitempty"`     // of authentication, of which one is essential; none: any suffices
	Audience    string   `json:"audience"`             // the resources, separated by spaces; empty: those of the application
	// Claims are the claims about the user that the application asks for by their names, and that the
	// scopes of the request do not permit (OIDC Core §5.5).
	Claims access.RequestedClaims `json:"claims,omitzero"`
	// Details are the authorization details (RFC 9396); nil: none.
	Details []detail.Detail `json:"authorization_details,omitempty"`
	// ResponseMode is how the response reaches the application: empty for the query of its
	// redirect URI, or one of [ResponseModes].
	ResponseMode string `json:"response_mode,omitempty"`
	// SAML is the request of a SAML service provider, to which package saml responds instead of
	// [Service.IssueCode]; nil: the application is an OAuth client.
	SAML *identityprovider.Request `json:"saml,omitempty"`

	known *knownClient // the application, if it was read while this request was handled; else nil
}

// knownClient is the application of a request and the settings of its tenant, as they were read.
type knownClient struct {
	app      client.Application
	settings client.Settings
}

// known reads the application of a request, unless it was read before, and the settings of
// the tenant. It fails with [*PageError].
func (s *Service) known(ctx context.Context, tenant protocol.Tenant, r *Request) (knownClient, error) {
	if r.known != nil {
		return *r.known, nil
	}
	var b sqldb.Batch
	app, settings := client.QueueSelect(&b, tenant.ID, r.ClientID), client.QueueSettings(&b, tenant.ID)
	if err := s.db.Send(ctx, &b); err != nil {
		return knownClient{}, fmt.Errorf("read application: %w", err)
	}
	var c knownClient
	var err error
	if c.app, err = app(); client.IsNotFound(err) {
		return c, &PageError{"the application is unknown"}
	}
	if err == nil {
		c.settings, err = settings()
	}
	if err == nil {
		r.known = &c
	}
	return c, err
}

// Refusal returns a refusal in the request's response mode.
func (r Request) Refusal(code, description string) *RedirectError {
	return &RedirectError{r.RedirectURI, r.ResponseMode, r.State, code, description, r.ClientID, r.SAML}
}

// Prompts reports whether prompt has a value.
func (r Request) Prompts(value string) bool { return slices.Contains(r.Prompt, value) }

// IsFor reports whether a user may answer the request: any, unless it names users by id_token_hint or
// by the claim sub (OIDC Core §3.1.2.2).
func (r Request) IsFor(userID string) bool {
	return (r.UserID == "" || r.UserID == userID) && (len(r.Users) == 0 || slices.Contains(r.Users, userID))
}

// RequiresAAL2 reports whether a second factor is essential, however long ago it was proved.
func (r Request) RequiresAAL2() bool {
	return len(r.Levels) > 0 && !slices.Contains(r.Levels, protocol.AAL1)
}

// stated returns an authentication as the tokens of the request state it. An application that accepts
// aal1 alone gets tokens of aal1 even if the user has proved a second factor (OIDC Core §5.5.1.1).
func (r Request) stated(by access.Authentication) access.Authentication {
	if len(r.Levels) > 0 && !slices.Contains(r.Levels, protocol.AAL2) {
		by.SecondFactor = time.Time{}
	}
	return by
}

// RedirectError is a refusal that is sent to the application, at its redirect URI (RFC 6749
// §4.1.2.1).
type RedirectError struct {
	RedirectURI, ResponseMode, State string
	Code, Description                string
	ClientID                         string
	SAML                             *identityprovider.Request // see [Request]
}

func (e *RedirectError) Error() string { return e.Code + ": " + e.Description }

// PageError is a refusal that is shown to the user only, because the redirect URI is not known
// to be the application's.
type PageError struct{ Description string }

func (e *PageError) Error() string { return e.Description }

// Authorize validates an authorization request. Refusals are [*PageError] until the client is
// known to have registered the redirect URI, and then [*RedirectError]; any other error is the
// server's.
func (s *Service) Authorize(ctx context.Context, tenant protocol.Tenant, params url.Values) (r Request, app client.Application, err error) {
	if strings.HasPrefix(params.Get("request_uri"), requestURIPrefix) { // all other parameters are ignored (RFC 9126 §4)
		return s.pushed(ctx, tenant, params)
	}
	r, app, err = s.validate(ctx, tenant, params)
	if err == nil && app.RequirePAR {
		err = r.Refusal(string(protocol.InvalidRequest), "the application must push its authorization requests (RFC 9126)")
	}
	return r, app, err
}

// validate reads what the rules depend on and applies them.
func (s *Service) validate(ctx context.Context, tenant protocol.Tenant, params url.Values) (r Request, app client.Application, err error) {
	c, err := s.named(ctx, tenant, params)
	if err != nil {
		return r, c.app, err
	}
	given := params
	if params, err = s.opened(ctx, tenant, c.app, given); err == nil {
		err = redirectsTo(c.app, params)
	}
	if err != nil {
		return r, c.app, err
	}
	f := facts{tenant: tenant, app: c.app, params: params, signed: given.Get(requestobject.Parameter) != "" || given.Get("request_uri") != "", requireState: c.settings.RequireState}
	if f.hint, err = s.hint(ctx, tenant, c.app.ClientID, params.Get("id_token_hint")); err != nil {
		return r, c.app, err
	}
	r, err = validate(f)
	r.known = &c
	if err == nil {
		err = s.permitted(ctx, tenant, r, c.app, audience.Application(c.app), string(audience.Refused.Code), audience.Refused.Description)
	}
	if err == nil {
		err = s.readDetails(ctx, tenant, &r, params)
	}
	return r, c.app, err
}

// Resources returns the resources of the request (RFC 8707); none: those of the application.
func (r Request) Resources() []string { return strings.Fields(r.Audience) }

// permitted refuses a request for a resource of which a subject is no caller. It fails with
// [*RedirectError].
func (s *Service) permitted(ctx context.Context, tenant protocol.Tenant, r Request, app client.Application, by tuplestore.Subject, code, description string) error {
	_, err := s.audiences.Check(ctx, tenant, app, r.Resources(), by)
	if errors.Is(err, audience.Refused) {
		err = r.Refusal(code, description)
	}
	return err
}

// readDetails reads the authorization details of a request. Whether the user may do what they
// state is decided when the user is known ([Service.Consented]).
func (s *Service) readDetails(ctx context.Context, tenant protocol.Tenant, r *Request, params url.Values) (err error) {
	if r.Details, err = detail.Parse(params.Get(detail.Parameter)); err == nil && r.Details != nil {
		err = s.details.Defined(ctx, tenant.ID, r.Details)
	}
	var refused *protocol.Error
	if errors.As(err, &refused) {
		err = r.Refusal(string(refused.Code), refused.Description)
	}
	return err
}

// hint reads an ID token that is given as a hint. An expired one is accepted.
func (s *Service) hint(ctx context.Context, tenant protocol.Tenant, clientID, raw string) (hint, error) {
	if raw == "" {
		return hint{}, nil
	}
	c, err := s.tokens.ReadIDToken(ctx, tenant, raw)
	var refusal *token.Error
	if err != nil && !errors.As(err, &refusal) {
		return hint{}, err
	}
	if err != nil && refusal.Reason != token.Expired || c.Audience != clientID {
		return hint{given: true}, nil
	}
	return hint{given: true, own: true, userID: c.Subject}, nil
}

// named finds the application of a request. It fails with [*PageError].
func (s *Service) named(ctx context.Context, tenant protocol.Tenant, params url.Values) (knownClient, error) {
	if err := givenOnce(params, "client_id"); err != nil {
		return knownClient{}, err
	}
	err := s.registry.AdmitDocument(ctx, tenant, params.Get("client_id"))
	if refused := new(protocol.Error); errors.As(err, &refused) {
		err = &PageError{refused.Description}
	} else if refused, ok := errors.AsType[*client.DocumentError](err); ok {
		err = &PageError{refused.Error()}
	}
	if err != nil {
		return knownClient{}, err
	}
	return s.known(ctx, tenant, &Request{ClientID: params.Get("client_id")})
}

// redirectsTo fails with [*PageError] unless the application has registered the redirect URI.
func redirectsTo(app client.Application, params url.Values) error {
	if err := givenOnce(params, "redirect_uri"); err != nil {
		return err
	}
	if !slices.Contains(app.RedirectURIs, params.Get("redirect_uri")) {
		return &PageError{"the application has not registered this redirect_uri"}
	}
	return nil
}

func givenOnce(params url.Values, name string) error {
	if len(params[name]) != 1 || params.Get(name) == "" {
		return &PageError{name + " must be given once"}
	}
	return nil
}
