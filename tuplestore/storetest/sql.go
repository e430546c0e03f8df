package storetest

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"

	"stonetown/internal/sqldb"
	"stonetown/tuplestore"
)

// RunSQL tests that rows written by Also and Attach commit if and only if their write does.
func RunSQL(t *testing.T, open func(t *testing.T) (tuplestore.Store, *sqldb.DB)) {
	for _, c := range []struct {
		promise string
		test    func(*sqlFixture)
	}{
		{"rows are committed with the write", func(f *sqlFixture) {
			f.write(tuplestore.Write{Ops: creations(viewer("1", "ann")), Also: f.insert("a")})
			f.write(tuplestore.Write{Also: f.insert("b")}) // changes no tuple
			f.holds(viewer("1", "ann"))
			f.rows("a", "b")
		}},
		{"a transaction reads its own rows", func(f *sqlFixture) {
			f.write(tuplestore.Write{Ops: creations(viewer("1", "ann")), Also: func(ctx context.Context, tx *sqldb.Tx) error {
				if err := f.insert("a")(ctx, tx); err != nil {
					return err
				}
				var n int
				if err := tx.QueryRow(ctx, `SELECT count(*) FROM storetest_rows`).Scan(&n); err != nil {
					return err
				}
				if n != 1 {
					f.Errorf("the transaction sees %d rows, want its 1", n)
				}
				return nil
			}})
		}},
		{"rows are rolled back with the write", func(f *sqlFixture) {
			sentinel := errors.New("no")
			err := f.refuse(tuplestore.Write{Ops: creations(viewer("1", "ann")), Also: func(ctx context.Context, tx *sqldb.Tx) error {
				return errors.Join(f.insert("a")(ctx, tx), sentinel)
			}})
			if !errors.Is(err, sentinel) {
				f.Errorf("error is %v, want that of Also", err)
			}
			f.conflict(tuplestore.Write{Ops: []tuplestore.Op{remove(viewer("1", "ann"))}, Also: f.insert("b")})
			f.rows()
			f.holds()
		}},
		{"rows are written once when the write is sent again", func(f *sqlFixture) {
			for _, w := range []tuplestore.Write{
				{CommitID: "changing", Ops: creations(viewer("1", "ann")), Also: f.insert("a")},
				{CommitID: "changing nothing", Also: f.insert("b")},
			} {
				f.same("result of the replay", f.write(w), f.write(w))
			}
			f.rows("a", "b")
		}},
		{"a statement that fails aborts only its own write", func(f *sqlFixture) {
			f.write(tuplestore.Write{Also: f.insert("taken")})
			sentinel := errors.New("no")
			release := f.hold()
			var done []<-chan outcome
			wantRows, wantTuples := []string{"taken"}, []tuplestore.Tuple{held}
			for i := range 50 {
				row := fmt.Sprintf("row %02d", i)
				w := tuplestore.Write{Ops: creations(viewer(fmt.Sprint(i%5), fmt.Sprint(i)))}
				switch i % 5 {
				case 1: // the second insert violates the primary key
					w.Also = func(ctx context.Context, tx *sqldb.Tx) error {
						return errors.Join(f.insert(row)(ctx, tx), f.insert("taken")(ctx, tx))
					}
				case 2: // all statements succeed, but Also returns an error
					w.Also = func(ctx context.Context, tx *sqldb.Tx) error {
						return errors.Join(f.insert(row)(ctx, tx), sentinel)
					}
				case 3:
					wantTuples = append(wantTuples, w.Ops[0].Tuple)
				default:
					w.Also = f.insert(row)
					wantRows, wantTuples = append(wantRows, row), append(wantTuples, w.Ops[0].Tuple)
				}
				done = append(done, f.start(f.ctx, w))
			}
			release()
			for i, c := range done {
				o := wait(f.fixture, "neighbours", c)
				switch i % 5 {
				case 1:
					if !sqldb.IsUniqueViolation(o.err) {
						f.Errorf("write %d: error %v, want a unique violation", i, o.err)
					}
				case 2:
					if !errors.Is(o.err, sentinel) {
						f.Errorf("write %d: error %v, want that of Also", i, o.err)
					}
				default:
					if o.err != nil {
						f.Errorf("write %d: %v", i, o.err)
					}
				}
			}
			f.holds(wantTuples...)
			slices.Sort(wantRows)
			f.rows(wantRows...)
			if got, want := f.head().Revision, tuplestore.Revision(len(wantTuples)); got != want {
				f.Errorf("head is %d after %d writes that changed tuples", got, want)
			}
		}},
		{"attached rows are committed with the write", func(f *sqlFixture) {
			f.write(tuplestore.Write{Ops: creations(viewer("1", "ann")), Attach: f.attach("a")})
			f.write(tuplestore.Write{Ops: creations(viewer("1", "ann")), Attach: f.attach("b")}) // changes no tuple
			f.write(tuplestore.Write{CommitID: "id", Attach: f.attach("c", "d")})
			f.write(tuplestore.Write{PutSchema: []byte("schema"), Attach: f.attach("e")})
			f.holds(viewer("1", "ann"))
			f.rows("a", "b", "c", "d", "e")
		}},
		{"attaching nothing works", func(f *sqlFixture) {
			f.write(tuplestore.Write{Ops: creations(viewer("1", "ann")), Attach: f.attach()})
			if got := f.write(tuplestore.Write{Attach: f.attach()}).Revision; got != 1 {
				f.Errorf("a write of nothing is at revision %d, want 1", got)
			}
			f.holds(viewer("1", "ann"))
			f.rows()
		}},
		{"Attach gets the result, and runs after Also", func(f *sqlFixture) {
			f.apply(create(viewer("1", "ann")))
			ran := false
			var told tuplestore.Result
			w := tuplestore.Write{
				Ops: []tuplestore.Op{create(viewer("1", "ann")), createOn(expired, viewer("1", "ann")), removeMatching(tuplestore.Filter{ObjectType: "doc"})},
				Also: func(ctx context.Context, tx *sqldb.Tx) error {
					ran = true
					return f.insert("also")(ctx, tx)
				},
			}
			w.Attach = func(r tuplestore.Result, b *sqldb.Batch) {
				if told = r; !ran {
					f.Error("Also has not run")
				}
				b.Queue(`UPDATE storetest_rows SET id = $1 WHERE id = 'also'`, []any{fmt.Sprint("at ", r.Revision)}, nil)
			}
			f.same("result", f.write(w), told)
			f.rows("at 2")
		}},
		{"nothing is attached to a write that fails", func(f *sqlFixture) {
			f.apply(create(viewer("1", "ann")))
			never := func(tuplestore.Result, *sqldb.Batch) { f.Error("it was asked for") }
			f.conflict(tuplestore.Write{Ops: []tuplestore.Op{remove(viewer("1", "bob"))}, Attach: never})
			f.conflict(tuplestore.Write{Absent: []tuplestore.Filter{{ObjectType: "doc"}}, Attach: never})
			f.refuse(tuplestore.Write{IfSchema: new(tuplestore.Revision(7)), Attach: never})
			sentinel := errors.New("no")
			also := func(context.Context, *sqldb.Tx) error { return sentinel }
			if err := f.refuse(tuplestore.Write{Ops: creations(viewer("1", "bob")), Also: also, Attach: never}); !errors.Is(err, sentinel) {
				f.Errorf("error is %v, want that of Also", err)
			}
			f.rows()
			f.holds(viewer("1", "ann"))
		}},
		{"attached rows are rolled back with a write that they fail", func(f *sqlFixture) {
			f.write(tuplestore.Write{Attach: f.attach("taken")})
			for _, w := range []tuplestore.Write{
				{CommitID: "id", Ops: creations(viewer("1", "ann")), Also: f.insert("a"), Attach: f.attach("b", "taken")},
				{CommitID: "id", Also: f.insert("a"), Attach: f.attach("b", "taken")}, // changes no tuple
			} {
				if err := f.refuse(w); !sqldb.IsUniqueViolation(err) {
					f.Errorf("error is %v, want a unique violation", err)
				}
				f.rows("taken")
				f.holds()
			}
			f.write(tuplestore.Write{CommitID: "id", Ops: creations(viewer("1", "ann")), Attach: f.attach("b")})
			f.rows("b", "taken")
		}},
		{"attached rows are written once when the write is sent again", func(f *sqlFixture) {
			for _, w := range []tuplestore.Write{
				{CommitID: "changing", Ops: creations(viewer("1", "ann")), Attach: f.attach("a")},
				{CommitID: "changing nothing", Attach: f.attach("b")},
			} {
				first := f.write(w)
				w.Attach = func(tuplestore.Result, *sqldb.Batch) { f.Error("the replay asked for more") }
				f.same("result of the replay", first, f.write(w))
			}
			release := f.hold()
			var done []<-chan outcome
			for range 20 { // all in one group
				done = append(done, f.start(f.ctx, tuplestore.Write{CommitID: "at once", Attach: f.attach("c")}))
			}
			release()
			for _, c := range done {
				if o := wait(f.fixture, "replays", c); o.err != nil {
					f.Errorf("replay: %v", o.err)
				}
			}
			f.rows("a", "b", "c")
		}},
		{"attached rows keep their order if another write fails", func(f *sqlFixture) {
			// Each row has the number of rows before it.
			attach := func(r tuplestore.Result, b *sqldb.Batch) {
				b.Queue(`INSERT INTO storetest_rows (id) SELECT 'row ' || count(*) || ' at ' || CAST($1 AS TEXT) FROM storetest_rows`,
					[]any{fmt.Sprint(r.Revision)}, nil)
			}
			sentinel := errors.New("no")
			f.apply(create(viewer("1", "existing")))
			release := f.hold()
			var done []<-chan outcome
			for i := range 50 {
				w := tuplestore.Write{Ops: creations(viewer(fmt.Sprint(i%5), fmt.Sprint(i))), Attach: attach}
				switch i % 5 {
				case 1:
					w.Also = func(context.Context, *sqldb.Tx) error { return sentinel }
				case 2:
					w.Absent = []tuplestore.Filter{{SubjectType: "user", SubjectID: "existing"}}
				case 3:
					w.Attach = func(tuplestore.Result, *sqldb.Batch) { panic("no") }
				}
				done = append(done, f.start(f.ctx, w))
			}
			release()
			for i, c := range done {
				o := wait(f.fixture, "neighbours", c)
				_, conflict := errors.AsType[*tuplestore.ConflictError](o.err)
				switch i % 5 {
				case 1:
					if !errors.Is(o.err, sentinel) {
						f.Errorf("write %d: error %v, want that of Also", i, o.err)
					}
				case 2:
					if !conflict {
						f.Errorf("write %d: error %v, want a conflict", i, o.err)
					}
				case 3:
					if o.err == nil {
						f.Errorf("write %d, whose Attach panicked, succeeded", i)
					}
				default:
					if o.err != nil {
						f.Errorf("write %d: %v", i, o.err)
					}
				}
			}
			var want []string
			for i := range 20 { // after the existing tuple and the holding write
				want = append(want, fmt.Sprintf("row %d at %d", i, i+3))
			}
			slices.Sort(want)
			f.rows(want...)
		}},
	} {
		t.Run(c.promise, func(t *testing.T) {
			store, db := open(t)
			f := &sqlFixture{newFixture(t, store), db}
			if _, err := db.Exec(f.ctx, `CREATE TABLE storetest_rows (id TEXT NOT NULL PRIMARY KEY)`); err != nil {
				t.Fatal(err)
			}
			c.test(f)
		})
	}
}

// sqlFixture is a fixture with a table of its own.
type sqlFixture struct {
	*fixture
	db *sqldb.DB
}

// insert is an Also that writes a row.
func (f *sqlFixture) insert(id string) func(context.Context, *sqldb.Tx) error {
	return func(ctx context.Context, tx *sqldb.Tx) error {
		_, err := tx.Exec(ctx, `INSERT INTO storetest_rows (id) VALUES ($1)`, id)
		return err
	}
}

// attach is an Attach that writes rows.
func (f *sqlFixture) attach(ids ...string) func(tuplestore.Result, *sqldb.Batch) {
	return func(_ tuplestore.Result, b *sqldb.Batch) {
		for _, id := range ids {
			b.Queue(`INSERT INTO storetest_rows (id) VALUES ($1)`, []any{id}, nil)
		}
	}
}

// rows fails unless the table has exactly these.
func (f *sqlFixture) rows(want ...string) {
	f.Helper()
	rows, err := f.db.Query(f.ctx, `SELECT id FROM storetest_rows ORDER BY id`)
	if err != nil {
		f.Fatal(err)
	}
	defer rows.Close()
	var got []string
	for rows.Next() {
		var id string
		if err := rows.Scan(&id); err != nil {
			f.Fatal(err)
		}
		got = append(got, id)
	}
	if err := rows.Err(); err != nil {
		f.Fatal(err)
	}
	f.same("rows", want, got)
}

// RunShared tests two stores on one database, as in two processes.
func RunShared(t *testing.T, open func(t *testing.T) (a, b tuplestore.Store)) {
	for _, c := range []struct {
		promise string
		test    func(a, b *fixture)
	}{
		{"one store reads the other's writes at once", func(a, b *fixture) {
			for i := range 20 {
				here, there := a, b
				if i%2 > 0 {
					here, there = b, a
				}
				tuple := viewer(fmt.Sprint(i%3), fmt.Sprint(i))
				result := here.write(tuplestore.Write{Actor: "a", Ops: creations(tuple), PutSchema: fmt.Append(nil, i)})
				if want := tuplestore.Revision(i + 1); result.Revision != want {
					a.Fatalf("write %d took revision %d", want, result.Revision)
				}
				head, document, err := there.store.Latest(there.ctx, there.tenant)
				if err != nil || string(document) != fmt.Sprint(i) {
					a.Fatalf("latest schema is %q (error %v), want %d", document, err, i)
				}
				want := tuplestore.Head{Revision: result.Revision, SchemaRevision: result.Revision, Epoch: result.Epoch}
				if head != want || there.head() != want {
					a.Fatalf("heads %+v and %+v, want %+v", head, there.head(), want)
				}
				if !there.exists(there.newest(), tuple) {
					a.Fatalf("%v does not exist in the other store", tuple)
				}
				if commits := there.changes(result.Revision-1, 10); len(commits) != 1 {
					a.Fatalf("the other store's changelog goes on with %+v", commits)
				}
			}
		}},
		{"loads through both are applied whole, one after the other", func(a, b *fixture) { loadTogether(a, b) }},
		{"no head is known without a read", func(a, b *fixture) {
			a.apply(create(viewer("1", "ann")))
			b.apply(create(viewer("1", "bob")))
			for _, f := range []*fixture{a, b} {
				if head, known := f.store.KnownHead(f.tenant); known {
					f.Errorf("known head is %+v, though another process may write", head)
				}
			}
		}},
		{"known changes are those that the store made, without gaps", func(a, b *fixture) {
			epoch := a.apply(create(viewer("1", "ann"))).Epoch
			b.apply(create(viewer("1", "bob")))
			for _, f := range []*fixture{a, b} {
				known, ok := f.store.KnownChanges(f.tenant, epoch, 0)
				if ok != (f == a) {
					f.Errorf("the changes after 0 are known: %v", ok)
				}
				if ok {
					f.same("known changes", f.changes(0, 1), known)
				}
			}
			a.apply(create(viewer("1", "cat")))
			if known, ok := a.store.KnownChanges(a.tenant, epoch, 0); ok {
				a.Errorf("the changes after 0 are known to be %+v, though the other store made one of them", known)
			}
			if known, ok := a.store.KnownChanges(a.tenant, epoch, 2); ok {
				a.same("known changes after the other's", a.changes(2, 10), known)
			} else {
				a.Error("the changes after the other store's are not known")
			}
		}},
		{"a write sent again to the other store is a replay", func(a, b *fixture) {
			w := tuplestore.Write{CommitID: "id", Ops: creations(viewer("1", "ann"))}
			first := a.write(w)
			a.apply(remove(viewer("1", "ann")))
			a.same("result of the replay", first, b.write(w))
			b.holds()
		}},
		{"a schema change by the other store refuses a write", func(a, b *fixture) {
			a.write(tuplestore.Write{PutSchema: []byte("one")})
			b.write(tuplestore.Write{IfSchema: new(tuplestore.Revision(1)), PutSchema: []byte("two")})
			if err := a.refuse(tuplestore.Write{IfSchema: new(tuplestore.Revision(1)), Ops: creations(viewer("1", "ann"))}); !errors.Is(err, tuplestore.ErrSchemaChanged) {
				a.Errorf("error is %v, want ErrSchemaChanged", err)
			}
		}},
		{"every revision equals the model", func(a, b *fixture) { history(3, a, b) }},
		{"every revision of writers to both is as the changelog has it", func(a, b *fixture) { concurrentHistory(a, b) }},
		{"64 writers of both take revisions of their own", func(a, b *fixture) {
			writeTogether(a, b)
		}},
		{"of conditional writes to both, each sees those before it", func(a, b *fixture) { takeTurns(a, b) }},
		{"of writers to both who replace or refuse others, one tuple is left", func(a, b *fixture) { succeed(a, b) }},
		{"races of conditional writes to both have one winner each", func(a, b *fixture) { race(a, b) }},
	} {
		t.Run(c.promise, func(t *testing.T) {
			a, b := open(t)
			c.test(newFixture(t, a), newFixture(t, b))
		})
	}
}
