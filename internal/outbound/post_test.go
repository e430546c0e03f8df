package outbound

import (
	"bufio"
	"bytes"
	"compress/gzip"
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"math/big"
	"net"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

const recorded = 16 << 10 // bytes of a body that a delivery records

func keeping(t testing.TB) *world {
	t.Helper()
	return worldOf(t, Config{KeepAlive: true, UserAgent: "stonetown/1.2"})
}

// post delivers to a server of the world.
func (w *world) post(port string) (Answer, error) {
	return w.Post(w.t.Context(), "https://example.com:"+port+"/hook?a=b", http.Header{"Content-Type": {"application/json"}}, []byte(`{"a":1}`), recorded)
}

// rejects delivers to a server, which must fail with a class.
func (w *world) rejects(what, port string, want Class) Answer {
	w.t.Helper()
	a, err := w.post(port)
	if class(err) != want {
		w.t.Errorf("%s: %v (%v), want %s", what, err, errors.Unwrap(err), want)
	}
	return a
}

// accepts delivers to a server, which must succeed.
func (w *world) accepts(what, port string) Answer {
	w.t.Helper()
	return w.rejects(what, port, "")
}

// raw is a server that speaks TLS and serves each connection with a function, which gets
// the number of the connection, from 1. The connection is closed when the function returns.
func (w *world) raw(serve func(conn net.Conn, r *bufio.Reader, number int)) (port string) {
	w.t.Helper()
	donor := w.server(outside+":0", nil) // of a certificate
	donor.StartTLS()
	w.trust(donor)
	listener, err := tls.Listen("tcp", outside+":0", &tls.Config{Certificates: donor.TLS.Certificates})
	if err != nil {
		w.t.Fatal(err)
	}
	var group sync.WaitGroup
	group.Go(func() {
		for number := 1; ; number++ {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			group.Go(func() {
				defer conn.Close()
				serve(conn, bufio.NewReader(conn), number)
			})
		}
	})
	w.t.Cleanup(func() { listener.Close(); w.Close(); group.Wait() })
	_, port, _ = net.SplitHostPort(listener.Addr().String())
	return port
}

// request reads a request, and reports whether there was one.
func request(r *bufio.Reader) bool {
	req, err := http.ReadRequest(r)
	if err != nil {
		return false
	}
	_, err = io.Copy(io.Discard, req.Body)
	return err == nil
}

const ok = "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok"

// reset closes a connection with unsent data and a RST.
func reset(conn net.Conn) {
	_ = conn.(*tls.Conn).NetConn().(*net.TCPConn).SetLinger(0)
	_ = conn.(*tls.Conn).NetConn().Close()
}

func TestPost(t *testing.T) {
	for _, proto := range []string{"HTTP/1.1", "HTTP/2.0"} {
		w := keeping(t)
		var from []string
		s := w.server(outside+":0", func(rw http.ResponseWriter, r *http.Request) {
			from = append(from, r.RemoteAddr)
			body, _ := io.ReadAll(r.Body)
			rw.Header().Set("Retry-After", "120")
			rw.WriteHeader(map[bool]int{true: 200, false: len(from) + 500}[len(from) == 1])
			fmt.Fprintf(rw, "%s %s %s %s %s", r.Proto, r.Method, r.URL, body, r.Header)
		})
		s.EnableHTTP2 = proto == "HTTP/2.0"
		s.StartTLS()
		w.trust(s)
		_, port, _ := net.SplitHostPort(s.Listener.Addr().String())

		header := http.Header{"Content-Type": {"application/json"}, "X-Service-Attempt": {"1"}}
		a, err := w.Post(t.Context(), "https://example.com:"+port+"/hook?a=b", header, []byte(`{"a":1}`), recorded)
		want := proto + ` POST /hook?a=b {"a":1} map[Content-Length:[7] Content-Type:[application/json] User-Agent:[stonetown/1.2] X-Service-Attempt:[1]]`
		if err != nil || a.Status != 200 || string(a.Body) != want || a.Truncated || a.Header.Get("Retry-After") != "120" {
			t.Errorf("%s: %d %s, %v", proto, a.Status, a.Body, err)
		}
		if len(header) != 2 {
			t.Errorf("the caller's header became %v", header)
		}
		before := w.lookups.Load()
		a, err = w.post(port)
		if class(err) != Status || a.Status != 502 || a.Header.Get("Retry-After") != "120" || !strings.HasPrefix(string(a.Body), proto) {
			t.Errorf("%s: %d %s, %v", proto, a.Status, a.Body, err)
		}
		if w.lookups.Load() != before || from[0] != from[1] {
			t.Errorf("%s: a new connection after %d lookups", proto, w.lookups.Load()-before)
		}
		// Without keep-alive every delivery has a connection of its own.
		w.http = w.fresh
		w.rejects(proto, port, Status)
		w.rejects(proto, port, Status)
		if from[2] == from[3] || from[2] == from[1] {
			t.Errorf("%s: %v", proto, from)
		}
	}
}

func TestPostStatus(t *testing.T) {
	w := keeping(t)
	for status, want := range map[int]Class{
		200: "", 202: "", 204: "", 299: "", 300: Status, 304: Status, 400: Status, 401: Status, 404: Status, 410: Status, 429: Status, 500: Status, 503: Status,
	} {
		port := w.serve(func(rw http.ResponseWriter, _ *http.Request) {
			rw.Header().Set("Retry-After", "Fri, 20 Nov 2026 19:27:00 GMT")
			rw.WriteHeader(status)
		})
		if a := w.rejects(fmt.Sprint(status), port, want); a.Status != status || a.Header.Get("Retry-After") != "Fri, 20 Nov 2026 19:27:00 GMT" {
			t.Errorf("%d: %+v", status, a)
		}
	}
	if _, err := w.Post(t.Context(), "http://example.com/", nil, nil, recorded); class(err) != Invalid {
		t.Errorf("http: %v", err)
	}
	if _, err := w.Post(t.Context(), "https://127.0.0.1/", nil, nil, recorded); class(err) != BlockedAddress {
		t.Errorf("loopback: %v", err)
	}
	w.resolve()
	w.rejects("no such name", "443", DNS)
}

// The body of a response does not decide about a delivery.
func TestPostBodies(t *testing.T) {
	var bomb bytes.Buffer
	packer := gzip.NewWriter(&bomb)
	for range 32 {
		_, _ = packer.Write(make([]byte, 1<<20))
	}
	if err := packer.Close(); err != nil || bomb.Len() <= recorded {
		t.Fatalf("%d bytes, %v", bomb.Len(), err)
	}
	flush := func(rw http.ResponseWriter) { _ = http.NewResponseController(rw).Flush() }
	for _, http2 := range []bool{false, true} {
		for _, tc := range []struct {
			name      string
			serve     http.HandlerFunc
			size      int // at least; -1: any
			truncated bool
		}{
			{"none", func(http.ResponseWriter, *http.Request) {}, 0, false},
			{"as long as the limit", func(rw http.ResponseWriter, _ *http.Request) { _, _ = rw.Write(make([]byte, recorded)) }, recorded, false},
			{"one byte longer", func(rw http.ResponseWriter, _ *http.Request) { _, _ = rw.Write(make([]byte, recorded+1)) }, recorded, true},
			{"endless", func(rw http.ResponseWriter, r *http.Request) {
				for r.Context().Err() == nil {
					if _, err := rw.Write(make([]byte, 64<<10)); err != nil {
						return
					}
				}
			}, recorded, true},
			{"slow", func(rw http.ResponseWriter, r *http.Request) {
				for r.Context().Err() == nil {
					_, _ = rw.Write([]byte("a"))
					flush(rw)
					time.Sleep(5 * time.Millisecond)
				}
			}, 1, true},
			{"hanging", func(rw http.ResponseWriter, r *http.Request) { flush(rw); <-r.Context().Done() }, 0, true},
			{"broken", func(rw http.ResponseWriter, _ *http.Request) {
				rw.Header().Set("Content-Length", "10")
				_, _ = rw.Write([]byte("four"))
				flush(rw)
				panic(http.ErrAbortHandler)
			}, -1, true},
			{"gzip bomb", func(rw http.ResponseWriter, _ *http.Request) {
				rw.Header().Set("Content-Encoding", "gzip")
				_, _ = rw.Write(bomb.Bytes())
			}, recorded, true},
		} {
			w := keeping(t)
			w.bodyTime = 200 * time.Millisecond
			var from []string
			s := w.server(outside+":0", func(rw http.ResponseWriter, r *http.Request) {
				from = append(from, r.RemoteAddr)
				tc.serve(rw, r)
			})
			s.EnableHTTP2 = http2
			s.StartTLS()
			w.trust(s)
			_, port, _ := net.SplitHostPort(s.Listener.Addr().String())
			for range 2 {
				began := time.Now()
				a := w.accepts(tc.name, port)
				if a.Status != 200 || a.Truncated != tc.truncated || tc.size == recorded && len(a.Body) != recorded || len(a.Body) < tc.size || len(a.Body) > recorded {
					t.Errorf("%s, HTTP/2 %v: %d, %d bytes, truncated %v", tc.name, http2, a.Status, len(a.Body), a.Truncated)
				}
				if tc.name == "gzip bomb" && !bytes.Equal(a.Body, bomb.Bytes()[:recorded]) {
					t.Error("the bytes are not those on the wire")
				}
				if took := time.Since(began); took > 2*time.Second {
					t.Errorf("%s: %v", tc.name, took)
				}
			}
			// HTTP/2 ends the stream, HTTP/1.1 the connection.
			if kept := http2 || !tc.truncated; kept != (from[0] == from[1]) {
				t.Errorf("%s, HTTP/2 %v: connections %v", tc.name, http2, from)
			}
		}
	}
}

func TestPostHeaders(t *testing.T) {
	w := keeping(t)
	w.headerTime = 200 * time.Millisecond
	repeat := func(text string, pause time.Duration) func(net.Conn, *bufio.Reader, int) {
		return func(conn net.Conn, r *bufio.Reader, _ int) {
			request(r)
			_, err := io.WriteString(conn, "HTTP/1.1 ")
			if text[0] == 'X' {
				_, err = io.WriteString(conn, "200 OK\r\n")
			}
			for err == nil {
				_, err = io.WriteString(conn, text)
				time.Sleep(pause)
			}
		}
	}
	for what, tc := range map[string]struct {
		serve func(net.Conn, *bufio.Reader, int)
		want  Class
	}{
		"dripping header":    {repeat("X-A: 1\r\n", 20*time.Millisecond), Timeout},
		"endless header":     {repeat("X-A: "+strings.Repeat("a", 1000)+"\r\n", 0), Connection},
		"endless line":       {repeat("X-"+strings.Repeat("a", 1000), 0), Connection},
		"1xx flood":          {repeat("103 Early Hints\r\nLink: "+strings.Repeat("a", 1000)+"\r\n\r\nHTTP/1.1 ", 0), Connection},
		"dripping 1xx flood": {repeat("100 Continue\r\n\r\nHTTP/1.1 ", 20*time.Millisecond), Timeout},
		"nothing":            {func(_ net.Conn, r *bufio.Reader, _ int) { request(r); request(r) }, Timeout},
		"close":              {func(_ net.Conn, r *bufio.Reader, _ int) { request(r) }, Connection},
		"reset":              {func(conn net.Conn, r *bufio.Reader, _ int) { request(r); reset(conn) }, Connection},
		"not HTTP":           {func(conn net.Conn, r *bufio.Reader, _ int) { request(r); _, _ = io.WriteString(conn, "220 smtp\r\n") }, Connection},
		"reset in the header": {func(conn net.Conn, r *bufio.Reader, _ int) {
			request(r)
			_, _ = io.WriteString(conn, ok[:20])
			reset(conn)
		}, Connection},
		// The connection would be a stream of another protocol, whose reads have no end.
		"switch of protocols": {func(conn net.Conn, r *bufio.Reader, _ int) {
			request(r)
			_, _ = io.WriteString(conn, "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: x\r\n\r\n")
			request(r) // until the client closes
		}, Status},
	} {
		port := w.raw(tc.serve)
		began := time.Now()
		if a := w.rejects(what, port, tc.want); a.Status != 0 != (tc.want == Status) {
			t.Errorf("%s: %+v", what, a)
		}
		if took := time.Since(began); took > 2*time.Second {
			t.Errorf("%s: %v", what, took)
		}
	}
	w.rejects("1xx flood of HTTP/2", w.serve(func(rw http.ResponseWriter, r *http.Request) {
		rw.Header().Set("Link", strings.Repeat("a", 1000))
		for r.Context().Err() == nil {
			rw.WriteHeader(http.StatusEarlyHints)
		}
	}), Connection)
	port := w.raw(func(conn net.Conn, r *bufio.Reader, _ int) {
		request(r)
		_, _ = io.WriteString(conn, "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nab")
		reset(conn)
	})
	if a := w.accepts("reset in the body", port); !a.Truncated {
		t.Errorf("reset in the body: %+v", a)
	}
}

// A fetch of a document must not read from a switched connection either.
func TestFetchOfSwitchedProtocols(t *testing.T) {
	w := newWorld(t)
	port := w.raw(func(conn net.Conn, r *bufio.Reader, _ int) {
		request(r)
		_, _ = io.WriteString(conn, "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: x\r\n\r\n")
		request(r)
	})
	if failed := w.fails("switch of protocols", "https://example.com:"+port, Status); failed.Status != 101 {
		t.Error(failed)
	}
}

func TestPostTLS(t *testing.T) {
	w := keeping(t)
	good := w.serve(func(http.ResponseWriter, *http.Request) {})
	w.accepts("trusted", good)
	if _, err := w.Post(t.Context(), "https://example.net:"+good, nil, nil, recorded); class(err) != TLS {
		t.Errorf("certificate of another: %v", err)
	}
	server := func(config *tls.Config) string {
		s := w.server(outside+":0", func(http.ResponseWriter, *http.Request) { t.Error("a request arrived") })
		s.TLS = config
		s.StartTLS()
		_, port, _ := net.SplitHostPort(s.Listener.Addr().String())
		return port
	}
	w.rejects("self-signed", server(&tls.Config{Certificates: []tls.Certificate{w.certificate(time.Hour, false)}}), TLS)
	w.rejects("expired", server(&tls.Config{Certificates: []tls.Certificate{w.certificate(-time.Hour, true)}}), TLS)
	w.rejects("TLS 1.1", server(&tls.Config{MinVersion: tls.VersionTLS10, MaxVersion: tls.VersionTLS11}), TLS)
	w.rejects("wants a certificate", server(&tls.Config{ClientAuth: tls.RequireAnyClientCert}), TLS)
	plain := w.server(outside+":0", func(http.ResponseWriter, *http.Request) { t.Error("a request arrived") })
	plain.Start()
	_, port, _ := net.SplitHostPort(plain.Listener.Addr().String())
	w.rejects("no TLS", port, TLS)
}

// certificate is a self-signed certificate that ends after some time.
func (w *world) certificate(valid time.Duration, trusted bool) tls.Certificate {
	w.t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		w.t.Fatal(err)
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), DNSNames: []string{"example.com"}, IsCA: true, BasicConstraintsValid: true,
		NotBefore: time.Now().Add(-2 * time.Hour), NotAfter: time.Now().Add(valid),
	}
	raw, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		w.t.Fatal(err)
	}
	if trusted {
		parsed, err := x509.ParseCertificate(raw)
		if err != nil {
			w.t.Fatal(err)
		}
		w.tls.RootCAs.AddCert(parsed)
	}
	return tls.Certificate{Certificate: [][]byte{raw}, PrivateKey: key}
}

// A dial ends in time, although package http does not end it with its request.
func TestSilentHandshake(t *testing.T) {
	w := keeping(t)
	w.headerTime = 100 * time.Millisecond
	listener, err := net.Listen("tcp", outside+":0")
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	closed := make(chan error, 1)
	go func() {
		conn, err := listener.Accept()
		if err == nil {
			_, err = io.Copy(io.Discard, conn) // until the client closes
			conn.Close()
		}
		closed <- err
	}()
	_, port, _ := net.SplitHostPort(listener.Addr().String())
	w.rejects("silent", port, Timeout)
	select {
	case err := <-closed:
		if err != nil {
			t.Error(err)
		}
	case <-time.After(5 * time.Second):
		t.Error("the connection is open")
	}
}

func TestPostRedirectsAndProxies(t *testing.T) {
	w := keeping(t)
	target := "https://" + w.forbidden(inside+":0").String()
	for _, name := range []string{"HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "http_proxy", "https_proxy", "all_proxy"} {
		t.Setenv(name, target)
	}
	for _, status := range []int{301, 302, 303, 307, 308} {
		port := w.serve(func(rw http.ResponseWriter, r *http.Request) { http.Redirect(rw, r, target, status) })
		if a := w.rejects("redirect", port, Status); a.Status != status || a.Header.Get("Location") != target {
			t.Errorf("%d: %+v", status, a)
		}
	}
}

// A kept connection leads to the address that was checked. Another one resolves the name again.
func TestPostRebinding(t *testing.T) {
	w := keeping(t)
	var s *httptest.Server
	var served atomic.Int32
	s = w.server(outside+":0", func(http.ResponseWriter, *http.Request) { served.Add(1) })
	s.StartTLS()
	w.trust(s)
	_, port, _ := net.SplitHostPort(s.Listener.Addr().String())
	w.forbidden(inside + ":" + port)
	for range 3 {
		w.resolve(outside)
		w.accepts("public", port)
		w.resolve(inside, "169.254.169.254", "::1")
		w.accepts("kept", port)
		s.CloseClientConnections()
		w.rejects("rebound", port, BlockedAddress)
	}
	if served.Load() != 6 {
		t.Errorf("%d requests", served.Load())
	}
}

// A kept connection that the peer closes does not cost a delivery.
func TestStaleConnections(t *testing.T) {
	for _, tc := range []struct {
		name     string
		second   func(conn net.Conn) // after the second request on the first connection
		third    string              // the response on the second connection
		requests int32
		want     Class
	}{
		{"closed", func(net.Conn) {}, ok, 3, ""},
		{"reset", reset, ok, 3, ""},
		{"closed again", func(net.Conn) {}, "", 3, Connection}, // and no third time
		{"answered in part", func(conn net.Conn) { _, _ = io.WriteString(conn, "HTTP/1.1 2") }, ok, 2, Connection},
		{"refused", func(net.Conn) {}, "HTTP/1.1 503 Service Unavailable\r\nContent-Length: 0\r\n\r\n", 3, Status},
	} {
		w := keeping(t)
		var requests atomic.Int32
		port := w.raw(func(conn net.Conn, r *bufio.Reader, number int) {
			for range 2 {
				if !request(r) {
					return
				}
				switch n := requests.Add(1); {
				case number == 1 && n == 1:
					_, _ = io.WriteString(conn, ok)
				case number == 1:
					tc.second(conn)
					return
				default:
					_, _ = io.WriteString(conn, tc.third)
					return
				}
			}
		})
		w.accepts(tc.name, port)
		w.rejects(tc.name, port, tc.want)
		if requests.Load() != tc.requests {
			t.Errorf("%s: %d requests, want %d", tc.name, requests.Load(), tc.requests)
		}
	}
}

func TestStaleHTTP2Connections(t *testing.T) {
	type connKey struct{}
	for _, tc := range []struct {
		name     string
		second   func(r *http.Request)
		requests int32
		want     Class
	}{
		{"closed", func(r *http.Request) { _ = r.Context().Value(connKey{}).(net.Conn).Close() }, 3, ""},
		{"stream reset", func(*http.Request) { panic(http.ErrAbortHandler) }, 2, Connection},
	} {
		w := keeping(t)
		var requests atomic.Int32
		s := w.server(outside+":0", func(_ http.ResponseWriter, r *http.Request) {
			if r.ProtoMajor != 2 {
				t.Error(r.Proto)
			}
			if requests.Add(1) == 2 {
				tc.second(r)
			}
		})
		s.EnableHTTP2 = true
		s.Config.ConnContext = func(ctx context.Context, c net.Conn) context.Context {
			return context.WithValue(ctx, connKey{}, c.(*tls.Conn).NetConn())
		}
		s.StartTLS()
		w.trust(s)
		_, port, _ := net.SplitHostPort(s.Listener.Addr().String())
		w.accepts(tc.name, port)
		w.rejects(tc.name, port, tc.want)
		if requests.Load() != tc.requests {
			t.Errorf("%s: %d requests, want %d", tc.name, requests.Load(), tc.requests)
		}
	}
}

// An HTTP/2 connection that the network drops silently is found by pings, in time for another.
func TestLostHTTP2Connection(t *testing.T) {
	w := keeping(t)
	w.pingAfter, w.pingTime = 100*time.Millisecond, 100*time.Millisecond
	w.http = w.client(true)
	var requests atomic.Int32
	s := w.server(outside+":0", func(http.ResponseWriter, *http.Request) { requests.Add(1) })
	lost := &lostListener{Listener: s.Listener}
	s.Listener = lost
	s.EnableHTTP2 = true
	s.StartTLS()
	w.trust(s)
	_, port, _ := net.SplitHostPort(s.Listener.Addr().String())
	w.accepts("first", port)
	lost.first.Store(true)
	w.accepts("lost", port)
	if requests.Load() != 3 {
		t.Errorf("%d requests, want one on a lost connection", requests.Load()-2)
	}
}

// lostListener can lose what is written to its first connection.
type lostListener struct {
	net.Listener
	accepted int
	first    atomic.Bool // is lost
}

func (l *lostListener) Accept() (net.Conn, error) {
	conn, err := l.Listener.Accept()
	if l.accepted++; l.accepted == 1 && err == nil {
		conn = lostConn{conn, &l.first}
	}
	return conn, err
}

type lostConn struct {
	net.Conn
	lost *atomic.Bool
}

func (c lostConn) Write(b []byte) (int, error) {
	if c.lost.Load() {
		return len(b), nil
	}
	return c.Conn.Write(b)
}

// A host keeps at most its share of idle connections, however many requests it holds up, and
// whichever number of requests it takes on an HTTP/2 connection.
func TestKeptConnections(t *testing.T) {
	const requests = 30
	for _, streams := range []int{0, 1} { // of HTTP/2; 0: HTTP/1.1
		w := keeping(t)
		var conns sync.Map
		release, waiting := make(chan struct{}), make(chan string, requests)
		s := w.server(outside+":0", func(_ http.ResponseWriter, r *http.Request) { waiting <- r.Proto; <-release })
		s.EnableHTTP2 = streams > 0
		s.Config.HTTP2 = &http.HTTP2Config{MaxConcurrentStreams: max(streams, 1)}
		s.Config.ConnState = func(c net.Conn, state http.ConnState) {
			if state == http.StateClosed {
				conns.Delete(c)
			} else {
				conns.Store(c, state)
			}
		}
		s.StartTLS()
		w.trust(s)
		_, port, _ := net.SplitHostPort(s.Listener.Addr().String())
		var group sync.WaitGroup
		for range requests {
			group.Go(func() { w.accepts("hanging", port) })
		}
		var protos []string
		for range requests {
			protos = append(protos, <-waiting) // all at once: none waits for another
		}
		slices.Sort(protos)
		if streams > 0 && (protos[0] != "HTTP/1.1" || protos[requests-1] != "HTTP/2.0") {
			t.Errorf("protocols %v", protos)
		}
		close(release)
		group.Wait()
		most := idlePerHost
		if streams > 0 {
			most = 2 * idlePerHost // of each protocol
		}
		open := func() (n int) {
			conns.Range(func(any, any) bool { n++; return true })
			return n
		}
		eventually(t, "open connections", open, most)
		counted := func() int {
			w.http2.mu.Lock()
			defer w.http2.mu.Unlock()
			return w.http2.total
		}
		eventually(t, "HTTP/2 connections", counted, idlePerHost*streams)
		w.Close()
		eventually(t, "connections after Close", open, 0)
		eventually(t, "HTTP/2 connections after Close", counted, 0)
	}
}

// eventually waits for a number to be at most what it should be.
func eventually(t *testing.T, what string, got func() int, most int) {
	t.Helper()
	for deadline := time.Now().Add(5 * time.Second); got() > most; time.Sleep(time.Millisecond) {
		if time.Now().After(deadline) {
			t.Errorf("%d %s, want %d", got(), what, most)
			return
		}
	}
}

func TestPostCanceled(t *testing.T) {
	w := keeping(t)
	port := w.serve(func(rw http.ResponseWriter, r *http.Request) { <-r.Context().Done() })
	ctx, cancel := context.WithCancel(t.Context())
	time.AfterFunc(50*time.Millisecond, cancel)
	if _, err := w.Post(ctx, "https://example.com:"+port, nil, nil, recorded); !errors.Is(err, context.Canceled) || class(err) != "" {
		t.Errorf("canceled: %v", err)
	}
	ctx, cancel = context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	if _, err := w.Post(ctx, "https://example.com:"+port, nil, nil, recorded); class(err) != Timeout {
		t.Errorf("deadline of the caller: %v", err)
	}
}
