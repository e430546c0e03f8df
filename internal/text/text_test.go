package text

import (
	"strings"
	"testing"
)

func TestTexts(t *testing.T) {
	for _, tc := range []struct {
		text             string
		line, paragraphs bool
	}{
		{"", true, true},
		{"Ann-Sophie O'Brien, née Müller 李", true, true},
		{"👩\u200d💻", true, true}, // joined by a character that shows nothing
		{"a\nb", false, true},
		{"a\r\nb\tc", false, true},
		{"a\u2028b", false, true},
		{"a\x00b", false, false},
		{"a\x1b[2Jb", false, false},
		{"a\u0085b", false, false},
		{"a\x7fb", false, false},
		{"\xff", false, false},
	} {
		if IsLine(tc.text) != tc.line || IsParagraphs(tc.text) != tc.paragraphs {
			t.Errorf("%q: line %v, paragraphs %v", tc.text, IsLine(tc.text), IsParagraphs(tc.text))
		}
	}
}

func TestQuote(t *testing.T) {
	for in, want := range map[string]string{
		"":                          `""`,
		"urn:a":                     `"urn:a"`,
		"a\nb\x00\u2028c\xff":       `"a b  c "`,
		strings.Repeat("ä", 201):    `"` + strings.Repeat("ä", 200) + `…"`,
		`he said "no"` + "\x1b[31m": `"he said "no" [31m"`,
	} {
		if got := Quote(in); got != want {
			t.Errorf("Quote(%q) = %s, want %s", in, got, want)
		}
	}
}
