// Package webhooks delivers the events of tenants to the URLs that subscribed to them.
//
//	subscription  the subscriptions: what is delivered, where, and who manages them
//	signature     how a delivery is signed, and verified by its receiver
//	delivery      the way of an event from the log to the receiver, attempts and dead letters
//
// A [Service] composes these. Its operations take the [Caller] and are the only way to
// subscriptions and deliveries, so that one rule decides about all of them (access.go).
package webhooks

import (
	"context"
	"errors"
	"log/slog"
	"time"

	"stonetown/engine"
	"stonetown/internal/eventlog"
	"stonetown/internal/jobs"
	"stonetown/internal/outbound"
	"stonetown/internal/seal"
	"stonetown/internal/sqldb"
	"stonetown/webhooks/delivery"
	"stonetown/webhooks/subscription"
)

// Relations is the part of [engine.Engine] that the module uses.
type Relations interface {
	subscription.Relations
	delivery.Checker
	Check(ctx context.Context, tenantID string, req engine.CheckRequest) (*engine.CheckResponse, error)
	ListResources(ctx context.Context, tenantID string, req engine.ListResourcesRequest) (*engine.ResourceList, error)
}

// Config configures a [Service]. The fields without a default are required.
type Config struct {
	DB        *sqldb.DB
	Seal      *seal.Key // encrypts signing secrets
	Log       *eventlog.Log
	Relations Relations
	Tenants   delivery.Tenants
	Jobs      *jobs.Queue
	Outbound  *outbound.Client // which keeps connections
	Logger    *slog.Logger

	// Clock returns the current time. Default: time.Now.
	Clock func() time.Time
	// Retention is how long finished deliveries are stored. Default: 7 days.
	Retention time.Duration
}

// Service has the webhooks of all tenants. It is safe for concurrent use.
type Service struct {
	relations     Relations
	subscriptions *subscription.Registry
	queue         *delivery.Queue
}

// New returns the webhooks in c.DB. It registers their jobs.
func New(c Config) (*Service, error) {
	if c.Relations == nil || c.Outbound == nil {
		return nil, errors.New("webhooks: Config.Relations and Outbound are required")
	}
	if c.Clock == nil {
		c.Clock = time.Now
	}
	s := &Service{relations: c.Relations}
	queue, err := delivery.New(delivery.Config{
		DB: c.DB, Seal: c.Seal, Log: c.Log, Checker: c.Relations, Tenants: c.Tenants, Jobs: c.Jobs, Sender: c.Outbound, Logger: c.Logger,
		Disable: s.disableGone, Clock: c.Clock, Retention: c.Retention,
	})
	if err != nil {
		return nil, err
	}
	s.queue = queue
	s.subscriptions = subscription.NewRegistry(subscription.Config{
		DB: c.DB, Seal: c.Seal, Relations: c.Relations, Deliveries: queue, Outbound: c.Outbound, Clock: c.Clock,
	})
	return s, nil
}

// Run delivers until ctx ends. Any number of processes may run it on one database.
func (s *Service) Run(ctx context.Context) { s.queue.Run(ctx) }

// Stats returns the counts of this process.
func (s *Service) Stats() delivery.Stats { return s.queue.Stats() }

// OldestDue returns how long the oldest due delivery has been due; see
// [delivery.Queue.OldestDue].
func (s *Service) OldestDue(ctx context.Context) (time.Duration, error) {
	return s.queue.OldestDue(ctx)
}

// disableGone disables a subscription whose receiver is gone.
func (s *Service) disableGone(ctx context.Context, tenantID, subscriptionID string) error {
	_, err := s.subscriptions.Update(ctx, tenantID, subscriptionID, func(of *subscription.Subscription) error {
		if of.State == subscription.Enabled {
			of.State, of.DisabledReason = subscription.Disabled, subscription.Gone
		}
		return nil
	})
	if errors.Is(err, subscription.ErrNotFound) {
		return nil
	}
	return err
}
