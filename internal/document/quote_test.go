package document

import (
	"testing"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
)

// FuzzAppendQuote compares with package json.
func FuzzAppendQuote(f *testing.F) {
	for _, text := range []string{
		"", "plain", `"`, `\`, "\x00\x1f\x7f\b\f\n\r\t", "<&>", "é李👩\u200d💻", "\u2028\u2029\ufffd\ufeff", "a\xff", "\xed\xa0\x80b", "\xf0\x9f",
	} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		want, err := json.Marshal(text, jsontext.AllowInvalidUTF8(true))
		if err != nil {
			t.Fatal(err)
		}
		if got := AppendQuote([]byte("b"), text); string(got) != "b"+string(want) {
			t.Errorf("%q: %s, want b%s", text, got, want)
		}
	})
}
