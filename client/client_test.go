package client

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"
)

// server answers requests in memory, so that tests can run on the clock of testing/synctest. It
// issues tokens itself and calls handle for other requests.
type server struct {
	t      *testing.T
	handle func(w http.ResponseWriter, r *http.Request)

	mu       sync.Mutex
	tokens   int                                                  // issued so far
	token    func() (status int, header http.Header, body string) // nil: issue one
	requests []seen
}

type seen struct {
	method, path, key, authorization string
	at                               time.Time
}

func (s *server) RoundTrip(r *http.Request) (*http.Response, error) {
	if err := r.Context().Err(); err != nil {
		return nil, err
	}
	recorder := httptest.NewRecorder()
	if r.URL.Path == "/oauth2/token" {
		s.issue(recorder, r)
		return recorder.Result(), nil
	}
	s.mu.Lock()
	s.requests = append(s.requests, seen{
		method: r.Method, path: r.URL.EscapedPath(), key: r.Header.Get("Idempotency-Key"),
		authorization: r.Header.Get("Authorization"), at: time.Now(),
	})
	s.mu.Unlock()
	lost := false
	recorder.Header().Set("Content-Type", "application/json")
	func() {
		defer func() {
			p := recover()
			err, _ := p.(error)
			lost = errors.Is(err, http.ErrAbortHandler)
			if p != nil && !lost {
				panic(p)
			}
		}()
		s.handle(recorder, r)
	}()
	if lost {
		return nil, fmt.Errorf("connection reset")
	}
	return recorder.Result(), nil
}

func (s *server) issue(w http.ResponseWriter, r *http.Request) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if id, secret, _ := r.BasicAuth(); id != "id" || secret != "secret" {
		s.t.Errorf("token request of %q", id)
	}
	if s.token != nil {
		if status, header, body := s.token(); status != 0 {
			for name, values := range header {
				w.Header()[name] = values
			}
			w.WriteHeader(status)
			fmt.Fprint(w, body)
			return
		}
	}
	s.tokens++
	w.Header().Set("Content-Type", "application/json")
	fmt.Fprintf(w, `{"access_token":"token-%d","token_type":"Bearer","expires_in":600}`, s.tokens)
}

func (s *server) client(patience time.Duration) *Client {
	s.t.Helper()
	c, err := New(Config{BaseURL: "http://dev.localhost/", ClientID: "id", ClientSecret: "secret", HTTP: &http.Client{Transport: s}, Patience: patience})
	if err != nil {
		s.t.Fatal(err)
	}
	return c
}

// refuse answers with an error of the API.
func refuse(w http.ResponseWriter, status int, code string, details map[string]any) {
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(map[string]any{"error": code, "message": "because", "details": details, "request_id": "req_1"})
}

func answer(w http.ResponseWriter, data string) {
	fmt.Fprintf(w, `{"data":%s,"meta":{"request_id":"req_1","consistency_token":"ct"}}`, data)
}

func decode(t *testing.T, r *http.Request) (body map[string]any) {
	t.Helper()
	if err := json.NewDecoder(r.Body).Decode(&body); err != nil {
		t.Error(err)
	}
	return body
}

var ann = Tuple{Resource: Ref{"document", "q3"}, Relation: "viewer", Subject: Subject{Type: "user", ID: "ann"}}

func contains(t *testing.T, err error, words ...string) {
	t.Helper()
	for _, word := range words {
		if err == nil || !strings.Contains(err.Error(), word) {
			t.Errorf("%v, want a word about %q", err, word)
		}
	}
}
