package netline

import (
	"errors"
	"io"
	"net"
	"os"
	"testing"
	"time"
)

// echo serves clients by returning what they send, after a prefix.
func echo(t *testing.T, prefix string) (address string) {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { listener.Close() })
	go func() {
		for {
			c, err := listener.Accept()
			if err != nil {
				return
			}
			go func() {
				defer c.Close()
				buf := make([]byte, 16)
				for {
					n, err := c.Read(buf)
					if err != nil {
						return
					}
					if _, err := c.Write(append([]byte(prefix), buf[:n]...)); err != nil {
						return
					}
				}
			}()
		}
	}()
	return listener.Addr().String()
}

type client struct {
	t *testing.T
	net.Conn
}

func dial(t *testing.T, l *Line) client {
	t.Helper()
	c, err := net.Dial("tcp", l.Addr())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	return client{t, c}
}

func (c client) send(text string) {
	c.t.Helper()
	if _, err := c.Write([]byte(text)); err != nil {
		c.t.Fatal(err)
	}
}

func (c client) want(text string) {
	c.t.Helper()
	got := make([]byte, len(text))
	if err := c.SetReadDeadline(time.Now().Add(10 * time.Second)); err != nil {
		c.t.Fatal(err)
	}
	if _, err := io.ReadFull(c, got); err != nil || string(got) != text {
		c.t.Fatalf("received %q, %v, want %q", got, err, text)
	}
}

func (c client) wantNothing() {
	c.t.Helper()
	if err := c.SetReadDeadline(time.Now().Add(50 * time.Millisecond)); err != nil {
		c.t.Fatal(err)
	}
	if n, err := c.Read(make([]byte, 1)); n > 0 || !errors.Is(err, os.ErrDeadlineExceeded) {
		c.t.Fatalf("received %d bytes, %v", n, err)
	}
}

// Either direction stops alone, what was sent arrives later, a cut loses it, and new connections
// can lead to another server.
func TestLine(t *testing.T) {
	l, err := New("tcp", echo(t, "a:"), 0)
	if err != nil {
		t.Fatal(err)
	}
	c := dial(t, l)
	c.send("1")
	c.want("a:1")
	for _, d := range []Direction{ToServer, ToClient} {
		l.Stop(d)
		c.send("2")
		c.wantNothing()
		late := dial(t, l)
		late.send("3")
		late.wantNothing()
		l.Go(d)
		c.want("a:2")
		late.want("a:3")
	}
	if n := l.RoundTrips(); n != 5 {
		t.Errorf("%d round trips, want 5", n)
	}

	l.Stop(ToServer)
	c.send("4")
	l.Lead("tcp", echo(t, "b:"))
	l.Cut()
	l.Go(ToServer)
	if _, err := c.Read(make([]byte, 1)); err == nil {
		t.Error("a connection that was cut is open")
	}
	c = dial(t, l)
	c.send("5")
	c.want("b:5")

	l.Lead("tcp", "127.0.0.1:1")
	c = dial(t, l)
	if _, err := c.Read(make([]byte, 1)); err == nil {
		t.Error("a client is connected to no server")
	}
	l.Stop(ToClient)
	if err := l.Close(); err != nil {
		t.Error(err)
	}
}

func TestLatency(t *testing.T) {
	const latency = 40 * time.Millisecond
	l, err := New("tcp", echo(t, ""), latency)
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	c := dial(t, l)
	began := time.Now()
	c.send("1")
	c.want("1")
	if took := time.Since(began); took < latency {
		t.Errorf("a round trip took %v", took)
	}
}

func TestPostgresThrough(t *testing.T) {
	for url, want := range map[string]string{
		"postgres:///db?host=%2Ftmp%2Fpg&user=ann":     "postgres://127.0.0.1:5/db?sslmode=disable&user=ann",
		"postgres://ann:secret@db.example.com:5433/db": "postgres://ann:secret@127.0.0.1:5/db?sslmode=disable&user=ann",
	} {
		if got, err := PostgresThrough(url, "127.0.0.1:5"); err != nil || got != want {
			t.Errorf("%s: %s, %v, want %s", url, got, err, want)
		}
	}
	for url, want := range map[string]string{
		"postgres:///db?host=%2Ftmp%2Fpg&port=5433": "unix /tmp/pg/.s.PGSQL.5433",
		"postgres://db.example.com/db":              "tcp db.example.com:5432",
	} {
		if network, address, err := PostgresServer(url); err != nil || network+" "+address != want {
			t.Errorf("%s: %s %s, %v, want %s", url, network, address, err, want)
		}
	}
}
