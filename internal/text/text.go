// Package text validates texts that are shown to users, such as names in lists, mails and
// logs: a line break or an escape sequence could make one text look like another.
package text

import (
	"strings"
	"unicode"
	"unicode/utf8"

	"golang.org/x/text/unicode/norm"
)

// IsStorable reports whether every database can store a text: it is UTF-8 without NUL.
func IsStorable(s string) bool { return utf8.ValidString(s) && strings.IndexByte(s, 0) < 0 }

// IsLine reports whether a text is valid UTF-8 and one line: it has no control characters
// and no line or paragraph separators.
func IsLine(s string) bool {
	return utf8.ValidString(s) && !strings.ContainsFunc(s, breaks)
}

// IsParagraphs reports whether a text is valid UTF-8 and has no control characters but line
// breaks and tabs.
func IsParagraphs(s string) bool {
	return utf8.ValidString(s) && !strings.ContainsFunc(s, func(r rune) bool {
		return unicode.IsControl(r) && r != '\n' && r != '\r' && r != '\t'
	})
}

func breaks(r rune) bool { return unicode.IsControl(r) || r == '\u2028' || r == '\u2029' }

// Fold returns the form of a text by which it is compared without regard to case: lower case,
// in NFC.
func Fold(s string) string { return strings.ToLower(norm.NFC.String(s)) }

const maxQuote = 200 // characters

// Quote returns a text of others, for logs, in quotation marks, without control characters and the
// rest of a long text.
func Quote(s string) string {
	s = strings.Map(func(r rune) rune {
		if unicode.IsPrint(r) && r != unicode.ReplacementChar {
			return r
		}
		return ' '
	}, s)
	if runes := []rune(s); len(runes) > maxQuote {
		s = string(runes[:maxQuote]) + "…"
	}
	return `"` + s + `"`
}
