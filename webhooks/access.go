package webhooks

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"slices"

	"stonetown/engine"
	"stonetown/schema"
	"stonetown/tuplestore"
	"stonetown/webhooks/subscription"
)

// The scopes of the operations.
const (
	ReadScope  = "webhooks:read"
	WriteScope = "webhooks:write"
)

// Caller is the party that asks for an operation.
type Caller struct {
	// Reads and Writes report whether its token has the scopes for all subscriptions of the
	// tenant.
	Reads, Writes bool
	// Subject may be owner or viewer of subscriptions: an application that acts for itself, or a
	// user in a session of their own. It is zero for a token that acts for a user, because
	// the user did not consent to more than its scopes.
	Subject tuplestore.Subject
}

// DeniedError is returned to a caller that lacks a scope, and is not owner or viewer.
type DeniedError struct{ Scope string }

func (e *DeniedError) Error() string {
	return fmt.Sprintf("the caller must have the scope %s, or a relation to the subscription", e.Scope)
}

// WideningError is returned to an owner that changes what a subscription sees or who manages
// it, which takes the scope for all subscriptions.
type WideningError struct{ Field string }

func (e *WideningError) Error() string {
	return fmt.Sprintf("only a caller with the scope %s can change %s", WriteScope, e.Field)
}

// mayRead fails with [*DeniedError] unless the caller may read a subscription.
func (s *Service) mayRead(ctx context.Context, tenantID, subscriptionID string, by Caller) error {
	if by.Reads {
		return nil
	}
	return s.related(ctx, tenantID, subscriptionID, by, schema.WebhookViewer, ReadScope)
}

// mayWrite fails with [*DeniedError] unless the caller may change a subscription.
func (s *Service) mayWrite(ctx context.Context, tenantID, subscriptionID string, by Caller) error {
	if by.Writes {
		return nil
	}
	return s.related(ctx, tenantID, subscriptionID, by, schema.WebhookOwner, WriteScope)
}

func (s *Service) related(ctx context.Context, tenantID, subscriptionID string, by Caller, relation, scope string) error {
	denied := &DeniedError{scope}
	if by.Subject == (tuplestore.Subject{}) || len(subscriptionID) > engine.MaxID {
		return denied
	}
	res, err := s.relations.Check(ctx, tenantID, engine.CheckRequest{
		Subject: by.Subject, Queries: []engine.Query{{Resource: subscription.Object(subscriptionID), Action: relation}},
	})
	if err != nil {
		return fmt.Errorf("compare rights: %w", err)
	}
	if !res.Decisions[0].Allowed {
		return denied
	}
	return nil
}

// visible returns those of some subscriptions that the caller may read.
func (s *Service) visible(ctx context.Context, tenantID string, by Caller, all []subscription.Subscription) (visible []subscription.Subscription, err error) {
	if by.Reads {
		return all, nil
	}
	if by.Subject == (tuplestore.Subject{}) {
		return nil, &DeniedError{ReadScope}
	}
	if len(all) == 0 {
		return nil, nil
	}
	req := engine.CheckRequest{Subject: by.Subject}
	for _, one := range all {
		req.Queries = append(req.Queries, engine.Query{Resource: subscription.Object(one.ID), Action: schema.WebhookViewer})
	}
	res, err := s.relations.Check(ctx, tenantID, req)
	if err != nil {
		return nil, fmt.Errorf("compare rights: %w", err)
	}
	for i, d := range res.Decisions {
		if d.Allowed {
			visible = append(visible, all[i])
		}
	}
	return visible, nil
}

// mayChange fails with [*WideningError] if a change by an owner lets the subscription see more,
// or changes who manages it. The patterns can change if a visibility limits the events.
func mayChange(before, after subscription.Subscription) error {
	for _, field := range []struct {
		name string
		same bool
	}{
		{"events", before.VisibleTo != nil || slices.Equal(before.Events, after.Events)},
		{"visible_to", reflect.DeepEqual(before.VisibleTo, after.VisibleTo)},
		{"owners", slices.Equal(before.Owners, after.Owners)},
		{"viewers", slices.Equal(before.Viewers, after.Viewers)},
	} {
		if !field.same {
			return &WideningError{field.name}
		}
	}
	return nil
}

// hide returns the error for an object that was not found: a caller without the scope learns
// nothing about the objects that it may not read.
func hide(err error, notFound error, may bool, scope string) error {
	if errors.Is(err, notFound) && !may {
		return &DeniedError{scope}
	}
	return err
}
