package main

import (
	"fmt"
	"html"
	"net/http"
	"net/http/httptest"
	"net/url"
	"path/filepath"
	"strings"
	"testing"

	"github.com/chromedp/chromedp"

	"stonetown/internal/dextest"
)

// atDex signs in at Dex, and lets it tell the address.
func (b *browser) atDex(email string) {
	b.Helper()
	b.do(chromedp.WaitVisible(chromedp.Search(`//h2[normalize-space()="Log in to Your Account"]`)))
	b.fill("login", email, "password", dextest.Password)
	b.do(chromedp.Click(chromedp.Search(`//button[@id="submit-login"]`)))
	grant := chromedp.Search(`//button[normalize-space()="Grant Access"]`)
	b.do(chromedp.WaitVisible(grant))
	b.until(`document.readyState === "complete"`) // a click misses a button that a style sheet moves meanwhile
	b.do(chromedp.Click(grant))
}

// call calls an operation as the application of the development server, and returns its data.
func (s *running) call(t *testing.T, c credentials, method, path, body string, want int) map[string]any {
	t.Helper()
	status, answer := s.do(method, "http://"+s.Addr()+"/api/v1/"+path, hostOf(t, c.BaseURL), s.token(c), body)
	if status != want {
		t.Fatalf("%s %s: %d %v, want %d", method, path, status, answer, want)
	}
	data, _ := answer["data"].(map[string]any)
	return data
}

// undecided is an identity provider at which the user can only refuse, in one way or another. Each
// is a link of its page.
func undecided(t *testing.T) *httptest.Server {
	t.Helper()
	at := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		back := func(answer url.Values) string {
			answer.Set("state", r.FormValue("state"))
			return html.EscapeString(r.FormValue("redirect_uri") + "?" + answer.Encode())
		}
		w.Header().Set("Content-Type", "text/html")
		fmt.Fprintf(w, `<!doctype html><title>Elsewhere</title><main><h1>Allow?</h1><p><a href="%s">Cancel</a> <a href="%s">Fail</a> <a href="%s">Lie</a></p></main>`,
			back(url.Values{"error": {"access_denied"}, "error_description": {"Call +1 555 0100 now"}}),
			back(url.Values{"error": {"<b>server_error</b>"}}),
			back(url.Values{"code": {"made up"}}))
	}))
	t.Cleanup(at.Close)
	return at
}

// Users sign in at identity providers, in Chromium.
func TestFederationPages(t *testing.T) {
	dir := t.TempDir()
	server := start(t, "--dev", "--data-dir", dir, "--rate-limits", "sign-in.ip=unlimited,self-service.caller=unlimited,token.ip=unlimited")
	c := readJSON(t, filepath.Join(dir, "bootstrap.json"))
	b := openBrowser(t, server)
	site := openWebsite(t, server, c, "Website", true)
	const password = "correct horse battery"

	dex := dextest.Start(t, dextest.Config{
		ClientID: "stonetown", Secret: "s3cr3t/with+signs", RedirectURIs: []string{b.base + "/federation/dex/callback", b.base + "/federation/partner/callback"},
		Users: []dextest.User{
			{ID: "1", Email: "ann@example.com", Username: "ann", Name: "Ann Example", Groups: []string{"staff"}},
			{ID: "2", Email: "bob@example.com", Username: "bob", Name: "Bob Example", Unverified: true},
			{ID: "3", Email: "cid@example.com", Username: "cid", Name: "Cid Example", Unverified: true},
			{ID: "4", Email: "dan@elsewhere.example", Username: "dan", Name: "Dan Example"},
		},
	})
	connect := func(slug, name, issuer, more string) (id string) {
		t.Helper()
		form := fmt.Sprintf(`{"kind":"oidc","slug":%q,"name":%q,"issuer":%q,"client_id":"stonetown","client_secret":"s3cr3t/with+signs"%s}`, slug, name, issuer, more)
		id, _ = server.call(t, c, "POST", "federation/connections", form, 201)["id"].(string)
		return id
	}
	staff := connect("dex", "Dex", dex.Issuer, `,"domains":["example.com"]`)
	user := func(email string) (data map[string]any) {
		t.Helper()
		status, answer := server.do("GET", "http://"+server.Addr()+"/api/v1/users?email="+url.QueryEscape(email), hostOf(t, c.BaseURL), server.token(c), "")
		list, _ := answer["data"].([]any)
		if status != 200 || len(list) != 1 {
			t.Fatalf("%s: %d %v", email, status, answer)
		}
		data, _ = list[0].(map[string]any)
		return data
	}

	run := func(name string, journey func(t *testing.T, b *browser)) {
		t.Helper()
		t.Run(name, func(t *testing.T) {
			own := *b
			own.T = t
			journey(t, &own)
		})
		if t.Failed() { // the next one begins where this one ends
			t.FailNow()
		}
	}
	run("a first sign-in creates the account", func(t *testing.T, b *browser) {
		b.start(site)
		b.at("/auth/sign-in", "Sign in")
		b.press("Continue with Dex")
		b.atDex("ann@example.com")
		b.arrived("ann@example.com")
		if ann := user("ann@example.com"); ann["name"] != "Ann Example" || ann["email_verified"] != true {
			t.Errorf("%v", ann)
		}
		b.forget()
		b.start(site)
		b.press("Continue with Dex")
		b.atDex("ann@example.com")
		b.arrived("ann@example.com")
	})
	run("by the domain of the address", func(t *testing.T, b *browser) {
		b.forget()
		b.start(site)
		b.press("Sign in with your organisation")
		b.at("/auth/organization", "Sign in with your organisation")
		b.fill("email", "ann@unknown.example")
		b.press("Continue")
		b.says("do not know where")
		b.picture("auth-organization", "unknown")
		b.focused("email")
		b.fill("email", "ann@example.com")
		b.press("Continue")
		b.atDex("ann@example.com")
		b.arrived("ann@example.com")
	})
	run("an address that no side has verified", func(t *testing.T, b *browser) {
		b.forget()
		b.start(site)
		b.press("Continue with Dex")
		b.atDex("cid@example.com")
		b.at("/auth/verify-email", "Confirm your e-mail address")
		b.says("cid@example.com")
		b.letter("Confirm your e-mail address for dev")
		b.press("Yes, this is my address")
		b.press("Continue")
		b.at("/auth/sign-in", "Sign in")
		b.press("Continue with Dex")
		b.atDex("cid@example.com")
		b.arrived("cid@example.com")
	})
	run("a first sign-in proves the account", func(t *testing.T, b *browser) {
		server.call(t, c, "POST", "users", fmt.Sprintf(`{"email":"bob@example.com","email_verified":true,"password":%q}`, password), 201)
		b.forget()
		b.start(site)
		b.press("Continue with Dex")
		b.atDex("bob@example.com")
		b.at("/auth/link-account", "You already have an account")
		b.says("bob@example.com")
		b.press("Sign in another way")
		b.at("/auth/sign-in", "Sign in")
		b.press("Continue with Dex")
		b.atDex("bob@example.com")
		b.at("/auth/link-account", "You already have an account")
		b.fill("password", "wrong password")
		b.press("Continue")
		b.says("This password is wrong.")
		b.picture("auth-link-account", "refused")
		b.focused("password")
		b.fill("password", password)
		b.press("Continue")
		b.arrived("bob@example.com")
		b.forget()
		b.start(site)
		b.press("Continue with Dex")
		b.atDex("bob@example.com")
		b.arrived("bob@example.com")
	})
	run("link and unlink", func(t *testing.T, b *browser) {
		b.open("/account/security")
		b.do(chromedp.Click(chromedp.Search(`//li[contains(., "Dex")]//a`)))
		b.at("/account/remove-identity", "Unlink your Dex account?")
		b.press("Unlink")
		b.says("Removed.")
		b.at("/account/security", "Sign-in and security")
		b.press("Link your Dex account")
		b.atDex("bob@example.com")
		b.at("/account/security", "Sign-in and security")
		b.says("Account linked.")
		b.says("linked ")

		// Another user cannot link the same account.
		b.forget()
		b.open("/auth/sign-in?next=/account/security")
		b.signIn(c.Admin.Email, c.Admin.Password)
		b.at("/account/security", "Sign-in and security")
		b.press("Link your Dex account")
		b.atDex("bob@example.com")
		b.says("cannot be linked")
		b.picture("account-security", "identity of another user")
		b.says(c.Admin.Email) // it is a page of the account
	})
	run("a test of the connection", func(t *testing.T, b *browser) {
		b.forget()
		test := server.call(t, c, "POST", "federation/connections/"+staff+"/test", "", 200)
		b.do(chromedp.Navigate(test["test_url"].(string)))
		b.atDex("dan@elsewhere.example")
		b.at("/federation/dex/callback", "The test succeeded")
		claims := b.text("pre")
		report := server.call(t, c, "GET", "federation/connections/"+staff+"/test/"+test["test_id"].(string), "", 200)
		received, _ := report["claims_received"].(map[string]any)
		if report["state"] != "completed" || report["success"] != true || received["email"] != "dan@elsewhere.example" {
			t.Errorf("%v", report)
		}
		for name, value := range received {
			if text, ok := value.(string); ok && !strings.Contains(claims, fmt.Sprintf("%q: %q", name, text)) {
				t.Errorf("the page does not have %s: %s", name, claims)
			}
		}
		b.says(fmt.Sprintf("%.0f ms", report["duration_ms"]))
		b.open("/account")
		b.at("/auth/sign-in", "Sign in")
		status, answer := server.do("GET", "http://"+server.Addr()+"/api/v1/users?email=dan@elsewhere.example", hostOf(t, c.BaseURL), server.token(c), "")
		if list, _ := answer["data"].([]any); status != 200 || len(list) != 0 {
			t.Errorf("the test created an account: %d %v", status, answer)
		}

		// The URL works once.
		b.do(chromedp.Navigate(test["test_url"].(string)))
		b.says("expired")
		b.picture("federation-start", "used test")
	})
	elsewhere := undecided(t)
	connect("elsewhere", "Elsewhere", elsewhere.URL, fmt.Sprintf(`,"use_discovery":false,"authorization_endpoint":"%[1]s/authorize","token_endpoint":"%[1]s/token","jwks_uri":"%[1]s/keys"`, elsewhere.URL))
	for _, tc := range []struct{ link, says string }{{"Cancel", "cancelled"}, {"Fail", "try again later"}, {"Lie", "not valid"}} {
		run("the provider answers: "+tc.link, func(t *testing.T, b *browser) {
			b.forget()
			b.start(site)
			b.press("Continue with Elsewhere")
			b.press(tc.link)
			b.at("/auth/sign-in", "Sign in")
			b.says(tc.says)
			b.do(chromedp.Reload())
			b.says(tc.says)
			b.picture("federation-callback", tc.link)
			if text := b.text("body"); strings.Contains(text, "555") || strings.Contains(text, "server_error") {
				t.Errorf("the page quotes the provider: %s", text)
			}
			b.press("Continue with Dex")
			b.atDex("ann@example.com")
			b.arrived("ann@example.com")
		})
	}
	run("a canceled link", func(t *testing.T, b *browser) {
		b.open("/account/security")
		b.press("Link your Elsewhere account")
		b.press("Cancel")
		b.says("cancelled")
		b.says("ann@example.com")
		b.press("Link your Elsewhere account")
		b.press("Cancel")
		b.says("cancelled")
	})
	run("an answer to nothing", func(t *testing.T, b *browser) {
		b.forget()
		b.open("/federation/dex/callback?code=1&state=2")
		b.at("/auth/sign-in", "Sign in")
		b.says("has expired")
		b.open("/federation/dex/callback?state=1&state=2&%3Cb%3E=1")
		b.at("/federation/dex/callback", "Something went wrong")
		b.open("/auth/link-account")
		b.at("/auth/sign-in", "Sign in")
	})
	run("a disabled connection", func(t *testing.T, b *browser) {
		b.start(site)
		b.at("/auth/sign-in", "Sign in")
		early, started := b.tab(), b.tab()
		early.start(site)
		early.at("/auth/sign-in", "Sign in")
		started.start(site)
		started.press("Continue with Dex")
		started.do(chromedp.WaitVisible(chromedp.Search(`//h2[normalize-space()="Log in to Your Account"]`)))
		server.call(t, c, "POST", "federation/connections/"+staff+"/disable", "", 200)

		started.atDex("ann@example.com")
		started.at("/auth/sign-in", "Sign in")
		started.says("cannot sign in this way")
		started.fill("email", c.Admin.Email, "password", c.Admin.Password)
		started.press("Sign in")
		started.arrived(c.Admin.Email)
		started.forget()

		early.press("Continue with Dex")
		early.says("cannot sign in this way")
		early.picture("federation-start", "disabled")
		early.press("Sign in another way")
		early.signIn(c.Admin.Email, c.Admin.Password)
		early.arrived(c.Admin.Email)
		early.forget()

		b.start(site)
		b.at("/auth/sign-in", "Sign in")
		if text := b.text("main"); strings.Contains(text, "Continue with Dex") || !strings.Contains(text, "Continue with Elsewhere") {
			t.Errorf("the page has %s", text)
		}
		b.open("/auth/organization")
		b.fill("email", "ann@example.com")
		b.press("Continue")
		b.says("do not know where")
	})
}
