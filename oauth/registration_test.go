package oauth

import (
	"encoding/json"
	"errors"
	"reflect"
	"slices"
	"strings"
	"sync"
	"testing"

	"stonetown/internal/outbound"
)

// What a client has fetched or told lies on the public Internet (RFC 7591 §5), and what it
// shows to people is https.
func TestRegistrationTargets(t *testing.T) {
	w := newWorld(t)
	w.outbound = outbound.New(outbound.Config{})
	register := func(m ClientMetadata) error {
		m.RedirectURIs = []string{"https://app.example.com/cb"}
		_, err := w.RegisterClient(t.Context(), tenantA, m, "usr_a")
		return err
	}
	refused := func(what string, m ClientMetadata) {
		t.Helper()
		var e *Error
		if err := register(m); !errors.As(err, &e) || e.Code != InvalidClientMetadata {
			t.Errorf("%s: %v", what, err)
		}
	}
	for _, host := range []string{
		"127.0.0.1", "[::1]", "[::ffff:127.0.0.1]", "0.0.0.0", "0x7f.1", "2130706433", "169.254.169.254", "[fd00:ec2::254]", "[64:ff9b::7f00:1]", "[2002:7f00:1::]",
		"100.64.0.1", "10.0.0.1", "localhost", "metadata.google.internal", "ann@example.com",
	} {
		refused("jwks_uri "+host, ClientMetadata{AuthMethod: PrivateKeyJWT, JWKSURI: "https://" + host + "/x"})
		refused("backchannel_logout_uri "+host, ClientMetadata{BackchannelLogoutURI: "https://" + host + "/x"})
	}
	for _, uri := range []string{"http://example.com/", "javascript:alert(1)", "data:image/png;base64,x", "https://example.com/#x", "https://a@example.com/", "https://", "x"} {
		for what, m := range map[string]ClientMetadata{
			"logo_uri": {LogoURI: uri}, "client_uri": {ClientURI: uri}, "tos_uri": {TOSURI: uri}, "policy_uri": {PolicyURI: uri},
			"jwks_uri": {JWKSURI: uri}, "backchannel_logout_uri": {BackchannelLogoutURI: uri},
		} {
			refused(what+" "+uri, m)
		}
	}
	const good = "https://example.com/x"
	if err := register(ClientMetadata{LogoURI: good, ClientURI: good, TOSURI: good, PolicyURI: good, JWKSURI: good, BackchannelLogoutURI: good}); err != nil {
		t.Error(err)
	}
}

// A registration token that was replaced meanwhile changes nothing, however far its request
// had come.
func TestRegistrationTokenRace(t *testing.T) {
	w := newWorld(t)
	m := ClientMetadata{RedirectURIs: []string{"https://app.example.com/cb"}}
	c, err := w.RegisterClient(t.Context(), tenantA, m, "usr_a")
	if err != nil {
		t.Fatal(err)
	}
	m.ClientID = c.Application.ClientID
	var wg sync.WaitGroup
	tokens := make(chan string, 10)
	for range cap(tokens) {
		wg.Go(func() {
			switch c, err := w.UpdateClient(t.Context(), tenantA, m.ClientID, c.Token, m); {
			case err == nil:
				tokens <- c.Token
			case !errors.Is(err, ErrRegistrationToken):
				t.Error(err)
			}
		})
	}
	wg.Wait()
	if len(tokens) != 1 {
		t.Fatalf("%d updates with one token", len(tokens))
	}
	if _, err := w.ManagedClient(t.Context(), tenantA, m.ClientID, <-tokens); err != nil {
		t.Errorf("the token of the one that succeeded: %v", err)
	}
}

// FuzzClientMetadata: whatever a client says, it gets nothing that it has no say in.
func FuzzClientMetadata(f *testing.F) {
	add := func(m ClientMetadata) {
		text, err := json.Marshal(m)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(text, "openid invoices admin users:read me:read kept")
	}
	add(ClientMetadata{RedirectURIs: []string{"https://app.example.com/cb", "http://[::1]:80/"}, AuthMethod: NoClientAuth, LogoURI: "https://example.com/l"})
	add(ClientMetadata{RedirectURIs: []string{"com.example.app:/cb"}, AuthMethod: NoClientAuth, ApplicationType: NativeClient, Contacts: []string{"a"}})
	add(ClientMetadata{GrantTypes: []string{GrantDeviceCode}, JWKS: json.RawMessage(`{"keys":[]}`), JWKSURI: "https://example.com/k", IDTokenAlg: "none"})
	registered := map[string]Scope{"invoices": {Entitlement: BySelf}, "admin": {Entitlement: ByGroup}, "kept": {Entitlement: ByGroup}}
	f.Fuzz(func(t *testing.T, text []byte, scope string) {
		var m ClientMetadata
		if json.Unmarshal(text, &m) != nil {
			return
		}
		m = m.withDefaults(Server)
		asked, err := parseScopes(scope)
		if err != nil || m.validate() != nil {
			return
		}
		before := *m.applicationType().Defaults()
		before.FirstParty, before.GroupScopes, before.AllowedScopes = false, AllowedGroupScopes, []string{"kept"}
		before.Registration = &Registration{TokenHash: "hash"}
		a := before
		m.describe(&a, asked, registered)
		for _, scope := range a.AllowedScopes {
			if !slices.Contains(append([]string{"invoices", "kept"}, OIDCScopes...), scope) {
				t.Errorf("it got the scope %s", scope)
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
		if a.Name == "" || a.Registration.TokenHash != "hash" || a.actsForItself() {
			t.Errorf("%+v", a)
		}
		// What is left is as it was.
		a.AllowedScopes, a.RedirectURIs, a.AllowedOrigins, a.Name = before.AllowedScopes, before.RedirectURIs, before.AllowedOrigins, before.Name
		options := before.Options
		options.LogoURI, options.AuthMethod, options.JWKS, options.JWKSURI, options.IDTokenAlg = a.LogoURI, a.AuthMethod, a.JWKS, a.JWKSURI, a.IDTokenAlg
		options.PostLogoutRedirectURIs, options.BackchannelLogoutURI = a.PostLogoutRedirectURIs, a.BackchannelLogoutURI
		options.BackchannelLogoutSessionRequired, options.RequirePAR, options.DPoPBound, options.Registration = a.BackchannelLogoutSessionRequired, a.RequirePAR, a.DPoPBound, a.Registration
		before.Options = options
		if !reflect.DeepEqual(a, before) {
			t.Errorf("%+v, want %+v", a, before)
		}
	})
}
