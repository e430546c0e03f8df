package document

import (
	"unicode/utf8"

	"github.com/go-json-experiment/json/jsontext"
)

// AppendQuote appends a text as a JSON string, in the form that package json gives it. Bytes that
// are not UTF-8 become U+FFFD.
func AppendQuote(b []byte, text string) []byte {
	for _, c := range []byte(text) {
		if c < ' ' || c == '"' || c == '\\' || c >= utf8.RuneSelf {
			quoted, _ := jsontext.AppendQuote(nil, text) // the error only tells of such bytes
			return append(b, quoted...)                  // b itself may stay on the stack of the caller
		}
	}
	return append(append(append(b, '"'), text...), '"')
}
