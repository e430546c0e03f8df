package web

import (
	"net/http"
	"slices"
	"testing"
)

func TestWarn(t *testing.T) {
	info := RequestInfo{header: http.Header{}}
	info.Warn(`use "b" \ now`)
	info.Warn("a\r\nSet-Cookie: x=y\x00\u0085é")
	want := []string{`299 - "use \"b\" \\ now"`, `299 - "a  Set-Cookie: x=y  é"`}
	if got := info.header["Warning"]; !slices.Equal(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
}
