// Withcockroach runs a command with a private CockroachDB server beside it, whose URL it
// puts into STONETOWN_TEST_POSTGRES_URL, as internal/pgtest/withpg does with PostgreSQL:
//
//	withcockroach /path/to/cockroach go test ./...
//
// The server is one insecure node in memory, on a port of its own. It is started and
// stopped by CockroachDB's own package for tests, which never downloads anything when it
// is given a binary. Any error ends with code 1 or 2, so nothing is skipped.
package main

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"os/signal"

	"github.com/cockroachdb/cockroach-go/v2/testserver"
)

// serverVariable is ServerVariable of stonetown/internal/pgtest.
const serverVariable = "STONETOWN_TEST_POSTGRES_URL"

func main() {
	code, err := run(os.Args[1:])
	if err != nil {
		fmt.Fprintln(os.Stderr, "withcockroach:", err)
	}
	os.Exit(code)
}

func run(args []string) (code int, err error) {
	if len(args) < 2 || args[0] == "" {
		return 2, errors.New("usage: withcockroach BINARY COMMAND [ARGUMENT...]")
	}
	server, err := testserver.NewTestServer(testserver.CockroachBinaryPathOpt(args[0]))
	if err != nil {
		return 1, err
	}
	defer server.Stop()
	cmd := exec.Command(args[1], args[2:]...)
	cmd.Stdin, cmd.Stdout, cmd.Stderr = os.Stdin, os.Stdout, os.Stderr
	cmd.Env = append(os.Environ(), serverVariable+"="+server.PGURL().String())

	// An interrupt reaches the command, too; the server is stopped after it.
	signal.Notify(make(chan os.Signal, 1), os.Interrupt)
	if err := cmd.Run(); err != nil {
		if exit, ok := errors.AsType[*exec.ExitError](err); ok {
			return exit.ExitCode(), nil
		}
		return 1, err
	}
	return 0, nil
}
