package scope

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"stonetown/engine"
	"stonetown/internal/sqldb"
	"stonetown/schema"
	"stonetown/tuplestore"
)

// QueueNames queues the read of the names of a tenant's scopes. When the batch was sent, result
// returns them, with those of the built-in scopes.
func (r *Registry) QueueNames(b *sqldb.Batch, tenantID string) (result func() []string) {
	names := slices.Clone(Builtin)
	b.Queue(`SELECT name FROM scopes WHERE tenant_id = $1`, []any{tenantID}, func(rows *sqldb.Rows) error {
		registered, err := sqldb.Texts(rows, nil)
		names = append(names, registered...)
		return err
	})
	return func() []string { return names }
}

// HeldBy returns those of some scopes that a user has as a member of groups, sorted. It asks the
// engine, which has the relations of the tenants in use in memory, and reflects every change of a
// group that was acknowledged before.
func (r *Registry) HeldBy(ctx context.Context, tenantID, userID string, names []string) ([]string, error) {
	names = slices.Compact(slices.Sorted(slices.Values(names)))
	queries := make([]engine.Query, len(names))
	for i, name := range names {
		queries[i] = engine.Query{Resource: tuplestore.Object{Type: schema.ScopeType, ID: name}, Action: schema.ScopeHolder}
	}
	answer, err := r.relations.Check(ctx, tenantID, engine.CheckRequest{
		Subject: tuplestore.Subject{Type: schema.UserType, ID: userID}, Queries: queries,
	})
	if err != nil {
		return nil, fmt.Errorf("scopes of a user: %w", err)
	}
	var held []string
	for i, d := range answer.Decisions {
		if _, unheld := errors.AsType[*engine.ResourceNotFoundError](d.Err); d.Err != nil && !unheld {
			return nil, fmt.Errorf("scopes of a user: %w", d.Err)
		}
		if d.Allowed {
			held = append(held, names[i])
		}
	}
	return held, nil
}
