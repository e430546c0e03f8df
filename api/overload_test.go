package api_test

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"reflect"
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"go.uber.org/goleak"

	"stonetown/api"
	"stonetown/engine"
	"stonetown/identity/password"
)

// gated is an engine that blocks checks and counts those in progress.
type gated struct {
	api.Engine
	open       chan struct{}
	working    atomic.Int64
	mostAtOnce atomic.Int64
}

func (g *gated) CheckInto(ctx context.Context, tenant string, req *engine.CheckRequest, res *engine.CheckResponse) error {
	n := g.working.Add(1)
	defer g.working.Add(-1)
	for most := g.mostAtOnce.Load(); n > most && !g.mostAtOnce.CompareAndSwap(most, n); most = g.mostAtOnce.Load() {
	}
	select {
	case <-g.open:
	case <-ctx.Done():
		return ctx.Err()
	}
	return g.Engine.CheckInto(ctx, tenant, req, res)
}

// partOf sends the first bytes of a check.
func partOf(t *testing.T, c *client, bytes int) net.Conn {
	conn, err := net.Dial("tcp", c.server.Listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	fmt.Fprintf(conn, "POST %s HTTP/1.1\r\nHost: %s\r\nAuthorization: Bearer %s\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n%s",
		checkPath, c.host, c.token, bytes+1, strings.Repeat(" ", bytes))
	return conn
}

// TestOverload exceeds the limit of concurrent requests. Others are queued until their
// deadline, slow bodies take no place, and afterwards the server works as before.
func TestOverload(t *testing.T) {
	running := goleak.IgnoreCurrent()
	t.Cleanup(func() { // when all is closed
		http.DefaultTransport.(*http.Transport).CloseIdleConnections()
		goleak.VerifyNone(t, running)
	})
	g := &gated{open: make(chan struct{})}
	w := newWorld(t, databases["SQLite"](t), func(c *api.Config) {
		g.Engine = c.Engine
		c.Engine, c.MaxWorking, c.MaxStreams, c.MaxReceiving, c.Timeout = g, 3, 2, 10_000, 2*time.Second
		c.TenantShare, c.CallerShare = 100, 100
	})
	c := w.tenant(t, "overload")
	define(t, c)
	relate(t, c, "document", "d", "viewer", user("ann"))
	ask := func() answer {
		return c.do(t, "POST", checkPath, check(user("ann"), "view", resource("document", "d")))
	}
	// Ten clients send a part of their body.
	for range 10 {
		defer partOf(t, c, 1).Close()
	}
	var answered, refused atomic.Int64
	var wg sync.WaitGroup
	for range 20 {
		wg.Go(func() {
			switch a := ask(); {
			case a.status == 200 && a.data()["allowed"] == true:
				answered.Add(1)
			case a.status == 503 && a.code() == "service_unavailable" && a.header.Get("Retry-After") != "":
				refused.Add(1)
			default:
				t.Errorf("%d %s", a.status, a.text)
			}
		})
	}
	for deadline := time.Now().Add(10 * time.Second); g.working.Load() < 3 && time.Now().Before(deadline); {
		time.Sleep(time.Millisecond)
	}
	wg.Wait() // all give up
	equal(t, "most at once", g.mostAtOnce.Load(), int64(3))
	equal(t, "refused", refused.Load(), int64(20))
	close(g.open)
	for range 20 {
		wg.Go(func() {
			if a := ask(); a.status != 200 {
				t.Errorf("afterwards: %d %s", a.status, a.text)
			}
		})
	}
	wg.Wait()

	// Incomplete bodies are bounded in memory. A closed connection releases its share.
	var senders []net.Conn
	for range 4 {
		conn := partOf(t, c, 2490)
		defer conn.Close()
		senders = append(senders, conn)
	}
	eventually(t, func() bool { return ask().status == 503 })
	for _, conn := range senders {
		conn.Close()
	}
	eventually(t, func() bool { return ask().status == 200 })

	first, second := c.watch(t, nil), c.watch(t, nil)
	first.next()
	second.next()
	third := c.want(t, 503, "service_unavailable", "GET", watchPath, nil)
	equal(t, "Retry-After", third.header.Get("Retry-After"), "10")
	first.cancel()
	eventually(t, func() bool {
		ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
		defer cancel()
		req, err := http.NewRequestWithContext(ctx, "GET", c.server.URL+watchPath, strings.NewReader(""))
		if err != nil {
			t.Fatal(err)
		}
		req.Host, req.Header = c.host, http.Header{"Authorization": {"Bearer " + c.token}}
		res, err := http.DefaultTransport.RoundTrip(req)
		if err != nil {
			return false
		}
		res.Body.Close()
		return res.StatusCode == 200
	})
	second.cancel()
}

// TestShares limits the concurrent requests and streams of a tenant and of a caller, so that
// others can proceed.
func TestShares(t *testing.T) {
	g := &gated{open: make(chan struct{})}
	w := newWorld(t, databases["SQLite"](t), func(c *api.Config) {
		g.Engine = c.Engine
		c.Engine, c.MaxWorking, c.MaxStreams = g, 4, 4
	})
	a, b := w.tenant(t, "greedy"), w.tenant(t, "modest")
	for _, c := range []*client{a, b} {
		define(t, c)
		relate(t, c, "document", "d", "viewer", user("ann"))
	}
	second := a.with(w.token(t, a, w.application(t, a, "resources:read", "resources:write")))
	third := a.with(w.token(t, a, w.application(t, a, "resources:read", "resources:write")))

	open := []*watching{a.watch(t, nil)}
	refused := func(c *client, share string, limit float64) {
		t.Helper()
		details := c.want(t, 503, "service_unavailable", "GET", watchPath, nil).body["details"]
		equal(t, "details", details, any(map[string]any{"resource": "streams", "share": share, "limit": limit}))
	}
	refused(a, "caller", 1)
	open = append(open, second.watch(t, nil))
	refused(third, "tenant", 2)
	for _, s := range append(open, b.watch(t, nil)) {
		s.next()
		s.cancel()
	}

	var wg sync.WaitGroup
	ask := func(c *client, working int64) {
		t.Helper()
		wg.Go(func() {
			if a := c.do(t, "POST", checkPath, check(user("ann"), "view", resource("document", "d"))); a.status != 200 {
				t.Errorf("%d %s", a.status, a.text)
			}
		})
		eventually(t, func() bool { return g.working.Load() == working })
	}
	ask(a, 1)
	ask(a, 1) // waits for the caller's share
	ask(second, 2)
	ask(third, 2) // waits for the tenant's share
	ask(b, 3)
	close(g.open)
	wg.Wait()
}

// TestSignInsWait queues sign-ins for hashing. They hold no place that a check needs. A full
// queue refuses sign-ins at once, equally for addresses with and without an account, and the
// attempt does not count.
func TestSignInsWait(t *testing.T) {
	w := newWorld(t, databases["SQLite"](t), func(c *api.Config) { c.MaxWorking, c.TenantShare, c.CallerShare = 2, 100, 100 })
	c := w.tenant(t, "sign-ins")
	define(t, c)
	relate(t, c, "document", "d", "viewer", user("ann"))
	member(t, c, "ann@example.com")

	busy, end := make(chan struct{}), make(chan struct{})
	release := sync.OnceFunc(func() { close(end) })
	defer release() // the other tests need passwords to be verified, too
	var wg sync.WaitGroup
	for range max(1, runtime.GOMAXPROCS(0)/2) {
		wg.Go(func() {
			err := password.Reserve(context.Background(), func(context.Context) error {
				busy <- struct{}{}
				<-end
				return nil
			})
			if err != nil {
				t.Error(err)
			}
		})
		<-busy
	}
	var refused, answered atomic.Int64
	for i := range 60 { // the limit of a caller is 32
		wg.Go(func() {
			form := object{"email": fmt.Sprintf("nobody%d@example.com", i), "password": "wrong"}
			switch a := c.with("").do(t, "POST", authPath+"/sign-in", form); a.status {
			case 503:
				refused.Add(1)
			case 401:
				answered.Add(1)
			default:
				t.Errorf("%d %s", a.status, a.text)
			}
		})
	}
	eventually(t, func() bool { return refused.Load() >= 60-32 })
	for range 20 {
		c.want(t, 200, "", "POST", checkPath, check(user("ann"), "view", resource("document", "d")))
	}
	// The queue of the caller is full or, if passwords take long on this machine, the wait would be too long.
	full := []any{map[string]any{"resource": "passwords to verify", "share": "caller", "limit": 32.0}}
	if places := float64(max(1, runtime.GOMAXPROCS(0)/2)); refused.Load() > 60-32 {
		full = append(full, map[string]any{"resource": "passwords to verify", "share": "service", "limit": places})
	}
	for range 10 { // more than are free
		for _, email := range []string{"ann@example.com", "unknown@example.com"} {
			a := c.with("").want(t, 503, "service_unavailable", "POST", authPath+"/sign-in", object{"email": email, "password": "wrong"})
			if details := a.body["details"]; !slices.ContainsFunc(full, func(one any) bool { return reflect.DeepEqual(one, details) }) {
				t.Errorf("details of %s: %v", email, details)
			}
			if a.header.Get("Retry-After") == "" {
				t.Error("no Retry-After")
			}
		}
	}
	release()
	wg.Wait()
	if answered.Load() == 0 {
		t.Error("none of those that waited was answered")
	}
	signIn(t, c, "ann@example.com", secret, "complete")
}
