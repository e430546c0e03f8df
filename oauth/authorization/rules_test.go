package authorization

import (
	"errors"
	"net/url"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"stonetown/oauth/access"
	"stonetown/oauth/claimrequest"
	"stonetown/oauth/client"
	"stonetown/oauth/protocol"
)

// website returns the facts of a valid request.
func website() facts {
	app := *client.Server.Defaults()
	app.ClientID, app.State = "cl_web", client.Enabled
	app.RedirectURIs, app.AllowedScopes, app.Audience = []string{"https://app.example.com/cb"}, []string{"openid", "email", "reports"}, "https://reports.example.com"
	return facts{
		tenant: protocol.Tenant{ID: "tnt_a", BaseURL: "https://a.example.com"}, app: app, requireState: true,
		params: url.Values{
			"client_id": {"cl_web"}, "redirect_uri": {"https://app.example.com/cb"}, "response_type": {"code"}, "state": {"s"}, "scope": {"openid reports"},
			"code_challenge": {strings.Repeat("x", 43)}, "code_challenge_method": {"S256"},
		},
	}
}

// set returns a change of one parameter; without values it is removed.
func set(name string, values ...string) func(*facts) {
	return func(f *facts) {
		if f.params[name] = values; len(values) == 0 {
			delete(f.params, name)
		}
	}
}

// withMaxAge is a client that registered a default_max_age.
func withMaxAge(seconds int) func(*facts) {
	return func(f *facts) {
		f.app.Registration = &client.Registration{GrantTypes: []string{protocol.GrantAuthorizationCode}, DefaultMaxAge: &seconds}
	}
}

func TestRequestRules(t *testing.T) {
	if _, err := validate(website()); err != nil {
		t.Fatalf("the valid request: %v", err)
	}
	long := strings.Repeat("x", maxState+1)
	var applied []string
	for _, test := range []struct {
		name   string
		change []func(*facts)
		want   string // code and description
	}{
		{"long state", []func(*facts){set("state", long)}, "invalid_request: state must be at most 2,048 printable ASCII characters"},
		{"state with a line break", []func(*facts){set("state", "a\nb")}, "invalid_request: state must be at most 2,048 printable ASCII characters"},
		{"long nonce", []func(*facts){set("nonce", long)}, "invalid_request: a parameter is not valid text of at most 2,048 bytes"},
		{"NUL in login_hint", []func(*facts){set("login_hint", "a\x00")}, "invalid_request: a parameter is not valid text of at most 2,048 bytes"},
		{"nonce that is not UTF-8", []func(*facts){set("nonce", "\xff")}, "invalid_request: a parameter is not valid text of at most 2,048 bytes"},
		{"disabled", []func(*facts){func(f *facts) { f.app.State = client.Disabled }}, "unauthorized_client: the application is disabled"},
		{"machine", []func(*facts){func(f *facts) { f.app.Type = client.Machine }}, "unauthorized_client: applications of this type cannot get tokens for users"},
		{"without codes", []func(*facts){func(f *facts) {
			f.app.Registration = &client.Registration{GrantTypes: []string{protocol.GrantDeviceCode}}
		}}, "unauthorized_client: the application cannot use authorization codes"},
		{"no request object", []func(*facts){func(f *facts) { f.app.RequireRequestObject = true }}, "invalid_request: the application must sign its authorization requests (RFC 9101)"},
		{"request object elsewhere", []func(*facts){set("request_uri", "https://app.example.com/request")}, "request_uri_not_supported: request_uri must be that of a pushed request (RFC 9126)"},
		{"no response_type", []func(*facts){set("response_type")}, "invalid_request: response_type is missing"},
		{"implicit", []func(*facts){set("response_type", "token")}, "unsupported_response_type: supported: code"},
		{"fragment", []func(*facts){set("response_mode", "fragment")}, "invalid_request: response_mode must be query, form_post, jwt, query.jwt or form_post.jwt"},
		{"no state", []func(*facts){set("state")}, "invalid_request: state is missing"},
		{"neither PKCE nor nonce nor state", []func(*facts){set("code_challenge"), set("code_challenge_method"), set("state"), func(f *facts) { f.app.RequirePKCE, f.requireState = false, false }}, "invalid_request: without PKCE and nonce, state is required"},
		{"neither PKCE nor nonce of a registered client", []func(*facts){set("code_challenge"), set("code_challenge_method"), withMaxAge(60), func(f *facts) { f.app.RequirePKCE = false }}, "invalid_request: without PKCE, a client that registered itself must send a nonce"},
		{"no PKCE", []func(*facts){set("code_challenge"), set("code_challenge_method")}, "invalid_request: PKCE is required: code_challenge_method S256 and a code_challenge of 43 characters (RFC 7636)"},
		{"plain PKCE", []func(*facts){set("code_challenge_method", "plain")}, "invalid_request: PKCE is required: code_challenge_method S256 and a code_challenge of 43 characters (RFC 7636)"},
		{"PKCE by choice, malformed", []func(*facts){set("code_challenge", "x"), func(f *facts) { f.app.RequirePKCE = false }}, "invalid_request: PKCE is required: code_challenge_method S256 and a code_challenge of 43 characters (RFC 7636)"},
		{"short thumbprint", []func(*facts){set("dpop_jkt", "x")}, "invalid_request: dpop_jkt must be a thumbprint of 43 characters (RFC 9449)"},
		{"connection with a path", []func(*facts){set("connection", "../x")}, "invalid_request: connection is not a slug"},
		{"malformed scope", []func(*facts){set("scope", `a"b`)}, "invalid_scope: scope is malformed"},
		{"prompt none and login", []func(*facts){set("prompt", "none login")}, "invalid_request: prompt none cannot be combined with other values"},
		{"hint of another application", []func(*facts){func(f *facts) { f.hint = hint{given: true} }}, "invalid_request: id_token_hint was not issued to this application"},
		{"unknown prompt", []func(*facts){set("prompt", "login sing")}, "invalid_request: prompt has an unknown value"},
		{"negative max_age", []func(*facts){set("max_age", "-1")}, "invalid_request: max_age is not a number of seconds"},
		{"scopes of others", []func(*facts){set("scope", "admin")}, "invalid_scope: the application is not allowed any of these scopes"},
		{"claims that are a list", []func(*facts){set("claims", "[]")}, "invalid_request: " + claimrequest.Malformed},
		{"two subjects", []func(*facts){set("claims", `{"id_token":{"sub":{"value":"usr_1"}},"userinfo":{"sub":{"value":"usr_2"}}}`)}, "invalid_request: the values of sub in the two members of claims exclude each other"},
		{"unknown essential acr", []func(*facts){set("claims", `{"id_token":{"acr":{"essential":true,"value":"gold"}}}`)}, "unmet_authentication_requirements: none of the values of the essential claim acr is supported"},
		{"relative resource", []func(*facts){set("resource", "/reports")}, "invalid_target: at most 10 resources, each an absolute URI without fragment"},
		{"resource with a fragment", []func(*facts){set("audience", "https://reports.example.com/#a")}, "invalid_target: at most 10 resources, each an absolute URI without fragment"},
		{"eleven resources", []func(*facts){set("resource", strings.Split(strings.Repeat("https://reports.example.com ", 11), " ")[:11]...)}, "invalid_target: at most 10 resources, each an absolute URI without fragment"},
	} {
		f := website()
		for _, change := range test.change {
			change(&f)
		}
		_, err := validate(f)
		var refusal *RedirectError
		if !errors.As(err, &refusal) || refusal.Error() != test.want || refusal.RedirectURI != "https://app.example.com/cb" {
			t.Errorf("%s: %v, want %s", test.name, err, test.want)
		}
		applied = append(applied, test.want)
	}
	for _, name := range singleParameters {
		f := website()
		f.params[name] = []string{f.params.Get(name), f.params.Get(name)}
		want := "invalid_request: " + name + " is given more than once"
		var refusal *RedirectError
		if _, err := validate(f); !errors.As(err, &refusal) || refusal.Error() != want || name == "state" && refusal.State != "" {
			t.Errorf("%s twice: %v", name, err)
		}
		applied = append(applied, want)
	}
	for _, rule := range requestRules {
		if text := string(rule.code) + ": " + rule.description; !slices.Contains(applied, text) {
			t.Errorf("no request violates %q", text)
		}
	}
}

// A request that violates several rules is refused by the first of them.
func TestRequestRulesHaveAnOrder(t *testing.T) {
	f, last := website(), len(requestRules)
	for _, change := range []func(*facts){
		set("audience", "x"), set("claims", `{"id_token":{"acr":{"essential":true,"value":"gold"}}}`), set("claims", `{"id_token":{"sub":{"value":"usr_1"}},"userinfo":{"sub":{"value":"usr_2"}}}`), set("claims", "x"),
		set("scope", "admin"), set("max_age", "x"), set("prompt", "x"), func(f *facts) { f.hint = hint{given: true} }, set("connection", "X"), set("dpop_jkt", "x"),
		set("code_challenge", "x"), set("state"), set("response_mode", "x"), set("response_type", "token"), set("request_uri", "x"), func(f *facts) { f.app.RequireRequestObject = true },
		func(f *facts) { f.app.State = client.Disabled }, set("nonce", "\xff"), set("login_hint", "a", "b"), set("state", "\n"),
	} {
		change(&f)
		_, err := validate(f)
		var refusal *RedirectError
		if !errors.As(err, &refusal) {
			t.Fatal(err)
		}
		// Each change violates an earlier rule than those before it.
		at := slices.IndexFunc(requestRules, func(rule requestRule) bool { return rule.description == refusal.Description })
		if at >= last {
			t.Errorf("refused by %q, which comes after the rule before", refusal.Description)
		}
		last = at
	}
}

func TestValidRequests(t *testing.T) {
	base, _ := validate(website())
	for _, test := range []struct {
		name   string
		change []func(*facts)
		want   func(*Request)
	}{
		{"as it is", nil, func(*Request) {}},
		{"scopes with plus signs, some of them allowed", []func(*facts){set("scope", "openid+admin+email")}, func(r *Request) { r.Scopes = []string{"openid", "email"} }},
		{"no scope", []func(*facts){set("scope")}, func(r *Request) { r.Scopes = []string{"openid", "email", "reports"} }},
		{"no state where it is optional", []func(*facts){set("state"), func(f *facts) { f.requireState = false }}, func(r *Request) { r.State = "" }},
		{"neither PKCE nor nonce", []func(*facts){set("code_challenge"), set("code_challenge_method"), func(f *facts) { f.app.RequirePKCE = false }}, func(r *Request) { r.Challenge = "" }},
		{"nonce instead of PKCE and state", []func(*facts){set("code_challenge"), set("code_challenge_method"), set("state"), set("nonce", "n"), func(f *facts) { f.app.RequirePKCE, f.requireState = false, false }}, func(r *Request) { r.Challenge, r.State, r.Nonce = "", "", "n" }},
		{"a request_uri without a value", []func(*facts){set("request_uri", "")}, func(*Request) {}},
		{"nonce instead of PKCE", []func(*facts){set("code_challenge"), set("code_challenge_method"), set("nonce", "n"), func(f *facts) { f.app.RequirePKCE = false }}, func(r *Request) { r.Challenge, r.Nonce = "", "n" }},
		{"form post", []func(*facts){set("response_mode", "form_post")}, func(r *Request) { r.ResponseMode = FormPost }},
		{"query", []func(*facts){set("response_mode", "query")}, func(*Request) {}},
		{"max_age", []func(*facts){set("max_age", "10")}, func(r *Request) { r.MaxAge = 10 }},
		{"max_age of the client", []func(*facts){withMaxAge(60)}, func(r *Request) { r.MaxAge = 60 }},
		{"another max_age than that of the client", []func(*facts){withMaxAge(60), set("max_age", "0")}, func(r *Request) { r.MaxAge = 0 }},
		{"no step-up by the max_age of the client", []func(*facts){withMaxAge(60), set("acr_values", "aal2")}, func(r *Request) { r.MaxAge, r.AAL2 = 60, true }},
		{"max_age beyond 68 years", []func(*facts){set("max_age", "99999999999999999999")}, func(r *Request) { r.MaxAge = 1<<31 - 1 }},
		{"aal2 preferred", []func(*facts){set("acr_values", "gold aal2 aal1")}, func(r *Request) { r.AAL2 = true }},
		{"aal1 preferred", []func(*facts){set("acr_values", "aal1 aal2"), set("max_age", "0")}, func(r *Request) { r.MaxAge = 0 }},
		{"step-up", []func(*facts){set("acr_values", "aal2"), set("max_age", "0")}, func(r *Request) { r.MaxAge, r.AAL2, r.StepUp = 0, true, true }},
		{"no step-up if aal1 is accepted", []func(*facts){set("acr_values", "aal2 aal1"), set("max_age", "0")}, func(r *Request) { r.MaxAge, r.AAL2 = 0, true }},
		{"claims", []func(*facts){set("scope", "openid"), set("claims", `{"userinfo":{"email":null,"name":null},"id_token":{"email_verified":null}}`)}, func(r *Request) {
			r.Scopes, r.Claims = []string{"openid"}, access.RequestedClaims{UserInfo: []string{"email"}, IDToken: []string{"email_verified"}}
		}},
		{"claims of the scopes", []func(*facts){set("scope", "openid email"), set("claims", `{"userinfo":{"email":null}}`)}, func(r *Request) { r.Scopes = []string{"openid", "email"} }},
		{"claims without openid", []func(*facts){set("scope", "reports"), set("claims", `{"userinfo":{"email":null}}`)}, func(r *Request) { r.Scopes = []string{"reports"} }},
		{"claims of a user", []func(*facts){set("claims", `{"id_token":{"sub":{"value":"usr_1"}}}`)}, func(r *Request) { r.Users = []string{"usr_1"} }},
		{"aal2 essential", []func(*facts){set("claims", `{"id_token":{"acr":{"essential":true,"values":["gold","aal2"]}}}`)}, func(r *Request) { r.AAL2, r.Levels = true, []string{"aal2"} }},
		{"aal2 preferred by a claim, without step-up", []func(*facts){set("claims", `{"id_token":{"acr":{"value":"aal2"}}}`), set("max_age", "0")}, func(r *Request) { r.MaxAge, r.AAL2 = 0, true }},
		{"acr_values before a claim", []func(*facts){set("claims", `{"id_token":{"acr":{"value":"aal2"}}}`), set("acr_values", "aal1")}, func(*Request) {}},
		{"hint", []func(*facts){func(f *facts) { f.hint = hint{given: true, own: true, userID: "usr_1"} }}, func(r *Request) { r.UserID = "usr_1" }},
		{"prompts", []func(*facts){set("prompt", "login consent")}, func(r *Request) { r.Prompt = []string{"login", "consent"} }},
		{"its audience", []func(*facts){set("resource", "https://reports.example.com")}, func(r *Request) { r.Audience = "https://reports.example.com" }},
		{"several resources, one of them twice", []func(*facts){set("resource", "https://b.example.com", "https://a.example.com/x?y", "https://b.example.com")}, func(r *Request) { r.Audience = "https://b.example.com https://a.example.com/x?y" }},
		{"bound to a key", []func(*facts){set("dpop_jkt", strings.Repeat("k", 43))}, func(r *Request) { r.Thumbprint = strings.Repeat("k", 43) }},
	} {
		f := website()
		for _, change := range test.change {
			change(&f)
		}
		got, err := validate(f)
		want := base
		test.want(&want)
		if diff := cmp.Diff(want, got, cmp.AllowUnexported(Request{})); err != nil || diff != "" {
			t.Errorf("%s: %v\n%s", test.name, err, diff)
		}
	}
}
