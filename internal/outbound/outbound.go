// Package outbound sends HTTP requests to URLs that tenants set, such as key sets, metadata
// and the receivers of webhooks.
//
// A tenant must not be able to reach addresses that only this machine can reach (server-side
// request forgery). A name may resolve to any address, to a different one each time, or to
// several. The one security check is therefore between the resolver and the connection: an
// address that is not global is not dialed. [Client.CheckURL] only reports URLs that can
// never work when they are set.
//
// A request is https to a public address, with TLS 1.2 or newer and the system's roots. It
// follows no redirects, uses no proxies and sends no cookies.
//
// There are two kinds of request. [Client.Do] and [Client.Get] fetch a document: a body that
// is too long, too slow or broken is an error. [Client.Post] delivers a message: the status
// is the answer, and the body is read for the record, as far as it arrives.
//
// A client keeps connections only if it is configured to. The address of a kept connection
// was checked when it was dialed; another connection resolves the name again.
package outbound

import (
	"crypto/tls"
	"net"
	"net/http"
	"time"

	"code.dny.dev/ssrf"

	"stonetown/internal/tracing"
)

const (
	headerTime = 10 * time.Second // from the lookup of the name to the end of the answer's headers
	wholeTime  = 15 * time.Second // to the end of a document
	bodyTime   = 5 * time.Second  // from the headers to the end of the body that a delivery reads
	maxHeaders = 64 << 10         // bytes

	idleTime    = 30 * time.Second // of a kept connection
	idlePerHost = 8
	idleTotal   = 256

	// A kept HTTP/2 connection serves many requests, so one that the network has silently
	// dropped would fail all of them until the operating system notices. It is closed when
	// nothing arrives for pingAfter and a ping is not answered within pingTime; together they
	// leave a delivery time for another connection.
	pingAfter = 5 * time.Second
	pingTime  = 2 * time.Second
)

// guard refuses every address that is not global: those of IANA's special-purpose registries,
// and all of IPv6 outside of 2000::/3, so that no embedded form leads to an IPv4 address.
// CheckURL checks the port.
var guard = ssrf.New(ssrf.WithAnyPort())

// Config configures a client.
type Config struct {
	// AllowInsecure allows http and all addresses, so tenants reach every address that this
	// machine reaches. It is for development and tests.
	AllowInsecure bool

	// KeepAlive keeps connections for further requests: up to 8 idle ones to a host and 256
	// in total, for 30 seconds each. Without it every request has a connection of its own.
	// The number of connections in use is not limited, so that the requests to a host do not
	// wait for each other.
	KeepAlive bool

	// UserAgent is the User-Agent of all requests. The default is stonetown.
	UserAgent string
}

// Client sends requests. It is safe for concurrent use.
type Client struct {
	insecure  bool
	userAgent string
	dialer    *net.Dialer
	tls       *tls.Config
	http2     counter      // open HTTP/2 connections that may be kept
	http      *http.Client // keeps connections if the client does
	fresh     *http.Client // has a connection of its own for every request

	headerTime, allTime, bodyTime time.Duration
	pingAfter, pingTime           time.Duration
}

// New returns a client.
func New(config Config) *Client {
	c := &Client{
		insecure:  config.AllowInsecure,
		userAgent: config.UserAgent,
		dialer:    &net.Dialer{Control: guard.Safe, Timeout: headerTime},
		tls:       &tls.Config{MinVersion: tls.VersionTLS12},

		headerTime: headerTime, allTime: wholeTime, bodyTime: bodyTime,
		pingAfter: pingAfter, pingTime: pingTime,
	}
	if c.insecure {
		c.dialer.Control = nil
	}
	if c.userAgent == "" {
		c.userAgent = "stonetown"
	}
	c.fresh = c.client(false)
	c.http = c.fresh
	if config.KeepAlive {
		c.http = c.client(true)
	}
	return c
}

func (c *Client) client(keep bool) *http.Client {
	transport := &http.Transport{ // whose Proxy is nil
		DialContext:            c.dial,
		DialTLSContext:         c.dialTLS,
		ForceAttemptHTTP2:      true,
		DisableKeepAlives:      !keep,
		DisableCompression:     true, // the limit applies to the bytes on the wire
		MaxResponseHeaderBytes: maxHeaders,
	}
	if keep {
		transport.DialTLSContext = c.dialKept
		transport.IdleConnTimeout = idleTime
		transport.MaxIdleConnsPerHost = idlePerHost
		transport.MaxIdleConns = idleTotal
		transport.HTTP2 = &http.HTTP2Config{SendPingTimeout: c.pingAfter, PingTimeout: c.pingTime}
	}
	return &http.Client{
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
		Transport:     tracing.Transport(transport),
	}
}

// Close closes the connections that are kept. Requests in progress go on.
func (c *Client) Close() {
	c.http.CloseIdleConnections()
	c.fresh.CloseIdleConnections() // and dials whose requests have ended
}
