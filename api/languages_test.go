package api_test

import (
	"net/http"
	"net/url"
	"strings"
	"testing"
)

// speaks visits a page and compares its language and a text of it.
func speaks(t *testing.T, c *client, target string, header http.Header, language, text string) shown {
	t.Helper()
	p := c.visit(t, "GET", target, header, nil)
	direction := "ltr"
	if language == "ar" {
		direction = "rtl"
	}
	if !strings.Contains(p.html, `<html lang="`+language+`" dir="`+direction+`">`) || !strings.Contains(p.html, text) {
		t.Errorf("%s with %v: not in %s, or without %q:\n%s", target, header, language, text, p.html)
	}
	return p
}

// languages: pages and messages are in the language that the application asks for, else in that of
// the user, else in that of the browser.
func languages(t *testing.T, w *world, c *client) {
	accept := func(languages string) http.Header { return http.Header{"Accept-Language": {languages}} }
	for browser, want := range map[string][2]string{
		"": {"en", "Forgot your password?"}, "xx": {"en", "Forgot your password?"}, "de-CH,de;q=0.9,en;q=0.8": {"de", "Passwort vergessen?"},
		"fr": {"fr", "Mot de passe oublié"}, "es-MX": {"es", "contraseña"}, "pt-BR": {"pt", "palavra-passe"}, "ja": {"ja", "パスワード"}, "ar": {"ar", "كلمة المرور"},
	} {
		speaks(t, c, "/auth/sign-in", accept(browser), want[0], want[1])
	}
	speaks(t, c, "/nowhere", http.Header{"Accept": {"text/html"}, "Accept-Language": {"de"}}, "de", "Seite nicht gefunden")
	p := c.visit(t, "POST", "/auth/sign-in", accept("de"), url.Values{"email": {"nobody@example.com"}, "password": {secret}})
	equal(t, "a problem in German", []any{p.status, strings.Contains(p.html, "Die E-Mail-Adresse oder das Passwort ist falsch.")}, []any{401, true})
	p = c.visit(t, "POST", "/auth/sign-up", accept("de"), url.Values{"email": {"short@example.com"}, "password": {"abc"}})
	equal(t, "a plural form", strings.Contains(p.html, "Das Passwort braucht mindestens 8 Zeichen."), true)

	// An account that was created on a page has the language of the page, and so have its messages.
	p = c.visit(t, "POST", "/auth/sign-up", accept("de-AT"), url.Values{"email": {"eva@example.com"}, "password": {secret}})
	equal(t, "sign-up", p.status, 303)
	mail := w.mailbox.take(t, "eva@example.com", "Bestätigen Sie Ihre E-Mail-Adresse")
	equal(t, "the lifetime of the link", strings.Contains(mail.Text, "Der Link gilt 24 Stunden."), true)

	// The user's language is before that of the browser.
	member(t, c, "ann@example.com")
	session := signIn(t, c, "ann@example.com", secret, "complete").data()["session_token"].(string)
	c.with(session).want(t, 200, "", "PATCH", mePath+"/profile", object{"locale": "es"})
	german := asBrowser(session)
	german.Set("Accept-Language", "de")
	speaks(t, c, "/account", german, "es", "Guardar")

	// The application's wish is before both, on all pages of the sign-in.
	rp := newParty(t, c, object{"redirect_uris": []any{callback}})
	wish := func(locales ...string) *url.URL {
		t.Helper()
		_, to := rp.browse(t, "/oauth2/authorize?"+rp.request(url.Values{"ui_locales": locales, "prompt": {"login"}}).Encode())
		return to
	}
	to := wish("xx fr-CA de")
	p = speaks(t, c, to.String(), german, "fr", "Mot de passe oublié")
	cookie, _, _ := strings.Cut(p.header.Get("Set-Cookie"), ";")
	equal(t, "the cookie", cookie, "__Host-locale=fr")
	later := http.Header{"Cookie": {cookie}, "Accept-Language": {"de"}}
	speaks(t, c, "/auth/reset-password", later, "fr", "mot de passe")
	for _, ignored := range []string{`"><script>alert(1)</script>`, strings.Repeat("de ", 100), "de\x00", "xx", "__Host-sid=x; Path"} {
		to := wish(ignored)
		p := speaks(t, c, to.String(), accept("ja"), "ja", "パスワード")
		equal(t, "no cookie of "+ignored, p.header.Get("Set-Cookie"), "")
	}
	equal(t, "a repeated parameter", wish("de", "fr").Query().Get("error"), "invalid_request")
	equal(t, "discovery", c.want(t, 200, "", "GET", "/.well-known/openid-configuration", nil).body["ui_locales_supported"], []any{"en", "de", "fr", "es", "pt", "ja", "ar"})
}
