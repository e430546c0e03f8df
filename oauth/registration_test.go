package oauth_test

import (
	"errors"
	"sync"
	"testing"

	"stonetown/internal/outbound"
	"stonetown/oauth"
	"stonetown/oauth/client"
	"stonetown/oauth/protocol"
)

// Addresses that the product fetches or notifies are on the public Internet (RFC 7591 §5), and
// those that pages show are https.
func TestRegistrationTargets(t *testing.T) {
	w := newWorld(t, func(c *oauth.Config) { c.Outbound = outbound.New(outbound.Config{}) })
	register := func(m client.Metadata) error {
		m.RedirectURIs = []string{"https://app.example.com/cb"}
		_, err := w.Clients.Register(t.Context(), tenantA, m, "usr_a")
		return err
	}
	refused := func(what string, m client.Metadata) {
		t.Helper()
		var e *protocol.Error
		if err := register(m); !errors.As(err, &e) || e.Code != protocol.InvalidClientMetadata {
			t.Errorf("%s: %v", what, err)
		}
	}
	for _, host := range []string{
		"127.0.0.1", "[::1]", "[::ffff:127.0.0.1]", "0.0.0.0", "0x7f.1", "2130706433", "169.254.169.254", "[fd00:ec2::254]", "[64:ff9b::7f00:1]", "[2002:7f00:1::]",
		"100.64.0.1", "10.0.0.1", "localhost", "metadata.google.internal", "ann@example.com",
	} {
		refused("jwks_uri "+host, client.Metadata{AuthMethod: client.PrivateKeyJWT, JWKSURI: "https://" + host + "/x"})
		refused("backchannel_logout_uri "+host, client.Metadata{BackchannelLogoutURI: "https://" + host + "/x"})
	}
	for _, uri := range []string{"http://example.com/", "javascript:alert(1)", "data:image/png;base64,x", "https://example.com/#x", "https://a@example.com/", "https://", "x"} {
		for what, m := range map[string]client.Metadata{
			"logo_uri": {LogoURI: uri}, "client_uri": {ClientURI: uri}, "tos_uri": {TOSURI: uri}, "policy_uri": {PolicyURI: uri},
			"jwks_uri": {JWKSURI: uri}, "backchannel_logout_uri": {BackchannelLogoutURI: uri},
		} {
			refused(what+" "+uri, m)
		}
	}
	const good = "https://example.com/x"
	if err := register(client.Metadata{LogoURI: good, ClientURI: good, TOSURI: good, PolicyURI: good, JWKSURI: good, BackchannelLogoutURI: good}); err != nil {
		t.Error(err)
	}
}

// A registration token that was replaced meanwhile changes nothing, however far its request
// had come.
func TestRegistrationTokenRace(t *testing.T) {
	w := newWorld(t)
	m := client.Metadata{RedirectURIs: []string{"https://app.example.com/cb"}}
	c, err := w.Clients.Register(t.Context(), tenantA, m, "usr_a")
	if err != nil {
		t.Fatal(err)
	}
	m.ClientID = c.Application.ClientID
	var wg sync.WaitGroup
	tokens := make(chan string, 10)
	for range cap(tokens) {
		wg.Go(func() {
			switch c, err := w.Clients.UpdateRegistered(t.Context(), tenantA, m.ClientID, c.Token, m); {
			case err == nil:
				tokens <- c.Token
			case !errors.Is(err, client.ErrRegistrationToken):
				t.Error(err)
			}
		})
	}
	wg.Wait()
	if len(tokens) != 1 {
		t.Fatalf("%d updates with one token", len(tokens))
	}
	if _, err := w.Clients.Managed(t.Context(), tenantA, m.ClientID, <-tokens); err != nil {
		t.Errorf("the token of the one that succeeded: %v", err)
	}
}
