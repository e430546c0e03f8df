package reporting

import (
	"context"
	"errors"
	"fmt"

	"stonetown/engine"
	"stonetown/internal/sqldb"
	"stonetown/tuplestore"
)

// The values of the column access of a review.
const (
	accessDirect    = "direct"    // a direct relation to the resource names the subject
	accessDerived   = "derived"   // it follows from other relations only
	accessUndecided = "undecided" // there is no answer for the resource
)

// review lists who may perform an action on resources, at one revision. A subject with direct
// relations to a resource has a row for each of them, with its author and its time, whether or not
// the action follows from it.
func (p *production) review(ctx context.Context) error {
	q := p.run.Parameters
	token, err := p.engine.Newest(ctx, p.run.TenantID)
	if err != nil {
		return err
	}
	ids, err := p.reviewed(ctx, token)
	if err != nil {
		return reviewError(err)
	}
	subjects, resources, direct, undecided := map[string]bool{}, 0, 0, 0
	for _, resourceID := range ids {
		if p.full() {
			p.truncated = true
			break
		}
		resources++
		resource := tuplestore.Object{Type: q.ResourceType, ID: resourceID}
		list, err := p.engine.ListSubjects(ctx, p.run.TenantID, engine.ListSubjectsRequest{
			Resource: resource, Action: q.Action, SubjectType: q.SubjectType,
			Consistency: engine.Consistency{Mode: engine.Exactly, Token: token}, Limit: MaxRows + 1, // one more is not stored, and the run is marked as truncated
		})
		if isUndecided(err) {
			undecided++
			if err := p.add(ctx, q.ResourceType, resourceID, q.SubjectType, nil, nil, accessUndecided, nil, nil, nil, nil); err != nil {
				return err
			}
			continue
		}
		if err != nil {
			return reviewError(err)
		}
		relations, err := p.direct(ctx, token, resource)
		if err != nil {
			return reviewError(err)
		}
		addresses, err := p.addresses(ctx, list.Entries)
		if err != nil {
			return err
		}
		for _, e := range list.Entries {
			if e.Excluded {
				continue
			}
			subjects[e.Subject.ID] = true
			email := any(nil)
			if address, ok := addresses[e.Subject.ID]; ok {
				email = address
			}
			found := relations[e.Subject.ID]
			if len(found) == 0 {
				if err := p.add(ctx, q.ResourceType, resourceID, q.SubjectType, e.Subject.ID, email, accessDerived, nil, nil, nil, nil); err != nil {
					return err
				}
			}
			for _, r := range found {
				direct++
				if err := p.add(ctx, q.ResourceType, resourceID, q.SubjectType, e.Subject.ID, email, accessDirect, r.Relation, r.CreatedBy, orNull(r.CreatedAt), orNull(sqldb.Instant(r.ExpiresAt))); err != nil {
					return err
				}
			}
		}
	}
	p.figure("resources", "", resources)
	p.figure("subjects", "", len(subjects))
	p.figure("direct_relations", "", direct)
	p.figure("undecided_resources", "", undecided)
	return nil
}

// reviewed returns the ids of the resources of the review.
func (p *production) reviewed(ctx context.Context, token string) (ids []string, err error) {
	q := p.run.Parameters
	if len(q.ResourceIDs) > 0 {
		return q.ResourceIDs, nil
	}
	f := tuplestore.Filter{ObjectType: q.ResourceType, Presence: tuplestore.OnlyPresence}
	page, next, err := p.engine.RecordsAt(ctx, p.run.TenantID, token, f, nil, MaxResources)
	if err != nil {
		return nil, err
	}
	p.truncated = next != nil
	for _, r := range page {
		ids = append(ids, r.Object.ID)
	}
	return ids, nil
}

// direct returns the direct relations of subjects of the type to a resource that have not expired, by
// the ids of the subjects.
func (p *production) direct(ctx context.Context, token string, resource tuplestore.Object) (map[string][]tuplestore.Record, error) {
	f := tuplestore.Filter{ObjectType: resource.Type, ObjectID: resource.ID}
	page, next, err := p.engine.RecordsAt(ctx, p.run.TenantID, token, f, nil, MaxDirect)
	if err != nil {
		return nil, err
	}
	p.truncated = p.truncated || next != nil
	found, now := map[string][]tuplestore.Record{}, p.now().UnixMicro()
	for _, r := range page {
		expired := r.ExpiresAt != 0 && r.ExpiresAt <= now
		if r.Subject.Type == p.run.Parameters.SubjectType && r.Subject.Relation == "" && !expired {
			found[r.Subject.ID] = append(found[r.Subject.ID], r)
		}
	}
	return found, nil
}

// addresses returns the addresses of users.
func (p *production) addresses(ctx context.Context, entries []engine.SubjectEntry) (map[string]string, error) {
	all := map[string]string{}
	if p.run.Parameters.SubjectType != userType {
		return all, nil
	}
	for len(entries) > 0 {
		var ids []string
		n := min(pageSize, len(entries))
		for _, e := range entries[:n] {
			ids = append(ids, e.Subject.ID)
		}
		found, err := p.people.Addresses(ctx, p.run.TenantID, ids)
		if err != nil {
			return nil, err
		}
		for id, address := range found {
			all[id] = address
		}
		entries = entries[n:]
	}
	return all, nil
}

// isUndecided reports whether the subjects of one resource cannot be listed, for a reason that others
// may not have.
func isUndecided(err error) bool {
	_, condition := errors.AsType[*engine.ConditionError](err)
	_, cycle := errors.AsType[*engine.NegativeCycleError](err)
	_, complex := errors.AsType[*engine.BudgetError](err)
	_, gone := errors.AsType[*engine.ResourceNotFoundError](err)
	return condition || cycle || complex || gone
}

// reviewError makes errors of the parameters failures of the run.
func reviewError(err error) error {
	if e, ok := errors.AsType[*engine.UnknownTypeError](err); ok {
		return &Failure{"resource_type_not_found", e.Error()}
	}
	if e, ok := errors.AsType[*engine.UndefinedRelationError](err); ok {
		return &Failure{"relation_undefined", e.Error()}
	}
	if e, ok := errors.AsType[*engine.InvalidSubjectError](err); ok {
		return &Failure{"subject_invalid", e.Error()}
	}
	return fmt.Errorf("access review: %w", err)
}
