// Package sqldb is the one handle over the databases the product runs on:
// embedded SQLite, PostgreSQL and CockroachDB.
//
// # Dialects
//
// SQL is written once, in the subset that all three understand, with $1, $2, …
// as placeholders. Where the engines truly differ, two constants stand side by
// side at the caller, chosen by [DB.Dialect]. Ids are TEXT compared bytewise (Open
// refuses a database with another collation), instants are BIGINT
// microseconds, JSON is TEXT.
//
// # Transactions
//
// [DB.Tx] is the ordinary, serializable transaction: its function may run more
// than once. [DB.Pipeline] is for the commit log, which orders writers by
// locking a row and therefore needs no more than READ COMMITTED, but cannot
// afford round trips: statements travel in a [Batch], BEGIN rides with the
// first and COMMIT with the last.
//
// On every engine a failed statement ends its transaction, as PostgreSQL has
// it: the statements after it fail too.
//
// # SQLite
//
// One process owns the file, by a lock beside it; others can only read it. It has one writing
// connection, so writers wait in line instead of failing, and a pool of
// reading ones, which never wait (write-ahead log). Commits are synced to disk
// before they are acknowledged.
package sqldb

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"runtime"
	"sync/atomic"

	"stonetown/internal/text"
)

// Dialect is the kind of database behind a [DB].
type Dialect int

const (
	SQLite Dialect = iota
	Postgres
	Cockroach
)

func (d Dialect) String() string {
	return [...]string{"sqlite", "postgres", "cockroach"}[d]
}

// Config configures a database.
type Config struct {
	// URL names the database: sqlite:///absolute/path.db, sqlite:relative/path.db
	// or postgres://user@host:port/database?parameter=value. PostgreSQL and
	// CockroachDB share the scheme; the server reports its kind.
	URL string

	// MaxConns is how many connections are open at most; on SQLite, how many
	// readers. More callers than that wait. Default: 4 per CPU, at least 8.
	MaxConns int

	// ReadOnly refuses to write. A SQLite database, which must exist, can then be
	// read while another process owns it.
	ReadOnly bool
}

// Conns returns how many connections are open at most.
func (c Config) Conns() int {
	if c.MaxConns > 0 {
		return c.MaxConns
	}
	return defaultConns
}

// A variable, since the program may change GOMAXPROCS later.
var defaultConns = max(8, 4*runtime.GOMAXPROCS(0))

// DB is an open database. All methods are safe for concurrent use.
type DB struct {
	backend   backend
	stats     stats
	listeners listeners
}

// backend is the part that differs between the two drivers.
type backend interface {
	dialect() Dialect
	reads() querier
	writes() querier
	tx(ctx context.Context, fn func(*Tx) error) error
	snapshot(ctx context.Context, fn func(*Tx) error) error
	// If first is nil, the transaction can begin with its commit.
	pipeline(ctx context.Context, first *Batch) (pipeline, error)
	onCommitThread(work func())
	migrate(ctx context.Context, all []Migrations) error
	close() error
}

// querier runs statements: on a pool, a connection or within a transaction.
type querier interface {
	query(ctx context.Context, sql string, args []any) (*Rows, error)
	exec(ctx context.Context, sql string, args []any) (rowsAffected int64, err error)
	send(ctx context.Context, b *Batch) error
}

// errMalformed does not quote the URL, as the error of url.Parse does: it may hold
// a password.
var errMalformed = errors.New("malformed URL")

// Open connects to the database and checks that it is usable: reachable,
// comparing text bytewise, and, for SQLite, not owned by another process.
func Open(ctx context.Context, cfg Config) (*DB, error) {
	u, err := url.Parse(cfg.URL)
	if err != nil {
		return nil, fmt.Errorf("open database: %w", errMalformed)
	}
	db := new(DB)
	switch u.Scheme {
	case "sqlite":
		db.backend, err = openSQLite(ctx, u, cfg, &db.stats)
	case "postgres", "postgresql":
		db.backend, err = openPostgres(ctx, cfg, &db.stats)
	default:
		err = fmt.Errorf("unknown scheme %q; use sqlite or postgres", u.Scheme)
	}
	if err != nil {
		return nil, fmt.Errorf("open database: %w", err)
	}
	db.backend = newTraced(db.backend)
	if err := db.checkCollation(ctx); err != nil {
		return nil, fmt.Errorf("open database: %w", errors.Join(err, db.Close()))
	}
	return db, nil
}

// checkCollation makes sure that text is compared bytewise, which pages and
// primary-key order rely on.
func (db *DB) checkCollation(ctx context.Context) error {
	var bytewise bool
	if err := db.QueryRow(ctx, `SELECT 'Z' < 'a'`).Scan(&bytewise); err != nil {
		return err
	}
	if !bytewise {
		return errors.New("the database does not compare text bytewise; create it with LC_COLLATE 'C'")
	}
	return nil
}

// Dialect is the kind of database this is.
func (db *DB) Dialect() Dialect { return db.backend.dialect() }

// Query runs a statement that only reads. The caller closes the rows.
func (db *DB) Query(ctx context.Context, sql string, args ...any) (*Rows, error) {
	return db.backend.reads().query(ctx, sql, args)
}

// QueryRow runs a statement that only reads and returns its first row.
func (db *DB) QueryRow(ctx context.Context, sql string, args ...any) *Row {
	return newRow(db.Query(ctx, sql, args...))
}

// Exec runs one writing statement in a transaction of its own. It is never
// repeated: after an error that is neither the database's own nor a
// cancellation before it was sent, it may have been applied.
func (db *DB) Exec(ctx context.Context, sql string, args ...any) (rowsAffected int64, err error) {
	return db.backend.writes().exec(ctx, sql, args)
}

// IsText reports whether every database can store a text.
func IsText(s string) bool { return text.IsStorable(s) }

// Send runs statements that only read, each for itself, in one round trip.
func (db *DB) Send(ctx context.Context, b *Batch) error {
	b.complete(db.Dialect())
	return db.backend.reads().send(ctx, b)
}

// OnCommitThread does work that prepares a commit and makes it. With the embedded database, the work
// is done on a [fair.CommitThread], otherwise on the thread of the caller. Commits of the database
// within the work are part of it; others need no call of this.
func (db *DB) OnCommitThread(work func()) { db.backend.onCommitThread(work) }

// Close waits for the connections in use to be returned and closes all.
func (db *DB) Close() error { return db.backend.close() }

// Stats are counts since the database was opened.
type Stats struct {
	Statements int64 // statements run
	RoundTrips int64 // times a server was sent something and waited for; 0 on SQLite
}

type stats struct{ statements, roundTrips atomic.Int64 }

// Stats returns the counts so far.
func (db *DB) Stats() Stats {
	return Stats{db.stats.statements.Load(), db.stats.roundTrips.Load()}
}
