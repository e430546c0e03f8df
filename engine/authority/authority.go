// Package authority decides whether a caller may give rights.
//
// A caller cannot give rights that it does not hold. An operation that gives scopes (to a
// group, by membership, to an application that acts for itself, by a new secret) or takes
// over an account (password, factors, disabling, deletion) names the scopes concerned, and
// its caller must hold each of them in two ways:
//
//   - in the token, so that a narrow token never grows into a wide one;
//   - by the engine, as scope:<name>#holder, so that a token cannot pass on rights that its
//     user has lost.
//
// The second is an ordinary relation. Expanding holder of scope:<name> explains every
// decision. Only guarded scopes are compared: those of the product's own API. Scopes that a
// tenant has defined are not compared, and every user has those for their own account.
//
// The caller is part of the context ([With]). Every request has one; an anonymous caller
// holds no scope. Work without a caller is the product's own, such as that of a command,
// and is not restricted. A job that continues a request keeps its caller ([Of]).
package authority

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"stonetown/engine"
	"stonetown/schema"
	"stonetown/tuplestore"
)

// Caller is the party that asks for an operation. The zero value is anonymous.
type Caller struct {
	Type   string   `json:"type"` // [schema.UserType] or [schema.ApplicationType]
	ID     string   `json:"id"`
	Scopes []string `json:"scopes"` // of its token
}

type key struct{}

// With returns a context for work on behalf of a caller. caller is called when rights are
// first compared.
func With(ctx context.Context, caller func() Caller) context.Context {
	return context.WithValue(ctx, key{}, caller)
}

// Without returns a context for the product's own work in the course of a request.
func Without(ctx context.Context) context.Context { return context.WithValue(ctx, key{}, nil) }

// Of returns the caller of a context; false for the product's own work.
func Of(ctx context.Context) (Caller, bool) {
	caller, ok := ctx.Value(key{}).(func() Caller)
	if !ok {
		return Caller{}, false
	}
	return caller(), true
}

// DeniedError is returned to a caller that lacks a scope that it would give.
type DeniedError struct{ Scope string }

func (e *DeniedError) Error() string {
	return fmt.Sprintf("the caller must hold the scope %s to do this", e.Scope)
}

// Engine is what the package needs of [engine.Engine].
type Engine interface {
	Check(ctx context.Context, tenantID string, req engine.CheckRequest) (*engine.CheckResponse, error)
	ListResources(ctx context.Context, tenantID string, req engine.ListResourcesRequest) (*engine.ResourceList, error)
}

// Checker compares rights. It is safe for concurrent use. A nil Checker refuses every
// caller.
type Checker struct {
	engine  Engine
	guarded []string
}

// New returns a checker that compares the guarded scopes, by the relations of an engine.
func New(e Engine, guarded []string) *Checker { return &Checker{e, guarded} }

// Guards reports whether a scope is compared.
func (c *Checker) Guards(scope string) bool { return c != nil && slices.Contains(c.guarded, scope) }

// MayGive fails with [*DeniedError] unless the context's caller holds every guarded scope
// among some. It reads the database, so it must not be called within a transaction.
func (c *Checker) MayGive(ctx context.Context, tenantID string, scopes []string) error {
	caller, ok := Of(ctx)
	if !ok {
		return nil
	}
	if c == nil {
		return errors.New("authority: no checker")
	}
	var queries []engine.Query
	for _, scope := range scopes {
		if !c.Guards(scope) {
			continue
		}
		if !slices.Contains(caller.Scopes, scope) {
			return &DeniedError{scope}
		}
		queries = append(queries, engine.Query{Resource: tuplestore.Object{Type: schema.ScopeType, ID: scope}, Action: schema.ScopeHolder})
	}
	if len(queries) == 0 {
		return nil
	}
	res, err := c.engine.Check(ctx, tenantID, engine.CheckRequest{Subject: tuplestore.Subject{Type: caller.Type, ID: caller.ID}, Queries: queries})
	if err != nil {
		return fmt.Errorf("compare rights: %w", err)
	}
	for i, d := range res.Decisions {
		if !d.Allowed {
			return &DeniedError{queries[i].Resource.ID}
		}
	}
	return nil
}

// MayManage fails with [*DeniedError] unless the context's caller holds every guarded scope
// that a user holds. It reads the database, so it must not be called within a transaction.
func (c *Checker) MayManage(ctx context.Context, tenantID, userID string) error {
	if _, ok := Of(ctx); !ok {
		return nil
	}
	if c == nil {
		return errors.New("authority: no checker")
	}
	held, err := c.engine.ListResources(ctx, tenantID, engine.ListResourcesRequest{
		Subject: tuplestore.Subject{Type: schema.UserType, ID: userID}, Type: schema.ScopeType, Action: schema.ScopeHolder,
	})
	if err != nil {
		return fmt.Errorf("compare rights: %w", err)
	}
	return c.MayGive(ctx, tenantID, held.IDs)
}
