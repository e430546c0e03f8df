package web

import (
	"bytes"
	"encoding/json"
	"errors"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"reflect"
	"strings"
	"testing"

	"stonetown/internal/seal"
)

// wire is a body with the kinds of member that operations have.
type wire struct {
	Type   string         `json:"type"`
	Count  int            `json:"count"`
	Items  []wire         `json:"items"`
	Labels map[string]any `json:"labels"`
}

// FuzzDecodeJSON compares the strict decoder with the lenient one of the standard library: texts
// that the strict one accepts have the same result in both.
func FuzzDecodeJSON(f *testing.F) {
	for _, seed := range []string{
		"", "null", "{}", "[]", `{"type":"a","count":1}`, `{"type":"a","type":"b"}`, `{"items":[{"items":[{}]}]}`,
		`{"type":"\ud800"}`, "{\"type\":\"\xff\"}", `{"count":1.5}`, `{"count":"1"}`, `{"labels":{"a":{"b":[1,"[{",null]}}}`,
		strings.Repeat("[", 40), strings.Repeat(`{"a":`, 33) + "1" + strings.Repeat("}", 33), `{"type":"a"}{}`, `{"Type":"a"}`, `"\"[["`,
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		var got wire
		r := httptest.NewRequest("POST", "/", bytes.NewReader(text))
		err := DecodeJSON(httptest.NewRecorder(), r, &got)
		if err != nil {
			var e *Error
			if !errors.As(err, &e) || e.Status < 400 || e.Status >= 500 {
				t.Fatalf("not the client's error: %v", err)
			}
			if _, err := json.Marshal(e.Body("req_x")); err != nil {
				t.Fatalf("the error cannot be sent: %v", err)
			}
			return
		}
		if !json.Valid(text) || depth(text) > MaxDepth {
			t.Fatalf("accepted %q", text)
		}
		if string(text) != strings.ToLower(string(text)) || strings.ContainsAny(string(text), "\\\u017f") {
			return // the lenient decoder also takes names in another case, escaped or folded
		}
		var want wire
		if err := json.Unmarshal(text, &want); err != nil || !reflect.DeepEqual(got, want) {
			t.Fatalf("%q became %+v, encoding/json says %+v, %v", text, got, want, err)
		}
	})
}

// FuzzDepth compares the scanner with a parser.
func FuzzDepth(f *testing.F) {
	for _, seed := range []string{"", "1", `[]`, `{"a":[{}]}`, `"[{"`, `"\\"`, `["\"",[]]`, `["\\",[[]]]`} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		if !json.Valid([]byte(text)) {
			return
		}
		want, level := 0, 0
		decoder := json.NewDecoder(strings.NewReader(text))
		for {
			token, err := decoder.Token()
			if err != nil {
				break
			}
			switch token {
			case json.Delim('{'), json.Delim('['):
				level++
				want = max(want, level)
			case json.Delim('}'), json.Delim(']'):
				level--
			}
		}
		if got := depth([]byte(text)); got != want {
			t.Errorf("depth of %q is %d, want %d", text, got, want)
		}
	})
}

type position struct {
	A string `json:"a"`
	N int64  `json:"n"`
}

func newCursors(t testing.TB, fill byte) *Cursors {
	t.Helper()
	c, err := NewCursors(bytes.Repeat([]byte{fill}, seal.KeySize))
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func TestCursor(t *testing.T) {
	c := newCursors(t, 1)
	list := []string{"list", "a", "b"}
	want := position{"x/\"ü", 1 << 62}
	cursor, err := c.Next("tnt_a", list, want)
	if err != nil {
		t.Fatal(err)
	}
	var got position
	if err := c.Resume("tnt_a", list, cursor, &got); err != nil || got != want {
		t.Fatalf("got %v, %v, want %v", got, err, want)
	}
	for name, resume := range map[string]func() error{
		"other tenant": func() error { return c.Resume("tnt_b", list, cursor, &got) },
		"other filter": func() error { return c.Resume("tnt_a", []string{"list", "a", "c"}, cursor, &got) },
		"moved filter": func() error { return c.Resume("tnt_a", []string{"list", "a b", ""}, cursor, &got) },
		"other key":    func() error { return newCursors(t, 2).Resume("tnt_a", list, cursor, &got) },
		"other list":   func() error { return c.Resume("tnt_a", []string{"other", "a", "b"}, cursor, &got) },
		"empty":        func() error { return c.Resume("tnt_a", list, "", &got) },
	} {
		var e *Error
		if err := resume(); !errors.As(err, &e) || e.Code != "cursor_invalid" {
			t.Errorf("%s: %v, want cursor_invalid", name, err)
		}
	}
	if _, err := NewCursors([]byte("short")); err == nil {
		t.Error("a short key was accepted")
	}
}

// FuzzCursor accepts only issued cursors, and each only for its own list.
func FuzzCursor(f *testing.F) {
	c := newCursors(f, 1)
	f.Add("", 0, byte(0), "list")
	f.Add("AAAA", 0, byte(0), "other")
	f.Add(strings.Repeat("A", 64), 5, byte(1), "list")
	f.Add("\x00", 63, byte('a'^'b'), "list")
	f.Fuzz(func(t *testing.T, free string, at int, flip byte, list string) {
		var p position
		if c.Resume("tnt_a", []string{list}, free, &p) == nil {
			t.Fatalf("%q was taken for a cursor", free)
		}
		issued, err := c.Next("tnt_a", []string{"list"}, position{"a", 1})
		if err != nil {
			t.Fatal(err)
		}
		changed := []byte(issued)
		changed[uint(at)%uint(len(changed))] ^= flip
		err = c.Resume("tnt_a", []string{list}, string(changed), &p)
		if (err == nil) != (flip == 0 && list == "list") {
			t.Errorf("position %d of a cursor changed by %d, for list %q: %v", at, flip, list, err)
		}
	})
}

func TestAddressKey(t *testing.T) {
	for ip, want := range map[string]string{
		"192.0.2.1": "192.0.2.1", "2001:db8:1:2:3:4:5:6": "2001:db8:1:2::/64", "2001:db8:1:2::1": "2001:db8:1:2::/64", "fe80::1%eth0": "fe80::/64",
	} {
		if got := addressKey(netip.MustParseAddr(ip)); got != want {
			t.Errorf("%s: %s, want %s", ip, got, want)
		}
	}
}

func TestClientIP(t *testing.T) {
	s := &Server{trusted: []netip.Prefix{netip.MustParsePrefix("10.0.0.0/8")}}
	for _, tc := range []struct{ peer, forwarded, want string }{
		{"192.0.2.1:99", "", "192.0.2.1"},
		{"192.0.2.1:99", "198.51.100.1", "192.0.2.1"}, // not a proxy of ours
		{"10.0.0.1:99", "198.51.100.1", "198.51.100.1"},
		{"10.0.0.1:99", "203.0.113.9, 198.51.100.1", "198.51.100.1"}, // the client wrote the rest
		{"10.0.0.1:99", "198.51.100.1, 10.0.0.2", "198.51.100.1"},
		{"10.0.0.1:99", "198.51.100.1, junk", "10.0.0.1"},
		{"10.0.0.1:99", "", "10.0.0.1"},
		{"[::ffff:10.0.0.1]:99", "2001:db8::1", "2001:db8::1"},
	} {
		r := &http.Request{RemoteAddr: tc.peer, Header: http.Header{}}
		if tc.forwarded != "" {
			r.Header.Set("X-Forwarded-For", tc.forwarded)
		}
		if got := s.clientIP(r); got.String() != tc.want {
			t.Errorf("peer %s, forwarded %q: %s, want %s", tc.peer, tc.forwarded, got, tc.want)
		}
	}
}
