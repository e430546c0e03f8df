package jobs

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"stonetown/internal/pgtest"
	"stonetown/internal/seal"
	"stonetown/internal/sqldb"
)

func TestMain(m *testing.M) { pgtest.Main(m) }

// fixture is a queue on one of the databases, with a clock that a test can move.
type fixture struct {
	*testing.T
	*Queue
	ahead atomic.Int64
}

func onEveryDatabase(t *testing.T, test func(f *fixture)) {
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
			f := &fixture{T: t}
			f.Queue = f.process(db, 0)
			test(f)
		})
	}
}

// process returns the queue of another process on the same database.
func (f *fixture) process(db *sqldb.DB, grace time.Duration) *Queue {
	f.Helper()
	key, err := seal.NewKey(bytes.Repeat([]byte{1}, seal.KeySize))
	if err != nil {
		f.Fatal(err)
	}
	q, err := New(Config{DB: db, Seal: key, Clock: func() time.Time { return time.Now().Add(time.Duration(f.ahead.Load())) }, Grace: grace})
	if err != nil {
		f.Fatal(err)
	}
	return q
}

func (f *fixture) put(tenantID, payload string) {
	f.Helper()
	if err := f.Put(f.Context(), tenantID, "greet", payload); err != nil {
		f.Fatal(err)
	}
}

// runDue runs the jobs that are due, as Run does, and returns the payloads.
func (f *fixture) runDue() (tried []string) {
	f.Helper()
	var mu sync.Mutex
	var working sync.WaitGroup
	err := f.start(f.Context(), func(l *lane, job Job) {
		working.Go(func() {
			payload := f.payload(job)
			mu.Lock()
			tried = append(tried, payload)
			mu.Unlock()
			f.work(f.Context(), l, job)
		})
	})
	working.Wait()
	if err != nil {
		f.Fatal(err)
	}
	return tried
}

func (f *fixture) payload(job Job) (payload string) {
	text, err := f.seal.Open(job.TenantID, job.ID, job.payload)
	if err == nil {
		err = json.Unmarshal(text, &payload)
	}
	if err != nil {
		f.Error(err)
	}
	return payload
}

func (f *fixture) rows(table string) (n int64) {
	f.Helper()
	if err := f.db.QueryRow(f.Context(), `SELECT COUNT(*) FROM `+table).Scan(&n); err != nil {
		f.Fatal(err)
	}
	return n
}

// run runs the queue in the background and returns a function that stops it.
func (f *fixture) run(q *Queue) (stop func()) {
	ctx, cancel := context.WithCancel(f.Context())
	var running sync.WaitGroup
	running.Go(func() { q.Run(ctx) })
	stop = func() { cancel(); running.Wait() }
	f.Cleanup(stop)
	return stop
}

func eventually(t testing.TB, what string, ok func() bool) {
	t.Helper()
	for end := time.Now().Add(30 * time.Second); !ok(); time.Sleep(5 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatal("not in time: " + what)
		}
	}
}

func TestFailedJobsRunAgainUntilDead(t *testing.T) {
	onEveryDatabase(t, func(f *fixture) {
		attempts, told := 0, 0
		failing := errors.New("not now")
		f.Register(Kind{
			Name: "greet",
			Handle: func(_ context.Context, job Job) error {
				if attempts++; job.Attempt != attempts {
					t.Errorf("attempt %d has the number %d", attempts, job.Attempt)
				}
				return failing
			},
			Dead: func(_ context.Context, _ *sqldb.Tx, job Job, last error) error {
				told++
				var payload string
				if err := job.Read(&payload); err != nil || payload != "hello" || !errors.Is(last, failing) {
					t.Errorf("%q is dead because of %v, %v", payload, last, err)
				}
				return nil
			},
		})
		f.put("tnt_a", "hello")
		elapsed := time.Duration(0)
		for attempts < DefaultAttempts {
			before := attempts
			if f.runDue(); attempts != before+1 {
				t.Fatalf("%d attempts after %v, want %d", attempts, elapsed, before+1)
			}
			pause := DefaultBackoff(attempts)
			f.ahead.Add(int64(pause - time.Second))
			if tried := f.runDue(); tried != nil && pause > 2*time.Second {
				t.Fatalf("run again after less than %v", pause)
			}
			f.ahead.Add(int64(time.Second))
			elapsed += pause
		}
		if elapsed < 23*time.Hour || elapsed > 27*time.Hour {
			t.Errorf("dead after %v, want about a day", elapsed)
		}
		if f.runDue(); attempts != DefaultAttempts {
			t.Error("a dead job was run")
		}
		if n := f.rows("jobs"); n != 0 {
			t.Errorf("%d rows of jobs are left", n)
		}
		if n := f.rows("dead_jobs"); n != 1 || told != 1 || f.Stats().Dead != 1 || f.Stats().Failed != DefaultAttempts {
			t.Errorf("%d dead jobs, Dead was called %d times, stats %+v", n, told, f.Stats())
		}
		f.ahead.Add(int64(deadFor))
		if err := f.deleteDead(t.Context(), f.clock().Add(-deadFor)); err != nil || f.rows("dead_jobs") != 0 {
			t.Errorf("dead jobs are stored for longer than %v: %v", deadFor, err)
		}
	})
}

// A job is not removed if Dead fails, so that its effect is not lost.
func TestDeadCommitsWithTheRemoval(t *testing.T) {
	onEveryDatabase(t, func(f *fixture) {
		calls := 0
		f.Register(Kind{
			Name: "greet", Attempts: 1, Handle: func(context.Context, Job) error { return errors.New("not now") },
			Dead: func(context.Context, *sqldb.Tx, Job, error) error {
				if calls++; calls == 1 {
					return errors.New("no event")
				}
				return nil
			},
		})
		f.put("tnt_a", "hello")
		f.runDue()
		if f.rows("jobs") != 1 || f.rows("dead_jobs") != 0 {
			t.Error("the job was removed although Dead failed")
		}
		f.ahead.Add(int64(DefaultLease))
		f.runDue()
		if f.rows("jobs") != 0 || f.rows("dead_jobs") != 1 || calls != 2 {
			t.Errorf("after the lease: %d jobs, %d dead, %d calls", f.rows("jobs"), f.rows("dead_jobs"), calls)
		}
	})
}

func TestDroppedJobsDoNotRunAgain(t *testing.T) {
	onEveryDatabase(t, func(f *fixture) {
		f.Register(Kind{Name: "greet", Handle: func(context.Context, Job) error { return errors.Join(errors.New("no such address"), ErrDrop) }})
		f.put("tnt_a", "hello")
		if tried := f.runDue(); len(tried) != 1 {
			t.Fatal(tried)
		}
		if f.rows("jobs") != 0 || f.rows("dead_jobs") != 0 {
			t.Error("the job is still stored")
		}
	})
}

// If a process dies during a job, another one runs it when the lease has expired.
func TestJobsOfDeadProcesses(t *testing.T) {
	onEveryDatabase(t, func(f *fixture) {
		ran := 0
		f.Register(Kind{Name: "greet", Attempts: 2, Handle: func(context.Context, Job) error { ran++; return nil }})
		f.put("tnt_a", "hello")
		var held Job
		if err := f.start(t.Context(), func(l *lane, job Job) { held = job; l.running-- }); err != nil || held.ID == "" {
			t.Fatal(held, err)
		}
		if tried := f.runDue(); tried != nil {
			t.Errorf("run %v during the lease of another process", tried)
		}
		f.ahead.Add(int64(DefaultLease))
		if tried := f.runDue(); len(tried) != 1 || ran != 1 {
			t.Errorf("run %v after the lease, want the job of the dead process", tried)
		}
		if err := f.remove(t.Context(), held); err != nil {
			t.Error(err)
		}
	})
}

// A job that ends its process in every attempt is dead, too.
func TestDeathsOfProcessesCountAsAttempts(t *testing.T) {
	onEveryDatabase(t, func(f *fixture) {
		ran := 0
		f.Register(Kind{Name: "greet", Attempts: 2, Handle: func(context.Context, Job) error { ran++; return nil }})
		f.put("tnt_a", "hello")
		for range 2 {
			if err := f.start(t.Context(), func(l *lane, _ Job) { l.running-- }); err != nil {
				t.Fatal(err)
			}
			f.ahead.Add(int64(DefaultLease))
		}
		f.runDue()
		if ran != 0 || f.rows("dead_jobs") != 1 {
			t.Errorf("handled %d times, %d dead jobs; want a dead job", ran, f.rows("dead_jobs"))
		}
	})
}

// A process renews its lease while a handler runs.
func TestLeaseIsRenewed(t *testing.T) {
	onEveryDatabase(t, func(f *fixture) {
		const lease = 300 * time.Millisecond
		ran := make(chan struct{}, 2)
		handle := func(context.Context, Job) error {
			ran <- struct{}{}
			time.Sleep(4 * lease)
			return nil
		}
		other := f.process(f.db, 0)
		for _, q := range []*Queue{f.Queue, other} {
			q.Register(Kind{Name: "greet", Handle: handle, Lease: lease})
		}
		f.put("tnt_a", "hello")
		f.run(f.Queue)
		f.run(other)
		eventually(t, "job done", func() bool { return f.rows("jobs") == 0 })
		if len(ran) != 1 {
			t.Errorf("%d processes ran the job", len(ran))
		}
	})
}

// The handler's context ends if another process has taken the job, and its result is ignored.
func TestLostLease(t *testing.T) {
	onEveryDatabase(t, func(f *fixture) {
		var cause error
		f.Register(Kind{Name: "greet", Lease: 90 * time.Millisecond, Handle: func(ctx context.Context, job Job) error {
			if _, err := f.db.Exec(ctx, `UPDATE jobs SET due_at = due_at + 60000000`); err != nil { // as another process does
				t.Error(err)
			}
			<-ctx.Done()
			cause = context.Cause(ctx)
			return nil
		}})
		f.put("tnt_a", "hello")
		f.runDue()
		if !errors.Is(cause, ErrLeaseLost) {
			t.Errorf("the context ended with %v, want %v", cause, ErrLeaseLost)
		}
		if f.rows("jobs") != 1 {
			t.Error("a job of another process was removed")
		}
	})
}

func TestTimeout(t *testing.T) {
	onEveryDatabase(t, func(f *fixture) {
		var cause error
		f.Register(Kind{Name: "greet", Timeout: 10 * time.Millisecond, Handle: func(ctx context.Context, job Job) error {
			<-ctx.Done()
			cause = context.Cause(ctx)
			return ctx.Err()
		}})
		f.put("tnt_a", "hello")
		f.runDue()
		if !errors.Is(cause, ErrTimeout) || f.Stats().Failed != 1 {
			t.Errorf("the context ended with %v, stats %+v", cause, f.Stats())
		}
	})
}

// Two processes run all jobs, each once.
func TestProcessesShareJobs(t *testing.T) {
	onEveryDatabase(t, func(f *fixture) {
		const all = 200
		for i := range all {
			f.put(fmt.Sprintf("tnt_%d", i%3), "hello")
		}
		var mu sync.Mutex
		ran := map[string]int{}
		handle := func(_ context.Context, job Job) error {
			mu.Lock()
			defer mu.Unlock()
			ran[job.ID]++
			return nil
		}
		other := f.process(f.db, 0)
		for _, q := range []*Queue{f.Queue, other} {
			q.Register(Kind{Name: "greet", Handle: handle})
			f.run(q)
		}
		eventually(t, "all jobs done", func() bool { return f.rows("jobs") == 0 })
		mu.Lock()
		defer mu.Unlock()
		if len(ran) != all {
			t.Errorf("%d of %d jobs were run", len(ran), all)
		}
		for job, times := range ran {
			if times != 1 {
				t.Errorf("%s was run %d times", job, times)
			}
		}
		if n := f.Stats().Done + other.Stats().Done; n != all {
			t.Errorf("%d jobs counted as done", n)
		}
	})
}

// However many jobs of one tenant are due, a job of another tenant waits for one of them for
// each place.
func TestTenantsShareFairly(t *testing.T) {
	onEveryDatabase(t, func(f *fixture) {
		const places = 2
		var mu sync.Mutex
		var order []string
		f.Register(Kind{Name: "greet", Concurrency: places, Handle: func(_ context.Context, job Job) error {
			mu.Lock()
			defer mu.Unlock()
			order = append(order, job.TenantID)
			return nil
		}})
		var b sqldb.Batch
		for range 1000 {
			f.Enqueue(&b, "tnt_b", "greet", "one of many")
		}
		if err := f.db.Tx(t.Context(), func(tx *sqldb.Tx) error { return tx.Send(t.Context(), &b) }); err != nil {
			t.Fatal(err)
		}
		f.put("tnt_a", "few")
		f.put("tnt_c", "few")
		f.put("tnt_c", "few")
		stop := f.run(f.Queue)
		eventually(t, "50 jobs run", func() bool { mu.Lock(); defer mu.Unlock(); return len(order) >= 50 })
		stop()
		if a := slices.Index(order, "tnt_a"); a < 0 || a > 2*places+1 {
			t.Errorf("the job of tnt_a was number %d", a)
		}
		c := 0
		for _, tenant := range order[:6*places] {
			if tenant == "tnt_c" {
				c++
			}
		}
		if c != 2 {
			t.Errorf("%d jobs of tnt_c were among the first ones: %v", c, order[:6*places])
		}
	})
}

// A kind whose places are all taken does not delay another kind.
func TestKindsHavePlacesOfTheirOwn(t *testing.T) {
	onEveryDatabase(t, func(f *fixture) {
		release := make(chan struct{})
		f.Register(Kind{Name: "slow", Concurrency: 1, Handle: func(context.Context, Job) error { <-release; return nil }})
		var greeted atomic.Int64
		f.Register(Kind{Name: "greet", Handle: func(context.Context, Job) error { greeted.Add(1); return nil }})
		for range 10 {
			if err := f.Put(t.Context(), "tnt_a", "slow", ""); err != nil {
				t.Fatal(err)
			}
		}
		f.put("tnt_a", "hello")
		f.run(f.Queue)
		eventually(t, "the other kind to run", func() bool { return greeted.Load() == 1 })
		close(release)
		eventually(t, "all to end", func() bool { return f.rows("jobs") == 0 })
	})
}

// A stop waits for handlers, and returns jobs of those that take too long without counting
// the attempt.
func TestStop(t *testing.T) {
	onEveryDatabase(t, func(f *fixture) {
		f.Queue = f.process(f.db, 200*time.Millisecond)
		begun := make(chan struct{}, 2)
		finished := atomic.Bool{}
		f.Register(Kind{Name: "greet", Handle: func(ctx context.Context, job Job) error {
			var payload string
			if err := job.Read(&payload); err != nil {
				return err
			}
			begun <- struct{}{}
			if payload == "short" {
				time.Sleep(50 * time.Millisecond)
				finished.Store(ctx.Err() == nil)
				return ctx.Err()
			}
			<-ctx.Done()
			return ctx.Err()
		}})
		f.put("tnt_a", "short")
		f.put("tnt_a", "long")
		stop := f.run(f.Queue)
		<-begun
		<-begun
		stop()
		if !finished.Load() {
			t.Error("the stop ended the context of a handler that needs less than the grace")
		}
		var attempts, due int64
		if err := f.db.QueryRow(t.Context(), `SELECT attempts, due_at FROM jobs`).Scan(&attempts, &due); err != nil {
			t.Fatal(err)
		}
		if attempts != 0 || due > f.clock().UnixMicro() {
			t.Errorf("the interrupted job has %d attempts and is due at %d", attempts, due)
		}
	})
}

// A process leaves jobs of kinds that it does not have to processes that have them.
// A process that is stopped while it takes jobs leaves no lease on a job that it does not run.
func TestStopWhileTaking(t *testing.T) {
	onEveryDatabase(t, func(f *fixture) {
		for range 300 {
			f.put("tnt_a", "hello")
		}
		for i := 0; f.rows("jobs") > 0; i++ {
			q := f.process(f.db, time.Hour)
			q.Register(Kind{Name: "greet", Handle: func(context.Context, Job) error { return nil }})
			ctx, stop := context.WithTimeout(f.Context(), time.Duration(100+i*50)*time.Microsecond)
			q.Run(ctx)
			stop()
			var leased int64
			if err := f.db.QueryRow(f.Context(), `SELECT COUNT(*) FROM jobs WHERE attempts > 0`).Scan(&leased); err != nil {
				f.Fatal(err)
			}
			if leased > 0 {
				f.Fatalf("%d jobs are leased after stop %d", leased, i)
			}
		}
	})
}

func TestUnknownKinds(t *testing.T) {
	onEveryDatabase(t, func(f *fixture) {
		f.Register(Kind{Name: "other", Handle: func(context.Context, Job) error { return nil }})
		f.put("tnt_a", "hello")
		if tried := f.runDue(); tried != nil || f.rows("jobs") != 1 {
			t.Errorf("run %v, %d jobs are left", tried, f.rows("jobs"))
		}
	})
}

func TestPayloadsAreSealed(t *testing.T) {
	onEveryDatabase(t, func(f *fixture) {
		f.put("tnt_a", "a secret of a user")
		var stored []byte
		if err := f.db.QueryRow(t.Context(), `SELECT payload FROM jobs`).Scan(&stored); err != nil {
			t.Fatal(err)
		}
		if bytes.Contains(stored, []byte("secret")) {
			t.Error("the payload is stored in clear text")
		}
	})
}

func TestBackoff(t *testing.T) {
	b := Exponential(5*time.Second, time.Minute)
	for n, want := range map[int]time.Duration{1: 5 * time.Second, 2: 10 * time.Second, 4: 40 * time.Second, 5: time.Minute, 1000: time.Minute} {
		if got := b(n); got != want {
			t.Errorf("pause %d is %v, want %v", n, got, want)
		}
	}
}

func TestRegisterRefuses(t *testing.T) {
	handle := func(context.Context, Job) error { return nil }
	for name, k := range map[string]Kind{"no name": {Handle: handle}, "no handler": {Name: "a"}, "twice": {Name: "b", Handle: handle}} {
		t.Run(name, func(t *testing.T) {
			defer func() {
				if recover() == nil {
					t.Error("registered")
				}
			}()
			q := &Queue{}
			q.Register(Kind{Name: "b", Handle: handle})
			q.Register(k)
		})
	}
}
