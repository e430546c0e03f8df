package pgtest

import (
	"errors"
	"io"
	"net"
	"net/url"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
)

// Latency simulates a network between the test and the database at rawURL: a round trip
// through proxyURL takes d longer. Data that is sent together arrives together, so the delay
// is that of the distance and not added per packet.
//
// roundTrips counts the responses of the database so far; opening a connection needs some.
func Latency(t testing.TB, rawURL string, d time.Duration) (proxyURL string, roundTrips func() int) {
	t.Helper()
	cfg, err := pgx.ParseConfig(rawURL)
	if err != nil {
		t.Fatal(err)
	}
	network, address := pgNetwork(cfg.Host, cfg.Port)

	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	p := &proxy{oneWay: d / 2, conns: make(map[net.Conn]bool)}
	var accepting sync.WaitGroup
	accepting.Go(func() {
		for {
			client, err := l.Accept()
			if err != nil {
				return // closed below
			}
			server, err := net.Dial(network, address)
			if err != nil {
				t.Errorf("proxy: %v", err)
				_ = client.Close()
				continue
			}
			p.serve(client, server)
		}
	})
	t.Cleanup(func() {
		_ = l.Close()
		accepting.Wait()
		p.close()
	})

	u, err := url.Parse(rawURL)
	if err != nil {
		t.Fatal(err)
	}
	q := u.Query()
	q.Del("host")
	q.Del("port")
	q.Set("sslmode", "disable")
	q.Set("user", cfg.User)
	u.Host, u.RawQuery = l.Addr().String(), q.Encode()
	return u.String(), func() int { return int(p.roundTrips.Load()) }
}

// pgNetwork is where a server with this host and port listens.
func pgNetwork(host string, port uint16) (network, address string) {
	if len(host) > 0 && host[0] == '/' {
		return "unix", host + "/.s.PGSQL." + strconv.Itoa(int(port))
	}
	return "tcp", net.JoinHostPort(host, strconv.Itoa(int(port)))
}

type proxy struct {
	oneWay     time.Duration
	roundTrips atomic.Int64
	copying    sync.WaitGroup

	mu    sync.Mutex
	conns map[net.Conn]bool
}

func (p *proxy) serve(client, server net.Conn) {
	p.mu.Lock()
	p.conns[client], p.conns[server] = true, true
	p.mu.Unlock()

	var asked atomic.Bool // the last message is from the client
	p.copying.Go(func() {
		p.carry(server, client, func() { asked.Store(true) })
	})
	p.copying.Go(func() {
		p.carry(client, server, func() {
			if asked.Swap(false) {
				p.roundTrips.Add(1)
			}
		})
	})
}

// packet is data on its way.
type packet struct {
	due  time.Time
	data []byte
}

// carry moves data in one direction, each packet for the time of one way,
// until either end closes. seen is called when one enters.
func (p *proxy) carry(dst io.WriteCloser, src io.ReadCloser, seen func()) {
	line := make(chan packet, 4096)
	p.copying.Go(func() {
		defer dst.Close()
		for pk := range line {
			time.Sleep(time.Until(pk.due))
			if _, err := dst.Write(pk.data); err != nil {
				_ = src.Close()
				for range line { // until the reader notices
				}
				return
			}
		}
	})
	defer close(line)
	for {
		buf := make([]byte, 32<<10)
		n, err := src.Read(buf)
		if n > 0 {
			seen()
			line <- packet{time.Now().Add(p.oneWay), buf[:n]}
		}
		if err != nil {
			if !errors.Is(err, io.EOF) {
				_ = src.Close()
			}
			return
		}
	}
}

func (p *proxy) close() {
	p.mu.Lock()
	for c := range p.conns {
		_ = c.Close()
	}
	p.mu.Unlock()
	p.copying.Wait()
}
