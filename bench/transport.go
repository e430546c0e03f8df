package bench

import (
	"bufio"
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"sync"
	"syscall"
	"time"
)

// transport is an [http.RoundTripper] for load over HTTP/1.1. The goroutine that makes a request also
// writes it and reads its response. [http.Transport] has two goroutines for each connection, and the
// time that the scheduler needs to switch between them is time that a server on the same machine does
// not have.
//
// It writes all of a request before it reads the response, so it is not for streams in both
// directions. It is safe for concurrent use.
type transport struct {
	connections int // that are kept open

	mu   sync.Mutex
	idle map[string][]*persistent // by host and port
}

// persistent is a connection that is used for one request after another.
type persistent struct {
	net.Conn
	host string
	r    *bufio.Reader
	w    *bufio.Writer
}

// NewClient returns a client for load that keeps so many connections to each host open.
func NewClient(connections int) *http.Client {
	return &http.Client{Transport: &transport{connections: connections, idle: map[string][]*persistent{}}}
}

// RoundTrip implements [http.RoundTripper].
func (t *transport) RoundTrip(req *http.Request) (*http.Response, error) {
	if req.Body != nil {
		defer req.Body.Close()
	}
	if req.URL.Scheme != "http" {
		return nil, errors.New("only http is supported")
	}
	for {
		c, used, err := t.connect(req.Context(), req.URL.Host)
		if err != nil {
			return nil, err
		}
		res, err := t.exchange(c, req)
		if err == nil {
			return res, nil
		}
		// A server closes connections that have been idle for long.
		closed := errors.Is(err, io.ErrUnexpectedEOF) || errors.Is(err, syscall.ECONNRESET) || errors.Is(err, syscall.EPIPE)
		if !used || !closed || req.Body != nil && req.GetBody == nil {
			return nil, err
		}
		if req.GetBody != nil {
			again := *req
			if again.Body, err = req.GetBody(); err != nil {
				return nil, err
			}
			req = &again
		}
	}
}

// connect returns an idle connection, which has been used, or a new one.
func (t *transport) connect(ctx context.Context, host string) (c *persistent, used bool, err error) {
	t.mu.Lock()
	if idle := t.idle[host]; len(idle) > 0 {
		c = idle[len(idle)-1]
		t.idle[host] = idle[:len(idle)-1]
	}
	t.mu.Unlock()
	if c != nil {
		return c, true, nil
	}
	address := host
	if _, _, err := net.SplitHostPort(host); err != nil {
		address = net.JoinHostPort(host, "80")
	}
	conn, err := new(net.Dialer).DialContext(ctx, "tcp", loopback(address))
	if err != nil {
		return nil, false, err
	}
	return &persistent{conn, host, bufio.NewReader(conn), bufio.NewWriter(conn)}, false, nil
}

func (t *transport) exchange(c *persistent, req *http.Request) (*http.Response, error) {
	stop := func() bool { return true }
	if req.Context().Done() != nil {
		stop = context.AfterFunc(req.Context(), func() { _ = c.SetDeadline(time.Unix(1, 0)) })
	}
	err := req.Write(c.w)
	if err == nil {
		err = c.w.Flush()
	}
	var res *http.Response
	if err == nil {
		res, err = http.ReadResponse(c.r, req)
	}
	if err != nil {
		stop()
		if canceled := req.Context().Err(); canceled != nil {
			err = canceled
		}
		return nil, errors.Join(err, c.Close())
	}
	res.Body = &responseBody{ReadCloser: res.Body, done: func(complete bool) error {
		if !stop() || !complete || res.Close || !t.keep(c) {
			return c.Close()
		}
		return nil
	}}
	return res, nil
}

// keep makes a connection idle, unless there are enough.
func (t *transport) keep(c *persistent) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	if len(t.idle[c.host]) >= t.connections {
		return false
	}
	t.idle[c.host] = append(t.idle[c.host], c)
	return true
}

// CloseIdleConnections is called by the method of [http.Client].
func (t *transport) CloseIdleConnections() {
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, idle := range t.idle {
		for _, c := range idle {
			_ = c.Close()
		}
	}
	clear(t.idle)
}

// responseBody releases the connection when it is closed.
type responseBody struct {
	io.ReadCloser
	ended, closed bool
	done          func(complete bool) error
}

func (b *responseBody) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p)
	b.ended = b.ended || err == io.EOF
	return n, err
}

func (b *responseBody) Close() error {
	if b.closed {
		return nil
	}
	b.closed = true
	if b.ended {
		return errors.Join(b.ReadCloser.Close(), b.done(true))
	}
	return b.done(false)
}
