package relyingparty

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	lru "github.com/hashicorp/golang-lru/v2"
	"golang.org/x/sync/singleflight"
)

const (
	fetchEvery  = 15 * time.Minute // the greatest age of a document
	staleAfter  = 24 * time.Hour   // ... while it cannot be fetched again
	retryAfter  = 10 * time.Second // the pause after a failed fetch
	earlyAfter  = time.Minute      // the pause between fetches of documents that have not expired
	cacheSize   = 4096             // documents
	maxFetching = 64               // documents that are fetched at a time
)

// documents caches documents that providers publish, by their location.
type documents[L comparable, T any] struct {
	load     func(context.Context, L) (T, error)
	clock    func() time.Time
	log      *slog.Logger
	cache    *lru.Cache[L, *document[T]]
	flight   singleflight.Group
	fetching chan struct{}
}

// errBusy is the error of a document that was not fetched, because too many others are.
var errBusy = failed(Unavailable, Discovery, "too many documents of providers are being fetched")

// document is a cached document. It is immutable.
type document[T any] struct {
	value     T
	fetchedAt time.Time // zero: never
	retryAt   time.Time // not before
	err       error     // of the last fetch
}

func newDocuments[L comparable, T any](load func(context.Context, L) (T, error), clock func() time.Time, log *slog.Logger) *documents[L, T] {
	cache, err := lru.New[L, *document[T]](cacheSize)
	if err != nil {
		panic(err) // the size is positive
	}
	return &documents[L, T]{load: load, clock: clock, log: log, cache: cache, fetching: make(chan struct{}, maxFetching)}
}

// get returns a document. since is the time at which the cached one did not suffice; zero: it was
// not tried.
func (d *documents[L, T]) get(ctx context.Context, from L, since time.Time) (T, error) {
	now := d.clock()
	seen, ok := d.cache.Get(from)
	if !ok {
		seen = new(document[T])
	}
	fresh := now.Before(seen.fetchedAt.Add(fetchEvery))
	if now.Before(seen.retryAt) || fresh && !seen.fetchedAt.Before(since) {
		return seen.good(now)
	}
	// Other requests may wait for the same document, so the fetch does not end with this one.
	fetched := d.flight.DoChan(fmt.Sprint(from), func() (any, error) {
		select {
		case d.fetching <- struct{}{}:
			defer func() { <-d.fetching }()
			return d.fetch(context.WithoutCancel(ctx), from, seen, fresh), nil
		default: // slow providers must not occupy the whole server
			return seen, nil
		}
	})
	select {
	case r := <-fetched:
		return r.Val.(*document[T]).good(now)
	case <-ctx.Done():
		var none T
		return none, ctx.Err()
	}
}

// good returns the document if it can still be used, or the error of the last fetch.
func (d *document[T]) good(now time.Time) (T, error) {
	if !d.fetchedAt.IsZero() && now.Before(d.fetchedAt.Add(staleAfter)) {
		return d.value, nil
	}
	var none T
	if d.err == nil { // it was not tried
		return none, errBusy
	}
	return none, d.err
}

// fetch replaces a document, unless another request has just done so. early states that the cached
// one has not expired.
func (d *documents[L, T]) fetch(ctx context.Context, from L, seen *document[T], early bool) *document[T] {
	if newer, ok := d.cache.Get(from); ok && newer != seen {
		return newer
	}
	next := *seen
	value, err := d.load(ctx, from)
	now := d.clock()
	switch {
	case err != nil:
		var detailed *Error
		detail := ""
		if errors.As(err, &detailed) {
			detail = detailed.Detail
		}
		d.log.WarnContext(ctx, "a document of an identity provider cannot be fetched", "document", fmt.Sprint(from), "error", detail, "cause", errors.Unwrap(err))
		next.err, next.retryAt = err, now.Add(retryAfter)
	case early:
		next = document[T]{value: value, fetchedAt: now, retryAt: now.Add(earlyAfter)}
	default:
		next = document[T]{value: value, fetchedAt: now}
	}
	d.cache.Add(from, &next)
	return &next
}

// refresh fetches a document now, whether or not it is cached.
func (d *documents[L, T]) refresh(ctx context.Context, from L) (T, error) {
	value, err := d.load(ctx, from)
	if err == nil {
		d.cache.Add(from, &document[T]{value: value, fetchedAt: d.clock()})
	}
	return value, err
}
