package resources

import (
	"context"
	"maps"
	"slices"

	"stonetown/api/web"
	"stonetown/engine"
	"stonetown/tuplestore"
)

// subjectRelationPosition is the end of a page of the relations of a subject.
type subjectRelationPosition struct {
	Type            string `json:"o"`
	ID              string `json:"e"`
	Relation        string `json:"r"`
	SubjectRelation string `json:"s"`
}

// ListSubjectRelations lists the relations that name a subject.
func (h *Handlers) ListSubjectRelations(ctx context.Context, request ListSubjectRelationsRequestObject) (ListSubjectRelationsResponseObject, error) {
	info, p := web.InfoOf(ctx), request.Params
	limit, err := web.Limit(p.Limit)
	if err != nil {
		return nil, err
	}
	f, err := subjectFilter(info, "cursor", "limit")
	if err != nil {
		return nil, err
	}
	list := []string{"listSubjectRelations", p.SubjectType, p.SubjectID, p.SubjectRelation, p.ResourceType, p.ExternalID, p.Relation}
	var after *tuplestore.Record
	if p.Cursor != "" {
		var at subjectRelationPosition
		if err := h.Cursors.Resume(info.Tenant.ID, list, p.Cursor, &at); err != nil {
			return nil, err
		}
		after = &tuplestore.Record{Fact: tuplestore.Fact{Tuple: tuplestore.Tuple{
			Object: tuplestore.Object{Type: at.Type, ID: at.ID}, Relation: at.Relation,
			Subject: tuplestore.Subject{Type: p.SubjectType, ID: p.SubjectID, Relation: at.SubjectRelation},
		}}}
	}
	records, err := h.Engine.SubjectRelations(ctx, info.Tenant.ID, f, after, limit+1)
	if err != nil {
		return nil, err
	}
	body := RelationList{Meta: ListMeta{RequestID: info.RequestID, Limit: limit}}
	if len(records) > limit {
		records = records[:limit]
		last := records[limit-1]
		position := subjectRelationPosition{last.Object.Type, last.Object.ID, last.Relation, last.Subject.Relation}
		if body.Meta.NextCursor, err = h.next(info, list, position); err != nil {
			return nil, err
		}
	}
	body.Data = wireRecords(records)
	return ListSubjectRelations200JSONResponse{Body: body}, nil
}

// DeleteSubjectRelations deletes the relations that name a subject, except those that other
// operations maintain.
func (h *Handlers) DeleteSubjectRelations(ctx context.Context, _ DeleteSubjectRelationsRequestObject) (DeleteSubjectRelationsResponseObject, error) {
	info := web.InfoOf(ctx)
	f, err := subjectFilter(info)
	if err != nil {
		return nil, err
	}
	deleted, err := h.Engine.DeleteSubjectRelations(ctx, info.Tenant.ID, engine.SubjectDeletion{
		SubjectFilter: f, Limit: maxBulk,
		Keep:   func(o tuplestore.Object, relation string) bool { return managed(o, relation) != nil },
		Origin: func([]engine.WriteOp) engine.Origin { return origin(info) },
	})
	if err != nil {
		return nil, err
	}
	body := RelationsDeleted{Meta: tokenMeta(info, deleted.Token)}
	body.Data.Deleted, body.Data.HasMore, body.Data.Limit = deleted.Count, deleted.More, maxBulk
	return DeleteSubjectRelations200JSONResponse{Body: body}, nil
}

// subjectFilter reads the filter. An empty, repeated or unknown parameter is refused: to
// ignore it could delete more relations than intended.
func subjectFilter(info *web.RequestInfo, more ...string) (engine.SubjectFilter, error) {
	f := engine.SubjectFilter{}
	fields := map[string]*string{
		"subject_type": &f.Subject.Type, "subject_id": &f.Subject.ID, "subject_relation": &f.SubjectRelation,
		"resource_type": &f.ResourceType, "external_id": &f.ResourceID, "relation": &f.Relation,
	}
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
	for _, name := range []string{"subject_type", "subject_id"} {
		if !query.Has(name) {
			v.Text("", name, "")
		}
	}
	if query.Has("external_id") && !query.Has("resource_type") {
		v.Add("external_id", "conflict", "needs resource_type")
	}
	return f, v.Err()
}
