package pgtest

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"net/url"
	"os"
	"strings"
	"sync"
	"testing"

	"github.com/jackc/pgx/v5"
)

// ServerVariable names a running server, PostgreSQL or CockroachDB: the URL of a
// database whose user may create databases.
const ServerVariable = "STONETOWN_TEST_POSTGRES_URL"

// private is the server of this test process.
var private struct {
	sync.Mutex
	underMain bool // Main stops the server
	server    *Server
	err       error // why it could not be started
}

// Main runs the tests of a package and stops the server that they started.
func Main(m *testing.M) {
	private.underMain = true
	code := m.Run()
	if private.server != nil {
		if err := private.server.Stop(); err != nil {
			fmt.Fprintln(os.Stderr, "stop PostgreSQL:", err)
			code = 1
		}
	}
	os.Exit(code)
}

// serverURL is the server to use, which is started if need be.
func serverURL() (string, error) {
	if u := os.Getenv(ServerVariable); u != "" {
		return u, nil
	}
	private.Lock()
	defer private.Unlock()
	if !private.underMain {
		return "", errors.New("the test package has no TestMain that calls pgtest.Main")
	}
	if private.server == nil && private.err == nil {
		private.server, private.err = Start(context.Background())
		if errors.Is(private.err, ErrNotInstalled) && os.Getenv("CI") != "true" {
			fmt.Fprintf(os.Stderr, "SKIPPING the PostgreSQL tests of this package: %v\n", private.err)
		}
	}
	if private.err != nil {
		return "", private.err
	}
	return private.server.URL, nil
}

// URL is the URL of a new, empty database, which is dropped when the test ends.
func URL(t testing.TB) string {
	t.Helper()
	server, err := serverURL()
	if errors.Is(err, ErrNotInstalled) && os.Getenv("CI") != "true" {
		t.Skip(err)
	} else if err != nil {
		t.Fatal(err)
	}
	name := "test_" + strings.ToLower(rand.Text())
	exec := func(postgres, cockroach string) {
		ctx := context.Background()
		conn, err := pgx.Connect(ctx, server)
		if err != nil {
			t.Fatalf("connect to PostgreSQL: %v", err)
		}
		defer conn.Close(ctx)
		sql := postgres
		if conn.PgConn().ParameterStatus("crdb_version") != "" {
			sql = cockroach
		}
		if _, err := conn.Exec(ctx, sql); err != nil {
			t.Fatalf("%s: %v", sql, err)
		}
	}
	exec("CREATE DATABASE "+name+" TEMPLATE template0 ENCODING 'UTF8' LC_COLLATE 'C' LC_CTYPE 'C'", "CREATE DATABASE "+name)
	t.Cleanup(func() { exec("DROP DATABASE "+name+" WITH (FORCE)", "DROP DATABASE "+name+" CASCADE") })

	u, err := url.Parse(server)
	if err != nil {
		t.Fatalf("%s: %v", ServerVariable, err)
	}
	u.Path = "/" + name
	return u.String()
}
