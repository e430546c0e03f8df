package eventlog

import (
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
)

// FuzzNew requires that an event can be made of any text, and that its data is a JSON object.
func FuzzNew(f *testing.F) {
	f.Add("plain", []byte(`{"a":[1,null,"\u0000"]}`))
	f.Add("\xff\x00\u2028<&>\"\\", []byte(`"`))
	f.Add("\xed\xa0\x80", []byte(`{"\ud800":1e999}`))
	f.Fuzz(func(t *testing.T, text string, raw []byte) {
		data := struct {
			Text string            `json:"text"`
			List []string          `json:"list"`
			Map  map[string]string `json:"map"`
			Raw  jsontext.Value    `json:"raw,omitzero"`
		}{text, []string{text, text}, map[string]string{text: text}, nil}
		if v := jsontext.Value(raw); v.IsValid() {
			data.Raw = v
		}
		e := New(UserUpdated, Origin{ClientID: text}, data)
		if v := jsontext.Value(e.Data); !v.IsValid() || v.Kind() != '{' || !utf8.Valid(e.Data) {
			t.Errorf("the data is %q", e.Data)
		}
	})
}

// FuzzText compares the stored form of an event with what package json makes of its parts, and reads
// it back.
func FuzzText(f *testing.F) {
	f.Add("", "", "", "", "")
	f.Add("application", "app_a", "client_a", "req_a", "192.0.2.7")
	f.Add("user", "", "", "", "2001:db8::1")
	f.Add("", "née 李\u2028", "", "<&>\"\\", "")
	f.Add("\xff", "\xed\xa0\x80", "\x00", "", "\x7f")
	f.Fuzz(func(t *testing.T, actorType, actorID, client, request, address string) {
		e := New(UserUpdated, Origin{Actor{actorType, actorID}, client, request, address}, map[string]string{"text": actorID})
		want, err := json.Marshal([]any{e.ID, e.Type, e.Origin, jsontext.Value(e.Data)}, jsontext.AllowInvalidUTF8(true))
		if err != nil {
			t.Fatal(err)
		}
		text := e.Text()
		if text != string(want) {
			t.Fatalf("%s, want %s", text, want)
		}
		var read Event
		if err := read.parse(text); err != nil {
			t.Fatal(err)
		}
		if again := read.Text(); again != text {
			t.Errorf("read as %s, want %s", again, text)
		}
	})
}

// TestLargeData stores data several times as large as the largest request, whose members may be
// in an event twice, before and after a change.
func TestLargeData(t *testing.T) {
	everywhere(t, func(f *fixture) {
		for _, text := range []string{strings.Repeat("x", 4<<20), strings.Repeat("\x00", 1<<20), strings.Repeat("\xff", 1<<20)} {
			e := New(UserUpdated, Origin{}, map[string]any{"changes": map[string][2]string{"name": {"", text}}})
			f.append("large", string(e.Data))
		}
		found, err := f.Read(f.Context(), "large", 0, MaxPage)
		if err != nil {
			f.Fatal(err)
		}
		for _, e := range found {
			if len(e.Data) < 1<<20 || !jsontext.Value(e.Data).IsValid() {
				f.Errorf("event %d has %d bytes of data", e.Position, len(e.Data))
			}
		}
		if len(found) != 3 {
			f.Errorf("%d events", len(found))
		}
	})
}
