package delivery

import (
	"context"
	"errors"
	"log/slog"
	"sync"
	"time"

	lru "github.com/hashicorp/golang-lru/v2"

	"stonetown/internal/eventlog"
	"stonetown/internal/fair"
	"stonetown/internal/groupcommit"
	"stonetown/internal/id"
	"stonetown/internal/jobs"
	"stonetown/internal/seal"
	"stonetown/internal/sqldb"
	"stonetown/webhooks/subscription"
)

// Tenant is what deliveries say of a tenant.
type Tenant struct{ ID, Slug string }

// Tenants finds tenants.
type Tenants interface {
	// WebhookTenant returns a tenant in any state. Its fields are immutable.
	WebhookTenant(ctx context.Context, tenantID string) (Tenant, error)
	// InactiveTenants lists the tenants that are suspended or decommissioned.
	InactiveTenants(ctx context.Context) ([]string, error)
}

// Config configures a queue. The fields without a default are required.
type Config struct {
	DB      *sqldb.DB
	Seal    *seal.Key // opens the secrets of subscriptions
	Log     *eventlog.Log
	Checker Checker
	Tenants Tenants
	Jobs    *jobs.Queue // deletes the rows of deleted subscriptions
	Sender  Sender
	Logger  *slog.Logger
	// Disable disables a subscription whose receiver is gone.
	Disable func(ctx context.Context, tenantID, subscriptionID string) error

	// Clock returns the current time. Default: time.Now.
	Clock func() time.Time
	// Retention is how long finished deliveries are stored. Default: 7 days.
	Retention time.Duration
	// Poll is how often the database is read for events and due deliveries that this process
	// does not know of. Default: 1 s.
	Poll time.Duration
	// Places is how many attempts run at the same time. Default: 512.
	Places int
}

// process names this process.
var process = id.New("process")

// Queue delivers events to subscriptions. It is safe for concurrent use.
type Queue struct {
	db        *sqldb.DB
	seal      *seal.Key
	events    *eventlog.Log
	reader    *eventlog.Reader
	checker   Checker
	tenants   Tenants
	slugs     *lru.Cache[string, Tenant]
	jobs      *jobs.Queue
	sender    Sender
	log       *slog.Logger
	disable   func(ctx context.Context, tenantID, subscriptionID string) error
	clock     func() time.Time
	retention time.Duration
	poll      time.Duration

	holder  string // names this queue in the leases of lanes; begins with process
	ahead   *ahead
	lanes   *lanes
	results *groupcommit.Committer[func(*sqldb.Batch)] // of attempts
	places  *fair.Gate                                 // of attempts to healthy receivers
	failing *fair.Gate                                 // of attempts to those that have failed repeatedly
	reads   *fair.Gate                                 // of due deliveries
	stats   stats
}

const (
	// Concurrency is how many deliveries of a subscription are sent at the same time.
	Concurrency = 8

	defaultPoll      = time.Second
	defaultPlaces    = 512
	defaultRetention = 7 * 24 * time.Hour
	// readerStarted is the topic of the notices that the reader was started for a tenant.
	readerStarted = "webhook reader started"
	// slugCache bounds the cached tenants.
	slugCache = 4096
	// readsAtOnce is how many lanes read due deliveries at the same time. More would take the
	// connections of the database from requests, each with a cache of its own on SQLite.
	readsAtOnce = 2
)

// New returns the queue in c.DB. It registers its jobs.
func New(c Config) (*Queue, error) {
	if c.DB == nil || c.Seal == nil || c.Log == nil || c.Checker == nil || c.Tenants == nil || c.Jobs == nil || c.Sender == nil || c.Logger == nil || c.Disable == nil {
		return nil, errors.New("webhooks: Config.DB, Seal, Log, Checker, Tenants, Jobs, Sender, Logger and Disable are required")
	}
	if c.Clock == nil {
		c.Clock = time.Now
	}
	if c.Retention == 0 {
		c.Retention = defaultRetention
	}
	if c.Poll == 0 {
		c.Poll = defaultPoll
	}
	if c.Places == 0 {
		c.Places = defaultPlaces
	}
	slugs, err := lru.New[string, Tenant](slugCache)
	if err != nil {
		return nil, err
	}
	places := int64(c.Places)
	q := &Queue{
		db: c.DB, seal: c.Seal, events: c.Log, reader: c.Log.Reader(readerName), checker: c.Checker, tenants: c.Tenants, slugs: slugs,
		jobs: c.Jobs, sender: c.Sender, log: c.Logger, disable: c.Disable, clock: c.Clock, retention: c.Retention, poll: c.Poll,
		holder: id.New(process), ahead: newAhead(c.Clock),
		places:  fair.NewGate("webhook attempts", fair.Limits{Service: places, Tenant: max(Concurrency, places/2)}, fair.Queue{}),
		failing: fair.NewGate("webhook attempts to failing receivers", fair.Limits{Service: places / 2, Tenant: max(1, places/8)}, fair.Queue{}),
		reads:   fair.NewGate("reads of webhook deliveries", fair.Limits{Service: readsAtOnce, Tenant: readsAtOnce}, fair.Queue{}),
	}
	q.lanes, q.results = newLanes(q), groupcommit.New(q.db, recordTime, queueResults)
	q.stats.attempts = map[AttemptClass]int64{}
	c.Jobs.Register(jobs.Kind{Name: purgeKind, Handle: q.purge, Attempts: jobs.Unlimited})
	c.Log.OnAppend(q.ahead.appended)
	c.DB.OnNotice(readerStarted, q.ahead.started)
	c.DB.OnNotice(subscription.Changed, q.lanes.changed)
	return q, nil
}

// Open implements [subscription.Deliveries].
func (q *Queue) Open(b *sqldb.Batch, tenantID, subscriptionID string) {
	b.Queue(openLane, []any{tenantID, subscriptionID, never}, nil)
	q.reader.Start(b, tenantID)
	b.Notify(readerStarted, tenantID)
}

// Drain implements [subscription.Deliveries].
func (q *Queue) Drain(b *sqldb.Batch, tenantID, subscriptionID string) {
	b.Queue(drainLane, []any{tenantID, subscriptionID}, nil)
}

// Close implements [subscription.Deliveries].
func (q *Queue) Close(b *sqldb.Batch, tenantID, subscriptionID string, last bool) {
	if last {
		q.reader.Stop(b, tenantID)
	}
	b.Queue(deleteLane, []any{tenantID, subscriptionID}, nil)
	q.jobs.Enqueue(b, tenantID, purgeKind, purgeJob{subscriptionID})
}

// Run delivers until ctx ends. Attempts that run then may take [grace]; those that take longer
// are repeated by another process. Any number of processes can run the queue of one database.
func (q *Queue) Run(ctx context.Context) {
	q.lanes.freeAbandoned(ctx)
	var running sync.WaitGroup
	running.Go(func() { q.fanOut(ctx) })
	running.Go(func() { q.collect(ctx) })
	q.lanes.run(ctx)
	running.Wait()
}

// tenant returns what deliveries say of a tenant.
func (q *Queue) tenant(ctx context.Context, tenantID string) (Tenant, error) {
	if t, ok := q.slugs.Get(tenantID); ok {
		return t, nil
	}
	t, err := q.tenants.WebhookTenant(ctx, tenantID)
	if err == nil {
		q.slugs.Add(tenantID, t)
	}
	return t, err
}
