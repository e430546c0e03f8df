package userimport

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
	"stonetown/engine/authority"
	"stonetown/identity"
	"stonetown/identity/password/breached"
	"stonetown/internal/eventlog"
	"stonetown/internal/fair"
	"stonetown/internal/jobs"
	"stonetown/internal/pgtest"
	"stonetown/internal/seal"
	"stonetown/internal/sqldb"
	"stonetown/tuplestore/sqlstore"
)

func TestMain(m *testing.M) { pgtest.Main(m) }

// world is a directory of users with an engine, and a clock that tests advance.
type world struct {
	db    *sqldb.DB
	users *identity.Directory
	later atomic.Int64 // nanoseconds that the clock is ahead
}

func (w *world) now() time.Time { return time.Now().Add(time.Duration(w.later.Load())) }

// importer returns an importer, as another process would have.
func (w *world) importer(t testing.TB, parse func([]byte) (Row, *RowError)) *Importer {
	t.Helper()
	key, err := seal.NewKey(bytes.Repeat([]byte{1}, seal.KeySize))
	if err != nil {
		t.Fatal(err)
	}
	// A stop interrupts handlers.
	queue, err := jobs.New(jobs.Config{DB: w.db, Seal: key, Clock: w.now, Grace: time.Microsecond})
	if err != nil {
		t.Fatal(err)
	}
	i, err := New(Config{DB: w.db, Seal: key, Users: w.users, Jobs: queue, Parse: parse, Clock: w.now, Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	return i
}

// anyScope is a registry that has every scope.
type anyScope struct{}

func (anyScope) UnknownScopes(context.Context, *sqldb.Tx, string, []string) ([]string, error) {
	return nil, nil
}

// runAll runs the jobs of an importer until no import is unfinished.
func (w *world) runAll(t testing.TB, i *Importer) {
	t.Helper()
	ctx, stop := context.WithTimeout(t.Context(), time.Minute)
	defer stop()
	var running sync.WaitGroup
	defer running.Wait()
	running.Go(func() { i.jobs.Run(ctx) })
	for unfinished := int64(1); unfinished > 0; time.Sleep(time.Millisecond) {
		if err := w.db.QueryRow(ctx, `SELECT COUNT(*) FROM user_imports WHERE finished_at = 0`).Scan(&unfinished); err != nil {
			t.Fatal(err)
		}
	}
	stop()
}

// onEach runs a test on every database.
func onEach(t *testing.T, test func(t *testing.T, w *world)) {
	for name, url := range map[string]func(testing.TB) string{
		"sqlite":   func(t testing.TB) string { return "sqlite://" + filepath.Join(t.TempDir(), "test.db") },
		"postgres": pgtest.URL,
	} {
		t.Run(name, func(t *testing.T) {
			test(t, open(t, url(t)))
		})
	}
}

func open(t testing.TB, url string) *world {
	t.Helper()
	ctx := context.Background()
	db, err := sqldb.Open(ctx, sqldb.Config{URL: url})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { db.Close() })
	if err := db.Migrate(ctx, sqlstore.Migrations(), identity.Migrations(), jobs.Migrations(), eventlog.Migrations()); err != nil {
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
	w := &world{db: db}
	if w.users, err = identity.New(identity.Config{
		DB: db, Relations: e, Authority: authority.New(e, nil), Breached: breached.None{}, Scopes: anyScope{},
		Verification: identity.NoVerification{}, Clock: w.now, Logger: slog.New(slog.DiscardHandler),
	}); err != nil {
		t.Fatal(err)
	}
	return w
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

func parseRow(text []byte) (row Row, failed *RowError) {
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

// Pairs of processes are stopped while they import: no row is lost, and none is imported twice.
func TestImportSurvivesItsProcesses(t *testing.T) {
	onEach(t, func(t *testing.T, w *world) {
		const tenant, n = "tnt_a", 3000
		g, err := w.users.CreateGroup(t.Context(), tenant, identity.NewGroup{Slug: "crew", Name: "Crew"}, "")
		if err != nil {
			t.Fatal(err)
		}
		var body strings.Builder
		for i := range n {
			groups := ""
			if i%2 == 0 {
				groups = `,"groups":["crew"]`
			}
			fmt.Fprintf(&body, `{"email":"u%d@example.com"%s}`+"\n", i%(n-100), groups) // the last 100 repeat the first
		}
		i := w.importer(t, parseRow)
		job, err := i.Receive(t.Context(), tenant, "commit", false, strings.NewReader(body.String()))
		if err != nil || job.Total != n {
			t.Fatalf("%+v, %v", job, err)
		}
		if again, err := i.Receive(t.Context(), tenant, "commit", false, strings.NewReader(body.String())); err != nil || again.ID != job.ID {
			t.Errorf("received again: %+v, %v", again, err)
		}
		var sealed []byte
		if err := w.db.QueryRow(t.Context(), `SELECT sealed FROM user_import_chunks WHERE chunk = 0`).Scan(&sealed); err != nil || bytes.Contains(sealed, []byte("example")) {
			t.Errorf("rows are not encrypted: %q, %v", sealed, err)
		}
		life := 30 * time.Millisecond // too short for a chunk on a busy machine
		for job.State != Completed {
			var both sync.WaitGroup
			for k := range 2 {
				both.Go(func() {
					ctx, cancel := context.WithTimeout(t.Context(), life*time.Duration(1+k))
					defer cancel()
					w.importer(t, parseRow).jobs.Run(ctx)
				})
			}
			both.Wait()
			before := job
			if job, err = i.Job(t.Context(), tenant, job.ID); err != nil {
				t.Fatal(err)
			}
			if job.next == before.next {
				life = life * 5 / 4
			}
			if life > 5*time.Minute {
				t.Fatalf("not done: %+v", job)
			}
		}
		if job.Imported != n-100 || job.Failed != 100 || len(job.Errors) != 100 {
			t.Errorf("%d imported, %d failed, %d errors", job.Imported, job.Failed, len(job.Errors))
		}
		want := map[eventlog.Type]int{eventlog.GroupCreated: 1, eventlog.UserCreated: n - 100, eventlog.GroupMemberAdded: (n - 100) / 2, eventlog.UserImportCompleted: 1}
		if got := eventTypes(t, w.db, tenant); !maps.Equal(got, want) {
			t.Errorf("events %v, want %v", got, want)
		}
		var users, chunks int64
		if err := w.db.QueryRow(t.Context(), `SELECT (SELECT COUNT(*) FROM users), (SELECT COUNT(*) FROM user_import_chunks)`).Scan(&users, &chunks); err != nil {
			t.Fatal(err)
		}
		if users != n-100 || chunks != 0 {
			t.Errorf("%d users, %d chunks left", users, chunks)
		}
		if g, err = w.users.Group(t.Context(), tenant, g.ID); err != nil || g.MemberCount != (n-100)/2 {
			t.Errorf("%d members, %v", g.MemberCount, err)
		}

		// A month later the job is deleted, and so is one that was not received completely.
		if err := insertJob(t.Context(), w.db, Job{ID: "job_abandoned", TenantID: tenant, State: Receiving, CreatedAt: time.Now()}); err != nil {
			t.Fatal(err)
		}
		count := func() (n int64) {
			if err := w.db.QueryRow(t.Context(), `SELECT (SELECT COUNT(*) FROM user_imports) + (SELECT COUNT(*) FROM user_import_errors)`).Scan(&n); err != nil {
				t.Fatal(err)
			}
			return n
		}
		for _, c := range []struct {
			later time.Duration
			left  int64
		}{{0, 102}, {abandonedAfter + time.Minute, 101}, {keptFor + time.Minute, 0}} {
			w.later.Store(int64(c.later))
			ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
			var running sync.WaitGroup
			i := w.importer(t, parseRow)
			running.Go(func() { i.Run(ctx) })
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

// A job that runs again, because its process died before the result was stored, has no effect.
func TestRepeatedJobsHaveNoEffect(t *testing.T) {
	onEach(t, func(t *testing.T, w *world) {
		i := w.importer(t, parseRow)
		job, err := i.Receive(t.Context(), "tnt_a", "commit", false, strings.NewReader(`{"email":"ann@example.com","password":"correct horse battery"}`+"\n"))
		if err != nil {
			t.Fatal(err)
		}
		for _, chunk := range []int{1, 0, 0, 1, 1, 0, 2} { // one chunk, and the completion
			if err := i.advance(t.Context(), "tnt_a", chunkJob{job.ID, chunk}); err != nil && !errors.Is(err, errSuperseded) {
				t.Errorf("chunk %d: %v", chunk, err)
			}
		}
		if job, err = i.Job(t.Context(), "tnt_a", job.ID); err != nil || job.State != Completed || job.Imported != 1 || job.Failed != 0 {
			t.Errorf("%+v, %v", job, err)
		}
		want := map[eventlog.Type]int{eventlog.UserCreated: 1, eventlog.UserImportCompleted: 1}
		if got := eventTypes(t, w.db, "tnt_a"); !maps.Equal(got, want) {
			t.Errorf("events %v, want %v", got, want)
		}
	})
}

// The jobs of a canceled import end without an effect.
func TestCanceledImportsEnd(t *testing.T) {
	onEach(t, func(t *testing.T, w *world) {
		i := w.importer(t, parseRow)
		job, err := i.Receive(t.Context(), "tnt_a", "commit", false, strings.NewReader(`{"email":"ann@example.com"}`+"\n"))
		if err != nil {
			t.Fatal(err)
		}
		if job, err = i.Cancel(t.Context(), "tnt_a", job.ID); err != nil || job.State != Cancelled {
			t.Fatal(job, err)
		}
		ctx, stop := context.WithTimeout(t.Context(), 10*time.Second)
		defer stop()
		var running sync.WaitGroup
		running.Go(func() { i.jobs.Run(ctx) })
		left := int64(1)
		for left > 0 && ctx.Err() == nil {
			if err := w.db.QueryRow(t.Context(), `SELECT COUNT(*) FROM jobs`).Scan(&left); err != nil {
				t.Fatal(err)
			}
		}
		stop()
		running.Wait()
		if left > 0 || i.jobs.Stats().Failed > 0 {
			t.Errorf("%d jobs are left, %+v", left, i.jobs.Stats())
		}
	})
}

// The number of unfinished imports of a tenant is bounded.
func TestUnfinishedImportsAreBounded(t *testing.T) {
	onEach(t, func(t *testing.T, w *world) {
		i := w.importer(t, parseRow)
		receive := func(tenant string) error {
			_, err := i.Receive(t.Context(), tenant, "", false, strings.NewReader(`{"email":"ann@example.com"}`+"\n"))
			return err
		}
		for range MaxUnfinished {
			if err := receive("tnt_a"); err != nil {
				t.Fatal(err)
			}
		}
		for range 2 {
			if e, ok := errors.AsType[*fair.ExhaustedError](receive("tnt_a")); !ok || e.Limit != MaxUnfinished || e.RetryAfter <= 0 {
				t.Errorf("one too many: %+v", e)
			}
		}
		if err := receive("tnt_b"); err != nil {
			t.Errorf("another tenant: %v", err)
		}
		began := time.Now()
		w.runAll(t, i)
		w.later.Add(-int64(time.Since(began))) // the imports take no time
		if err := receive("tnt_a"); err == nil {
			t.Error("the database was queried again at once")
		}
		w.later.Add(int64(refusedFor))
		if err := receive("tnt_a"); err != nil {
			t.Errorf("when they are done: %v", err)
		}
	})
}

// BenchmarkImport measures how many rows without a password are imported in a second.
func BenchmarkImport(b *testing.B) {
	const n = 20_000
	for name, url := range map[string]func(testing.TB) string{
		"sqlite":   func(t testing.TB) string { return "sqlite://" + filepath.Join(t.TempDir(), "bench.db") },
		"postgres": pgtest.URL,
	} {
		b.Run(name, func(b *testing.B) {
			w := open(b, url(b))
			i := w.importer(b, parseRow)
			var body strings.Builder
			for k := range n {
				fmt.Fprintf(&body, `{"email":"person.%d@example.com"}`+"\n", k)
			}
			for tenant := 0; b.Loop(); tenant++ {
				if _, err := i.Receive(b.Context(), fmt.Sprint("tnt_", tenant), "", false, strings.NewReader(body.String())); err != nil {
					b.Fatal(err)
				}
				w.runAll(b, i)
			}
			b.ReportMetric(float64(b.N)*n/b.Elapsed().Seconds(), "rows/s")
		})
	}
}
