package peers

import (
	"log/slog"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/zitadel/oidc/v3/example/server/exampleop"
	"github.com/zitadel/oidc/v3/example/server/storage"

	"stonetown/identity/federation/relyingparty"
)

// TestZitadel signs in at the example provider of zitadel/oidc. Its ID token has no profile, so the
// claims are those of its userinfo endpoint.
func TestZitadel(t *testing.T) {
	mux := http.NewServeMux()
	server := httptest.NewServer(mux)
	t.Cleanup(server.Close)
	storage.RegisterClients(storage.WebClient("web", "s3cr3t", redirectURI))
	op := exampleop.SetupServer(server.URL, storage.NewStorage(storage.NewUserStore(server.URL)), slog.New(slog.DiscardHandler), false)
	mux.Handle("/", op)

	s := newService(t)
	p := relyingparty.Provider{Kind: relyingparty.OIDC, Issuer: server.URL, ClientID: "web", Secret: "s3cr3t"}
	m, err := s.Discover(t.Context(), server.URL)
	if err != nil || m.EndSessionEndpoint == "" || m.UserinfoEndpoint == "" || len(m.Claims) == 0 {
		t.Fatalf("%+v, %s", m, detail(err))
	}
	user := map[string]string{"username": "test-user2", "password": "verysecure"}
	hour := time.Hour
	identity, err := signIn(t, s, p, newBrowser(t, user), relyingparty.Request{Prompt: []string{"login"}, MaxAge: &hour})
	if err != nil {
		t.Fatal(detail(err))
	}
	if identity.Subject != "id2" || identity.Email != "test-user2@zitadel.ch" || !identity.EmailVerified || identity.Claims["family_name"] != "User2" ||
		len(identity.AMR) != 1 || identity.AMR[0] != "pwd" || time.Since(identity.AuthTime) > time.Minute {
		t.Errorf("%+v", identity)
	}

	// Sign-out with the ID token as the hint. The example registers no address for it.
	to, err := s.LogoutURL(t.Context(), p, relyingparty.Logout{IDToken: identity.IDToken})
	if err != nil {
		t.Fatal(detail(err))
	}
	newBrowser(t, nil).visit(to, server.URL+"/logged-out")

	// The code is sent once more.
	again, pending, err := s.Begin(t.Context(), p, relyingparty.Request{RedirectURI: redirectURI})
	if err != nil {
		t.Fatal(detail(err))
	}
	params := newBrowser(t, user).visit(again, redirectURI)
	if _, err := s.Finish(t.Context(), p, pending, params); err != nil {
		t.Fatal(detail(err))
	}
	_, err = s.Finish(t.Context(), p, pending, params)
	wantClass(t, "used code", err, relyingparty.Stale)

	p.Secret = "wrong"
	_, err = signIn(t, s, p, newBrowser(t, user), relyingparty.Request{})
	wantClass(t, "wrong secret", err, relyingparty.Misconfigured)
}
