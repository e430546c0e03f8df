// Package incidents has the operations on the breach incidents of a tenant.
package incidents

import (
	"context"
	"errors"
	"fmt"
	"net/http"

	"github.com/go-json-experiment/json/jsontext"
	"github.com/gorilla/mux"

	"stonetown/api/web"
	"stonetown/identity/incident"
)

// Registry is the part of [incident.Registry] that the operations use.
type Registry interface {
	List(ctx context.Context, tenantID string, open bool, before string, limit int) ([]incident.Incident, error)
	Get(ctx context.Context, tenantID, incidentID string) (incident.Incident, error)
	Open(ctx context.Context, tenantID string, s incident.Settings) (incident.Incident, error)
	Update(ctx context.Context, tenantID, incidentID string, change func(*incident.Settings)) (incident.Incident, error)
	Close(ctx context.Context, tenantID, incidentID, resolution string) (incident.Incident, error)
	Affected(ctx context.Context, tenantID, incidentID, after string, limit int) ([]incident.AffectedUser, error)
	Addresses(ctx context.Context, tenantID string, affected []incident.AffectedUser) (map[string]string, error)
	AddAffected(ctx context.Context, tenantID, incidentID string, userIDs []string) (after incident.Incident, unknown []string, err error)
	RemoveAffected(ctx context.Context, tenantID, incidentID, userID string) error
	Notifications(ctx context.Context, tenantID, incidentID string) ([]incident.Notification, error)
	Notify(ctx context.Context, tenantID, incidentID, subject, message string) (incident.Notification, error)
}

// The maximum lengths of texts, in bytes.
const (
	maxTitle = 200
	maxText  = 10_000
)

// Handlers implements the operations. It is safe for concurrent use.
type Handlers struct {
	Registry Registry
	Cursors  *web.Cursors
}

var _ StrictServerInterface = (*Handlers)(nil)

// Mount adds the operations to a router. fail answers requests that end in an error.
func (h *Handlers) Mount(router *mux.Router, fail func(w http.ResponseWriter, r *http.Request, err error)) {
	HandlerWithOptions(NewStrictHandler(h, fail), GorillaServerOptions{BaseRouter: router, ErrorHandlerFunc: web.Parameters(fail)})
}

// Errors is the error format of the operations.
var Errors = web.ErrorFormat{Translate: translate}

func translate(err error) *web.Error {
	for _, known := range []struct {
		err    error
		status int
		code   string
	}{
		{incident.ErrNotFound, http.StatusNotFound, "breach_incident_not_found"},
		{incident.ErrClosed, http.StatusConflict, "breach_incident_closed"},
		{incident.ErrTooMany, http.StatusConflict, "breach_incident_limit_reached"},
		{incident.ErrTooManyAffected, http.StatusConflict, "affected_user_limit_reached"},
		{incident.ErrNobodyAffected, http.StatusConflict, "no_affected_users"},
		{incident.ErrTooManyNotifications, http.StatusConflict, "breach_notification_limit_reached"},
	} {
		if errors.Is(err, known.err) {
			return &web.Error{Status: known.status, Code: known.code, Message: known.err.Error()}
		}
	}
	if errors.Is(err, incident.ErrAssigneeNotFound) {
		return web.ValidationFailed(web.FieldError{Field: "assignee_id", Code: "not_found", Message: "assignee_id must be the id of a user"})
	}
	return nil
}

// ListBreachIncidents lists incidents.
func (h *Handlers) ListBreachIncidents(ctx context.Context, request ListBreachIncidentsRequestObject) (ListBreachIncidentsResponseObject, error) {
	info, p := web.InfoOf(ctx), request.Params
	var v web.Validation
	web.OneOf(&v, "state", string(p.State), "open")
	if err := v.Err(); err != nil {
		return nil, err
	}
	limit, err := web.Limit(p.Limit)
	if err != nil {
		return nil, err
	}
	list, before := []string{"listBreachIncidents", string(p.State)}, ""
	if p.Cursor != "" {
		if err := h.Cursors.Resume(info.Tenant.ID, list, p.Cursor, &before); err != nil {
			return nil, err
		}
	}
	found, err := h.Registry.List(ctx, info.Tenant.ID, p.State != "", before, limit+1)
	if err != nil {
		return nil, err
	}
	body := BreachIncidentList{Data: []BreachIncident{}, Meta: ListMeta{RequestID: info.RequestID, Limit: limit}}
	for _, i := range found[:min(limit, len(found))] {
		body.Data = append(body.Data, i.Document())
	}
	if len(found) > limit {
		body.Meta.NextCursor, err = h.next(info, list, found[limit-1].ID)
	}
	return ListBreachIncidents200JSONResponse{Body: body}, err
}

// next returns the cursor of the page after a position of a list.
func (h *Handlers) next(info *web.RequestInfo, list []string, last string) (*string, error) {
	cursor, err := h.Cursors.Next(info.Tenant.ID, list, last)
	return &cursor, err
}

// OpenBreachIncident opens an incident.
func (h *Handlers) OpenBreachIncident(ctx context.Context, request OpenBreachIncidentRequestObject) (OpenBreachIncidentResponseObject, error) {
	info, form := web.InfoOf(ctx), request.Body
	s := incident.Settings{
		Title: form.Title, Description: form.Description, Severity: incident.Severity(form.Severity),
		AssigneeID: form.AssigneeID, AllUsers: form.AffectsAllUsers,
	}
	if err := validate(s); err != nil {
		return nil, err
	}
	i, err := h.Registry.Open(ctx, info.Tenant.ID, s)
	return OpenBreachIncident201JSONResponse{
		Body: read(info, i), Headers: OpenBreachIncident201ResponseHeaders{Location: "/api/v1/breach-incidents/" + i.ID},
	}, err
}

// validate refuses settings that are not valid.
func validate(s incident.Settings) error {
	var v web.Validation
	v.Line("", "title", s.Title, maxTitle)
	v.Paragraphs("", "description", s.Description, maxText)
	if s.Severity == "" {
		v.Add("severity", "required", "is required")
	}
	web.OneOf(&v, "severity", s.Severity, incident.Low, incident.Medium, incident.High, incident.Critical)
	return v.Err()
}

// GetBreachIncident reads an incident.
func (h *Handlers) GetBreachIncident(ctx context.Context, request GetBreachIncidentRequestObject) (GetBreachIncidentResponseObject, error) {
	info := web.InfoOf(ctx)
	i, err := h.Registry.Get(ctx, info.Tenant.ID, request.IncidentID)
	return GetBreachIncident200JSONResponse{Body: read(info, i)}, err
}

// PatchBreachIncident changes an incident.
func (h *Handlers) PatchBreachIncident(ctx context.Context, request PatchBreachIncidentRequestObject) (PatchBreachIncidentResponseObject, error) {
	info, members := web.InfoOf(ctx), *request.Body
	var immutable []web.Member
	for _, name := range []string{"id", "state", "affected_users", "opened_at"} {
		immutable = append(immutable, web.Member{Name: name, Value: members[name]})
	}
	if err := web.RefuseImmutable(immutable...); err != nil {
		return nil, err
	}
	var v web.Validation
	change := changes(&v, members)
	if err := v.Err(); err != nil {
		return nil, err
	}
	changed := incident.Settings{Title: "title", Severity: incident.Low} // what is stored is valid, too
	change(&changed)
	if err := validate(changed); err != nil {
		return nil, err
	}
	i, err := h.Registry.Update(ctx, info.Tenant.ID, request.IncidentID, change)
	return PatchBreachIncident200JSONResponse{Body: read(info, i)}, err
}

// changes returns what the members of a form change. An absent member changes nothing.
func changes(v *web.Validation, form map[string]jsontext.Value) func(*incident.Settings) {
	var all []func(*incident.Settings)
	member(v, form, &all, "title", "must be a string", false, func(s *incident.Settings) *string { return &s.Title })
	member(v, form, &all, "description", "must be a string or null", true, func(s *incident.Settings) *string { return &s.Description })
	member(v, form, &all, "severity", "must be a string", false, func(s *incident.Settings) *incident.Severity { return &s.Severity })
	member(v, form, &all, "assignee_id", "must be a string or null", true, func(s *incident.Settings) *string { return &s.AssigneeID })
	member(v, form, &all, "affects_all_users", "must be true or false", false, func(s *incident.Settings) *bool { return &s.AllUsers })
	return func(s *incident.Settings) {
		for _, change := range all {
			change(s)
		}
	}
}

// member reads a member that is a field of the settings. Null is the zero value where it is allowed.
func member[T any](v *web.Validation, form map[string]jsontext.Value, all *[]func(*incident.Settings), name, must string, null bool, field func(*incident.Settings) *T) {
	if said := web.ReadMember[T](v, form, name, must, null); said != nil {
		*all = append(*all, func(s *incident.Settings) { *field(s) = *said })
	}
}

// CloseBreachIncident closes an incident.
func (h *Handlers) CloseBreachIncident(ctx context.Context, request CloseBreachIncidentRequestObject) (CloseBreachIncidentResponseObject, error) {
	info, resolution := web.InfoOf(ctx), request.Body.Resolution
	if err := text("resolution", resolution).Err(); err != nil {
		return nil, err
	}
	i, err := h.Registry.Close(ctx, info.Tenant.ID, request.IncidentID, resolution)
	return CloseBreachIncident200JSONResponse{Body: read(info, i)}, err
}

// text validates a required text of several lines.
func text(field, value string) *web.Validation {
	var v web.Validation
	if v.Text("", field, value) {
		v.Paragraphs("", field, value, maxText)
	}
	return &v
}

// ListAffectedUsers lists the users of the list of an incident.
func (h *Handlers) ListAffectedUsers(ctx context.Context, request ListAffectedUsersRequestObject) (ListAffectedUsersResponseObject, error) {
	info, p := web.InfoOf(ctx), request.Params
	limit, err := web.Limit(p.Limit)
	if err != nil {
		return nil, err
	}
	list, after := []string{"listAffectedUsers", request.IncidentID}, ""
	if p.Cursor != "" {
		if err := h.Cursors.Resume(info.Tenant.ID, list, p.Cursor, &after); err != nil {
			return nil, err
		}
	}
	found, err := h.Registry.Affected(ctx, info.Tenant.ID, request.IncidentID, after, limit+1)
	if err != nil {
		return nil, err
	}
	body := AffectedUserList{Data: []AffectedUser{}, Meta: ListMeta{RequestID: info.RequestID, Limit: limit}}
	page, addresses := found[:min(limit, len(found))], map[string]string{}
	if info.Principal.Scopes.Has("users:read") {
		if addresses, err = h.Registry.Addresses(ctx, info.Tenant.ID, page); err != nil {
			return nil, err
		}
	}
	for _, u := range page {
		body.Data = append(body.Data, u.Document(addresses[u.UserID]))
	}
	if len(found) > limit {
		body.Meta.NextCursor, err = h.next(info, list, found[limit-1].UserID)
	}
	return ListAffectedUsers200JSONResponse{Body: body}, err
}

// AddAffectedUsers adds users to the list of an incident.
func (h *Handlers) AddAffectedUsers(ctx context.Context, request AddAffectedUsersRequestObject) (AddAffectedUsersResponseObject, error) {
	info, userIDs := web.InfoOf(ctx), request.Body.UserIds
	var v web.Validation
	if len(userIDs) == 0 || len(userIDs) > incident.MaxAtOnce {
		v.Add("user_ids", "out_of_range", fmt.Sprintf("must have 1 to %d ids", incident.MaxAtOnce))
	} else {
		for n, userID := range userIDs {
			v.Text("", fmt.Sprintf("user_ids/%d", n), userID)
		}
	}
	if err := v.Err(); err != nil {
		return nil, err
	}
	i, unknown, err := h.Registry.AddAffected(ctx, info.Tenant.ID, request.IncidentID, userIDs)
	body := AffectedUsersAdded{Meta: Meta{RequestID: info.RequestID}}
	body.Data.AffectedUsers, body.Data.UnknownUserIds = i.Affected, append([]string{}, unknown...)
	return AddAffectedUsers200JSONResponse{Body: body}, err
}

// RemoveAffectedUser removes a user from the list of an incident.
func (h *Handlers) RemoveAffectedUser(ctx context.Context, request RemoveAffectedUserRequestObject) (RemoveAffectedUserResponseObject, error) {
	err := h.Registry.RemoveAffected(ctx, web.InfoOf(ctx).Tenant.ID, request.IncidentID, request.UserID)
	return RemoveAffectedUser204Response{}, err
}

// ListBreachNotifications lists the notifications of an incident, of which there are few.
func (h *Handlers) ListBreachNotifications(ctx context.Context, request ListBreachNotificationsRequestObject) (ListBreachNotificationsResponseObject, error) {
	info := web.InfoOf(ctx)
	found, err := h.Registry.Notifications(ctx, info.Tenant.ID, request.IncidentID)
	if err != nil {
		return nil, err
	}
	page, limit, next, err := web.Page(h.Cursors, info.Tenant.ID, []string{"listBreachNotifications", request.IncidentID}, request.Params.Limit, request.Params.Cursor, found, func(n incident.Notification) string { return n.ID })
	if err != nil {
		return nil, err
	}
	body := BreachNotificationList{Data: []BreachNotification{}, Meta: ListMeta{RequestID: info.RequestID, Limit: limit, NextCursor: next}}
	for _, n := range page {
		body.Data = append(body.Data, n.Document())
	}
	return ListBreachNotifications200JSONResponse{Body: body}, nil
}

// NotifyAffectedUsers begins to send mails to the affected users.
func (h *Handlers) NotifyAffectedUsers(ctx context.Context, request NotifyAffectedUsersRequestObject) (NotifyAffectedUsersResponseObject, error) {
	info, form := web.InfoOf(ctx), request.Body
	v := text("message", form.Message)
	v.Line("", "subject", form.Subject, maxTitle)
	if err := v.Err(); err != nil {
		return nil, err
	}
	n, err := h.Registry.Notify(ctx, info.Tenant.ID, request.IncidentID, form.Subject, form.Message)
	return NotifyAffectedUsers202JSONResponse{Body: BreachNotificationRead{Data: n.Document(), Meta: Meta{RequestID: info.RequestID}}}, err
}

func read(info *web.RequestInfo, i incident.Incident) BreachIncidentRead {
	return BreachIncidentRead{Data: i.Document(), Meta: Meta{RequestID: info.RequestID}}
}
