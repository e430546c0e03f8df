package web

import (
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
)

// idempotentFixture has an operation that counts how often it ran.
func idempotentFixture(t *testing.T, do func(n int64, w http.ResponseWriter, r *http.Request)) (*fixture, *atomic.Int64) {
	runs := new(atomic.Int64)
	op := Operation{ID: "create", Method: "POST", Path: "/things", Scope: "things:write", MediaType: "application/json", Idempotent: true}
	return newFixture(t, nil, route{op: op, do: func(w http.ResponseWriter, r *http.Request) { do(runs.Add(1), w, r) }}), runs
}

func (f *fixture) create(key, body string) answer {
	return f.do("POST", "/things", "app", body, "Content-Type", "application/json", "Idempotency-Key", key)
}

// The second request with a key gets the response to the first one.
func TestIdempotencyKeys(t *testing.T) {
	f, runs := idempotentFixture(t, func(n int64, w http.ResponseWriter, r *http.Request) {
		text, err := io.ReadAll(r.Body)
		hasKey := r.Header.Get("Idempotency-Key") != ""
		if err != nil || hasKey != (InfoOf(r.Context()).CommitID != "") {
			t.Errorf("with a key: %v, commit id %q, %v", hasKey, InfoOf(r.Context()).CommitID, err)
		}
		w.Header().Set("Location", "/things/1")
		w.Header().Set("X-Other", "1")
		w.WriteHeader(http.StatusCreated)
		fmt.Fprintf(w, "%d %s", n, text)
	})
	first, again := f.create("k", `{"a":1}`), f.create("k", `{"a":1}`)
	if first.Code != 201 || first.Body.String() != `1 {"a":1}` || first.Header().Get("Idempotent-Replayed") != "" {
		t.Errorf("first: %d %s %v", first.Code, first.Body, first.Header())
	}
	if again.Code != 201 || again.Body.String() != first.Body.String() || again.Header().Get("Idempotent-Replayed") != "true" || again.Header().Get("Location") != "/things/1" {
		t.Errorf("again: %d %s %v", again.Code, again.Body, again.Header())
	}
	want(t, "another body", f.create("k", `{"a":2}`), 422, "idempotency_key_reused")
	if other := f.create("l", `{"a":1}`); other.Body.String() != `2 {"a":1}` {
		t.Errorf("another key: %s", other.Body)
	}
	if without := f.do("POST", "/things", "app", "{}", "Content-Type", "application/json"); without.Code != 201 || runs.Load() != 3 {
		t.Errorf("without a key: %d after %d runs", without.Code, runs.Load())
	}
	for _, bad := range []string{"", "a b", strings.Repeat("x", 256)} {
		want(t, "key "+bad, f.create(bad, "{}"), 400, "idempotency_key_invalid")
	}
	want(t, "too large", f.create("large", strings.Repeat("x", MaxBody+1)), 413, "payload_too_large")
}

// A response that would differ the next time is not stored.
func TestResponsesThatAreNotFinal(t *testing.T) {
	for _, status := range []int{401, 403, 408, 413, 429, 500, 503} {
		f, runs := idempotentFixture(t, func(_ int64, w http.ResponseWriter, _ *http.Request) { w.WriteHeader(status) })
		f.create("k", "{}")
		if a := f.create("k", "{}"); a.Code != status || runs.Load() != 2 {
			t.Errorf("%d: ran %d times, %d", status, runs.Load(), a.Code)
		}
	}
	for _, status := range []int{200, 204, 400, 404, 409, 422} {
		f, runs := idempotentFixture(t, func(_ int64, w http.ResponseWriter, _ *http.Request) { w.WriteHeader(status) })
		f.create("k", "{}")
		if a := f.create("k", "{}"); a.Code != status || runs.Load() != 1 {
			t.Errorf("%d: ran %d times, %d", status, runs.Load(), a.Code)
		}
	}
}

// While a request runs, another one with its key is refused; a panic releases the key.
func TestIdempotencyInProgress(t *testing.T) {
	begun, release := make(chan struct{}), make(chan struct{})
	f, _ := idempotentFixture(t, func(n int64, w http.ResponseWriter, _ *http.Request) {
		switch n {
		case 1:
			close(begun)
			<-release
		case 2:
			panic("once")
		}
		w.WriteHeader(http.StatusCreated)
	})
	done := make(chan answer)
	go func() { done <- f.create("k", "{}") }()
	<-begun
	a := f.create("k", "{}")
	want(t, "at the same time", a, 409, "idempotency_in_progress")
	if a.Header().Get("Retry-After") != "1" {
		t.Errorf("Retry-After %q", a.Header().Get("Retry-After"))
	}
	close(release)
	if a := <-done; a.Code != 201 {
		t.Errorf("first: %d", a.Code)
	}
	want(t, "panic", f.create("p", "{}"), 500, "internal_error")
	if a := f.create("p", "{}"); a.Code != 201 || a.Header().Get("Idempotent-Replayed") != "" {
		t.Errorf("after a panic: %d", a.Code)
	}
}

func TestDigest(t *testing.T) {
	same := []string{"a", "bc"}
	if digest("a", "bc") == digest("ab", "c") || digest("a") == digest("a", "") || digest(same...) != digest("a", "bc") {
		t.Error("the digest does not separate its parts")
	}
}
