package client

import (
	"errors"
	"strings"
	"testing"
)

// Redirect URIs that could lead a code to another receiver are refused (RFC 8252, RFC 9700
// §4.1), and those of a forbidden form with an error of their own.
func TestRedirectURIs(t *testing.T) {
	for uri, reason := range map[string]string{
		"https://app.example.com/callback": "", "https://app.example.com": "", "https://app.example.com:8443/a?b=c": "", "http://127.0.0.1:8080/cb": "",
		"http://[::1]/cb": "", "http://localhost:3000": "", "https://xn--mnchen-3ya.example/": "", "https://app.example.com/a%20b": "",

		"": "length", "https://app.example.com/" + strings.Repeat("x", 2048): "length", "https://": "scheme", "http://app.example.com/cb": "scheme",
		"http://127.0.0.1.example.com/": "scheme", "http://localhost.example.com/": "scheme", "ftp://app.example.com/": "scheme", "https:app.example.com": "malformed",
		"https://App.example.com/": "host", "com.example.app:/cb": "scheme", "myapp:/cb": "scheme", "https://[::1": "malformed", "https://a b": "!control_char",

		"https://*.example.com/": "!wildcard", "https://app.example.com/*": "!wildcard", "https://app.example.com/#a": "!fragment", "https://app.example.com/#": "!fragment",
		"javascript:alert(1)": "!scheme", "JavaScript:alert(1)": "!scheme", "data:text/html,x": "!scheme", "file:///etc/passwd": "!scheme", "blob:https://x": "!scheme", "vbscript:x": "!scheme",
		"/callback": "!relative", "callback": "!relative", "//app.example.com/": "!relative", "https://ann@app.example.com/": "!userinfo", "https://a:b@app.example.com/": "!userinfo",
		"https://app.example.com@evil.test/": "!userinfo", "https://app.example.com\\@evil.test/": "!control_char", "https://app.example.com/\tx": "!control_char", "https://app.example.com/\nx": "!control_char",
		"https://app.example.com/a/../b": "!path", "https://app.example.com/a/..": "!path", "https://app.example.com/%2e%2e/b": "!path", "https://app.example.com/..;/b": "!path", "https://app.example.com/.%2E/b": "!path",
		"https://münchen.example/": "!control_char", "https://app.example.com%2f.evil.test/": "malformed", "https://[fe80::1%25eth0]/": "!host", "https://app.example.com/\x00": "!control_char",
	} {
		err := allowed{}.validateRedirectURI(Server, uri)
		var refused *RedirectURIError
		got := ""
		if errors.As(err, &refused) {
			if got = refused.Reason; refused.Forbidden {
				got = "!" + got
			}
		}
		if got != reason {
			t.Errorf("%q: %q, want %q", uri, got, reason)
		}
	}
	for uri, want := range map[string]bool{"com.example.app:/cb": true, "com.example.app://cb": true, "myapp://cb": false, "com.example.app:cb": true, "http://127.0.0.1/": true, "com.example*:/cb": false} {
		if err := (allowed{}).validateRedirectURI(Native, uri); (err == nil) != want {
			t.Errorf("native %q: %v", uri, err)
		}
	}
}

// For development, hosts under .localhost are those of this machine.
func TestLocalRedirectURIs(t *testing.T) {
	for uri, want := range map[string]bool{
		"http://app.localhost:3000/cb": true, "http://a.b.localhost": true, "http://localhost:1": true, "https://app.localhost": true,
		"http://.localhost.example.com": false, "http://applocalhost": false, "http://app.localhost.": false, "http://app.localhost@evil.test": false, "http://App.localhost": false,
	} {
		if err := (allowed{localRedirects: true}).validateRedirectURI(Server, uri); (err == nil) != want {
			t.Errorf("%q: %v", uri, err)
		}
	}
	if err := (allowed{}).validateRedirectURI(Server, "http://app.localhost:3000/cb"); err == nil {
		t.Error("accepted in production")
	}
}

func FuzzRedirectURI(f *testing.F) {
	f.Add("https://app.example.com/callback")
	f.Add("https://a@b/..;/%2e%2e#")
	f.Fuzz(func(t *testing.T, uri string) {
		for _, typ := range Types {
			if (allowed{}).validateRedirectURI(typ, uri) == nil && (strings.ContainsAny(uri, "*#\\ \t\r\n\x00") || strings.HasPrefix(strings.ToLower(uri), "javascript:")) {
				t.Errorf("%q is accepted", uri)
			}
		}
	})
}
