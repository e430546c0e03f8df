package outbound

import (
	"context"
	"crypto/tls"
	"net"
	"sync"
)

// Package http does not end a dial when its request ends, because another request may use the
// connection. So every dial has a time limit of its own.

func (c *Client) dial(ctx context.Context, network, address string) (net.Conn, error) {
	ctx, cancel := context.WithTimeout(ctx, c.headerTime)
	defer cancel()
	return c.dialer.DialContext(ctx, network, address)
}

// dialTLS dials as the transport would, and classifies the error.
func (c *Client) dialTLS(ctx context.Context, network, address string) (net.Conn, error) {
	return c.handshake(ctx, network, address, func(conn net.Conn) net.Conn { return conn }, "h2", "http/1.1")
}

// dialKept is dialTLS for connections that are kept. Package http limits the number of idle
// HTTP/1.1 connections. The number of HTTP/2 connections to a host is chosen by the host,
// which announces how many requests it takes on one of them. So a connection beyond the
// limits speaks HTTP/1.1.
func (c *Client) dialKept(ctx context.Context, network, address string) (net.Conn, error) {
	if !c.http2.add(address) {
		return c.handshake(ctx, network, address, func(conn net.Conn) net.Conn { return conn }, "http/1.1")
	}
	remove := sync.OnceFunc(func() { c.http2.remove(address) })
	conn, err := c.handshake(ctx, network, address, func(conn net.Conn) net.Conn { return countedConn{conn, remove} }, "h2", "http/1.1")
	if err != nil || conn.ConnectionState().NegotiatedProtocol != "h2" {
		remove()
	}
	if err != nil {
		return nil, err
	}
	return conn, nil
}

// handshake dials with TLS over wrap of the connection.
func (c *Client) handshake(ctx context.Context, network, address string, wrap func(net.Conn) net.Conn, protocols ...string) (*tls.Conn, error) {
	host, _, err := net.SplitHostPort(address)
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(ctx, c.headerTime)
	defer cancel()
	plain, err := c.dialer.DialContext(ctx, network, address)
	if err != nil {
		return nil, err
	}
	config := c.tls.Clone()
	config.ServerName, config.NextProtos = host, protocols
	conn := tls.Client(wrap(plain), config)
	if err := conn.HandshakeContext(ctx); err != nil {
		plain.Close()
		if ctx.Err() == nil {
			err = &Error{Class: TLS, err: err}
		}
		return nil, err
	}
	return conn, nil
}

// counter counts connections up to the limits of idle ones. Its zero value is ready for use.
type counter struct {
	mu    sync.Mutex
	total int
	of    map[string]int // by address; none is 0
}

// add counts a connection unless a limit is reached.
func (n *counter) add(address string) bool {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.total == idleTotal || n.of[address] == idlePerHost {
		return false
	}
	if n.of == nil {
		n.of = make(map[string]int)
	}
	n.total++
	n.of[address]++
	return true
}

func (n *counter) remove(address string) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.total--
	n.of[address]--
	if n.of[address] == 0 {
		delete(n.of, address)
	}
}

// countedConn calls closed when it is closed.
type countedConn struct {
	net.Conn
	closed func()
}

func (c countedConn) Close() error {
	c.closed()
	return c.Conn.Close()
}
