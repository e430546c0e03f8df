package outbound

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"code.dny.dev/ssrf"
	"go.uber.org/goleak"
	"golang.org/x/net/dns/dnsmessage"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const (
	inside  = "127.0.0.1" // stands for addresses that must not be reached
	outside = "127.0.0.2" // is taken for one of the public Internet
)

// world is a resolver and a client that uses it.
type world struct {
	*Client
	t         testing.TB
	addresses atomic.Pointer[[]string] // of every name; none: it does not exist
	lookups   atomic.Int32
}

func newWorld(t testing.TB) *world {
	t.Helper()
	return worldOf(t, Config{})
}

func worldOf(t testing.TB, config Config) *world {
	t.Helper()
	w := &world{Client: New(config), t: t}
	t.Cleanup(w.Close)
	w.resolve(outside)
	conn, err := net.ListenPacket("udp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	done := make(chan struct{})
	go func() { defer close(done); w.serveDNS(conn) }()
	t.Cleanup(func() { conn.Close(); <-done })
	w.dialer.Resolver = &net.Resolver{PreferGo: true, Dial: func(ctx context.Context, _, _ string) (net.Conn, error) {
		return new(net.Dialer).DialContext(ctx, "udp", conn.LocalAddr().String())
	}}
	w.dialer.Control = ssrf.New(ssrf.WithAnyPort(), ssrf.WithAllowedV4Prefixes(netip.MustParsePrefix(outside+"/32"))).Safe
	return w
}

// resolve sets the addresses of names.
func (w *world) resolve(addresses ...string) { w.addresses.Store(&addresses) }

func (w *world) serveDNS(conn net.PacketConn) {
	buffer := make([]byte, 4096)
	for {
		n, from, err := conn.ReadFrom(buffer)
		if err != nil {
			return
		}
		var m dnsmessage.Message
		if m.Unpack(buffer[:n]) != nil || len(m.Questions) != 1 {
			continue
		}
		q := m.Questions[0]
		m.Response, m.Additionals = true, nil
		header := dnsmessage.ResourceHeader{Name: q.Name, Class: q.Class, Type: q.Type} // TTL 0
		if q.Type == dnsmessage.TypeA {
			w.lookups.Add(1)
		}
		addresses := *w.addresses.Load()
		if len(addresses) == 0 {
			m.RCode = dnsmessage.RCodeNameError
		}
		for _, text := range addresses {
			ip := netip.MustParseAddr(text)
			switch {
			case ip.Is4() && q.Type == dnsmessage.TypeA:
				m.Answers = append(m.Answers, dnsmessage.Resource{Header: header, Body: &dnsmessage.AResource{A: ip.As4()}})
			case ip.Is6() && q.Type == dnsmessage.TypeAAAA:
				m.Answers = append(m.Answers, dnsmessage.Resource{Header: header, Body: &dnsmessage.AAAAResource{AAAA: ip.As16()}})
			}
		}
		packed, err := m.Pack()
		if err != nil {
			panic(err)
		}
		_, _ = conn.WriteTo(packed, from)
	}
}

// serve is a server with a certificate for example.com that the client trusts.
func (w *world) serve(h http.HandlerFunc) (port string) {
	w.t.Helper()
	s := w.server(outside+":0", h)
	s.EnableHTTP2 = true
	s.StartTLS()
	w.trust(s)
	_, port, _ = net.SplitHostPort(s.Listener.Addr().String())
	return port
}

func (w *world) server(address string, h http.HandlerFunc) *httptest.Server {
	w.t.Helper()
	listener, err := net.Listen("tcp", address)
	if err != nil {
		w.t.Fatal(err)
	}
	s := httptest.NewUnstartedServer(h)
	s.Listener.Close()
	s.Listener, s.Config.ErrorLog = listener, log.New(io.Discard, "", 0)
	w.t.Cleanup(s.Close)
	return s
}

// trust trusts the certificate of a server, which is that of all of them.
func (w *world) trust(s *httptest.Server) {
	if w.tls.RootCAs == nil {
		w.tls.RootCAs = x509.NewCertPool()
		w.tls.RootCAs.AddCert(s.Certificate())
	}
}

// forbidden listens on an address that must not be dialed, and fails the test if it is.
func (w *world) forbidden(address string) net.Addr {
	w.t.Helper()
	listener, err := net.Listen("tcp", address)
	if err != nil {
		w.t.Fatal(err)
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		for {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			w.t.Errorf("a connection to %s", listener.Addr())
			conn.Close()
		}
	}()
	w.t.Cleanup(func() { listener.Close(); <-done })
	return listener.Addr()
}

// fails sends a request that must fail with a class.
func (w *world) fails(what, from string, want Class) *Error {
	w.t.Helper()
	_, err := w.Get(w.t.Context(), from, 1000)
	var failed *Error
	if !errors.As(err, &failed) || failed.Class != want {
		w.t.Errorf("%s: %v (%v), want %s", what, err, errors.Unwrap(err), want)
		return new(Error)
	}
	if strings.Contains(err.Error(), "127.0") || strings.Contains(err.Error(), "example") {
		w.t.Errorf("%s: %v tells too much", what, err)
	}
	return failed
}

func TestFetch(t *testing.T) {
	w := newWorld(t)
	port := w.serve(func(rw http.ResponseWriter, r *http.Request) {
		fmt.Fprintf(rw, "%s %s %s %s %s", r.Proto, r.Method, r.Host, r.URL, r.Header)
	})
	got, err := w.Get(t.Context(), "https://example.com:"+port+"/a?b=c", 1000)
	if want := "HTTP/2.0 GET example.com:" + port + " /a?b=c map[User-Agent:[stonetown]]"; err != nil || string(got) != want {
		t.Fatalf("%s, %v", got, err)
	}
	// Nothing of one fetch is left for the next.
	before := w.lookups.Load()
	if _, err := w.Get(t.Context(), "https://example.com:"+port+"/", 1000); err != nil || w.lookups.Load() == before {
		t.Errorf("%d lookups, %v", w.lookups.Load()-before, err)
	}

	w.resolve()
	w.fails("no such name", "https://example.com:"+port, DNS)
	w.fails("name that resolvers take for an address", "https://2130706433:"+port, Invalid)
	w.resolve(outside)
	closed, err := net.Listen("tcp", outside+":0")
	if err != nil {
		t.Fatal(err)
	}
	closed.Close()
	w.fails("nobody there", "https://"+strings.Replace(closed.Addr().String(), outside, "example.com", 1), Connection)
}

func TestAddresses(t *testing.T) {
	w := newWorld(t)
	_, port, _ := net.SplitHostPort(w.forbidden(inside + ":0").String())
	url := "https://example.com:" + port + "/"
	lenient := w.dialer.Control
	w.dialer.Control = New(Config{}).dialer.Control // as it is
	for _, ip := range notGlobal {
		if strings.Contains(ip, "%") || ip == "::ffff:8.8.8.8" {
			continue // no record can have the one, and the other is dialed as the address it embeds
		}
		w.resolve(ip)
		w.fails(ip, url, BlockedAddress)
	}
	w.fails("literal", "https://"+inside+":"+port+"/", BlockedAddress)
	w.fails("mapped literal", "https://[::ffff:7f00:1]:"+port+"/", BlockedAddress)
	w.dialer.Control = lenient

	// With other addresses beside it, the one that may be reached is, and no other.
	s := w.server(outside+":"+port, func(rw http.ResponseWriter, _ *http.Request) { fmt.Fprint(rw, "outside") })
	s.StartTLS()
	w.trust(s)
	w.resolve(inside, "10.0.0.1", "::1", outside, "169.254.169.254")
	if got, err := w.Get(t.Context(), url, 1000); err != nil || string(got) != "outside" {
		t.Errorf("mixed: %s, %v", got, err)
	}

	// A name that means something else each time is one thing after the other.
	for range 3 {
		w.resolve(outside)
		if _, err := w.Get(t.Context(), url, 1000); err != nil {
			t.Error(err)
		}
		w.resolve(inside)
		w.fails("rebound", url, BlockedAddress)
	}

	// In development everything can be reached.
	w.Client.insecure = true
	w.dialer.Control = New(Config{AllowInsecure: true}).dialer.Control
	plain := httptest.NewServer(http.HandlerFunc(func(rw http.ResponseWriter, _ *http.Request) { fmt.Fprint(rw, "inside") }))
	defer plain.Close()
	if got, err := w.Get(t.Context(), plain.URL, 1000); err != nil || string(got) != "inside" {
		t.Errorf("insecure: %s, %v", got, err)
	}
}

func TestRedirectsAndProxies(t *testing.T) {
	w := newWorld(t)
	proxy := "http://" + w.forbidden(inside+":0").String()
	for _, name := range []string{"HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "http_proxy", "https_proxy", "all_proxy"} {
		t.Setenv(name, proxy)
	}
	for _, status := range []int{301, 302, 303, 307, 308} {
		port := w.serve(func(rw http.ResponseWriter, r *http.Request) { http.Redirect(rw, r, proxy, status) })
		if failed := w.fails("redirect", "https://example.com:"+port+"/", Status); failed.Status != status {
			t.Errorf("%v, want %d", failed, status)
		}
	}
}

func TestAnswers(t *testing.T) {
	w := newWorld(t)
	for body, want := range map[int]Class{0: "", 999: "", 1000: "", 1001: TooLarge} {
		port := w.serve(func(rw http.ResponseWriter, _ *http.Request) { io.WriteString(rw, strings.Repeat("a", body)) })
		req, err := http.NewRequestWithContext(t.Context(), "GET", "https://example.com:"+port, nil)
		if err != nil {
			t.Fatal(err)
		}
		a, err := w.Do(req, 1000)
		if class(err) != want || len(a.Body) != min(body, 1000) || a.Status != 200 {
			t.Errorf("%d bytes: %d bytes of %d, %v", body, len(a.Body), a.Status, err)
		}
	}
	port := w.serve(func(rw http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		rw.WriteHeader(503)
		fmt.Fprintf(rw, "%s %s", r.Method, body)
	})
	req, err := http.NewRequestWithContext(t.Context(), "POST", "https://example.com:"+port, strings.NewReader("x"))
	if err != nil {
		t.Fatal(err)
	}
	if a, err := w.Do(req, 1000); class(err) != Status || a.Status != 503 || string(a.Body) != "POST x" || err.Error() != "status (503)" {
		t.Errorf("%+v, %v", a, err)
	}
	// Compressed bodies stay that, and headers end.
	port = w.serve(func(rw http.ResponseWriter, r *http.Request) {
		rw.Header().Set("Content-Encoding", "gzip")
		io.WriteString(rw, r.Header.Get("Accept-Encoding")+"no gzip")
	})
	if got, err := w.Get(t.Context(), "https://example.com:"+port, 1000); err != nil || string(got) != "no gzip" {
		t.Errorf("%s, %v", got, err)
	}
	port = w.serve(func(rw http.ResponseWriter, _ *http.Request) { rw.Header().Set("X", strings.Repeat("a", 2*maxHeaders)) })
	w.fails("headers", "https://example.com:"+port, Connection)
}

func TestTrust(t *testing.T) {
	w := newWorld(t)
	port := w.serve(func(http.ResponseWriter, *http.Request) {})
	w.fails("certificate of another", "https://example.net:"+port, TLS)
	w.tls.RootCAs = x509.NewCertPool()
	w.fails("unknown root", "https://example.com:"+port, TLS)
	plain := w.server(outside+":0", func(http.ResponseWriter, *http.Request) { t.Error("asked without TLS") })
	plain.Start()
	_, port, _ = net.SplitHostPort(plain.Listener.Addr().String())
	w.fails("no TLS", "https://example.com:"+port, TLS)
	w.fails("http", "http://example.com:"+port, Invalid)
	old := w.server(outside+":0", func(http.ResponseWriter, *http.Request) {})
	old.TLS = &tls.Config{MaxVersion: tls.VersionTLS11, MinVersion: tls.VersionTLS10}
	old.StartTLS()
	w.tls.RootCAs = nil
	w.trust(old)
	_, port, _ = net.SplitHostPort(old.Listener.Addr().String())
	w.fails("TLS 1.1", "https://example.com:"+port, TLS)
}

// A request ends in time, however slow the server is in any phase.
func TestSlow(t *testing.T) {
	w := newWorld(t)
	w.headerTime, w.allTime = 150*time.Millisecond, 400*time.Millisecond
	took := func(began time.Time, most time.Duration) {
		t.Helper()
		if d := time.Since(began); d > most+2*time.Second { // other load of this machine
			t.Errorf("took %v", d)
		}
	}
	release := make(chan struct{})
	defer close(release)
	for what, h := range map[string]http.HandlerFunc{
		"headers": func(http.ResponseWriter, *http.Request) { <-release },
		"body": func(rw http.ResponseWriter, _ *http.Request) {
			_ = http.NewResponseController(rw).Flush()
			<-release
		},
		"byte by byte": func(rw http.ResponseWriter, r *http.Request) {
			for r.Context().Err() == nil {
				io.WriteString(rw, "a")
				_ = http.NewResponseController(rw).Flush()
				time.Sleep(10 * time.Millisecond)
			}
		},
	} {
		port := w.serve(h)
		began := time.Now()
		w.fails(what, "https://example.com:"+port, Timeout)
		took(began, w.allTime)
	}
	silent, err := net.Listen("tcp", outside+":0")
	if err != nil {
		t.Fatal(err)
	}
	defer silent.Close()
	silentURL := "https://" + strings.Replace(silent.Addr().String(), outside, "example.com", 1)
	began := time.Now()
	w.fails("handshake", silentURL, Timeout)
	took(began, w.headerTime)

	// Without end, and fast.
	port := w.serve(func(rw http.ResponseWriter, r *http.Request) {
		chunk := make([]byte, 64<<10)
		for r.Context().Err() == nil {
			if _, err := rw.Write(chunk); err != nil {
				return
			}
		}
	})
	w.fails("endless", "https://example.com:"+port, TooLarge)

	// The caller's deadline applies, too, and is not an error of the server.
	w.headerTime, w.allTime = time.Minute, time.Minute
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	if _, err := w.Get(ctx, silentURL, 1); class(err) != Timeout {
		t.Errorf("deadline of the caller: %v", err)
	}
	ctx, cancel = context.WithCancel(t.Context())
	time.AfterFunc(50*time.Millisecond, cancel)
	if _, err := w.Get(ctx, silentURL, 1); !errors.Is(err, context.Canceled) || class(err) != "" {
		t.Errorf("given up: %v", err)
	}
}
