package authorization

import (
	"context"
	"errors"
	"net/url"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"stonetown/oauth/client"
	"stonetown/oauth/protocol"
	"stonetown/oauth/scope"
	"stonetown/oauth/token"
)

// Request is a request to the authorization endpoint whose client and
// redirect URI are known to belong together (RFC 6749 §4.1.1, OIDC Core §3.1.2.1).
type Request struct {
	ClientID    string   `json:"client_id"`
	RedirectURI string   `json:"redirect_uri"`
	Scopes      []string `json:"scopes"` // that the application may have
	State       string   `json:"state"`
	Challenge   string   `json:"challenge"`          // RFC 7636, S256
	Thumbprint  string   `json:"dpop_jkt,omitempty"` // of the key that the code will be exchanged with; empty: any or none
	Nonce       string   `json:"nonce,omitempty"`
	Prompt      []string `json:"prompt,omitempty"`
	MaxAge      int      `json:"max_age"`           // seconds; -1: as old as it may be
	AAL2        bool     `json:"aal2,omitempty"`    // a recent second factor is preferred
	StepUp      bool     `json:"step_up,omitempty"` // and demanded (see [AuthorizationRequest.assurance])
	LoginHint   string   `json:"login_hint,omitempty"`
	UserID      string   `json:"user,omitempty"` // who is expected, by an ID token that they got before
	Audience    string   `json:"audience"`
	// ResponseMode is how the answer reaches the application: empty for the query of its
	// redirect URI, or [FormPost].
	ResponseMode string `json:"response_mode,omitempty"`
}

// FormPost sends the answer in a form that the browser posts (OAuth 2.0 Form Post Response
// Mode).
const FormPost = "form_post"

var ResponseModes = []string{"query", FormPost}

// Refusal tells the application, the way it wants to be answered.
func (r Request) Refusal(code, description string) *RedirectError {
	return &RedirectError{r.RedirectURI, r.ResponseMode, r.State, code, description}
}

// Prompts reports whether a value of prompt was given.
func (r Request) Prompts(value string) bool { return slices.Contains(r.Prompt, value) }

// RedirectError is a refusal of which the application is told at its redirect URI (RFC
// 6749 §4.1.2.1).
type RedirectError struct {
	RedirectURI, ResponseMode, State string
	Code, Description                string
}

func (e *RedirectError) Error() string { return e.Code + ": " + e.Description }

// PageError is a refusal of which only the person in front of the browser is told: where
// to send them is not proven.
type PageError struct{ Description string }

func (e *PageError) Error() string { return e.Description }

const maxState = 2048 // bytes

// sha256Pattern is a SHA-256 in base64url.
var sha256Pattern = regexp.MustCompile(`^[A-Za-z0-9_-]{43}$`)

// singleParameters are the parameters that must not be repeated.
var singleParameters = []string{
	"response_type", "client_id", "redirect_uri", "scope", "state", "code_challenge", "code_challenge_method", "nonce", "prompt", "max_age",
	"acr_values", "login_hint", "id_token_hint", "response_mode", "audience", "request", "dpop_jkt",
}

// Authorize judges an authorization request. Refusals are [*PageError] until client and
// redirect URI are proven, and then [*RedirectError]; any other error is the server's.
func (s *Service) Authorize(ctx context.Context, tenant protocol.Tenant, params url.Values) (r Request, app client.Application, err error) {
	if params.Has("request_uri") { // what else the browser brings is not looked at (RFC 9126 §4)
		return s.pushed(ctx, tenant, params)
	}
	r, app, err = s.validate(ctx, tenant, params)
	if err == nil && app.RequirePAR {
		err = r.Refusal(string(protocol.InvalidRequest), "the application must push its authorization requests (RFC 9126)")
	}
	return r, app, err
}

func (s *Service) validate(ctx context.Context, tenant protocol.Tenant, params url.Values) (r Request, app client.Application, err error) {
	if app, err = s.client(ctx, tenant, params); err != nil {
		return r, app, err
	}
	r = Request{
		ClientID: app.ClientID, RedirectURI: params.Get("redirect_uri"), State: params.Get("state"), Challenge: params.Get("code_challenge"), Thumbprint: params.Get("dpop_jkt"),
		Nonce: params.Get("nonce"), Prompt: strings.Fields(params.Get("prompt")), MaxAge: -1, LoginHint: params.Get("login_hint"),
	}
	refuse := func(code, description string) (Request, client.Application, error) {
		return r, app, r.Refusal(code, description)
	}
	if mode := params.Get("response_mode"); mode == FormPost {
		r.ResponseMode = mode
	}
	if len(r.State) > maxState || !printable(r.State) {
		r.State = ""
		return refuse(string(protocol.InvalidRequest), "state must be at most 2,048 printable ASCII characters")
	}
	if len(params["state"]) > 1 {
		r.State = ""
	}
	for _, name := range singleParameters {
		if len(params[name]) > 1 {
			return refuse(string(protocol.InvalidRequest), name+" is given more than once")
		}
	}
	for _, text := range []string{r.Nonce, r.LoginHint} {
		if len(text) > maxState || strings.IndexByte(text, 0) >= 0 || !utf8.ValidString(text) {
			return refuse(string(protocol.InvalidRequest), "a parameter is not valid text of at most 2,048 bytes")
		}
	}
	requireState := false
	if r.State == "" { // which is rare, and only then it matters
		settings, err := client.SelectSettings(ctx, s.db, tenant.ID)
		if err != nil {
			return r, app, err
		}
		requireState = settings.RequireState
	}
	scopes, scopeErr := scope.Parse(strings.ReplaceAll(params.Get("scope"), "+", " "))
	asked := slices.Concat(params["audience"], params["resource"])
	switch {
	case app.State != client.Enabled:
		return refuse(string(protocol.UnauthorizedClient), "the application is disabled")
	case !app.Type.HasUsers():
		return refuse(string(protocol.UnauthorizedClient), "applications of this type cannot get tokens for users")
	case params.Has("request"):
		return refuse("request_not_supported", "request objects are not supported")
	case params.Get("response_type") == "":
		return refuse(string(protocol.InvalidRequest), "response_type is missing")
	case params.Get("response_type") != "code":
		return refuse(protocol.UnsupportedResponseType, "supported: code")
	case params.Get("response_mode") != "" && !slices.Contains(ResponseModes, params.Get("response_mode")):
		return refuse(string(protocol.InvalidRequest), "response_mode must be query or form_post")
	case requireState:
		return refuse(string(protocol.InvalidRequest), "state is missing")
	case !app.RequirePKCE && !params.Has("code_challenge") && !params.Has("code_challenge_method"):
		if r.Nonce == "" {
			return refuse(string(protocol.InvalidRequest), "without PKCE a nonce is required")
		}
	case params.Get("code_challenge_method") != "S256" || !sha256Pattern.MatchString(r.Challenge):
		return refuse(string(protocol.InvalidRequest), "PKCE is required: code_challenge_method S256 and a code_challenge of 43 characters (RFC 7636)")
	}
	switch {
	case params.Has("dpop_jkt") && !sha256Pattern.MatchString(r.Thumbprint):
		return refuse(string(protocol.InvalidRequest), "dpop_jkt must be a thumbprint of 43 characters (RFC 9449)")
	case scopeErr != nil:
		return refuse(string(protocol.InvalidScope), "scope is malformed")
	case len(r.Prompt) > 1 && r.Prompts("none"):
		return refuse(string(protocol.InvalidRequest), "prompt none cannot be combined with other values")
	}
	if hint := params.Get("id_token_hint"); hint != "" {
		c, err := s.tokens.ReadIDToken(ctx, tenant, hint)
		var bad *token.Error
		switch {
		case errors.As(err, &bad) && bad.Reason != token.Expired, (err == nil || bad != nil) && c.Audience != app.ClientID: // an expired one is good enough for a hint
			return refuse(string(protocol.InvalidRequest), "id_token_hint was not issued to this application")
		case err != nil && bad == nil:
			return r, app, err
		}
		r.UserID = c.Subject
	}
	for _, prompt := range r.Prompt {
		if !slices.Contains(Prompts, prompt) {
			return refuse(string(protocol.InvalidRequest), "prompt has an unknown value")
		}
	}
	if text := params.Get("max_age"); text != "" {
		seconds, err := strconv.ParseUint(text, 10, 31)
		if err != nil && !errors.Is(err, strconv.ErrRange) { // a larger one is as good as the largest, 68 years
			return refuse(string(protocol.InvalidRequest), "max_age is not a number of seconds")
		}
		r.MaxAge = int(seconds)
	}
	r.assurance(strings.Fields(params.Get("acr_values")))
	for _, scope := range scopes { // what it may not have is dropped, and the answer says so
		if slices.Contains(app.AllowedScopes, scope) {
			r.Scopes = append(r.Scopes, scope)
		}
	}
	if len(scopes) == 0 {
		r.Scopes = app.AllowedScopes
	}
	if len(r.Scopes) == 0 {
		return refuse(string(protocol.InvalidScope), "the application is not allowed any of these scopes")
	}
	if _, err := client.Audience(tenant, app, asked, nil); err != nil {
		return refuse(string(protocol.InvalidTarget), "the application is not allowed tokens for this audience")
	}
	if len(asked) == 1 {
		r.Audience = asked[0]
	}
	return r, app, nil
}

// assurance reads acr_values, the authentication contexts that the application would like, in
// order of preference. They are voluntary (OIDC Core §3.1.2.1): the first one that is known is
// met where the user can meet it, and otherwise the acr claim tells what was reached. With
// max_age, aal2 alone is the demand of a resource server for step-up (RFC 9470 §4), which the
// user has to meet, by adding a second factor if there is none.
func (r *Request) assurance(values []string) {
	known := slices.DeleteFunc(values, func(value string) bool { return value != protocol.AAL1 && value != protocol.AAL2 })
	r.AAL2 = len(known) > 0 && known[0] == protocol.AAL2
	r.StepUp = r.AAL2 && r.MaxAge >= 0 && !slices.Contains(known, protocol.AAL1)
}

// client finds the application that a request is of, if client and redirect URI belong
// together. It fails with [*PageError].
func (s *Service) client(ctx context.Context, tenant protocol.Tenant, params url.Values) (client.Application, error) {
	for _, name := range []string{"client_id", "redirect_uri"} {
		if len(params[name]) != 1 || params.Get(name) == "" {
			return client.Application{}, &PageError{name + " must be given once"}
		}
	}
	app, err := client.Select(ctx, s.db, tenant.ID, params.Get("client_id"))
	switch {
	case client.IsNotFound(err):
		return app, &PageError{"the application is unknown"}
	case err != nil:
		return app, err
	case !slices.Contains(app.RedirectURIs, params.Get("redirect_uri")):
		return app, &PageError{"the application has not registered this redirect_uri"}
	}
	return app, nil
}

// Prompts are the values of prompt that are understood.
var Prompts = []string{"none", "login", "consent", "select_account", "create"}

// printable reports whether a text is printable ASCII.
func printable(text string) bool {
	for i := range len(text) {
		if text[i] < ' ' || text[i] > '~' {
			return false
		}
	}
	return true
}
