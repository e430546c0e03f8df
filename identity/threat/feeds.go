package threat

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"log/slog"
	"time"

	"stonetown/internal/eventlog"
	"stonetown/internal/id"
	"stonetown/internal/jobs"
	"stonetown/internal/outbound"
	"stonetown/internal/sqldb"
)

// Config contains the dependencies of the feeds. All fields but Clock are required.
type Config struct {
	DB   *sqldb.DB
	Jobs *jobs.Queue
	// Outbound fetches lists.
	Outbound *outbound.Client
	// Changed queues that the revision of a tenant increases, for [Feeds.Match]. The transaction holds
	// the row of the revision from then on.
	Changed func(b *sqldb.Batch, tenantID string)
	// Clock returns the current time. Default: time.Now.
	Clock  func() time.Time
	Logger *slog.Logger
}

// Feeds stores the feeds of tenants, fetches their lists, and matches attempts. It is safe for
// concurrent use.
type Feeds struct {
	db      *sqldb.DB
	jobs    *jobs.Queue
	client  *outbound.Client
	changed func(b *sqldb.Batch, tenantID string)
	clock   func() time.Time
	log     *slog.Logger
	memory  *memory
}

// New returns the feeds, and registers their job.
func New(c Config) *Feeds {
	if c.Clock == nil {
		c.Clock = time.Now
	}
	s := &Feeds{db: c.DB, jobs: c.Jobs, client: c.Outbound, changed: c.Changed, clock: c.Clock, log: c.Logger, memory: newMemory(MaxMemory)}
	s.registerJob()
	return s
}

func (s *Feeds) now() time.Time { return s.clock().UTC().Truncate(time.Microsecond) }

// List lists the feeds of a tenant, newest first.
func (s *Feeds) List(ctx context.Context, tenantID string) ([]Feed, error) {
	found, err := selectFeeds(ctx, s.db, tenantID)
	if err != nil {
		return nil, fmt.Errorf("list threat feeds: %w", err)
	}
	return found, nil
}

// Get reads a feed. It fails with [ErrNotFound].
func (s *Feeds) Get(ctx context.Context, tenantID, feedID string) (Feed, error) {
	return selectFeed(ctx, s.db, tenantID, feedID)
}

// Create creates a feed, whose list is fetched soon if it has a URL. It fails with [ErrTooMany] or
// [*URLError].
func (s *Feeds) Create(ctx context.Context, tenantID string, kind Kind, source Source, set Settings) (Feed, error) {
	if err := s.checkURL(set.URL); err != nil {
		return Feed{}, err
	}
	now := s.now()
	f := Feed{ID: id.NewOrdered(id.ThreatFeed, now), TenantID: tenantID, Kind: kind, Source: source, Settings: set, CreatedAt: now, UpdatedAt: now}
	err := s.db.Tx(ctx, func(tx *sqldb.Tx) error {
		var first sqldb.Batch
		s.changed(&first, tenantID) // two feeds at once are counted one after the other
		var have int
		first.Queue(`SELECT COUNT(*) FROM threat_feeds WHERE tenant_id = $1`, []any{tenantID}, func(rows *sqldb.Rows) error {
			for rows.Next() {
				if err := rows.Scan(&have); err != nil {
					return err
				}
			}
			return nil
		})
		if err := tx.Send(ctx, &first); err != nil {
			return err
		}
		if have >= MaxFeeds {
			return ErrTooMany
		}
		var b sqldb.Batch
		insertFeed(&b, f, s.checkAt(f))
		s.fetchNow(&b, f)
		eventlog.Append(&b, tenantID, created(ctx, f))
		return tx.Send(ctx, &b)
	})
	if err != nil {
		return Feed{}, fmt.Errorf("create threat feed: %w", err)
	}
	s.jobs.Wake()
	return f, nil
}

func (s *Feeds) checkURL(url string) error {
	if url == "" {
		return nil
	}
	if err := s.client.CheckURL(url); err != nil {
		return &URLError{err}
	}
	return nil
}

// Update changes a feed. change is applied to the present settings and may be called more than once.
// If it changes nothing, nothing is written. Update fails with [ErrNotFound] or [*URLError].
func (s *Feeds) Update(ctx context.Context, tenantID, feedID string, change func(Feed, *Settings) error) (Feed, error) {
	return s.change(ctx, tenantID, feedID, func(b *sqldb.Batch, f *Feed) error {
		before := f.Settings
		if err := change(*f, &f.Settings); err != nil {
			return err
		}
		if f.URL != before.URL {
			if err := s.checkURL(f.URL); err != nil {
				return err
			}
			f.etag, f.lastModified = "", "" // those of another document
		}
		if f.URL != before.URL || f.Enabled && !before.Enabled {
			s.fetchNow(b, *f)
		}
		return nil
	})
}

// Upload replaces the list of a feed with uploaded entries. It fails with [ErrNotFound], [ErrSource]
// or [*ListError].
func (s *Feeds) Upload(ctx context.Context, tenantID, feedID string, text []byte) (Feed, error) {
	f, err := s.Get(ctx, tenantID, feedID)
	switch {
	case err != nil:
		return Feed{}, err
	case f.Source != FromUpload:
		return Feed{}, ErrSource
	}
	l, bad, firstBad, err := Parse(f.Kind, text)
	if err != nil {
		return Feed{}, &ListError{err}
	}
	return s.change(ctx, tenantID, feedID, func(b *sqldb.Batch, f *Feed) error {
		s.replace(b, f, l, bad, firstBad)
		return nil
	})
}

// Delete deletes a feed and its list. It fails with [ErrNotFound].
func (s *Feeds) Delete(ctx context.Context, tenantID, feedID string) error {
	err := s.db.Tx(ctx, func(tx *sqldb.Tx) error {
		f, err := lockFeed(ctx, tx, tenantID, feedID)
		if err != nil {
			return err
		}
		var b sqldb.Batch
		b.Queue(`DELETE FROM threat_feeds WHERE tenant_id = $1 AND id = $2`, []any{tenantID, feedID}, nil)
		deleteLists(&b, f, 0)
		s.changed(&b, tenantID)
		eventlog.Append(&b, tenantID, deleted(ctx, f))
		return tx.Send(ctx, &b)
	})
	if err != nil {
		return fmt.Errorf("delete threat feed: %w", err)
	}
	return nil
}

// change changes a feed in a transaction, with the event of the change.
func (s *Feeds) change(ctx context.Context, tenantID, feedID string, change func(*sqldb.Batch, *Feed) error) (after Feed, err error) {
	err = s.db.Tx(ctx, func(tx *sqldb.Tx) error {
		before, err := lockFeed(ctx, tx, tenantID, feedID)
		if err != nil {
			return err
		}
		after = before
		var b sqldb.Batch
		if err := change(&b, &after); err != nil {
			return err
		}
		if after.Settings == before.Settings && after.version == before.version && after.ListedAt.Equal(before.ListedAt) {
			return nil
		}
		after.UpdatedAt = s.now()
		updateFeed(&b, after, s.checkAt(after))
		if after.Settings != before.Settings || after.version != before.version {
			s.changed(&b, tenantID)
			eventlog.Append(&b, tenantID, updated(ctx, before, after))
		}
		return tx.Send(ctx, &b)
	})
	if err != nil {
		return Feed{}, fmt.Errorf("change threat feed: %w", err)
	}
	s.jobs.Wake()
	return after, nil
}

// replace queues that a list becomes that of a feed, unless it is already.
func (s *Feeds) replace(b *sqldb.Batch, f *Feed, l *List, bad int, firstBad []int) {
	f.Entries, f.BadLines, f.FirstBad, f.ListedAt = l.Len(), bad, firstBad, s.now()
	f.Failure, f.FailingAt = "", time.Time{}
	sum := sha256.Sum256([]byte(l.text))
	digest := hex.EncodeToString(sum[:])
	if f.version > 0 && f.digest == digest {
		return
	}
	chunks := l.pack()
	f.version, f.chunks, f.digest = f.version+1, len(chunks), digest
	insertList(b, *f, chunks)
	deleteLists(b, *f, f.version)
}

// Lookup returns the entry of a feed that matches an IP address, or a domain or e-mail address; empty:
// none does. It fails with [ErrNotFound] or [ErrValue].
func (s *Feeds) Lookup(ctx context.Context, tenantID, feedID, value string) (entry string, err error) {
	f, err := s.Get(ctx, tenantID, feedID)
	if err != nil {
		return "", err
	}
	if f.Kind == MailDomain {
		if domain := DomainOf(value); domain != "" {
			value = domain
		}
	}
	if _, ok := canonical(f.Kind, value); !ok {
		return "", ErrValue
	}
	if f.version == 0 {
		return "", nil
	}
	l, err := s.listOf(ctx, f)
	if err != nil {
		return "", err
	}
	entry, _ = l.Match(value)
	return entry, nil
}
