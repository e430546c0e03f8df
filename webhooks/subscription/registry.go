package subscription

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"time"

	"stonetown/engine"
	"stonetown/internal/eventlog"
	"stonetown/internal/id"
	"stonetown/internal/outbound"
	"stonetown/internal/seal"
	"stonetown/internal/sqldb"
	"stonetown/schema"
	"stonetown/tuplestore"
	"stonetown/webhooks/signature"
)

// ErrNotFound is returned for a subscription that does not exist.
var ErrNotFound = errors.New("webhook subscription not found")

// errChanged: another request changed the owners or viewers concurrently.
var errChanged = errors.New("the subscription was changed concurrently")

// Relations is the part of [engine.Engine] that writes owners and viewers.
type Relations interface {
	Write(ctx context.Context, tenantID string, req engine.WriteRequest) (engine.WriteResponse, error)
	Forget(ctx context.Context, tenantID string, subject tuplestore.Object, origin engine.Origin) (token string, err error)
}

// Deliveries are what a change of a subscription means for its deliveries. The methods queue
// statements that commit with the change.
type Deliveries interface {
	// Open prepares the deliveries of a new subscription.
	Open(b *sqldb.Batch, tenantID, subscriptionID string)
	// Drain moves the pending deliveries of a disabled subscription to its dead letters.
	Drain(b *sqldb.Batch, tenantID, subscriptionID string)
	// Close deletes the deliveries and dead letters of a deleted subscription, which was the
	// last one of its tenant or not.
	Close(b *sqldb.Batch, tenantID, subscriptionID string, last bool)
}

// Config configures a [Registry]. All fields are required.
type Config struct {
	DB         *sqldb.DB
	Seal       *seal.Key // encrypts secrets
	Relations  Relations
	Deliveries Deliveries
	Outbound   *outbound.Client // decides which URLs can be delivered to
	Clock      func() time.Time
}

// Registry stores the subscriptions of all tenants. It is safe for concurrent use.
type Registry struct {
	db         *sqldb.DB
	seal       *seal.Key
	relations  Relations
	deliveries Deliveries
	outbound   *outbound.Client
	clock      func() time.Time
}

// NewRegistry returns the registry of the subscriptions in c.DB.
func NewRegistry(c Config) *Registry {
	return &Registry{c.DB, c.Seal, c.Relations, c.Deliveries, c.Outbound, c.Clock}
}

func (r *Registry) now() time.Time { return r.clock().UTC().Truncate(time.Microsecond) }

// Create creates an enabled subscription from the fields that a caller sets, to which the
// events committed from now on are delivered. The secret cannot be read again. Create fails
// with [*FieldError], [*URLError], [*UnknownEventError] or [ErrTooMany].
func (r *Registry) Create(ctx context.Context, tenantID string, s Subscription) (_ Subscription, secret signature.Secret, err error) {
	secret = signature.NewSecret()
	s = s.clone()
	s.normalize()
	s.ID, s.TenantID, s.State, s.DisabledReason = id.New(id.WebhookSubscription), tenantID, Enabled, ""
	s.CreatedAt = r.now()
	s.UpdatedAt = s.CreatedAt
	s.rotate(r.seal, secret, time.Time{})
	if err := s.validate(r.outbound); err != nil {
		return Subscription{}, secret, err
	}
	err = r.commit(ctx, tenantID, relationsChanged(Subscription{}, s), func(ctx context.Context, tx *sqldb.Tx) error {
		// The event is first: it locks the log, so that the position is its end, and creations
		// wait for each other.
		var event, b sqldb.Batch
		eventlog.Append(&event, tenantID, created(ctx, s))
		if err := tx.Send(ctx, &event); err != nil {
			return err
		}
		var count int64
		insert(&b, s)
		r.deliveries.Open(&b, tenantID, s.ID)
		queueCount(&b, tenantID, &count)
		if err := tx.Send(ctx, &b); err != nil {
			return err
		}
		if count > MaxSubscriptions {
			return ErrTooMany
		}
		return nil
	})
	if err != nil {
		return Subscription{}, secret, fmt.Errorf("create webhook subscription: %w", err)
	}
	return s, secret, nil
}

// Get reads a subscription. It fails with [ErrNotFound].
func (r *Registry) Get(ctx context.Context, tenantID, subscriptionID string) (Subscription, error) {
	return Select(ctx, r.db, tenantID, subscriptionID)
}

// List lists the subscriptions of a tenant, newest first: at most [MaxSubscriptions].
func (r *Registry) List(ctx context.Context, tenantID string) ([]Subscription, error) {
	found, err := scanAll(r.db.Query(ctx, selectAll, tenantID))
	if err != nil {
		return nil, fmt.Errorf("list webhook subscriptions: %w", err)
	}
	return found, nil
}

// Update changes a subscription. change is applied to the present one and may be called more
// than once; it can refuse. If it changes nothing, nothing is written. Update fails with
// [ErrNotFound], the error of change, or as [Registry.Create] does.
func (r *Registry) Update(ctx context.Context, tenantID, subscriptionID string, change func(*Subscription) error) (after Subscription, err error) {
	for {
		after, err = r.tryUpdate(ctx, tenantID, subscriptionID, change)
		if !errors.Is(err, errChanged) {
			break
		}
	}
	if err != nil {
		return Subscription{}, fmt.Errorf("update webhook subscription: %w", err)
	}
	return after, nil
}

func (r *Registry) tryUpdate(ctx context.Context, tenantID, subscriptionID string, change func(*Subscription) error) (after Subscription, err error) {
	seen, err := r.Get(ctx, tenantID, subscriptionID)
	if err != nil {
		return after, err
	}
	if after, err = r.changed(seen, change); err != nil {
		return after, err
	}
	err = r.commit(ctx, tenantID, relationsChanged(seen, after), func(ctx context.Context, tx *sqldb.Tx) error {
		before, err := Select(ctx, tx, tenantID, subscriptionID)
		if err != nil {
			return err
		}
		if !slices.Equal(before.Owners, seen.Owners) || !slices.Equal(before.Viewers, seen.Viewers) {
			return errChanged
		}
		if after, err = r.changed(before, change); err != nil || reflect.DeepEqual(before, after) {
			return err
		}
		after.UpdatedAt = r.now()
		// As at the creation, the event is first.
		var event, b sqldb.Batch
		eventlog.Append(&event, tenantID, changed(ctx, before, after)...)
		if err := tx.Send(ctx, &event); err != nil {
			return err
		}
		update(&b, after)
		switch {
		case before.State == Disabled && after.State == Enabled:
			b.Queue(startNow, []any{tenantID, subscriptionID, unlimited}, nil)
		case before.State == Enabled && after.State == Disabled:
			b.Queue(endNow, []any{tenantID, subscriptionID}, nil)
			r.deliveries.Drain(&b, tenantID, subscriptionID)
		}
		return tx.Send(ctx, &b)
	})
	return after, err
}

// changed returns a subscription after a change, validated.
func (r *Registry) changed(before Subscription, change func(*Subscription) error) (after Subscription, err error) {
	after = before.clone()
	if err := change(&after); err != nil {
		return after, err
	}
	after.normalize()
	if after.State == Enabled {
		after.DisabledReason = ""
	}
	return after, after.validate(r.outbound)
}

// Delete deletes a subscription, with its deliveries and dead letters. It fails with
// [ErrNotFound].
func (r *Registry) Delete(ctx context.Context, tenantID, subscriptionID string) error {
	if !sqldb.IsText(subscriptionID) {
		return ErrNotFound
	}
	origin := r.origin(ctx)
	origin.Also = func(ctx context.Context, tx *sqldb.Tx) error {
		s, err := Select(ctx, tx, tenantID, subscriptionID)
		if err != nil {
			return err
		}
		// The event is first: it locks the log, so that no subscription is created meanwhile.
		var event, b, closing sqldb.Batch
		eventlog.Append(&event, tenantID, deleted(ctx, s))
		if err := tx.Send(ctx, &event); err != nil {
			return err
		}
		var left int64
		b.Queue(deleteSubscription, []any{tenantID, subscriptionID}, nil)
		noteChange(&b, tenantID, subscriptionID)
		queueCount(&b, tenantID, &left)
		if err := tx.Send(ctx, &b); err != nil {
			return err
		}
		r.deliveries.Close(&closing, tenantID, subscriptionID, left == 0)
		return tx.Send(ctx, &closing)
	}
	if _, err := r.relations.Forget(ctx, tenantID, Object(subscriptionID), origin); err != nil {
		return fmt.Errorf("delete webhook subscription: %w", err)
	}
	return nil
}

// Rotated is the result of a rotation of a secret.
type Rotated struct {
	Secret            signature.Secret // the new secret, which cannot be read again
	PreviousExpiresAt time.Time        // zero: the previous secret has ended
}

// RotateSecret replaces the secret of a subscription. Deliveries are signed with both for
// previousTTL, 0 to [MaxPreviousTTL]. It fails with [ErrNotFound] or [*FieldError].
func (r *Registry) RotateSecret(ctx context.Context, tenantID, subscriptionID string, previousTTL time.Duration) (Rotated, error) {
	if previousTTL < 0 || previousTTL > MaxPreviousTTL {
		return Rotated{}, &FieldError{"previous_ttl_s", "out_of_range", fmt.Sprintf("must be between 0 and %d", int(MaxPreviousTTL.Seconds()))}
	}
	rotated := Rotated{Secret: signature.NewSecret()}
	err := r.db.Tx(ctx, func(tx *sqldb.Tx) error {
		s, err := Select(ctx, tx, tenantID, subscriptionID)
		if err != nil {
			return err
		}
		s.UpdatedAt = r.now()
		if rotated.PreviousExpiresAt = (time.Time{}); previousTTL > 0 {
			rotated.PreviousExpiresAt = s.UpdatedAt.Add(previousTTL)
		}
		s.rotate(r.seal, rotated.Secret, rotated.PreviousExpiresAt)
		var b sqldb.Batch
		update(&b, s)
		eventlog.Append(&b, tenantID, secretRotated(ctx, s))
		return tx.Send(ctx, &b)
	})
	if err != nil {
		return Rotated{}, fmt.Errorf("rotate secret of webhook subscription: %w", err)
	}
	return rotated, nil
}

// commit runs a transaction, which writes the relations of a subscription as well.
func (r *Registry) commit(ctx context.Context, tenantID string, ops []engine.WriteOp, do func(ctx context.Context, tx *sqldb.Tx) error) error {
	if len(ops) == 0 {
		return r.db.Tx(ctx, func(tx *sqldb.Tx) error { return do(ctx, tx) })
	}
	origin := r.origin(ctx)
	origin.Also = do
	_, err := r.relations.Write(ctx, tenantID, engine.WriteRequest{Origin: origin, Ops: ops})
	return err
}

// origin returns the origin of relations.
func (r *Registry) origin(ctx context.Context) engine.Origin {
	return engine.Origin{Actor: eventlog.OriginOf(ctx).Actor.ID}
}

// relationsChanged returns the writes that change owners and viewers.
func relationsChanged(before, after Subscription) (ops []engine.WriteOp) {
	for _, list := range []struct {
		relation string
		was, is  []Subject
	}{{schema.WebhookOwner, before.Owners, after.Owners}, {schema.WebhookViewer, before.Viewers, after.Viewers}} {
		for _, s := range list.was {
			if !slices.Contains(list.is, s) {
				ops = append(ops, engine.WriteOp{Delete: true, IfPresent: true, Resource: Object(after.ID), Relation: list.relation, Subject: s.Tuple()})
			}
		}
		for _, s := range list.is {
			if !slices.Contains(list.was, s) {
				ops = append(ops, engine.WriteOp{Resource: Object(after.ID), Relation: list.relation, Subject: s.Tuple()})
			}
		}
	}
	return ops
}
