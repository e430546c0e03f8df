package web

import (
	"net/url"
	"testing"
)

func TestIsLocalPath(t *testing.T) {
	for text, want := range map[string]bool{
		"/": true, "/account": true, "/oauth2/authorize/resume?flow=flw_x": true, "/a?b=//c": true, "/a#b": true, "/%2F/evil.test": true,
		"": false, "account": false, "https://evil.test": false, "//evil.test": false, "///evil.test": false, "/\\evil.test": false, "\\\\evil.test": false, "/a\\b": false,
		"/\tevil": false, "/\n/evil.test": false, "/a\x00": false, "/a\x7f": false, "javascript:alert(1)": false, "http:evil.test": false, " /a": false, "/%zz": false,
	} {
		if IsLocalPath(text) != want {
			t.Errorf("%q: %v", text, !want)
		}
	}
}

// FuzzIsLocalPath resolves accepted paths as a browser does. The host stays the same.
func FuzzIsLocalPath(f *testing.F) {
	for _, text := range []string{"/a", "//evil.test", "/\\evil.test", "https:/evil.test", "/a?b#c", "/..//evil.test"} {
		f.Add(text)
	}
	base := &url.URL{Scheme: "https", Host: "own.test", Path: "/auth/sign-in"}
	f.Fuzz(func(t *testing.T, text string) {
		if !IsLocalPath(text) {
			return
		}
		to, err := base.Parse(text)
		if err != nil || to.Scheme != "https" || to.Host != "own.test" || to.User != nil {
			t.Errorf("%q leads to %v, %v", text, to, err)
		}
	})
}
