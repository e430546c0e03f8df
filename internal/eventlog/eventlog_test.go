package eventlog

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/go-json-experiment/json/jsontext"

	"stonetown/internal/pgtest"
	"stonetown/internal/sqldb"
	"stonetown/tuplestore/sqlstore"
)

func TestMain(m *testing.M) { pgtest.Main(m) }

// fixture is a log on one of the databases.
type fixture struct {
	*testing.T
	*Log
	url   string
	now   time.Time
	tuple atomic.Int64 // the number of the newest
}

func everywhere(t *testing.T, test func(f *fixture)) {
	for name, url := range map[string]func(testing.TB) string{
		"SQLite":     func(t testing.TB) string { return "sqlite://" + filepath.Join(t.TempDir(), "test.db") },
		"PostgreSQL": pgtest.URL,
	} {
		t.Run(name, func(t *testing.T) {
			at := url(t)
			db, err := sqldb.Open(t.Context(), sqldb.Config{URL: at})
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { db.Close() })
			if err := db.Migrate(t.Context(), Migrations(), sqlstore.Migrations()); err != nil {
				t.Fatal(err)
			}
			f := &fixture{T: t, url: at, now: time.Date(2026, 11, 20, 0, 0, 0, 0, time.UTC)}
			f.Log, err = Open(Config{DB: db, Clock: func() time.Time { return f.now }})
			if err != nil {
				t.Fatal(err)
			}
			test(f)
		})
	}
}

// append commits events of a type with the given data.
func (f *fixture) append(tenant string, data ...string) {
	f.Helper()
	if err := f.tryAppend(f.Context(), tenant, nil, data...); err != nil {
		f.Fatal(err)
	}
}

// tryAppend commits events, unless also fails.
func (f *fixture) tryAppend(ctx context.Context, tenant string, also error, data ...string) error {
	return f.db.Tx(ctx, func(tx *sqldb.Tx) error {
		var b sqldb.Batch
		var events []Event
		for _, d := range data {
			e := New(RelationCreated, Origin{}, jsontext.Value(d))
			e.At = f.now
			events = append(events, e)
		}
		Append(&b, tenant, events...)
		if err := tx.Send(ctx, &b); err != nil {
			return err
		}
		return also
	})
}

func (f *fixture) read(tenant string, after int64, limit int) []string {
	f.Helper()
	events, err := f.Read(f.Context(), tenant, after, limit)
	if err != nil {
		f.Fatal(err)
	}
	return texts(events)
}

func texts(events []Event) []string {
	var out []string
	for _, e := range events {
		out = append(out, fmt.Sprintf("%d%s", e.Position, e.Data))
	}
	return out
}

func (f *fixture) equal(what string, got, want any) {
	f.Helper()
	if diff := cmp.Diff(want, got); diff != "" {
		f.Errorf("%s: %s", what, diff)
	}
}

func TestAppendAndRead(t *testing.T) {
	everywhere(t, func(f *fixture) {
		f.equal("before the beginning", f.read("a", 0, 10), []string(nil))
		f.append("a", `{"n":1}`, `{"n":2}`)
		f.append("b", `{"other":true}`)
		f.append("a", `{"n":3}`)
		f.append("a")
		f.equal("all", f.read("a", 0, 10), []string{`1{"n":1}`, `2{"n":2}`, `3{"n":3}`})
		f.equal("a page", f.read("a", 0, 2), []string{`1{"n":1}`, `2{"n":2}`})
		f.equal("the next", f.read("a", 2, 2), []string{`3{"n":3}`})
		f.equal("the end", f.read("a", 3, 2), []string(nil))
		f.equal("another tenant", f.read("b", 0, 10), []string{`1{"other":true}`})

		undone := errors.New("undone")
		if err := f.tryAppend(f.Context(), "a", undone, `{"n":0}`); !errors.Is(err, undone) {
			f.Fatal(err)
		}
		f.append("a", `{"n":4}`)
		f.equal("after a transaction that failed", f.read("a", 3, 2), []string{`4{"n":4}`})

		want := New(ResourceDeleted, Origin{Actor: Actor{"user", "usr_ann"}, ClientID: "app", RequestID: "req_1", ClientIP: "192.0.2.1"}, jsontext.Value(`{"é":"\u0000"}`))
		err := f.db.Tx(f.Context(), func(tx *sqldb.Tx) error {
			var b sqldb.Batch
			Append(&b, "c", want)
			return tx.Send(f.Context(), &b)
		})
		if err != nil {
			f.Fatal(err)
		}
		got, err := f.Read(f.Context(), "c", 0, 1)
		if err != nil {
			f.Fatal(err)
		}
		want.Position, want.TenantID, want.At = 1, "c", want.At.UTC().Truncate(time.Microsecond)
		f.equal("everything", got, []Event{want})
	})
}

// A reader that follows the log during concurrent writes reads every position in order.
func TestNothingAppearsBehindAReader(t *testing.T) {
	everywhere(t, func(f *fixture) {
		const writers, each = 8, 25
		var wg sync.WaitGroup
		for w := range writers {
			wg.Go(func() {
				for i := range each {
					if err := f.tryAppend(f.Context(), "a", nil, fmt.Sprintf(`{"w":%d,"i":%d}`, w, i), `{}`); err != nil {
						f.Error(err)
						return
					}
				}
			})
		}
		next := int64(1)
		for deadline := time.Now().Add(time.Minute); next <= 2*writers*each && !f.Failed() && time.Now().Before(deadline); {
			events, err := f.Read(f.Context(), "a", next-1, 7)
			if err != nil {
				f.Fatal(err)
			}
			for _, e := range events {
				if e.Position != next {
					f.Fatalf("position %d follows %d", e.Position, next-1)
				}
				next++
			}
		}
		wg.Wait()
		f.equal("events", next-1, int64(2*writers*each))
	})
}

func TestReaders(t *testing.T) {
	everywhere(t, func(f *fixture) {
		webhooks, audit := f.Reader("webhooks"), f.Reader("audit")
		batch := func(queue func(b *sqldb.Batch, tenantID string), tenantID string) {
			f.Helper()
			var b sqldb.Batch
			queue(&b, tenantID)
			if err := f.db.Tx(f.Context(), func(tx *sqldb.Tx) error { return tx.Send(f.Context(), &b) }); err != nil {
				f.Fatal(err)
			}
		}
		next := func(r *Reader) []string {
			f.Helper()
			after, events, err := r.Next(f.Context(), "a", 2)
			if err != nil {
				f.Fatal(err)
			}
			return append([]string{fmt.Sprint("after ", after)}, texts(events)...)
		}
		advance := func(r *Reader, from, to int64, also error) (moved bool, err error) {
			err = f.db.Tx(f.Context(), func(tx *sqldb.Tx) error {
				moved, err = r.Advance(f.Context(), tx, "a", from, to)
				return errors.Join(err, also)
			})
			return moved, err
		}
		mustAdvance := func(r *Reader, from, to int64, want bool) {
			f.Helper()
			if moved, err := advance(r, from, to, nil); err != nil || moved != want {
				f.Fatalf("from %d to %d: moved %t, %v", from, to, moved, err)
			}
		}
		batch(audit.Start, "a") // before the first event
		f.append("a", `{"n":1}`)
		f.equal("before it is started", next(webhooks), []string{"after 0"})
		mustAdvance(webhooks, 0, 1, false)
		batch(webhooks.Start, "a")
		f.equal("only newer events", next(webhooks), []string{"after 1"})
		f.append("a", `{"n":2}`, `{"n":3}`, `{"n":4}`)
		batch(webhooks.Start, "a")
		f.equal("started again", next(webhooks), []string{"after 1", `2{"n":2}`, `3{"n":3}`})
		mustAdvance(webhooks, 1, 3, true)
		f.equal("then", next(webhooks), []string{"after 3", `4{"n":4}`})
		mustAdvance(webhooks, 1, 3, false)
		mustAdvance(webhooks, 2, 4, false)
		if _, err := advance(webhooks, 3, 2, nil); err == nil {
			f.Error("it went back")
		}
		undone := errors.New("undone")
		if _, err := advance(webhooks, 3, 4, undone); !errors.Is(err, undone) {
			f.Fatal(err)
		}
		f.equal("after a transaction that failed", next(webhooks), []string{"after 3", `4{"n":4}`})
		f.equal("another reader", next(audit), []string{"after 0", `1{"n":1}`, `2{"n":2}`})

		batch(webhooks.Stop, "a")
		f.equal("stopped", next(webhooks), []string{"after 0"})
		mustAdvance(webhooks, 3, 4, false)
		f.equal("another reader", next(audit), []string{"after 0", `1{"n":1}`, `2{"n":2}`})
		batch(webhooks.Start, "a")
		f.equal("started anew", next(webhooks), []string{"after 4"})
	})
}

func TestReadersAreBehind(t *testing.T) {
	everywhere(t, func(f *fixture) {
		webhooks := f.Reader("webhooks")
		behind := func(after string, limit int) []Lag {
			f.Helper()
			list, err := webhooks.Behind(f.Context(), after, limit)
			if err != nil {
				f.Fatal(err)
			}
			return list
		}
		var b sqldb.Batch
		for _, tenant := range []string{"d", "b", "a", "c", "e"} {
			f.append(tenant, `{}`)
			webhooks.Start(&b, tenant)
		}
		webhooks.Start(&b, "empty")
		f.Reader("audit").Start(&b, "other")
		if err := f.db.Tx(f.Context(), func(tx *sqldb.Tx) error { return tx.Send(f.Context(), &b) }); err != nil {
			f.Fatal(err)
		}
		f.equal("none", behind("", 10), []Lag(nil))
		for _, tenant := range []string{"other", "unknown", "c", "a", "d"} {
			f.append(tenant, `{}`, `{}`)
		}
		f.equal("a page", behind("", 2), []Lag{{"a", 1, 3}, {"c", 1, 3}})
		f.equal("the next", behind("c", 2), []Lag{{"d", 1, 3}})
		f.equal("the end", behind("d", 2), []Lag(nil))
		err := f.db.Tx(f.Context(), func(tx *sqldb.Tx) error {
			_, err := webhooks.Advance(f.Context(), tx, "a", 1, 3)
			if err == nil {
				_, err = webhooks.Advance(f.Context(), tx, "c", 1, 2)
			}
			return err
		})
		if err != nil {
			f.Fatal(err)
		}
		f.equal("advanced", behind("", 10), []Lag{{"c", 2, 3}, {"d", 1, 3}})
	})
}

// Of several processes that handle the same page, one advances the reader.
func TestOnePageIsHandledOnce(t *testing.T) {
	everywhere(t, func(f *fixture) {
		const events, processes, page = 60, 4, 7
		webhooks := f.Reader("webhooks")
		err := f.db.Tx(f.Context(), func(tx *sqldb.Tx) error {
			var b sqldb.Batch
			webhooks.Start(&b, "a")
			b.Queue(`CREATE TABLE handled (position BIGINT NOT NULL)`, nil, nil)
			return tx.Send(f.Context(), &b)
		})
		if err != nil {
			f.Fatal(err)
		}
		for range events {
			f.append("a", `{}`)
		}
		errLost := errors.New("another process handled the page")
		var wg sync.WaitGroup
		for range processes {
			wg.Go(func() {
				for {
					after, found, err := webhooks.Next(f.Context(), "a", page)
					if err != nil {
						f.Error(err)
					}
					if err != nil || len(found) == 0 {
						return
					}
					err = f.db.Tx(f.Context(), func(tx *sqldb.Tx) error {
						var b sqldb.Batch
						for _, e := range found {
							b.Queue(`INSERT INTO handled VALUES ($1)`, []any{e.Position}, nil)
						}
						if err := tx.Send(f.Context(), &b); err != nil {
							return err
						}
						moved, err := webhooks.Advance(f.Context(), tx, "a", after, found[len(found)-1].Position)
						if err == nil && !moved {
							err = errLost
						}
						return err
					})
					if err != nil && !errors.Is(err, errLost) {
						f.Error(err)
						return
					}
				}
			})
		}
		wg.Wait()
		var n, distinct int64
		if err := f.db.QueryRow(f.Context(), `SELECT COUNT(position), COUNT(DISTINCT position) FROM handled`).Scan(&n, &distinct); err != nil {
			f.Fatal(err)
		}
		f.equal("handled", []int64{n, distinct}, []int64{events, events})
	})
}

func TestPick(t *testing.T) {
	everywhere(t, func(f *fixture) {
		f.append("a", `{"n":1}`, `{"n":2}`, `{"n":3}`)
		f.append("b", `{}`, `{}`, `{}`, `{"n":4}`)
		pick := func(positions ...int64) []string {
			f.Helper()
			before := f.db.Stats().Statements
			events, err := f.Pick(f.Context(), "a", positions)
			if err != nil {
				f.Fatal(err)
			}
			if n := f.db.Stats().Statements - before; n > 1 && len(events) == len(positions) {
				f.Errorf("%d statements", n)
			}
			return texts(events)
		}
		f.equal("some, in order, each once", pick(3, 1, 3), []string{`1{"n":1}`, `3{"n":3}`})
		f.equal("missing ones", pick(4, 2, 0, -1), []string{`2{"n":2}`})
		f.equal("none", pick(), []string(nil))
		f.append("a", slices.Repeat([]string{"{}"}, MaxPage)...)
		all := make([]int64, MaxPage)
		for n := range all {
			all[n] = int64(n + 4)
		}
		f.equal("as many as possible", len(pick(all...)), MaxPage)
		if _, err := f.Pick(f.Context(), "a", append(all, 1)); err == nil {
			f.Error("too many were read")
		}
		want, err := f.Read(f.Context(), "a", 2, 1)
		if err != nil {
			f.Fatal(err)
		}
		got, err := f.Pick(f.Context(), "a", []int64{3})
		if err != nil {
			f.Fatal(err)
		}
		f.equal("everything", got, want)
	})
}

// A revision is that of the event's own change, or of the newest change before it.
func TestRevisions(t *testing.T) {
	everywhere(t, func(f *fixture) {
		event := func() Event { return New(UserUpdated, Origin{}, jsontext.Value(`{}`)) }
		commit := func(queue func(b *sqldb.Batch)) {
			f.Helper()
			err := f.db.Tx(f.Context(), func(tx *sqldb.Tx) error {
				var b sqldb.Batch
				queue(&b)
				return tx.Send(f.Context(), &b)
			})
			if err != nil {
				f.Fatal(err)
			}
		}
		commit(func(b *sqldb.Batch) { Append(b, "a", event()) })
		commit(func(b *sqldb.Batch) { AppendAt(b, "a", 5, event(), event()) })
		commit(func(b *sqldb.Batch) { Append(b, "a", event()) })
		commit(func(b *sqldb.Batch) { // a group of writes
			AppendAt(b, "a", 6, event())
			Append(b, "a", event())
			AppendAt(b, "a", 8, event())
		})
		commit(func(b *sqldb.Batch) { AppendAt(b, "a", 9) })
		commit(func(b *sqldb.Batch) { AppendAt(b, "b", 3, event()) })
		revisions := func(tenant string) (all []int64) {
			f.Helper()
			events, err := f.Read(f.Context(), tenant, 0, 100)
			if err != nil {
				f.Fatal(err)
			}
			for _, e := range events {
				all = append(all, e.Revision)
			}
			return all
		}
		f.equal("revisions", revisions("a"), []int64{0, 5, 5, 5, 6, 6, 8})
		f.equal("of another tenant", revisions("b"), []int64{3})
	})
}

func TestOnAppend(t *testing.T) {
	everywhere(t, func(f *fixture) {
		tenants := make(chan string, 100)
		f.OnAppend(func(tenantID string) { tenants <- tenantID })
		f.append("a", `{}`, `{}`)
		f.equal("one for a transaction", []any{<-tenants, len(tenants)}, []any{"a", 0})
		f.append("a")
		if err := f.tryAppend(f.Context(), "a", errors.New("undone"), `{}`); err == nil {
			f.Fatal("committed")
		}
		f.equal("none without events", len(tenants), 0)
		if err := NewRecorder(f.db).Record(f.Context(), "b", New("a", Origin{}, jsontext.Value(`{}`))); err != nil {
			f.Fatal(err)
		}
		f.equal("of a recorder", <-tenants, "b")
	})
}

func TestRetention(t *testing.T) {
	everywhere(t, func(f *fixture) {
		const old = 2*collectAtOnce + 3
		f.append("a", `{}`)
		slow := f.Reader("slow")
		err := f.db.Tx(f.Context(), func(tx *sqldb.Tx) error {
			var b sqldb.Batch
			slow.Start(&b, "a")
			return tx.Send(f.Context(), &b)
		})
		if err != nil {
			f.Fatal(err)
		}
		for range old - 1 {
			f.append("a", `{}`)
		}
		f.append("b", `{"kept":false}`)
		f.now = f.now.Add(time.Hour)
		f.append("a", `{"kept":true}`)
		collect := func() {
			f.Helper()
			if err := f.Collect(f.Context()); err != nil {
				f.Fatal(err)
			}
		}
		before := f.db.Stats().Statements
		collect()
		f.equal("statements while nothing is old", f.db.Stats().Statements-before, int64(1))
		f.equal("nothing is old", len(f.read("a", 0, MaxPage)), MaxPage)

		f.now = f.now.Add(Retention - time.Minute)
		collect()
		var expired *ExpiredError
		if _, err := f.Read(f.Context(), "a", old-1, 1); !errors.As(err, &expired) || expired.Floor != old {
			f.Errorf("below the floor: %v", err)
		}
		if after, _, err := slow.Next(f.Context(), "a", 1); !errors.As(err, &expired) || after != 1 || expired.Floor != old {
			f.Errorf("a reader below the floor, after %d: %v", after, err)
		}
		kept := fmt.Sprintf(`%d{"kept":true}`, old+1)
		f.equal("kept", f.read("a", old, 10), []string{kept})
		var all []Event
		if err := f.All(f.Context(), "a", func(e Event) error { all = append(all, e); return nil }); err != nil {
			f.Fatal(err)
		}
		f.equal("all", texts(all), []string{kept})
		f.append("b", `{"n":2}`)
		f.equal("numbers go on", f.read("b", 1, 10), []string{`2{"n":2}`})
		collect()
		f.equal("still kept", f.read("a", old, 10), []string{kept})
	})
}

func TestAll(t *testing.T) {
	everywhere(t, func(f *fixture) {
		data := slices.Repeat([]string{"{}"}, MaxPage)
		f.append("a", data...)
		f.append("a", data[:5]...)
		n := 0
		err := f.All(f.Context(), "a", func(e Event) error {
			if n++; e.Position != int64(n) {
				f.Fatalf("position %d is number %d", e.Position, n)
			}
			if n == 1 {
				f.append("a", `{"late":true}`)
			}
			return nil
		})
		f.equal("how many", n, MaxPage+5)
		if err != nil {
			f.Error(err)
		}
		stop := errors.New("stop")
		if err := f.All(f.Context(), "a", func(Event) error { return stop }); !errors.Is(err, stop) {
			f.Error(err)
		}
		if err := f.All(f.Context(), "none", func(Event) error { return stop }); err != nil {
			f.Error(err)
		}
	})
}
