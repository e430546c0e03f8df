package sqlstore

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/url"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/jackc/pgx/v5/pgconn"

	"stonetown/internal/pgtest"
	"stonetown/internal/sqldb"
	"stonetown/tuplestore"
)

func creation(object, subject string) tuplestore.Op {
	return tuplestore.Op{Kind: tuplestore.Create, Tuple: tupleOf([6]string{"doc", object, "viewer", "user", subject, ""})}
}

func TestRoundTrips(t *testing.T) {
	proxied, roundTrips := pgtest.Latency(t, pgtest.URL(t), 0)
	s := open(t, Config{DB: openDB(t, proxied)})
	ctx := t.Context()
	var rev tuplestore.Revision
	write := func(w tuplestore.Write) func() error {
		return func() error {
			w.Ops = []tuplestore.Op{creation(fmt.Sprint(rev), "ann"), creation(fmt.Sprint(rev), "bob")}
			if rev > 0 {
				w.Ops = append(w.Ops, tuplestore.Op{Kind: tuplestore.DeleteMatching, Match: tuplestore.Filter{ObjectType: "doc", ObjectID: fmt.Sprint(rev - 1)}})
			}
			r, err := s.Write(ctx, "t", w)
			rev = r.Revision
			return err
		}
	}
	exec(t, s.DB, `CREATE TABLE attached (what TEXT)`)
	attach := func(statements int) func(tuplestore.Result, *sqldb.Batch) {
		return func(r tuplestore.Result, b *sqldb.Batch) {
			for range statements {
				b.Queue(`INSERT INTO attached VALUES ($1)`, []any{fmt.Sprint(r.Revision)}, nil)
			}
		}
	}
	absent := []tuplestore.Filter{{ObjectType: "folder"}}
	plain := tuplestore.Tuple{Object: tuplestore.Object{Type: "doc", ID: "1"}, Relation: "viewer", Subject: tuplestore.Subject{Type: "user", ID: "ann"}}
	for _, c := range []struct {
		name string
		want int
		call func() error
	}{
		{"write", 2, write(tuplestore.Write{})},
		{"write with a schema and a commit ID", 2, func() error {
			return write(tuplestore.Write{CommitID: fmt.Sprint("id", rev), PutSchema: []byte("schema")})()
		}},
		{"write with preconditions", 2, func() error {
			r, err := s.Write(ctx, "t", tuplestore.Write{Absent: absent, Ops: []tuplestore.Op{creation("x", fmt.Sprint(rev))}})
			rev = r.Revision
			return err
		}},
		{"write with an Also of one statement", 3, write(tuplestore.Write{Also: func(ctx context.Context, tx *sqldb.Tx) error {
			return tx.QueryRow(ctx, `SELECT 1`).Scan(new(int))
		}})},
		{"write with statements attached", 2, write(tuplestore.Write{Attach: attach(3)})},
		{"write that changes nothing but has statements attached", 2, func() error {
			_, err := s.Write(ctx, "t", tuplestore.Write{Attach: attach(1)})
			return err
		}},
		{"write with another qualifier", 2, func() error {
			update := creation("qualified", "ann")
			update.Qualifier.ExpiresAt = int64(rev)
			r, err := s.Write(ctx, "t", tuplestore.Write{Ops: []tuplestore.Op{update}})
			rev = r.Revision
			return err
		}},
		{"find", 1, func() error {
			_, err := s.Snapshot("t", rev).Find(ctx, tuplestore.Lookup{
				Tuples: []tuplestore.Tuple{plain}, Usersets: []tuplestore.Node{plain.Node()}, All: []tuplestore.Node{plain.Node()},
				Naming: []tuplestore.Object{plain.Subject.Object()},
			})
			return err
		}},
		{"find in the past", 1, func() error {
			_, err := s.Snapshot("t", 1).Find(ctx, tuplestore.Lookup{Tuples: []tuplestore.Tuple{plain}})
			return err
		}},
		{"list", 1, func() error {
			_, err := s.Snapshot("t", rev).List(ctx, tuplestore.Filter{ObjectType: "doc"}, nil, 10)
			return err
		}},
		{"schema", 1, func() error { _, _, err := s.Snapshot("t", rev).Schema(ctx); return err }},
		{"changes", 1, func() error { _, err := s.Changes(ctx, "t", 1, 10); return err }},
		{"head", 1, func() error { _, err := s.Head(ctx, "t"); return err }},
		{"latest", 1, func() error { _, _, err := s.Latest(ctx, "t"); return err }},
	} {
		for range 3 { // prepares all variants of the statements
			if err := c.call(); err != nil {
				t.Fatalf("%s: %v", c.name, err)
			}
		}
		before, counted := roundTrips(), s.DB.Stats().RoundTrips
		if err := c.call(); err != nil {
			t.Fatalf("%s: %v", c.name, err)
		}
		if n := roundTrips() - before; n != c.want {
			t.Errorf("%s: %d round trips, want %d", c.name, n, c.want)
		}
		if n := s.DB.Stats().RoundTrips - counted; n != int64(c.want) {
			t.Errorf("%s: %d round trips counted, want %d", c.name, n, c.want)
		}
	}
}

// Writes that are queued during one transaction are committed by the next.
func TestQueuedWritesShareTransactions(t *testing.T) {
	onEach(t, func(t *testing.T, url string) {
		var transactions atomic.Int64
		db := openDB(t, url)
		s := open(t, Config{DB: db})
		ctx := t.Context()
		entered, leave := make(chan struct{}), make(chan struct{})
		var wg sync.WaitGroup
		wg.Go(func() {
			_, err := s.Write(ctx, "t", tuplestore.Write{Ops: []tuplestore.Op{creation("first", "ann")}, Also: func(context.Context, *sqldb.Tx) error {
				close(entered)
				<-leave
				return nil
			}})
			if err != nil {
				t.Error(err)
			}
		})
		<-entered
		const writers = 50
		revisions := make([]tuplestore.Revision, writers)
		for i := range writers {
			wg.Go(func() {
				w := tuplestore.Write{Ops: []tuplestore.Op{creation(fmt.Sprint(i), "ann")}}
				if i == 0 {
					w.Also = func(context.Context, *sqldb.Tx) error { transactions.Add(1); return nil }
				}
				r, err := s.Write(ctx, "t", w)
				if err != nil {
					t.Error(err)
				}
				revisions[i] = r.Revision
			})
		}
		awaitQueued(s, writers)
		before := db.Stats().Statements
		close(leave)
		wg.Wait()
		slices.Sort(revisions)
		for i, rev := range revisions {
			if rev != tuplestore.Revision(i+2) {
				t.Fatalf("revisions %v, want 2 to %d", revisions, writers+1)
			}
		}
		// Separate transactions would take several times as many.
		if n := db.Stats().Statements - before; n > 4*writers {
			t.Errorf("%d statements for %d writes", n, writers)
		}
		if n := transactions.Load(); n != 1 {
			t.Errorf("the group was run %d times", n)
		}
	})
}

func TestSerializationFailureRestartsTheGroup(t *testing.T) {
	db := openDB(t, pgtest.URL(t))
	s := open(t, Config{DB: db})
	exec(t, db, `CREATE TABLE attached (revision BIGINT)`)
	runs, attachments := 0, 0
	r, err := s.Write(t.Context(), "t", tuplestore.Write{
		Ops: []tuplestore.Op{creation("1", "ann")},
		Also: func(context.Context, *sqldb.Tx) error {
			if runs++; runs < 3 {
				return fmt.Errorf("insert: %w", &pgconn.PgError{Code: "40001"})
			}
			return nil
		},
		Attach: func(r tuplestore.Result, b *sqldb.Batch) {
			if attachments++; attachments < 3 {
				b.Queue(`DO $$ BEGIN RAISE EXCEPTION 'restart' USING ERRCODE = 'serialization_failure'; END $$`, nil, nil)
			}
			b.Queue(`INSERT INTO attached VALUES ($1)`, []any{int64(r.Revision)}, nil)
		},
	})
	if err != nil || r.Revision != 1 || runs != 5 || attachments != 3 {
		t.Errorf("%+v, %v after %d runs and %d attachments", r, err, runs, attachments)
	}
	var rows, revision int
	if err := db.QueryRow(t.Context(), `SELECT count(*), max(revision) FROM attached`).Scan(&rows, &revision); err != nil || rows != 1 || revision != 1 {
		t.Errorf("%d rows were attached at revision %d, error %v; want 1", rows, revision, err)
	}
}

func TestPanicInAlsoFailsOnlyItsWrite(t *testing.T) {
	onEach(t, func(t *testing.T, url string) {
		s := open(t, Config{DB: openDB(t, url)})
		_, err := s.Write(t.Context(), "t", tuplestore.Write{
			Ops:  []tuplestore.Op{creation("1", "ann")},
			Also: func(context.Context, *sqldb.Tx) error { panic("boom") },
		})
		if err == nil {
			t.Error("a write whose Also panicked succeeded")
		}
		if r, err := s.Write(t.Context(), "t", tuplestore.Write{Ops: []tuplestore.Op{creation("1", "ann")}}); err != nil || r.Revision != 1 {
			t.Errorf("next write: %+v, %v", r, err)
		}
	})
}

// Several processes on one database.
func TestStoresShareADatabase(t *testing.T) {
	url := pgtest.URL(t)
	stores := []*Store{open(t, Config{DB: openDB(t, url)}), open(t, Config{DB: openDB(t, url)})}
	ctx := t.Context()
	const writers, each = 6, 30
	var wg sync.WaitGroup
	for i := range writers {
		wg.Go(func() {
			s := stores[i%2]
			for n := range each {
				r, err := s.Write(ctx, "t", tuplestore.Write{Ops: []tuplestore.Op{creation(fmt.Sprint(i), fmt.Sprint(n))}})
				if err != nil {
					t.Error(err)
					return
				}
				if head, err := stores[1-i%2].Head(ctx, "t"); err != nil || head.Revision < r.Revision {
					t.Errorf("the other store's head is %d (error %v) after revision %d", head.Revision, err, r.Revision)
				}
			}
		})
	}
	applied := tuplestore.Revision(0)
	for applied < writers*each && !t.Failed() {
		commits, err := stores[0].Changes(ctx, "t", applied, 7)
		if err != nil {
			t.Fatal(err)
		}
		for _, c := range commits {
			if c.Revision != applied+1 {
				t.Fatalf("revision %d comes after %d", c.Revision, applied)
			}
			applied = c.Revision
		}
	}
	wg.Wait()
}

// breaker is a proxy between a store and its server that breaks connections.
type breaker struct {
	url  string
	mode atomic.Int32
}

const (
	pass        int32 = iota
	loseRequest       // the next request is lost and the connection breaks
	loseAnswer        // the next request arrives, but the connection breaks before the answer
	down              // no connection works
)

func newBreaker(t *testing.T, target string) *breaker {
	t.Helper()
	u, err := url.Parse(target)
	if err != nil {
		t.Fatal(err)
	}
	network, address := "tcp", u.Host
	if host := u.Query().Get("host"); host != "" {
		network, address = "unix", host+"/.s.PGSQL.5432"
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	b := new(breaker)
	var wg sync.WaitGroup
	wg.Go(func() {
		for {
			client, err := l.Accept()
			if err != nil {
				return
			}
			server, err := net.Dial(network, address)
			if err != nil || b.mode.Load() == down {
				_ = client.Close()
				continue
			}
			wg.Go(func() { b.serve(client, server) })
		}
	})
	t.Cleanup(func() {
		_ = l.Close()
		wg.Wait()
	})
	q := u.Query()
	q.Del("host")
	q.Set("sslmode", "disable")
	u.Host, u.RawQuery = l.Addr().String(), q.Encode()
	b.url = u.String()
	return b
}

func (b *breaker) serve(client, server net.Conn) {
	var wg sync.WaitGroup
	var broken atomic.Bool // by loseAnswer: the answer is read and dropped
	wg.Go(func() {
		defer server.Close()
		buf := make([]byte, 64<<10)
		for {
			n, err := client.Read(buf)
			if err != nil || b.mode.Load() == down || b.mode.CompareAndSwap(loseRequest, pass) {
				_ = client.Close()
				return
			}
			if b.mode.CompareAndSwap(loseAnswer, pass) {
				broken.Store(true)
			}
			if _, err := server.Write(buf[:n]); err != nil {
				return
			}
		}
	})
	wg.Go(func() {
		defer client.Close()
		buf := make([]byte, 64<<10)
		for {
			n, err := server.Read(buf)
			if err != nil || broken.Load() {
				return
			}
			if _, err := client.Write(buf[:n]); err != nil {
				return
			}
		}
	})
	wg.Wait()
	_ = client.Close()
	_ = server.Close()
}

// If the connection breaks at any point of the commit of a group, each of its writes is
// applied exactly once and succeeds.
func TestLostCommits(t *testing.T) {
	for name, mode := range map[string]int32{"COMMIT is lost": loseRequest, "its answer is lost": loseAnswer} {
		t.Run(name, func(t *testing.T) {
			t.Run("Also", func(t *testing.T) {
				testLostCommits(t, func(b *breaker, what string, w *tuplestore.Write) {
					broken := false
					w.Also = func(ctx context.Context, tx *sqldb.Tx) error {
						if _, err := tx.Exec(ctx, `INSERT INTO rows_of_writes VALUES ($1)`, what); err != nil {
							return err
						}
						var again int
						if err := tx.QueryRow(ctx, `SELECT count(*) FROM rows_of_writes WHERE what = $1`, what).Scan(&again); err != nil || again != 1 {
							return fmt.Errorf("write %s was applied before: %d, %w", what, again, err)
						}
						if !broken {
							broken = true
							b.mode.Store(mode)
						}
						return nil
					}
				})
			})
			t.Run("Attach", func(t *testing.T) {
				testLostCommits(t, func(b *breaker, what string, w *tuplestore.Write) {
					broken := false
					w.Attach = func(_ tuplestore.Result, batch *sqldb.Batch) {
						batch.Queue(`INSERT INTO rows_of_writes VALUES ($1)`, []any{what}, nil)
						if !broken {
							broken = true
							b.mode.Store(mode)
						}
					}
				})
			})
			t.Run("Event", func(t *testing.T) {
				testLostCommits(t, func(b *breaker, what string, w *tuplestore.Write) {
					w.Attach = func(_ tuplestore.Result, batch *sqldb.Batch) {
						batch.Queue(`INSERT INTO rows_of_writes VALUES ($1)`, []any{what}, nil)
					}
					attempts := 0
					w.Event = func(tuplestore.Result) string {
						switch attempts++; attempts {
						case 1:
							b.mode.Store(mode)
						case 2:
							b.mode.Store(loseAnswer)
						}
						return "event of " + what
					}
				})
			})
		})
	}
}

// testLostCommits adds a row to every write by join, which also breaks the connection once.
func testLostCommits(t *testing.T, join func(b *breaker, what string, w *tuplestore.Write)) {
	b := newBreaker(t, pgtest.URL(t))
	db := openDB(t, b.url)
	s := open(t, Config{DB: db})
	ctx := t.Context()
	exec(t, db, `CREATE TABLE rows_of_writes (what TEXT)`)
	// Statements are prepared in the usual way first.
	first := tuplestore.Write{Ops: []tuplestore.Op{creation("0", "ann")}, Attach: func(_ tuplestore.Result, batch *sqldb.Batch) {
		batch.Queue(`INSERT INTO rows_of_writes VALUES ($1)`, []any{"first"}, nil)
	}}
	if _, err := s.Write(ctx, "t", first); err != nil {
		t.Fatal(err)
	}
	update := creation("1", "ann")
	update.Qualifier = tuplestore.Qualifier{Condition: "on_call"}
	for i, w := range []tuplestore.Write{
		{Ops: []tuplestore.Op{creation("1", "ann")}},
		{Ops: []tuplestore.Op{creation("2", "ann")}, CommitID: "id"},
		{Ops: []tuplestore.Op{{Kind: tuplestore.Delete, Tuple: creation("2", "ann").Tuple}}},
		{Ops: []tuplestore.Op{creation("1", "ann")}}, // changes nothing, but has its row
		{Ops: []tuplestore.Op{update}},
	} {
		join(b, fmt.Sprint(i), &w)
		r, err := s.Write(ctx, "t", w)
		want := []tuplestore.Result{
			{Revision: 2, Statuses: []tuplestore.Status{tuplestore.Created}, Counts: []int{1}},
			{Revision: 3, Statuses: []tuplestore.Status{tuplestore.Created}, Counts: []int{1}},
			{Revision: 4, Statuses: []tuplestore.Status{tuplestore.Deleted}, Counts: []int{1}},
			{Revision: 4, Statuses: []tuplestore.Status{tuplestore.Existed}, Counts: []int{0}},
			{Revision: 5, Statuses: []tuplestore.Status{tuplestore.Updated}, Counts: []int{1}},
		}[i]
		want.Epoch = r.Epoch
		if diff := cmp.Diff(want, r); err != nil || diff != "" {
			t.Errorf("write %d: error %v, result (-want +got):\n%s", i, err, diff)
		}
	}
	var rows, distinct int
	if err := db.QueryRow(ctx, `SELECT count(*), count(DISTINCT what) FROM rows_of_writes`).Scan(&rows, &distinct); err != nil || rows != 6 || distinct != 6 {
		t.Errorf("%d rows, %d different, error %v; want 6", rows, distinct, err)
	}
	commits, err := s.Changes(ctx, "t", 0, 100)
	if err != nil || len(commits) != 5 {
		t.Errorf("%d commits, error %v; want 5", len(commits), err)
	}
}

// The first event of a transaction shows that it was committed; without one, and after an attempt with
// an unknown outcome, a receipt does. Later attempts have the same event, so their receipts decide.
func TestMarks(t *testing.T) {
	s := open(t, Config{DB: openDB(t, pgtest.URL(t))})
	ctx := t.Context()
	event := func(tuplestore.Result) string { return "the event" }
	receipts := func() (n int) {
		if err := s.DB.QueryRow(ctx, `SELECT count(*) FROM tenant_receipts`).Scan(&n); err != nil {
			t.Fatal(err)
		}
		return n
	}
	for want, w := range []tuplestore.Write{
		{Ops: []tuplestore.Op{creation("1", "ann")}, Event: event},
		{Ops: []tuplestore.Op{creation("2", "ann")}},
	} {
		if _, err := s.Write(ctx, "t", w); err != nil {
			t.Fatal(err)
		}
		if n := receipts(); n != want {
			t.Errorf("%d receipts after write %d", n, want)
		}
	}

	stored := ""
	if err := s.DB.QueryRow(ctx, `SELECT commit_id FROM tenant_receipts`).Scan(&stored); err != nil {
		t.Fatal(err)
	}
	at := func(rev tuplestore.Revision) outcome { return outcome{result: tuplestore.Result{Revision: rev}} }
	for _, c := range []struct {
		name string
		sent []sent
		want tuplestore.Revision
	}{
		{"none", nil, 3},
		{"an event", []sent{{&mark{rev: 1, event: "the event"}, at(10)}}, 10},
		{"another event", []sent{{&mark{rev: 1, event: "another"}, at(10)}}, 3},
		{"an event at another revision", []sent{{&mark{rev: 2, event: "the event"}, at(10)}}, 3},
		{"a later receipt", []sent{{&mark{rev: 1, event: "the event"}, at(10)}, {&mark{receipt: stored}, at(20)}}, 20},
		{"no later receipt", []sent{{&mark{rev: 1, event: "the event"}, at(10)}, {&mark{receipt: "missing"}, at(20)}}, 10},
	} {
		r := &request{ctx: ctx, write: tuplestore.Write{Ops: []tuplestore.Op{creation("3", "ann")}, Event: event}, sent: c.sent}
		a, end := s.newAttempt(ctx, "t", []*request{r})
		if err := a.begin(false); err != nil {
			t.Fatal(err)
		}
		if err := a.decide(); err != nil || a.outcomes[0].result.Revision != c.want {
			t.Errorf("%s: %+v, %v, want revision %d", c.name, a.outcomes, err, c.want)
		}
		if applies := c.want == 3; applies != (a.mark != nil) || applies && (a.mark.receipt == "") != (c.sent == nil) {
			t.Errorf("%s: the mark of this attempt is %+v", c.name, a.mark)
		}
		a.tx.Rollback()
		end(nil)
	}
}

// awaitQueued returns when a number of writes of tenant t are queued behind the one that commits.
func awaitQueued(s *Store, writes int) {
	for waiting := 0; waiting < writes; time.Sleep(time.Millisecond) {
		s.mu.Lock()
		waiting = s.queues["t"].queue.Len()
		s.mu.Unlock()
	}
}

// If the answer to a commit is lost, a write of the group that failed stays failed, and the writes
// after it in its sequence are not applied.
func TestLostCommitKeepsFailures(t *testing.T) {
	b := newBreaker(t, pgtest.URL(t))
	s := open(t, Config{DB: openDB(t, b.url)})
	entered, leave := make(chan struct{}), make(chan struct{})
	var wg sync.WaitGroup
	errs := make([]error, 4)
	write := func(i int, w tuplestore.Write) {
		wg.Go(func() { _, errs[i] = s.Write(t.Context(), "t", w) })
	}
	write(0, tuplestore.Write{Ops: []tuplestore.Op{creation("0", "ann")}, Also: func(context.Context, *sqldb.Tx) error {
		close(entered)
		<-leave
		return nil
	}})
	<-entered
	sequence := tuplestore.NewSequence()
	missing := tuplestore.Precondition{Filter: tuplestore.Filter{ObjectType: "doc", ObjectID: "missing"}, Exists: true}
	decided := 0
	write(1, tuplestore.Write{Ops: []tuplestore.Op{creation("1", "ann")}, Attach: func(tuplestore.Result, *sqldb.Batch) {
		decided++
		b.mode.Store(loseAnswer)
	}})
	write(2, tuplestore.Write{Ops: []tuplestore.Op{creation("2", "ann")}, Preconditions: []tuplestore.Precondition{missing}, Turn: sequence.Next()})
	write(3, tuplestore.Write{Ops: []tuplestore.Op{creation("3", "ann")}, CommitID: "id", Turn: sequence.Next()})
	awaitQueued(s, 3)
	close(leave)
	wg.Wait()
	var failed *tuplestore.PreconditionError
	if errs[0] != nil || errs[1] != nil || !errors.As(errs[2], &failed) || !errors.Is(errs[3], tuplestore.ErrSequenceEnded) {
		t.Errorf("the writes ended with %v", errs)
	}
	head, err := s.Head(t.Context(), "t")
	if err != nil || head.Revision != 2 || decided != 1 {
		t.Errorf("revision %d, error %v; the write that was committed was decided %d times", head.Revision, err, decided)
	}
}

// If the server stays unavailable, the write waits, and fails with an unknown outcome in
// the end.
func TestUnknownOutcomeIsReported(t *testing.T) {
	b := newBreaker(t, pgtest.URL(t))
	s := open(t, Config{DB: openDB(t, b.url)})
	err := make(chan error, 1)
	go func() {
		_, e := s.Write(t.Context(), "t", tuplestore.Write{Ops: []tuplestore.Op{creation("1", "ann")}, Also: func(context.Context, *sqldb.Tx) error {
			b.mode.Store(down)
			return nil
		}})
		err <- e
	}()
	select {
	case e := <-err:
		t.Fatalf("the write ended with %v while its outcome was unknown", e)
	case <-time.After(300 * time.Millisecond):
	}
	if e := s.Close(); e != nil {
		t.Fatal(e)
	}
	if e := <-err; !asAmbiguous(e) {
		t.Errorf("the write ended with %v", e)
	}
	if _, e := s.Write(t.Context(), "t", tuplestore.Write{}); !errors.Is(e, tuplestore.ErrClosed) {
		t.Errorf("write after close: %v", e)
	}
}

// A write that has to be alone sees the writes queued before it, and commits without
// others.
func TestWriteAloneSeesWritesBeforeIt(t *testing.T) {
	onEach(t, func(t *testing.T, url string) {
		s := open(t, Config{DB: openDB(t, url)})
		ctx := t.Context()
		entered, leave := make(chan struct{}), make(chan struct{})
		var wg sync.WaitGroup
		write := func(w tuplestore.Write) {
			wg.Go(func() {
				if _, err := s.Write(ctx, "t", w); err != nil {
					t.Error(err)
				}
			})
		}
		write(tuplestore.Write{Ops: []tuplestore.Op{creation("first", "ann")}, Also: func(context.Context, *sqldb.Tx) error {
			close(entered)
			<-leave
			return nil
		}})
		<-entered
		const before = 5
		for i := range before {
			write(tuplestore.Write{Ops: []tuplestore.Op{creation(fmt.Sprint(i), "ann")}})
		}
		awaitQueued(s, before)
		seen := -1
		write(tuplestore.Write{Ops: []tuplestore.Op{creation("last", "ann")}, Alone: true, Also: func(ctx context.Context, tx *sqldb.Tx) error {
			records, err := s.SnapshotIn(tx, "t").List(ctx, tuplestore.Filter{}, nil, 100)
			seen = len(records)
			return err
		}})
		awaitQueued(s, before+1)
		close(leave)
		wg.Wait()
		if seen != before+1 {
			t.Errorf("it saw %d tuples, want %d", seen, before+1)
		}
	})
}

// A reader that is far behind reads the changelog in parts, and collection deletes it in parts.
func TestManyChangesAreReadInParts(t *testing.T) {
	onEach(t, func(t *testing.T, url string) {
		s := open(t, Config{DB: openDB(t, url), ReadChanges: 100})
		const writes, each = 50, 5
		for n := range writes {
			ops := make([]tuplestore.Op, each)
			for i := range ops {
				ops[i].Tuple = tupleOf([6]string{"doc", fmt.Sprint(n), "viewer", "user", fmt.Sprint(i), ""})
			}
			if _, err := s.Write(t.Context(), "t", tuplestore.Write{Ops: ops}); err != nil {
				t.Fatal(err)
			}
		}
		var parts []int
		var after tuplestore.Revision
		for more := true; more; {
			commits, err := s.Changes(t.Context(), "t", after, 100)
			if err != nil {
				t.Fatal(err)
			}
			for i, c := range commits {
				if after++; c.Revision != after || len(c.Changes) != each || c.More != (i == len(commits)-1 && after < writes) {
					t.Fatalf("revision %d with %d changes, more: %t", c.Revision, len(c.Changes), c.More)
				}
			}
			parts = append(parts, len(commits))
			more = len(commits) > 0 && commits[len(commits)-1].More
		}
		if want := []int{32, 18}; !slices.Equal(parts, want) {
			t.Errorf("parts of %v commits, want %v", parts, want)
		}
		commits, err := s.Changes(t.Context(), "t", 0, 32)
		if err != nil || len(commits) != 32 || commits[31].More {
			t.Errorf("%d commits, error %v", len(commits), err)
		}
		later := time.Now().Add(time.Hour)
		if err := s.Collect(t.Context(), later, later); err != nil {
			t.Fatal(err)
		}
		var left int
		if err := s.DB.QueryRow(t.Context(), `SELECT COUNT(*) FROM tenant_commits`).Scan(&left); err != nil || left != 1 {
			t.Errorf("%d commits are left, want the newest; error %v", left, err)
		}
	})
}
