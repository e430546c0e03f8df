package client

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

// answering answers checks after a second: those about ann are allowed, and those about absent
// resources have no answer. It records the sizes of the batches.
func answering(t *testing.T, sizes *[]int) *server {
	var mu sync.Mutex
	return &server{t: t, handle: func(w http.ResponseWriter, r *http.Request) {
		checks, _ := decode(t, r)["checks"].([]any)
		mu.Lock()
		*sizes = append(*sizes, len(checks))
		mu.Unlock()
		time.Sleep(time.Second)
		var decisions string
		for i, c := range checks {
			check := c.(map[string]any)
			decision := fmt.Sprintf(`{"allowed":%v}`, check["subject"].(map[string]any)["id"] == "ann")
			if check["resource"].(map[string]any)["external_id"] == "absent" {
				decision = `{"allowed":false,"error":"resource_not_found"}`
			}
			if i > 0 {
				decisions += ","
			}
			decisions += decision
		}
		answer(w, "["+decisions+"]")
	}}
}

// Checks that arrive while a batch is in progress are the next batch, each with its own answer.
func TestBatcher(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var sizes []int
		b := NewBatcher(answering(t, &sizes).client(time.Minute))
		var all sync.WaitGroup
		ask := func(user, id string, want bool) {
			all.Go(func() {
				allowed, err := b.Allowed(t.Context(), Subject{Type: "user", ID: user}, "view", Ref{"document", id})
				if allowed != want || err != nil {
					t.Errorf("%s: %v %v", user, allowed, err)
				}
			})
		}
		ask("ann", "q3", true)
		synctest.Wait()
		for i := range MaxBatch + 10 {
			ask([]string{"ann", "bob"}[i%2], "q3", i%2 == 0)
		}
		all.Wait()
		if len(sizes) != 3 || sizes[0] != 1 || sizes[1] != MaxBatch || sizes[2] != 10 {
			t.Errorf("batches of %v", sizes)
		}
		time.Sleep(time.Minute) // no batch waits
		if _, err := b.Allowed(t.Context(), Subject{Type: "user", ID: "ann"}, "view", Ref{"document", "absent"}); err == nil {
			t.Error("a check without an answer has one")
		}
	})
}

// A check that the server refuses does not fail those of other callers.
func TestBatcherAfterRefusal(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var sizes []int
		s := answering(t, &sizes)
		answers := s.handle
		s.handle = func(w http.ResponseWriter, r *http.Request) {
			body, err := io.ReadAll(r.Body)
			if err != nil {
				t.Error(err)
			}
			if bytes.Contains(body, []byte(`"id":""`)) {
				w.WriteHeader(http.StatusBadRequest)
				_, _ = io.WriteString(w, `{"error":"validation_failed","message":"an id is empty"}`)
				return
			}
			r.Body = io.NopCloser(bytes.NewReader(body))
			answers(w, r)
		}
		b := NewBatcher(s.client(time.Minute))
		var all sync.WaitGroup
		for i := range 9 {
			all.Go(func() {
				user := []string{"ann", "bob", ""}[i%3]
				if i > 2 {
					user = "ann"
				}
				allowed, err := b.Allowed(t.Context(), Subject{Type: "user", ID: user}, "view", Ref{"document", "q3"})
				if allowed != (user == "ann") || (err != nil) != (user == "") {
					t.Errorf("%q: %v %v", user, allowed, err)
				}
			})
		}
		all.Wait()
	})
}

// A caller that leaves does not take the batch of others with it.
func TestBatcherAfterCancellation(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var sizes []int
		b := NewBatcher(answering(t, &sizes).client(time.Minute))
		ctx, cancel := context.WithTimeout(t.Context(), time.Millisecond)
		defer cancel()
		ask := func(ctx context.Context) error {
			_, err := b.Allowed(ctx, Subject{Type: "user", ID: "ann"}, "view", Ref{"document", "q3"})
			return err
		}
		if err := ask(ctx); !errors.Is(err, context.DeadlineExceeded) {
			t.Error(err)
		}
		if err := ask(t.Context()); err != nil {
			t.Error(err)
		}
	})
}

// A check under WithConsistency has the token of what the calls before it have seen or made.
func TestConsistencyOfContext(t *testing.T) {
	var sent []string
	n := 0
	s := &server{t: t, handle: func(w http.ResponseWriter, r *http.Request) {
		body := decode(t, r)
		token, _ := body["consistency_token"].(string)
		sent = append(sent, token)
		n++
		data := `{"allowed":true}`
		if body["checks"] != nil {
			data = `[{"allowed":true}]`
		}
		fmt.Fprintf(w, `{"data":%s,"meta":{"consistency_token":"%d"}}`, data, n)
	}}
	c := s.client(time.Minute)
	ctx := WithConsistency(t.Context())
	check := func(q Question) {
		t.Helper()
		if _, err := c.Check(ctx, q); err != nil {
			t.Fatal(err)
		}
	}
	check(Question{})
	check(Question{})
	if _, err := c.CreateRelation(ctx, ann); err != nil {
		t.Fatal(err)
	}
	check(Question{ConsistencyToken: "0"})
	check(Question{})
	if allowed, err := NewBatcher(c).Allowed(ctx, ann.Subject, "view", ann.Resource); !allowed || err != nil {
		t.Fatal(allowed, err)
	}
	if want := "[ 1  0 3 5]"; fmt.Sprint(sent) != want || ConsistencyToken(ctx) != "6" {
		t.Errorf("tokens %q, want %s; then %s", sent, want, ConsistencyToken(ctx))
	}
}

// Of calls at the same time, the token never goes back behind a write that has returned.
func TestConsistencyOfConcurrentCalls(t *testing.T) {
	c := of(WithConsistency(t.Context()))
	_, check := c.begin()
	_, write := c.begin()
	_, other := c.begin()
	c.end(write, "write", true)
	c.end(check, "before the write", false)
	if token, _ := c.begin(); token != "write" {
		t.Errorf("token %q", token)
	}
	c.end(other, "another write, older or newer", true)
	token, version := c.begin()
	if token != "" {
		t.Errorf("token %q after two writes at the same time", token)
	}
	c.end(version, "after both", false)
	if token, _ := c.begin(); token != "after both" {
		t.Errorf("token %q", token)
	}
}

type checker func() (bool, error)

func (c checker) Allowed(context.Context, Subject, string, Ref) (bool, error) { return c() }

// A guard lets nothing through that is not allowed, also if that cannot be found out.
func TestGuard(t *testing.T) {
	for name, test := range map[string]struct {
		allowed bool
		err     error
		user    string
		want    int
	}{
		"allowed":    {true, nil, "ann", http.StatusOK},
		"denied":     {false, nil, "ann", http.StatusForbidden},
		"no subject": {true, nil, "", http.StatusUnauthorized},
		"no answer":  {true, errors.New("lost"), "ann", http.StatusServiceUnavailable},
		"absent":     {false, &Error{Code: "resource_not_found"}, "ann", http.StatusForbidden},
	} {
		var failed error
		g := &Guard{
			Checker: checker(func() (bool, error) { return test.allowed, test.err }),
			Subject: func(*http.Request) (Subject, bool) { return Subject{Type: "user", ID: test.user}, test.user != "" },
			Failed:  func(_ *http.Request, err error) { failed = err },
		}
		mux := http.NewServeMux()
		mux.Handle("GET /documents/{id}", g.Require("view", Path("document", "id"))(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
			if of(r.Context()) == nil {
				t.Error("the handler's context has no consistency")
			}
		})))
		w := httptest.NewRecorder()
		mux.ServeHTTP(w, httptest.NewRequest("GET", "/documents/q3", nil))
		if w.Code != test.want || (failed != nil) != (test.want == http.StatusServiceUnavailable) {
			t.Errorf("%s: status %d, failure %v", name, w.Code, failed)
		}
	}
}
