package netline

import (
	"net"
	"net/url"
	"strconv"
	"time"

	"github.com/jackc/pgx/v5"
)

// Postgres opens a line to the database at a URL, and returns the URL of the database through it.
func Postgres(databaseURL string, latency time.Duration) (l *Line, through string, err error) {
	network, address, err := PostgresServer(databaseURL)
	if err != nil {
		return nil, "", err
	}
	if l, err = New(network, address, latency); err != nil {
		return nil, "", err
	}
	through, err = PostgresThrough(databaseURL, l.Addr())
	return l, through, err
}

// PostgresServer returns where the server of a database listens, which may be a Unix socket.
func PostgresServer(databaseURL string) (network, address string, err error) {
	c, err := pgx.ParseConfig(databaseURL)
	if err != nil {
		return "", "", err
	}
	if c.Host != "" && c.Host[0] == '/' {
		return "unix", c.Host + "/.s.PGSQL." + strconv.Itoa(int(c.Port)), nil
	}
	return "tcp", net.JoinHostPort(c.Host, strconv.Itoa(int(c.Port))), nil
}

// PostgresThrough returns the URL of a database through a proxy, which does not encrypt.
func PostgresThrough(databaseURL, proxy string) (string, error) {
	c, err := pgx.ParseConfig(databaseURL)
	if err != nil {
		return "", err
	}
	u, err := url.Parse(databaseURL)
	if err != nil {
		return "", err
	}
	q := u.Query()
	q.Del("host")
	q.Del("port")
	q.Set("sslmode", "disable")
	q.Set("user", c.User)
	u.Host, u.RawQuery = proxy, q.Encode()
	return u.String(), nil
}
