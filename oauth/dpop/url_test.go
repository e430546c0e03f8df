package dpop

import (
	"strings"
	"testing"
	"unicode/utf8"
)

func TestNormalize(t *testing.T) {
	for text, want := range map[string]string{
		"https://a.example.com":                   "https://a.example.com/",
		"https://a.example.com/":                  "https://a.example.com/",
		"HTTPS://A.Example.COM:443/x":             "https://a.example.com/x",
		"https://a.example.com:/x":                "https://a.example.com/x",
		"http://localhost:80/x":                   "http://localhost/x",
		"http://localhost:8080/x":                 "http://localhost:8080/x",
		"https://a.example.com:80/x":              "https://a.example.com:80/x",
		"https://[2001:DB8::1]:443/x":             "https://[2001:db8::1]/x",
		"https://a.example.com/X":                 "https://a.example.com/X",
		"https://a.example.com/%7Ex%2dy%41":       "https://a.example.com/~x-yA",
		"https://a.example.com/a%2fb%3a%e2%82%ac": "https://a.example.com/a%2Fb%3A%E2%82%AC",
		"https://a.example.com/a%252e":            "https://a.example.com/a%252e",
		"https://a.example.com/a:b@c!$&'()*+,;=d": "https://a.example.com/a:b@c!$&'()*+,;=d",
		"https://a.example.com/a|b%2f€[]":         "https://a.example.com/a%7Cb%2F%E2%82%AC%5B%5D",
		"https://a.example.com/a/./b/../c":        "https://a.example.com/a/c",
		"https://a.example.com/a/%2e%2E/b":        "https://a.example.com/b",
		"https://a.example.com/../../a/..":        "https://a.example.com/",
		"https://a.example.com/a/b/.":             "https://a.example.com/a/b/",
		"https://a.example.com/a/...":             "https://a.example.com/a/...",
		"https://a.example.com//a//b/":            "https://a.example.com//a//b/",
		"https://a.example.com/x?y=/../z#/../w":   "https://a.example.com/x",
		"https://a.example.com?y":                 "https://a.example.com/",
	} {
		if got, ok := normalize(text); !ok || got != want {
			t.Errorf("%s: %q, %v, want %q", text, got, ok, want)
		}
	}
	for _, text := range []string{
		"", "/x", "//a.example.com/x", "a.example.com/x", "https:x", "https:///x", "https://:443/x", "https://x@a.example.com/", "https://x:y@a.example.com/",
		"ftp://a.example.com/", "javascript://a.example.com/x", "https://a.example.com/%zz", "https://a.example.com/%2", "https://a.example.com:x/", "https://a b/", "https://a.example.com/\x00",
	} {
		if got, ok := normalize(text); ok {
			t.Errorf("%q is %q", text, got)
		}
	}
}

// FuzzNormalize: what is normal stays as it is; host and scheme do not depend on their
// case, nothing on query and fragment; and no dot segment is left.
func FuzzNormalize(f *testing.F) {
	for _, seed := range []string{"https://a.example.com/x", "HTTP://A:80/%2e%2E/%7e//.", "https://[::1]:8443/a/../..", "https://a/a|€%e2", "https://a%41/", "https://x@y"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		once, ok := normalize(text)
		if !ok {
			return
		}
		if twice, ok := normalize(once); !ok || twice != once {
			t.Errorf("%q is %q, and that is %q, %v", text, once, twice, ok)
		}
		if !strings.ContainsAny(text, "?#") {
			if longer, ok := normalize(text + "?a/../b#c"); !ok || longer != once {
				t.Errorf("with a query: %q, %v, want %q", longer, ok, once)
			}
		}
		scheme, rest, _ := strings.Cut(once, "://")
		host, path, found := strings.Cut(rest, "/")
		ascii := strings.IndexFunc(host, func(r rune) bool { return r >= utf8.RuneSelf }) < 0
		if upper, ok := normalize(strings.ToUpper(scheme) + "://" + strings.ToUpper(host) + "/" + path); !found || ascii && (!ok || upper != once) {
			t.Errorf("%q in upper case is %q, %v", once, upper, ok)
		}
		for segment := range strings.SplitSeq(path, "/") {
			if segment == "." || segment == ".." {
				t.Errorf("%q is %q", text, once)
			}
		}
	})
}
