package sqldb

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"

	"github.com/gofrs/flock"
	"modernc.org/sqlite"

	"stonetown/internal/fair"
)

// lite is the backend for SQLite.
type lite struct {
	path    string
	lock    *flock.Flock
	st      *stats
	readers *sql.DB
	read    *liteQuerier
	writer  *sql.DB       // one connection, which write uses all the time; nil if read only
	conn    *sql.Conn     // the writer's
	write   *liteQuerier  // on conn; used only by the holder of turn
	turn    chan struct{} // holds one value while the writer is free
	commits int           // of the writer; used only by the holder of turn
	thread  *fair.CommitThread
	end     context.CancelFunc // of the thread
}

// pragmas of every connection. WAL lets readers go on while the writer commits.
// synchronous=FULL syncs each commit: with NORMAL, a power failure could undo a revocation that
// was acknowledged.
var pragmas = []string{
	"busy_timeout(10000)", // milliseconds; only a checkpoint or a stray tool can make us wait
	"journal_mode(WAL)",
	"synchronous(FULL)",
	"foreign_keys(1)",
	"temp_store(MEMORY)",
	// Pages of log before it is folded into the file. A bulk load changes the same pages of the
	// index by subject again and again, and each fold writes and syncs them once.
	"wal_autocheckpoint(16384)",
	"journal_size_limit(67108864)", // bytes of log kept on disk afterwards
}

// The page caches, in KiB. Many connections read, and the operating system caches the file for
// all of them.
const (
	writerCache = "cache_size(-32768)"
	readerCache = "cache_size(-4096)"
)

// commitsOfCache is the number of commits after which the caches are emptied. The driver is built
// with SQLITE_ENABLE_MEMORY_MANAGEMENT, so the connections share one pool, as large as their
// caches together. A connection that has as many pages as its cache takes the page that was unused
// for longest, of any connection. One that has fewer adds a page to the pool, and while the pool is
// full, drops it after use. So after a reader has taken the writer's pages, each commit would read
// the same pages again.
const commitsOfCache = 1024

// SQLiteURL returns the URL of the embedded database in a file, given its absolute path.
func SQLiteURL(path string) string {
	return "sqlite://" + (&url.URL{Path: urlPath(path)}).EscapedPath()
}

// urlPath returns an absolute path as URLs have it: on Windows C:\data is /C:/data.
func urlPath(path string) string {
	if path = filepath.ToSlash(path); !strings.HasPrefix(path, "/") {
		path = "/" + path
	}
	return path
}

// SQLitePath is the file of an embedded database; ok is false if the URL is of
// another kind.
func SQLitePath(databaseURL string) (path string, ok bool, err error) {
	u, err := url.Parse(databaseURL)
	if err != nil {
		return "", false, errMalformed
	}
	if u.Scheme != "sqlite" {
		return "", false, nil
	}
	path, err = sqlitePath(u)
	return path, true, err
}

func sqlitePath(u *url.URL) (path string, err error) {
	path = u.Opaque // sqlite:relative/path.db
	if path == "" {
		if path = u.Path; len(path) > 1 && filepath.VolumeName(path[1:]) != "" {
			path = path[1:] // as urlPath made it
		}
	} else if path, err = url.PathUnescape(path); err != nil {
		return "", err
	}
	if u.Host != "" || path == "" || u.RawQuery != "" {
		return "", errors.New("a SQLite URL is sqlite:///absolute/path.db or sqlite:relative/path.db")
	}
	return filepath.Abs(path)
}

func openSQLite(ctx context.Context, u *url.URL, cfg Config, st *stats) (_ backend, err error) {
	path, err := sqlitePath(u)
	if err != nil {
		return nil, err
	}
	running, end := context.WithCancel(context.Background())
	l := &lite{path: path, st: st, turn: make(chan struct{}, 1), thread: fair.NewCommitThread(running.Done()), end: end}
	defer func() {
		if err != nil {
			err = errors.Join(err, l.close())
		}
	}()
	if cfg.ReadOnly {
		_, err = os.Stat(path)
	} else {
		err = l.own(ctx)
	}
	if err != nil {
		return nil, err
	}
	if l.readers, err = openPool(path, cfg.Conns(), readerCache, "query_only(1)"); err != nil {
		return nil, err
	}
	l.read = newLiteQuerier(l.readers, st)
	if l.writer != nil {
		l.turn <- struct{}{}
	}
	return l, nil
}

// own locks the file and opens the writing connection.
func (l *lite) own(ctx context.Context) (err error) {
	if l.lock, err = lockFile(l.path + ".lock"); err != nil {
		return err
	}
	// Readable by its owner only. A file that cannot be written is reported here; SQLite would
	// report it at the first change.
	f, err := os.OpenFile(l.path, os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return err
	}
	if err := f.Close(); err != nil {
		return err
	}
	if l.writer, err = openPool(l.path, 1, writerCache); err != nil {
		return err
	}
	if l.conn, err = l.writer.Conn(ctx); err != nil {
		return err
	}
	l.write = newLiteQuerier(l.conn, l.st)
	return nil
}

// openPool opens a pool of up to n connections, which it keeps.
func openPool(path string, n int, more ...string) (*sql.DB, error) {
	q := url.Values{"_pragma": append(pragmas[:len(pragmas):len(pragmas)], more...)}
	connector, err := sqlite.NewConnector((&url.URL{Scheme: "file", Path: urlPath(path), RawQuery: q.Encode()}).String())
	if err != nil {
		return nil, err
	}
	db := sql.OpenDB(connector)
	db.SetMaxOpenConns(n)
	db.SetMaxIdleConns(n)
	return db, nil
}

func (l *lite) dialect() Dialect { return SQLite }

func (l *lite) reads() querier  { return l.read }
func (l *lite) writes() querier { return liteWrites{l} }

func (l *lite) close() error {
	defer l.end()
	var errs []error
	if l.readers != nil {
		errs = append(errs, l.read.close(), l.readers.Close())
	}
	if l.write != nil {
		if l.readers != nil { // else the writer was never free
			<-l.turn
			defer l.release() // later callers find it closed
		}
		// The last connection to close folds the log into the file.
		errs = append(errs, l.write.close(), l.conn.Close())
	}
	if l.writer != nil {
		errs = append(errs, l.writer.Close())
	}
	if l.lock != nil {
		errs = append(errs, l.lock.Close()) // which releases the lock
	}
	return errors.Join(errs...)
}

// liteQuerier runs statements on the pool of readers or on the writing
// connection. It prepares each of them once.
type liteQuerier struct {
	on liteHandle
	st *stats

	mu       sync.Mutex
	prepared map[string]*sql.Stmt // by the statement as it was written
}

// liteHandle is a [*sql.DB], a [*sql.Conn] or a [*sql.Tx].
type liteHandle interface {
	PrepareContext(ctx context.Context, query string) (*sql.Stmt, error)
	QueryContext(ctx context.Context, query string, args ...any) (*sql.Rows, error)
	ExecContext(ctx context.Context, query string, args ...any) (sql.Result, error)
}

// maxPrepared bounds the statements kept prepared. There are far fewer: SQL is
// constant but for the shape of a filter. Those beyond are prepared each time.
const maxPrepared = 1000

func newLiteQuerier(on liteHandle, st *stats) *liteQuerier {
	return &liteQuerier{on: on, st: st, prepared: make(map[string]*sql.Stmt)}
}

// prepare returns the statement for a query, or nil if there are too many.
func (q *liteQuerier) prepare(ctx context.Context, query string) (*sql.Stmt, error) {
	q.st.statements.Add(1)
	q.mu.Lock()
	stmt, ok := q.prepared[query]
	full := len(q.prepared) >= maxPrepared
	q.mu.Unlock()
	if ok || full {
		return stmt, nil
	}
	stmt, err := q.on.PrepareContext(ctx, numbered(query))
	if err != nil {
		return nil, err
	}
	q.mu.Lock()
	defer q.mu.Unlock()
	if other, ok := q.prepared[query]; ok {
		return other, stmt.Close()
	}
	q.prepared[query] = stmt
	return stmt, nil
}

func (q *liteQuerier) close() error {
	q.mu.Lock()
	defer q.mu.Unlock()
	var errs []error
	for _, stmt := range q.prepared {
		errs = append(errs, stmt.Close())
	}
	clear(q.prepared)
	return errors.Join(errs...)
}

func (q *liteQuerier) query(ctx context.Context, query string, args []any) (*Rows, error) {
	stmt, err := q.prepare(ctx, query)
	if err != nil {
		return nil, err
	}
	var rows *sql.Rows
	if stmt != nil {
		rows, err = stmt.QueryContext(ctx, args...)
	} else {
		rows, err = q.on.QueryContext(ctx, numbered(query), args...)
	}
	if err != nil {
		return nil, err
	}
	return &Rows{cursor: rows, close: rows.Close}, nil
}

func (q *liteQuerier) exec(ctx context.Context, query string, args []any) (int64, error) {
	stmt, err := q.prepare(ctx, query)
	if err != nil {
		return 0, err
	}
	var res sql.Result
	if stmt != nil {
		res, err = stmt.ExecContext(ctx, args...)
	} else {
		res, err = q.on.ExecContext(ctx, numbered(query), args...)
	}
	if err != nil {
		return 0, err
	}
	return res.RowsAffected()
}

func (q *liteQuerier) send(ctx context.Context, b *Batch) error { return sendEach(ctx, q, b) }

// sendEach runs the statements of a batch one after another.
func sendEach(ctx context.Context, q querier, b *Batch) error {
	for _, it := range b.items {
		if it.scan == nil {
			if _, err := q.exec(ctx, it.sql, it.args); err != nil {
				return err
			}
			continue
		}
		rows, err := q.query(ctx, it.sql, it.args)
		if err != nil {
			return err
		}
		if err := it.read(rows); err != nil {
			return err
		}
	}
	return nil
}

// errReadOnly answers writes to a database opened to be read only.
var errReadOnly = errors.New("the database was opened to be read only")

func (l *lite) onCommitThread(work func()) { l.thread.Do(work) }

// acquire waits for the writing connection.
func (l *lite) acquire(ctx context.Context) error {
	if l.writer == nil {
		return errReadOnly
	}
	select {
	case <-l.turn:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

func (l *lite) release() { l.turn <- struct{}{} }

// liteWrites runs each statement in a transaction of its own.
type liteWrites struct{ l *lite }

func (w liteWrites) exec(ctx context.Context, query string, args []any) (n int64, err error) {
	err = w.l.tx(ctx, func(tx *Tx) error {
		n, err = tx.Exec(ctx, query, args...)
		return err
	})
	return n, err
}

func (w liteWrites) query(context.Context, string, []any) (*Rows, error) {
	return nil, errors.New("rows of a writing statement need a transaction")
}

func (w liteWrites) send(ctx context.Context, b *Batch) error {
	return w.l.tx(ctx, func(tx *Tx) error { return tx.Send(ctx, b) })
}

func (l *lite) tx(ctx context.Context, fn func(*Tx) error) error {
	p, err := l.begin(ctx)
	if err != nil {
		return err
	}
	defer p.rollback()
	p.interrupts = true
	if err := fn(&Tx{q: p}); err != nil {
		return err
	}
	return p.commit(ctx, &Batch{})
}

// litePipeline is a transaction on the writing connection, held until it ends.
type litePipeline struct {
	l      *lite
	done   bool
	open   *Rows // the last query's
	failed error // the first statement's that failed

	// interrupts is whether a cancellation interrupts a statement. To be able to, the driver starts
	// a goroutine for each, which wakes up another thread.
	interrupts bool
}

func (l *lite) pipeline(ctx context.Context, first *Batch) (pipeline, error) {
	p, err := l.begin(ctx)
	if err != nil {
		return nil, err
	}
	if first != nil {
		if err := p.send(ctx, first); err != nil {
			p.rollback()
			return nil, err
		}
	}
	return p, nil
}

func (l *lite) begin(ctx context.Context) (*litePipeline, error) {
	if err := l.acquire(ctx); err != nil {
		return nil, err
	}
	// IMMEDIATE, because a transaction that reads before it writes would otherwise fail
	// after a concurrent checkpoint or write of another tool. The driver can report a cancellation
	// for a statement that has taken effect, so none is passed on: the transaction would stay open,
	// and every later one would fail.
	if _, err := l.write.exec(context.WithoutCancel(ctx), "BEGIN IMMEDIATE", nil); err != nil {
		l.release()
		return nil, err
	}
	return &litePipeline{l: l}, nil
}

// errTxDone answers statements after the transaction ended.
var errTxDone = errors.New("transaction has ended")

// ready reports why no statement can be run now. An error ends the transaction:
// SQLite would go on after most, but has rolled back after some, and then every
// further statement would commit by itself.
func (p *litePipeline) ready() error {
	switch {
	case p.done:
		return errTxDone
	case p.failed != nil:
		return fmt.Errorf("transaction is aborted: %w", p.failed)
	}
	return nil
}

func (p *litePipeline) fail(err error) {
	if p.failed == nil {
		p.failed = err
	}
}

// start returns the context of the next statement.
func (p *litePipeline) start(ctx context.Context) (context.Context, error) {
	if err := p.ready(); err != nil {
		return nil, err
	}
	if err := ctx.Err(); err != nil {
		p.fail(err)
		return nil, err
	}
	if !p.interrupts {
		ctx = context.WithoutCancel(ctx)
	}
	return ctx, nil
}

func (p *litePipeline) query(ctx context.Context, query string, args []any) (*Rows, error) {
	ctx, err := p.start(ctx)
	if err != nil {
		return nil, err
	}
	rows, err := p.l.write.query(ctx, query, args)
	if err != nil {
		p.fail(err)
		return nil, err
	}
	rows.fail = p.fail
	p.open = rows
	return rows, nil
}

func (p *litePipeline) exec(ctx context.Context, query string, args []any) (int64, error) {
	ctx, err := p.start(ctx)
	if err != nil {
		return 0, err
	}
	n, err := p.l.write.exec(ctx, query, args)
	if err != nil {
		p.fail(err)
	}
	return n, err
}

func (p *litePipeline) send(ctx context.Context, b *Batch) error { return sendEach(ctx, p, b) }

func (p *litePipeline) commit(ctx context.Context, last *Batch) (err error) {
	p.l.onCommitThread(func() { err = p.commitNow(ctx, last) })
	return err
}

func (p *litePipeline) commitNow(ctx context.Context, last *Batch) error {
	err := p.send(ctx, last)
	if err == nil {
		err = p.ready()
	}
	if err == nil {
		// Beyond this point a cancellation would only make the outcome unclear.
		_, err = p.l.write.exec(context.WithoutCancel(ctx), "COMMIT", nil)
	}
	if err != nil {
		p.rollback()
		return err
	}
	p.l.committed()
	p.end()
	return nil
}

// committed empties the caches after some commits.
func (l *lite) committed() {
	if l.commits++; l.commits%commitsOfCache == 0 {
		// It is done when the statement is prepared. If it fails, there are more reads.
		_, _ = l.conn.ExecContext(context.Background(), "PRAGMA shrink_memory")
	}
}

func (p *litePipeline) rollback() {
	if p.done {
		return
	}
	if p.open != nil {
		_ = p.open.Close() // its error no longer matters
	}
	// The error means that SQLite has already rolled back.
	_, _ = p.l.write.exec(context.Background(), "ROLLBACK", nil)
	p.end()
}

func (p *litePipeline) end() {
	p.done = true
	p.l.release()
}

// numbered turns $1 into ?1, outside of quotes. SQLite has a list of the parameters with a number,
// in which the driver looks for each argument, so the number is left out where it is the one that
// SQLite would choose: the next after the highest.
func numbered(query string) string {
	var b strings.Builder
	quoted := false
	highest := 0
	for i := 0; i < len(query); i++ {
		c := query[i]
		if c == '\'' {
			quoted = !quoted
		}
		if c != '$' || quoted {
			b.WriteByte(c)
			continue
		}
		b.WriteByte('?')
		rest := query[i+1:]
		digits := rest[:len(rest)-len(strings.TrimLeft(rest, "0123456789"))]
		number, _ := strconv.Atoi(digits) // SQLite refuses what is not a number
		if number == highest+1 {
			i += len(digits)
		}
		highest = max(highest, number)
	}
	return b.String()
}
