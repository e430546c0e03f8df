// Package scim serves SCIM 2.0 (RFC 7644) at /scim/v2 of a tenant: the operations of package
// [stonetown/identity/scim] as requests and responses.
//
// The operations are not in the OpenAPI document. The shapes of their bodies are those of the
// schemas that the interface serves itself (/Schemas), in two media types and with an error format
// of their own, so types that are generated from the document would hold nothing but an object.
// They pass the same pipeline as all others: token, scope, limits, places and idempotency keys.
package scim

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"strings"

	"github.com/go-json-experiment/json"
	"github.com/gorilla/mux"

	"stonetown/api/web"
	"stonetown/identity/scim"
	"stonetown/internal/id"
	"stonetown/internal/ratelimit"
)

const (
	// Root is the path of the interface.
	Root = "/scim/v2"
	// Scope is required by all operations on resources.
	Scope = "scim:write"

	scimType = "application/scim+json"
	jsonType = "application/json"
)

// Service is the part of [scim.Service] that the operations use.
type Service interface {
	List(ctx context.Context, c scim.Client, t *scim.Type, q scim.Query) (scim.Page, error)
	User(ctx context.Context, c scim.Client, id string) (scim.Resource, error)
	CreateUser(ctx context.Context, c scim.Client, in scim.Object) (scim.Resource, error)
	ReplaceUser(ctx context.Context, c scim.Client, id string, in scim.Object, match scim.Match) (scim.Resource, error)
	PatchUser(ctx context.Context, c scim.Client, id string, operations []scim.Operation, match scim.Match) (scim.Resource, error)
	DeleteUser(ctx context.Context, c scim.Client, id string, match scim.Match) error
	GroupsOfUser(ctx context.Context, c scim.Client, r scim.Resource) error
	Group(ctx context.Context, c scim.Client, id string) (scim.Resource, error)
	CreateGroup(ctx context.Context, c scim.Client, in scim.Object) (scim.Resource, error)
	ReplaceGroup(ctx context.Context, c scim.Client, id string, in scim.Object, match scim.Match) (scim.Resource, error)
	PatchGroup(ctx context.Context, c scim.Client, id string, operations []scim.Operation, match scim.Match) (scim.Resource, error)
	DeleteGroup(ctx context.Context, c scim.Client, id string, match scim.Match) error
	MembersOf(ctx context.Context, c scim.Client, groups ...scim.Resource) error
	Bulk(ctx context.Context, c scim.Client, operations []scim.BulkOperation, failOnErrors int, internal func(error)) ([]*scim.BulkResult, error)
}

// Handlers implements the operations. It is safe for concurrent use.
type Handlers struct {
	Service Service
	Cursors *web.Cursors
	// Fail answers a request with an error.
	Fail func(w http.ResponseWriter, r *http.Request, err error)
	// Internal logs an internal error of an operation in a bulk request.
	Internal func(r *http.Request, err error)
}

// Errors is the error format of the operations.
var Errors = web.ErrorFormat{Translate: translate, Render: render}

func translate(err error) *web.Error {
	if e := scim.Translate(err); e != nil {
		return &web.Error{Status: e.Status, Code: string(e.Type), Message: e.Detail}
	}
	return nil
}

// types are the scimTypes of the errors of the pipeline.
var types = map[string]scim.ErrorType{
	"invalid_json": scim.InvalidSyntax, "validation_failed": scim.InvalidValue, "cursor_invalid": scim.InvalidCursor,
}

// render writes an error (RFC 7644 §3.12).
func render(w http.ResponseWriter, e *web.Error, info *web.RequestInfo) {
	one := &scim.Error{Status: e.Status, Detail: e.Message}
	if t, ok := types[e.Code]; ok {
		one.Type = t
	} else if t := scim.ErrorType(e.Code); slices.Contains(scim.ErrorTypes, t) {
		one.Type = t
	}
	// An error means that the client has disconnected.
	_ = send(w, scimType, e.Status, one.Document())
}

// send writes a body in one of the two media types.
func send(w http.ResponseWriter, mediaType string, status int, body any) error {
	text, err := json.Marshal(body, json.Deterministic(true))
	if err != nil {
		return fmt.Errorf("encode response: %w", err)
	}
	w.Header().Set("Content-Type", mediaType)
	w.WriteHeader(status)
	_, err = w.Write(text)
	return err
}

// operation is a handler that returns its response.
type operation func(q *request) (response, error)

// request is a request of a provisioning client.
type request struct {
	*http.Request
	w      http.ResponseWriter
	info   *web.RequestInfo
	client scim.Client
	id     string // in the path, or of the caller
	wanted scim.Projection
}

// response is the response to a request; the zero value has no body.
type response struct {
	status   int
	body     any
	resource *scim.Resource // has a version and a location
}

// Routes returns the handlers of the paths.
func (h *Handlers) Routes(handle func(web.Operation, web.ErrorFormat, http.Handler) http.Handler) map[string]map[string]http.Handler {
	routes := map[string]map[string]http.Handler{}
	add := func(method, path, name string, do operation) {
		op := web.Operation{
			ID: "scim" + name, Method: method, Path: Root + path, Tag: "scim", Scope: Scope, RateLimit: ratelimit.Provisioning,
			Idempotent: method != http.MethodGet,
		}
		if routes[op.Path] == nil {
			routes[op.Path] = map[string]http.Handler{}
		}
		routes[op.Path][method] = handle(op, Errors, h.run(do))
	}
	public := func(path, name string, do operation) {
		op := web.Operation{ID: "scim" + name, Method: http.MethodGet, Path: Root + path, Tag: "scim", RateLimit: ratelimit.None}
		routes[op.Path] = map[string]http.Handler{http.MethodGet: handle(op, Errors, h.run(do))}
	}
	public("/ServiceProviderConfig", "ServiceProviderConfig", serviceProvider)
	public("/Schemas", "Schemas", schemas)
	public("/Schemas/{id}", "Schema", schema)
	public("/ResourceTypes", "ResourceTypes", resourceTypes)
	public("/ResourceTypes/{id}", "ResourceType", resourceType)
	for _, t := range scim.Types {
		k := h.kind(t)
		add(http.MethodGet, t.Endpoint, "List"+t.Name, k.list)
		add(http.MethodPost, t.Endpoint+"/.search", "Search"+t.Name, k.search)
		add(http.MethodPost, t.Endpoint, "Create"+t.Name, k.post)
		add(http.MethodGet, t.Endpoint+"/{id}", "Get"+t.Name, k.get)
		add(http.MethodPut, t.Endpoint+"/{id}", "Replace"+t.Name, k.put)
		add(http.MethodPatch, t.Endpoint+"/{id}", "Patch"+t.Name, k.patch)
		add(http.MethodDelete, t.Endpoint+"/{id}", "Delete"+t.Name, k.remove)
	}
	users := h.kind(scim.Users)
	add(http.MethodGet, "/Me", "GetMe", me(users.get))
	add(http.MethodPut, "/Me", "ReplaceMe", me(users.put))
	add(http.MethodPatch, "/Me", "PatchMe", me(users.patch))
	add(http.MethodPost, "/Bulk", "Bulk", h.bulk)
	return routes
}

// run reads the common parts of a request and writes the response.
func (h *Handlers) run(do operation) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		info := web.InfoOf(r.Context())
		q := &request{Request: r, w: w, info: info, id: mux.Vars(r)["id"], client: scim.Client{TenantID: info.Tenant.ID, Base: info.Tenant.BaseURL + Root}}
		if info.Principal != nil {
			q.client.ID = info.Principal.ClientID
		}
		mediaType, err := negotiate(r.Header.Values("Accept"))
		if err == nil {
			params := info.Query()
			q.wanted, err = scim.ParseProjection(params.Get("attributes"), params.Get("excludedAttributes"))
		}
		var res response
		if err == nil {
			res, err = do(q)
		}
		if err != nil {
			h.Fail(w, r, err)
			return
		}
		if res.resource != nil {
			w.Header().Set("ETag", res.resource.Version)
			w.Header().Set("Location", res.resource.Location)
			if have := r.Header.Get("If-None-Match"); r.Method == http.MethodGet && have != "" && scim.Matches(have, res.resource.Version) {
				w.WriteHeader(http.StatusNotModified)
				return
			}
		}
		if res.body == nil {
			w.WriteHeader(res.status)
			return
		}
		if err := send(w, mediaType, res.status, res.body); err != nil {
			h.Internal(r, err) // the client has disconnected
		}
	})
}

// negotiate returns the media type of the response (RFC 7644 §3.8).
func negotiate(accept []string) (string, error) {
	list := strings.Join(accept, ",")
	if list == "" {
		return scimType, nil
	}
	plain := false
	for item := range strings.SplitSeq(list, ",") {
		name, _, _ := strings.Cut(item, ";")
		switch strings.ToLower(strings.TrimSpace(name)) {
		case scimType, "*/*", "application/*":
			return scimType, nil
		case jsonType:
			plain = true
		}
	}
	if plain {
		return jsonType, nil
	}
	return "", &scim.Error{Status: http.StatusNotAcceptable, Detail: "responses are " + scimType + " or " + jsonType}
}

// decode reads the body.
func (q *request) decode(v any) error {
	name, _, _ := strings.Cut(q.Header.Get("Content-Type"), ";")
	if name = strings.ToLower(strings.TrimSpace(name)); name != scimType && name != jsonType {
		return &scim.Error{Status: http.StatusUnsupportedMediaType, Detail: "the body must be " + scimType + " or " + jsonType}
	}
	return web.DecodeJSON(q.w, q.Request, v)
}

func (q *request) match() scim.Match {
	return scim.Match(strings.Join(q.Header.Values("If-Match"), ","))
}

// me is an operation on the caller (RFC 7644 §3.11).
func me(do operation) operation {
	return func(q *request) (response, error) {
		q.id = q.info.Principal.Subject
		if !strings.HasPrefix(q.id, id.User+"_") {
			return response{}, &scim.Error{Status: http.StatusNotFound, Detail: "the token is not that of a user"}
		}
		return do(q)
	}
}

// bulk executes several operations (RFC 7644 §3.7).
func (h *Handlers) bulk(q *request) (response, error) {
	var body struct {
		FailOnErrors int                  `json:"failOnErrors"`
		Operations   []scim.BulkOperation `json:"Operations"`
	}
	if err := q.decode(&body); err != nil {
		return response{}, err
	}
	if body.FailOnErrors < 0 {
		return response{}, &scim.Error{Status: http.StatusBadRequest, Type: scim.InvalidValue, Detail: "failOnErrors must not be negative"}
	}
	results, err := h.Service.Bulk(q.Context(), q.client, body.Operations, body.FailOnErrors, func(err error) { h.Internal(q.Request, err) })
	if results == nil {
		results = []*scim.BulkResult{}
	}
	return response{status: http.StatusOK, body: map[string]any{"schemas": []string{scim.BulkResponse}, "Operations": results}}, err
}

// number reads a parameter that is a whole number.
func number(text string, otherwise int) (int, error) {
	if text == "" {
		return otherwise, nil
	}
	n, err := strconv.Atoi(text)
	if errors.Is(err, strconv.ErrRange) || err == nil && (n > 1<<30 || n < -1<<30) {
		return 0, &scim.Error{Status: http.StatusBadRequest, Type: scim.InvalidValue, Detail: "startIndex and count must be small whole numbers"}
	}
	if err != nil {
		return 0, &scim.Error{Status: http.StatusBadRequest, Type: scim.InvalidValue, Detail: "startIndex and count must be whole numbers"}
	}
	return n, nil
}
