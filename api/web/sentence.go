package web

import (
	"strings"
	"unicode"
	"unicode/utf8"
)

// Sentence turns a message into a sentence, with a capital letter and a full stop.
func Sentence(text string) string {
	first, size := utf8.DecodeRuneInString(text)
	if size == 0 {
		return text
	}
	text = string(unicode.ToUpper(first)) + text[size:]
	if !strings.HasSuffix(text, ".") {
		text += "."
	}
	return text
}
