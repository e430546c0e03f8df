package federation

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"reflect"
	"slices"
	"time"

	"golang.org/x/sync/singleflight"

	"stonetown/engine/authority"
	"stonetown/identity"
	"stonetown/identity/external"
	"stonetown/identity/federation/claims"
	"stonetown/identity/federation/relyingparty"
	"stonetown/internal/eventlog"
	"stonetown/internal/id"
	"stonetown/internal/jobs"
	"stonetown/internal/outbound"
	"stonetown/internal/seal"
	"stonetown/internal/sqldb"
)

// errChanged: another request changed the connection concurrently.
var errChanged = errors.New("the connection was changed concurrently")

// Groups is the part of [identity.Directory] that the registry uses.
type Groups interface {
	Group(ctx context.Context, tenantID, groupID string) (identity.Group, error)
}

// Authority is the part of [authority.Checker] that the registry uses.
type Authority interface {
	MayGive(ctx context.Context, tenantID string, scopes []string) error
}

// Tenants returns the tenants of connections that are refreshed.
type Tenants interface {
	FederationTenant(ctx context.Context, tenantID string) (Tenant, error)
}

// Config configures a [Registry]. All fields are required.
type Config struct {
	DB        *sqldb.DB
	Seal      *seal.Key // encrypts secrets
	Groups    Groups
	Authority Authority
	// Scopes are the scopes that a caller needs to decide which accounts users get: those of
	// administrators.
	Scopes   []string
	Tenants  Tenants
	Jobs     *jobs.Queue
	Outbound *outbound.Client // fetches metadata
	// Providers validates discovery documents.
	Providers *relyingparty.Service
	Clock     func() time.Time
	Logger    *slog.Logger
}

// Registry stores the connections of all tenants. It is safe for concurrent use.
type Registry struct {
	db        *sqldb.DB
	seal      *seal.Key
	groups    Groups
	authority Authority
	scopes    []string
	tenants   Tenants
	jobs      *jobs.Queue
	outbound  *outbound.Client
	providers *relyingparty.Service
	clock     func() time.Time
	log       *slog.Logger
	refreshes singleflight.Group
}

// NewRegistry returns the registry of the connections in c.DB, and registers its kind of job.
func NewRegistry(c Config) *Registry {
	r := &Registry{
		db: c.DB, seal: c.Seal, groups: c.Groups, authority: c.Authority, scopes: c.Scopes, tenants: c.Tenants, jobs: c.Jobs,
		outbound: c.Outbound, providers: c.Providers, clock: c.Clock, log: c.Logger,
	}
	r.registerJob()
	return r
}

func (r *Registry) now() time.Time { return r.clock().UTC().Truncate(time.Microsecond) }

// Create creates an enabled connection from the fields that a caller sets, over the
// [Kind.Defaults], after it has read the metadata of the provider. It fails with [*KindError],
// [*FieldError], [*claims.Error], [ErrSlugInvalid], [ErrSlugTaken], [*DomainError],
// [*MetadataError] or [ErrTooMany], or with [*authority.DeniedError] for rights that the caller
// lacks.
func (r *Registry) Create(ctx context.Context, t Tenant, c Connection) (Connection, error) {
	c = c.clone()
	c.normalize()
	c.ID, c.TenantID, c.State, c.version = id.New(id.Connection), t.ID, Enabled, 1
	c.CreatedAt = r.now()
	c.UpdatedAt = c.CreatedAt
	if err := c.validate(r.outbound); err != nil {
		return Connection{}, err
	}
	if err := r.checkGroups(ctx, t.ID, nil, c.GroupMapping); err != nil {
		return Connection{}, err
	}
	if err := r.mayCreate(ctx, &c); err != nil {
		return Connection{}, err
	}
	if c.hasMetadata() {
		if err := r.read(ctx, &c); err != nil {
			return Connection{}, err
		}
	}
	c.sealSecrets(r.seal)
	err := r.db.Tx(ctx, func(tx *sqldb.Tx) error {
		if err := record(ctx, tx, t.ID, created(ctx, t, c)); err != nil {
			return err
		}
		var count int64
		if err := tx.QueryRow(ctx, countConnections, t.ID).Scan(&count); err != nil {
			return err
		}
		if count >= MaxConnections {
			return ErrTooMany
		}
		if err := insert(ctx, tx, c, r.checkAt(c)); err != nil {
			return err
		}
		return addDomains(ctx, tx, c, c.Domains)
	})
	if err != nil {
		return Connection{}, fmt.Errorf("create connection: %w", err)
	}
	return c, nil
}

// Get reads a connection. It fails with [ErrNotFound].
func (r *Registry) Get(ctx context.Context, tenantID, connectionID string) (Connection, error) {
	c, err := selectOne(ctx, r.db, selectByID, tenantID, connectionID)
	if err != nil {
		return Connection{}, fmt.Errorf("read connection: %w", err)
	}
	return c, nil
}

// BySlug reads a connection by its slug. It fails with [ErrNotFound].
func (r *Registry) BySlug(ctx context.Context, tenantID, slug string) (Connection, error) {
	c, err := selectOne(ctx, r.db, selectBySlug, tenantID, slug)
	if err != nil {
		return Connection{}, fmt.Errorf("read connection: %w", err)
	}
	return c, nil
}

// Filter selects connections of a list. Empty fields select all.
type Filter struct {
	Kinds []Kind
	State State
}

// List lists the connections of a tenant, newest first: at most [MaxConnections].
func (r *Registry) List(ctx context.Context, tenantID string, f Filter) ([]Summary, error) {
	found, err := summaries(ctx, r.db, selectSummaries, tenantID)
	if err != nil {
		return nil, fmt.Errorf("list connections: %w", err)
	}
	return slices.DeleteFunc(found, func(s Summary) bool {
		return len(f.Kinds) > 0 && !slices.Contains(f.Kinds, s.Kind) || f.State != "" && s.State != f.State
	}), nil
}

// ByDomain returns the enabled connection of the users with addresses of a domain, in any form
// ([NormalDomain]). It fails with [ErrNotFound].
func (r *Registry) ByDomain(ctx context.Context, tenantID, domain string) (Summary, error) {
	domain = NormalDomain(domain)
	if domain == "" {
		return Summary{}, ErrNotFound
	}
	found, err := summaries(ctx, r.db, selectByDomain, tenantID, domain)
	if err != nil {
		return Summary{}, fmt.Errorf("find connection of a domain: %w", err)
	}
	if len(found) == 0 || found[0].State != Enabled {
		return Summary{}, ErrNotFound
	}
	return found[0], nil
}

// Change is a change of a connection.
type Change struct {
	// Apply changes the present connection and may be called more than once; it can refuse.
	// Fields that never change are ignored.
	Apply func(*Connection) error
	// Reread reads the metadata of the provider again, even if the provider is the same.
	Reread bool
}

// Update changes a connection. If it changes nothing, nothing is written. It fails with
// [ErrNotFound], the error of change.Apply, or as [Registry.Create] does.
func (r *Registry) Update(ctx context.Context, t Tenant, connectionID string, change Change) (after Connection, err error) {
	const attempts = 5
	for range attempts {
		if after, err = r.tryUpdate(ctx, t, connectionID, change); !errors.Is(err, errChanged) {
			break
		}
	}
	if err != nil {
		return Connection{}, fmt.Errorf("update connection: %w", err)
	}
	return after, nil
}

func (r *Registry) tryUpdate(ctx context.Context, t Tenant, connectionID string, change Change) (Connection, error) {
	before, err := r.Get(ctx, t.ID, connectionID)
	if err != nil {
		return before, err
	}
	after := before.clone()
	if err := change.Apply(&after); err != nil {
		return after, err
	}
	after.ID, after.TenantID, after.Slug, after.Kind, after.CreatedAt = before.ID, before.TenantID, before.Slug, before.Kind, before.CreatedAt
	after.normalize()
	if after.LinkPolicy == "" { // its default, as for a new connection
		if err := r.defaultLinkPolicy(ctx, &after); err != nil {
			return after, err
		}
	}
	if err := after.validate(r.outbound); err != nil {
		return after, err
	}
	if err := r.checkGroups(ctx, t.ID, before.GroupMapping, after.GroupMapping); err != nil {
		return after, err
	}
	if err := r.mayUpdate(ctx, before, after); err != nil {
		return after, err
	}
	switch {
	case !after.hasMetadata():
		after.Metadata = Metadata{}
	case change.Reread || after.source() != before.source() || after.MetadataXML != before.MetadataXML:
		if err := r.read(ctx, &after); err != nil {
			return after, err
		}
	default:
		if err := after.checkSupported(); err != nil {
			return after, err
		}
	}
	if same(before, after) {
		return before, nil
	}
	after.UpdatedAt = r.now()
	events := changed(ctx, t, before, after)
	if len(events) == 0 { // the metadata was read again, and is as it was
		after.UpdatedAt = before.UpdatedAt
	}
	after.sealSecrets(r.seal)
	err = r.db.Tx(ctx, func(tx *sqldb.Tx) error {
		if err := record(ctx, tx, t.ID, events...); err != nil {
			return err
		}
		var b sqldb.Batch
		for _, domain := range before.Domains {
			if !slices.Contains(after.Domains, domain) {
				b.Queue(deleteDomain, []any{t.ID, domain, after.ID}, nil)
			}
		}
		if b.Len() > 0 {
			if err := tx.Send(ctx, &b); err != nil {
				return err
			}
		}
		if err := update(ctx, tx, after, r.checkAt(after)); err != nil {
			return err
		}
		return addDomains(ctx, tx, after, slices.DeleteFunc(slices.Clone(after.Domains), func(domain string) bool { return slices.Contains(before.Domains, domain) }))
	})
	after.version++
	return after, err
}

// Enable enables a connection. It fails with [ErrNotFound].
func (r *Registry) Enable(ctx context.Context, t Tenant, connectionID string) (Connection, error) {
	return r.setState(ctx, t, connectionID, Enabled)
}

// Disable disables a connection: no user can sign in with it, and sessions stay. It fails with
// [ErrNotFound].
func (r *Registry) Disable(ctx context.Context, t Tenant, connectionID string) (Connection, error) {
	return r.setState(ctx, t, connectionID, Disabled)
}

func (r *Registry) setState(ctx context.Context, t Tenant, connectionID string, s State) (Connection, error) {
	return r.Update(ctx, t, connectionID, Change{Apply: func(c *Connection) error {
		c.State = s
		return nil
	}})
}

// Delete deletes a connection, with the external identities that users have at it. It fails
// with [ErrNotFound].
func (r *Registry) Delete(ctx context.Context, t Tenant, connectionID string) error {
	err := r.db.Tx(ctx, func(tx *sqldb.Tx) error {
		c, err := selectOne(ctx, tx, selectByID, t.ID, connectionID)
		if err != nil {
			return err
		}
		if err := record(ctx, tx, t.ID, deleted(ctx, t, c)); err != nil {
			return err
		}
		var b sqldb.Batch
		b.Queue(deleteConnection, []any{t.ID, connectionID}, nil)
		b.Queue(deleteDomains, []any{t.ID, connectionID}, nil)
		external.RemoveConnection(&b, t.ID, connectionID)
		return tx.Send(ctx, &b)
	})
	if err != nil {
		return fmt.Errorf("delete connection: %w", err)
	}
	return nil
}

// Preview returns the account that a connection would make of claims; with a mapping, of that
// one instead of its own. It changes nothing. It fails with [ErrNotFound] or [*claims.Error].
func (r *Registry) Preview(ctx context.Context, tenantID, connectionID string, from map[string]any, mapping map[string]string) (User, []claims.Warning, error) {
	c, err := r.Get(ctx, tenantID, connectionID)
	if err != nil {
		return User{}, nil, err
	}
	if mapping != nil {
		c.AttributeMapping = mapping
		if _, err := c.Mapping(); err != nil {
			return User{}, nil, err
		}
		if err := c.checkSupported(); err != nil {
			return User{}, nil, err
		}
	}
	return c.User(from)
}

// record appends events, before the other statements of a transaction: they lock the log of the
// tenant, so that changes of its connections wait for each other there and nowhere else.
func record(ctx context.Context, tx *sqldb.Tx, tenantID string, events ...eventlog.Event) error {
	if len(events) == 0 {
		return nil
	}
	var b sqldb.Batch
	eventlog.Append(&b, tenantID, events...)
	return tx.Send(ctx, &b)
}

// read reads the metadata of a connection, and compares its mapping with it.
func (r *Registry) read(ctx context.Context, c *Connection) (err error) {
	if c.Metadata, err = r.fetch(ctx, *c); err != nil {
		return err
	}
	return c.checkSupported()
}

// checkSupported fails with [*claims.Error] if the mapping uses a claim that the provider does
// not list.
func (c Connection) checkSupported() error {
	p := c.Metadata.Provider
	if p == nil || len(p.Claims) == 0 {
		return nil
	}
	m, err := c.Mapping()
	if err != nil {
		return err
	}
	return m.Supports(p.Claims)
}

// checkGroups fails with [*FieldError] if a further rule names a group that does not exist. A
// rule whose group was deleted since then may stay, and has no effect.
func (r *Registry) checkGroups(ctx context.Context, tenantID string, before, after []GroupRule) error {
	for i, rule := range after {
		if slices.Contains(before, rule) {
			continue
		}
		_, err := r.groups.Group(ctx, tenantID, rule.GroupID)
		if errors.Is(err, identity.ErrGroupNotFound) {
			return &FieldError{fmt.Sprintf("group_mapping/%d/group_id", i), "unknown_value", "is not the id of a group"}
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// addDomains fails with [*DomainError].
func addDomains(ctx context.Context, tx *sqldb.Tx, c Connection, domains []string) error {
	for _, domain := range domains {
		n, err := tx.Exec(ctx, insertDomain, c.TenantID, domain, c.ID)
		if err != nil {
			return err
		}
		if n == 0 {
			return &DomainError{domain}
		}
	}
	return nil
}

// sealSecrets encrypts the secrets that were set.
func (c *Connection) sealSecrets(key *seal.Key) {
	c.ClientSecret.seal(key, *c, clientSecret)
	c.PrivateKey.seal(key, *c, privateKey)
}

// same reports whether two states of a connection are equal. A secret that was set again is
// not.
func same(a, b Connection) bool {
	return a.Name == b.Name && a.State == b.State && reflect.DeepEqual(a.Settings, b.Settings) && !secretsChanged(a, b) && reflect.DeepEqual(a.Metadata, b.Metadata)
}

// secretsChanged reports whether a secret was set or removed.
func secretsChanged(before, after Connection) bool {
	return after.ClientSecret.changes(before.ClientSecret) || after.PrivateKey.changes(before.PrivateKey)
}

var _ Authority = (*authority.Checker)(nil)
