package sqlstore

import (
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"stonetown/internal/sqldb"
	"stonetown/tuplestore"
)

// If any page of the embedded database is overwritten, a read is answered as before or with
// an error, and the check of a restore finds it. Zeros are an exception: they can be taken
// for the end of a value that spans pages, which only a read of the value detects.
func TestCorruptPages(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "whole.db")
	db := openDB(t, "sqlite://"+path)
	s := open(t, Config{DB: db})
	for i := range 18 {
		var ops []tuplestore.Op
		for n := range 50 {
			ops = append(ops, tuplestore.Op{Tuple: tupleOf([6]string{"doc", fmt.Sprint(n), "viewer", "user", fmt.Sprint(i), ""})})
		}
		if i%3 == 2 {
			ops = append(ops, tuplestore.Op{Kind: tuplestore.DeleteMatching, Match: tuplestore.Filter{SubjectType: "user", SubjectID: fmt.Sprint(i - 1)}})
		}
		if _, err := s.Write(t.Context(), "t", tuplestore.Write{Ops: ops, PutSchema: fmt.Append(nil, "schema ", i)}); err != nil {
			t.Fatal(err)
		}
	}
	// reads returns the answers of all kinds of reads, or their errors.
	reads := func(s *Store) (answers []any, errs int) {
		t.Helper()
		add := func(answer any, err error) {
			if err != nil {
				answer = err
				errs++
			}
			answers = append(answers, answer)
		}
		for _, rev := range []tuplestore.Revision{9, 18} {
			snapshot := s.Snapshot("t", rev)
			var scanned []tuplestore.Record
			var failed error
			for r, err := range snapshot.Scan(t.Context(), tuplestore.Filter{}) {
				if err != nil {
					failed = err
					break
				}
				scanned = append(scanned, r)
			}
			add(scanned, failed)
			add(snapshot.List(t.Context(), tuplestore.Filter{SubjectType: "user", SubjectID: "7"}, nil, 1000))
			facts, err := snapshot.Find(t.Context(), tuplestore.Lookup{Tuples: []tuplestore.Tuple{
				tupleOf([6]string{"doc", "7", "viewer", "user", "3", ""}), tupleOf([6]string{"doc", "7", "viewer", "user", "4", ""}),
			}})
			add(len(facts), err)
			document, _, err := snapshot.Schema(t.Context())
			add(string(document), err)
		}
		add(s.Changes(t.Context(), "t", 0, 100))
		return answers, errs
	}
	want, errs := reads(s)
	if errs > 0 {
		t.Fatal(want)
	}
	path = filepath.Join(dir, "copy.db")
	if err := db.Backup(t.Context(), path); err != nil {
		t.Fatal(err)
	}
	whole, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	const page = 4096
	random := rand.New(rand.NewPCG(1, 1))
	refused, unharmed := 0, 0
	for n := range len(whole) / page {
		for kind, garbage := range map[string]func(i int) byte{
			"zeros": func(int) byte { return 0 },
			"noise": func(int) byte { return byte(random.Uint32()) },
		} {
			name := fmt.Sprintf("%s in page %d", kind, n+1)
			damaged := append([]byte(nil), whole...)
			for i := range page {
				damaged[n*page+i] = garbage(i)
			}
			file := filepath.Join(dir, strings.ReplaceAll(name, " ", "_")+".db")
			if err := os.WriteFile(file, damaged, 0o600); err != nil {
				t.Fatal(err)
			}
			damagedDB, err := sqldb.Open(t.Context(), sqldb.Config{URL: "sqlite://" + file})
			if err != nil {
				refused++
				continue
			}
			s, err := New(Config{DB: damagedDB})
			if err != nil {
				t.Fatal(err)
			}
			got, errs := reads(s)
			for i := range got {
				if _, isError := got[i].(error); isError {
					continue
				}
				if diff := cmp.Diff(want[i], got[i]); diff != "" {
					t.Errorf("%s: a wrong answer (-want +got):\n%s", name, diff)
				}
			}
			if errs > 0 {
				refused++
			} else {
				unharmed++ // of tables that were not read
			}
			if found := damagedDB.CheckIntegrity(t.Context()); errs > 0 && found == nil && kind == "noise" {
				t.Errorf("%s: reads fail, but the check of a restore finds nothing", name)
			}
			_ = s.Close()
			_ = damagedDB.Close() // it may fail, too
			_ = os.Remove(file)
		}
	}
	t.Logf("%d pages, each overwritten in two ways: %d refused, %d unharmed", len(whole)/page, refused, unharmed)
}
