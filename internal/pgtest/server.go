// Package pgtest gives tests a real PostgreSQL.
//
// A test package has
//
//	func TestMain(m *testing.M) { pgtest.Main(m) }
//
// and its tests call [URL] for a fresh database each. The server is the one at
// STONETOWN_TEST_POSTGRES_URL, or else a private one, which is started by the first call and
// ends with the process.
// Where there is no PostgreSQL the test is skipped, except in CI, where it
// fails. The named server may also be CockroachDB (make test-cockroach).
//
// [Latency] puts a slow network in between and counts the round trips. [Own] gives a test a server
// that it may crash and replace by a standby.
package pgtest

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/url"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/jackc/pgx/v5"
)

// ErrNotInstalled: there is no PostgreSQL server program on this machine.
var ErrNotInstalled = errors.New("PostgreSQL is not installed (looked for initdb in PATH and /usr/lib/postgresql/*/bin)")

// Server is a private PostgreSQL server, reached through a Unix socket.
type Server struct {
	URL string // of its database postgres

	bin, dir string
	attr     *syscall.SysProcAttr
	keeper   *exec.Cmd
	alive    io.Closer // closing it ends the server
}

// keeperScript runs the server until its standard input ends, which it does at
// the latest when the process that started it is gone, and then cleans up.
const keeperScript = `
"$1/postgres" -D "$2/data" -k "$2" -c listen_addresses= \
	-c fsync=off -c full_page_writes=off -c max_connections=400 -c shared_buffers=128MB \
	>"$2/log" 2>&1 </dev/null &
server=$!
cat >/dev/null
kill -INT $server
wait $server
rm -rf "$2"
`

// Start creates a server in a new folder under the temporary directory. It
// compares text bytewise and encodes it as UTF-8. It does not sync to disk.
func Start(ctx context.Context) (*Server, error) {
	bin, err := binaries()
	if err != nil {
		return nil, err
	}
	return start(ctx, bin, "initdb", "-U", "postgres", "--auth=trust", "--locale=C", "--encoding=UTF8", "--no-sync")
}

// start runs a server in a new folder, with the data that a program creates.
func start(ctx context.Context, bin, create string, args ...string) (_ *Server, err error) {
	s := &Server{bin: bin}
	if s.dir, err = os.MkdirTemp("", "stonetown-pg-"); err != nil {
		return nil, err
	}
	if err := s.run(ctx, create, args); err != nil {
		log, _ := os.ReadFile(filepath.Join(s.dir, "log"))
		return nil, errors.Join(fmt.Errorf("start PostgreSQL: %w\n%s", err, log), os.RemoveAll(s.dir))
	}
	return s, nil
}

func (s *Server) run(ctx context.Context, create string, args []string) (err error) {
	if s.attr, err = unprivileged(s.dir); err != nil {
		return err
	}
	if err := s.command(ctx, create, append(args, "-D", s.data())...); err != nil {
		return err
	}
	s.keeper = exec.Command("sh", "-c", keeperScript, "sh", s.bin, s.dir)
	s.keeper.Dir, s.keeper.SysProcAttr = s.dir, s.attr
	if s.alive, err = s.keeper.StdinPipe(); err != nil {
		return err
	}
	if err := s.keeper.Start(); err != nil {
		return err
	}
	u := url.URL{Scheme: "postgres", Path: "/postgres", RawQuery: url.Values{"host": {s.dir}, "user": {"postgres"}}.Encode()}
	s.URL = u.String()
	if err := s.await(ctx); err != nil {
		return errors.Join(err, s.Stop())
	}
	return nil
}

// data is the folder of the server's data.
func (s *Server) data() string { return filepath.Join(s.dir, "data") }

// command runs a program of PostgreSQL.
func (s *Server) command(ctx context.Context, name string, args ...string) error {
	program := exec.CommandContext(ctx, filepath.Join(s.bin, name), args...)
	program.Dir, program.SysProcAttr = s.dir, s.attr
	if out, err := program.CombinedOutput(); err != nil {
		return fmt.Errorf("%s: %w\n%s", name, err, out)
	}
	return nil
}

// startTimeout bounds the wait for the server to answer.
const startTimeout = 30 * time.Second

func (s *Server) await(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, startTimeout)
	defer cancel()
	for {
		conn, err := pgx.Connect(ctx, s.URL)
		if err == nil {
			return conn.Close(ctx)
		}
		select {
		case <-time.After(20 * time.Millisecond):
		case <-ctx.Done():
			return err
		}
	}
}

// Stop shuts the server down and removes its files.
func (s *Server) Stop() error {
	if err := s.alive.Close(); err != nil {
		return err
	}
	return s.keeper.Wait()
}

// binaries finds the folder of the server's programs.
func binaries() (string, error) {
	if path, err := exec.LookPath("initdb"); err == nil {
		if path, err = filepath.EvalSymlinks(path); err == nil {
			if _, err := os.Stat(filepath.Join(filepath.Dir(path), "postgres")); err == nil {
				return filepath.Dir(path), nil
			}
		}
	}
	found, err := filepath.Glob("/usr/lib/postgresql/*/bin/initdb") // Debian keeps them out of PATH
	if err != nil || len(found) == 0 {
		return "", ErrNotInstalled
	}
	version := func(path string) int {
		v, _ := strconv.Atoi(strings.Split(path, "/")[4])
		return v
	}
	newest := slices.MaxFunc(found, func(a, b string) int { return version(a) - version(b) })
	return filepath.Dir(newest), nil
}

// unprivileged returns how to run the server, which refuses to run as root: as the user
// postgres or nobody, which gets the folder. Its own session keeps an interrupt at the
// terminal from it, so that it can clean up.
func unprivileged(dir string) (*syscall.SysProcAttr, error) {
	attr := &syscall.SysProcAttr{Setsid: true}
	if os.Getuid() != 0 {
		return attr, nil
	}
	u, err := user.Lookup("postgres")
	if err != nil {
		if u, err = user.Lookup("nobody"); err != nil {
			return nil, err
		}
	}
	uid, err := strconv.ParseUint(u.Uid, 10, 32)
	if err != nil {
		return nil, err
	}
	gid, err := strconv.ParseUint(u.Gid, 10, 32)
	if err != nil {
		return nil, err
	}
	attr.Credential = &syscall.Credential{Uid: uint32(uid), Gid: uint32(gid)}
	return attr, os.Chown(dir, int(uid), int(gid))
}
