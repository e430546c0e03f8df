package main

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	apiclient "stonetown/client"
	"stonetown/internal/pgtest"
	"stonetown/webhooks/signature"
)

// fleet is the processes of a deployment behind one address, as a proxy in front of them has it.
type fleet struct {
	t     *testing.T
	flags []string

	mu      sync.Mutex
	serving []*running
	next    int
}

// dial connects to the next process in service.
func (f *fleet) dial(ctx context.Context, _, _ string) (net.Conn, error) {
	f.mu.Lock()
	f.next++
	at := f.serving[f.next%len(f.serving)].Addr()
	f.mu.Unlock()
	return new(net.Dialer).DialContext(ctx, "tcp", at)
}

// roll replaces all processes, one after the other: the new one serves before the old one ends.
func (f *fleet) roll() {
	f.t.Helper()
	f.mu.Lock()
	old := slices.Clone(f.serving)
	f.mu.Unlock()
	for _, s := range old {
		fresh := start(f.t, f.flags...)
		f.mu.Lock()
		f.serving = append(slices.DeleteFunc(f.serving, func(r *running) bool { return r == s }), fresh)
		f.mu.Unlock()
		if err := s.wait(); err != nil {
			f.t.Fatal(err)
		}
	}
}

// The master key of two processes under load is replaced, with rolling restarts. No request fails:
// each subscription that was created, before, between and after the steps, signs with its secret.
func TestKeysRotateUnderLoad(t *testing.T) {
	dir := t.TempDir()
	flags := append(newPlace(t, dir, "place", "--database-url", pgtest.URL(t)), "--allow-insecure-targets", "--rate-limits", "admin.caller=unlimited,token.ip=unlimited")
	rotate := func(want string) {
		t.Helper()
		until(t, func() bool {
			out, err := command(t, append([]string{"keys", "rotate"}, flags[:4]...)...)
			if err != nil && !strings.Contains(err.Error(), "still encrypted") {
				t.Fatal(err)
			}
			return err == nil && strings.Contains(out, want)
		})
	}
	c := readJSON(t, filepath.Join(dir, "place", "bootstrap.json"))
	f := &fleet{t: t, flags: flags}
	for range 2 {
		f.serving = append(f.serving, start(t, flags...))
	}

	// The receiver verifies each delivery with the secret that the creation of its subscription returned.
	var mu sync.Mutex
	secrets, verified := map[string]signature.Secret{}, map[string]bool{}
	receiver := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		mu.Lock()
		defer mu.Unlock()
		secret, known := secrets[r.URL.Path]
		if err == nil && known {
			if err = signature.Verify(r.Header, body, secret, time.Now(), time.Minute); err == nil {
				verified[r.URL.Path] = true
			}
		}
		if err != nil || !known {
			t.Errorf("a delivery to %s: %v", r.URL.Path, err)
			w.WriteHeader(http.StatusBadRequest)
		}
	}))
	defer receiver.Close()

	var wanted, requests atomic.Int64 // wanted: how many more subscriptions to create, of the 100 that a tenant can have
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	var load sync.WaitGroup
	for worker := range 3 {
		load.Go(func() {
			for n := 0; ctx.Err() == nil; n++ {
				transport := &http.Transport{DialContext: f.dial, DisableKeepAlives: true}
				api, err := apiclient.New(apiclient.Config{BaseURL: c.BaseURL, ClientID: c.ClientID, ClientSecret: c.ClientSecret, HTTP: &http.Client{Transport: transport}})
				if err != nil {
					t.Error(err)
					return
				}
				path := fmt.Sprintf("/%d/%d", worker, n)
				if wanted.Add(-1) < 0 {
					_, err = api.Call(t.Context(), "GET", "/api/v1/users", nil, nil)
				} else {
					var s apiclient.Subscribed
					if s, err = api.Subscribe(t.Context(), apiclient.Subscription{Name: path, URL: receiver.URL + path, Events: []string{"user.created"}}); err == nil {
						var secret signature.Secret
						secret, err = signature.ParseSecret(s.SigningSecret)
						mu.Lock()
						secrets[path] = secret
						mu.Unlock()
					}
				}
				if err != nil {
					t.Errorf("%s: %v", path, err)
				}
				requests.Add(1)
				api.Close()
				time.Sleep(20 * time.Millisecond)
			}
		})
	}
	sometime := func() { // until the processes, as they are now, have created some subscriptions
		t.Helper()
		wanted.Store(20)
		before := requests.Load()
		until(t, func() bool { return wanted.Load() < 0 && requests.Load() >= before+20 })
	}
	sometime()
	rotate("was added")
	f.roll()
	sometime()
	rotate("encrypts from now on")
	f.roll()
	sometime()
	rotate("is left")
	f.roll()
	sometime()
	stop()
	load.Wait()
	if out, err := command(t, append([]string{"keys", "status"}, flags[:4]...)...); err != nil || !strings.Contains(out, "was replaced: 0 values") {
		t.Errorf("%q, %v", out, err)
	}

	server := f.serving[0]
	if status, answer := server.do("POST", "http://"+server.Addr()+"/api/v1/users", hostOf(t, c.BaseURL), server.token(c), `{"email":"ann@example.com"}`); status != http.StatusCreated {
		t.Fatalf("%d %v", status, answer)
	}
	until(t, func() bool { mu.Lock(); defer mu.Unlock(); return len(verified) == len(secrets) })
	t.Logf("%d subscriptions, %d requests", len(secrets), requests.Load())
	if len(secrets) != 80 {
		t.Errorf("%d subscriptions were created, want 80", len(secrets))
	}
}
