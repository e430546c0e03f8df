package engine

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"slices"
	"time"

	"stonetown/schema"
	"stonetown/tuplestore"
)

// TypesChange is a change of several resource types at once.
type TypesChange struct {
	// Renames come first: types in Put and Delete have the names after them. Stored tuples have
	// the new names from the same revision on; none of them is written.
	Renames []schema.Rename
	Put     []schema.Type // to define, or to replace; their names are distinct
	Delete  []string
	// Expected, if not empty, is the version of the types for which the change was made, as
	// returned by [Engine.PlanTypes] or [Engine.ApplyTypes].
	Expected string
	// Judge, if not nil, gets the types before and after the change, unless it changes nothing.
	// Its error refuses the change. The change is made to the types that were judged; if they
	// have changed meanwhile, Judge is called again.
	Judge func(ctx context.Context, before, after []schema.Type) error
}

// TypeResult is the effect of a [TypesChange] on one type.
type TypeResult string

// The effects. A type whose definition is the stored one is unchanged.
const (
	TypeCreated   TypeResult = "created"
	TypeUpdated   TypeResult = "updated"
	TypeDeleted   TypeResult = "deleted"
	TypeUnchanged TypeResult = "unchanged"
)

// TypeChange is a type of a [TypesChange] with the effect on it.
type TypeChange struct {
	Result TypeResult
	Type   schema.Type // as stored afterwards or, if it was deleted, before
}

// TypesApplied is the outcome of [Engine.ApplyTypes].
type TypesApplied struct {
	Changes []TypeChange // those of Put, of Delete, and of other types that renames change
	Version string       // of the types, after the change
	Token   string       // names the first revision that reflects the change
}

// TypesChangedError: the types are not of the version that a change expects.
type TypesChangedError struct {
	Version string // of the types as they are
}

func (e *TypesChangedError) Error() string {
	return "the resource types have changed since the expected revision"
}

// ApplyTypes changes several resource types in one revision. Errors: [*schema.Error] if the
// types are not valid together, [*UnknownTypeError] if a type to delete is not defined,
// [*TypeInUseError] if resources or tuples exist that the types would no longer allow,
// [*TypesChangedError], [*schema.RenameError], and [ErrTokenInvalid] for a version of
// another tenant.
//
// A change that is sent again under its commit ID is not made again. Its outcome then lists
// the types as unchanged.
func (e *Engine) ApplyTypes(ctx context.Context, tenantID string, change TypesChange, origin Origin) (TypesApplied, error) {
	var applied TypesApplied
	if attach := origin.AttachTypes; attach != nil {
		origin.Attach = func(r tuplestore.Result, b *tuplestore.Batch) { attach(r, applied.Changes, b) }
	}
	w := origin.write()
	w.Request = change.request()
	var absent []tuplestore.Filter
	var version tuplestore.Revision
	result, token, err := e.commit(ctx, tenantID, func(at position) (tuplestore.Write, error) {
		p, err := change.propose(tenantID, at)
		if err == nil {
			err = change.judge(ctx, at, p)
		}
		if err != nil {
			return w, err
		}
		applied.Changes, version = p.changes, at.schemaRevision
		w.Absent, w.PutSchema = nil, nil
		if p.changed {
			absent = p.gone()
			w.Absent, w.PutSchema = absent, schema.Encode(p.compiled.Types)
			w.Alone = origin.Alone || slices.ContainsFunc(absent, func(f tuplestore.Filter) bool { return f.Crowded })
		}
		return w, nil
	})
	if err != nil && origin.CommitID != "" {
		if before, ok := e.committedBefore(ctx, tenantID, w); ok {
			result, token, err = before, encodeToken(tenantID, before.Epoch, before.Revision), nil
			version, applied.Changes = before.Revision, change.unchanged()
		}
	}
	var conflict *tuplestore.ConflictError
	if errors.As(err, &conflict) && conflict.Absent >= 0 {
		f := absent[conflict.Absent]
		err = &TypeInUseError{Type: f.ObjectType, Relation: f.Relation, Condition: f.Condition, Crowded: f.Crowded, Count: conflict.Count}
	}
	if err != nil {
		return TypesApplied{}, fmt.Errorf("change resource types: %w", err)
	}
	if w.PutSchema != nil {
		version = result.Revision
	}
	applied.Version, applied.Token = encodeToken(tenantID, result.Epoch, version), token
	return applied, nil
}

// never is no revision of a schema.
const never tuplestore.Revision = -1

// committedBefore returns the result of a write that has been committed under its commit ID. It
// changes nothing: the condition on the schema fails, unless the store has the commit.
func (e *Engine) committedBefore(ctx context.Context, tenantID string, w tuplestore.Write) (tuplestore.Result, bool) {
	unmet := never
	result, err := e.store.Write(ctx, tenantID, tuplestore.Write{Actor: w.Actor, CommitID: w.CommitID, Request: w.Request, IfSchema: &unmet})
	return result, err == nil
}

// request identifies the change among those of one commit ID.
func (ch TypesChange) request() string {
	text := fmt.Appendf(nil, "%q %q %s", ch.Expected, ch.Delete, schema.Encode(ch.Put))
	if len(ch.Renames) > 0 {
		text = fmt.Appendf(text, " %q", ch.Renames)
	}
	sum := sha256.Sum256(text)
	return "types " + hex.EncodeToString(sum[:])
}

// unchanged lists the types of a change that was made before.
func (ch TypesChange) unchanged() []TypeChange {
	var changes []TypeChange
	for _, t := range ch.Put {
		changes = append(changes, TypeChange{TypeUnchanged, t})
	}
	for _, name := range ch.Delete {
		changes = append(changes, TypeChange{TypeUnchanged, schema.Type{Name: name}})
	}
	return changes
}

// proposal is a change of the types at a position.
type proposal struct {
	changes  []TypeChange
	changed  bool             // any type
	compiled *schema.Compiled // all types
	renaming *schema.Renaming
	renamed  *schema.Compiled // the types before, renamed
}

// propose applies a change to the types at a position.
func (ch TypesChange) propose(tenantID string, at position) (proposal, error) {
	if ch.Expected != "" {
		epoch, version, err := decodeToken(tenantID, ch.Expected)
		if err != nil {
			return proposal{}, err
		}
		if epoch != at.epoch || version != at.schemaRevision {
			return proposal{}, &TypesChangedError{Version: at.typesVersion(tenantID)}
		}
	}
	now := time.Now().UTC().Truncate(time.Millisecond)
	p, err := ch.rename(at)
	if err != nil {
		return proposal{}, err
	}
	types := slices.Clone(p.renamed.Types)
	find := func(name string) int {
		return slices.IndexFunc(types, func(t schema.Type) bool { return t.Name == name })
	}
	for _, t := range ch.Put {
		t.CreatedAt, t.UpdatedAt = now, now
		result := TypeCreated
		if i := find(t.Name); i < 0 {
			t = schema.KeepStored(t, nil, p.renamed.Types)
			types = append(types, t)
		} else {
			t = schema.KeepStored(t, &types[i], p.renamed.Types)
			t.CreatedAt, t.UpdatedAt = types[i].CreatedAt, types[i].UpdatedAt
			result = TypeUnchanged
			if !sameType(p.before(at, t.Name), t) {
				t.UpdatedAt, result = now, TypeUpdated
			}
			types[i] = t
		}
		p.changes = append(p.changes, TypeChange{result, t})
	}
	for _, name := range ch.Delete {
		i := find(name)
		if i < 0 {
			return proposal{}, &UnknownTypeError{Type: name}
		}
		p.changes = append(p.changes, TypeChange{TypeDeleted, types[i]})
		types = slices.Delete(types, i, i+1)
	}
	p.addRenamed(at, types, now)
	p.changed = slices.ContainsFunc(p.changes, func(c TypeChange) bool { return c.Result != TypeUnchanged })
	p.compiled, err = schema.Compile(types)
	return p, err
}

func sameType(a, b schema.Type) bool {
	return bytes.Equal(schema.Encode([]schema.Type{a}), schema.Encode([]schema.Type{b}))
}

func (ch TypesChange) judge(ctx context.Context, at position, p proposal) error {
	if ch.Judge == nil || !p.changed {
		return nil
	}
	return ch.Judge(ctx, at.compiled.Types, p.compiled.Types)
}

// typesVersion names the version of the types at a position.
func (at position) typesVersion(tenantID string) string {
	return encodeToken(tenantID, at.epoch, at.schemaRevision)
}

// narrowed lists the tuples that before allowed and after does not. Of nodes with more tuples than
// after allows it lists all.
func narrowed(before, after *schema.Compiled) []tuplestore.Filter {
	var gone []tuplestore.Filter
	for _, t := range before.Types {
		if !after.HasType(t.Name) {
			gone = append(gone, tuplestore.Filter{ObjectType: t.Name, Presence: tuplestore.WithPresence})
			continue
		}
		for _, r := range t.Relations {
			now, _ := after.Relation(t.Name, r.Name)
			if now.Cardinality == schema.One && r.Cardinality != schema.One {
				gone = append(gone, tuplestore.Filter{ObjectType: t.Name, Relation: r.Name, Crowded: true})
			}
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
