package authorization

import (
	"errors"
	"net/url"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"stonetown/oauth/claimrequest"
	"stonetown/oauth/client"
	"stonetown/oauth/detail"
	"stonetown/oauth/protocol"
	"stonetown/oauth/scope"
)

// facts are what the validation of an authorization request depends on.
type facts struct {
	tenant       protocol.Tenant
	app          client.Application
	params       url.Values
	signed       bool // the parameters are those of a request object
	requireState bool // the tenant requires the parameter state
	hint         hint // the ID token that is given as a hint
}

// hint is an ID token that is given as a hint (OIDC Core §3.1.2.1).
type hint struct {
	given  bool
	own    bool // it was issued to the application by this tenant; it may have expired
	userID string
}

// requested are the parameters of a request as they were parsed.
type requested struct {
	scopes    []string
	scopesErr error
	maxAgeErr error

	resourcesErr error

	claims    claimrequest.Request
	claimsErr error
}

const maxState = 2048 // bytes

const maxLocales = 200 // bytes

// locales returns the value of ui_locales, or nothing if it cannot be one: no value of it is an error
// (OIDC Core §3.1.2.1).
func locales(value string) string {
	if len(value) > maxLocales || !validText(value) {
		return ""
	}
	return value
}

// sha256Pattern matches a SHA-256 in base64url.
var sha256Pattern = regexp.MustCompile(`^[A-Za-z0-9_-]{43}$`)

// slugPattern matches the slugs of federation connections. Whether there is one is not validated: the
// user is told, and can sign in another way.
var slugPattern = regexp.MustCompile(`^[a-z0-9-]{1,63}$`)

// singleParameters are the parameters that must not be repeated.
var singleParameters = []string{
	"response_type", "client_id", "redirect_uri", "scope", "state", "code_challenge", "code_challenge_method", "nonce", "prompt", "max_age",
	"acr_values", "login_hint", "ui_locales", "id_token_hint", "response_mode", "audience", "request", "request_uri", "dpop_jkt", "connection", detail.Parameter, claimrequest.Parameter,
}

// ResponseModes are the supported values of response_mode.
var ResponseModes = []string{query, FormPost, "jwt", queryJWT, formPostJWT}

// Prompts are the supported values of prompt.
var Prompts = []string{"none", "login", "consent", "select_account", "create"}

// parse reads the parameters of a request whose client and redirect URI belong together. What
// is not valid is left to the rules.
func parse(f facts) (r Request, p requested) {
	params := f.params
	r = Request{
		ClientID: f.app.ClientID, RedirectURI: params.Get("redirect_uri"), Challenge: params.Get("code_challenge"), Thumbprint: params.Get("dpop_jkt"),
		Nonce: params.Get("nonce"), Prompt: strings.Fields(params.Get("prompt")), MaxAge: -1, LoginHint: params.Get("login_hint"), UILocales: locales(params.Get("ui_locales")), Connection: params.Get("connection"), UserID: f.hint.userID,
	}
	switch mode := params.Get("response_mode"); {
	case mode == "jwt": // the default mode of the response type code (JARM §2.3.4)
		r.ResponseMode = queryJWT
	case mode != query && slices.Contains(ResponseModes, mode):
		r.ResponseMode = mode
	}
	if validState(params.Get("state")) && len(params["state"]) == 1 { // otherwise a refusal has none
		r.State = params.Get("state")
	}
	if text := params.Get("max_age"); text != "" {
		seconds, err := strconv.ParseUint(text, 10, 31)
		if errors.Is(err, strconv.ErrRange) { // a larger one counts as the largest, 68 years
			err = nil
		}
		r.MaxAge, p.maxAgeErr = int(seconds), err
	}
	p.claims, p.claimsErr = claimrequest.Parse(params.Get(claimrequest.Parameter))
	r.Users = p.claims.Users
	r.assurance(strings.Fields(params.Get("acr_values")), p.claims)
	if registered := f.app.Registration; r.MaxAge < 0 && registered != nil && registered.DefaultMaxAge != nil {
		r.MaxAge = *registered.DefaultMaxAge
	}
	p.scopes, p.scopesErr = scope.Parse(strings.ReplaceAll(params.Get("scope"), "+", " "))
	r.Scopes = scope.Intersect(p.scopes, f.app.AllowedScopes) // the response states which ones
	if len(p.scopes) == 0 {
		r.Scopes = f.app.AllowedScopes
	}
	if slices.Contains(r.Scopes, "openid") {
		r.Claims = p.claims.Claims.For(f.app.AllowedScopes).Beyond(r.Scopes)
	}
	resources, err := client.Resources(slices.Concat(params["audience"], params["resource"]))
	r.Audience, p.resourcesErr = strings.Join(resources, " "), err
	return r, p
}

// assurance reads acr_values, the authentication contexts that the application prefers, in order
// of preference. They are voluntary (OIDC Core §3.1.2.1): the first known one is met if the user
// can meet it, and otherwise the acr claim states the level that was reached. aal2 alone with
// max_age is the requirement of a resource server (RFC 9470 §4), which the user has to meet, by
// adding a second factor if there is none.
//
// The values of a requested claim acr are preferences, too, where there are no acr_values. If the
// claim is essential, one of them has to be met (§5.5.1.1).
func (r *Request) assurance(values []string, claims claimrequest.Request) {
	known := knownLevels(values)
	r.AAL2 = len(known) > 0 && known[0] == protocol.AAL2
	r.StepUp = r.AAL2 && r.MaxAge >= 0 && !slices.Contains(known, protocol.AAL1)
	requested := knownLevels(claims.ACR)
	if len(values) == 0 {
		r.AAL2 = len(requested) > 0 && requested[0] == protocol.AAL2
	}
	if claims.Essential && len(requested) > 0 {
		r.Levels = requested
	}
}

// knownLevels returns those of some authentication contexts that the product has.
func knownLevels(values []string) []string {
	return slices.DeleteFunc(slices.Clone(values), func(value string) bool { return value != protocol.AAL1 && value != protocol.AAL2 })
}

// requestRule is a condition of authorization requests.
type requestRule struct {
	code        protocol.Code
	description string
	violated    func(facts, Request, requested) bool
}

// requestRules are the conditions of authorization requests, in the order in which refusals are
// reported.
var requestRules = slices.Concat(
	[]requestRule{
		{protocol.InvalidRequest, "state must be at most 2,048 printable ASCII characters", func(f facts, _ Request, _ requested) bool {
			return !validState(f.params.Get("state"))
		}},
	},
	notRepeated(singleParameters),
	[]requestRule{
		{protocol.InvalidRequest, "a parameter is not valid text of at most 2,048 bytes", func(_ facts, r Request, _ requested) bool {
			return !validText(r.Nonce) || !validText(r.LoginHint)
		}},
		{protocol.UnauthorizedClient, "the application is disabled", func(f facts, _ Request, _ requested) bool {
			return f.app.State != client.Enabled
		}},
		{protocol.UnauthorizedClient, "applications of this type cannot get tokens for users", func(f facts, _ Request, _ requested) bool {
			return !f.app.Type.HasUsers()
		}},
		{protocol.UnauthorizedClient, "the application cannot use authorization codes", func(f facts, _ Request, _ requested) bool {
			return !f.app.Uses(protocol.GrantAuthorizationCode)
		}},
		{protocol.InvalidRequest, "the application must sign its authorization requests (RFC 9101)", func(f facts, _ Request, _ requested) bool {
			return f.app.RequireRequestObject && !f.signed
		}},
		{protocol.RequestURINotSupported, "request_uri must be that of a pushed request (RFC 9126)", func(f facts, _ Request, _ requested) bool {
			return f.params.Get("request_uri") != ""
		}},
		{protocol.InvalidRequest, "response_type is missing", func(f facts, _ Request, _ requested) bool {
			return f.params.Get("response_type") == ""
		}},
		{protocol.UnsupportedResponseType, "supported: code", func(f facts, _ Request, _ requested) bool {
			return f.params.Get("response_type") != protocol.ResponseTypeCode
		}},
		{protocol.InvalidRequest, "response_mode must be query, form_post, jwt, query.jwt or form_post.jwt", func(f facts, _ Request, _ requested) bool {
			mode := f.params.Get("response_mode")
			return mode != "" && !slices.Contains(ResponseModes, mode)
		}},
		{protocol.InvalidRequest, "state is missing", func(f facts, r Request, _ requested) bool {
			return f.requireState && r.State == ""
		}},
		{protocol.InvalidRequest, "without PKCE and nonce, state is required", func(f facts, r Request, _ requested) bool {
			return withoutPKCE(f) && r.Nonce == "" && r.State == "" // RFC 9700 §2.1
		}},
		{protocol.InvalidRequest, "without PKCE, a client that registered itself must send a nonce", func(f facts, r Request, _ requested) bool {
			return withoutPKCE(f) && f.app.Registration != nil && r.Nonce == "" // no administrator knows what it does
		}},
		{protocol.InvalidRequest, "PKCE is required: code_challenge_method S256 and a code_challenge of 43 characters (RFC 7636)", func(f facts, r Request, _ requested) bool {
			return !withoutPKCE(f) && (f.params.Get("code_challenge_method") != "S256" || !sha256Pattern.MatchString(r.Challenge))
		}},
		{protocol.InvalidRequest, "dpop_jkt must be a thumbprint of 43 characters (RFC 9449)", func(f facts, r Request, _ requested) bool {
			return f.params.Has("dpop_jkt") && !sha256Pattern.MatchString(r.Thumbprint)
		}},
		{protocol.InvalidRequest, "connection is not a slug", func(_ facts, r Request, _ requested) bool {
			return r.Connection != "" && !slugPattern.MatchString(r.Connection)
		}},
		{protocol.InvalidScope, "scope is malformed", func(_ facts, _ Request, p requested) bool {
			return p.scopesErr != nil
		}},
		{protocol.InvalidRequest, "prompt none cannot be combined with other values", func(_ facts, r Request, _ requested) bool {
			return len(r.Prompt) > 1 && r.Prompts("none")
		}},
		{protocol.InvalidRequest, "id_token_hint was not issued to this application", func(f facts, _ Request, _ requested) bool {
			return f.hint.given && !f.hint.own
		}},
		{protocol.InvalidRequest, "prompt has an unknown value", func(_ facts, r Request, _ requested) bool {
			return slices.ContainsFunc(r.Prompt, func(prompt string) bool { return !slices.Contains(Prompts, prompt) })
		}},
		{protocol.InvalidRequest, "max_age is not a number of seconds", func(_ facts, _ Request, p requested) bool {
			return p.maxAgeErr != nil
		}},
		{protocol.InvalidScope, "the application is not allowed any of these scopes", func(_ facts, r Request, _ requested) bool {
			return len(r.Scopes) == 0
		}},
		{protocol.InvalidRequest, claimrequest.Malformed, func(_ facts, _ Request, p requested) bool {
			return p.claimsErr != nil
		}},
		{protocol.InvalidRequest, "the values of sub in the two members of claims exclude each other", func(_ facts, _ Request, p requested) bool {
			return p.claims.Users != nil && len(p.claims.Users) == 0
		}},
		{protocol.Code(protocol.UnmetRequirements), "none of the values of the essential claim acr is supported", func(_ facts, r Request, p requested) bool {
			return p.claims.Essential && len(p.claims.ACR) > 0 && len(r.Levels) == 0
		}},
		{protocol.InvalidTarget, "at most 10 resources, each an absolute URI without fragment", func(_ facts, _ Request, p requested) bool {
			return p.resourcesErr != nil
		}},
	},
)

// notRepeated returns a rule for each of some parameters: it is given at most once.
func notRepeated(names []string) (rules []requestRule) {
	for _, name := range names {
		rules = append(rules, requestRule{protocol.InvalidRequest, name + " is given more than once", func(f facts, _ Request, _ requested) bool {
			return len(f.params[name]) > 1
		}})
	}
	return rules
}

// validate parses a request and applies the rules. It fails with [*RedirectError].
func validate(f facts) (Request, error) {
	r, p := parse(f)
	for _, rule := range requestRules {
		if rule.violated(f, r, p) {
			return r, r.Refusal(string(rule.code), rule.description)
		}
	}
	return r, nil
}

// withoutPKCE reports whether a request has no challenge and needs none: its application is
// confidential, and an administrator has decided that it does without. Such an application has to
// detect injected codes by a nonce (RFC 9700 §2.1.1), which is its own choice, because OpenID
// Connect requires none of codes (Core §3.1.2.1).
func withoutPKCE(f facts) bool {
	return !f.app.RequirePKCE && !f.params.Has("code_challenge") && !f.params.Has("code_challenge_method")
}

func validState(state string) bool { return len(state) <= maxState && printable(state) }

func validText(text string) bool {
	return len(text) <= maxState && strings.IndexByte(text, 0) < 0 && utf8.ValidString(text)
}

// printable reports whether a text is printable ASCII.
func printable(text string) bool {
	for i := range len(text) {
		if text[i] < ' ' || text[i] > '~' {
			return false
		}
	}
	return true
}
