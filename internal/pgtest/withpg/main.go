// Withpg runs a command with a private PostgreSQL server beside it, whose URL
// it puts into STONETOWN_TEST_POSTGRES_URL:
//
//	go run ./internal/pgtest/withpg go test ./...
//
// So all test packages share one server. Where PostgreSQL is not installed the
// command is run without, except in CI, which must not skip anything.
package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"os/signal"

	"stonetown/internal/pgtest"
)

func main() {
	code, err := run(os.Args[1:])
	if err != nil {
		fmt.Fprintln(os.Stderr, "withpg:", err)
	}
	os.Exit(code)
}

func run(command []string) (code int, err error) {
	if len(command) == 0 {
		return 2, errors.New("usage: withpg COMMAND [ARGUMENT...]")
	}
	cmd := exec.Command(command[0], command[1:]...)
	cmd.Stdin, cmd.Stdout, cmd.Stderr = os.Stdin, os.Stdout, os.Stderr

	// An interrupt reaches the command, too; the server is stopped after it.
	interrupts := make(chan os.Signal, 1)
	signal.Notify(interrupts, os.Interrupt)

	if os.Getenv(pgtest.ServerVariable) == "" {
		server, startErr := pgtest.Start(context.Background())
		switch {
		case startErr == nil:
			defer func() { err = errors.Join(err, server.Stop()) }()
			cmd.Env = append(os.Environ(), pgtest.ServerVariable+"="+server.URL)
		case errors.Is(startErr, pgtest.ErrNotInstalled) && os.Getenv("CI") != "true":
			fmt.Fprintln(os.Stderr, "SKIPPING all PostgreSQL tests:", startErr)
		default:
			return 1, startErr
		}
	}
	if err := cmd.Run(); err != nil {
		if exit, ok := errors.AsType[*exec.ExitError](err); ok {
			return exit.ExitCode(), nil
		}
		return 1, err
	}
	return 0, nil
}
