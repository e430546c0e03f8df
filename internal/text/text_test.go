package text

import "testing"

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
