package jobs

import (
	"context"
	"fmt"
	"testing"
	"time"
)

// TestDue: each row that is due leads to one job, whichever of the processes finds it, and is due again if
// its job never sets the time.
func TestDue(t *testing.T) {
	onEveryDatabase(t, func(f *fixture) {
		ctx := f.Context()
		for _, statement := range []string{
			`CREATE TABLE lists (tenant_id TEXT NOT NULL, id TEXT NOT NULL, check_at BIGINT NOT NULL, PRIMARY KEY (tenant_id, id))`,
			fmt.Sprintf(`INSERT INTO lists (tenant_id, id, check_at) VALUES ('tnt_a', 'never', %d)`, Never),
		} {
			if _, err := f.db.Exec(ctx, statement); err != nil {
				f.Fatal(err)
			}
		}
		const rows = 2*dueAtOnce + 1
		now := time.Now()
		for n := range rows {
			if _, err := f.db.Exec(ctx, `INSERT INTO lists (tenant_id, id, check_at) VALUES ($1, $2, $3)`, "tnt_a", fmt.Sprint(n), now.UnixMicro()-int64(n)); err != nil {
				f.Fatal(err)
			}
		}
		due := Due{Table: "lists", Kind: "fetch", Payload: func(id string) any { return id }, Again: time.Hour}
		enqueue := func(now time.Time) (jobs int) {
			f.Helper()
			failed := make(chan error, 2)
			for range 2 { // two processes
				q := f.process(f.db, 0)
				go func() {
					for more := true; more; {
						var err error
						if more, err = q.EnqueueDue(context.WithoutCancel(ctx), now, due); err != nil {
							failed <- err
							return
						}
					}
					failed <- nil
				}()
			}
			for range 2 {
				if err := <-failed; err != nil {
					f.Fatal(err)
				}
			}
			if err := f.db.QueryRow(ctx, `SELECT COUNT(*) FROM jobs WHERE kind = 'fetch'`).Scan(&jobs); err != nil {
				f.Fatal(err)
			}
			return jobs
		}
		for _, c := range []struct {
			after time.Duration
			want  int
		}{{-time.Hour, 0}, {0, rows}, {59 * time.Minute, rows}, {time.Hour, 2 * rows}} {
			if got := enqueue(now.Add(c.after)); got != c.want {
				f.Errorf("%d jobs after %v, want %d", got, c.after, c.want)
			}
		}
	})
}
