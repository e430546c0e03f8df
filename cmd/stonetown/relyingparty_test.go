package main

import (
	"context"
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/chromedp/chromedp"
	"github.com/coreos/go-oidc/v3/oidc"
	"golang.org/x/oauth2"
)

// website is an application on independent client libraries. A request of /sign-in?mode= ends
// with a signed-in user.
type website struct {
	config   oauth2.Config
	verifier *oidc.IDTokenVerifier
	ctx      func(context.Context) context.Context

	endSession string // the endpoint of the server
	self       string // its own address

	application string // its id

	mu     sync.Mutex
	token  string                                   // the last ID token
	begun  map[string]string                        // PKCE verifier, by state
	leaves func(http.ResponseWriter, *http.Request) // its page in a frame; nil: there is none
}

func (s *website) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if err := s.serve(w, r); err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
	}
}

func (s *website) serve(w http.ResponseWriter, r *http.Request) error {
	if r.URL.Path == "/sign-in" {
		verifier, state := oauth2.GenerateVerifier(), oauth2.GenerateVerifier()
		s.mu.Lock()
		s.begun[state] = verifier
		s.mu.Unlock()
		options := []oauth2.AuthCodeOption{oauth2.S256ChallengeOption(verifier), oidc.Nonce(state), oauth2.SetAuthURLParam("response_mode", r.FormValue("mode"))}
		for _, name := range []string{"prompt", "acr_values", "max_age"} {
			if value := r.FormValue(name); value != "" {
				options = append(options, oauth2.SetAuthURLParam(name, value))
			}
		}
		http.Redirect(w, r, s.config.AuthCodeURL(state, options...), http.StatusFound)
		return nil
	}
	switch r.URL.Path {
	case "/frame":
		s.mu.Lock()
		leaves := s.leaves
		s.mu.Unlock()
		w.Header().Set("Content-Type", "text/html")
		leaves(w, r)
		return nil
	case "/sign-out":
		query := url.Values{"client_id": {s.config.ClientID}, "post_logout_redirect_uri": {s.self + "/left"}, "state": {"7"}}
		if r.FormValue("hint") != "none" {
			s.mu.Lock()
			query.Set("id_token_hint", s.token)
			s.mu.Unlock()
		}
		http.Redirect(w, r, s.endSession+"?"+query.Encode(), http.StatusFound)
		return nil
	case "/left":
		w.Header().Set("Content-Type", "text/html")
		_, err := fmt.Fprintf(w, "<!doctype html><main><p>You have left with %s</p></main>", r.FormValue("state"))
		return err
	}
	s.mu.Lock()
	state := r.FormValue("state")
	verifier, ok := s.begun[state]
	delete(s.begun, state)
	s.mu.Unlock()
	if !ok {
		return fmt.Errorf("%s with an unknown state", r.URL.Path)
	}
	if code := r.FormValue("error"); code != "" {
		return fmt.Errorf("%s: %s", code, r.FormValue("error_description"))
	}
	ctx := s.ctx(r.Context())
	token, err := s.config.Exchange(ctx, r.FormValue("code"), oauth2.VerifierOption(verifier))
	if err != nil {
		return err
	}
	raw, _ := token.Extra("id_token").(string)
	idToken, err := s.verifier.Verify(ctx, raw)
	if err != nil {
		return err
	}
	var claims struct{ Email, ACR string }
	if err := idToken.Claims(&claims); err != nil || idToken.Nonce != state {
		return fmt.Errorf("nonce %q, %w", idToken.Nonce, err)
	}
	s.mu.Lock()
	s.token = raw
	s.mu.Unlock()
	w.Header().Set("Content-Type", "text/html")
	_, err = fmt.Fprintf(w, "<!doctype html><main><h1>Hello %s</h1><p>by %s</p><p>at %s</p></main>", claims.Email, r.Method, claims.ACR)
	return err
}

// A user connects a device by the code that it shows, in Chromium; the device uses an
// independent client library.
func TestDevicePage(t *testing.T) {
	dir := t.TempDir()
	server := start(t, "--dev", "--data-dir", dir)
	b := openBrowser(t, server)
	c := readJSON(t, filepath.Join(dir, "bootstrap.json"))
	body, err := json.Marshal(map[string]any{"name": "Television", "type": "native", "redirect_uris": []string{}})
	if err != nil {
		t.Fatal(err)
	}
	_, answer := server.do("POST", "http://"+server.Addr()+"/api/v1/applications", hostOf(t, c.BaseURL), server.token(c), string(body))
	app, _ := answer["data"].(map[string]any)
	ctx := oidc.ClientContext(t.Context(), direct(server))
	provider, err := oidc.NewProvider(ctx, c.BaseURL)
	if err != nil {
		t.Fatal(err)
	}
	id, _ := app["client_id"].(string)
	device := oauth2.Config{ClientID: id, Endpoint: provider.Endpoint(), Scopes: []string{oidc.ScopeOpenID, "email"}}
	begun, err := device.DeviceAuth(ctx)
	if err != nil {
		t.Fatal(err)
	}
	tokens := make(chan *oauth2.Token, 1)
	go func() {
		token, err := device.DeviceAccessToken(ctx, begun)
		if err != nil {
			t.Error(err)
		}
		tokens <- token
	}()
	b.do(chromedp.Navigate(begun.VerificationURIComplete))
	b.at("/auth/sign-in", "Sign in")
	b.fill("email", c.Admin.Email, "password", c.Admin.Password)
	b.press("Sign in")
	b.at("/device", "Connect a device")
	b.fill("user_code", "BCDF-BCDF")
	b.press("Continue")
	b.says("This code is wrong.")
	b.fill("user_code", strings.ToLower(begun.UserCode))
	b.press("Continue")
	b.at("/device", "Connect this device?")
	b.says("See your e-mail address")
	b.press("Allow")
	b.at("/device", "Device connected")
	token := <-tokens
	if token == nil {
		t.FailNow()
	}
	if info, err := provider.UserInfo(ctx, oauth2.StaticTokenSource(token)); err != nil || info.Email != c.Admin.Email {
		t.Errorf("user of the device: %v, %v", info, err)
	}
}

// direct reaches a server by names below localhost, which browsers resolve.
func direct(server *running) *http.Client {
	return &http.Client{Transport: &http.Transport{DisableKeepAlives: true, DialContext: func(ctx context.Context, network, _ string) (net.Conn, error) {
		return new(net.Dialer).DialContext(ctx, network, server.Addr())
	}}}
}

// openWebsite registers a website at a server and returns its address.
func openWebsite(t *testing.T, server *running, c credentials, name string, firstParty bool) string {
	t.Helper()
	return newWebsite(t, server, c, name, firstParty).self
}

func newWebsite(t *testing.T, server *running, c credentials, name string, firstParty bool) *website {
	t.Helper()
	s := &website{begun: map[string]string{}}
	at := httptest.NewServer(s)
	t.Cleanup(at.Close)
	body, err := json.Marshal(map[string]any{"name": name, "type": "server", "first_party": firstParty, "redirect_uris": []string{at.URL + "/back"}, "post_logout_redirect_uris": []string{at.URL + "/left"}})
	if err != nil {
		t.Fatal(err)
	}
	status, answer := server.do("POST", "http://"+server.Addr()+"/api/v1/applications", hostOf(t, c.BaseURL), server.token(c), string(body))
	app, _ := answer["data"].(map[string]any)
	if status != 201 {
		t.Fatalf("application: %d %v", status, answer)
	}
	s.ctx = func(ctx context.Context) context.Context { return oidc.ClientContext(ctx, direct(server)) }
	provider, err := oidc.NewProvider(s.ctx(t.Context()), c.BaseURL)
	if err != nil {
		t.Fatal(err)
	}
	var more struct {
		EndSession string `json:"end_session_endpoint"`
	}
	if err := provider.Claims(&more); err != nil {
		t.Fatal(err)
	}
	s.endSession, s.self = more.EndSession, at.URL
	s.application, _ = app["id"].(string)
	s.config = oauth2.Config{
		ClientID: app["client_id"].(string), ClientSecret: app["client_secret"].(string), Endpoint: provider.Endpoint(), RedirectURL: at.URL + "/back",
		Scopes: []string{oidc.ScopeOpenID, "email"},
	}
	s.verifier = provider.Verifier(&oidc.Config{ClientID: s.config.ClientID})
	return s
}

// A user signs in at a website, in Chromium.
func TestRelyingParty(t *testing.T) {
	dir := t.TempDir()
	server := start(t, "--dev", "--data-dir", dir)
	b := openBrowser(t, server)
	c := readJSON(t, filepath.Join(dir, "bootstrap.json"))

	at := openWebsite(t, server, c, "Website", true)
	hello := fmt.Sprintf(`//h1[normalize-space()="Hello %s"]`, c.Admin.Email)
	b.do(chromedp.Navigate(at + "/sign-in?mode=query"))
	b.at("/auth/sign-in", "Sign in")
	b.fill("email", c.Admin.Email, "password", c.Admin.Password)
	b.press("Sign in")
	b.do(chromedp.WaitVisible(chromedp.Search(hello)))
	b.says("by GET")
	b.do(chromedp.Navigate(at+"/sign-in?mode=form_post"), chromedp.WaitVisible(chromedp.Search(hello))) // signed in already
	b.says("by POST")

	// With the account that is signed in, or another one.
	b.do(chromedp.Navigate(at + "/sign-in?prompt=select_account"))
	b.at("/auth/select-account", "Choose an account")
	b.press("Use another account")
	b.at("/auth/sign-in", "Sign in")
	b.do(chromedp.Navigate(at + "/sign-in?prompt=select_account"))
	b.press("Continue as " + c.Admin.Email)
	b.do(chromedp.WaitVisible(chromedp.Search(hello)))

	// A third-party website asks for consent once.
	guest := openWebsite(t, server, c, "Guest book", false)
	b.do(chromedp.Navigate(guest + "/sign-in"))
	b.at("/auth/consent", "Allow Guest book to access your account?")
	b.says("See your e-mail address")
	b.says("Through your groups")
	b.press("Cancel")
	b.says("access_denied")
	b.do(chromedp.Navigate(guest + "/sign-in"))
	b.press("Allow")
	b.do(chromedp.WaitVisible(chromedp.Search(hello)), chromedp.Navigate(guest+"/sign-in"), chromedp.WaitVisible(chromedp.Search(hello)))
	b.open("/account/applications")
	b.at("/account/applications", "Applications")
	b.do(chromedp.Click(chromedp.Search(`//li[.//strong="Guest book"]//a`)))
	b.at("/account/end-authorization", "Remove access for “Guest book”?")
	b.press("Remove access")
	b.says("Access removed.")
	b.do(chromedp.Navigate(guest + "/sign-in"))
	b.at("/auth/consent", "Allow Guest book to access your account?")

	// The website signs the user out and receives the browser again; without the ID token of
	// the session the user is asked first.
	b.do(chromedp.Navigate(at + "/sign-out?hint=none"))
	b.at("/auth/sign-out", "Sign out?")
	b.do(chromedp.Navigate(at+"/sign-in"), chromedp.WaitVisible(chromedp.Search(hello)))
	b.do(chromedp.Navigate(at + "/sign-out"))
	b.says("You have left with 7")
	b.do(chromedp.Navigate(at + "/sign-in"))
	b.at("/auth/sign-in", "Sign in")
	b.fill("email", c.Admin.Email, "password", c.Admin.Password)
	b.press("Sign in")
	b.do(chromedp.WaitVisible(chromedp.Search(hello)), chromedp.Navigate(at+"/sign-out?hint=none"))
	b.press("Sign out")
	b.says("You have left with 7")
}

// The end of a session signs the user out of applications in frames of the browser, in Chromium: at
// the request of one of them, and by the page of the product. An application that does not respond
// does not keep the user.
func TestFrontchannelLogout(t *testing.T) {
	dir := t.TempDir()
	server := start(t, "--dev", "--data-dir", dir)
	b := openBrowser(t, server)
	c := readJSON(t, filepath.Join(dir, "bootstrap.json"))
	sites := map[string]*website{}
	open := func(name string) string {
		s := newWebsite(t, server, c, name, true)
		sites[s.self] = s
		return s.self
	}
	at, other, slow := open("Website"), open("Other"), open("Slow")
	loaded := make(chan *http.Request, 10)
	hang := make(chan struct{})
	defer close(hang)
	for _, site := range []string{at, other, slow} {
		listening := sites[site]
		listening.mu.Lock()
		listening.leaves = func(w http.ResponseWriter, r *http.Request) {
			loaded <- r
			if site == slow {
				<-hang
			}
			fmt.Fprint(w, "<!doctype html><script>top.location='https://evil.test/'</script>") // which the page does not permit
		}
		listening.mu.Unlock()
		change, err := json.Marshal(map[string]any{"frontchannel_logout_uri": site + "/frame?x=1"})
		if err != nil {
			t.Fatal(err)
		}
		if status, answer := server.do("PATCH", "http://"+server.Addr()+"/api/v1/applications/"+listening.application, hostOf(t, c.BaseURL), server.token(c), string(change)); status != 200 {
			t.Fatalf("application: %d %v", status, answer)
		}
	}
	hello := fmt.Sprintf(`//h1[normalize-space()="Hello %s"]`, c.Admin.Email)
	frames := func(sites ...string) {
		t.Helper()
		want := map[string]bool{}
		for _, site := range sites {
			want[strings.TrimPrefix(site, "http://")] = true
		}
		for range sites {
			r := <-loaded
			if !want[r.Host] || r.FormValue("x") != "1" || r.FormValue("iss") != c.BaseURL || !strings.HasPrefix(r.FormValue("sid"), "ses_") {
				t.Errorf("loaded %s%s", r.Host, r.URL)
			}
			delete(want, r.Host)
		}
	}
	enter := func(sites ...string) {
		t.Helper()
		for i, site := range sites {
			b.do(chromedp.Navigate(site + "/sign-in"))
			if i == 0 {
				b.at("/auth/sign-in", "Sign in")
				b.fill("email", c.Admin.Email, "password", c.Admin.Password)
				b.press("Sign in")
			}
			b.do(chromedp.WaitVisible(chromedp.Search(hello)))
		}
	}

	enter(at, other)
	b.do(chromedp.Navigate(at + "/sign-out"))
	b.says("You have left with 7")
	frames(at, other)

	enter(other, at)
	b.do(chromedp.Navigate(at + "/sign-out?hint=none"))
	b.press("Sign out")
	b.says("You have left with 7")
	frames(at, other)

	enter(slow)
	b.do(chromedp.Navigate(slow + "/sign-out"))
	b.says("You have left with 7")
	frames(slow)
}
