package sqlstore

import (
	"flag"
	"fmt"
	"testing"
	"time"

	"stonetown/internal/sqldb"
	"stonetown/tuplestore"
)

var growthRounds = flag.Int("growth-rounds", 12, "how many retentions of writing to go through, on each database")

// Under continuous writes, the stored history is limited to one retention, and the file of
// the embedded database stops growing.
func TestGrowthIsBounded(t *testing.T) {
	const perRound, retention = 300, time.Hour
	onEach(t, func(t *testing.T, url string) {
		db := openDB(t, url)
		now := time.Date(2026, 11, 21, 0, 0, 0, 0, time.UTC)
		s := open(t, Config{DB: db, Clock: func() time.Time { return now }})
		count := func(table string) (n int64) {
			t.Helper()
			if err := db.QueryRow(t.Context(), "SELECT COUNT(*) FROM "+table).Scan(&n); err != nil { // it is the only tenant
				t.Fatal(err)
			}
			return n
		}
		var early int64 // the size of the file after a few rounds
		for round := range *growthRounds {
			for i := range perRound {
				now = now.Add(retention / perRound)
				// A share that is created, updated and deleted; a guest for ten minutes.
				share := tupleOf([6]string{"doc", fmt.Sprint(i % 10), "viewer", "user", "ann", ""})
				guest := tupleOf([6]string{"doc", fmt.Sprint(i % 10), "viewer", "user", fmt.Sprintf("guest %d.%d", round, i), ""})
				op := tuplestore.Op{Tuple: share}
				switch i / 10 % 3 {
				case 1:
					op.Qualifier.Condition = "on_call"
				case 2:
					op.Kind = tuplestore.Delete
				}
				w := tuplestore.Write{CommitID: fmt.Sprintf("%d.%d", round, i), PutSchema: fmt.Append(nil, round, i), Ops: []tuplestore.Op{
					op, {Tuple: guest, Qualifier: tuplestore.Qualifier{ExpiresAt: now.Add(10 * time.Minute).UnixMicro()}},
				}}
				if _, err := s.Write(t.Context(), "growth", w); err != nil {
					t.Fatal(err)
				}
			}
			before := now.Add(-retention)
			if err := s.Expire(t.Context(), before); err != nil {
				t.Fatal(err)
			}
			if err := s.Collect(t.Context(), before, before); err != nil {
				t.Fatal(err)
			}
			// The row of a guest is kept for a retention after its expiry, and then its
			// history for another.
			for table, most := range map[string]int64{
				live: 2*perRound + 10, history: 3 * perRound, "tenant_commits": perRound + 5,
				"tenant_receipts": perRound + 5, "tenant_schemas": perRound + 5,
			} {
				if n := count(table); n > most {
					t.Fatalf("round %d: %d rows in %s, want at most %d", round, n, table, most)
				}
			}
			if db.Dialect() != sqldb.SQLite {
				continue
			}
			var pages, size int64
			if err := db.QueryRow(t.Context(), `SELECT page_count, page_size FROM pragma_page_count, pragma_page_size`).Scan(&pages, &size); err != nil {
				t.Fatal(err)
			}
			if round == 5 {
				early = pages * size
			}
			if round > 5 && pages*size > early*3/2 {
				t.Fatalf("round %d: %d bytes, after some rounds it was %d", round, pages*size, early)
			}
			if round == *growthRounds-1 {
				t.Logf("%d writes: the file has %d KiB, after %d it had %d", (round+1)*perRound, pages*size>>10, 6*perRound, early>>10)
			}
		}
	})
}
