package rotation_test

import (
	"context"
	"errors"
	"path/filepath"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"stonetown/internal/pgtest"
	"stonetown/internal/rotation"
	"stonetown/internal/sqldb"
)

func TestMain(m *testing.M) { pgtest.Main(m) }

type row struct {
	ID string
	N  int64
}

func read(ctx context.Context, from rotation.Querier) (list []row, err error) {
	found, err := from.Query(ctx, `SELECT id, n FROM turning ORDER BY id`)
	if err != nil {
		return nil, err
	}
	defer found.Close()
	for found.Next() {
		var r row
		if err := found.Scan(&r.ID, &r.N); err != nil {
			return nil, err
		}
		list = append(list, r)
	}
	return list, found.Err()
}

// Processes that advance the same rows at the same time take each step once.
func TestAdvance(t *testing.T) {
	for name, url := range map[string]string{"SQLite": "sqlite:" + filepath.Join(t.TempDir(), "test.db"), "PostgreSQL": pgtest.URL(t)} {
		t.Run(name, func(t *testing.T) {
			db, err := sqldb.Open(t.Context(), sqldb.Config{URL: url})
			if err != nil {
				t.Fatal(err)
			}
			defer db.Close()
			if _, err := db.Exec(t.Context(), `CREATE TABLE turning (id TEXT NOT NULL PRIMARY KEY, n BIGINT NOT NULL)`); err != nil {
				t.Fatal(err)
			}
			const steps = 20
			rows := rotation.Rows[row]{
				DB: db, Clock: time.Now, Read: read,
				Plan: func(rows []row, _ time.Time) ([]row, error) {
					switch {
					case len(rows) == 0:
						return []row{{"a", 1}}, nil
					case rows[0].N < steps:
						return []row{{"a", rows[0].N + 1}}, nil
					}
					return nil, nil
				},
				Write: func(b *sqldb.Batch, before, changed []row, _ time.Time) {
					if len(before) == 0 {
						b.Queue(`INSERT INTO turning (id, n) VALUES ($1, $2)`, []any{changed[0].ID, changed[0].N}, nil)
					} else {
						b.Queue(`UPDATE turning SET n = n + 1 WHERE id = $1`, []any{changed[0].ID}, nil)
					}
				},
			}
			var taken atomic.Int64
			var processes sync.WaitGroup
			for range 4 {
				processes.Go(func() {
					for changed := true; changed; {
						after, more, err := rows.Advance(t.Context())
						switch changed = more; {
						case err != nil:
							t.Error(err)
						case more:
							taken.Add(1)
						case len(after) != 1 || after[0].N != steps:
							t.Errorf("%+v at the end", after)
						}
					}
				})
			}
			processes.Wait()
			if n := taken.Load(); n != steps {
				t.Errorf("%d steps were taken, want %d", n, steps)
			}
			errPlan := errors.New("no plan")
			rows.Plan = func([]row, time.Time) ([]row, error) { return nil, errPlan }
			if _, _, err := rows.Advance(t.Context()); !errors.Is(err, errPlan) {
				t.Errorf("a plan that fails: %v", err)
			}
		})
	}
}
