package threat

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/http"
	"time"

	"stonetown/internal/eventlog"
	"stonetown/internal/jobs"
	"stonetown/internal/outbound"
	"stonetown/internal/sqldb"
)

const (
	// retryEvery is the longest pause after a failed fetch.
	retryEvery = time.Hour
	dueEvery   = 30 * time.Second // between steps of the loop

	refreshJob = "refresh threat feed"
)

type refreshPayload struct {
	FeedID string `json:"feed_id"`
}

func (s *Feeds) registerJob() {
	s.jobs.Register(jobs.Kind{Name: refreshJob, Concurrency: 2, Attempts: 5, Handle: func(ctx context.Context, job jobs.Job) error {
		var p refreshPayload
		if err := job.Read(&p); err != nil {
			return errors.Join(err, jobs.ErrDrop)
		}
		return s.refresh(ctx, job.TenantID, p.FeedID)
	}})
}

// Run fetches lists that are due until ctx ends. Every process may run it.
func (s *Feeds) Run(ctx context.Context) {
	jobs.Loop{Name: "refresh threat feeds", Every: dueEvery, Logger: s.log}.Run(ctx, s.RefreshDue)
}

// RefreshDue queues a job for each feed whose list is due, some at a time. It reports whether there
// may be more.
func (s *Feeds) RefreshDue(ctx context.Context) (more bool, err error) {
	return s.jobs.EnqueueDue(ctx, s.now(), jobs.Due{
		Table: "threat_feeds", Kind: refreshJob, Payload: func(id string) any { return refreshPayload{id} }, Again: retryEvery,
	})
}

// checkAt returns when the list of a feed is due, in microseconds since 1970. The time varies, so that
// feeds that were created together are not due together for ever.
func (s *Feeds) checkAt(f Feed) int64 {
	if f.Source != FromURL || !f.Enabled {
		return jobs.Never
	}
	pause := time.Duration(f.RefreshS) * time.Second
	if f.Failure != "" {
		pause = min(pause, retryEvery)
	}
	return s.now().Add(pause - rand.N(pause/8)).UnixMicro()
}

// fetchNow queues that the list of a feed is fetched, if it has a URL and is enabled.
func (s *Feeds) fetchNow(b *sqldb.Batch, f Feed) {
	if f.Source == FromURL && f.Enabled {
		s.jobs.Enqueue(b, f.TenantID, refreshJob, refreshPayload{f.ID})
	}
}

// Refresh begins to fetch the list of a feed. It fails with [ErrNotFound], [ErrSource], [ErrDisabled]
// or [ErrTooSoon].
func (s *Feeds) Refresh(ctx context.Context, tenantID, feedID string) (f Feed, err error) {
	err = s.db.Tx(ctx, func(tx *sqldb.Tx) error {
		if f, err = lockFeed(ctx, tx, tenantID, feedID); err != nil {
			return err
		}
		switch {
		case f.Source != FromURL:
			return ErrSource
		case !f.Enabled:
			return ErrDisabled
		case s.now().Sub(f.requestedAt) < RefreshPause:
			return ErrTooSoon
		}
		f.requestedAt = s.now()
		var b sqldb.Batch
		updateFeed(&b, f, s.checkAt(f))
		s.fetchNow(&b, f)
		return tx.Send(ctx, &b)
	})
	if err != nil {
		return Feed{}, fmt.Errorf("refresh threat feed: %w", err)
	}
	s.jobs.Wake()
	return f, nil
}

// fetched is the result of a fetch.
type fetched struct {
	list               *List // nil: the list is as it was, or failure says why there is none
	bad                int
	firstBad           []int
	etag, lastModified string
	failure            string
}

// refresh fetches the list of a feed and stores it. A list that cannot be fetched is stored as a
// failure, and is no error.
func (s *Feeds) refresh(ctx context.Context, tenantID, feedID string) error {
	seen, err := s.Get(ctx, tenantID, feedID)
	if errors.Is(err, ErrNotFound) {
		return nil // deleted meanwhile
	}
	if err != nil || seen.Source != FromURL || !seen.Enabled {
		return err
	}
	got, err := s.fetch(ctx, seen)
	if err != nil {
		return err
	}
	ctx = eventlog.AsProduct(ctx)
	err = s.db.Tx(ctx, func(tx *sqldb.Tx) error {
		before, err := lockFeed(ctx, tx, tenantID, feedID)
		if errors.Is(err, ErrNotFound) || err == nil && before.URL != seen.URL {
			return nil // deleted meanwhile, or fetched from another URL by a job of its own
		}
		if err != nil {
			return err
		}
		after := before
		after.CheckedAt = s.now()
		var b sqldb.Batch
		var events []eventlog.Event
		switch {
		case got.failure != "":
			if after.Failure = got.failure; after.FailingAt.IsZero() {
				after.FailingAt = after.CheckedAt
				events = append(events, failing(ctx, after))
			}
		case got.list == nil:
			after.ListedAt, after.Failure, after.FailingAt = after.CheckedAt, "", time.Time{}
		default:
			s.replace(&b, &after, got.list, got.bad, got.firstBad)
			after.etag, after.lastModified = got.etag, got.lastModified
		}
		updateFeed(&b, after, s.checkAt(after))
		if after.version != before.version {
			s.changed(&b, tenantID)
			events = append(events, updated(ctx, before, after))
		}
		eventlog.Append(&b, tenantID, events...)
		return tx.Send(ctx, &b)
	})
	if err != nil {
		return fmt.Errorf("refresh threat feed: %w", err)
	}
	return nil
}

// fetch requests the list of a feed, if it is another one than before (RFC 9110 §13.1). The error is
// that of ctx.
func (s *Feeds) fetch(ctx context.Context, f Feed) (got fetched, err error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, f.URL, nil)
	if err != nil {
		return fetched{failure: failures[outbound.Invalid]}, nil
	}
	req.Header.Set("Accept", "text/plain, */*;q=0.5")
	if f.version > 0 && f.etag != "" {
		req.Header.Set("If-None-Match", f.etag)
	}
	if f.version > 0 && f.lastModified != "" {
		req.Header.Set("If-Modified-Since", f.lastModified)
	}
	a, err := s.client.Do(req, MaxBytes)
	if failed, ok := errors.AsType[*outbound.Error](err); ok {
		if failed.Status == http.StatusNotModified && f.version > 0 {
			return fetched{}, nil
		}
		s.log.WarnContext(ctx, "list of a threat feed", "tenant", f.TenantID, "feed", f.ID, "error", failed)
		text := failures[failed.Class]
		if failed.Class == outbound.Status {
			text = fmt.Sprintf(text, failed.Status)
		}
		return fetched{failure: text}, nil
	}
	if err != nil {
		return fetched{}, err
	}
	got.list, got.bad, got.firstBad, err = Parse(f.Kind, a.Body)
	if err != nil {
		return fetched{failure: err.Error()}, nil
	}
	got.etag, got.lastModified = validator(a.Header, "ETag"), validator(a.Header, "Last-Modified")
	return got, nil
}

// maxValidator bounds a validator, in bytes.
const maxValidator = 256

func validator(h http.Header, name string) string {
	if value := h.Get(name); len(value) <= maxValidator && sqldb.IsText(value) {
		return value
	}
	return ""
}

// failures are the sentences of failed fetches.
var failures = map[outbound.Class]string{
	outbound.Invalid:        "the URL cannot be fetched",
	outbound.BlockedAddress: "the host of the URL is not on the public Internet",
	outbound.DNS:            "the name of the host was not found",
	outbound.Connection:     "the host could not be connected to, or the connection broke",
	outbound.TLS:            "the host has no valid certificate",
	outbound.Timeout:        "the host took too long to answer",
	outbound.Status:         "the host answered with the status %d",
	outbound.TooLarge:       fmt.Sprintf("the list has more than %d bytes", MaxBytes),
}
