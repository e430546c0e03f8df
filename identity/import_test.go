package identity

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"stonetown/engine"
	"stonetown/internal/eventlog"
	"stonetown/internal/fair"
	"stonetown/internal/pgtest"
	"stonetown/internal/seal"
	"stonetown/internal/sqldb"
	"stonetown/tuplestore/sqlstore"
)

// onEach runs a test on a directory with an engine, on every database.
func onEach(t *testing.T, test func(t *testing.T, d *Directory)) {
	for name, url := range map[string]func(testing.TB) string{
		"sqlite":   func(t testing.TB) string { return "sqlite://" + filepath.Join(t.TempDir(), "test.db") },
		"postgres": pgtest.URL,
	} {
		t.Run(name, func(t *testing.T) {
			ctx := context.Background()
			db, err := sqldb.Open(ctx, sqldb.Config{URL: url(t)})
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { db.Close() })
			if err := db.Migrate(ctx, sqlstore.Migrations(), Migrations(), eventlog.Migrations()); err != nil {
				t.Fatal(err)
			}
			store, err := sqlstore.New(sqlstore.Config{DB: db})
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { store.Close() })
			e, err := engine.New(engine.Config{Store: store})
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(e.Close)
			d, err := New(Config{DB: db, Relations: e})
			if err != nil {
				t.Fatal(err)
			}
			test(t, d)
		})
	}
}

// eventTypes counts the events of a tenant by their types.
func eventTypes(t *testing.T, db *sqldb.DB, tenantID string) map[eventlog.Type]int {
	t.Helper()
	log, err := eventlog.Open(eventlog.Config{DB: db})
	if err != nil {
		t.Fatal(err)
	}
	count := map[eventlog.Type]int{}
	if err := log.All(t.Context(), tenantID, func(e eventlog.Event) error { count[e.Type]++; return nil }); err != nil {
		t.Fatal(err)
	}
	return count
}

func parseRow(text []byte) (row ImportRow, failed *RowError) {
	var form struct {
		Email    string
		Password string
		Groups   []string
	}
	if err := json.Unmarshal(text, &form); err != nil {
		return row, &RowError{Code: "invalid_json", Message: "not JSON"}
	}
	row.Email, row.Password, row.Groups = form.Email, form.Password, form.Groups
	return row, nil
}

// Processes that work on an import die all the time, two at once: no row is lost and
// none is done twice.
func TestImportSurvivesItsProcesses(t *testing.T) {
	onEach(t, func(t *testing.T, d *Directory) {
		const tenant, n = "tnt_a", 3000
		key, err := seal.NewKey(bytes.Repeat([]byte{1}, seal.KeySize))
		if err != nil {
			t.Fatal(err)
		}
		g, err := d.CreateGroup(t.Context(), tenant, NewGroup{Slug: "crew", Name: "Crew"}, "")
		if err != nil {
			t.Fatal(err)
		}
		var body strings.Builder
		for i := range n {
			groups := ""
			if i%2 == 0 {
				groups = `,"groups":["crew"]`
			}
			fmt.Fprintf(&body, `{"email":"u%d@example.com"%s}`+"\n", i%(n-100), groups) // the last hundred are the first once more
		}
		i := NewImporter(d, key, parseRow)
		job, err := i.Receive(t.Context(), tenant, "commit", false, strings.NewReader(body.String()))
		if err != nil || job.Total != n {
			t.Fatalf("%+v, %v", job, err)
		}
		if again, err := i.Receive(t.Context(), tenant, "commit", false, strings.NewReader(body.String())); err != nil || again.ID != job.ID {
			t.Errorf("received again: %+v, %v", again, err)
		}
		var sealed []byte
		if err := d.db.QueryRow(t.Context(), `SELECT sealed FROM user_import_chunks WHERE chunk = 0`).Scan(&sealed); err != nil || bytes.Contains(sealed, []byte("example")) {
			t.Errorf("rows are kept as they are: %q, %v", sealed, err)
		}
		deaths := 0
		for deadline := time.Now().Add(60 * time.Second); job.State != Completed; deaths++ {
			var both sync.WaitGroup
			for k := range 2 {
				both.Go(func() {
					ctx, cancel := context.WithTimeout(t.Context(), time.Duration(30+40*k)*time.Millisecond)
					defer cancel()
					NewImporter(d, key, parseRow).Run(ctx, slog.New(slog.DiscardHandler))
				})
			}
			both.Wait()
			if job, err = i.Import(t.Context(), tenant, job.ID); err != nil {
				t.Fatal(err)
			}
			if time.Now().After(deadline) {
				t.Fatalf("not done: %+v", job)
			}
		}
		if job.Imported != n-100 || job.Failed != 100 || len(job.Errors) != 100 {
			t.Errorf("%d imported, %d failed, %d errors", job.Imported, job.Failed, len(job.Errors))
		}
		want := map[eventlog.Type]int{eventlog.GroupCreated: 1, eventlog.UserCreated: n - 100, eventlog.GroupMemberAdded: (n - 100) / 2, eventlog.UserImportCompleted: 1}
		if got := eventTypes(t, d.db, tenant); !maps.Equal(got, want) {
			t.Errorf("events %v, want %v", got, want)
		}
		var users, chunks int64
		if err := d.db.QueryRow(t.Context(), `SELECT (SELECT COUNT(*) FROM users), (SELECT COUNT(*) FROM user_import_chunks)`).Scan(&users, &chunks); err != nil {
			t.Fatal(err)
		}
		if users != n-100 || chunks != 0 {
			t.Errorf("%d users, %d chunks left", users, chunks)
		}
		if g, err = d.Group(t.Context(), tenant, g.ID); err != nil || g.MemberCount != (n-100)/2 {
			t.Errorf("%d members, %v", g.MemberCount, err)
		}
		t.Logf("%d runs of two", deaths)

		// A month later nothing is left of the job, nor of one that was never received.
		if err := insertImport(t.Context(), d.db, Import{ID: "job_abandoned", TenantID: tenant, State: Receiving, CreatedAt: time.Now()}); err != nil {
			t.Fatal(err)
		}
		count := func() (n int64) {
			if err := d.db.QueryRow(t.Context(), `SELECT (SELECT COUNT(*) FROM user_imports) + (SELECT COUNT(*) FROM user_import_errors)`).Scan(&n); err != nil {
				t.Fatal(err)
			}
			return n
		}
		for _, c := range []struct {
			later time.Duration
			left  int64
		}{{0, 102}, {abandonedAfter + time.Minute, 101}, {keptFor + time.Minute, 0}} {
			d.clock = func() time.Time { return time.Now().Add(c.later) }
			ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
			var running sync.WaitGroup
			running.Go(func() { NewImporter(d, key, parseRow).Run(ctx, slog.New(slog.DiscardHandler)) })
			time.Sleep(50 * time.Millisecond) // for rows that must stay
			for count() != c.left && ctx.Err() == nil {
				time.Sleep(5 * time.Millisecond)
			}
			cancel()
			running.Wait()
			if n := count(); n != c.left {
				t.Errorf("after %v %d rows are left, want %d", c.later, n, c.left)
			}
		}
	})
}

// A chunk whose passwords take longer than the lease stays with the process that works
// on it.
func TestImportRenewsItsLease(t *testing.T) {
	onEach(t, func(t *testing.T, d *Directory) {
		key, err := seal.NewKey(bytes.Repeat([]byte{1}, seal.KeySize))
		if err != nil {
			t.Fatal(err)
		}
		var passed atomic.Int64
		start := time.Now()
		d.clock = func() time.Time { return start.Add(time.Duration(passed.Load())) }
		rows := 0
		parse := func(text []byte) (ImportRow, *RowError) {
			passed.Add(int64(importLease / 2)) // what hashing the row before has taken
			rows++
			if job, err := selectWaiting(t.Context(), d.db, d.now()); rows > 1 && !errors.Is(err, ErrImportNotFound) {
				t.Errorf("at row %d others find %+v, %v", rows, job, err)
			}
			return parseRow(text)
		}
		i := NewImporter(d, key, parse)
		var body strings.Builder
		for n := range 6 {
			fmt.Fprintf(&body, `{"email":"u%d@example.com","password":"correct horse battery"}`+"\n", n)
		}
		job, err := i.Receive(t.Context(), "tnt_a", "commit", false, strings.NewReader(body.String()))
		if err != nil {
			t.Fatal(err)
		}
		if _, err := i.work(t.Context()); err != nil {
			t.Fatal(err)
		}
		if job, err = i.Import(t.Context(), "tnt_a", job.ID); err != nil || job.State != Completed || job.Imported != 6 || rows != 6 {
			t.Errorf("%+v after %d rows, %v", job, rows, err)
		}
	})
}

// A tenant cannot fill the database with imports that wait.
func TestImportsWaitingAreBounded(t *testing.T) {
	onEach(t, func(t *testing.T, d *Directory) {
		key, err := seal.NewKey(make([]byte, seal.KeySize))
		if err != nil {
			t.Fatal(err)
		}
		i := NewImporter(d, key, parseRow)
		receive := func(tenant string) error {
			_, err := i.Receive(t.Context(), tenant, "", false, strings.NewReader(`{"email":"ann@example.com"}`+"\n"))
			return err
		}
		for range MaxImportsWaiting {
			if err := receive("tnt_a"); err != nil {
				t.Fatal(err)
			}
		}
		for range 2 {
			if e, ok := errors.AsType[*fair.ExhaustedError](receive("tnt_a")); !ok || e.Limit != MaxImportsWaiting || e.RetryAfter <= 0 {
				t.Errorf("one too many: %+v", e)
			}
		}
		if err := receive("tnt_b"); err != nil {
			t.Errorf("another tenant: %v", err)
		}
		for more := true; more; {
			if more, err = i.work(t.Context()); err != nil {
				t.Fatal(err)
			}
		}
		if err := receive("tnt_a"); err == nil {
			t.Error("the database was asked again at once")
		}
		d.clock = func() time.Time { return time.Now().Add(refusedFor) }
		if err := receive("tnt_a"); err != nil {
			t.Errorf("when they are done: %v", err)
		}
	})
}
