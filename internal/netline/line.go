// Package netline puts a network between processes on one machine, for tests and benchmarks: a TCP
// proxy with the latency of a distance, which can stop carrying data in either direction.
package netline

import (
	"errors"
	"io"
	"net"
	"sync"
	"sync/atomic"
	"time"
)

// Direction is one of the two directions of a line.
type Direction int

// The directions.
const (
	ToServer Direction = iota
	ToClient
)

// Line is a proxy of a server. It is safe for concurrent use.
type Line struct {
	listener   net.Listener
	oneWay     time.Duration
	gates      [2]gate
	roundTrips atomic.Int64
	working    sync.WaitGroup

	mu     sync.Mutex
	server struct{ network, address string }
	conns  map[net.Conn]bool
	closed bool
}

// New opens a line to a server. A round trip takes latency longer than without the line. Data that
// is sent together arrives together, so the delay is that of a distance and not added per packet.
func New(network, address string, latency time.Duration) (*Line, error) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	l := &Line{listener: listener, oneWay: latency / 2, conns: make(map[net.Conn]bool)}
	l.Lead(network, address)
	l.working.Go(l.accept)
	return l, nil
}

// Addr returns the address at which clients reach the server.
func (l *Line) Addr() string { return l.listener.Addr().String() }

// RoundTrips returns the number of responses so far; to open a connection can take some.
func (l *Line) RoundTrips() int { return int(l.roundTrips.Load()) }

// Lead makes new connections lead to another server.
func (l *Line) Lead(network, address string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.server.network, l.server.address = network, address
}

// Stop makes the line carry nothing in a direction. Clients are connected all the same. What is
// sent arrives after Go, like packets that are repeated, unless the connections are cut before.
func (l *Line) Stop(d Direction) { l.gates[d].shut() }

// Go makes the line carry data in a direction again.
func (l *Line) Go(d Direction) { l.gates[d].open() }

// Cut closes all connections. What is on its way is lost.
func (l *Line) Cut() {
	l.mu.Lock()
	defer l.mu.Unlock()
	for c := range l.conns {
		_ = c.Close()
	}
}

// Close ends the line.
func (l *Line) Close() error {
	l.mu.Lock()
	l.closed = true
	l.mu.Unlock()
	err := l.listener.Close()
	l.Cut()
	l.Go(ToServer)
	l.Go(ToClient)
	l.working.Wait()
	return err
}

func (l *Line) accept() {
	for {
		client, err := l.listener.Accept()
		if err != nil {
			return
		}
		l.working.Go(func() { l.connect(client) })
	}
}

// connect serves a client. If there is no server, it is disconnected.
func (l *Line) connect(client net.Conn) {
	l.mu.Lock()
	to := l.server
	l.mu.Unlock()
	server, err := net.Dial(to.network, to.address)
	if err != nil {
		_ = client.Close()
		return
	}
	var asked atomic.Bool // the last message is from the client
	var both sync.WaitGroup
	if l.keep(client, server) {
		both.Go(func() { l.carry(ToServer, server, client, func() { asked.Store(true) }) })
		both.Go(func() {
			l.carry(ToClient, client, server, func() {
				if asked.Swap(false) {
					l.roundTrips.Add(1)
				}
			})
		})
		both.Wait()
	}
	_, _ = client.Close(), server.Close()
	l.forget(client, server)
}

func (l *Line) keep(conns ...net.Conn) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, c := range conns {
		l.conns[c] = true
	}
	return !l.closed
}

func (l *Line) forget(conns ...net.Conn) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, c := range conns {
		delete(l.conns, c)
	}
}

// packet is data on its way.
type packet struct {
	due  time.Time
	data []byte
}

// carry moves data in one direction, each packet for the time of one way, until either end closes.
// seen is called when one enters.
func (l *Line) carry(d Direction, dst, src net.Conn, seen func()) {
	packets := make(chan packet, 4096)
	var writing sync.WaitGroup
	defer writing.Wait()
	defer close(packets)
	writing.Go(func() {
		defer dst.Close()
		for p := range packets {
			time.Sleep(time.Until(p.due))
			l.gates[d].pass()
			if _, err := dst.Write(p.data); err != nil {
				_ = src.Close()
				for range packets { // until the reader notices
				}
				return
			}
		}
		l.gates[d].pass() // the end of a connection is carried like data
	})
	for {
		buf := make([]byte, 32<<10)
		n, err := src.Read(buf)
		if n > 0 {
			seen()
			packets <- packet{time.Now().Add(l.oneWay), buf[:n]}
		}
		if err != nil {
			if !errors.Is(err, io.EOF) {
				_ = src.Close()
			}
			return
		}
	}
}

// gate lets data pass or wait. The zero value lets it pass.
type gate struct {
	mu     sync.Mutex
	closed chan struct{} // nil: data passes
}

func (g *gate) shut() {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.closed == nil {
		g.closed = make(chan struct{})
	}
}

func (g *gate) open() {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.closed != nil {
		close(g.closed)
		g.closed = nil
	}
}

func (g *gate) pass() {
	for {
		g.mu.Lock()
		closed := g.closed
		g.mu.Unlock()
		if closed == nil {
			return
		}
		<-closed
	}
}
