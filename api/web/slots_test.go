package web

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"
)

// A request waits for its place until one is free, and at most for the timeout.
func TestPlaces(t *testing.T) {
	begun, release := make(chan struct{}, 1), make(chan struct{})
	hold := route{op: Operation{ID: "hold", Method: "GET", Path: "/hold"}, do: func(http.ResponseWriter, *http.Request) {
		begun <- struct{}{}
		<-release
	}}
	post := route{op: Operation{ID: "post", Method: "POST", Path: "/post"}, do: func(w http.ResponseWriter, r *http.Request) { io.Copy(w, r.Body) }}
	f := newFixture(t, func(c *Config) {
		c.MaxWorking, c.TenantShare, c.CallerShare, c.Timeout = 1, 100, 100, 50*time.Millisecond
	}, append([]route{hold, post}, things...)...)
	done := make(chan answer)
	go func() { done <- f.do("GET", "/hold", "", "") }()
	<-begun
	want(t, "no place in time", f.do("GET", "/public", "", ""), 503, "service_unavailable")
	// A page takes no place, because it calls operations that do.
	want(t, "page", f.do("GET", "/page", "", ""), 200, "")
	close(release)
	if a := <-done; a.Code != 200 {
		t.Errorf("%d", a.Code)
	}
	want(t, "afterwards", f.do("GET", "/public", "", ""), 200, "")
	if a := f.do("POST", "/post", "", "body"); a.Body.String() != "body" {
		t.Errorf("with a body: %d %s", a.Code, a.Body)
	}
}

// The bodies of requests that have not arrived completely are bounded.
func TestBodiesAreBounded(t *testing.T) {
	var f *fixture
	post := route{op: Operation{ID: "post", Method: "POST", Path: "/post"}, do: func(w http.ResponseWriter, r *http.Request) {
		if _, err := io.ReadAll(r.Body); err != nil {
			f.server.Fail(w, r, BodyError(err))
		}
	}}
	f = newFixture(t, func(c *Config) { c.MaxReceiving, c.TenantShare, c.CallerShare = 1000, 100, 50 }, post)
	want(t, "small", f.do("POST", "/post", "", strings.Repeat("x", 500)), 200, "")
	a := f.do("POST", "/post", "", strings.Repeat("x", 501))
	want(t, "large", a, 503, "service_unavailable")
	if a.detail("share") != "caller" || a.detail("limit") != 500.0 {
		t.Errorf("details of %s", a.Body)
	}
	want(t, "small again", f.do("POST", "/post", "", strings.Repeat("x", 500)), 200, "")
}

// Streams are bounded, and end with the token and with the server.
func TestStreams(t *testing.T) {
	stopping, stop := context.WithCancel(context.Background())
	begun := make(chan struct{}, 1)
	var f *fixture
	watch := route{op: Operation{ID: "watch", Method: "GET", Path: "/watch", Scope: "things:read", Streaming: true}, do: func(w http.ResponseWriter, r *http.Request) {
		lines := NewLines(w)
		if err := lines.Write(map[string]int{"n": 1}); err != nil || lines.Flush() != nil {
			t.Error(err)
		}
		begun <- struct{}{}
		<-r.Context().Done()
	}}
	f = newFixture(t, func(c *Config) {
		c.MaxStreams, c.TenantShare, c.CallerShare, c.Stopping, c.Timeout = 1, 100, 100, stopping, time.Millisecond
	}, watch)
	if a := f.do("HEAD", "/watch", "app", ""); a.Code != 200 || a.Header().Get("Content-Type") != "application/x-ndjson" {
		t.Errorf("HEAD: %d %v", a.Code, a.Header())
	}
	done := make(chan answer)
	go func() { done <- f.do("GET", "/watch", "app", "") }()
	<-begun
	a := f.do("GET", "/watch", "user", "")
	want(t, "one too many", a, 503, "service_unavailable")
	if a.detail("resource") != "streams" || a.Header().Get("Retry-After") != "10" {
		t.Errorf("%s %v", a.Body, a.Header())
	}
	stop()
	if a := <-done; a.Body.String() != `{"n":1}`+"\n" || a.Header().Get("X-Accel-Buffering") != "no" {
		t.Errorf("stream: %s %v", a.Body, a.Header())
	}

	f = newFixture(t, nil, watch)
	f.principals["app"].ExpiresAt = time.Now().Add(30 * time.Millisecond)
	began := time.Now()
	f.do("GET", "/watch", "app", "")
	if took := time.Since(began); took > 10*time.Second {
		t.Errorf("the stream ended %v after its token", took)
	}
}

// A line that cannot be encoded is an error.
func TestLinesThatFail(t *testing.T) {
	lines := NewLines(httptest.NewRecorder())
	if err := lines.Write(make(chan int)); err == nil {
		t.Error("a channel was written")
	}
	if err := lines.WriteAll(1, func(int) any { return make(chan int) }); err == nil {
		t.Error("a channel was written among all lines")
	}
}

// All lines arrive in order, with and without threads that encode them.
func TestWriteAll(t *testing.T) {
	for _, n := range []int{0, 1, linesAtOnce - 1, linesAtOnce, linesAtOnce + 1, 3*linesAtOnce + 7} {
		var want strings.Builder
		for i := range n {
			fmt.Fprintln(&want, i)
		}
		a := newFixture(t, nil, route{op: Operation{ID: "all", Method: "GET", Path: "/all", Scope: "things:read"}, do: func(w http.ResponseWriter, r *http.Request) {
			lines := NewLines(w)
			if lines.encoders == nil {
				t.Error("the server has no threads that encode")
			}
			var line int // the same for all
			if err := lines.WriteAll(n, func(i int) any { line = i; return &line }); err != nil || lines.Flush() != nil {
				t.Error(err)
			}
		}}).do("GET", "/all", "app", "")
		if a.Body.String() != want.String() {
			t.Errorf("%d lines: a body of %d bytes, want %d", n, a.Body.Len(), want.Len())
		}
		if a.Header().Get("Content-Type") != "application/x-ndjson" {
			t.Errorf("%d lines: %s", n, a.Header().Get("Content-Type"))
		}
		recorded := httptest.NewRecorder()
		lines := NewLines(recorded)
		var line int // the same for all
		if err := lines.WriteAll(n, func(i int) any { line = i; return &line }); err != nil || lines.Flush() != nil || recorded.Body.String() != want.String() {
			t.Errorf("%d lines without threads: %d bytes, %v", n, recorded.Body.Len(), err)
		}
	}
}
