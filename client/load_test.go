package client

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"
)

// loadServer stores lines in chunks of two. fault, if not nil, is called before each chunk and can
// end the request.
type loadServer struct {
	mu     sync.Mutex
	stored []string
	keys   map[string]bool
	fault  func(w http.ResponseWriter, chunk int) bool
	chunks int
}

func (s *loadServer) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if r.URL.Path == "/oauth2/token" {
		w.Header().Set("Content-Type", "application/json")
		fmt.Fprint(w, `{"access_token":"token","token_type":"Bearer","expires_in":600}`)
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.keys[r.Header.Get("Idempotency-Key")] = true
	_ = http.NewResponseController(w).EnableFullDuplex()
	w.Header().Set("Connection", "close")
	var line int
	if _, err := fmt.Sscan(r.URL.Query().Get("first_line"), &line); err != nil {
		panic(err)
	}
	lines, more := bufio.NewScanner(r.Body), true
	for more {
		var chunk []string
		for len(chunk) < 2 {
			if more = lines.Scan(); !more {
				break
			}
			chunk = append(chunk, lines.Text())
		}
		if lines.Err() != nil {
			return
		}
		if len(chunk) == 0 {
			break
		}
		s.chunks++
		if s.fault != nil && s.fault(w, s.chunks) {
			return
		}
		s.stored = append(s.stored[:line-1], chunk...)
		line += len(chunk)
		fmt.Fprintf(w, `{"event":"stored","line":%d,"created":%d}`+"\n", line-1, len(chunk))
		_ = http.NewResponseController(w).Flush()
	}
	fmt.Fprintln(w, `{"event":"done"}`)
}

func TestLoad(t *testing.T) {
	var all []string
	for i := range 1001 {
		all = append(all, fmt.Sprintf(`{"n":%d,"pad":"%s"}`, i, strings.Repeat("x", 200)))
	}
	busy := func(w http.ResponseWriter) {
		fmt.Fprintln(w, `{"event":"failed","error":"service_unavailable","message":"busy"}`)
	}
	for name, fault := range map[string]func(w http.ResponseWriter, chunk int) bool{
		"without a fault": nil,
		"connections end": func(_ http.ResponseWriter, chunk int) bool {
			if chunk%100 == 7 {
				panic(http.ErrAbortHandler)
			}
			return false
		},
		"the server is busy": func(w http.ResponseWriter, chunk int) bool {
			if chunk%100 == 7 {
				busy(w)
			}
			return chunk%100 == 7
		},
	} {
		t.Run(name, func(t *testing.T) {
			s := &loadServer{keys: map[string]bool{}, fault: fault}
			h := httptest.NewServer(s)
			defer h.Close()
			c, err := New(Config{BaseURL: h.URL, ClientID: "id", ClientSecret: "secret", Patience: 10 * time.Second})
			if err != nil {
				t.Fatal(err)
			}
			calls := 0
			loaded, err := c.Load(t.Context(), strings.NewReader(strings.Join(all, "\n")), 1, func(Loaded) { calls++ })
			if err != nil || loaded.Line != 1001 || loaded.Created != 1001 || calls != 501 {
				t.Errorf("%+v after %d chunks, error %v", loaded, calls, err)
			}
			if !slices.Equal(s.stored, all) || len(s.keys) != 1 {
				t.Errorf("%d lines are stored under %d keys", len(s.stored), len(s.keys))
			}
		})
	}
}

func TestLoadEnds(t *testing.T) {
	s := &loadServer{keys: map[string]bool{}}
	h := httptest.NewServer(s)
	defer h.Close()
	c, err := New(Config{BaseURL: h.URL, ClientID: "id", ClientSecret: "secret", Patience: time.Second})
	if err != nil {
		t.Fatal(err)
	}
	broken := errors.New("broken disk")
	_, err = c.Load(t.Context(), io.MultiReader(strings.NewReader("1\n2\n3\n"), readerFunc(func([]byte) (int, error) { return 0, broken })), 1, nil)
	if !errors.Is(err, broken) {
		t.Errorf("source: %v", err)
	}
	s.fault = func(w http.ResponseWriter, chunk int) bool {
		fmt.Fprintln(w, `{"event":"failed","error":"relation_undefined","message":"no","details":{"line":4}}`)
		return true
	}
	_, err = c.Load(t.Context(), strings.NewReader("1\n2\n"), 3, nil)
	if line, ok := LineOf(err); !ok || line != 4 {
		t.Errorf("refused: %v", err)
	}
	s.fault = nil
	ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
	defer cancel()
	in, _ := io.Pipe() // says nothing
	if _, err = c.Load(ctx, in, 1, nil); err == nil {
		t.Error("a canceled load succeeded")
	}
	in.Close()
	if _, ok := LineOf(&url.Error{Err: io.EOF}); ok {
		t.Error("an error of the network has a line")
	}
}

type readerFunc func([]byte) (int, error)

func (f readerFunc) Read(p []byte) (int, error) { return f(p) }
