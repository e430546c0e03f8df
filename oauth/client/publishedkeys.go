package client

import (
	"context"
	"errors"
	"log/slog"
	"strings"
	"time"

	lru "github.com/hashicorp/golang-lru/v2"
	"golang.org/x/sync/singleflight"

	"stonetown/internal/outbound"
	"stonetown/oauth/assertion"
)

const (
	fetchEvery   = 15 * time.Minute // how old what was fetched may get
	staleAfter   = 24 * time.Hour   // ... while it cannot be fetched again
	retryAfter   = time.Minute      // how often fetching is tried again
	keyCacheSize = 4096             // applications
	maxWaiting   = 64               // requests that wait for keys at the same time
	maxKeySet    = 128 << 10        // bytes of a set that is fetched
)

// clientKeys knows the keys that applications sign with: those that they are set up with,
// and those that they publish (jwks_uri).
//
// What is published is fetched when it is needed and kept for a while. An application
// changes its keys by publishing the new one and then using it, so a key that is not known
// is a reason to look again, but for one application only once in a while, as anybody can
// come with such a key. What is out of reach for a time is no reason to turn an application
// away; it stays what it was.
type publishedKeys struct {
	client  *outbound.Client
	clock   func() time.Time
	log     *slog.Logger
	cache   *lru.Cache[publication, *keySet]
	flight  singleflight.Group
	waiting chan struct{}
}

// publication is where an application publishes its keys.
type publication struct{ tenantID, clientID, uri string }

// keySet are those of one application. They are not changed after they were made.
type keySet struct {
	keys      assertion.Keys // nil: none were ever fetched
	fetchedAt time.Time
	retryAt   time.Time // not before
}

func newPublishedKeys(client *outbound.Client, clock func() time.Time, log *slog.Logger) *publishedKeys {
	cache, err := lru.New[publication, *keySet](keyCacheSize)
	if err != nil {
		panic(err) // only of a size that is not positive
	}
	return &publishedKeys{client: client, clock: clock, log: log, cache: cache, waiting: make(chan struct{}, maxWaiting)}
}

// of returns the keys of an application, which are none if they cannot be had. since is
// when the last that were fetched turned out not to be enough; zero: they did not.
func (k *publishedKeys) of(ctx context.Context, app Application, since time.Time) (assertion.Keys, error) {
	if app.JWKSURI == "" {
		return assertion.ParseKeys(app.JWKS)
	}
	p := publication{app.TenantID, app.ClientID, app.JWKSURI}
	now := k.clock()
	seen, ok := k.cache.Get(p)
	if !ok {
		seen = new(keySet)
	}
	fresh := now.Before(seen.fetchedAt.Add(fetchEvery))
	if now.Before(seen.retryAt) || fresh && !seen.fetchedAt.Before(since) {
		return seen.good(now), nil
	}
	select {
	case k.waiting <- struct{}{}:
		defer func() { <-k.waiting }()
	default: // whoever publishes slowly must not occupy the whole server
		return seen.good(now), nil
	}
	// Others may wait for the same keys, so fetching does not end with this request.
	fetched := k.flight.DoChan(strings.Join([]string{p.tenantID, p.clientID, p.uri}, "\x00"), func() (any, error) {
		return k.fetch(context.WithoutCancel(ctx), p, seen, fresh), nil
	})
	select {
	case r := <-fetched:
		return r.Val.(*keySet).good(now), nil
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// good are the keys that can still be used.
func (s *keySet) good(now time.Time) assertion.Keys {
	if now.Before(s.fetchedAt.Add(staleAfter)) {
		return s.keys
	}
	return nil
}

// fetch replaces what was seen of an application's keys, unless somebody else just did.
// early says that it was not time yet.
func (k *publishedKeys) fetch(ctx context.Context, p publication, seen *keySet, early bool) *keySet {
	if newer, ok := k.cache.Get(p); ok && newer != seen {
		return newer
	}
	next := *seen
	text, err := k.client.Get(ctx, p.uri, maxKeySet)
	var keys assertion.Keys
	if err == nil {
		keys, err = assertion.UsableKeys(text)
	}
	now := k.clock()
	if err == nil {
		next = keySet{keys: keys, fetchedAt: now}
	} else {
		k.log.WarnContext(ctx, "keys of an application cannot be fetched", "tenant_id", p.tenantID, "client_id", p.clientID, "error", err, "cause", errors.Unwrap(err))
	}
	if err != nil || early {
		next.retryAt = now.Add(retryAfter)
	}
	k.cache.Add(p, &next)
	return &next
}
