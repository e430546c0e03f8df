package engine

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"stonetown/internal/sqldb"
	"stonetown/schema"
	"stonetown/tuplestore"
)

// Types returns the tenant's resource types, newest first.
func (e *Engine) Types(ctx context.Context, tenantID string) ([]schema.Type, error) {
	at, err := e.tenant(tenantID).at(ctx, true)
	if err != nil {
		return nil, fmt.Errorf("list resource types: %w", err)
	}
	types := slices.Clone(at.compiled.Types)
	slices.SortFunc(types, func(a, b schema.Type) int {
		if c := b.CreatedAt.Compare(a.CreatedAt); c != 0 {
			return c
		}
		return cmp.Compare(b.Name, a.Name)
	})
	return types, nil
}

// Type returns one resource type, or [*UnknownTypeError].
func (e *Engine) Type(ctx context.Context, tenantID, name string) (schema.Type, error) {
	at, err := e.tenant(tenantID).at(ctx, true)
	if err != nil {
		return schema.Type{}, fmt.Errorf("read resource type: %w", err)
	}
	t, ok := at.compiled.Type(name)
	if !ok {
		return schema.Type{}, &UnknownTypeError{Type: name}
	}
	return t, nil
}

// PutType defines a resource type or replaces its definition. Errors:
// [*schema.Error] if it is not valid together with the other types,
// [*TypeInUseError] if tuples exist that it would no longer allow.
func (e *Engine) PutType(ctx context.Context, tenantID string, t schema.Type, origin Origin) (stored schema.Type, created bool, token string, err error) {
	var after []schema.Type
	if attach := origin.AttachType; attach != nil {
		origin.Attach = func(r tuplestore.Result, b *sqldb.Batch) { attach(r, stored, created, b) }
	}
	token, err = e.changeTypes(ctx, tenantID, origin, func(before []schema.Type) ([]schema.Type, error) {
		now := time.Now().UTC().Truncate(time.Millisecond)
		stored = t
		stored.CreatedAt, stored.UpdatedAt = now, now
		after = slices.Clone(before)
		i := slices.IndexFunc(after, func(have schema.Type) bool { return have.Name == t.Name })
		if created = i < 0; created {
			after = append(after, stored)
		} else {
			stored.CreatedAt = after[i].CreatedAt
			after[i] = stored
		}
		return after, nil
	})
	if err != nil {
		return schema.Type{}, false, "", fmt.Errorf("put resource type: %w", err)
	}
	return stored, created, token, nil
}

// DeleteType removes a resource type; other types may still name it. Errors:
// [*UnknownTypeError], [*TypeInUseError] if resources of the type or tuples that name it
// exist.
func (e *Engine) DeleteType(ctx context.Context, tenantID, name string, origin Origin) (token string, err error) {
	token, err = e.changeTypes(ctx, tenantID, origin, func(before []schema.Type) ([]schema.Type, error) {
		after := slices.DeleteFunc(slices.Clone(before), func(have schema.Type) bool { return have.Name == name })
		if len(after) == len(before) {
			return nil, &UnknownTypeError{Type: name}
		}
		return after, nil
	})
	if err != nil {
		return "", fmt.Errorf("delete resource type: %w", err)
	}
	return token, nil
}

// changeTypes replaces the schema document on the condition that it allows every stored
// tuple.
func (e *Engine) changeTypes(ctx context.Context, tenantID string, origin Origin, change func([]schema.Type) ([]schema.Type, error)) (string, error) {
	var absent []tuplestore.Filter
	_, token, err := e.commit(ctx, tenantID, func(at position) (tuplestore.Write, error) {
		after, err := change(at.compiled.Types)
		if err != nil {
			return tuplestore.Write{}, err
		}
		compiled, err := schema.Compile(after)
		if err != nil {
			return tuplestore.Write{}, err
		}
		absent = narrowed(at.compiled, compiled)
		w := origin.write()
		w.Absent, w.PutSchema = absent, schema.Encode(after)
		return w, nil
	})
	var conflict *tuplestore.ConflictError
	if errors.As(err, &conflict) && conflict.Absent >= 0 {
		f := absent[conflict.Absent]
		return "", &TypeInUseError{Type: f.ObjectType, Relation: f.Relation, Condition: f.Condition, Count: conflict.Count}
	}
	return token, err
}

// narrowed lists the tuples that before allowed and after does not.
func narrowed(before, after *schema.Compiled) []tuplestore.Filter {
	var gone []tuplestore.Filter
	for _, t := range before.Types {
		if !after.HasType(t.Name) {
			gone = append(gone, tuplestore.Filter{ObjectType: t.Name, Presence: tuplestore.WithPresence})
			continue
		}
		for _, r := range t.Relations {
			kept := after.Subjects(t.Name, r.Name)
			outside := func(s schema.SubjectType) bool { return !slices.Contains(kept, s) }
			if !slices.ContainsFunc(before.Subjects(t.Name, r.Name), outside) {
				continue
			}
			f := tuplestore.Filter{ObjectType: t.Name, Relation: r.Name}
			if len(kept) > 0 {
				for _, s := range kept {
					f.SubjectsOutside = append(f.SubjectsOutside, tuplestore.SubjectShape(s))
				}
			}
			gone = append(gone, f)
		}
		for _, c := range t.Conditions {
			// Values stored with tuples were validated by its parameters.
			kept := after.Condition(t.Name, c.Name)
			if kept == nil || !slices.Equal(kept.Parameters(), c.Parameters) {
				gone = append(gone, tuplestore.Filter{ObjectType: t.Name, Condition: c.Name})
			}
		}
	}
	return gone
}
