package scim

import (
	"context"
	"fmt"
	"net/http"
	"strings"

	"stonetown/identity/scim"
)

// kind has the operations on one type of resources.
type kind struct {
	*Handlers
	of      *scim.Type
	read    func(context.Context, scim.Client, string) (scim.Resource, error)
	create  func(context.Context, scim.Client, scim.Object) (scim.Resource, error)
	replace func(context.Context, scim.Client, string, scim.Object, scim.Match) (scim.Resource, error)
	change  func(context.Context, scim.Client, string, []scim.Operation, scim.Match) (scim.Resource, error)
	drop    func(context.Context, scim.Client, string, scim.Match) error
}

func (h *Handlers) kind(t *scim.Type) *kind {
	s := h.Service
	if t == scim.Users {
		return &kind{h, t, s.User, s.CreateUser, s.ReplaceUser, s.PatchUser, s.DeleteUser}
	}
	return &kind{h, t, s.Group, s.CreateGroup, s.ReplaceGroup, s.PatchGroup, s.DeleteGroup}
}

// show returns the response with a resource.
func (k *kind) show(q *request, status int, r scim.Resource, err error) (response, error) {
	if err == nil {
		err = k.complete(q, q.wanted, r)
	}
	if err != nil {
		return response{}, err
	}
	return response{status, q.wanted.Apply(k.of, r.Object), &r}, nil
}

// complete adds the attributes that are read for themselves, if they are selected.
func (k *kind) complete(q *request, wanted scim.Projection, resources ...scim.Resource) error {
	if k.of == scim.Groups && wanted.Wants("members", "default") {
		return k.Service.MembersOf(q.Context(), q.client, resources...)
	}
	if k.of == scim.Users && wanted.Wants("groups", "request") {
		for _, r := range resources {
			if err := k.Service.GroupsOfUser(q.Context(), q.client, r); err != nil {
				return err
			}
		}
	}
	return nil
}

func (k *kind) get(q *request) (response, error) {
	r, err := k.read(q.Context(), q.client, q.id)
	return k.show(q, http.StatusOK, r, err)
}

func (k *kind) post(q *request) (response, error) {
	var in scim.Object
	if err := q.decode(&in); err != nil {
		return response{}, err
	}
	r, err := k.create(q.Context(), q.client, in)
	return k.show(q, http.StatusCreated, r, err)
}

func (k *kind) put(q *request) (response, error) {
	var in scim.Object
	if err := q.decode(&in); err != nil {
		return response{}, err
	}
	r, err := k.replace(q.Context(), q.client, q.id, in, q.match())
	return k.show(q, http.StatusOK, r, err)
}

func (k *kind) patch(q *request) (response, error) {
	var in scim.Object
	if err := q.decode(&in); err != nil {
		return response{}, err
	}
	operations, err := scim.Operations(in)
	if err != nil {
		return response{}, err
	}
	r, err := k.change(q.Context(), q.client, q.id, operations, q.match())
	if k.of == scim.Groups && q.info.Query().Get("attributes") == "" { // RFC 7644 §3.5.2
		if err != nil {
			return response{}, err
		}
		return response{status: http.StatusNoContent, resource: &r}, nil
	}
	return k.show(q, http.StatusOK, r, err)
}

func (k *kind) remove(q *request) (response, error) {
	return response{status: http.StatusNoContent}, k.drop(q.Context(), q.client, q.id, q.match())
}

// search are the parameters of a list.
type search struct {
	Attributes         []string `json:"attributes"`
	ExcludedAttributes []string `json:"excludedAttributes"`
	Filter             string   `json:"filter"`
	SortBy             string   `json:"sortBy"`
	SortOrder          string   `json:"sortOrder"`
	StartIndex         *int     `json:"startIndex"`
	Count              *int     `json:"count"`
	Cursor             *string  `json:"cursor"`
}

// list lists resources by the parameters of the URL (RFC 7644 §3.4.2).
func (k *kind) list(q *request) (response, error) {
	params := q.info.Query()
	in := search{Filter: params.Get("filter"), SortBy: params.Get("sortBy"), SortOrder: params.Get("sortOrder")}
	start, err := number(params.Get("startIndex"), 1)
	if err != nil {
		return response{}, err
	}
	count, err := number(params.Get("count"), scim.DefaultPage)
	if err != nil {
		return response{}, err
	}
	in.StartIndex, in.Count = &start, &count
	if params.Has("cursor") {
		in.Cursor = new(params.Get("cursor"))
		if params.Has("startIndex") {
			return response{}, &scim.Error{Status: http.StatusBadRequest, Type: scim.InvalidValue, Detail: "cursor and startIndex exclude each other"}
		}
	}
	return k.page(q, in)
}

// search lists resources by the parameters of a body (RFC 7644 §3.4.3).
func (k *kind) search(q *request) (response, error) {
	var in search
	err := q.decode(&in)
	if err == nil {
		q.wanted, err = scim.ParseProjection(strings.Join(in.Attributes, ","), strings.Join(in.ExcludedAttributes, ","))
	}
	if err != nil {
		return response{}, err
	}
	return k.page(q, in)
}

func (k *kind) page(q *request, in search) (response, error) {
	query := scim.Query{Filter: in.Filter, SortBy: in.SortBy, Start: 1, Count: scim.DefaultPage}
	switch strings.ToLower(in.SortOrder) {
	case "", "ascending":
	case "descending":
		query.Descending = true
	default:
		return response{}, &scim.Error{Status: http.StatusBadRequest, Type: scim.InvalidValue, Detail: "sortOrder must be ascending or descending"}
	}
	if in.StartIndex != nil {
		query.Start = max(1, *in.StartIndex)
	}
	if in.Count != nil {
		query.Count = min(max(0, *in.Count), scim.MaxPage)
	}
	list := []string{"scim", k.of.Name, q.client.ID, query.Filter, query.SortBy, fmt.Sprint(query.Descending)}
	if in.Cursor != nil && *in.Cursor != "" {
		if err := k.Cursors.Resume(q.client.TenantID, list, *in.Cursor, &query.After); err != nil {
			return response{}, err
		}
	}
	if in.Cursor != nil && query.Count == 0 {
		return response{}, &scim.Error{Status: http.StatusBadRequest, Type: scim.InvalidCount, Detail: "count must be at least 1 with a cursor"}
	}
	page, err := k.Service.List(q.Context(), q.client, k.of, query)
	if err == nil {
		err = k.complete(q, q.wanted, page.Resources...)
	}
	if err != nil {
		return response{}, err
	}
	resources := make([]any, len(page.Resources))
	for i, r := range page.Resources {
		resources[i] = q.wanted.Apply(k.of, r.Object)
	}
	body := map[string]any{"schemas": []string{scim.ListMessage}, "totalResults": page.Total, "itemsPerPage": len(resources), "Resources": resources}
	if in.Cursor == nil {
		body["startIndex"] = page.Start
	} else if page.Next != (scim.Position{}) {
		next, err := k.Cursors.Next(q.client.TenantID, list, page.Next)
		if err != nil {
			return response{}, err
		}
		body["nextCursor"] = next
	}
	return response{status: http.StatusOK, body: body}, nil
}
