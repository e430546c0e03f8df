package outbox

import (
	"bytes"
	"context"
	"errors"
	"path/filepath"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"stonetown/internal/pgtest"
	"stonetown/internal/seal"
	"stonetown/internal/sqldb"
)

func TestMain(m *testing.M) { pgtest.Main(m) }

// fixture is an outbox on one of the databases, with a clock of its own.
type fixture struct {
	*testing.T
	*Outbox
	ahead atomic.Int64
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
			key, err := seal.NewKey(bytes.Repeat([]byte{1}, seal.KeySize))
			if err != nil {
				t.Fatal(err)
			}
			f := &fixture{T: t}
			f.Outbox, err = New(Config{DB: db, Seal: key, Clock: func() time.Time { return time.Now().Add(time.Duration(f.ahead.Load())) }})
			if err != nil {
				t.Fatal(err)
			}
			test(f)
		})
	}
}

// put commits a job.
func (f *fixture) put(payload string) {
	f.Helper()
	if err := f.Put(f.Context(), "tnt_a", "greet", payload); err != nil {
		f.Fatal(err)
	}
}

// once does what is due now, as Run does, and returns what was tried.
func (f *fixture) once(do func(Job) error) (tried []string) {
	f.Helper()
	due, err := f.due(f.Context())
	if err != nil {
		f.Fatal(err)
	}
	for _, job := range due {
		f.work(f.Context(), job, func(_ context.Context, job Job) error {
			var payload string
			if err := job.Read(&payload); err != nil {
				f.Fatal(err)
			}
			tried = append(tried, payload)
			return do(job)
		})
	}
	return tried
}

func TestJobsAreTriedAgain(t *testing.T) {
	everywhere(t, func(f *fixture) {
		f.put("hello")
		failing := errors.New("not now")
		attempts := 0
		for after := time.Duration(0); after <= giveUpAfter+lastRetry; after += time.Second {
			for range f.once(func(job Job) error {
				if attempts++; job.Attempt != attempts {
					t.Errorf("attempt %d calls itself %d", attempts, job.Attempt)
				}
				return failing
			}) {
			}
			// As long as the wait is, nothing happens.
			wait := min(lastRetry, firstRetry<<max(0, attempts-1))
			f.ahead.Add(int64(wait - time.Second))
			if tried := f.once(func(Job) error { return nil }); tried != nil && wait > time.Second {
				t.Fatalf("tried %v after less than %v", tried, wait)
			}
			f.ahead.Add(int64(time.Second))
			after += wait
		}
		// 5 s, 10 s, …, 40 min, and hourly until a day is over.
		if attempts < 30 || attempts > 36 {
			t.Errorf("%d attempts in a day", attempts)
		}
		f.ahead.Add(int64(lastRetry))
		if tried := f.once(func(Job) error { return nil }); tried != nil {
			t.Errorf("tried %v after it was given up", tried)
		}
	})
}

func TestJobsThatAreDropped(t *testing.T) {
	everywhere(t, func(f *fixture) {
		f.put("hello")
		f.once(func(Job) error { return errors.Join(errors.New("no such address"), ErrDrop) })
		f.ahead.Add(int64(giveUpAfter))
		if tried := f.once(func(Job) error { return nil }); tried != nil {
			t.Errorf("tried %v again", tried)
		}
	})
}

// A process that dies in the middle of a job leaves it to another.
func TestJobsOfTheDead(t *testing.T) {
	everywhere(t, func(f *fixture) {
		f.put("hello")
		due, err := f.due(t.Context())
		if err != nil || len(due) != 1 {
			t.Fatal(due, err)
		}
		if claimed, err := f.claim(t.Context(), &due[0]); err != nil || !claimed {
			t.Fatal(claimed, err)
		}
		if tried := f.once(func(Job) error { return nil }); tried != nil {
			t.Errorf("tried %v while another process has it", tried)
		}
		f.ahead.Add(int64(lease))
		if tried := f.once(func(Job) error { return nil }); len(tried) != 1 {
			t.Errorf("tried %v, want the job of the dead process", tried)
		}
		if err := f.done(t.Context(), due[0]); err != nil { // who comes back late takes nothing away
			t.Error(err)
		}
	})
}

// Two processes do all jobs, and each once.
func TestProcessesShareJobs(t *testing.T) {
	everywhere(t, func(f *fixture) {
		const jobs = 200
		for i := range jobs {
			f.put(string(rune('a' + i%26)))
		}
		other := *f.Outbox
		other.woken = make(chan struct{}, 1)
		var mu sync.Mutex
		done := map[string]int{}
		ctx, stop := context.WithCancel(t.Context())
		var running sync.WaitGroup
		for _, o := range []*Outbox{f.Outbox, &other} {
			running.Go(func() {
				o.Run(ctx, func(_ context.Context, job Job) error {
					mu.Lock()
					defer mu.Unlock()
					done[job.ID]++
					return nil
				})
			})
		}
		for end := time.Now().Add(30 * time.Second); time.Now().Before(end); time.Sleep(10 * time.Millisecond) {
			mu.Lock()
			n := len(done)
			mu.Unlock()
			if n == jobs {
				break
			}
		}
		stop()
		running.Wait()
		if len(done) != jobs {
			t.Errorf("%d of %d jobs were done", len(done), jobs)
		}
		for job, times := range done {
			if times != 1 {
				t.Errorf("%s was done %d times", job, times)
			}
		}
		var left int64
		if err := f.db.QueryRow(t.Context(), `SELECT COUNT(*) FROM outbox`).Scan(&left); err != nil || left != 0 {
			t.Errorf("%d jobs are left: %v", left, err)
		}
	})
}

func TestPayloadsAreSealed(t *testing.T) {
	everywhere(t, func(f *fixture) {
		f.put("a secret of somebody")
		var stored []byte
		if err := f.db.QueryRow(t.Context(), `SELECT payload FROM outbox`).Scan(&stored); err != nil {
			t.Fatal(err)
		}
		if bytes.Contains(stored, []byte("secret")) {
			t.Error("the payload is stored as it is")
		}
	})
}
