package main

import (
	"context"
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"sync"
	"testing"

	"github.com/chromedp/chromedp"
	"github.com/coreos/go-oidc/v3/oidc"
	"golang.org/x/oauth2"
)

// website is an application of somebody else's, built on clients that others wrote. Who
// asks for /sign-in?mode= comes back signed in.
type website struct {
	config   oauth2.Config
	verifier *oidc.IDTokenVerifier
	ctx      func(context.Context) context.Context

	mu    sync.Mutex
	begun map[string]string // PKCE verifier, by state
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
		http.Redirect(w, r, s.config.AuthCodeURL(state, oauth2.S256ChallengeOption(verifier), oidc.Nonce(state), oauth2.SetAuthURLParam("response_mode", r.FormValue("mode"))), http.StatusFound)
		return nil
	}
	s.mu.Lock()
	state := r.FormValue("state")
	verifier, ok := s.begun[state]
	delete(s.begun, state)
	s.mu.Unlock()
	if !ok {
		return fmt.Errorf("%s with a state of nobody's", r.URL.Path)
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
	var who struct{ Email string }
	if err := idToken.Claims(&who); err != nil || idToken.Nonce != state {
		return fmt.Errorf("nonce %q, %w", idToken.Nonce, err)
	}
	w.Header().Set("Content-Type", "text/html")
	_, err = fmt.Fprintf(w, "<!doctype html><main><h1>Hello %s</h1><p>by %s</p></main>", who.Email, r.Method)
	return err
}

// A person signs in at a website, from Chromium.
func TestRelyingParty(t *testing.T) {
	dir := t.TempDir()
	server := start(t, "--dev", "--data-dir", dir)
	b := openBrowser(t, server)
	c := readJSON(t, filepath.Join(dir, "bootstrap.json"))

	site := &website{begun: map[string]string{}}
	at := httptest.NewServer(site)
	t.Cleanup(at.Close)
	body, err := json.Marshal(map[string]any{"name": "Website", "type": "server", "redirect_uris": []string{at.URL + "/back"}})
	if err != nil {
		t.Fatal(err)
	}
	status, answer := server.do("POST", "http://"+server.Addr()+"/api/v1/applications", hostOf(t, c.BaseURL), server.token(c), string(body))
	app, _ := answer["data"].(map[string]any)
	if status != 201 {
		t.Fatalf("application: %d %v", status, answer)
	}
	// Names below localhost are for browsers to resolve.
	direct := &http.Client{Transport: &http.Transport{DisableKeepAlives: true, DialContext: func(ctx context.Context, network, _ string) (net.Conn, error) {
		return new(net.Dialer).DialContext(ctx, network, server.Addr())
	}}}
	site.ctx = func(ctx context.Context) context.Context { return oidc.ClientContext(ctx, direct) }
	provider, err := oidc.NewProvider(site.ctx(t.Context()), c.BaseURL)
	if err != nil {
		t.Fatal(err)
	}
	site.config = oauth2.Config{
		ClientID: app["client_id"].(string), ClientSecret: app["client_secret"].(string), Endpoint: provider.Endpoint(), RedirectURL: at.URL + "/back",
		Scopes: []string{oidc.ScopeOpenID, "email"},
	}
	site.verifier = provider.Verifier(&oidc.Config{ClientID: site.config.ClientID})

	hello := fmt.Sprintf(`//h1[normalize-space()="Hello %s"]`, c.Admin.Email)
	b.do(chromedp.Navigate(at.URL + "/sign-in?mode=query"))
	b.at("/auth/sign-in", "Sign in")
	b.fill("email", c.Admin.Email, "password", c.Admin.Password)
	b.press("Sign in")
	b.do(chromedp.WaitVisible(chromedp.Search(hello)))
	b.says("by GET")
	b.do(chromedp.Navigate(at.URL+"/sign-in?mode=form_post"), chromedp.WaitVisible(chromedp.Search(hello))) // signed in already
	b.says("by POST")
}
