package webhooks

import (
	"context"
	"time"

	"stonetown/engine"
	"stonetown/schema"
	"stonetown/webhooks/delivery"
	"stonetown/webhooks/subscription"
)

// Create creates a subscription; see [subscription.Registry.Create]. The caller must have the
// scope for all subscriptions.
func (s *Service) Create(ctx context.Context, tenantID string, by Caller, new subscription.Subscription) (subscription.Subscription, string, error) {
	if !by.Writes {
		return subscription.Subscription{}, "", &DeniedError{WriteScope}
	}
	created, secret, err := s.subscriptions.Create(ctx, tenantID, new)
	return created, secret.Text(), err
}

// Subscriptions lists the subscriptions that the caller may read, newest first; in a state, or
// with an empty one in all states.
func (s *Service) Subscriptions(ctx context.Context, tenantID string, by Caller, state subscription.State) ([]subscription.Subscription, error) {
	all, err := s.subscriptions.List(ctx, tenantID)
	if err != nil {
		return nil, err
	}
	found, err := s.visible(ctx, tenantID, by, all)
	if err != nil {
		return nil, err
	}
	var listed []subscription.Subscription
	for _, one := range found {
		if state == "" || one.State == state {
			listed = append(listed, one)
		}
	}
	return listed, nil
}

// Subscription reads a subscription. It fails with [subscription.ErrNotFound] or [*DeniedError].
func (s *Service) Subscription(ctx context.Context, tenantID, subscriptionID string, by Caller) (subscription.Subscription, error) {
	if err := s.mayRead(ctx, tenantID, subscriptionID, by); err != nil {
		return subscription.Subscription{}, err
	}
	return s.subscriptions.Get(ctx, tenantID, subscriptionID)
}

// Update changes a subscription; see [subscription.Registry.Update]. It also fails with
// [*DeniedError], or with [*WideningError].
func (s *Service) Update(ctx context.Context, tenantID, subscriptionID string, by Caller, change func(*subscription.Subscription)) (subscription.Subscription, error) {
	if err := s.mayWrite(ctx, tenantID, subscriptionID, by); err != nil {
		return subscription.Subscription{}, err
	}
	return s.subscriptions.Update(ctx, tenantID, subscriptionID, func(of *subscription.Subscription) error {
		before := *of
		change(of)
		if by.Writes {
			return nil
		}
		return mayChange(before, *of)
	})
}

// MayRename fails with [*engine.NameInUseError] if a subscription is visible to a subject whose
// name would change: it would see nothing any more.
func (s *Service) MayRename(ctx context.Context, tenantID string, renames []schema.Rename) error {
	all, err := s.subscriptions.List(ctx, tenantID)
	if err != nil {
		return err
	}
	for _, one := range all {
		if one.VisibleTo == nil {
			continue
		}
		subject := one.VisibleTo.Subject
		for _, r := range renames {
			if r.Type == "" && r.From == subject.Type {
				return &engine.NameInUseError{Type: subject.Type, By: subscription.Object(one.ID)}
			}
			if r.Type == subject.Type && r.From == subject.Relation {
				return &engine.NameInUseError{Type: subject.Type, Relation: subject.Relation, By: subscription.Object(one.ID)}
			}
		}
	}
	return nil
}

// Enable enables a subscription: it gets the events from now on.
func (s *Service) Enable(ctx context.Context, tenantID, subscriptionID string, by Caller) (subscription.Subscription, error) {
	return s.Update(ctx, tenantID, subscriptionID, by, func(of *subscription.Subscription) { of.State = subscription.Enabled })
}

// Disable disables a subscription: its pending deliveries become dead letters.
func (s *Service) Disable(ctx context.Context, tenantID, subscriptionID string, by Caller) (subscription.Subscription, error) {
	return s.Update(ctx, tenantID, subscriptionID, by, func(of *subscription.Subscription) {
		of.State, of.DisabledReason = subscription.Disabled, subscription.Manual
	})
}

// Delete deletes a subscription with its deliveries and dead letters. It fails with
// [subscription.ErrNotFound] or [*DeniedError].
func (s *Service) Delete(ctx context.Context, tenantID, subscriptionID string, by Caller) error {
	if err := s.mayWrite(ctx, tenantID, subscriptionID, by); err != nil {
		return err
	}
	return s.subscriptions.Delete(ctx, tenantID, subscriptionID)
}

// RotateSecret replaces the signing secret; see [subscription.Registry.RotateSecret].
func (s *Service) RotateSecret(ctx context.Context, tenantID, subscriptionID string, by Caller, previousTTL time.Duration) (subscription.Rotated, error) {
	if err := s.mayWrite(ctx, tenantID, subscriptionID, by); err != nil {
		return subscription.Rotated{}, err
	}
	return s.subscriptions.RotateSecret(ctx, tenantID, subscriptionID, previousTTL)
}

// Test queues a delivery of the event test.ping; see [delivery.Queue.Test].
func (s *Service) Test(ctx context.Context, tenantID, subscriptionID string, by Caller) (*delivery.Delivery, error) {
	if err := s.mayWrite(ctx, tenantID, subscriptionID, by); err != nil {
		return nil, err
	}
	return s.queue.Test(ctx, tenantID, subscriptionID)
}

// Deliveries lists deliveries of a subscription; see [delivery.Queue.List]. It fails with
// [subscription.ErrNotFound] or [*DeniedError].
func (s *Service) Deliveries(ctx context.Context, tenantID, subscriptionID string, by Caller, f delivery.Filter, after string, limit int) ([]*delivery.Delivery, error) {
	if _, err := s.Subscription(ctx, tenantID, subscriptionID, by); err != nil {
		return nil, err
	}
	return s.queue.List(ctx, tenantID, subscriptionID, f, after, limit)
}

// Delivery reads a delivery. It fails with [delivery.ErrNotFound] or [*DeniedError].
func (s *Service) Delivery(ctx context.Context, tenantID, deliveryID string, by Caller) (*delivery.Delivery, error) {
	found, err := s.queue.Get(ctx, tenantID, deliveryID)
	if err != nil {
		return nil, hide(err, delivery.ErrNotFound, by.Reads, ReadScope)
	}
	if err := s.mayRead(ctx, tenantID, found.SubscriptionID, by); err != nil {
		return nil, err
	}
	return found, nil
}

// Redeliver queues a new delivery of the event of a delivery; see [delivery.Queue.Redeliver].
func (s *Service) Redeliver(ctx context.Context, tenantID, deliveryID string, by Caller) (*delivery.Delivery, error) {
	found, err := s.queue.Get(ctx, tenantID, deliveryID)
	if err != nil {
		return nil, hide(err, delivery.ErrNotFound, by.Writes, WriteScope)
	}
	if err := s.mayWrite(ctx, tenantID, found.SubscriptionID, by); err != nil {
		return nil, err
	}
	return s.queue.Redeliver(ctx, tenantID, deliveryID)
}

// DeadLetters lists dead letters of a subscription; see [delivery.Queue.DeadLetters]. It fails
// with [subscription.ErrNotFound] or [*DeniedError].
func (s *Service) DeadLetters(ctx context.Context, tenantID, subscriptionID string, by Caller, state delivery.DeadState, after string, limit int) ([]delivery.DeadLetter, error) {
	if _, err := s.Subscription(ctx, tenantID, subscriptionID, by); err != nil {
		return nil, err
	}
	return s.queue.DeadLetters(ctx, tenantID, subscriptionID, state, after, limit)
}

// Replay queues a new delivery of the event of a dead letter; see [delivery.Queue.Replay].
func (s *Service) Replay(ctx context.Context, tenantID, entryID string, by Caller) (deliveryID string, err error) {
	if err := s.mayWriteEntry(ctx, tenantID, entryID, by); err != nil {
		return "", err
	}
	return s.queue.Replay(ctx, tenantID, entryID)
}

// ReplayMany replays dead letters of a subscription; see [delivery.Queue.ReplayMany].
func (s *Service) ReplayMany(ctx context.Context, tenantID, subscriptionID string, by Caller, sel delivery.Selection) (replayed int, err error) {
	if err := s.mayWrite(ctx, tenantID, subscriptionID, by); err != nil {
		return 0, err
	}
	return s.queue.ReplayMany(ctx, tenantID, subscriptionID, sel)
}

// Drop drops a dead letter; see [delivery.Queue.Drop].
func (s *Service) Drop(ctx context.Context, tenantID, entryID string, by Caller) (delivery.DeadLetter, error) {
	if err := s.mayWriteEntry(ctx, tenantID, entryID, by); err != nil {
		return delivery.DeadLetter{}, err
	}
	return s.queue.Drop(ctx, tenantID, entryID)
}

// mayWriteEntry fails with [delivery.ErrDeadLetterNotFound] or [*DeniedError] unless the caller
// may change the subscription of a dead letter.
func (s *Service) mayWriteEntry(ctx context.Context, tenantID, entryID string, by Caller) error {
	found, err := s.queue.DeadLetter(ctx, tenantID, entryID)
	if err != nil {
		return hide(err, delivery.ErrDeadLetterNotFound, by.Writes, WriteScope)
	}
	return s.mayWrite(ctx, tenantID, found.SubscriptionID, by)
}
