package scope

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"stonetown/engine"
	"stonetown/internal/eventlog"
	"stonetown/internal/sqldb"
	"stonetown/schema"
	"stonetown/tuplestore"
)

var (
	// ErrNotFound is returned for a scope that is not registered.
	ErrNotFound = errors.New("scope is not registered")
	// ErrExists is returned for a scope that is registered already.
	ErrExists = errors.New("scope is already registered")
	// ErrReserved is returned for a change of a built-in scope.
	ErrReserved = errors.New("scope is built in")
	// ErrInvalid is returned for a name that a scope cannot have.
	ErrInvalid = errors.New("name of a scope is not 1 to 128 printable ASCII characters without space, quotation mark and backslash")
	// ErrInUse is returned for a scope that a group or an application has.
	ErrInUse = errors.New("scope is in use by a group or an application")
)

// Entitlement is the way in which users become entitled to a scope.
type Entitlement string

const (
	BySelf  Entitlement = "self"  // every user is; applications request it
	ByGroup Entitlement = "group" // members of a group that holds it
)

// Scope is a scope of a tenant.
type Scope struct {
	Name        string
	Description string
	Entitlement Entitlement
	BuiltIn     bool
	CreatedAt   time.Time // UTC; zero if it is built in
}

// Relations is the part of [engine.Engine] that the registry uses.
type Relations interface {
	Check(ctx context.Context, tenantID string, req engine.CheckRequest) (*engine.CheckResponse, error)
	Retire(ctx context.Context, tenantID string, o tuplestore.Object, origin engine.Origin) (token string, err error)
}

// Registry stores the scopes that tenants define, beside the built-in ones. It is safe for
// concurrent use.
type Registry struct {
	db        *sqldb.DB
	relations Relations
	clock     func() time.Time
}

// NewRegistry returns the registry in a database.
func NewRegistry(db *sqldb.DB, relations Relations) *Registry {
	return &Registry{db, relations, time.Now}
}

// describe returns a built-in scope.
func describe(name string) Scope {
	what, verb, _ := strings.Cut(name, ":")
	s := Scope{Name: name, Entitlement: ByGroup, BuiltIn: true}
	if what == "me" {
		what, s.Entitlement = "the user's own account", BySelf
	}
	if what == "scim" {
		what = "users and groups by SCIM"
	}
	s.Description = map[string]string{"read": "Read ", "write": "Change "}[verb] + what
	return s
}

// List lists all scopes of a tenant by name.
func (r *Registry) List(ctx context.Context, tenantID string) ([]Scope, error) {
	registered, err := Registered(ctx, r.db, tenantID)
	if err != nil {
		return nil, fmt.Errorf("list scopes: %w", err)
	}
	all := slices.Collect(maps.Values(registered))
	for _, name := range Builtin {
		all = append(all, describe(name))
	}
	slices.SortFunc(all, func(a, b Scope) int { return cmp.Compare(a.Name, b.Name) })
	return all, nil
}

// maxScopeName bounds the name of a scope, in bytes.
const maxScopeName = 128

// Create registers a scope. It fails with [ErrInvalid], [ErrReserved] or [ErrExists].
func (r *Registry) Create(ctx context.Context, tenantID string, s Scope) (Scope, error) {
	switch {
	case len(s.Name) > maxScopeName || !Valid(s.Name):
		return Scope{}, ErrInvalid
	case IsBuiltin(s.Name) || slices.Contains(OIDC, s.Name):
		return Scope{}, ErrReserved
	}
	s.CreatedAt = r.clock().UTC().Truncate(time.Microsecond)
	err := r.db.Tx(ctx, func(tx *sqldb.Tx) error {
		var b sqldb.Batch
		b.Queue(`INSERT INTO scopes (tenant_id, name, description, entitlement, created_at) VALUES ($1, $2, $3, $4, $5)`,
			[]any{tenantID, s.Name, s.Description, string(s.Entitlement), s.CreatedAt.UnixMicro()}, nil)
		eventlog.Append(&b, tenantID, scopeCreated(ctx, s))
		return tx.Send(ctx, &b)
	})
	if sqldb.IsUniqueViolation(err) {
		return Scope{}, ErrExists
	}
	if err != nil {
		return Scope{}, fmt.Errorf("register scope: %w", err)
	}
	return s, nil
}

// Update changes a scope, except its name. change is applied to the present scope; if it
// changes nothing, nothing is written. It fails with [ErrReserved] or [ErrNotFound].
func (r *Registry) Update(ctx context.Context, tenantID, name string, change func(*Scope)) (after Scope, err error) {
	if IsBuiltin(name) {
		return Scope{}, ErrReserved
	}
	err = r.db.Tx(ctx, func(tx *sqldb.Tx) error {
		registered, err := Registered(ctx, tx, tenantID)
		if err != nil {
			return err
		}
		before, ok := registered[name]
		if !ok {
			return ErrNotFound
		}
		after = before
		if change(&after); after == before {
			return nil
		}
		var b sqldb.Batch
		b.Queue(`UPDATE scopes SET description = $3, entitlement = $4 WHERE tenant_id = $1 AND name = $2`,
			[]any{tenantID, name, after.Description, string(after.Entitlement)}, nil)
		eventlog.Append(&b, tenantID, scopeUpdated(ctx, before, after))
		return tx.Send(ctx, &b)
	})
	if err != nil {
		return Scope{}, fmt.Errorf("update scope: %w", err)
	}
	return after, nil
}

// Delete removes a scope that no group or application has. origin names the actor. It fails
// with [ErrReserved], [ErrNotFound] or [ErrInUse].
func (r *Registry) Delete(ctx context.Context, tenantID, name string, origin engine.Origin) error {
	switch {
	case IsBuiltin(name):
		return ErrReserved
	case !Valid(name):
		return ErrNotFound
	}
	// Groups get scopes in the same order of transactions, and require that they exist.
	origin.Also = func(ctx context.Context, tx *sqldb.Tx) error {
		n, err := tx.Exec(ctx, `DELETE FROM scopes WHERE tenant_id = $1 AND name = $2`, tenantID, name)
		if err == nil && n == 0 {
			err = ErrNotFound
		}
		if err == nil {
			var used bool
			if used, err = applicationsUse(ctx, tx, tenantID, name); used {
				err = ErrInUse
			}
		}
		return err
	}
	origin.Attach = func(result tuplestore.Result, b *sqldb.Batch) {
		eventlog.AppendAt(b, tenantID, int64(result.Revision), scopeDeleted(ctx, name))
	}
	_, err := r.relations.Retire(ctx, tenantID, tuplestore.Object{Type: schema.ScopeType, ID: name}, origin)
	if errors.Is(err, engine.ErrHasRelations) {
		return ErrInUse
	}
	if err != nil {
		return fmt.Errorf("delete scope: %w", err)
	}
	return nil
}

// Querier is a database or a transaction.
type Querier interface {
	Query(ctx context.Context, sql string, args ...any) (*sqldb.Rows, error)
}

// UnknownScopes returns those of some scopes that a tenant does not have, as a transaction
// reads them; nil reads the present state.
func (r *Registry) UnknownScopes(ctx context.Context, from *sqldb.Tx, tenantID string, scopes []string) (unknown []string, err error) {
	for _, scope := range scopes {
		if !IsBuiltin(scope) {
			unknown = append(unknown, scope)
		}
	}
	if unknown == nil {
		return nil, nil
	}
	var on Querier = r.db
	if from != nil {
		on = from
	}
	registered, err := Registered(ctx, on, tenantID)
	if err != nil {
		return nil, fmt.Errorf("read scopes: %w", err)
	}
	return slices.DeleteFunc(unknown, func(scope string) bool { _, ok := registered[scope]; return ok }), nil
}

// Registered reads the scopes that a tenant defined, by name.
func Registered(ctx context.Context, from Querier, tenantID string) (map[string]Scope, error) {
	rows, err := from.Query(ctx, `SELECT name, description, entitlement, created_at FROM scopes WHERE tenant_id = $1`, tenantID)
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	found := map[string]Scope{}
	for rows.Next() {
		var s Scope
		var created int64
		if err := rows.Scan(&s.Name, &s.Description, (*string)(&s.Entitlement), &created); err != nil {
			return nil, err
		}
		s.CreatedAt = time.UnixMicro(created).UTC()
		found[s.Name] = s
	}
	return found, rows.Err()
}

// applicationsUse reports whether an application of the tenant has a scope.
func applicationsUse(ctx context.Context, tx *sqldb.Tx, tenantID, scope string) (bool, error) {
	rows, err := tx.Query(ctx, `SELECT allowed_scopes FROM applications WHERE tenant_id = $1`, tenantID)
	if err != nil {
		return false, err
	}
	defer rows.Close()
	used := false
	for rows.Next() {
		var scopes string
		if err := rows.Scan(&scopes); err != nil {
			return false, err
		}
		used = used || slices.Contains(strings.Fields(scopes), scope)
	}
	return used, rows.Err()
}

// Descriptions returns the tenant's descriptions of scopes, without those that have none.
func (s *Registry) Descriptions(ctx context.Context, tenantID string, scopes []string) (map[string]string, error) {
	registered, err := Registered(ctx, s.db, tenantID)
	if err != nil {
		return nil, err
	}
	said := map[string]string{}
	for _, scope := range scopes {
		if text := registered[scope].Description; text != "" {
			said[scope] = text
		}
	}
	return said, nil
}
