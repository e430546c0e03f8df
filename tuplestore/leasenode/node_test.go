package leasenode

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"stonetown/internal/pgtest"
	"stonetown/internal/sqldb"
	"stonetown/tuplestore"
	"stonetown/tuplestore/readlease"
	"stonetown/tuplestore/sqlstore"
)

func TestMain(m *testing.M) { pgtest.Main(m) }

func openDB(t *testing.T) *sqldb.DB {
	t.Helper()
	db, err := sqldb.Open(t.Context(), sqldb.Config{URL: pgtest.URL(t)})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { db.Close() })
	if err := db.Migrate(t.Context(), sqlstore.Migrations()); err != nil {
		t.Fatal(err)
	}
	return db
}

// start starts a node with a listener.
func start(t *testing.T, db *sqldb.DB, key string) *Node {
	t.Helper()
	return startBy(t, db, key, readlease.Machine{}, 500*time.Millisecond)
}

func startBy(t *testing.T, db *sqldb.DB, key string, clock readlease.Clock, lease time.Duration) *Node {
	t.Helper()
	var n *Node
	listener := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { n.Handler().ServeHTTP(w, r) }))
	t.Cleanup(listener.Close)
	n, err := New(Config{Rows: sqlstore.LeaseRows{DB: db}, Key: []byte(key), Address: listener.Listener.Addr().String(), Lease: lease, Clock: clock})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(n.Close)
	return n
}

// running runs the node until the test ends or the result is called.
func running(t *testing.T, n *Node) (stop func()) {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan struct{})
	go func() { defer close(done); n.Run(ctx) }()
	stop = func() { cancel(); <-done }
	t.Cleanup(stop)
	eventually(t, "registered", func() bool { return n.term.Load().Node != "" })
	return stop
}

func eventually(t *testing.T, what string, f func() bool) {
	t.Helper()
	for began := time.Now(); !f(); time.Sleep(time.Millisecond) {
		if time.Since(began) > 20*time.Second {
			t.Fatalf("not %s after 20 seconds", what)
		}
	}
}

func holder(n *Node) sqlstore.Holder {
	return sqlstore.Holder{Node: n.term.Load().Node, Address: n.Address, Lease: n.Config.Lease}
}

func store(t *testing.T, db *sqldb.DB, leases sqlstore.Revoker) *sqlstore.Store {
	t.Helper()
	s, err := sqlstore.New(sqlstore.Config{DB: db, Leases: leases})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Close() })
	return s
}

func write(t *testing.T, s *sqlstore.Store, id string) tuplestore.Result {
	t.Helper()
	tuple := tuplestore.Tuple{Object: tuplestore.Object{Type: "document", ID: id}, Relation: "viewer", Subject: tuplestore.Subject{Type: "user", ID: "ann"}}
	r, err := s.Write(t.Context(), "tnt", tuplestore.Write{Ops: []tuplestore.Op{{Tuple: tuple}}})
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// acquire reads in vain until the lease is held.
func acquire(t *testing.T, l *Lease, at tuplestore.Result) {
	t.Helper()
	eventually(t, "held", func() bool { l.Read(false); return l.IsNewest(at.Epoch, at.Revision) })
}

// A write ends the answers from before it, its release allows those from after it, and a lease that
// has saved nothing between two writes is given up.
func TestWrite(t *testing.T) {
	db := openDB(t)
	n, other := start(t, db, "key"), start(t, db, "key")
	running(t, n)
	s := store(t, db, other) // another process writes
	first := write(t, s, "1")
	l := n.Tenant("tnt")
	if l.IsNewest(first.Epoch, first.Revision) {
		t.Error("a lease is held that was not acquired")
	}
	acquire(t, l, first)
	if l.IsNewest("another", first.Revision) {
		t.Error("newest in another history")
	}
	second := write(t, s, "2")
	if l.IsNewest(first.Epoch, first.Revision) {
		t.Error("a revision before the newest counts as the newest")
	}
	eventually(t, "released", func() bool { return l.IsNewest(second.Epoch, second.Revision) })
	write(t, s, "3")
	third := write(t, s, "4")
	time.Sleep(10 * time.Millisecond)
	if l.IsNewest(third.Epoch, third.Revision) {
		t.Error("a lease that saves nothing is still held")
	}
	var rows int
	if err := db.QueryRow(t.Context(), `SELECT COUNT(*) FROM tenant_leases`).Scan(&rows); err != nil || rows != 0 {
		t.Errorf("%d rows of leases that were given up, %v", rows, err)
	}
	if got := n.Stats(); got.Acquired != 1 || got.Revoked < 2 || got.StruckOut != 0 {
		t.Errorf("%+v", got)
	}
}

// A process that does not answer is struck out, also by a store that sends no messages, and by a
// process with another key. Its lease has ended when the write is visible.
func TestStruckOut(t *testing.T) {
	for name, revoker := range map[string]func(*testing.T, *sqldb.DB) sqlstore.Revoker{
		"no messages": func(*testing.T, *sqldb.DB) sqlstore.Revoker { return nil },
		"another key": func(t *testing.T, db *sqldb.DB) sqlstore.Revoker { return start(t, db, "another") },
	} {
		t.Run(name, func(t *testing.T) {
			db := openDB(t)
			n := start(t, db, "key")
			running(t, n)
			s := store(t, db, revoker(t, db))
			first := write(t, s, "1")
			l := n.Tenant("tnt")
			acquire(t, l, first)
			second := write(t, s, "2")
			if l.IsNewest(first.Epoch, first.Revision) {
				t.Error("a revision before the newest counts as the newest")
			}
			eventually(t, "struck out", func() bool { return n.Stats().StruckOut == 1 })
			if l.IsNewest(second.Epoch, second.Revision) {
				t.Error("a process that was struck out holds a lease")
			}
		})
	}
}

const driftRounds = 8

// Clocks that run up to 5 % fast or slow make no process answer from before a visible write, even if
// the process hears nothing of it. Further apart they would.
func TestDrift(t *testing.T) {
	db := openDB(t)
	for _, c := range []struct {
		writer, holder float64
		holds          bool
	}{{1.05, 0.95, true}, {0.95, 1.05, true}, {1.3, 0.7, false}} {
		t.Run(fmt.Sprintf("writer %v, holder %v", c.writer, c.holder), func(t *testing.T) {
			s, err := sqlstore.New(sqlstore.Config{DB: db, LeaseClock: readlease.Drifting(c.writer)})
			if err != nil {
				t.Fatal(err)
			}
			defer s.Close()
			stale := 0
			for round := range driftRounds {
				n := startBy(t, db, "key", readlease.Drifting(c.holder), 200*time.Millisecond)
				stop := running(t, n)
				first := write(t, s, fmt.Sprint(c, round))
				l := n.Tenant("tnt")
				acquire(t, l, first)
				time.Sleep(rand.N(50 * time.Millisecond)) // until a renewal, or after it
				write(t, s, fmt.Sprint(c, round, "again"))
				if l.IsNewest(first.Epoch, first.Revision) {
					stale++
				}
				stop()
			}
			if c.holds != (stale == 0) {
				t.Errorf("%d of %d holders would answer from before a visible write", stale, driftRounds)
			}
		})
	}
}

// A process that ends leaves no rows, so that no writer waits.
func TestLeave(t *testing.T) {
	db := openDB(t)
	n := start(t, db, "key")
	stop := running(t, n)
	first := write(t, store(t, db, n), "1")
	acquire(t, n.Tenant("tnt"), first)
	stop()
	if n.Tenant("tnt").IsNewest(first.Epoch, first.Revision) {
		t.Error("a lease is held after the end")
	}
	var nodes, tenants int
	if err := db.QueryRow(t.Context(), `SELECT (SELECT COUNT(*) FROM lease_nodes), (SELECT COUNT(*) FROM tenant_leases)`).Scan(&nodes, &tenants); err != nil || nodes+tenants != 0 {
		t.Errorf("%d nodes and %d tenants, %v", nodes, tenants, err)
	}
}

// Messages without a valid code, of another registration or of another form are refused, and so are
// responses that were not given to the request.
func TestMessages(t *testing.T) {
	db := openDB(t)
	n := start(t, db, "key")
	running(t, n)
	m := message{Node: n.term.Load().Node, Tenant: "tnt", Revocation: "one"}
	post := func(path string, body []byte, code []byte) (int, string) {
		t.Helper()
		r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, "http://"+n.Address+path, bytes.NewReader(body))
		if err != nil {
			t.Fatal(err)
		}
		r.Header.Set(codeHeader, base64.StdEncoding.EncodeToString(code))
		response, err := http.DefaultClient.Do(r)
		if err != nil {
			t.Fatal(err)
		}
		defer response.Body.Close()
		text, err := io.ReadAll(response.Body)
		if err != nil {
			t.Fatal(err)
		}
		return response.StatusCode, string(text)
	}
	body, err := json.Marshal(m)
	if err != nil {
		t.Fatal(err)
	}
	large := []byte(strings.Repeat(" ", maxMessage+1))
	for name, c := range map[string]struct {
		path       string
		body, code []byte
		want       int
	}{
		"valid":         {revokePath, body, n.code(revokePath, body), 200},
		"no code":       {revokePath, body, nil, 401},
		"another path":  {revokePath, body, n.code(releasePath, body), 401},
		"another body":  {revokePath, append([]byte(" "), body...), n.code(revokePath, body), 401},
		"no JSON":       {revokePath, []byte("{"), n.code(revokePath, []byte("{")), 400},
		"too large":     {revokePath, large, n.code(revokePath, large), 400},
		"unknown path":  {"/leases", body, n.code("/leases", body), 404},
		"a release too": {releasePath, body, n.code(releasePath, body), 200},
	} {
		if got, text := post(c.path, c.body, c.code); got != c.want {
			t.Errorf("%s: %d %s, want %d", name, got, text, c.want)
		}
	}

	writer := start(t, db, "key")
	if _, err := writer.Revoke(t.Context(), holder(n), "tnt", "two"); err != nil {
		t.Errorf("a revocation: %v", err)
	}
	stranger := holder(n)
	stranger.Node = "another"
	if _, err := writer.Revoke(t.Context(), stranger, "tnt", "three"); err == nil {
		t.Error("a process answers for another one")
	}
	// A recorded response does not answer another request.
	recorded := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		response := []byte(`{"here":true,"held":false}`)
		w.Header().Set(codeHeader, base64.StdEncoding.EncodeToString(n.code("response", n.code(revokePath, body), response)))
		_, _ = w.Write(response)
	}))
	defer recorded.Close()
	there := holder(n)
	there.Address = recorded.Listener.Addr().String()
	if _, err := writer.Revoke(t.Context(), there, "tnt", readlease.RevocationID("four")); err == nil {
		t.Error("a response to another request is accepted")
	}
}

func TestConfig(t *testing.T) {
	db := openDB(t)
	for name, c := range map[string]Config{
		"no rows":   {Key: []byte("key")},
		"no key":    {Rows: sqlstore.LeaseRows{DB: db}},
		"too short": {Rows: sqlstore.LeaseRows{DB: db}, Key: []byte("key"), Lease: MinLease - 1},
		"too long":  {Rows: sqlstore.LeaseRows{DB: db}, Key: []byte("key"), Lease: MaxLease + 1},
	} {
		if _, err := New(c); err == nil {
			t.Errorf("%s: no error", name)
		}
	}
}
