// Package outbound sends HTTP requests to URLs that tenants set, such as key sets and
// metadata.
//
// A tenant must not be able to reach addresses that only this machine can reach (server-side
// request forgery). A name may resolve to any address, to a different one each time, or to
// several. The one security check is therefore between the resolver and the connection: an
// address that is not global is not dialed. [Client.CheckURL] only reports URLs that can
// never work when they are set.
//
// A request is https to a public address, with TLS 1.2 or newer and the system's roots. It
// follows no redirects, uses no proxies, sends no cookies, keeps no connections, and ends
// after 15 seconds.
package outbound

import (
	"context"
	"crypto/tls"
	"errors"
	"io"
	"net"
	"net/http"
	"time"

	"code.dny.dev/ssrf"

	"stonetown/internal/tracing"
)

const (
	headerTime = 10 * time.Second // from the lookup of the name to the end of the answer's headers
	wholeTime  = 15 * time.Second // to the end of its body
	maxHeaders = 64 << 10         // bytes
	userAgent  = "stonetown"
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
}

// Client fetches. It is safe for concurrent use.
type Client struct {
	insecure            bool
	dialer              *net.Dialer
	tls                 *tls.Config
	http                *http.Client
	headerTime, allTime time.Duration
}

// New returns a client.
func New(config Config) *Client {
	c := &Client{
		insecure: config.AllowInsecure,
		dialer:   &net.Dialer{Control: guard.Safe, Timeout: headerTime},
		tls:      &tls.Config{MinVersion: tls.VersionTLS12, NextProtos: []string{"h2", "http/1.1"}},

		headerTime: headerTime, allTime: wholeTime,
	}
	if c.insecure {
		c.dialer.Control = nil
	}
	c.http = &http.Client{
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
		Transport: tracing.Transport(&http.Transport{ // whose Proxy is nil
			DialContext: func(ctx context.Context, network, address string) (net.Conn, error) {
				return c.dialer.DialContext(ctx, network, address)
			},
			DialTLSContext:         c.dialTLS,
			ForceAttemptHTTP2:      true,
			DisableKeepAlives:      true,
			DisableCompression:     true, // the limit applies to the bytes on the wire
			MaxResponseHeaderBytes: maxHeaders,
		}),
	}
	return c
}

// dialTLS dials as the transport would, and classifies the error.
func (c *Client) dialTLS(ctx context.Context, network, address string) (net.Conn, error) {
	host, _, err := net.SplitHostPort(address)
	if err != nil {
		return nil, err
	}
	plain, err := c.dialer.DialContext(ctx, network, address)
	if err != nil {
		return nil, err
	}
	config := c.tls.Clone()
	config.ServerName = host
	conn := tls.Client(plain, config)
	if err := conn.HandshakeContext(ctx); err != nil {
		plain.Close()
		if ctx.Err() == nil {
			err = &Error{Class: TLS, err: err}
		}
		return nil, err
	}
	return conn, nil
}

// Answer is the response.
type Answer struct {
	Status int
	Header http.Header
	Body   []byte
}

// Do sends a request and reads the answer, of which at most limit bytes of body. Errors are
// [*Error]; those of the classes [Status] and [TooLarge] come with the answer as far as it
// was read. Only if the request's context is canceled, the error is that of the context.
func (c *Client) Do(req *http.Request, limit int64) (Answer, error) {
	if err := c.CheckURL(req.URL.String()); err != nil {
		return Answer{}, err
	}
	ctx, cancel := context.WithTimeout(req.Context(), c.allTime)
	defer cancel()
	a, err := c.do(req.WithContext(ctx), limit, time.AfterFunc(c.headerTime, cancel))
	switch {
	case err == nil:
		return a, nil
	case errors.Is(req.Context().Err(), context.Canceled):
		return Answer{}, req.Context().Err()
	case errors.Is(ctx.Err(), context.Canceled): // by the timer
		err = &Error{Class: Timeout, err: err}
	}
	return a, classify(err)
}

// do stops the timer when it has the headers.
func (c *Client) do(req *http.Request, limit int64, waiting *time.Timer) (Answer, error) {
	defer waiting.Stop()
	req.Header = req.Header.Clone()
	req.Header.Set("User-Agent", userAgent)
	res, err := c.http.Do(req)
	if err != nil {
		return Answer{}, err
	}
	defer res.Body.Close()
	waiting.Stop()
	body, err := io.ReadAll(io.LimitReader(res.Body, limit+1))
	if err != nil {
		return Answer{}, err
	}
	a := Answer{res.StatusCode, res.Header, body[:min(int64(len(body)), limit)]}
	switch {
	case res.StatusCode < 200 || res.StatusCode > 299:
		return a, &Error{Class: Status, Status: res.StatusCode}
	case int64(len(body)) > limit:
		return a, &Error{Class: TooLarge, Status: res.StatusCode}
	}
	return a, nil
}

// Get fetches the body at a URL, of at most limit bytes. It fails as [Client.Do] does.
func (c *Client) Get(ctx context.Context, from string, limit int64) ([]byte, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, from, nil)
	if err != nil {
		return nil, &Error{Class: Invalid, err: err}
	}
	a, err := c.Do(req, limit)
	if err != nil {
		return nil, err
	}
	return a.Body, nil
}
