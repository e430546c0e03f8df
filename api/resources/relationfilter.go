package resources

import (
	"context"
	"maps"
	"slices"

	"stonetown/api/web"
	"stonetown/engine"
	"stonetown/tuplestore"
)

// filterPosition is the end of a page of the relations that a filter selects.
type filterPosition struct {
	ResourceType    string `json:"o"`
	ExternalID      string `json:"e"`
	Relation        string `json:"r"`
	SubjectType     string `json:"t"`
	SubjectID       string `json:"i"`
	SubjectRelation string `json:"s"`
}

// FindRelations lists the relations that a filter selects.
func (h *Handlers) FindRelations(ctx context.Context, request FindRelationsRequestObject) (FindRelationsResponseObject, error) {
	info := web.InfoOf(ctx)
	limit, err := web.Limit(request.Params.Limit)
	if err != nil {
		return nil, err
	}
	f, err := queriedFilter(info, "cursor", "limit")
	if err != nil {
		return nil, err
	}
	list := filterList("findRelations", f)
	after, err := h.position(info, list, string(request.Params.Cursor))
	if err != nil {
		return nil, err
	}
	records, next, err := h.Engine.FindRelations(ctx, info.Tenant.ID, f, after, limit)
	if err != nil {
		return nil, err
	}
	body := RelationList{Data: wireRecords(records), Meta: ListMeta{RequestID: info.RequestID, Limit: limit}}
	if body.Meta.NextCursor, err = h.nextRelation(info, list, next); err != nil {
		return nil, err
	}
	return FindRelations200JSONResponse{Body: body}, nil
}

// DeleteRelations deletes the relations that a filter selects, except those that other
// operations maintain.
func (h *Handlers) DeleteRelations(ctx context.Context, request DeleteRelationsRequestObject) (DeleteRelationsResponseObject, error) {
	info := web.InfoOf(ctx)
	f, err := queriedFilter(info, "cursor")
	if err != nil {
		return nil, err
	}
	list := filterList("deleteRelations", f)
	after, err := h.position(info, list, string(request.Params.Cursor))
	if err != nil {
		return nil, err
	}
	deleted, err := h.Engine.DeleteRelations(ctx, info.Tenant.ID, engine.RelationDeletion{
		RelationFilter: f, After: after, Limit: maxBulk,
		Keep:   func(o tuplestore.Object, relation string) bool { return managed(o, relation) != nil },
		Origin: func([]engine.WriteOp) engine.Origin { return origin(info) },
	})
	if err != nil {
		return nil, err
	}
	body := RelationsDeleted{Meta: DeletionMeta{RequestID: info.RequestID, ConsistencyToken: deleted.Token}}
	body.Data.Deleted, body.Data.HasMore, body.Data.Limit = deleted.Count, deleted.Next != nil, maxBulk
	if body.Meta.NextCursor, err = h.nextRelation(info, list, deleted.Next); err != nil {
		return nil, err
	}
	return DeleteRelations200JSONResponse{Body: body}, nil
}

// filterList identifies the list of an operation and a filter, for cursors.
func filterList(operation string, f engine.RelationFilter) []string {
	return []string{operation, f.Resource.Type, f.Resource.ID, f.Relation, f.Subject.Type, f.Subject.ID, f.Subject.Relation}
}

// position returns the position of a cursor, nil without one.
func (h *Handlers) position(info *web.RequestInfo, list []string, cursor string) (*tuplestore.Record, error) {
	if cursor == "" {
		return nil, nil
	}
	var p filterPosition
	if err := h.Cursors.Resume(info.Tenant.ID, list, cursor, &p); err != nil {
		return nil, err
	}
	return &tuplestore.Record{Fact: tuplestore.Fact{Tuple: tuplestore.Tuple{
		Object: tuplestore.Object{Type: p.ResourceType, ID: p.ExternalID}, Relation: p.Relation,
		Subject: tuplestore.Subject{Type: p.SubjectType, ID: p.SubjectID, Relation: p.SubjectRelation},
	}}}, nil
}

// nextRelation returns the cursor of a position, nil after the last one.
func (h *Handlers) nextRelation(info *web.RequestInfo, list []string, next *tuplestore.Record) (*string, error) {
	if next == nil {
		return nil, nil
	}
	return h.next(info, list, filterPosition{
		next.Object.Type, next.Object.ID, next.Relation, next.Subject.Type, next.Subject.ID, next.Subject.Relation,
	})
}

// filterFields returns the fields of a filter by their names in requests.
func filterFields(f *engine.RelationFilter) map[string]*string {
	return map[string]*string{
		"resource_type": &f.Resource.Type, "external_id": &f.Resource.ID, "relation": &f.Relation,
		"subject_type": &f.Subject.Type, "subject_id": &f.Subject.ID, "subject_relation": &f.Subject.Relation,
	}
}

// queriedFilter reads the filter of a query. An empty, repeated or unknown parameter is
// refused: to ignore it could delete more relations than intended.
func queriedFilter(info *web.RequestInfo, more ...string) (engine.RelationFilter, error) {
	var f engine.RelationFilter
	fields := filterFields(&f)
	query := info.Query()
	var v validation
	for _, name := range slices.Sorted(maps.Keys(query)) {
		field := fields[name]
		switch {
		case slices.Contains(more, name):
		case field == nil:
			v.Add(name, "unknown", "is not a parameter of this operation")
		case len(query[name]) > 1:
			v.Add(name, "repeated", "must be given once")
		case v.Text("", name, query[name][0]):
			*field = query[name][0]
		}
	}
	return f, v.Err()
}
