// Package webhooks has the operations on webhook subscriptions, their deliveries and dead
// letters.
//
// Most of them do not require a scope: a caller without it can be owner or viewer of the
// subscription. The package passes the [webhooks.Caller] to the domain, which decides.
package webhooks

import (
	"context"
	"errors"
	"net/http"
	"time"

	"github.com/go-json-experiment/json/jsontext"
	"github.com/gorilla/mux"

	"stonetown/api/openapi"
	"stonetown/api/web"
	"stonetown/internal/document"
	"stonetown/oauth/token"
	"stonetown/schema"
	"stonetown/tuplestore"
	"stonetown/webhooks"
	"stonetown/webhooks/delivery"
	"stonetown/webhooks/subscription"
)

// Service is the part of [webhooks.Service] that the operations use.
type Service interface {
	Create(ctx context.Context, tenantID string, by webhooks.Caller, s subscription.Subscription) (created subscription.Subscription, secret string, err error)
	Subscriptions(ctx context.Context, tenantID string, by webhooks.Caller, state subscription.State) ([]subscription.Subscription, error)
	Subscription(ctx context.Context, tenantID, subscriptionID string, by webhooks.Caller) (subscription.Subscription, error)
	Update(ctx context.Context, tenantID, subscriptionID string, by webhooks.Caller, change func(*subscription.Subscription)) (subscription.Subscription, error)
	Enable(ctx context.Context, tenantID, subscriptionID string, by webhooks.Caller) (subscription.Subscription, error)
	Disable(ctx context.Context, tenantID, subscriptionID string, by webhooks.Caller) (subscription.Subscription, error)
	Delete(ctx context.Context, tenantID, subscriptionID string, by webhooks.Caller) error
	RotateSecret(ctx context.Context, tenantID, subscriptionID string, by webhooks.Caller, previousTTL time.Duration) (subscription.Rotated, error)
	Test(ctx context.Context, tenantID, subscriptionID string, by webhooks.Caller) (*delivery.Delivery, error)

	Deliveries(ctx context.Context, tenantID, subscriptionID string, by webhooks.Caller, f delivery.Filter, after string, limit int) ([]*delivery.Delivery, error)
	Delivery(ctx context.Context, tenantID, deliveryID string, by webhooks.Caller) (*delivery.Delivery, error)
	Redeliver(ctx context.Context, tenantID, deliveryID string, by webhooks.Caller) (*delivery.Delivery, error)

	DeadLetters(ctx context.Context, tenantID, subscriptionID string, by webhooks.Caller, state delivery.DeadState, after string, limit int) ([]delivery.DeadLetter, error)
	Replay(ctx context.Context, tenantID, entryID string, by webhooks.Caller) (deliveryID string, err error)
	ReplayMany(ctx context.Context, tenantID, subscriptionID string, by webhooks.Caller, sel delivery.Selection) (replayed int, err error)
	Drop(ctx context.Context, tenantID, entryID string, by webhooks.Caller) (delivery.DeadLetter, error)
}

// Handlers implements the operations. It is safe for concurrent use.
type Handlers struct {
	Service Service
	Cursors *web.Cursors
}

var _ StrictServerInterface = (*Handlers)(nil)

// Mount adds the operations to a router. fail answers requests that end in an
// error.
func (h *Handlers) Mount(router *mux.Router, fail func(w http.ResponseWriter, r *http.Request, err error)) {
	refuse := func(w http.ResponseWriter, r *http.Request, err error) {
		if denied, ok := errors.AsType[*webhooks.DeniedError](err); ok {
			err = web.InsufficientScope(web.InfoOf(r.Context()), denied.Scope)
		}
		fail(w, r, err)
	}
	HandlerWithOptions(NewStrictHandler(h, refuse), GorillaServerOptions{BaseRouter: router, ErrorHandlerFunc: web.Parameters(fail)})
}

// callerOf returns the caller of a request. An owner or viewer has the rights of one only in
// person: an application with a token from its own credentials, and a user in a session. A
// token that acts for either, or that was exchanged, has those of its scopes.
func callerOf(p *token.Principal) webhooks.Caller {
	by := webhooks.Caller{Reads: p.Scopes.Has(webhooks.ReadScope), Writes: p.Scopes.Has(webhooks.WriteScope)}
	switch {
	case p.Acting() || len(p.Ancestors) > 0:
	case p.IsApplication() && p.Subject == p.ClientID:
		by.Subject = tuplestore.Subject{Type: schema.ApplicationType, ID: p.Subject}
	case !p.IsApplication() && p.ClientID == token.FirstParty:
		by.Subject = tuplestore.Subject{Type: schema.UserType, ID: p.Subject}
	}
	return by
}

// caller returns what the handlers of all operations read from a request.
func caller(ctx context.Context) (info *web.RequestInfo, by webhooks.Caller) {
	info = web.InfoOf(ctx)
	return info, callerOf(info.Principal)
}

func meta(info *web.RequestInfo) Meta { return Meta{RequestID: info.RequestID} }

// createdSubscription is a new subscription with its secret, which is part of this response
// only.
type createdSubscription struct {
	subscription.Document
	SigningSecret string `json:"signing_secret"`
}

func read(info *web.RequestInfo, s subscription.Subscription) WebhookSubscriptionRead {
	return WebhookSubscriptionRead{Data: s.Document(), Meta: meta(info)}
}

// ListWebhookSubscriptions lists the subscriptions that the caller may read.
func (h *Handlers) ListWebhookSubscriptions(ctx context.Context, request ListWebhookSubscriptionsRequestObject) (ListWebhookSubscriptionsResponseObject, error) {
	info, by := caller(ctx)
	state := subscription.State(request.Params.State)
	var v web.Validation
	web.OneOf(&v, "state", state, subscription.Enabled, subscription.Disabled)
	if err := v.Err(); err != nil {
		return nil, err
	}
	found, err := h.Service.Subscriptions(ctx, info.Tenant.ID, by, state)
	if err != nil {
		return nil, err
	}
	list := []string{"listWebhookSubscriptions", string(state)}
	page, limit, next, err := web.Page(h.Cursors, info.Tenant.ID, list, request.Params.Limit, request.Params.Cursor, found, func(s subscription.Subscription) string { return s.ID })
	if err != nil {
		return nil, err
	}
	body := WebhookSubscriptionList{Data: []WebhookSubscription{}, Meta: ListMeta{RequestID: info.RequestID, Limit: limit, NextCursor: next}}
	for _, s := range page {
		body.Data = append(body.Data, s.Document())
	}
	return ListWebhookSubscriptions200JSONResponse{Body: body}, nil
}

// CreateWebhookSubscription creates a subscription.
func (h *Handlers) CreateWebhookSubscription(ctx context.Context, request CreateWebhookSubscriptionRequestObject) (CreateWebhookSubscriptionResponseObject, error) {
	info, by := caller(ctx)
	change, err := readNew(*request.Body)
	if err != nil {
		return nil, err
	}
	var s subscription.Subscription
	change(&s)
	s, secret, err := h.Service.Create(ctx, info.Tenant.ID, by, s)
	if err != nil {
		return nil, err
	}
	return CreateWebhookSubscription201JSONResponse{
		Body:    WebhookSubscriptionCreated{Data: createdSubscription{s.Document(), secret}, Meta: meta(info)},
		Headers: CreateWebhookSubscription201ResponseHeaders{Location: "/api/v1/webhooks/subscriptions/" + s.ID},
	}, nil
}

// GetWebhookSubscription reads a subscription.
func (h *Handlers) GetWebhookSubscription(ctx context.Context, request GetWebhookSubscriptionRequestObject) (GetWebhookSubscriptionResponseObject, error) {
	info, by := caller(ctx)
	s, err := h.Service.Subscription(ctx, info.Tenant.ID, request.SubscriptionID, by)
	return GetWebhookSubscription200JSONResponse{Body: read(info, s)}, err
}

// PatchWebhookSubscription changes a subscription.
func (h *Handlers) PatchWebhookSubscription(ctx context.Context, request PatchWebhookSubscriptionRequestObject) (PatchWebhookSubscriptionResponseObject, error) {
	info, by := caller(ctx)
	change, err := readPatch(*request.Body)
	if err != nil {
		return nil, err
	}
	s, err := h.Service.Update(ctx, info.Tenant.ID, request.SubscriptionID, by, change)
	return PatchWebhookSubscription200JSONResponse{Body: read(info, s)}, err
}

// DeleteWebhookSubscription deletes a subscription.
func (h *Handlers) DeleteWebhookSubscription(ctx context.Context, request DeleteWebhookSubscriptionRequestObject) (DeleteWebhookSubscriptionResponseObject, error) {
	info, by := caller(ctx)
	return DeleteWebhookSubscription204Response{}, h.Service.Delete(ctx, info.Tenant.ID, request.SubscriptionID, by)
}

// EnableWebhookSubscription enables a subscription.
func (h *Handlers) EnableWebhookSubscription(ctx context.Context, request EnableWebhookSubscriptionRequestObject) (EnableWebhookSubscriptionResponseObject, error) {
	info, by := caller(ctx)
	s, err := h.Service.Enable(ctx, info.Tenant.ID, request.SubscriptionID, by)
	return EnableWebhookSubscription200JSONResponse{Body: read(info, s)}, err
}

// DisableWebhookSubscription disables a subscription.
func (h *Handlers) DisableWebhookSubscription(ctx context.Context, request DisableWebhookSubscriptionRequestObject) (DisableWebhookSubscriptionResponseObject, error) {
	info, by := caller(ctx)
	s, err := h.Service.Disable(ctx, info.Tenant.ID, request.SubscriptionID, by)
	return DisableWebhookSubscription200JSONResponse{Body: read(info, s)}, err
}

// RotateWebhookSecret replaces the signing secret of a subscription.
func (h *Handlers) RotateWebhookSecret(ctx context.Context, request RotateWebhookSecretRequestObject) (RotateWebhookSecretResponseObject, error) {
	info, by := caller(ctx)
	ttl := subscription.DefaultPreviousTTL
	if given := request.Body.PreviousTTLS; given != nil {
		// Seconds beyond the limits are out of range, also those that overflow a duration.
		ttl = time.Duration(min(max(*given, -1), int(subscription.MaxPreviousTTL/time.Second)+1)) * time.Second
	}
	r, err := h.Service.RotateSecret(ctx, info.Tenant.ID, request.SubscriptionID, by, ttl)
	if err != nil {
		return nil, err
	}
	body := WebhookSecretRotated{Meta: meta(info)}
	body.Data.SigningSecret, body.Data.PreviousExpiresAt = r.Secret.Text(), document.TimeOrNull(r.PreviousExpiresAt)
	return RotateWebhookSecret200JSONResponse{Body: body}, nil
}

// TestWebhookSubscription queues a test event.
func (h *Handlers) TestWebhookSubscription(ctx context.Context, request TestWebhookSubscriptionRequestObject) (TestWebhookSubscriptionResponseObject, error) {
	info, by := caller(ctx)
	d, err := h.Service.Test(ctx, info.Tenant.ID, request.SubscriptionID, by)
	if err != nil {
		return nil, err
	}
	body := WebhookTestQueued{Meta: meta(info)}
	body.Data.DeliveryID = d.ID
	return TestWebhookSubscription202JSONResponse{Body: body}, nil
}

// ListEventTypes lists the types of events.
func (h *Handlers) ListEventTypes(ctx context.Context, request ListEventTypesRequestObject) (ListEventTypesResponseObject, error) {
	info := web.InfoOf(ctx)
	page, limit, next, err := web.Page(h.Cursors, info.Tenant.ID, []string{"listEventTypes"}, request.Params.Limit, request.Params.Cursor, openapi.EventTypes(), func(t openapi.EventType) string { return t.Name })
	if err != nil {
		return nil, err
	}
	body := EventTypeList{Data: []EventType{}, Meta: ListMeta{RequestID: info.RequestID, Limit: limit, NextCursor: next}}
	for _, t := range page {
		body.Data = append(body.Data, EventType{Name: t.Name, Description: t.Description, Category: t.Category, Schema: jsontext.Value(t.Schema)})
	}
	return ListEventTypes200JSONResponse{Body: body}, nil
}
