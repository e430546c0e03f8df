package eventlog

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/go-json-experiment/json/jsontext"

	"stonetown/internal/sqldb"
	"stonetown/internal/sqldb/sqltest"
	"stonetown/tuplestore"
	"stonetown/tuplestore/sqlstore"
)

// tuples is a store whose commits have events in the log of a fixture.
type tuples struct {
	*fixture
	*sqlstore.Store
	n *atomic.Int64
}

func (f *fixture) tuples(db *sqldb.DB) *tuples {
	f.Helper()
	s, err := sqlstore.New(sqlstore.Config{DB: db, Clock: func() time.Time { return f.now }, EventFloor: f.Floor})
	if err != nil {
		f.Fatal(err)
	}
	f.Cleanup(func() { s.Close() })
	return &tuples{fixture: f, Store: s, n: &f.tuple}
}

// relation is the creation of another tuple.
func (s *tuples) relation() tuplestore.Op {
	return tuplestore.Op{Kind: tuplestore.Create, Tuple: tuplestore.Tuple{
		Object: tuplestore.Object{Type: "doc", ID: fmt.Sprint(s.n.Add(1))}, Relation: "viewer", Subject: tuplestore.Subject{Type: "user", ID: "ann"},
	}}
}

// event is one of a commit.
func event(data string) Event {
	return New(RelationCreated, Origin{Actor: Actor{"user", "usr_ann"}, RequestID: "req_1"}, jsontext.Value(data))
}

// write commits a tuple and an event with its commit, or none if data is empty.
func (s *tuples) write(ctx context.Context, tenant, data string) error {
	w := tuplestore.Write{Ops: []tuplestore.Op{s.relation()}}
	if data != "" {
		e := event(data)
		w.Event = func(tuplestore.Result) string { return e.Text() }
		w.Attach = func(_ tuplestore.Result, b *sqldb.Batch) { NotifyCommit(b, tenant) }
	}
	_, err := s.Write(ctx, tenant, w)
	return err
}

// attach commits a tuple and events that are not of the commit.
func (s *tuples) attach(ctx context.Context, tenant string, data ...string) error {
	_, err := s.Write(ctx, tenant, tuplestore.Write{Ops: []tuplestore.Op{s.relation()}, Attach: func(r tuplestore.Result, b *sqldb.Batch) {
		for _, d := range data {
			AppendAt(b, tenant, int64(r.Revision), event(d))
		}
	}})
	return err
}

func (f *fixture) must(err error) {
	f.Helper()
	if err != nil {
		f.Fatal(err)
	}
}

func (f *fixture) pick(tenant string, positions ...int64) []string {
	f.Helper()
	events, err := f.Pick(f.Context(), tenant, positions)
	f.must(err)
	return texts(events)
}

func TestEventsOfCommits(t *testing.T) {
	everywhere(t, func(f *fixture) {
		s, ctx := f.tuples(f.db), t.Context()
		f.must(s.write(ctx, "a", `{"n":1}`))
		f.equal("before any other event", f.read("a", 0, 10), []string{`1{"n":1}`})
		f.must(s.write(ctx, "a", ""))
		f.must(s.write(ctx, "a", ""))
		f.must(s.write(ctx, "a", `{"n":2}`))
		f.append("a", `{"n":3}`, `{"n":4}`)
		f.must(s.attach(ctx, "a", `{"n":5}`, `{"n":6}`))
		f.must(s.write(ctx, "a", `{"n":7}`))
		for range 20 {
			f.must(s.write(ctx, "a", ""))
		}
		f.must(s.write(ctx, "a", `{"n":8}`))
		f.must(s.write(ctx, "b", `{"n":1}`))
		f.append("a", `{"n":9}`)
		all := make([]string, 9)
		for i := range all {
			all[i] = fmt.Sprintf(`%d{"n":%[1]d}`, i+1)
		}
		f.equal("all", f.read("a", 0, 100), all)
		f.equal("of another tenant", f.read("b", 0, 100), all[:1])
		for after := range len(all) + 1 {
			for limit := 1; limit <= len(all); limit++ {
				want := all[after:min(after+limit, len(all))]
				f.equal(fmt.Sprintf("%d after %d", limit, after), append([]string{}, f.read("a", int64(after), limit)...), append([]string{}, want...))
			}
			if after > 0 {
				f.equal("picked", f.pick("a", int64(after)), all[after-1:after])
			}
		}
		f.equal("picked together", f.pick("a", 9, 8, 7, 6, 5, 4, 3, 2, 1, 0, -1, 10), all)

		events, err := f.Read(ctx, "a", 0, 100)
		f.must(err)
		var revisions []int64
		for _, e := range events {
			revisions = append(revisions, e.Revision)
		}
		f.equal("revisions", revisions, []int64{1, 4, 4, 4, 5, 5, 6, 27, 27})
		want := event(`{"n":10}`)
		want.Position, want.TenantID, want.At, want.Revision = 10, "a", f.now, 28
		_, err = s.Write(ctx, "a", tuplestore.Write{Ops: []tuplestore.Op{s.relation()}, Event: func(tuplestore.Result) string { return want.Text() }})
		f.must(err)
		got, err := f.Read(ctx, "a", 9, 1)
		f.must(err)
		f.equal("everything", got, []Event{want})
	})
}

// Commits are numbered at their place by whatever comes first: a reader, another event, or a
// reader's start.
func TestReaderStartsAfterCommits(t *testing.T) {
	everywhere(t, func(f *fixture) {
		s, ctx, r := f.tuples(f.db), t.Context(), f.Reader("webhooks")
		f.must(s.write(ctx, "a", `{"n":1}`))
		f.must(f.db.Tx(ctx, func(tx *sqldb.Tx) error {
			var b sqldb.Batch
			r.Start(&b, "a")
			return tx.Send(ctx, &b)
		}))
		lags := func() []Lag {
			f.Helper()
			list, err := r.Behind(ctx, "", 10)
			f.must(err)
			return list
		}
		f.equal("lag at the start", lags(), []Lag(nil))
		notices := make(chan string, 10)
		f.OnAppend(func(tenantID string) { notices <- tenantID })
		f.must(s.write(ctx, "a", `{"n":2}`))
		f.equal("notice", <-notices, "a")
		f.equal("lag", lags(), []Lag{{"a", 1, 2}})
		after, events, err := r.Next(ctx, "a", 10)
		f.must(err)
		f.equal("next", append([]string{fmt.Sprint(after)}, texts(events)...), []string{"1", `2{"n":2}`})
	})
}

func TestRetentionOfCommits(t *testing.T) {
	everywhere(t, func(f *fixture) {
		s, ctx := f.tuples(f.db), t.Context()
		const old = 2*collectAtOnce + 3
		for i := range old {
			if i%100 == 50 {
				f.append("a", `{}`)
			} else {
				f.must(s.write(ctx, "a", `{}`))
			}
			if i%10 == 0 {
				f.must(s.write(ctx, "a", ""))
			}
		}
		f.must(s.write(ctx, "only", `{"kept":false}`))
		f.now = f.now.Add(time.Hour)
		f.must(s.write(ctx, "a", `{"kept":true}`))
		commits := func() (n int) {
			f.Helper()
			f.must(f.db.QueryRow(ctx, `SELECT COUNT(*) FROM tenant_commits WHERE tenant_id = 'a'`).Scan(&n))
			return n
		}
		collect := func() {
			f.Helper()
			f.must(s.Collect(ctx, f.now.Add(time.Second), f.now))
			f.must(f.Collect(ctx))
			f.must(s.Collect(ctx, f.now.Add(time.Second), f.now))
		}
		collect() // all of the history, and no event
		const ofCommits = old - old/100
		f.equal("commits with events", commits(), ofCommits+1)
		if _, err := s.Changes(ctx, "a", 1, 1); !errors.Is(err, tuplestore.ErrRevisionCollected) {
			f.Errorf("the history is still there: %v", err)
		}
		f.equal("events", len(f.read("a", 0, MaxPage)), MaxPage)

		f.now = f.now.Add(Retention - time.Minute)
		collect()
		f.equal("commits with events that are kept", commits(), 1)
		var expired *ExpiredError
		if _, err := f.Read(ctx, "a", old-1, 1); !errors.As(err, &expired) || expired.Floor != old {
			f.Errorf("below the floor: %v", err)
		}
		kept := fmt.Sprintf(`%d{"kept":true}`, old+1)
		f.equal("kept", f.read("a", old, 10), []string{kept})
		f.equal("picked", f.pick("a", old-1, old, old+1), []string{kept})
		f.append("a", `{"n":2}`)
		f.must(s.write(ctx, "a", `{"n":3}`))
		f.equal("numbers go on", f.read("a", old+1, 10), []string{fmt.Sprintf(`%d{"n":2}`, old+2), fmt.Sprintf(`%d{"n":3}`, old+3)})
		f.must(s.write(ctx, "only", `{"n":2}`))
		f.equal("of another tenant", f.read("only", 1, 10), []string{`2{"n":2}`})
	})
}

// Whatever writes at the same time, readers find each event once, at one position, in the order of
// its writer, while others collect.
func TestOneOrder(t *testing.T) {
	everywhere(t, func(f *fixture) {
		const each = 60
		ctx := t.Context()
		processes := []*tuples{f.tuples(f.db)}
		other := f.Log
		if f.db.Dialect() != sqldb.SQLite {
			db, err := sqldb.Open(ctx, sqldb.Config{URL: f.url})
			f.must(err)
			f.Cleanup(func() { db.Close() })
			processes = append(processes, f.tuples(db))
			other, err = Open(Config{DB: db, Clock: func() time.Time { return f.now }})
			f.must(err)
		}
		var writers sync.WaitGroup
		total := 0
		run := func(name string, per int, write func(i int) error) {
			total += per * each
			writers.Go(func() {
				for i := range each {
					if err := write(i); err != nil {
						f.Errorf("%s: %v", name, err)
						return
					}
				}
			})
		}
		for p, s := range processes {
			data := func(w string, i int) string { return fmt.Sprintf(`{"w":"%s%d","i":%d}`, w, p, i) }
			for _, w := range []string{"x", "y", "z"} {
				run("write", 1, func(i int) error { return s.write(ctx, "a", data(w, i)) })
			}
			run("silent", 0, func(int) error { return s.write(ctx, "a", "") })
			run("attach", 2, func(i int) error { return s.attach(ctx, "a", data("attach", 2*i), data("attach", 2*i+1)) })
			run("append", 1, func(i int) error { return f.tryAppend(ctx, "a", nil, data("append", i)) })
		}
		done := make(chan struct{})
		go func() {
			writers.Wait()
			close(done)
		}()
		var others sync.WaitGroup
		others.Go(func() {
			for s := processes[0]; ; {
				if err := s.Collect(ctx, f.now.Add(time.Hour), f.now); err != nil {
					f.Errorf("collect: %v", err)
				}
				select {
				case <-done:
					return
				case <-time.After(5 * time.Millisecond):
				}
			}
		})
		follow := func(l *Log, page int) (all []Event) {
			for last := false; ; {
				events, err := l.Read(ctx, "a", int64(len(all)), page)
				if err != nil {
					f.Error(err)
					return all
				}
				for _, e := range events {
					if all = append(all, e); e.Position != int64(len(all)) {
						f.Errorf("position %d follows %d", e.Position, len(all)-1)
						return all
					}
				}
				if len(events) == 0 && last {
					return all
				}
				select {
				case <-done:
					last = true
				default:
				}
			}
		}
		found := make([][]Event, 3)
		others.Go(func() { found[0] = follow(f.Log, 3) })
		others.Go(func() { found[1] = follow(other, 100) })
		others.Wait()
		found[2] = follow(f.Log, MaxPage)
		f.equal("events", len(found[2]), total)
		f.equal("of another reader", found[0], found[2])
		f.equal("of another process", found[1], found[2])
		next := map[string]int{}
		var revision int64
		for _, e := range found[2] {
			var w string
			var i int
			if _, err := fmt.Sscanf(string(e.Data), `{"w":%q,"i":%d}`, &w, &i); err != nil || next[w] != i {
				f.Fatalf("%s at %d: %d is expected, %v", e.Data, e.Position, next[w], err)
			}
			if next[w]++; e.Revision < revision {
				f.Errorf("revision %d follows %d", e.Revision, revision)
			}
			revision = e.Revision
		}
		f.equal("writers", len(slices.Collect(maps.Keys(next))), 5*len(processes))
		for _, e := range found[2] {
			f.equal("picked", f.pick("a", e.Position), texts([]Event{e}))
		}
	})
}

// Events that are deleted while others are read do not change positions.
func TestOrderDuringRetention(t *testing.T) {
	everywhere(t, func(f *fixture) {
		s, ctx := f.tuples(f.db), t.Context()
		const n = 300
		for i := range n {
			data := fmt.Sprintf(`{"n":%d}`, i+1)
			if i%7 == 3 {
				f.append("a", data)
			} else {
				f.must(s.write(ctx, "a", data))
			}
		}
		// A floor between any two events leaves the positions of the others.
		for floor := int64(1); floor < n; floor += 13 {
			h, err := f.settled(ctx, "a")
			f.must(err)
			page, err := f.after(ctx, "a", h.floor.position, int(floor-h.floor.position))
			f.must(err)
			f.must(f.db.Tx(ctx, func(tx *sqldb.Tx) error { return deleteUpTo(ctx, tx, "a", h.floor, page[len(page)-1].mark()) }))
			f.must(s.Collect(ctx, f.now.Add(time.Second), f.now))
			var want []string
			for i := floor + 1; i <= n; i++ {
				want = append(want, fmt.Sprintf(`%d{"n":%[1]d}`, i))
			}
			f.equal("read", f.read("a", floor, n), want)
			f.equal("picked", f.pick("a", floor, floor+1, n), []string{want[0], want[len(want)-1]})
		}
	})
}

func TestPlansUseIndexes(t *testing.T) {
	everywhere(t, func(f *fixture) {
		if f.db.Dialect() == sqldb.SQLite {
			f.Skip("plans are those of PostgreSQL")
		}
		sqltest.UsesIndex(t, f.db, "events_pkey", selectMark, "a", int64(1))
		sqltest.UsesIndex(t, f.db, "events_pkey", selectAfter, "a", int64(1), int64(2), int64(3))
		sqltest.UsesIndex(t, f.db, "tenant_commits_pkey", selectCommits, "a", int64(1), int64(2), int64(3))
		sqltest.UsesIndex(t, f.db, "event_heads_pkey", selectHead, "a")
		sqltest.UsesIndex(t, f.db, "tenant_heads_pkey", selectHead, "a")
		sqltest.UsesIndex(t, f.db, "event_heads_pkey", selectBehind, "webhooks", "", int64(10))
		sqltest.UsesIndex(t, f.db, "tenant_heads_pkey", selectBehind, "webhooks", "", int64(10))
	})
}
