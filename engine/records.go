package engine

import (
	"context"
	"fmt"

	"stonetown/engine/internal/names"
	"stonetown/tuplestore"
)

// Newest returns the token of the newest revision of a tenant, for answers that are to be of one
// revision ([Exactly], [Engine.RecordsAt]).
func (e *Engine) Newest(ctx context.Context, tenantID string) (token string, err error) {
	at, err := e.tenant(tenantID).at(ctx, true)
	if err != nil {
		return "", fmt.Errorf("newest revision: %w", err)
	}
	return at.token, nil
}

// RecordsAt lists the tuples that a filter selects, as they are written, at the revision that a token
// of the tenant names: at most limit, after the position that an earlier page ended with (nil: from
// the start). next is the end of the page, nil if there are no more. It fails with
// [*UnknownTypeError] for the type of the filter's objects, [ErrTokenInvalid], [ErrTokenUnknown] or
// [ErrTokenExpired].
func (e *Engine) RecordsAt(ctx context.Context, tenantID, token string, f tuplestore.Filter, after *tuplestore.Record, limit int) (page []tuplestore.Record, next *tuplestore.Record, err error) {
	t := e.tenant(tenantID)
	if _, err := t.rlock(ctx, Consistency{Mode: Exactly, Token: token}); err != nil {
		return nil, nil, fmt.Errorf("list records: %w", err)
	}
	at := t.position
	t.mu.RUnlock()
	if _, rev, _ := decodeToken(tenantID, token); rev != at.revision {
		if at, err = e.past(ctx, tenantID, at, e.store.Snapshot(tenantID, rev)); err != nil {
			return nil, nil, fmt.Errorf("list records: %w", err)
		}
	}
	if !at.compiled.HasType(f.ObjectType) {
		return nil, nil, &UnknownTypeError{Type: f.ObjectType}
	}
	page, err = names.List(ctx, e.snapshot(tenantID, at), f, after, limit+1)
	if err != nil {
		return nil, nil, fmt.Errorf("list records: %w", err)
	}
	if len(page) > limit {
		page = page[:limit]
		next = names.Position(&page[limit-1], at.compiled)
	}
	return page, next, nil
}
