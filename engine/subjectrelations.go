package engine

import (
	"context"
	"errors"
	"fmt"
	"time"

	"stonetown/schema"
	"stonetown/tuplestore"
)

// SubjectFilter selects relations by the object that they name as their subject, as such or
// as a userset of it. The other fields restrict the selection if they are not empty.
type SubjectFilter struct {
	Subject                            tuplestore.Object
	SubjectRelation                    string // only this userset
	ResourceType, ResourceID, Relation string
}

// store returns the store's filter.
func (f SubjectFilter) store(c *schema.Compiled) (tuplestore.Filter, error) {
	s := tuplestore.Subject{Type: f.Subject.Type, ID: f.Subject.ID, Relation: f.SubjectRelation}
	if _, err := checkedSubject(c, s); err != nil {
		return tuplestore.Filter{}, err
	}
	if f.ResourceType != "" && !c.HasType(f.ResourceType) {
		return tuplestore.Filter{}, &UnknownTypeError{Type: f.ResourceType}
	}
	if f.ResourceType != "" && f.Relation != "" {
		if _, ok := c.Rule(f.ResourceType, f.Relation); !ok {
			return tuplestore.Filter{}, &UndefinedRelationError{Type: f.ResourceType, Relation: f.Relation}
		}
	}
	return tuplestore.Filter{
		ObjectType: f.ResourceType, ObjectID: f.ResourceID, Relation: f.Relation,
		SubjectType: s.Type, SubjectID: s.ID, SubjectRelation: s.Relation,
	}, nil
}

// SubjectRelations lists the relations that a filter selects, as they are written,
// in the order of resource, relation and subject, after a record of an earlier
// page (nil: from the start), at most limit. It fails with
// [*InvalidSubjectError], [*UnknownTypeError] or [*UndefinedRelationError].
func (e *Engine) SubjectRelations(ctx context.Context, tenantID string, f SubjectFilter, after *tuplestore.Record, limit int) ([]tuplestore.Record, error) {
	at, err := e.tenant(tenantID).at(ctx, true)
	if err != nil {
		return nil, fmt.Errorf("list relations of a subject: %w", err)
	}
	records, err := e.subjectRelations(ctx, tenantID, at, f, after, limit)
	if err != nil {
		return nil, fmt.Errorf("list relations of a subject: %w", err)
	}
	return records, nil
}

func (e *Engine) subjectRelations(ctx context.Context, tenantID string, at position, f SubjectFilter, after *tuplestore.Record, limit int) ([]tuplestore.Record, error) {
	filter, err := f.store(at.compiled)
	if err != nil {
		return nil, err
	}
	return e.store.Snapshot(tenantID, at.revision).List(ctx, filter, after, limit)
}

// SubjectDeletion asks to delete relations by their subject.
type SubjectDeletion struct {
	SubjectFilter
	// Keep, if not nil, reports whether no relation of this name of an object is deleted.
	Keep func(o tuplestore.Object, relation string) bool
	// Limit is the maximum number of deleted relations.
	Limit int
	// Origin returns the origin of a write of these ops.
	Origin func(ops []WriteOp) Origin
}

// SubjectDeleted is the outcome of a [SubjectDeletion].
type SubjectDeleted struct {
	Count int
	// More: the limit left further relations.
	More  bool
	Token string // names the first revision that reflects the deletion
}

// deletionAttempts is how often relations are selected again because another write deleted
// one of them first.
const deletionAttempts = 5

// DeleteSubjectRelations deletes relations by their subject, in one revision. Errors are
// those of [Engine.SubjectRelations] and [Engine.Write], and [*tuplestore.BusyError] if
// other writes kept deleting the same relations.
func (e *Engine) DeleteSubjectRelations(ctx context.Context, tenantID string, d SubjectDeletion) (SubjectDeleted, error) {
	for attempt := 1; ; attempt++ {
		deleted, err := e.deleteSubjectRelations(ctx, tenantID, d)
		var gone *RelationNotFoundError
		if errors.As(err, &gone) {
			if attempt < deletionAttempts {
				continue
			}
			err = &tuplestore.BusyError{Queue: "resource", Limit: deletionAttempts, RetryAfter: time.Second}
		}
		if err != nil {
			return deleted, fmt.Errorf("delete relations of a subject: %w", err)
		}
		return deleted, nil
	}
}

func (e *Engine) deleteSubjectRelations(ctx context.Context, tenantID string, d SubjectDeletion) (SubjectDeleted, error) {
	ops, more, err := e.deletable(ctx, tenantID, d)
	if err != nil {
		return SubjectDeleted{}, err
	}
	// Also without ops: the commit may have been made before, and then returns its result.
	result, token, err := e.commit(ctx, tenantID, func(at position) (tuplestore.Write, error) {
		w, err := validate(at.compiled, WriteRequest{Origin: d.Origin(ops), Ops: ops})
		w.Request = fmt.Sprintf("delete %d of %q", d.Limit, d.SubjectFilter)
		return w, err
	})
	if err != nil {
		return SubjectDeleted{}, opError(err)
	}
	deleted := SubjectDeleted{More: more, Token: token}
	for _, n := range result.Counts {
		deleted.Count += n
	}
	return deleted, nil
}

// deletable returns ops that delete the first selected relations, and whether there are
// more.
func (e *Engine) deletable(ctx context.Context, tenantID string, d SubjectDeletion) (ops []WriteOp, more bool, err error) {
	at, err := e.tenant(tenantID).at(ctx, true)
	if err != nil {
		return nil, false, err
	}
	var after *tuplestore.Record
	for {
		page, err := e.subjectRelations(ctx, tenantID, at, d.SubjectFilter, after, d.Limit+1)
		if err != nil {
			return nil, false, err
		}
		for _, r := range page {
			if d.Keep != nil && d.Keep(r.Object, r.Relation) {
				continue
			}
			if len(ops) == d.Limit {
				return ops, true, nil
			}
			ops = append(ops, WriteOp{Delete: true, Resource: r.Object, Relation: r.Relation, Subject: r.Subject})
		}
		if len(page) <= d.Limit {
			return ops, false, nil
		}
		after = &page[len(page)-1]
	}
}
