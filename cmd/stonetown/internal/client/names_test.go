package client

import "testing"

func TestParseSubject(t *testing.T) {
	for text, want := range map[string]Subject{
		"user:ann":                             {"user", "ann", ""},
		"user:*":                               {"user", "*", ""},
		"group:eng#member":                     {"group", "eng", "member"},
		"user:a:b#c#member":                    {"user", "a:b#c", "member"},
		"user:#member":                         {"user", "#member", ""},
		"user:a#B":                             {"user", "a#B", ""},
		"user:a#":                              {"user", "a#", ""},
		`{"type":"t","id":"a#b"}`:              {"t", "a#b", ""},
		`{"type":"t","id":"a","relation":"r"}`: {"t", "a", "r"},
	} {
		if got, err := ParseSubject(text); err != nil || got != want {
			t.Errorf("%s: %+v, %v", text, got, err)
		}
	}
	for _, text := range []string{"", "ann", ":", "user:", ":ann", "{", "{}", `{"type":"t"}`, `{"type":"t","id":"i","more":1}`, `{"type":"t","id":"i"}{}`} {
		if got, err := ParseSubject(text); err == nil {
			t.Errorf("%s: %+v", text, got)
		}
	}
}

func TestParseRef(t *testing.T) {
	for text, want := range map[string]Ref{"document:q3": {"document", "q3"}, "document:a:b#c": {"document", "a:b#c"}} {
		if got, err := ParseRef(text); err != nil || got != want {
			t.Errorf("%s: %+v, %v", text, got, err)
		}
	}
	for _, text := range []string{"", "q3", "document:", ":q3"} {
		if got, err := ParseRef(text); err == nil {
			t.Errorf("%s: %+v", text, got)
		}
	}
}

func TestPrintable(t *testing.T) {
	for text, want := range map[string]string{
		"a b": "a b", "ü": "ü", "\x1b[0m": `"\x1b[0m"`, "a\nb": `"a\nb"`, "\u202e": `"\u202e"`, "\xff": `"\xff"`,
	} {
		if got := Printable(text); got != want {
			t.Errorf("%q: %s, want %s", text, got, want)
		}
	}
}
