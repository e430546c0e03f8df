package engine

import (
	"cmp"
	"context"
	"fmt"
	"slices"

	"stonetown/schema"
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

// Deprecating returns the newest types that this process knows if any of them is deprecated, or one
// of their relations, else nil. It reads nothing.
func (e *Engine) Deprecating(tenantID string) *schema.Compiled {
	t := e.tenant(tenantID)
	t.mu.RLock()
	defer t.mu.RUnlock()
	if at := &t.position; at.known && at.compiled.Deprecates {
		return at.compiled
	}
	return nil
}

// PutType is [Engine.ApplyTypes] for one type to define. It returns the stored definition.
func (e *Engine) PutType(ctx context.Context, tenantID string, t schema.Type, origin Origin) (stored schema.Type, created bool, token string, err error) {
	applied, err := e.ApplyTypes(ctx, tenantID, TypesChange{Put: []schema.Type{t}}, origin)
	if err != nil {
		return schema.Type{}, false, "", err
	}
	change := applied.Changes[0]
	return change.Type, change.Result == TypeCreated, applied.Token, nil
}

// DeleteType is [Engine.ApplyTypes] for one type to delete. Other types may still name it.
func (e *Engine) DeleteType(ctx context.Context, tenantID, name string, origin Origin) (token string, err error) {
	applied, err := e.ApplyTypes(ctx, tenantID, TypesChange{Delete: []string{name}}, origin)
	return applied.Token, err
}
