package sqlstore

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"stonetown/internal/sqldb"
	"stonetown/tuplestore"
)

// eventRow is the event of a commit and the number of events so far.
type eventRow struct {
	Revision int64
	Event    string
	Events   int64
}

func eventRows(t *testing.T, db *sqldb.DB) (list []eventRow) {
	t.Helper()
	rows, err := db.Query(t.Context(), `SELECT rev, event, commit_events FROM tenant_commits WHERE tenant_id = 't' ORDER BY rev`)
	if err != nil {
		t.Fatal(err)
	}
	defer rows.Close()
	for rows.Next() {
		var r eventRow
		if err := rows.Scan(&r.Revision, &r.Event, &r.Events); err != nil {
			t.Fatal(err)
		}
		list = append(list, r)
	}
	if err := rows.Err(); err != nil {
		t.Fatal(err)
	}
	return list
}

func TestEventsAreStoredWithTheirCommits(t *testing.T) {
	onEach(t, func(t *testing.T, url string) {
		db := openDB(t, url)
		s := open(t, Config{DB: db})
		write := func(w tuplestore.Write) (tuplestore.Result, error) { return s.Write(t.Context(), "t", w) }
		never := func(tuplestore.Result) string {
			t.Error("there is no commit")
			return "never"
		}
		var told tuplestore.Result
		first := tuplestore.Write{CommitID: "id", Ops: []tuplestore.Op{creation("1", "ann")}, Event: func(r tuplestore.Result) string {
			told = r
			return "first"
		}}
		got, err := write(first)
		if diff := cmp.Diff(got, told); err != nil || diff != "" {
			t.Errorf("result: %v, %s", err, diff)
		}
		first.Event = never
		if _, err := write(first); err != nil {
			t.Errorf("replay: %v", err)
		}
		for what, w := range map[string]tuplestore.Write{
			"a write that changes nothing": {Ops: []tuplestore.Op{creation("1", "ann")}, Event: never},
			"a conflict":                   {Ops: []tuplestore.Op{{Kind: tuplestore.Delete, Tuple: creation("1", "bob").Tuple}}, Event: never},
			"a write that Also refuses":    {Ops: []tuplestore.Op{creation("2", "ann")}, Event: never, Also: func(context.Context, *sqldb.Tx) error { return errors.New("no") }},
			"a panic":                      {Ops: []tuplestore.Op{creation("2", "ann")}, Event: func(tuplestore.Result) string { panic("no") }},
		} {
			if _, err := write(w); (err == nil) != (what == "a write that changes nothing") {
				t.Errorf("%s: %v", what, err)
			}
		}
		if _, err := write(tuplestore.Write{Ops: []tuplestore.Op{creation("2", "ann")}}); err != nil {
			t.Error(err)
		}
		if _, err := write(tuplestore.Write{PutSchema: []byte("schema"), Event: func(tuplestore.Result) string { return "second" }}); err != nil {
			t.Error(err)
		}
		want := []eventRow{{1, "first", 1}, {2, "", 1}, {3, "second", 2}}
		if diff := cmp.Diff(want, eventRows(t, db)); diff != "" {
			t.Error(diff)
		}
	})
}

// The numbers of events have no gaps, however writes are grouped and whoever commits them.
func TestEventsAreCounted(t *testing.T) {
	onEach(t, func(t *testing.T, url string) {
		db := openDB(t, url)
		stores := []*Store{open(t, Config{DB: db})}
		if db.Dialect() != sqldb.SQLite {
			stores = append(stores, open(t, Config{DB: openDB(t, url)}))
		}
		var wg sync.WaitGroup
		for i := range 200 {
			wg.Go(func() {
				w := tuplestore.Write{Ops: []tuplestore.Op{creation(fmt.Sprint(i), "ann")}}
				if i%3 > 0 {
					w.Event = func(tuplestore.Result) string { return fmt.Sprint(i) }
				}
				if _, err := stores[i%len(stores)].Write(t.Context(), "t", w); err != nil {
					t.Error(err)
				}
			})
		}
		wg.Wait()
		var n int64
		for i, r := range eventRows(t, db) {
			if r.Event != "" {
				n++
			}
			if r.Events != n || r.Revision != int64(i+1) {
				t.Fatalf("%+v follows %d events", r, n)
			}
		}
		if n != 133 {
			t.Errorf("%d events", n)
		}
	})
}

// A commit with an event outlives its history until the event is no longer kept, and its history is
// collected once.
func TestCommitsStayForTheirEvents(t *testing.T) {
	onEach(t, func(t *testing.T, url string) {
		db := openDB(t, url)
		now, kept := time.Unix(1_800_000_000, 0), int64(0)
		s := open(t, Config{
			DB: db, Clock: func() time.Time { return now },
			EventFloor: func(context.Context, string) (int64, error) { return kept, nil },
		})
		const n = 2*commitsAtOnce + 50
		for i := range n {
			w := tuplestore.Write{Ops: []tuplestore.Op{creation(fmt.Sprint(i), "ann")}}
			if i%2 == 1 {
				w.Ops = []tuplestore.Op{{Kind: tuplestore.Delete, Tuple: creation(fmt.Sprint(i-1), "ann").Tuple}}
			}
			if i%5 > 0 {
				w.Event = func(tuplestore.Result) string { return fmt.Sprint(i) }
			}
			if _, err := s.Write(t.Context(), "t", w); err != nil {
				t.Fatal(err)
			}
		}
		now = now.Add(time.Hour)
		check := func(commits, histories int) {
			t.Helper()
			for range 2 {
				if err := s.Collect(t.Context(), now, now); err != nil {
					t.Fatal(err)
				}
			}
			var gotCommits, gotHistories int
			err := db.QueryRow(t.Context(), `SELECT (SELECT COUNT(*) FROM tenant_commits), (SELECT COUNT(*) FROM tuple_history)`).Scan(&gotCommits, &gotHistories)
			if err != nil || gotCommits != commits || gotHistories != histories {
				t.Errorf("%d commits and %d history rows, want %d and %d, %v", gotCommits, gotHistories, commits, histories, err)
			}
		}
		check(n*4/5, 0)
		kept = 100
		check((n-100)*4/5, 0)
		kept = n + 10 // the newest commit stays
		check(1, 0)
		if r, err := s.Write(t.Context(), "t", tuplestore.Write{Ops: []tuplestore.Op{creation("1", "ann")}}); err != nil || r.Revision != n+1 {
			t.Errorf("%+v, %v", r, err)
		}
	})
}
