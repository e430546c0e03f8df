package resources

import (
	"context"

	"stonetown/api/web"
	"stonetown/engine"
	"stonetown/tuplestore"
)

// namingPosition is where a page of the relations of a subject ended.
type namingPosition struct {
	Type            string `json:"o"`
	ID              string `json:"e"`
	Relation        string `json:"r"`
	SubjectRelation string `json:"s"`
}

// ListSubjectRelations lists the relations that name a subject.
func (s *Surface) ListSubjectRelations(ctx context.Context, request ListSubjectRelationsRequestObject) (ListSubjectRelationsResponseObject, error) {
	call, p := web.CallOf(ctx), request.Params
	limit, err := web.Limit(p.Limit)
	if err != nil {
		return nil, err
	}
	f, err := subjectFilter(p.SubjectType, p.SubjectID, p.SubjectRelation, p.ResourceType, p.ExternalID, p.Relation)
	if err != nil {
		return nil, err
	}
	list := []string{"listSubjectRelations", p.SubjectType, p.SubjectID, p.SubjectRelation, p.ResourceType, p.ExternalID, p.Relation}
	var after *tuplestore.Record
	if p.Cursor != "" {
		var at namingPosition
		if err := s.Cursors.Resume(call.Tenant.ID, list, p.Cursor, &at); err != nil {
			return nil, err
		}
		after = &tuplestore.Record{Fact: tuplestore.Fact{Tuple: tuplestore.Tuple{
			Object: tuplestore.Object{Type: at.Type, ID: at.ID}, Relation: at.Relation,
			Subject: tuplestore.Subject{Type: p.SubjectType, ID: p.SubjectID, Relation: at.SubjectRelation},
		}}}
	}
	records, err := s.Engine.SubjectRelations(ctx, call.Tenant.ID, f, after, limit+1)
	if err != nil {
		return nil, err
	}
	body := RelationList{Meta: ListMeta{RequestID: call.RequestID, Limit: limit}}
	if len(records) > limit {
		records = records[:limit]
		last := records[limit-1]
		position := namingPosition{last.Object.Type, last.Object.ID, last.Relation, last.Subject.Relation}
		if body.Meta.NextCursor, err = s.next(call, list, position); err != nil {
			return nil, err
		}
	}
	body.Data = wireRecords(records)
	return ListSubjectRelations200JSONResponse{Body: body}, nil
}

// DeleteSubjectRelations deletes relations that name a subject, but for those that
// other operations keep.
func (s *Surface) DeleteSubjectRelations(ctx context.Context, request DeleteSubjectRelationsRequestObject) (DeleteSubjectRelationsResponseObject, error) {
	call, p := web.CallOf(ctx), request.Params
	f, err := subjectFilter(p.SubjectType, p.SubjectID, p.SubjectRelation, p.ResourceType, p.ExternalID, p.Relation)
	if err != nil {
		return nil, err
	}
	deleted, err := s.Engine.DeleteSubjectRelations(ctx, call.Tenant.ID, engine.SubjectDeletion{
		SubjectFilter: f, Limit: maxBulk,
		Keep:   func(o tuplestore.Object, relation string) bool { return managed(o, relation) != nil },
		Origin: func(ops []engine.WriteOp) engine.Origin { return origin(call, bulkApplied(ops)) },
	})
	if err != nil {
		return nil, err
	}
	body := RelationsDeleted{Meta: tokenMeta(call, deleted.Token)}
	body.Data.Deleted, body.Data.HasMore, body.Data.Limit = deleted.Count, deleted.More, maxBulk
	return DeleteSubjectRelations200JSONResponse{Body: body}, nil
}

func subjectFilter(subjectType, subjectID, subjectRelation, resourceType, externalID, relation string) (engine.SubjectFilter, error) {
	var v validation
	v.Text("", "subject_type", subjectType)
	v.Text("", "subject_id", subjectID)
	for _, given := range []struct{ field, value string }{
		{"subject_relation", subjectRelation}, {"resource_type", resourceType}, {"external_id", externalID}, {"relation", relation},
	} {
		if given.value != "" {
			v.Text("", given.field, given.value)
		}
	}
	if externalID != "" && resourceType == "" {
		v.Add("external_id", "conflict", "needs resource_type")
	}
	return engine.SubjectFilter{
		Subject: tuplestore.Object{Type: subjectType, ID: subjectID}, SubjectRelation: subjectRelation,
		ResourceType: resourceType, ResourceID: externalID, Relation: relation,
	}, v.Err()
}
