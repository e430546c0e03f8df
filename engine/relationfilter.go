package engine

import (
	"context"
	"fmt"

	"stonetown/engine/internal/names"
	"stonetown/schema"
	"stonetown/tuplestore"
)

// maxExamined is the number of relations that one page examines, unless the filter selects
// those of an index that are side by side.
const maxExamined = 1000

// ErrPosition: a list cannot go on where an earlier page ended, because renames have exchanged names
// that it is about.
var ErrPosition = names.ErrPosition

// RelationFilter selects the relations that equal every non-empty field. It has at least the
// type of the resource or that of the subject, because relations are stored by resource and
// by subject. A subject without a relation includes its usersets.
type RelationFilter struct {
	Resource tuplestore.Object
	Relation string
	Subject  tuplestore.Subject
}

// store validates the filter and returns the store's.
func (f RelationFilter) store(c *schema.Compiled) (tuplestore.Filter, error) {
	switch {
	case f.Resource.ID != "" && f.Resource.Type == "":
		return tuplestore.Filter{}, &FilterError{Field: "external_id", Code: "conflict", Message: "needs resource_type"}
	case f.Subject.ID != "" && f.Subject.Type == "":
		return tuplestore.Filter{}, &FilterError{Field: "subject_id", Code: "conflict", Message: "needs subject_type"}
	case f.Resource.Type == "" && f.Subject.Type == "":
		return tuplestore.Filter{}, &FilterError{
			Field: "resource_type", Code: "required",
			Message: "resource_type or subject_type is required: without them, all relations would have to be read",
		}
	}
	s, err := filterSubject(c, f.Subject)
	if err != nil {
		return tuplestore.Filter{}, err
	}
	if f.Resource.Type != "" && !c.HasType(f.Resource.Type) {
		return tuplestore.Filter{}, &UnknownTypeError{Type: f.Resource.Type}
	}
	if f.Resource.Type != "" && f.Relation != "" {
		if _, ok := c.Rule(f.Resource.Type, f.Relation); !ok {
			return tuplestore.Filter{}, &UndefinedRelationError{Type: f.Resource.Type, Relation: f.Relation}
		}
	}
	return f.of(s), nil
}

// of returns the store's filter for a subject.
func (f RelationFilter) of(s tuplestore.Subject) tuplestore.Filter {
	return tuplestore.Filter{
		ObjectType: f.Resource.Type, ObjectID: f.Resource.ID, Relation: f.Relation,
		SubjectType: s.Type, SubjectID: s.ID, SubjectRelation: s.Relation,
	}
}

// filterSubject validates the subject of a filter, which can lack its ID, or its type and ID.
func filterSubject(c *schema.Compiled, s tuplestore.Subject) (tuplestore.Subject, error) {
	if s.Type == "" || s.ID == "" && s.Type == schema.GroupType && s.Relation == "" {
		return s, nil
	}
	id := s.ID
	if id == "" {
		s.ID = "any"
	}
	s, err := checkedSubject(c, s)
	s.ID = id
	return s, err
}

// precondition returns the store's filter of a precondition. Other writes wait while it is
// judged, so an index must have the relations that it selects side by side.
func (f RelationFilter) precondition(c *schema.Compiled) (tuplestore.Filter, error) {
	filter, err := f.store(c)
	if err == nil && !f.of(f.Subject).Contiguous() {
		err = &FilterError{
			Code: "not_indexed",
			Message: "a precondition must have the first ones of resource_type, external_id, relation, subject_type, subject_id and subject_relation, at least two of them, " +
				"or the first ones of subject_type, subject_id, resource_type, external_id, relation and subject_relation, so that an index decides it",
		}
	}
	return filter, err
}

// FindRelations lists the relations that a filter selects, as they are written, after the
// position that an earlier page ended with (nil: from the start), at most limit. They are in
// the order of resource, relation and subject or, by a filter without a resource type, of
// subject, resource and relation, by the names with which they are stored, which a position has,
// too. A page can have fewer relations than limit, even none,
// although there are more; next is its end, nil after the last one. FindRelations fails with
// [*FilterError], [*InvalidSubjectError], [*UnknownTypeError] or [*UndefinedRelationError].
func (e *Engine) FindRelations(ctx context.Context, tenantID string, f RelationFilter, after *tuplestore.Record, limit int) (page []tuplestore.Record, next *tuplestore.Record, err error) {
	filter, at, err := e.filter(ctx, tenantID, f)
	if err == nil {
		page, next, err = names.Page(ctx, e.store, tenantID, at.compiled, filter, after, limit, maxExamined)
	}
	if err != nil {
		return nil, nil, fmt.Errorf("find relations: %w", err)
	}
	return page, next, nil
}

// filter validates a filter by the newest schema.
func (e *Engine) filter(ctx context.Context, tenantID string, f RelationFilter) (tuplestore.Filter, position, error) {
	at, err := e.tenant(tenantID).at(ctx, true)
	if err != nil {
		return tuplestore.Filter{}, at, err
	}
	filter, err := f.store(at.compiled)
	return filter, at, err
}

// RelationDeletion asks to delete relations by a filter.
type RelationDeletion struct {
	RelationFilter
	// After, if not nil, is the position that an earlier deletion ended at.
	After *tuplestore.Record
	// Keep, if not nil, reports whether no relation of this name of an object is deleted.
	Keep func(o tuplestore.Object, relation string) bool
	// Limit is the maximum number of deleted relations.
	Limit int
	// Origin returns the origin of a write of these ops.
	Origin func(ops []WriteOp) Origin
}

// RelationsDeleted is the outcome of a [RelationDeletion].
type RelationsDeleted struct {
	Count int
	// Next is the position after which there may be more relations; nil: there are none.
	Next  *tuplestore.Record
	Token string // names the first revision that reflects the deletion
}

// deletionPages is the maximum number of pages that a deletion reads. It reads more than
// one if there are relations that it keeps.
const deletionPages = 10

// DeleteRelations deletes relations by a filter, in one revision. Errors are those of
// [Engine.FindRelations] and [Engine.Write].
func (e *Engine) DeleteRelations(ctx context.Context, tenantID string, d RelationDeletion) (RelationsDeleted, error) {
	deleted, err := e.deleteRelations(ctx, tenantID, d)
	if err != nil {
		return RelationsDeleted{}, fmt.Errorf("delete relations: %w", err)
	}
	return deleted, nil
}

func (e *Engine) deleteRelations(ctx context.Context, tenantID string, d RelationDeletion) (RelationsDeleted, error) {
	ops, next, err := e.deletable(ctx, tenantID, d)
	if err != nil {
		return RelationsDeleted{}, err
	}
	after := tuplestore.Tuple{}
	if d.After != nil {
		after = d.After.Tuple
	}
	// Also without ops: the commit may have been made before, and then returns its result.
	result, token, err := e.commit(ctx, tenantID, func(at position) (tuplestore.Write, error) {
		w, err := validate(at.compiled, WriteRequest{Origin: d.Origin(ops), Ops: ops})
		w.Request = fmt.Sprintf("delete %d of %q after %q", d.Limit, d.RelationFilter, after)
		return w, err
	})
	if err != nil {
		return RelationsDeleted{}, opError(err)
	}
	deleted := RelationsDeleted{Next: next, Token: token}
	for _, n := range result.Counts {
		deleted.Count += n
	}
	return deleted, nil
}

// deletable returns ops that delete the first selected relations, if they still exist, and
// the position after which there may be more.
func (e *Engine) deletable(ctx context.Context, tenantID string, d RelationDeletion) (ops []WriteOp, next *tuplestore.Record, err error) {
	filter, at, err := e.filter(ctx, tenantID, d.RelationFilter)
	if err != nil {
		return nil, nil, err
	}
	next = d.After
	var last *tuplestore.Record // of ops
	for range deletionPages {
		var page []tuplestore.Record
		page, next, err = names.Page(ctx, e.store, tenantID, at.compiled, filter, next, d.Limit+1, maxExamined)
		if err != nil {
			return nil, nil, err
		}
		for _, r := range page {
			if d.Keep != nil && d.Keep(r.Object, r.Relation) {
				continue
			}
			if len(ops) == d.Limit {
				return ops, names.Position(last, at.compiled), nil
			}
			last = &r
			ops = append(ops, WriteOp{Delete: true, IfPresent: true, Resource: r.Object, Relation: r.Relation, Subject: r.Subject})
		}
		if next == nil {
			break
		}
	}
	return ops, next, nil
}
