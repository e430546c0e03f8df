package client

import (
	"encoding/json"
	"reflect"
	"slices"
	"strings"
	"testing"

	"stonetown/oauth/protocol"
	"stonetown/oauth/scope"
)

// FuzzClientMetadata: whatever a client says, it gets nothing that it has no say in.
func FuzzClientMetadata(f *testing.F) {
	add := func(m Metadata) {
		text, err := json.Marshal(m)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(text, "openid invoices admin users:read me:read kept")
	}
	add(Metadata{RedirectURIs: []string{"https://app.example.com/cb", "http://[::1]:80/"}, AuthMethod: NoClientAuth, LogoURI: "https://example.com/l"})
	add(Metadata{RedirectURIs: []string{"com.example.app:/cb"}, AuthMethod: NoClientAuth, ApplicationType: NativeClient, Contacts: []string{"a"}})
	add(Metadata{GrantTypes: []string{protocol.GrantDeviceCode}, JWKS: json.RawMessage(`{"keys":[]}`), JWKSURI: "https://example.com/k", IDTokenAlg: "none"})
	registered := map[string]scope.Scope{"invoices": {Entitlement: scope.BySelf}, "admin": {Entitlement: scope.ByGroup}, "kept": {Entitlement: scope.ByGroup}}
	f.Fuzz(func(t *testing.T, text []byte, name string) {
		var m Metadata
		if json.Unmarshal(text, &m) != nil {
			return
		}
		m = m.withDefaults(Server)
		asked, err := scope.Parse(name)
		if err != nil || m.validate(allowed{}) != nil {
			return
		}
		before := *m.applicationType().Defaults()
		before.FirstParty, before.GroupScopes, before.AllowedScopes = false, AllowedGroupScopes, []string{"kept"}
		before.Registration = &Registration{TokenHash: "hash"}
		a := before
		m.describe(&a, asked, registered)
		for _, name := range a.AllowedScopes {
			if !slices.Contains(append([]string{"invoices", "kept"}, scope.OIDC...), name) {
				t.Errorf("it got the scope %s", name)
			}
		}
		for _, uri := range a.RedirectURIs {
			if strings.HasPrefix(strings.ToLower(uri), "javascript:") || strings.ContainsAny(uri, "*#") {
				t.Errorf("redirect URI %q", uri)
			}
		}
		if err := ValidateOrigins(a.AllowedOrigins); err != nil && len(a.AllowedOrigins) <= maxOrigins {
			t.Error(err)
		}
		if a.Name == "" || a.Registration.TokenHash != "hash" || a.ActsForItself() {
			t.Errorf("%+v", a)
		}
		// What is left is as it was.
		a.AllowedScopes, a.RedirectURIs, a.AllowedOrigins, a.Name = before.AllowedScopes, before.RedirectURIs, before.AllowedOrigins, before.Name
		options := before.Options
		options.LogoURI, options.AuthMethod, options.JWKS, options.JWKSURI, options.IDTokenAlg = a.LogoURI, a.AuthMethod, a.JWKS, a.JWKSURI, a.IDTokenAlg
		options.AuthorizationAlg, options.IntrospectionAlg, options.RequestObjectAlg, options.RequireRequestObject = a.AuthorizationAlg, a.IntrospectionAlg, a.RequestObjectAlg, a.RequireRequestObject
		options.UserInfoAlg, options.AuthAlg, options.RequestURIs = a.UserInfoAlg, a.AuthAlg, a.RequestURIs
		options.PostLogoutRedirectURIs, options.BackchannelLogoutURI = a.PostLogoutRedirectURIs, a.BackchannelLogoutURI
		options.BackchannelLogoutSessionRequired, options.RequirePAR, options.DPoPBound, options.Registration = a.BackchannelLogoutSessionRequired, a.RequirePAR, a.DPoPBound, a.Registration
		before.Options = options
		if !reflect.DeepEqual(a, before) {
			t.Errorf("%+v, want %+v", a, before)
		}
	})
}
