package peers

import (
	"bytes"
	"errors"
	"net/http"
	"net/http/httptest"
	"slices"
	"testing"
	"time"

	"stonetown/identity/federation/relyingparty"
	"stonetown/internal/dextest"
)

func TestDex(t *testing.T) {
	logouts := make(chan string, 10)
	receiver := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { logouts <- r.FormValue("logout_token") }))
	t.Cleanup(receiver.Close)
	d := dextest.Start(t, dextest.Config{
		ClientID: "web", Secret: "s3cr3t/with+signs", RedirectURIs: []string{redirectURI}, PostLogoutURIs: []string{leftURI}, BackchannelLogoutURI: receiver.URL, Sessions: true,
		Users: []dextest.User{{
			ID: "08a8684b-db88-4b73-90a9-3cd1661f5466", Email: "ann@example.com", Username: "ann", Name: "Ann Example", Groups: []string{"staff", "staff/admins"},
		}},
	})
	issuer := d.Issuer

	s := newService(t)
	p := relyingparty.Provider{
		Kind: relyingparty.OIDC, Issuer: issuer, ClientID: "web", Secret: "s3cr3t/with+signs", Scopes: []string{"openid", "email", "profile", "groups"},
	}
	m, err := s.Discover(t.Context(), issuer)
	if err != nil || !slices.Contains(m.Algorithms, "RS256") || m.EndSessionEndpoint == "" || !m.BackchannelLogout {
		t.Fatalf("%+v, %s", m, detail(err))
	}
	_, err = s.Discover(t.Context(), issuer+"/")
	wantClass(t, "issuer with a slash", err, relyingparty.Misconfigured)

	user := map[string]string{"login": "ann@example.com", "password": dextest.Password}
	ann := newBrowser(t, user)
	identity, err := signIn(t, s, p, ann, relyingparty.Request{})
	if err != nil {
		t.Fatal(detail(err))
	}
	groups, _ := identity.Claims["groups"].([]any)
	if identity.Issuer != issuer || identity.Subject == "" || identity.Email != "ann@example.com" || !identity.EmailVerified || identity.Claims["name"] != "Ann Example" || len(groups) != 2 {
		t.Errorf("%+v", identity)
	}

	// Sign-out at Dex, which sends a logout token and the browser back.
	if identity.SessionID == "" {
		t.Fatal("no sid")
	}
	to, err := s.LogoutURL(t.Context(), p, relyingparty.Logout{IDToken: identity.IDToken, RedirectURI: leftURI, State: "7"})
	if err != nil {
		t.Fatal(detail(err))
	}
	if params := ann.visit(to, leftURI); params.Get("state") != "7" {
		t.Errorf("%v", params)
	}
	select {
	case token := <-logouts:
		out, err := s.VerifyLogoutToken(t.Context(), p, token)
		if err != nil || out.SessionID != identity.SessionID || out.Subject != identity.Subject || out.ID == "" {
			t.Errorf("%+v, %s", out, detail(err))
		}
		other := p
		other.ClientID = "other"
		_, err = s.VerifyLogoutToken(t.Context(), other, token)
		wantClass(t, "logout token of another client", err, relyingparty.Invalid)
	case <-time.After(10 * time.Second):
		t.Error("no logout token")
	}
	_, err = s.VerifyLogoutToken(t.Context(), p, identity.IDToken)
	wantClass(t, "ID token as a logout token", err, relyingparty.Invalid)

	// A user who is not signed in, without pages; and a wrong secret.
	_, err = signIn(t, s, p, newBrowser(t, user), relyingparty.Request{Prompt: []string{"none"}})
	wantClass(t, "prompt=none", err, relyingparty.InteractionRequired)
	wrong := p
	wrong.Secret = "wrong"
	_, err = signIn(t, s, wrong, newBrowser(t, user), relyingparty.Request{})
	wantClass(t, "wrong secret", err, relyingparty.Misconfigured)

	// Dex starts again with another key. The cached keys do not have it, so they are fetched again.
	d.Restart()
	again, err := signIn(t, s, p, newBrowser(t, user), relyingparty.Request{})
	if err != nil {
		t.Fatal(detail(err))
	}
	if keyOf(t, again.IDToken) == keyOf(t, identity.IDToken) || again.Subject != identity.Subject {
		t.Errorf("key %s, subject %q and %q", keyOf(t, again.IDToken), identity.Subject, again.Subject)
	}
	d.Stop()
	_, _, err = newService(t).Begin(t.Context(), p, relyingparty.Request{RedirectURI: redirectURI})
	wantClass(t, "stopped", err, relyingparty.Unreachable)
}

// keyOf is the header of a token, which has the id of its key.
func keyOf(t *testing.T, token string) string {
	t.Helper()
	header, _, ok := bytes.Cut([]byte(token), []byte("."))
	if !ok {
		t.Fatal("not a token")
	}
	return string(header)
}

func wantClass(t *testing.T, what string, err error, want relyingparty.Class) {
	t.Helper()
	var e *relyingparty.Error
	if !errors.As(err, &e) || e.Class != want {
		t.Errorf("%s: %s, want %s", what, detail(err), want)
	}
}
