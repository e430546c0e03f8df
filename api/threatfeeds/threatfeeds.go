// Package threatfeeds has the operations on the threat feeds of a tenant.
package threatfeeds

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
	"github.com/gorilla/mux"

	"stonetown/api/web"
	"stonetown/identity/threat"
)

// Feeds is the part of [threat.Feeds] that the operations use.
type Feeds interface {
	List(ctx context.Context, tenantID string) ([]threat.Feed, error)
	Get(ctx context.Context, tenantID, feedID string) (threat.Feed, error)
	Create(ctx context.Context, tenantID string, kind threat.Kind, source threat.Source, set threat.Settings) (threat.Feed, error)
	Update(ctx context.Context, tenantID, feedID string, change func(threat.Feed, *threat.Settings) error) (threat.Feed, error)
	Upload(ctx context.Context, tenantID, feedID string, text []byte) (threat.Feed, error)
	Refresh(ctx context.Context, tenantID, feedID string) (threat.Feed, error)
	Lookup(ctx context.Context, tenantID, feedID, value string) (entry string, err error)
	Delete(ctx context.Context, tenantID, feedID string) error
}

const path = "/api/v1/threat-feeds/"

// maxName is the maximum length of a name, in bytes.
const maxName = 100

// Handlers implements the operations. It is safe for concurrent use.
type Handlers struct {
	Feeds   Feeds
	Cursors *web.Cursors
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
		{threat.ErrNotFound, http.StatusNotFound, "threat_feed_not_found"},
		{threat.ErrTooMany, http.StatusConflict, "threat_feed_limit_reached"},
		{threat.ErrSource, http.StatusConflict, "threat_feed_source_mismatch"},
		{threat.ErrDisabled, http.StatusConflict, "threat_feed_disabled"},
		{threat.ErrTooSoon, http.StatusConflict, "threat_feed_refresh_too_soon"},
	} {
		if errors.Is(err, known.err) {
			return &web.Error{Status: known.status, Code: known.code, Message: known.err.Error()}
		}
	}
	if list, ok := errors.AsType[*threat.ListError](err); ok {
		return web.ValidationFailed(web.FieldError{Field: "body", Code: "invalid", Message: list.Error()})
	}
	if url, ok := errors.AsType[*threat.URLError](err); ok {
		return web.ValidationFailed(web.FieldError{Field: "url", Code: "url_invalid", Message: "url " + url.Error()})
	}
	if errors.Is(err, threat.ErrValue) {
		return web.ValidationFailed(web.FieldError{Field: "value", Code: "invalid", Message: "value must be an IP address for a feed of addresses, and a domain or e-mail address for one of domains"})
	}
	return nil
}

// ListThreatFeeds lists feeds: a tenant has at most [threat.MaxFeeds].
func (h *Handlers) ListThreatFeeds(ctx context.Context, request ListThreatFeedsRequestObject) (ListThreatFeedsResponseObject, error) {
	info := web.InfoOf(ctx)
	found, err := h.Feeds.List(ctx, info.Tenant.ID)
	if err != nil {
		return nil, err
	}
	page, limit, next, err := web.Page(h.Cursors, info.Tenant.ID, []string{"listThreatFeeds"}, request.Params.Limit, request.Params.Cursor, found, func(f threat.Feed) string { return f.ID })
	if err != nil {
		return nil, err
	}
	body := ThreatFeedList{Data: []ThreatFeed{}, Meta: ListMeta{RequestID: info.RequestID, Limit: limit, NextCursor: next}}
	for _, f := range page {
		body.Data = append(body.Data, f.Document())
	}
	return ListThreatFeeds200JSONResponse{Body: body}, nil
}

// CreateThreatFeed creates a feed.
func (h *Handlers) CreateThreatFeed(ctx context.Context, request CreateThreatFeedRequestObject) (CreateThreatFeedResponseObject, error) {
	info, members := web.InfoOf(ctx), *request.Body
	var v web.Validation
	kind := choice(&v, members, "kind", threat.Address, threat.MailDomain)
	source := choice(&v, members, "source", threat.FromURL, threat.FromUpload)
	for _, name := range []string{"name", "mode"} {
		if members[name] == nil {
			v.Add(name, "required", "is required")
		}
	}
	set := threat.Settings{Enabled: true}
	if source == threat.FromURL {
		set.RefreshS = threat.DefaultRefreshS
	}
	change := changes(&v, members)
	if err := v.Err(); err != nil {
		return nil, err
	}
	change(&set)
	if err := validate(source, set); err != nil {
		return nil, err
	}
	f, err := h.Feeds.Create(ctx, info.Tenant.ID, kind, source, set)
	return CreateThreatFeed201JSONResponse{Body: read(info, f), Headers: CreateThreatFeed201ResponseHeaders{Location: path + f.ID}}, err
}

// choice reads a required member that is one of a few strings.
func choice[T ~string](v *web.Validation, form map[string]jsontext.Value, name string, options ...T) (chosen T) {
	value := form[name]
	switch {
	case value == nil || value.Kind() == 'n':
		v.Add(name, "required", "is required")
	case json.Unmarshal(value, &chosen) != nil:
		v.Add(name, "type_invalid", "must be a string")
	case chosen == "":
		v.Add(name, "required", "is required")
	default:
		web.OneOf(v, name, chosen, options...)
	}
	return chosen
}

// GetThreatFeed reads a feed.
func (h *Handlers) GetThreatFeed(ctx context.Context, request GetThreatFeedRequestObject) (GetThreatFeedResponseObject, error) {
	info := web.InfoOf(ctx)
	f, err := h.Feeds.Get(ctx, info.Tenant.ID, request.FeedID)
	return GetThreatFeed200JSONResponse{Body: read(info, f)}, err
}

// PatchThreatFeed changes a feed.
func (h *Handlers) PatchThreatFeed(ctx context.Context, request PatchThreatFeedRequestObject) (PatchThreatFeedResponseObject, error) {
	info, members := web.InfoOf(ctx), *request.Body
	var immutable []web.Member
	for _, name := range []string{"id", "kind", "source", "entries", "created_at"} {
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
	f, err := h.Feeds.Update(ctx, info.Tenant.ID, request.FeedID, func(f threat.Feed, set *threat.Settings) error {
		change(set)
		return validate(f.Source, *set)
	})
	return PatchThreatFeed200JSONResponse{Body: read(info, f)}, err
}

// changes returns what the members of a form change. An absent member changes nothing.
func changes(v *web.Validation, form map[string]jsontext.Value) func(*threat.Settings) {
	var all []func(*threat.Settings)
	member(v, form, &all, "name", "must be a string", false, func(s *threat.Settings, to string) { s.Name = to })
	member(v, form, &all, "url", "must be a string", true, func(s *threat.Settings, to string) { s.URL = to })
	member(v, form, &all, "mode", "must be a string", false, func(s *threat.Settings, to threat.Mode) { s.Mode = to })
	member(v, form, &all, "enabled", "must be true or false", false, func(s *threat.Settings, to bool) { s.Enabled = to })
	member(v, form, &all, "refresh_interval_s", "must be a whole number, or null", true, func(s *threat.Settings, to *int) {
		switch {
		case to != nil:
			s.RefreshS = *to
		case s.RefreshS != 0:
			s.RefreshS = threat.DefaultRefreshS
		}
	})
	return func(s *threat.Settings) {
		for _, change := range all {
			change(s)
		}
	}
}

// member reads a member. Null is the zero value where it is allowed.
func member[T any](v *web.Validation, form map[string]jsontext.Value, all *[]func(*threat.Settings), name, must string, null bool, set func(*threat.Settings, T)) {
	if said := web.ReadMember[T](v, form, name, must, null); said != nil {
		*all = append(*all, func(s *threat.Settings) { set(s, *said) })
	}
}

// validate refuses settings that are not valid. That the URL can be fetched is validated later.
func validate(source threat.Source, s threat.Settings) error {
	var v web.Validation
	v.Line("", "name", s.Name, maxName)
	if s.Mode == "" {
		v.Add("mode", "required", "is required")
	}
	web.OneOf(&v, "mode", s.Mode, threat.Log, threat.Refuse)
	switch {
	case source == threat.FromURL && s.URL == "":
		v.Add("url", "required", "is required with the source url")
	case source == threat.FromUpload && s.URL != "":
		v.Add("url", "unexpected", "is only for the source url")
	}
	switch {
	case source == threat.FromURL && (s.RefreshS < threat.LeastRefreshS || s.RefreshS > threat.MostRefreshS):
		v.Add("refresh_interval_s", "out_of_range", fmt.Sprintf("must be %d to %d", threat.LeastRefreshS, threat.MostRefreshS))
	case source == threat.FromUpload && s.RefreshS != 0:
		v.Add("refresh_interval_s", "unexpected", "is only for the source url")
	}
	return v.Err()
}

// PutThreatFeedEntries replaces the entries of a feed.
func (h *Handlers) PutThreatFeedEntries(ctx context.Context, request PutThreatFeedEntriesRequestObject) (PutThreatFeedEntriesResponseObject, error) {
	info := web.InfoOf(ctx)
	text, err := io.ReadAll(request.Body)
	if err != nil {
		return nil, err
	}
	f, err := h.Feeds.Upload(ctx, info.Tenant.ID, request.FeedID, text)
	return PutThreatFeedEntries200JSONResponse{Body: read(info, f)}, err
}

// RefreshThreatFeed begins to fetch the list of a feed.
func (h *Handlers) RefreshThreatFeed(ctx context.Context, request RefreshThreatFeedRequestObject) (RefreshThreatFeedResponseObject, error) {
	info := web.InfoOf(ctx)
	f, err := h.Feeds.Refresh(ctx, info.Tenant.ID, request.FeedID)
	return RefreshThreatFeed202JSONResponse{Body: read(info, f)}, err
}

// LookUpThreat looks a value up in the list of a feed.
func (h *Handlers) LookUpThreat(ctx context.Context, request LookUpThreatRequestObject) (LookUpThreatResponseObject, error) {
	info, value := web.InfoOf(ctx), request.Params.Value
	entry, err := h.Feeds.Lookup(ctx, info.Tenant.ID, request.FeedID, value)
	body := ThreatLookup{Meta: Meta{RequestID: info.RequestID}}
	body.Data.Value, body.Data.Matched = value, entry != ""
	if entry != "" {
		body.Data.Entry = &entry
	}
	return LookUpThreat200JSONResponse{Body: body}, err
}

// DeleteThreatFeed deletes a feed.
func (h *Handlers) DeleteThreatFeed(ctx context.Context, request DeleteThreatFeedRequestObject) (DeleteThreatFeedResponseObject, error) {
	err := h.Feeds.Delete(ctx, web.InfoOf(ctx).Tenant.ID, request.FeedID)
	return DeleteThreatFeed204Response{}, err
}

func read(info *web.RequestInfo, f threat.Feed) ThreatFeedRead {
	return ThreatFeedRead{Data: f.Document(), Meta: Meta{RequestID: info.RequestID}}
}
