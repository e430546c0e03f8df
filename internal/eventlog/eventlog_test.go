package eventlog

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/go-json-experiment/json/jsontext"

	"stonetown/internal/pgtest"
	"stonetown/internal/sqldb"
)

func TestMain(m *testing.M) { pgtest.Main(m) }

// fixture is a log on one of the databases.
type fixture struct {
	*testing.T
	*Log
	now time.Time
}

func everywhere(t *testing.T, test func(f *fixture)) {
	for name, url := range map[string]func(testing.TB) string{
		"SQLite":     func(t testing.TB) string { return "sqlite://" + filepath.Join(t.TempDir(), "test.db") },
		"PostgreSQL": pgtest.URL,
	} {
		t.Run(name, func(t *testing.T) {
			db, err := sqldb.Open(t.Context(), sqldb.Config{URL: url(t)})
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { db.Close() })
			if err := db.Migrate(t.Context(), Migrations()); err != nil {
				t.Fatal(err)
			}
			f := &fixture{T: t, now: time.Date(2026, 11, 20, 0, 0, 0, 0, time.UTC)}
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
		f.append("a", `{"n":1}`, `{"n":2}`, `{"n":3}`)
		webhooks, audit := f.Reader("webhooks"), f.Reader("audit")
		next := func(r *Reader) []string {
			f.Helper()
			events, err := r.Next(f.Context(), "a", 2)
			if err != nil {
				f.Fatal(err)
			}
			return texts(events)
		}
		advance := func(r *Reader, to int64, also error) error {
			return f.db.Tx(f.Context(), func(tx *sqldb.Tx) error {
				return errors.Join(r.Advance(f.Context(), tx, "a", to), also)
			})
		}
		f.equal("first", next(webhooks), []string{`1{"n":1}`, `2{"n":2}`})
		f.equal("again", next(webhooks), []string{`1{"n":1}`, `2{"n":2}`})
		if err := advance(webhooks, 2, nil); err != nil {
			f.Fatal(err)
		}
		f.equal("then", next(webhooks), []string{`3{"n":3}`})
		if err := advance(webhooks, 1, nil); err != nil {
			f.Fatal(err)
		}
		f.equal("not back", next(webhooks), []string{`3{"n":3}`})
		undone := errors.New("undone")
		if err := advance(webhooks, 3, undone); !errors.Is(err, undone) {
			f.Fatal(err)
		}
		f.equal("after a transaction that failed", next(webhooks), []string{`3{"n":3}`})
		f.equal("another reader", next(audit), []string{`1{"n":1}`, `2{"n":2}`})
	})
}

func TestRetention(t *testing.T) {
	everywhere(t, func(f *fixture) {
		const old = 2*collectAtOnce + 3
		for range old {
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
		collect()
		f.equal("nothing is old", len(f.read("a", 0, MaxPage)), MaxPage)

		f.now = f.now.Add(Retention - time.Minute)
		collect()
		var expired *ExpiredError
		if _, err := f.Read(f.Context(), "a", old-1, 1); !errors.As(err, &expired) || expired.Floor != old {
			f.Errorf("below the floor: %v", err)
		}
		if _, err := f.Reader("slow").Next(f.Context(), "a", 1); !errors.As(err, &expired) {
			f.Errorf("a reader below the floor: %v", err)
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
