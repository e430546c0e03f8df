package bench

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"
)

// counted is a server that counts the connections that it has accepted.
func counted(t *testing.T, handle http.HandlerFunc) (s *httptest.Server, connections func() int) {
	var mu sync.Mutex
	n := 0
	s = httptest.NewUnstartedServer(handle)
	s.Config.ConnState = func(_ net.Conn, state http.ConnState) {
		if state == http.StateNew {
			mu.Lock()
			defer mu.Unlock()
			n++
		}
	}
	s.Start()
	t.Cleanup(s.Close)
	return s, func() int {
		mu.Lock()
		defer mu.Unlock()
		return n
	}
}

func echoBody(w http.ResponseWriter, r *http.Request) {
	text, err := io.ReadAll(r.Body)
	if err != nil {
		panic(http.ErrAbortHandler)
	}
	fmt.Fprintf(w, "%s %s %s", r.Method, r.URL.Path, text)
}

// post sends a body and returns the text of the response.
func post(ctx context.Context, c *http.Client, url, body string) (string, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, url, strings.NewReader(body))
	if err != nil {
		return "", err
	}
	res, err := c.Do(req)
	if err != nil {
		return "", err
	}
	defer res.Body.Close()
	text, err := io.ReadAll(res.Body)
	return string(text), err
}

// Connections are used again, as many at once as there are callers, and replaced when the server has
// closed them.
func TestClientKeepsConnections(t *testing.T) {
	const callers = 4
	all := make(chan struct{}, callers)
	s, connections := counted(t, func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/together" {
			all <- struct{}{}
			for len(all) < callers {
				time.Sleep(time.Millisecond)
			}
		}
		echoBody(w, r)
	})
	c := NewClient(callers)
	defer c.CloseIdleConnections()
	must := func(path, body string) {
		if text, err := post(t.Context(), c, s.URL+path, body); err != nil || text != "POST "+path+" "+body {
			t.Errorf("response %q, %v", text, err)
		}
	}
	for i := range 10 {
		must("/one", strings.Repeat("x", 1000*i)) // more than the buffers hold
	}
	if n := connections(); n != 1 {
		t.Errorf("%d connections for requests one after another", n)
	}
	var wg sync.WaitGroup
	for i := range callers {
		wg.Go(func() { must("/together", fmt.Sprint(i)) })
	}
	wg.Wait()
	for range 10 {
		must("/one", "again")
	}
	if n := connections(); n != callers {
		t.Errorf("%d connections for %d callers", n, callers)
	}
	s.CloseClientConnections()
	must("/one", "after the server closed all")
}

// A response that is not read to its end, or whose request was canceled, ends the connection.
func TestClientDropsConnections(t *testing.T) {
	release := make(chan struct{})
	s, connections := counted(t, func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/late" {
			<-release
		}
		fmt.Fprint(w, strings.Repeat("long ", 100_000))
	})
	defer close(release)
	c := NewClient(1)
	defer c.CloseIdleConnections()
	for range 2 {
		res, err := c.Get(s.URL)
		if err != nil {
			t.Fatal(err)
		}
		if err := res.Body.Close(); err != nil {
			t.Error(err)
		}
	}
	if n := connections(); n != 2 {
		t.Errorf("%d connections for two responses that were not read", n)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
	defer cancel()
	if _, err := post(ctx, c, s.URL+"/late", ""); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("a request that was canceled: %v", err)
	}
	if text, err := post(t.Context(), c, s.URL, ""); err != nil || len(text) != 500_000 {
		t.Errorf("%d bytes after a request that was canceled, %v", len(text), err)
	}
	if _, err := c.Get("https://localhost"); err == nil {
		t.Error("https is not supported")
	}
}
