package identity

import (
	"fmt"
	"path/filepath"
	"testing"
	"time"

	"stonetown/internal/eventlog"
	"stonetown/internal/pgtest"
	"stonetown/internal/sqldb"
	"stonetown/tuplestore/sqlstore"
)

func TestMain(m *testing.M) { pgtest.Main(m) }

// BenchmarkUsers measures pages of 50 among 200,000 users: the first page, one in the middle, and
// searches that match many users, one user, and none, which reads the texts of all users.
func BenchmarkUsers(b *testing.B) {
	const n = 200_000
	for name, url := range map[string]func() string{
		"sqlite":   func() string { return "sqlite://" + filepath.Join(b.TempDir(), "bench.db") },
		"postgres": func() string { return pgtest.URL(b) },
	} {
		b.Run(name, func(b *testing.B) {
			ctx := b.Context()
			db, err := sqldb.Open(ctx, sqldb.Config{URL: url()})
			if err != nil {
				b.Fatal(err)
			}
			b.Cleanup(func() { db.Close() })
			if err := db.Migrate(ctx, Migrations(), eventlog.Migrations(), sqlstore.Migrations()); err != nil {
				b.Fatal(err)
			}
			began := time.Now()
			clock := func() time.Time { began = began.Add(time.Millisecond); return began }
			d, err := New(testConfig(db, clock))
			if err != nil {
				b.Fatal(err)
			}
			var last User
			for i := 0; i < n; {
				err := db.Tx(ctx, func(tx *sqldb.Tx) error {
					for range 1000 {
						last, err = d.CreateUser(ctx, tx, "tnt_a", NewUser{
							Email:   fmt.Sprintf("person.%06d@mail%d.example", i, i%7),
							Profile: Profile{Name: fmt.Sprintf("Person Number %d", i), Attributes: []byte(fmt.Sprintf(`{"department":"d%d","office":"Vienna"}`, i%40))},
						})
						if err != nil {
							return err
						}
						i++
					}
					return nil
				})
				if err != nil {
					b.Fatal(err)
				}
			}
			for _, c := range []struct {
				name  string
				f     Filter
				after *Position
				want  int
			}{
				{"first page", Filter{}, nil, 50},
				{"by address", Filter{Email: "PERSON.100000@mail5.example"}, nil, 1},
				{"page in the middle", Filter{}, &Position{CreatedAt: last.CreatedAt.Add(-n / 2 * time.Millisecond), ID: last.ID}, 50},
				{"of a state", Filter{State: Pending}, nil, 50},
				{"search of many", Filter{Query: "vienna"}, nil, 50},
				{"search of some", Filter{Query: "person d17"}, nil, 50},
				{"search of one", Filter{Query: "person.000123"}, nil, 1},
				{"search of none", Filter{Query: "zebra"}, nil, 0},
			} {
				b.Run(c.name, func(b *testing.B) {
					for b.Loop() {
						found, err := d.Users(ctx, "tnt_a", c.f, c.after, 50)
						if err != nil || len(found) != c.want {
							b.Fatalf("%d users, %v", len(found), err)
						}
					}
				})
			}
		})
	}
}
