package webhooks

import (
	"context"
	"slices"
	"time"

	"stonetown/api/openapi"
	"stonetown/api/web"
	"stonetown/webhooks/delivery"
	"stonetown/webhooks/subscription"
)

// position is the end of a page of deliveries or dead letters.
type position struct {
	ID string `json:"i"`
}

// page lists a page of objects that are ordered by their ids, which begins after the position
// of the cursor.
func page[T any](h *Handlers, info *web.RequestInfo, list []string, size *int, cursor string, find func(after string, limit int) ([]T, error), id func(T) string) (found []T, m ListMeta, err error) {
	m.RequestID = info.RequestID
	if m.Limit, err = web.Limit(size); err != nil {
		return nil, m, err
	}
	var after position
	if cursor != "" {
		if err := h.Cursors.Resume(info.Tenant.ID, list, cursor, &after); err != nil {
			return nil, m, err
		}
	}
	if found, err = find(after.ID, m.Limit+1); err != nil || len(found) <= m.Limit {
		return found, m, err
	}
	found = found[:m.Limit]
	next, err := h.Cursors.Next(info.Tenant.ID, list, position{id(found[m.Limit-1])})
	m.NextCursor = &next
	return found, m, err
}

// ListWebhookDeliveries lists deliveries of a subscription.
func (h *Handlers) ListWebhookDeliveries(ctx context.Context, request ListWebhookDeliveriesRequestObject) (ListWebhookDeliveriesResponseObject, error) {
	info, by := caller(ctx)
	p := request.Params
	filter, err := filterOf(p)
	if err != nil {
		return nil, err
	}
	list := []string{"listWebhookDeliveries", request.SubscriptionID, string(p.Status), p.EventType, p.Since}
	found, meta, err := page(h, info, list, p.Limit, p.Cursor, func(after string, limit int) ([]*delivery.Delivery, error) {
		return h.Service.Deliveries(ctx, info.Tenant.ID, request.SubscriptionID, by, filter, after, limit)
	}, func(d *delivery.Delivery) string { return d.ID })
	if err != nil {
		return nil, err
	}
	body := WebhookDeliveryList{Data: []WebhookDelivery{}, Meta: meta}
	for _, d := range found {
		body.Data = append(body.Data, d.Document())
	}
	return ListWebhookDeliveries200JSONResponse{Body: body}, nil
}

// filterOf reads the filter of a list of deliveries.
func filterOf(p ListWebhookDeliveriesParams) (delivery.Filter, error) {
	f := delivery.Filter{Status: delivery.Status(p.Status), EventType: p.EventType}
	var v web.Validation
	if f.EventType != "" && v.Text("", "event_type", f.EventType) && !slices.ContainsFunc(openapi.EventTypes(), func(t openapi.EventType) bool { return t.Name == f.EventType }) {
		return f, unknownEvent(&subscription.UnknownEventError{Pattern: f.EventType})
	}
	web.OneOf(&v, "status", f.Status, delivery.Statuses...)
	if p.Since != "" {
		f.Since = instant(&v, "since", p.Since)
	}
	return f, v.Err()
}

// instant reads a time.
func instant(v *web.Validation, field, text string) time.Time {
	at, err := time.Parse(time.RFC3339Nano, text)
	if err != nil {
		v.Add(field, "invalid", "must be an RFC 3339 time")
	}
	return at
}

// GetWebhookDelivery reads a delivery.
func (h *Handlers) GetWebhookDelivery(ctx context.Context, request GetWebhookDeliveryRequestObject) (GetWebhookDeliveryResponseObject, error) {
	info, by := caller(ctx)
	d, err := h.Service.Delivery(ctx, info.Tenant.ID, request.DeliveryID, by)
	if err != nil {
		return nil, err
	}
	return GetWebhookDelivery200JSONResponse{Body: WebhookDeliveryRead{Data: d.Document(), Meta: meta(info)}}, nil
}

// RedeliverWebhook queues a new delivery of the event of a delivery.
func (h *Handlers) RedeliverWebhook(ctx context.Context, request RedeliverWebhookRequestObject) (RedeliverWebhookResponseObject, error) {
	info, by := caller(ctx)
	d, err := h.Service.Redeliver(ctx, info.Tenant.ID, request.DeliveryID, by)
	if err != nil {
		return nil, err
	}
	return RedeliverWebhook202JSONResponse{Body: WebhookDeliveryRead{Data: d.Document(), Meta: meta(info)}}, nil
}

// ListWebhookDeadLetters lists dead letters of a subscription.
func (h *Handlers) ListWebhookDeadLetters(ctx context.Context, request ListWebhookDeadLettersRequestObject) (ListWebhookDeadLettersResponseObject, error) {
	info, by := caller(ctx)
	state := delivery.DeadState(request.Params.State)
	if state == "" {
		state = delivery.Queued
	}
	var v web.Validation
	web.OneOf(&v, "state", state, delivery.Queued, delivery.Replayed, delivery.Dropped)
	if err := v.Err(); err != nil {
		return nil, err
	}
	list := []string{"listWebhookDeadLetters", request.SubscriptionID, string(state)}
	found, meta, err := page(h, info, list, request.Params.Limit, request.Params.Cursor, func(after string, limit int) ([]delivery.DeadLetter, error) {
		return h.Service.DeadLetters(ctx, info.Tenant.ID, request.SubscriptionID, by, state, after, limit)
	}, func(e delivery.DeadLetter) string { return e.ID })
	if err != nil {
		return nil, err
	}
	body := WebhookDeadLetterList{Data: []WebhookDeadLetter{}, Meta: meta}
	for _, e := range found {
		body.Data = append(body.Data, e.Document())
	}
	return ListWebhookDeadLetters200JSONResponse{Body: body}, nil
}

// ReplayWebhookDeadLetters replays dead letters of a subscription.
func (h *Handlers) ReplayWebhookDeadLetters(ctx context.Context, request ReplayWebhookDeadLettersRequestObject) (ReplayWebhookDeadLettersResponseObject, error) {
	info, by := caller(ctx)
	selection, err := readSelection(*request.Body)
	if err != nil {
		return nil, err
	}
	replayed, err := h.Service.ReplayMany(ctx, info.Tenant.ID, request.SubscriptionID, by, selection)
	body := WebhookReplayQueued{Meta: meta(info)}
	body.Data.Queued = replayed
	return ReplayWebhookDeadLetters202JSONResponse{Body: body}, err
}

// ReplayWebhookDeadLetter replays a dead letter.
func (h *Handlers) ReplayWebhookDeadLetter(ctx context.Context, request ReplayWebhookDeadLetterRequestObject) (ReplayWebhookDeadLetterResponseObject, error) {
	info, by := caller(ctx)
	deliveryID, err := h.Service.Replay(ctx, info.Tenant.ID, request.EntryID, by)
	body := WebhookDeadLetterReplayed{Meta: meta(info)}
	body.Data.EntryID, body.Data.DeliveryID, body.Data.State = request.EntryID, deliveryID, delivery.Replayed
	return ReplayWebhookDeadLetter202JSONResponse{Body: body}, err
}

// DropWebhookDeadLetter drops a dead letter.
func (h *Handlers) DropWebhookDeadLetter(ctx context.Context, request DropWebhookDeadLetterRequestObject) (DropWebhookDeadLetterResponseObject, error) {
	info, by := caller(ctx)
	e, err := h.Service.Drop(ctx, info.Tenant.ID, request.EntryID, by)
	if err != nil {
		return nil, err
	}
	return DropWebhookDeadLetter200JSONResponse{Body: WebhookDeadLetterRead{Data: e.Document(), Meta: meta(info)}}, nil
}
