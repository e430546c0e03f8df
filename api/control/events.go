package control

import (
	"context"
	"time"

	"github.com/go-json-experiment/json/jsontext"

	"stonetown/api/web"
	"stonetown/controlplane/management"
	"stonetown/internal/document"
)

// eventDocument is the public representation of an event.
type eventDocument struct {
	ID         string             `json:"id"`
	Type       string             `json:"type"`
	OrgID      string             `json:"org_id"`
	TenantID   *string            `json:"tenant_id"`
	Actor      *actorDocument     `json:"actor"`
	IP         *string            `json:"ip"`
	RequestID  *string            `json:"request_id"`
	OccurredAt document.Timestamp `json:"occurred_at"`
	Data       jsontext.Value     `json:"data"`
}

type actorDocument struct {
	Type  string  `json:"type"`
	ID    string  `json:"id"`
	Email *string `json:"email"`
}

func event(e management.Event) eventDocument {
	d := eventDocument{
		ID: e.ID, Type: string(e.Type), OrgID: e.Event.TenantID, TenantID: document.OrNull(e.TenantID), IP: document.OrNull(e.Origin.ClientIP),
		RequestID: document.OrNull(e.Origin.RequestID), OccurredAt: document.Timestamp(e.At), Data: e.Data,
	}
	if e.Origin.Actor.ID != "" {
		d.Actor = &actorDocument{e.Origin.Actor.Type, e.Origin.Actor.ID, document.OrNull(e.ActorEmail)}
	}
	return d
}

// ListEvents lists the events of an organisation.
func (h *Handlers) ListEvents(ctx context.Context, request ListEventsRequestObject) (ListEventsResponseObject, error) {
	info, by := caller(ctx)
	p := request.Params
	filter, err := filterOf(p)
	if err != nil {
		return nil, err
	}
	list := []string{"listEvents", request.OrgID, p.Type, p.TenantID, p.Actor, p.Since, p.Until}
	found, meta, err := page(h, info, list, p.Limit, p.Cursor, func(after *int64, limit int) ([]management.Event, error) {
		if after == nil {
			after = new(int64)
		}
		return h.Service.Events(ctx, by, request.OrgID, filter, *after, limit)
	}, func(e management.Event) int64 { return e.Position })
	return ListEvents200JSONResponse{Body: EventList{Data: documents(found, event), Meta: meta}}, err
}

// filterOf returns the filter of the parameters.
func filterOf(p ListEventsParams) (f management.EventFilter, err error) {
	var v web.Validation
	for _, text := range []struct{ name, value string }{{"type", p.Type}, {"tenant_id", p.TenantID}, {"actor", p.Actor}} {
		if text.value != "" {
			v.Text("", text.name, text.value)
		}
	}
	f = management.EventFilter{Type: p.Type, TenantID: p.TenantID, Actor: p.Actor}
	f.Since, f.Until = instant(&v, "since", p.Since), instant(&v, "until", p.Until)
	return f, v.Err()
}

// instant reads a time; zero if it is absent.
func instant(v *web.Validation, field, text string) time.Time {
	if text == "" {
		return time.Time{}
	}
	at, err := time.Parse(time.RFC3339Nano, text)
	if err != nil {
		v.Add(field, "invalid", "must be an RFC 3339 time")
	}
	return at
}
