package client

import (
	"strings"
	"testing"
)

func TestParseSubject(t *testing.T) {
	if got, err := ParseSubject("group:eng#member"); err != nil || got != (Subject{Type: "group", ID: "eng", Relation: "member"}) {
		t.Errorf("%+v, %v", got, err)
	}
	for text, want := range map[string]string{"ann": `"ann" is not a subject: type:id`, "{}": `"{}" is not a subject in JSON`} {
		if _, err := ParseSubject(text); err == nil || !strings.HasPrefix(err.Error(), want) {
			t.Errorf("%s: %v", text, err)
		}
	}
}

func TestParseRef(t *testing.T) {
	if got, err := ParseRef("document:q3"); err != nil || got != (Ref{Type: "document", ExternalID: "q3"}) {
		t.Errorf("%+v, %v", got, err)
	}
	if _, err := ParseRef("q3"); err == nil || !strings.HasPrefix(err.Error(), `"q3" is not a resource`) {
		t.Errorf("%v", err)
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
