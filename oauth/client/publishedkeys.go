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
	fetchEvery   = 15 * time.Minute // the greatest age of fetched keys
	staleAfter   = 24 * time.Hour   // ... while they cannot be fetched again
	retryAfter   = time.Minute      // the pause after a failed fetch
	keyCacheSize = 4096             // applications
	maxWaiting   = 64               // requests that wait for keys at a time
	maxKeySet    = 128 << 10        // bytes of a fetched set
)

// publishedKeys returns the keys with which applications sign: those of the application
// itself, and those that it publishes (jwks_uri).
//
// Published keys are fetched when they are needed, and cached. An application changes its keys
// by publishing a new one and then using it, so an unknown key is a reason to fetch again, but
// at most once a minute for each application, because any client can send an unknown key. If
// keys cannot be fetched for a time, the cached ones stay valid.
type publishedKeys struct {
	client  *outbound.Client
	clock   func() time.Time
	log     *slog.Logger
	cache   *lru.Cache[publication, *keySet]
	flight  singleflight.Group
	waiting chan struct{}
}

// publication is the address at which an application publishes its keys.
type publication struct{ tenantID, clientID, uri string }

// keySet are the published keys of one application. It is immutable.
type keySet struct {
	keys      assertion.Keys // nil: none were fetched
	fetchedAt time.Time
	retryAt   time.Time // not before
}

func newPublishedKeys(client *outbound.Client, clock func() time.Time, log *slog.Logger) *publishedKeys {
	cache, err := lru.New[publication, *keySet](keyCacheSize)
	if err != nil {
		panic(err) // the size is positive
	}
	return &publishedKeys{client: client, clock: clock, log: log, cache: cache, waiting: make(chan struct{}, maxWaiting)}
}

// of returns the keys of an application; none if they cannot be fetched. since is the time at
// which the cached keys did not suffice; zero: they were not tried.
func (k *publishedKeys) of(ctx context.Context, app Application, since time.Time) (assertion.Keys, error) {
	switch {
	case app.JWKSURI == "" && app.JWKS == nil:
		return nil, nil
	case app.JWKSURI == "":
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
	default: // a slow publisher must not occupy the whole server
		return seen.good(now), nil
	}
	// Other requests may wait for the same keys, so the fetch does not end with this one.
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

// good returns the keys that can still be used.
func (s *keySet) good(now time.Time) assertion.Keys {
	if now.Before(s.fetchedAt.Add(staleAfter)) {
		return s.keys
	}
	return nil
}

// fetch replaces the cached keys of an application, unless another request has just done so.
// early states that the cached keys have not expired.
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
