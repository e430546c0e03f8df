package enginetest

import (
	"context"
	"flag"
	"io"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"stonetown/engine"
	"stonetown/internal/pgtest"
	"stonetown/schema"
	"stonetown/tuplestore/leasenode"
	"stonetown/tuplestore/readlease"
	"stonetown/tuplestore/sqlstore"
)

// leaseholder is an engine with read leases, as in a process of its own.
type leaseholder struct {
	*engine.Engine
	node *leasenode.Node
	cut  atomic.Bool // its listener does not answer
}

const testLease = 300 * time.Millisecond

// newLeaseholder returns a process whose clock runs at a rate.
func newLeaseholder(t testing.TB, url string, rate float64, c engine.Config) *leaseholder {
	t.Helper()
	h := openLeaseholder(t, url, rate)
	s := openWriter(t, url, h.node)
	s.LeaseClock = readlease.Drifting(rate)
	c.Lease = func(tenant string) engine.Lease { return h.node.Tenant(tenant) }
	h.Engine = newEngine(t, c, s)
	h.run(t)
	return h
}

// openLeaseholder returns a process that does not run yet, without an engine.
func openLeaseholder(t testing.TB, url string, rate float64) *leaseholder {
	t.Helper()
	h := new(leaseholder)
	db := openDatabase(t, url)
	listener := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if h.cut.Load() {
			_, _ = io.Copy(io.Discard, r.Body) // then the end of the connection ends the context
			<-r.Context().Done()
			return
		}
		h.node.Handler().ServeHTTP(w, r)
	}))
	t.Cleanup(listener.Close)
	var err error
	h.node, err = leasenode.New(leasenode.Config{
		Rows: sqlstore.LeaseRows{DB: db}, Key: []byte("key"), Address: listener.Listener.Addr().String(), Lease: testLease, Clock: readlease.Drifting(rate),
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(h.node.Close)
	return h
}

func (h *leaseholder) run(t testing.TB) {
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan struct{})
	go func() { defer close(done); h.node.Run(ctx) }()
	t.Cleanup(func() { cancel(); <-done })
}

// openWriter opens a store that sends the messages of writers.
func openWriter(t testing.TB, url string, messages sqlstore.Revoker) *sqlstore.Store {
	t.Helper()
	s, err := sqlstore.New(sqlstore.Config{DB: openDatabase(t, url), Leases: messages})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Close() })
	return s
}

var leaseTime = flag.Duration("lease-time", 4*time.Second, "how long the test of read leases runs")

// TestLeases shows that answers from memory under read leases are linearizable across processes:
// once any process has answered from a revision, acknowledged or not, no check that arrives later
// is answered from an earlier one. Listeners do not answer for longer than a lease, connections to
// the database fail, and clocks run 5 % fast and slow.
func TestLeases(t *testing.T) {
	ctx := t.Context()
	url, _ := pgtest.Latency(t, pgtest.URL(t), time.Millisecond)
	var holders []*leaseholder
	var lines []*pgtest.Faulty
	for _, rate := range []float64{1.05, 0.95, 1} {
		line := pgtest.NewFaulty(t, url)
		line.Delay = 50 * time.Millisecond
		lines = append(lines, line)
		holders = append(holders, newLeaseholder(t, line.URL, rate, engine.Config{}))
	}
	_, err := holders[0].ApplyTypes(ctx, "tnt", engine.TypesChange{Put: []schema.Type{{Name: "document", Relations: []schema.Relation{{Name: "viewer"}}}}}, by)
	if err != nil {
		t.Fatal(err)
	}
	op, err := ParseRelation("document:1#viewer@user:ann")
	if err != nil {
		t.Fatal(err)
	}
	written, err := holders[0].Write(ctx, "tnt", engine.WriteRequest{Origin: by, Ops: []engine.WriteOp{op}})
	if err != nil {
		t.Fatal(err)
	}
	base := revision(t, written.Token) // every later revision creates or deletes the relation
	check := engine.CheckRequest{Subject: op.Subject, Queries: []engine.Query{{Resource: op.Resource, Action: "viewer"}}}

	var newest, answers, failures, writes atomic.Int64
	var longest atomic.Int64
	var working sync.WaitGroup
	done := make(chan struct{})
	loop := func(seed uint64, pause time.Duration, f func(r *rand.Rand)) {
		working.Go(func() {
			r := rand.New(rand.NewPCG(seed, 21))
			for {
				select {
				case <-done:
					return
				default:
					f(r)
				}
				if pause > 0 {
					time.Sleep(time.Duration(r.Int64N(int64(2 * pause))))
				}
			}
		})
	}
	for i := range 6 {
		loop(uint64(i), 0, func(*rand.Rand) {
			least := newest.Load()
			res, err := holders[i%3].Check(ctx, "tnt", check)
			if err != nil {
				failures.Add(1)
				time.Sleep(time.Millisecond)
				return
			}
			answers.Add(1)
			at := int64(revision(t, res.Token))
			if at < least {
				t.Errorf("process %d answered from revision %d after %d had been seen", i%3, at, least)
			}
			if d := res.Decisions[0]; d.Err != nil || d.Allowed != ((at-int64(base))%2 == 0) {
				t.Errorf("at revision %d of %d: %v %v", at, base, d.Allowed, d.Err)
			}
			for least < at && !newest.CompareAndSwap(least, at) {
				least = newest.Load()
			}
		})
	}
	for i := range 2 {
		loop(uint64(10+i), 30*time.Millisecond, func(r *rand.Rand) {
			change := op
			change.Delete = r.IntN(2) == 0
			change.IfPresent = change.Delete
			began := time.Now()
			if _, err := holders[i].Write(ctx, "tnt", engine.WriteRequest{Origin: by, Ops: []engine.WriteOp{change}}); err != nil {
				failures.Add(1)
				return
			}
			writes.Add(1)
			longest.Store(max(longest.Load(), int64(time.Since(began))))
		})
	}
	loop(20, 300*time.Millisecond, func(r *rand.Rand) {
		h, line := holders[r.IntN(3)], lines[r.IntN(3)]
		switch r.IntN(3) {
		case 0:
			h.cut.Store(true)
			time.Sleep(time.Duration(r.Int64N(int64(2 * testLease))))
			h.cut.Store(false)
		case 1:
			line.Randomly(rand.New(rand.NewPCG(r.Uint64(), 1)), 0.05, pgtest.CommitFaults, pgtest.AnyFaults)
			time.Sleep(testLease)
			line.Heal()
		}
	})
	time.Sleep(*leaseTime)
	close(done)
	working.Wait()
	var total leasenode.Stats
	for _, h := range holders {
		s := h.node.Stats()
		total.Answered += s.Answered
		total.Acquired += s.Acquired
		total.Revoked += s.Revoked
		total.StruckOut += s.StruckOut
	}
	t.Logf("%d checks, %d failed; %d writes to revision %d, the longest took %v; %+v", answers.Load(), failures.Load(), writes.Load(), newest.Load(), time.Duration(longest.Load()), total)
	if total.Answered < answers.Load()/2 || total.Acquired == 0 || total.Revoked == 0 || writes.Load() < 10 {
		t.Error("this shows too little")
	}
}
