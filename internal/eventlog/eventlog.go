// Package eventlog stores the events of tenants for audits and other readers.
//
// A change and its events commit in one transaction ([Append]). Each tenant has its own
// append-only log. Its events are numbered without gaps in the order of their commits,
// because every writer takes its numbers from one row, which it locks until it has
// committed. A reader that has read up to a position has therefore missed no earlier
// event, and stores only that number ([Reader]). Notices of new events save readers in the
// process of the writer the wait for their next poll ([Log.OnAppend]).
//
// Writes of relations are too many for rows of their own. The event of such a write is text in the
// row of its commit ([Event.Text]), which the tuple store writes anyway, and gets its number later:
// from the next event that is not of a commit, or from the first reader. order.go describes this.
// The package reads the tables tenant_heads and tenant_commits of package sqlstore for it.
//
// An event has the revision of the tenant's relations at which it happened ([Event.Revision]), so
// that a reader can ask about permissions as of the event.
//
// Events are kept for [Config.Retention]. Older ones are deleted from the start of the
// log; a read from before that floor is an error, not an answer with a gap. The store of the
// commits deletes their events up to [Log.Floor].
package eventlog

import (
	"context"
	"embed"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"stonetown/internal/sqldb"
)

//go:embed migrations
var migrations embed.FS

// Migrations create the package's tables.
func Migrations() sqldb.Migrations { return sqldb.EmbeddedMigrations("eventlog", migrations) }

// Retention is the default time for which events are kept.
const Retention = 90 * 24 * time.Hour

// Config configures a log. DB is required.
type Config struct {
	DB *sqldb.DB
	// Retention is the time for which events are kept. Default: [Retention].
	Retention time.Duration
	// Clock returns the current time. Default: time.Now.
	Clock func() time.Time
	// Logger receives errors of background work. Default: discarded.
	Logger *slog.Logger
}

// Log reads the logs of all tenants. It is safe for concurrent use.
type Log struct {
	db        *sqldb.DB
	retention time.Duration
	clock     func() time.Time
	log       *slog.Logger
}

// Open returns the log that is stored in c.DB.
func Open(c Config) (*Log, error) {
	if c.DB == nil || c.Retention < 0 {
		return nil, errors.New("eventlog: Config.DB is required and Retention cannot be negative")
	}
	if c.Retention == 0 {
		c.Retention = Retention
	}
	if c.Clock == nil {
		c.Clock = time.Now
	}
	if c.Logger == nil {
		c.Logger = slog.New(slog.DiscardHandler)
	}
	return &Log{c.DB, c.Retention, c.Clock, c.Logger}, nil
}

// Retention returns how long events are kept.
func (l *Log) Retention() time.Duration { return l.retention }

// Append adds events to a batch. Their statements come last in it and cannot violate a constraint;
// events of several calls share them. They lock the row that orders the tenant's log, so the batch
// belongs at the end of a transaction.
func Append(b *sqldb.Batch, tenantID string, events ...Event) {
	AppendAt(b, tenantID, 0, events...)
}

// AppendAt is Append for events that commit with a change of relations. revision is that of the
// change, and becomes their [Event.Revision].
func AppendAt(b *sqldb.Batch, tenantID string, revision int64, events ...Event) {
	if len(events) == 0 {
		return
	}
	b.Notify(appended, tenantID)
	c := b.Collect(appendKey{tenantID}, func() sqldb.Collector { return &appending{tenantID: tenantID} }).(*appending)
	c.add(revision, events)
}

// appended is the topic of the notices of new events; their key is the tenant.
const appended = "events"

// OnAppend calls fn with the tenant of each transaction of this process that has appended
// events, after its commit. fn must be quick and must not block, and may be called concurrently.
// Events of other processes do not lead to calls. See [sqldb.DB.OnNotice].
func (l *Log) OnAppend(fn func(tenantID string)) { l.db.OnNotice(appended, fn) }

// ExpiredError is returned for events that are no longer kept.
type ExpiredError struct {
	Floor int64 // the position after which events are kept
}

func (e *ExpiredError) Error() string {
	return fmt.Sprintf("events up to position %d are no longer kept", e.Floor)
}

// MaxPage is how many events are read at once at most.
const MaxPage = 1000

// Read returns up to limit events after a position, at most [MaxPage], in order;
// none if there are none yet. It fails with [*ExpiredError] if there were others
// that are no longer kept.
func (l *Log) Read(ctx context.Context, tenantID string, after int64, limit int) ([]Event, error) {
	page, err := l.after(ctx, tenantID, after, min(limit, MaxPage))
	if err != nil {
		return nil, fmt.Errorf("read events: %w", err)
	}
	events := make([]Event, len(page))
	for i, e := range page {
		events[i] = e.Event
	}
	return events, nil
}

// Pick returns the events at given positions, at most [MaxPage], in order. Events that are not of
// commits take one round trip.
// Positions without an event, or whose event is no longer kept, are left out.
func (l *Log) Pick(ctx context.Context, tenantID string, positions []int64) ([]Event, error) {
	if len(positions) > MaxPage {
		return nil, fmt.Errorf("pick events: %d positions, more than %d", len(positions), MaxPage)
	}
	if len(positions) == 0 {
		return nil, nil
	}
	events, err := l.at(ctx, tenantID, positions)
	if err != nil {
		return nil, fmt.Errorf("pick events: %w", err)
	}
	return events, nil
}

// All calls fn with every event that is kept, in order, up to those that were
// there when it began.
func (l *Log) All(ctx context.Context, tenantID string, fn func(Event) error) error {
	h, err := l.settled(ctx, tenantID)
	if err != nil {
		return fmt.Errorf("read events: %w", err)
	}
	newest, after := h.position, h.floor.position
	for after < newest {
		events, err := l.Read(ctx, tenantID, after, MaxPage)
		var expired *ExpiredError
		if errors.As(err, &expired) {
			after = expired.Floor // the events before it were deleted meanwhile
			continue
		}
		if err != nil {
			return err
		}
		for _, e := range events {
			if e.Position > newest {
				return nil
			}
			if err := fn(e); err != nil {
				return err
			}
			after = e.Position
		}
		if len(events) == 0 {
			return fmt.Errorf("read events: position %d is missing", after+1)
		}
	}
	return nil
}
