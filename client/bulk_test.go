package client

import (
	"errors"
	"fmt"
	"iter"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

// tuples returns n different tuples.
func tuples(n int) iter.Seq2[Tuple, error] {
	return func(yield func(Tuple, error) bool) {
		for i := range n {
			t := ann
			t.Subject.ID = fmt.Sprint(i)
			if !yield(t, nil) {
				return
			}
		}
	}
}

// TestWriteTuples writes all tuples once, in bulks of the maximum size, four at a time.
func TestWriteTuples(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var (
			mu            sync.Mutex
			flight, most  int
			sizes         []int
			written       = map[string]int{}
			told          []int
			busyRemaining = 2
		)
		s := &server{t: t}
		s.handle = func(w http.ResponseWriter, r *http.Request) {
			ops := decode(t, r)["operations"].([]any)
			mu.Lock()
			flight++
			most = max(most, flight)
			if busyRemaining > 0 {
				busyRemaining--
				flight--
				mu.Unlock()
				refuse(w, 429, "rate_limited", nil)
				return
			}
			sizes = append(sizes, len(ops))
			for _, op := range ops {
				op := op.(map[string]any)
				if op["op"] != "create" {
					t.Errorf("%v", op)
				}
				written[op["subject"].(map[string]any)["id"].(string)]++
			}
			mu.Unlock()
			time.Sleep(time.Second) // in the bubble: until all other requests have arrived
			mu.Lock()
			flight--
			mu.Unlock()
			answer(w, `{"applied":1,"results":[]}`)
		}
		const n = 10*MaxBulk + 3
		if _, err := s.client(time.Minute).WriteTuples(t.Context(), tuples(n), func(i int) { told = append(told, i) }); err != nil {
			t.Fatal(err)
		}
		slices.Sort(sizes)
		if len(written) != n || len(sizes) != 11 || sizes[0] != 3 || sizes[10] != MaxBulk || most != bulksInFlight {
			t.Errorf("%d written in bulks of %v, %d at a time", len(written), sizes, most)
		}
		if !slices.IsSorted(told) || told[len(told)-1] != n {
			t.Errorf("progress %v", told)
		}
		if s.tokens != 1 {
			t.Errorf("%d tokens", s.tokens)
		}
	})
}

// A request is not larger than the server accepts, however long ids are.
func TestWriteTuplesLarge(t *testing.T) {
	s := &server{t: t}
	total := 0
	s.handle = func(w http.ResponseWriter, r *http.Request) {
		if r.ContentLength > 1<<20 {
			t.Errorf("a body of %d bytes", r.ContentLength)
		}
		s.mu.Lock()
		total += len(decode(t, r)["operations"].([]any))
		s.mu.Unlock()
		answer(w, `{"applied":1,"results":[]}`)
	}
	long := func(yield func(Tuple, error) bool) {
		for range 700 {
			tuple := ann
			tuple.Resource.ExternalID = strings.Repeat("\x01", 512) // six bytes each
			if !yield(tuple, nil) {
				return
			}
		}
	}
	if _, err := s.client(0).WriteTuples(t.Context(), long, nil); err != nil || total != 700 {
		t.Errorf("%d, %v", total, err)
	}
}

// An error names the tuple among all tuples, and stops the other requests.
func TestWriteTuplesFails(t *testing.T) {
	s := &server{t: t}
	s.handle = func(w http.ResponseWriter, r *http.Request) {
		first := decode(t, r)["operations"].([]any)[0].(map[string]any)["subject"].(map[string]any)["id"]
		if first == fmt.Sprint(2*MaxBulk) {
			refuse(w, 400, "subject_invalid", map[string]any{"index": 7, "code": "subject_invalid"})
			return
		}
		answer(w, `{"applied":1,"results":[]}`)
	}
	_, err := s.client(0).WriteTuples(t.Context(), tuples(1000*MaxBulk), nil)
	failed, ok := errors.AsType[*TupleError](err)
	if !ok || failed.Index != 2*MaxBulk+7 || failed.Tuple.Subject.ID != fmt.Sprint(2*MaxBulk+7) {
		t.Fatalf("%v", err)
	}
	contains(t, err, "relation 1008", "document:q3#viewer@user:1007", "because")
	if refused, ok := errors.AsType[*Error](err); !ok || refused.Code != "subject_invalid" {
		t.Errorf("%v", err)
	}
	if len(s.requests) > 50 {
		t.Errorf("%d bulks were sent all the same", len(s.requests))
	}

	// An error that is about no operation.
	s.handle = func(w http.ResponseWriter, _ *http.Request) { refuse(w, 403, "insufficient_scope", nil) }
	_, err = s.client(0).WriteTuples(t.Context(), tuples(1), nil)
	contains(t, err, "insufficient_scope")

	// An error of the source.
	s.handle = func(w http.ResponseWriter, _ *http.Request) { answer(w, `{"results":[]}`) }
	source := func(yield func(Tuple, error) bool) {
		for t := range tuples(MaxBulk + 1) {
			if !yield(t, nil) {
				return
			}
		}
		yield(Tuple{}, errors.New("line 502"))
	}
	_, err = s.client(0).WriteTuples(t.Context(), source, nil)
	contains(t, err, "line 502")
}

// TestWriteTuplesExpired leaves out expired tuples, and counts them in the index of a refused
// tuple.
func TestWriteTuplesExpired(t *testing.T) {
	s := &server{t: t}
	s.handle = func(w http.ResponseWriter, r *http.Request) {
		if ops := decode(t, r)["operations"].([]any); len(ops) != 2 {
			t.Errorf("%d operations, want 2", len(ops))
		}
		refuse(w, 400, "subject_invalid", map[string]any{"index": 1, "code": "subject_invalid"})
	}
	source := func(yield func(Tuple, error) bool) {
		for i, at := range []string{"", "2001-01-01T00:00:00Z", "2901-01-01T00:00:00Z"} {
			one := ann
			one.Subject.ID, one.ExpiresAt = fmt.Sprint(i), at
			if !yield(one, nil) {
				return
			}
		}
	}
	expired, err := s.client(0).WriteTuples(t.Context(), source, nil)
	failed, ok := errors.AsType[*TupleError](err)
	if expired != 1 || !ok || failed.Index != 2 || failed.Tuple.Subject.ID != "2" {
		t.Errorf("%d expired, %v", expired, err)
	}
}

func TestBulk(t *testing.T) {
	s := &server{t: t}
	s.handle = func(w http.ResponseWriter, r *http.Request) {
		ops := decode(t, r)["operations"].([]any)
		if r.URL.Path != "/api/v1/resources/relations/bulk" || len(ops) != 2 || ops[1].(map[string]any)["op"] != "delete" {
			t.Errorf("%s %v", r.URL, ops)
		}
		answer(w, `{"applied":2,"results":[{"index":0,"op":"create","status":"created"},{"index":1,"op":"delete","status":"deleted"}]}`)
	}
	outcomes, err := s.client(0).Bulk(t.Context(), []Operation{{"create", ann}, {"delete", ann}}, Conditions{})
	if err != nil || len(outcomes) != 2 || outcomes[1] != (Outcome{1, "delete", "deleted"}) || s.requests[0].key == "" {
		t.Errorf("%v, %v", outcomes, err)
	}
}
