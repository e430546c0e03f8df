package sqldb

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"strings"
	"syscall"

	"github.com/jackc/pgx/v5/pgconn"
	"modernc.org/sqlite"
	sqlite3 "modernc.org/sqlite/lib"
)

// AmbiguousCommitError says that a commit was sent and its outcome is unknown:
// the transaction may or may not have been applied.
type AmbiguousCommitError struct{ Err error }

func (e *AmbiguousCommitError) Error() string {
	return fmt.Sprintf("outcome of the commit is unknown: %v", e.Err)
}

func (e *AmbiguousCommitError) Unwrap() error { return e.Err }

// IsUniqueViolation reports whether err comes from a primary key or a unique
// index.
func IsUniqueViolation(err error) bool {
	if pgErr, ok := errors.AsType[*pgconn.PgError](err); ok {
		return pgErr.Code == "23505" // unique_violation
	}
	if liteErr, ok := errors.AsType[*sqlite.Error](err); ok {
		return liteErr.Code() == sqlite3.SQLITE_CONSTRAINT_UNIQUE || liteErr.Code() == sqlite3.SQLITE_CONSTRAINT_PRIMARYKEY
	}
	return false
}

// IsDivisionByZero reports whether err is that of a division by zero, with which a statement ends a
// transaction on a server. SQLite returns NULL for it.
func IsDivisionByZero(err error) bool {
	pgErr, ok := errors.AsType[*pgconn.PgError](err)
	return ok && pgErr.Code == "22012" // division_by_zero
}

// IsRetryable reports whether the database rolled a transaction back only
// because of others running at the same time, so that it may succeed if it is
// run again from its beginning.
func IsRetryable(err error) bool {
	pgErr, ok := errors.AsType[*pgconn.PgError](err)
	return ok && (pgErr.Code == "40001" || pgErr.Code == "40P01") // serialization_failure, deadlock_detected
}

// IsUnavailable reports whether an error means that the database could not be reached or that
// a connection broke. Whether a statement was executed is then unknown; a transaction that had
// not begun to commit was not applied.
func IsUnavailable(err error) bool {
	if errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded) {
		return false // the caller's deadline, not an error of the database
	}
	if pgErr, ok := errors.AsType[*pgconn.PgError](err); ok {
		// connection exceptions; admin_shutdown, crash_shutdown, cannot_connect_now
		return strings.HasPrefix(pgErr.Code, "08") || strings.HasPrefix(pgErr.Code, "57P0")
	}
	if _, ok := errors.AsType[*pgconn.ConnectError](err); ok {
		return true
	}
	if _, ok := errors.AsType[net.Error](err); ok {
		return true
	}
	if pgconn.SafeToRetry(err) { // the connection was closed before anything was sent
		return true
	}
	return errors.Is(err, io.ErrUnexpectedEOF) || errors.Is(err, net.ErrClosed) || errors.Is(err, syscall.ECONNRESET) || errors.Is(err, syscall.EPIPE)
}

// IsExhausted reports whether the database lacks disk space, memory or connections. Nothing
// was written.
func IsExhausted(err error) bool {
	if pgErr, ok := errors.AsType[*pgconn.PgError](err); ok {
		return strings.HasPrefix(pgErr.Code, "53") // insufficient resources, disk_full among them
	}
	if liteErr, ok := errors.AsType[*sqlite.Error](err); ok {
		return liteErr.Code()&0xff == sqlite3.SQLITE_FULL
	}
	return errors.Is(err, syscall.ENOSPC)
}

// commitError classifies the error of a batch that ended with COMMIT. The outcome is known
// only if the server reported that it rolled back. pgconn.SafeToRetry is not used: it has
// returned true for a COMMIT that was applied before its connection dropped.
func commitError(err error) error {
	pgErr, ok := errors.AsType[*pgconn.PgError](err)
	certain := ok &&
		pgErr.Code != "40003" && // statement_completion_unknown
		!strings.HasPrefix(pgErr.Code, "08") && // connection exceptions
		pgErr.SeverityUnlocalized != "FATAL" && pgErr.SeverityUnlocalized != "PANIC"
	if certain {
		return err
	}
	return &AmbiguousCommitError{err}
}
