// Package breached finds out whether a password is among those that were stolen somewhere
// and published, which are what attackers try first.
//
// It asks a range service in the form of Pwned Passwords
// (https://haveibeenpwned.com/API/v3#SearchingPwnedPasswordsByRange), whose operator learns
// next to nothing: the question is the first 5 of the 40 hexadecimal digits of the SHA-1 of
// the password, the answer the rest of all that begin so, some hundreds, and how often each
// was seen:
//
//	GET /range/5BAA6          with Add-Padding: true
//
//	1E4C9B93F3F0682250B6CF8331B7EE68FD8:10434004
//	0018A45C4D1DEF81644B54AB7F969B88D65:0
//
// Padding, which keeps the length of the answer from telling the question, has been seen 0
// times. No password depends on the service: whoever asks has to go on when it fails, and
// it fails soon.
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
	// deadline is how long an answer may take, waiting for one's turn included.
	deadline = 2 * time.Second
	// restFor is how long a service that failed is not asked again, so that not everybody
	// waits for the deadline of one that is out of reach.
	restFor = 5 * time.Second
	// atOnce is how many questions are under way at the same time.
	atOnce = 16
	// maxAnswer bounds an answer, in bytes; real ones have some 60,000.
	maxAnswer = 256 << 10
	// An answer is kept for a while, of which the cached ones take at most 18 MB.
	keepFor = 10 * time.Minute
	cached  = 128
	// prefixLen is how many digits are told.
	prefixLen = 5
)

// Digest is the SHA-1 of a password. It is as good as the password to whoever can try many,
// and as secret.
type Digest [sha1.Size]byte

// DigestOf digests a password in NFC, the form in which most are typed and all are hashed.
func DigestOf(password string) Digest { return sha1.Sum(norm.NFC.Bytes([]byte(password))) }

// String keeps digests out of logs and error messages.
func (Digest) String() string { return "redacted" }

// prefix is what the service is told.
func (d Digest) prefix() string { return strings.ToUpper(hex.EncodeToString(d[:])[:prefixLen]) }

// Client asks the service. It is safe for concurrent use; nil knows no breached password.
type Client struct {
	base  *url.URL
	http  *http.Client
	turns chan struct{}
	cache *lru.Cache[string, answer] // by prefix
	clock func() time.Time

	restUntil atomic.Int64 // microseconds since 1970
	questions atomic.Int64
	failures  atomic.Int64
}

// answer is what is kept of one.
type answer struct {
	digests []Digest
	until   time.Time
}

// Config says which service to ask.
type Config struct {
	// URL is the service's, to whose path the digits are appended. It must be https, but
	// may be http on this machine's loopback interface.
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
	cache, err := lru.New[string, answer](cached)
	if err != nil {
		return nil, err
	}
	return &Client{
		base: base, turns: make(chan struct{}, atOnce), cache: cache, clock: c.Clock,
		http: &http.Client{
			CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
			Transport: tracing.Transport(&http.Transport{
				Proxy:                  http.ProxyFromEnvironment,
				TLSClientConfig:        &tls.Config{MinVersion: tls.VersionTLS12},
				ForceAttemptHTTP2:      true,
				MaxIdleConnsPerHost:    atOnce,
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

// Close closes the connections that are not in use.
func (c *Client) Close() {
	if c != nil {
		c.http.CloseIdleConnections()
	}
}

// Contains reports whether a password is breached. An error says that this is not known;
// it tells nothing of the digest.
func (c *Client) Contains(ctx context.Context, d Digest) (bool, error) {
	if c == nil {
		return false, nil
	}
	now := c.clock()
	if kept, ok := c.cache.Get(d.prefix()); ok && now.Before(kept.until) {
		return slices.Contains(kept.digests, d), nil
	}
	c.questions.Add(1)
	digests, err := c.ask(ctx, d.prefix(), now)
	if err != nil {
		if ctx.Err() != nil {
			return false, ctx.Err() // whoever asked has gone
		}
		c.failures.Add(1)
		return false, fmt.Errorf("look up breached password: %w", err)
	}
	c.cache.Add(d.prefix(), answer{digests, now.Add(keepFor)})
	return slices.Contains(digests, d), nil
}

// errResting is the error of questions that were not asked.
var errResting = errors.New("the service failed recently")

func (c *Client) ask(ctx context.Context, prefix string, now time.Time) ([]Digest, error) {
	if now.UnixMicro() < c.restUntil.Load() {
		return nil, errResting
	}
	limited, cancel := context.WithTimeout(ctx, deadline)
	defer cancel()
	select {
	case c.turns <- struct{}{}:
		defer func() { <-c.turns }()
	case <-limited.Done():
		return nil, limited.Err()
	}
	digests, err := c.fetch(limited, prefix)
	if err != nil && ctx.Err() == nil {
		c.restUntil.Store(c.clock().Add(restFor).UnixMicro())
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
			err = outer.Err // the URL has a part of the digest
		}
		return nil, err
	}
	defer res.Body.Close()
	if res.StatusCode != http.StatusOK {
		return nil, fmt.Errorf("the service answered %d", res.StatusCode)
	}
	text, err := io.ReadAll(io.LimitReader(res.Body, maxAnswer+1))
	if err != nil {
		return nil, err
	}
	return parse(prefix, text)
}

// errAnswer does not quote the answer that it is about.
var errAnswer = errors.New("the response is not a list of hashes")

// parse reads an answer. Anything else, such as the page of a proxy, is an error, rather than
// an answer without the password.
func parse(prefix string, text []byte) (digests []Digest, err error) {
	if len(text) > maxAnswer {
		return nil, errAnswer
	}
	for line := range bytes.Lines(text) {
		suffix, count, ok := strings.Cut(strings.TrimRight(string(line), "\r\n"), ":")
		var d Digest
		if !ok || len(prefix)+len(suffix) != hex.EncodedLen(len(d)) {
			return nil, errAnswer
		}
		n, err := strconv.ParseUint(count, 10, 64)
		if err != nil {
			return nil, errAnswer
		}
		if _, err := hex.Decode(d[:], []byte(prefix+suffix)); err != nil {
			return nil, errAnswer
		}
		if n > 0 {
			digests = append(digests, d)
		}
	}
	return digests, nil
}

// Stats count what a client has done.
type Stats struct {
	Questions int64 // that the cache did not answer
	Failures  int64 // of them
}

// Stats returns the counters so far.
func (c *Client) Stats() Stats {
	if c == nil {
		return Stats{}
	}
	return Stats{c.questions.Load(), c.failures.Load()}
}
