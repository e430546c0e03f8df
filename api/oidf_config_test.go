package api_test

import (
	"slices"
	"strings"
	"testing"
)

// configOP is the plan for the profile Config OP.
func configOP(t *testing.T, _ *world, c *client) {
	plan{"oidcc-config-certification-test-plan", []string{"oidcc-discovery-endpoint-verification"}, nil}.run(t, c, map[string]func(t *testing.T){
		"oidcc-discovery-endpoint-verification": func(t *testing.T) { verifyDiscovery(t, c) },
	})
}

// verifyDiscovery verifies the document as OIDC Discovery §3 demands.
func verifyDiscovery(t *testing.T, c *client) {
	t.Helper()
	a := c.with("").want(t, 200, "", "GET", "/.well-known/openid-configuration", nil)
	d := a.body
	equal(t, "media type", strings.HasPrefix(a.header.Get("Content-Type"), "application/json"), true)
	equal(t, "issuer", d["issuer"], any(c.base()))
	for member, value := range map[string]string{
		"response_types_supported": "code", "subject_types_supported": "public", "id_token_signing_alg_values_supported": "RS256", "grant_types_supported": "authorization_code",
		"scopes_supported": "openid", "claims_supported": "sub", "token_endpoint_auth_methods_supported": "client_secret_basic", "code_challenge_methods_supported": "S256",
	} {
		if !offers(member, value)(d) {
			t.Errorf("%s has no %s", member, value)
		}
	}
	for _, member := range []string{"authorization_endpoint", "token_endpoint", "userinfo_endpoint", "jwks_uri", "end_session_endpoint"} {
		if text, _ := d[member].(string); !strings.HasPrefix(text, c.base()+"/") {
			t.Errorf("%s is %v", member, d[member])
		}
	}
	for _, member := range []string{"request_parameter_supported", "request_uri_parameter_supported"} { // the default of the second is true
		if _, is := d[member].(bool); !is {
			t.Errorf("%s is %v", member, d[member])
		}
	}
	// Every key has an id of its own, is public, and is for signatures.
	keys := c.with("").want(t, 200, "", "GET", strings.TrimPrefix(d["jwks_uri"].(string), c.base()), nil).body["keys"].([]any)
	var ids []string
	for _, item := range keys {
		key := item.(map[string]any)
		equal(t, "key", []any{key["use"], key["d"], key["alg"] != nil}, []any{"sig", nil, true})
		ids = append(ids, key["kid"].(string))
	}
	slices.Sort(ids)
	if len(ids) == 0 || len(slices.Compact(ids)) != len(keys) {
		t.Errorf("ids of keys: %v", ids)
	}
}
