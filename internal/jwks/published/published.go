// Package published caches the keys that others publish and change: those of applications
// (jwks_uri) and of trusted issuers.
//
// Keys are fetched when they are needed. A publisher changes its keys by publishing a new one and
// then using it, so an unknown key is a reason to fetch again, but at most once a minute for each
// source, because anyone can send an unknown key. If keys cannot be fetched for a time, the cached
// ones stay valid.
package published

import (
	"context"
	"errors"
	"log/slog"
	"strings"
	"time"

	lru "github.com/hashicorp/golang-lru/v2"
	"golang.org/x/sync/singleflight"

	"stonetown/internal/jwks"
)

const (
	fetchEvery = 15 * time.Minute // the greatest age of fetched keys
	staleAfter = 24 * time.Hour   // ... while they cannot be fetched again
	retryAfter = time.Minute      // the pause after a failed fetch
	cacheSize  = 4096             // sources
	maxWaiting = 64               // requests that wait for keys at a time

	// MaxSet bounds a fetched set, in bytes.
	MaxSet = 128 << 10
)

// Source is the address at which keys are published. Sources of different owners are fetched and
// limited separately.
type Source struct {
	TenantID string
	Owner    string // id of the application or issuer
	URI      string
	// Issuer is the issuer whose metadata has the address, instead of URI; empty: there is none.
	Issuer string
}

// Keys are the published keys of any number of sources. They are safe for concurrent use.
type Keys struct {
	load    func(context.Context, Source) (jwks.Set, error)
	clock   func() time.Time
	log     *slog.Logger
	cache   *lru.Cache[Source, *keySet]
	flight  singleflight.Group
	waiting chan struct{}
}

// keySet are the published keys of one source. It is immutable.
type keySet struct {
	keys      jwks.Set // nil: none were fetched
	fetchedAt time.Time
	retryAt   time.Time // not before
}

// New returns a cache of the keys that load fetches. Failures are logged.
func New(load func(context.Context, Source) (jwks.Set, error), clock func() time.Time, log *slog.Logger) *Keys {
	cache, err := lru.New[Source, *keySet](cacheSize)
	if err != nil {
		panic(err) // the size is positive
	}
	return &Keys{load: load, clock: clock, log: log, cache: cache, waiting: make(chan struct{}, maxWaiting)}
}

// Use calls verify with the keys of a source and, if it returns [jwks.ErrUnknown], again with those
// that are published by now. It returns the last error of verify. Without keys, because they cannot
// be fetched, verify gets none.
func (k *Keys) Use(ctx context.Context, from Source, verify func(jwks.Set) error) error {
	var since time.Time
	for {
		keys, err := k.of(ctx, from, since)
		if err != nil {
			return err
		}
		err = verify(keys)
		if !since.IsZero() || !errors.Is(err, jwks.ErrUnknown) {
			return err
		}
		since = k.clock()
	}
}

// of returns the keys of a source; none if they cannot be fetched. since is the time at which the
// cached keys did not suffice; zero: they were not tried.
func (k *Keys) of(ctx context.Context, from Source, since time.Time) (jwks.Set, error) {
	now := k.clock()
	seen, ok := k.cache.Get(from)
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
	fetched := k.flight.DoChan(strings.Join([]string{from.TenantID, from.Owner, from.URI, from.Issuer}, "\x00"), func() (any, error) {
		return k.fetch(context.WithoutCancel(ctx), from, seen, fresh), nil
	})
	select {
	case r := <-fetched:
		return r.Val.(*keySet).good(now), nil
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// good returns the keys that can still be used.
func (s *keySet) good(now time.Time) jwks.Set {
	if now.Before(s.fetchedAt.Add(staleAfter)) {
		return s.keys
	}
	return nil
}

// fetch replaces the cached keys of a source, unless another request has just done so. early states
// that the cached keys have not expired.
func (k *Keys) fetch(ctx context.Context, from Source, seen *keySet, early bool) *keySet {
	if newer, ok := k.cache.Get(from); ok && newer != seen {
		return newer
	}
	next := *seen
	keys, err := k.load(ctx, from)
	now := k.clock()
	if err == nil {
		next = keySet{keys: keys, fetchedAt: now}
	} else {
		k.log.WarnContext(ctx, "published keys cannot be fetched", "tenant_id", from.TenantID, "owner", from.Owner, "error", err, "cause", errors.Unwrap(err))
	}
	if err != nil || early {
		next.retryAt = now.Add(retryAfter)
	}
	k.cache.Add(from, &next)
	return &next
}
