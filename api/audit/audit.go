// Package audit has the operations on the event log of a tenant.
package audit

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"time"

	"github.com/gorilla/mux"

	"stonetown/api/web"
	"stonetown/internal/auditlog"
)

// Log is the part of [auditlog.Reader] that the operations use.
type Log interface {
	Events(ctx context.Context, tenantID string, f auditlog.Filter, before int64, limit int) (auditlog.Page, error)
	Event(ctx context.Context, tenantID string, position int64) (auditlog.Event, error)
	Summary(ctx context.Context, tenantID string, since time.Time) (auditlog.Summary, error)
}

// Handlers implements the operations. It is safe for concurrent use.
type Handlers struct {
	Log     Log
	Cursors *web.Cursors
}

var _ StrictServerInterface = (*Handlers)(nil)

// event is an event as the operations answer it.
type event = auditlog.Event

// summary is a summary as the operations answer it.
type summary = auditlog.Summary

// Mount adds the operations to a router. fail answers requests that end in an error.
func (h *Handlers) Mount(router *mux.Router, fail func(w http.ResponseWriter, r *http.Request, err error)) {
	HandlerWithOptions(NewStrictHandler(h, fail), GorillaServerOptions{BaseRouter: router, ErrorHandlerFunc: web.Parameters(fail)})
}

// Errors is the error format of the operations.
var Errors = web.ErrorFormat{Translate: func(err error) *web.Error {
	if errors.Is(err, auditlog.ErrNotFound) {
		return &web.Error{Status: http.StatusNotFound, Code: "event_not_found", Message: auditlog.ErrNotFound.Error()}
	}
	return nil
}}

// ListAuditEvents lists events.
func (h *Handlers) ListAuditEvents(ctx context.Context, request ListAuditEventsRequestObject) (ListAuditEventsResponseObject, error) {
	info, p := web.InfoOf(ctx), request.Params
	filter, err := filterOf(p)
	if err != nil {
		return nil, err
	}
	limit, err := web.Limit(p.Limit)
	if err != nil {
		return nil, err
	}
	list := []string{"listAuditEvents", p.Type, p.Actor, p.About, p.Since, p.Until}
	var before int64
	if p.Cursor != "" {
		if err := h.Cursors.Resume(info.Tenant.ID, list, p.Cursor, &before); err != nil {
			return nil, err
		}
	}
	page, err := h.Log.Events(ctx, info.Tenant.ID, filter, before, limit)
	if err != nil {
		return nil, err
	}
	body := AuditEventList{Data: append([]AuditEvent{}, page.Events...), Meta: ListMeta{RequestID: info.RequestID, Limit: limit}}
	if page.Before > 1 {
		next, err := h.Cursors.Next(info.Tenant.ID, list, page.Before)
		if err != nil {
			return nil, err
		}
		body.Meta.NextCursor = &next
	}
	return ListAuditEvents200JSONResponse{Body: body}, nil
}

// filterOf reads the filter of the parameters.
func filterOf(p ListAuditEventsParams) (f auditlog.Filter, err error) {
	var v web.Validation
	for _, one := range []struct{ name, value string }{{"type", p.Type}, {"actor", p.Actor}, {"about", p.About}} {
		if one.value != "" {
			v.Text("", one.name, one.value)
		}
	}
	f = auditlog.Filter{Type: p.Type, Actor: p.Actor, About: p.About}
	for _, one := range []struct {
		name, value string
		to          *time.Time
	}{{"since", p.Since, &f.Since}, {"until", p.Until, &f.Until}} {
		if one.value == "" {
			continue
		}
		at, err := time.Parse(time.RFC3339Nano, one.value)
		if err != nil {
			v.Add(one.name, "invalid", "must be an RFC 3339 time")
		}
		*one.to = at
	}
	return f, v.Err()
}

// GetAuditEvent reads an event.
func (h *Handlers) GetAuditEvent(ctx context.Context, request GetAuditEventRequestObject) (GetAuditEventResponseObject, error) {
	info := web.InfoOf(ctx)
	position, err := strconv.ParseInt(request.Sequence, 10, 64)
	if err != nil || position < 1 {
		return nil, auditlog.ErrNotFound
	}
	e, err := h.Log.Event(ctx, info.Tenant.ID, position)
	return GetAuditEvent200JSONResponse{Body: AuditEventRead{Data: e, Meta: Meta{RequestID: info.RequestID}}}, err
}

// maxDays is how many days a summary can have.
const maxDays = 90

// SummarizeAuditEvents counts events.
func (h *Handlers) SummarizeAuditEvents(ctx context.Context, request SummarizeAuditEventsRequestObject) (SummarizeAuditEventsResponseObject, error) {
	info, days := web.InfoOf(ctx), 7
	if request.Params.Days != nil {
		days = *request.Params.Days
	}
	if days < 1 || days > maxDays {
		return nil, web.ValidationFailed(web.FieldError{Field: "days", Code: "out_of_range", Message: fmt.Sprintf("days must be between 1 and %d", maxDays)})
	}
	s, err := h.Log.Summary(ctx, info.Tenant.ID, time.Now().UTC().AddDate(0, 0, -days))
	return SummarizeAuditEvents200JSONResponse{Body: AuditSummaryRead{Data: s, Meta: Meta{RequestID: info.RequestID}}}, err
}
