package breached

import (
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// service is a range service, and a client of it.
type service struct {
	*Client
	asked  atomic.Int32
	answer atomic.Pointer[http.HandlerFunc]
	now    time.Time
}

func newService(t testing.TB) *service {
	t.Helper()
	s := &service{now: time.Date(2026, 11, 21, 0, 0, 0, 0, time.UTC)}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		s.asked.Add(1)
		(*s.answer.Load())(w, r)
	}))
	t.Cleanup(server.Close)
	var err error
	if s.Client, err = New(Config{URL: server.URL + "/range/", Clock: func() time.Time { return s.now }}); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.Close)
	return s
}

func (s *service) answers(h http.HandlerFunc) { s.answer.Store(&h) }

func (s *service) says(text string) {
	s.answers(func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, text) })
}

// rest is the part of a digest that is not sent.
func rest(password string) string {
	d := DigestOf(password)
	return strings.ToUpper(hex.EncodeToString(d[:]))[prefixLen:]
}

func TestContains(t *testing.T) {
	s := newService(t)
	// The example of the service's documentation.
	s.answers(func(w http.ResponseWriter, r *http.Request) {
		if r.Method != http.MethodGet || r.RequestURI != "/range/5BAA6" || r.Header.Get("Add-Padding") != "true" {
			t.Errorf("asked %s %s %v", r.Method, r.RequestURI, r.Header)
		}
		fmt.Fprint(w, "0018A45C4D1DEF81644B54AB7F969B88D65:1\r\n1E4C9B93F3F0682250B6CF8331B7EE68FD8:10434004\r\n")
	})
	contains := func(password string, want bool, asked int32) {
		t.Helper()
		got, err := s.Contains(t.Context(), DigestOf(password))
		if err != nil || got != want || s.asked.Load() != asked {
			t.Errorf("%t after %d requests, %v; want %t after %d", got, s.asked.Load(), err, want, asked)
		}
	}
	contains("password", true, 1)
	contains("password", true, 1) // cacheSize
	s.now = s.now.Add(cacheTime)
	contains("password", true, 2) // the cacheSize response has expired

	s.says(rest("another") + ":0\n") // padding
	contains("another", false, 3)
	contains("another", false, 3)
	s.says(strings.ToLower(rest("lower case")) + ":1")
	contains("lower case", true, 4)
	s.says("")
	contains("not listed", false, 5)
	s.says(rest("caf\u00e9 au lait") + ":3\n")
	contains("cafe\u0301 au lait", true, 6) // both forms of the accent are one password

	if got := s.Stats(); got != (Stats{Lookups: 6}) {
		t.Errorf("%+v", got)
	}
	none := None{}
	if found, err := none.Contains(t.Context(), DigestOf("password")); found || err != nil || none.Stats() != (Stats{}) {
		t.Errorf("without a service: %t, %v", found, err)
	}
	if text := fmt.Sprintf("%v %s %+v %x", DigestOf("password"), DigestOf("password"), DigestOf("password"), DigestOf("password")); strings.Contains(strings.ToUpper(text), "5BAA6") || strings.Contains(text, "91") {
		t.Errorf("a digest is shown: %s", text)
	}
}

func TestFailures(t *testing.T) {
	s := newService(t)
	other := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { t.Error("a redirect was followed") }))
	t.Cleanup(other.Close)
	prefix := DigestOf("password").prefix()
	long := strings.Repeat(rest("password")+":1\n", maxResponse/38+1)
	for what, h := range map[string]http.HandlerFunc{
		"an error":   func(w http.ResponseWriter, _ *http.Request) { http.Error(w, "no", http.StatusInternalServerError) },
		"not found":  http.NotFound,
		"a redirect": func(w http.ResponseWriter, r *http.Request) { http.Redirect(w, r, other.URL+"/x", http.StatusFound) },
		"a page": func(w http.ResponseWriter, _ *http.Request) {
			fmt.Fprint(w, "<html>Please sign in: to the network</html>")
		},
		"no count":    func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, rest("password")) },
		"a bad count": func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, rest("password")+":-1") },
		"no digits":   func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, strings.Repeat("x", 35)+":1") },
		"too few":     func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, rest("password")[1:]+":1") },
		"too much":    func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, long) },
		"no end": func(w http.ResponseWriter, r *http.Request) {
			for r.Context().Err() == nil {
				fmt.Fprint(w, rest("password")+":1\n")
			}
		},
		"no answer":    func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() },
		"a connection": func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) },
	} {
		t.Run(what, func(t *testing.T) {
			s.now = s.now.Add(pause)
			s.answers(h)
			before, begin := s.Stats(), time.Now()
			found, err := s.Contains(t.Context(), DigestOf("password"))
			if found || err == nil || s.Stats().Failures != before.Failures+1 {
				t.Fatalf("%t, %v", found, err)
			}
			if took := time.Since(begin); took > timeout+time.Second {
				t.Errorf("took %v", took)
			}
			if strings.Contains(strings.ToUpper(err.Error()), prefix) || strings.Contains(strings.ToUpper(err.Error()), rest("password")) {
				t.Errorf("the error contains a part of the digest: %v", err)
			}
			// No request is sent during the pause, and one after it.
			s.says(rest("password") + ":1\n")
			asked := s.asked.Load()
			if _, err := s.Contains(t.Context(), DigestOf("password")); !errors.Is(err, errPaused) || s.asked.Load() != asked {
				t.Errorf("during the pause: %v", err)
			}
			s.now = s.now.Add(pause)
			if found, err := s.Contains(t.Context(), DigestOf("password")); !found || err != nil {
				t.Errorf("after the pause: %t, %v", found, err)
			}
			s.now = s.now.Add(cacheTime)
		})
	}
	t.Run("the caller gives up", func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		s.answers(func(_ http.ResponseWriter, r *http.Request) { cancel(); <-r.Context().Done() })
		before := s.Stats().Failures
		if _, err := s.Contains(ctx, DigestOf("password")); !errors.Is(err, context.Canceled) || s.Stats().Failures != before {
			t.Errorf("%v", err)
		}
		s.says("")
		if _, err := s.Contains(t.Context(), DigestOf("password")); err != nil {
			t.Errorf("a canceled request counts as a failure: %v", err)
		}
	})
}

// The number of requests in progress and of cacheSize responses is bounded.
func TestBounds(t *testing.T) {
	s := newService(t)
	var working, most atomic.Int32
	s.answers(func(w http.ResponseWriter, _ *http.Request) {
		n := working.Add(1)
		defer working.Add(-1)
		for seen := most.Load(); n > seen && !most.CompareAndSwap(seen, n); seen = most.Load() {
		}
		time.Sleep(time.Millisecond)
		fmt.Fprint(w, "")
	})
	var asking sync.WaitGroup
	for i := range 2 * cacheSize {
		asking.Go(func() {
			if _, err := s.Contains(t.Context(), DigestOf(fmt.Sprint("password ", i))); err != nil {
				t.Error(err)
			}
		})
	}
	asking.Wait()
	if n := most.Load(); n < 2 || n > maxRequests {
		t.Errorf("%d at once", n)
	}
	if n := s.cache.Len(); n != cacheSize {
		t.Errorf("%d kept", n)
	}
}

func TestNew(t *testing.T) {
	for text, good := range map[string]bool{
		"https://api.pwnedpasswords.com/range/": true, "https://example.com": true, "https://10.0.0.1:8443/range?mode=ntlm": true,
		"http://127.0.0.1:80/range": true, "http://[::1]/range": true, "http://localhost:8080/range": true,
		"": false, "http://example.com/range": false, "http://10.0.0.1/range": false, "http://localhost.example.com/": false, "ftp://localhost/": false,
		"https:///range": false, "/range": false, "https://user:password@example.com/range": false, "https://exa mple.com": false, "http://127.0.0.1.example.com/": false,
	} {
		if c, err := New(Config{URL: text}); (err == nil) != good {
			t.Errorf("%q: %v", text, err)
		} else if err == nil {
			c.Close()
		}
	}
}

func FuzzParse(f *testing.F) {
	f.Add([]byte("1E4C9B93F3F0682250B6CF8331B7EE68FD8:1\r\n0018A45C4D1DEF81644B54AB7F969B88D65:0"))
	f.Add([]byte("\n"))
	f.Fuzz(func(t *testing.T, text []byte) {
		digests, err := parse("5BAA6", text)
		if err != nil && digests != nil || len(digests) > strings.Count(string(text), "\n")+1 {
			t.Errorf("%d digests, %v", len(digests), err)
		}
		for _, d := range digests {
			if d.prefix() != "5BAA6" {
				t.Errorf("another prefix: %s", d.prefix())
			}
		}
	})
}
