package main

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"testing"
	"time"

	"github.com/chromedp/chromedp"
)

// A page without a server signs a user in with oidc-client-ts in Chromium, from another origin. It
// renews its tokens, and signs out.
func TestBrowserClient(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	packages := npmFolder(ctx, t)
	dir := t.TempDir()
	server := start(t, "--dev", "--data-dir", dir, "--rate-limits", "sign-in.ip=unlimited,token.ip=unlimited")
	c := readJSON(t, filepath.Join(dir, "bootstrap.json"))
	const email, password = "zoe@example.com", "correct horse battery"
	server.call(t, c, "POST", "users", fmt.Sprintf(`{"email":%q,"email_verified":true,"password":%q}`, email, password), 201)

	pages := http.NewServeMux()
	site := httptest.NewServer(pages)
	defer site.Close()
	app := server.call(t, c, "POST", "applications", fmt.Sprintf(
		`{"name":"Page","type":"spa","redirect_uris":["%s/"],"post_logout_redirect_uris":["%[1]s/bye"],"allowed_origins":["%[1]s"],"allowed_scopes":["openid","email","offline_access"]}`, site.URL), 201)
	settings, err := json.Marshal(map[string]any{"authority": c.BaseURL, "client_id": app["client_id"]})
	if err != nil {
		t.Fatal(err)
	}
	pages.Handle("/", http.FileServer(http.Dir("testdata/browserclient")))
	pages.HandleFunc("/bye", func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/html")
		fmt.Fprint(w, "<title>Bye</title><main><h1>Goodbye</h1></main>")
	})
	pages.HandleFunc("/settings.js", func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/javascript")
		fmt.Fprintf(w, "const settings = %s", settings)
	})
	pages.HandleFunc("/oidc-client-ts.js", func(w http.ResponseWriter, r *http.Request) {
		http.ServeFile(w, r, filepath.Join(packages, "node_modules/oidc-client-ts/dist/browser/oidc-client-ts.min.js"))
	})

	b := openBrowser(t, server)
	b.do(chromedp.Navigate(site.URL))
	b.says("Signed out")
	b.press("Sign in")
	b.at("/auth/sign-in", "Sign in")
	b.fill("email", email, "password", password)
	b.press("Sign in")
	b.says("Hello " + email)
	b.press("Renew")
	b.says("Renewed")
	b.press("Sign out")
	b.says("Goodbye")
	b.open("/account") // the session here ended, too
	b.at("/auth/sign-in", "Sign in")
}
