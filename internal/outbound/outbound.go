// Package outbound fetches what tenants name: key sets, metadata, and whatever else lies
// at a URL that is not the operator's own.
//
// Who may name a URL must not thereby reach what only this machine can reach (server-side
// request forgery). What decides is the address that a connection is about to be made to,
// in the moment before it is made: names may resolve to anything, to something else the
// next time, or to several things. So there is one check, below the resolver and the
// dialer, and none of what names look like that security would rest on. [Client.CheckURL]
// only spares people a URL that could never work.
//
// A fetch is https to a public address, with TLS 1.2 at least and the system's roots. It
// follows no redirects, knows no proxies, sends no cookies, keeps no connections, and is
// over after 15 seconds, whatever the other side does.
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

// guard refuses every address that is not global: the special-purpose registries of IANA,
// and of IPv6 whatever is outside of 2000::/3, so that no form of embedding leads to an
// IPv4 address. Ports are for CheckURL.
var guard = ssrf.New(ssrf.WithAnyPort())

// Config says what a client may do.
type Config struct {
	// AllowInsecure allows http, and addresses of any kind. For development and tests
	// alone: whoever may name a URL then reaches whatever this machine reaches.
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
			DisableCompression:     true, // the limit is on what is sent
			MaxResponseHeaderBytes: maxHeaders,
		}),
	}
	return c
}

// dialTLS is what the transport would do, but tells whose error it is.
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

// Answer is what came back.
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

// Get fetches what is at a URL, which has at most limit bytes. It fails as [Client.Do] does.
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
