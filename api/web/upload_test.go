package web

import (
	"bytes"
	"compress/gzip"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
)

func compressed(t *testing.T, text string) string {
	t.Helper()
	var b bytes.Buffer
	z := gzip.NewWriter(&b)
	if _, err := io.WriteString(z, text); err != nil {
		t.Fatal(err)
	}
	if err := z.Close(); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

func TestUploads(t *testing.T) {
	const most = 4 << 20
	var f *fixture
	f = newFixture(t, nil, route{op: Operation{ID: "upload", Method: "POST", Path: "/upload", Scope: "things:write", MaxUpload: most, Idempotent: true}, do: func(w http.ResponseWriter, r *http.Request) {
		defer r.Body.Close()
		text, err := io.ReadAll(r.Body)
		if err != nil {
			f.server.Fail(w, r, err)
			return
		}
		_ = WriteJSON(w, http.StatusOK, map[string]int{"read": len(text)})
	}})
	packed := compressed(t, strings.Repeat("a line of an upload\n", 1000))
	for name, c := range map[string]struct {
		body, encoding string
		status         int
		code           string
	}{
		"plain":            {"rows", "", 200, ""},
		"identity":         {"rows", "identity", 200, ""},
		"gzip":             {packed, "gzip", 200, ""},
		"not gzip":         {"rows", "gzip", 400, "validation_failed"},
		"truncated gzip":   {packed[:len(packed)-4], "gzip", 400, "validation_failed"},
		"another encoding": {"rows", "br", 415, "unsupported_media_type"},
		"too large":        {strings.Repeat("x", most+1), "", 413, "payload_too_large"},
		"bomb":             {compressed(t, strings.Repeat("x", most)), "gzip", 413, "payload_too_large"},
	} {
		t.Run(name, func(t *testing.T) {
			var header []string
			if c.encoding != "" {
				header = []string{"Content-Encoding", c.encoding}
			}
			want(t, name, f.do("POST", "/upload", "app", c.body, header...), c.status, c.code)
		})
	}
	// Requests with one key count as equal: the body is not compared.
	f.do("POST", "/upload", "app", "rows", "Idempotency-Key", "k")
	if a := f.do("POST", "/upload", "app", "other", "Idempotency-Key", "k"); a.Header().Get("Idempotent-Replayed") != "true" {
		t.Errorf("%d %v", a.Code, a.Header())
	}
}

func TestDocuments(t *testing.T) {
	d := Document{Body: []byte("{}"), MediaType: "application/json", CacheControl: "max-age=60"}
	get := func(tag string) *httptest.ResponseRecorder {
		r := httptest.NewRequest("GET", "/", nil)
		if tag != "" {
			r.Header.Set("If-None-Match", tag)
		}
		w := httptest.NewRecorder()
		d.Serve(w, r)
		return w
	}
	first := get("")
	tag := first.Header().Get("ETag")
	if first.Code != 200 || first.Body.String() != "{}" || first.Header().Get("Cache-Control") != "max-age=60" || first.Header().Get("Access-Control-Allow-Origin") != "*" {
		t.Errorf("%d %s %v", first.Code, first.Body, first.Header())
	}
	for have, status := range map[string]int{tag: 304, "*": 304, `"other", ` + tag: 304, `"other"`: 200} {
		if got := get(have); got.Code != status {
			t.Errorf("If-None-Match %s: %d, want %d", have, got.Code, status)
		}
	}
}
