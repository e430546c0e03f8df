package pgtest

import (
	"context"
	"errors"
	"os"
	"syscall"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
)

// Own returns a server of the test's own, which may be crashed and stopped.
func Own(t testing.TB) *Server {
	t.Helper()
	s, err := Start(t.Context())
	if errors.Is(err, ErrNotInstalled) && os.Getenv("CI") != "true" {
		t.Skip(err)
	} else if err != nil {
		t.Fatal(err)
	}
	return s
}

// Crash kills one process of the server, which then ends all others and recovers from its log, and
// waits until it answers again. Every connection breaks, and no transaction in progress commits.
func (s *Server) Crash(ctx context.Context) error {
	killed, err := pgx.Connect(ctx, s.URL)
	if err != nil {
		return err
	}
	defer killed.Close(ctx)
	other, err := pgx.Connect(ctx, s.URL)
	if err != nil {
		return err
	}
	defer other.Close(ctx)
	if err := syscall.Kill(int(killed.PgConn().PID()), syscall.SIGKILL); err != nil {
		return err
	}
	for other.Ping(ctx) == nil { // until the server has noticed
		time.Sleep(time.Millisecond)
	}
	return s.await(ctx)
}

// Standby starts a second server to which this one replicates each commit before anybody sees it.
func (s *Server) Standby(ctx context.Context) (*Server, error) {
	standby, err := start(ctx, s.bin, "pg_basebackup", "-d", s.URL+"&application_name=standby", "-R", "-c", "fast", "--no-sync")
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(ctx, startTimeout)
	defer cancel()
	err = s.exec(ctx, `ALTER SYSTEM SET synchronous_standby_names = 'standby'`, `SELECT pg_reload_conf()`)
	for synchronous := false; !synchronous && err == nil; {
		time.Sleep(10 * time.Millisecond)
		synchronous, err = s.isSynchronous(ctx)
	}
	if err != nil {
		return nil, errors.Join(err, standby.Stop())
	}
	return standby, nil
}

func (s *Server) isSynchronous(ctx context.Context) (is bool, err error) {
	conn, err := pgx.Connect(ctx, s.URL)
	if err != nil {
		return false, err
	}
	defer conn.Close(ctx)
	err = conn.QueryRow(ctx, `SELECT EXISTS (SELECT 1 FROM pg_stat_replication WHERE sync_state = 'sync')`).Scan(&is)
	return is, err
}

// Promote makes a standby the server that takes writes. The server before it must have ended.
func (s *Server) Promote(ctx context.Context) error {
	return s.exec(ctx, `SELECT pg_promote()`)
}

func (s *Server) exec(ctx context.Context, statements ...string) error {
	conn, err := pgx.Connect(ctx, s.URL)
	if err != nil {
		return err
	}
	defer conn.Close(ctx)
	for _, statement := range statements {
		if _, err := conn.Exec(ctx, statement); err != nil {
			return err
		}
	}
	return nil
}
