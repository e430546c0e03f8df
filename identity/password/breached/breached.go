// Package breached looks passwords up in a list of passwords from published data breaches,
// which attackers try first.
//
// The list is a range service in the form of Pwned Passwords
// (https://haveibeenpwned.com/API/v3#SearchingPwnedPasswordsByRange), which is queried by
// k-anonymity: the request contains the first 5 of the 40 hexadecimal digits of the SHA-1 of
// the password, and the response the other digits of all hashes with that prefix, several
// hundred, each with the number of breaches it was part of:
//
//	GET /range/5BAA6          with Add-Padding: true
//
//	1E4C9B93F3F0682250B6CF8331B7EE68FD8:10434004
//	0018A45C4D1DEF81644B54AB7F969B88D65:0
//
// Lines with the number 0 are padding, so that the length of an encrypted response does not
// reveal the prefix. A request fails after at most two seconds, and callers must accept a
// password if the service fails: sign-in does not depend on a third party.
package breached

import (
	"bytes"
	"context"
	"crypto/sha1"
	"crypto/tls"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/netip"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	lru "github.com/hashicorp/golang-lru/v2"
	"golang.org/x/text/unicode/norm"

	"stonetown/internal/tracing"
)

const (
	// timeout bounds a lookup, including the wait for a free slot.
	timeout = 2 * time.Second
	// pause is how long no request is sent after one failed, so that lookups do not all wait
	// for the timeout of an unavailable service.
	pause = 5 * time.Second
	// maxRequests is the maximum number of requests in progress.
	maxRequests = 16
	// maxResponse bounds a response, in bytes; usual ones have about 60,000.
	maxResponse = 256 << 10
	// Responses are cached for cacheTime, in at most 18 MB.
	cacheTime = 10 * time.Minute
	cacheSize = 128
	// prefixLen is the number of digits in a request.
	prefixLen = 5
)

// Digest is the SHA-1 of a password. It is as secret as the password, which can be found from
// it by trying candidates.
type Digest [sha1.Size]byte

// DigestOf returns the digest of a password in NFC, the form that is hashed.
func DigestOf(password string) Digest { return sha1.Sum(norm.NFC.Bytes([]byte(password))) }

// String keeps digests out of logs and error messages.
func (Digest) String() string { return "redacted" }

// prefix is the part of the digest that is sent.
func (d Digest) prefix() string { return strings.ToUpper(hex.EncodeToString(d[:])[:prefixLen]) }

// List is a list of breached passwords: a [*Client], or [None].
type List interface {
	// Enabled reports whether there is a list.
	Enabled() bool
	// Contains reports whether a password is on the list. An error means that this is
	// unknown.
	Contains(ctx context.Context, d Digest) (bool, error)
	// Stats returns the counters so far.
	Stats() Stats
	// Close closes idle connections.
	Close()
}

// None is an empty list, for deployments without a service.
type None struct{}

// Enabled reports false.
func (None) Enabled() bool { return false }

// Contains reports false.
func (None) Contains(context.Context, Digest) (bool, error) { return false, nil }

// Stats returns zero counters.
func (None) Stats() Stats { return Stats{} }

// Close does nothing.
func (None) Close() {}

// Client queries a range service. It is safe for concurrent use.
type Client struct {
	base  *url.URL
	http  *http.Client
	slots chan struct{}
	cache *lru.Cache[string, response] // by prefix
	clock func() time.Time

	pausedUntil atomic.Int64 // microseconds since 1970
	lookups     atomic.Int64
	failures    atomic.Int64
}

// response is a cached response.
type response struct {
	digests []Digest
	until   time.Time
}

// Config names the service.
type Config struct {
	// URL is the URL of the service without the prefix. It must be https, or http to a
	// loopback address.
	URL string
	// Clock tells the time. Default: time.Now.
	Clock func() time.Time
}

// New returns a client of the service.
func New(c Config) (*Client, error) {
	if c.Clock == nil {
		c.Clock = time.Now
	}
	base, err := url.Parse(c.URL)
	if err != nil || base.Host == "" || base.User != nil || base.Scheme != "https" && (base.Scheme != "http" || !loopback(base.Hostname())) {
		return nil, errors.New("not an https URL without credentials")
	}
	cache, err := lru.New[string, response](cacheSize)
	if err != nil {
		return nil, err
	}
	return &Client{
		base: base, slots: make(chan struct{}, maxRequests), cache: cache, clock: c.Clock,
		http: &http.Client{
			CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
			Transport: tracing.Transport(&http.Transport{
				Proxy:                  http.ProxyFromEnvironment,
				TLSClientConfig:        &tls.Config{MinVersion: tls.VersionTLS12},
				ForceAttemptHTTP2:      true,
				MaxIdleConnsPerHost:    maxRequests,
				IdleConnTimeout:        time.Minute,
				MaxResponseHeaderBytes: 64 << 10,
			}),
		},
	}, nil
}

func loopback(host string) bool {
	addr, err := netip.ParseAddr(host)
	return host == "localhost" || err == nil && addr.IsLoopback()
}

// Enabled reports true.
func (c *Client) Enabled() bool { return true }

// Close closes the idle connections.
func (c *Client) Close() { c.http.CloseIdleConnections() }

// Contains reports whether a password is on the list. An error means that this is unknown; its
// text contains no part of the digest.
func (c *Client) Contains(ctx context.Context, d Digest) (bool, error) {
	now := c.clock()
	if kept, ok := c.cache.Get(d.prefix()); ok && now.Before(kept.until) {
		return slices.Contains(kept.digests, d), nil
	}
	c.lookups.Add(1)
	digests, err := c.lookUp(ctx, d.prefix(), now)
	if err != nil {
		if ctx.Err() != nil {
			return false, ctx.Err() // the caller gave up
		}
		c.failures.Add(1)
		return false, fmt.Errorf("look up breached password: %w", err)
	}
	c.cache.Add(d.prefix(), response{digests, now.Add(cacheTime)})
	return slices.Contains(digests, d), nil
}

// errPaused is the error of lookups during the pause after a failure.
var errPaused = errors.New("the service failed recently")

func (c *Client) lookUp(ctx context.Context, prefix string, now time.Time) ([]Digest, error) {
	if now.UnixMicro() < c.pausedUntil.Load() {
		return nil, errPaused
	}
	limited, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	select {
	case c.slots <- struct{}{}:
		defer func() { <-c.slots }()
	case <-limited.Done():
		return nil, limited.Err()
	}
	digests, err := c.fetch(limited, prefix)
	if err != nil && ctx.Err() == nil {
		c.pausedUntil.Store(c.clock().Add(pause).UnixMicro())
	}
	return digests, err
}

func (c *Client) fetch(ctx context.Context, prefix string) ([]Digest, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, c.base.JoinPath(prefix).String(), nil)
	if err != nil {
		return nil, err
	}
	req.Header.Set("Add-Padding", "true")
	req.Header.Set("User-Agent", "stonetown")
	res, err := c.http.Do(req)
	if err != nil {
		if outer := new(url.Error); errors.As(err, &outer) {
			err = outer.Err // without the URL, which contains a part of the digest
		}
		return nil, err
	}
	defer res.Body.Close()
	if res.StatusCode != http.StatusOK {
		return nil, fmt.Errorf("the service answered %d", res.StatusCode)
	}
	text, err := io.ReadAll(io.LimitReader(res.Body, maxResponse+1))
	if err != nil {
		return nil, err
	}
	return parse(prefix, text)
}

// errResponse does not quote the response.
var errResponse = errors.New("the response is not a list of hashes")

// parse parses a response. Anything else, such as the page of a proxy, is an error: it does not
// mean that the password is not on the list.
func parse(prefix string, text []byte) (digests []Digest, err error) {
	if len(text) > maxResponse {
		return nil, errResponse
	}
	for line := range bytes.Lines(text) {
		suffix, count, ok := strings.Cut(strings.TrimRight(string(line), "\r\n"), ":")
		var d Digest
		if !ok || len(prefix)+len(suffix) != hex.EncodedLen(len(d)) {
			return nil, errResponse
		}
		n, err := strconv.ParseUint(count, 10, 64)
		if err != nil {
			return nil, errResponse
		}
		if _, err := hex.Decode(d[:], []byte(prefix+suffix)); err != nil {
			return nil, errResponse
		}
		if n > 0 {
			digests = append(digests, d)
		}
	}
	return digests, nil
}

// Stats are the counters of a client.
type Stats struct {
	Lookups  int64 // not answered from the cache
	Failures int64 // failed lookups
}

// Stats returns the counters so far.
func (c *Client) Stats() Stats {
	return Stats{c.lookups.Load(), c.failures.Load()}
}
