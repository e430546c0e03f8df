package sqldb

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"
)

// postgres is the backend for PostgreSQL and CockroachDB.
type postgres struct {
	pool      *pgxpool.Pool
	cockroach bool // which SQL it gets
	st        *stats
	savepoint bool // transactions are retried from a savepoint, as only CockroachDB can
}

func openPostgres(ctx context.Context, cfg Config, st *stats) (backend, error) {
	pc, err := pgxpool.ParseConfig(cfg.URL)
	if err != nil {
		return nil, err // pgx redacts the password
	}
	pc.MaxConns = int32(cfg.Conns())
	pc.ConnConfig.Tracer = tracer{st}
	if cfg.ReadOnly {
		pc.ConnConfig.RuntimeParams["default_transaction_read_only"] = "on"
	}
	pc.AfterConnect = configure
	pool, err := pgxpool.NewWithConfig(ctx, pc)
	if err != nil {
		return nil, err
	}
	pg := &postgres{pool: pool, st: st}
	var version string
	if err := pool.QueryRow(ctx, `SELECT version()`).Scan(&version); err != nil {
		pool.Close()
		return nil, err
	}
	pg.savepoint = strings.HasPrefix(version, "CockroachDB")
	pg.cockroach = pg.savepoint || rehearsal
	return pg, nil
}

// configure sets the isolation of transactions without BEGIN, and makes PostgreSQL plan each
// prepared statement once per connection, for any arguments, and by index. By default it plans for
// the current size of a table, which is zero on a new installation, until statistics are next
// gathered; or it plans for the arguments of each execution, which takes longer than the execution.
func configure(ctx context.Context, conn *pgx.Conn) error {
	if conn.PgConn().ParameterStatus("crdb_version") != "" {
		return nil
	}
	_, err := conn.Exec(ctx, `SET plan_cache_mode = force_generic_plan; SET enable_seqscan = off; SET jit = off; SET default_transaction_isolation = 'read committed'`, pgx.QueryExecModeSimpleProtocol)
	return err
}

func (pg *postgres) dialect() Dialect {
	if pg.cockroach {
		return Cockroach
	}
	return Postgres
}

func (pg *postgres) reads() querier  { return pgQuerier{pg.pool} }
func (pg *postgres) writes() querier { return pgQuerier{pg.pool} }

func (pg *postgres) close() error {
	pg.pool.Close()
	return nil
}

// serializable is the isolation of ordinary transactions.
var serializable = pgx.TxOptions{IsoLevel: pgx.Serializable}

// maxAttempts bounds how often an ordinary transaction is run.
const maxAttempts = 50

// On PostgreSQL a transaction that lost against others is run again as a new one.
func (pg *postgres) tx(ctx context.Context, fn func(*Tx) error) error {
	if pg.savepoint {
		return pg.txFromSavepoint(ctx, fn)
	}
	return retried(ctx, func() error { return pg.txOnce(ctx, fn) })
}

// retried runs a transaction until it is not rolled back because of others.
func retried(ctx context.Context, run func() error) error {
	for attempt := 1; ; attempt++ {
		err := run()
		if !IsRetryable(err) || attempt == maxAttempts {
			return err
		}
		select {
		case <-time.After(rand.N(min(time.Duration(attempt)*2*time.Millisecond, 100*time.Millisecond))):
		case <-ctx.Done():
			return err
		}
	}
}

func (pg *postgres) txOnce(ctx context.Context, fn func(*Tx) error) error {
	tx, err := pg.pool.BeginTx(ctx, serializable)
	if err != nil {
		return err
	}
	defer tx.Rollback(context.WithoutCancel(ctx)) // does nothing after Commit
	if err := fn(&Tx{q: pgQuerier{tx}}); err != nil {
		return err
	}
	if err := tx.Commit(ctx); errors.Is(err, pgx.ErrTxCommitRollback) {
		return err
	} else if err != nil {
		return commitError(err)
	}
	return nil
}

// pgQuerier runs statements on a pool, a connection or a transaction.
type pgQuerier struct {
	on interface {
		Query(ctx context.Context, sql string, args ...any) (pgx.Rows, error)
		Exec(ctx context.Context, sql string, args ...any) (pgconn.CommandTag, error)
		SendBatch(ctx context.Context, b *pgx.Batch) pgx.BatchResults
	}
}

func (q pgQuerier) query(ctx context.Context, sql string, args []any) (*Rows, error) {
	rows, err := q.on.Query(ctx, sql, args...)
	if err != nil {
		return nil, err
	}
	return pgRows(rows), nil
}

func pgRows(rows pgx.Rows) *Rows {
	return &Rows{cursor: rows, close: func() error {
		rows.Close()
		return rows.Err()
	}}
}

func (q pgQuerier) exec(ctx context.Context, sql string, args []any) (int64, error) {
	tag, err := q.on.Exec(ctx, sql, args...)
	return tag.RowsAffected(), err
}

func (q pgQuerier) send(ctx context.Context, b *Batch) error {
	_, err := q.sendBetween(ctx, "", b, "")
	return err
}

// sendBetween runs b, with a statement before and one after it unless they are
// empty, in one round trip and returns the tag of the last statement.
func (q pgQuerier) sendBetween(ctx context.Context, before string, b *Batch, after string) (tag pgconn.CommandTag, err error) {
	var batch pgx.Batch
	if before != "" {
		batch.Queue(before)
	}
	for _, it := range b.items {
		batch.Queue(it.sql, it.args...)
	}
	if after != "" {
		batch.Queue(after)
	}
	results := q.on.SendBatch(ctx, &batch)
	defer func() {
		if closeErr := results.Close(); err == nil {
			err = closeErr
		}
	}()
	if before != "" {
		if _, err := results.Exec(); err != nil {
			return tag, err
		}
	}
	for _, it := range b.items {
		rows, err := results.Query()
		if err != nil {
			return tag, err
		}
		if err := it.read(pgRows(rows)); err != nil {
			return tag, err
		}
	}
	if after != "" {
		return results.Exec()
	}
	return tag, nil
}

// pgPipeline holds its connection until it ends.
type pgPipeline struct {
	pgQuerier
	conn     *pgxpool.Conn // nil after the end
	begin    string        // the statement that travels with COMMIT; empty: it was sent
	implicit bool          // neither BEGIN nor COMMIT is sent
	st       *stats
}

const beginReadCommitted = "BEGIN ISOLATION LEVEL READ COMMITTED"

// onCommitThread: the server makes the commits.
func (pg *postgres) onCommitThread(work func()) { work() }

func (pg *postgres) pipeline(ctx context.Context, first *Batch) (pipeline, error) {
	conn, err := pg.pool.Acquire(ctx)
	if err != nil {
		return nil, err
	}
	p := &pgPipeline{pgQuerier: pgQuerier{conn}, conn: conn, st: pg.st}
	if first == nil {
		// PostgreSQL runs statements that are sent together, up to a Sync, in one transaction, which
		// commits at the Sync ("Pipelining" in its description of the protocol).
		if p.implicit = !pg.cockroach; !p.implicit {
			p.begin = beginReadCommitted
		}
		return p, nil
	}
	if _, err := p.sendBetween(ctx, beginReadCommitted, first, ""); err != nil {
		p.rollback()
		return nil, err
	}
	return p, nil
}

func (p *pgPipeline) commit(ctx context.Context, last *Batch) error {
	if p.implicit {
		defer p.release()
		if err := p.send(ctx, last); err != nil {
			return commitError(err)
		}
		return nil
	}
	tag, err := p.sendBetween(ctx, p.begin, last, "COMMIT")
	if err != nil {
		p.rollback()
		return commitError(err)
	}
	p.release()
	if tag.String() != "COMMIT" { // the answer to COMMIT after a failed statement
		return fmt.Errorf("commit: %w", pgx.ErrTxCommitRollback)
	}
	return nil
}

// rollbackTimeout bounds the wait for ROLLBACK; a connection that does not
// answer in time is closed, and its server rolls back by itself.
const rollbackTimeout = 5 * time.Second

func (p *pgPipeline) rollback() {
	if p.conn == nil {
		return
	}
	if !p.implicit && !p.conn.Conn().IsClosed() {
		ctx, cancel := context.WithTimeout(context.Background(), rollbackTimeout)
		defer cancel()
		// If this fails the transaction is still open, and the pool closes the
		// connection when it gets it back.
		_, _ = p.conn.Exec(ctx, "ROLLBACK")
	}
	p.release()
}

func (p *pgPipeline) release() {
	p.conn.Release()
	p.conn = nil
}

// Set by the build tag rehearsal.
var (
	rehearsal bool
	observe   func(sql string)
)

// tracer counts statements and round trips where pgx makes them.
type tracer struct{ st *stats }

func (t tracer) TraceQueryStart(ctx context.Context, _ *pgx.Conn, data pgx.TraceQueryStartData) context.Context {
	if observe != nil {
		observe(data.SQL)
	}
	t.st.statements.Add(1)
	t.st.roundTrips.Add(1)
	return ctx
}

func (t tracer) TraceQueryEnd(context.Context, *pgx.Conn, pgx.TraceQueryEndData) {}

func (t tracer) TraceBatchStart(ctx context.Context, _ *pgx.Conn, data pgx.TraceBatchStartData) context.Context {
	t.st.statements.Add(int64(data.Batch.Len()))
	t.st.roundTrips.Add(1)
	return ctx
}

func (t tracer) TraceBatchQuery(_ context.Context, _ *pgx.Conn, data pgx.TraceBatchQueryData) {
	if observe != nil {
		observe(data.SQL)
	}
}

func (t tracer) TraceBatchEnd(context.Context, *pgx.Conn, pgx.TraceBatchEndData) {}

func (t tracer) TracePrepareStart(ctx context.Context, _ *pgx.Conn, _ pgx.TracePrepareStartData) context.Context {
	t.st.roundTrips.Add(1)
	return ctx
}

func (t tracer) TracePrepareEnd(context.Context, *pgx.Conn, pgx.TracePrepareEndData) {}
