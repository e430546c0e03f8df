package sqldb

import (
	"path/filepath"
	"runtime"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"stonetown/internal/fair"
)

// Beside heavy work, commits and what prepares them are on the same processors. See
// [fair.CommitThread].
func TestCommitsBesideHeavyWork(t *testing.T) {
	if runtime.NumCPU() < 2 {
		t.Skip("there is one processor")
	}
	db := open(t, "sqlite://"+filepath.Join(t.TempDir(), "test.db"))
	processors := func() (n int) {
		var set unix.CPUSet
		if err := unix.SchedGetaffinity(0, &set); err != nil {
			t.Error(err)
		}
		return set.Count()
	}
	commit := func() (n int) {
		p, err := db.Pipeline(t.Context(), nil)
		if err != nil {
			t.Error(err)
			return 0
		}
		defer p.Rollback()
		b := new(Batch)
		b.Queue(`SELECT 1`, nil, func(rows *Rows) error {
			n = processors()
			return rows.Err()
		})
		if err := p.Commit(t.Context(), b); err != nil {
			t.Error(err)
		}
		return n
	}
	all := processors()
	time.Sleep(200 * time.Millisecond) // another test may have done heavy work
	if n := commit(); n != all {
		t.Errorf("without heavy work a commit uses %d processors, want %d", n, all)
	}
	fair.NewHeavyThreads(1, t.Context().Done()).Do(func() {
		heavy := processors()
		if heavy == all {
			t.Errorf("heavy work has all %d processors", all)
			return
		}
		done := make(chan struct{})
		go func() {
			defer close(done)
			var alone, prepared, committed int
			for range 10 {
				time.Sleep(100 * time.Millisecond) // so that commits do not take most of the time, on a busy machine too
				if alone = commit(); processors() != all {
					t.Errorf("the caller of a commit has %d processors, want %d", processors(), all)
				}
				time.Sleep(100 * time.Millisecond)
				db.OnCommitThread(func() { prepared, committed = processors(), commit() })
				if alone == heavy && prepared == heavy && committed == heavy {
					return
				}
			}
			t.Errorf("beside heavy work a commit uses %d processors, and if it is prepared there, %d prepare and %d make it; want %d", alone, prepared, committed, heavy)
		}()
		<-done
	})
}
