package controlplane

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math"
	"strings"
	"sync/atomic"
	"time"

	lru "github.com/hashicorp/golang-lru/v2"

	"stonetown/internal/lease"
	"stonetown/internal/sqldb"
)

// Config configures a directory.
type Config struct {
	// DB holds the rows. Required; its tables are [Migrations].
	DB *sqldb.DB

	// ControlURL is the address of the control plane, as the base URL of a tenant: the system
	// tenant is served there, and tenants that are created by slug get the host beside it
	// ([Directory.TenantURL]). Default: there is no control plane.
	ControlURL string
	// Clock returns the current time. Default: time.Now.
	Clock func() time.Time
	// Logger receives the errors of background work. Default: they are discarded.
	Logger *slog.Logger
}

// Directory stores organisations and tenants. It is safe for concurrent use.
type Directory struct {
	db      *sqldb.DB
	system  Tenant // without an id if there is no control plane
	control string // the host of the control plane; empty: there is none
	clock   func() time.Time
	log     *slog.Logger
	cache   *lru.Cache[string, answer]
	lease   *lease.Lease // of the version
	version atomic.Int64 // of all tenants, as this process has read it
}

// cacheSize bounds the cached hosts, so that a flood of invented host names costs a few megabytes
// at most.
const cacheSize = 16384

// answer is a cached lookup; a tenant without an id was not found. It is valid for one version.
type answer struct {
	tenant  Tenant
	version int64
}

// New returns the directory in c.DB.
func New(c Config) (*Directory, error) {
	if c.DB == nil {
		return nil, errors.New("controlplane: Config.DB is required")
	}
	if c.Clock == nil {
		c.Clock = time.Now
	}
	cache, err := lru.New[string, answer](cacheSize)
	if err != nil {
		return nil, fmt.Errorf("controlplane: %w", err)
	}
	if c.Logger == nil {
		c.Logger = slog.New(slog.DiscardHandler)
	}
	d := &Directory{db: c.DB, clock: c.Clock, log: c.Logger, cache: cache}
	if c.ControlURL != "" {
		if d.control, err = hostOf(c.ControlURL); err != nil {
			return nil, fmt.Errorf("controlplane: Config.ControlURL: %w", err)
		}
		d.system = Tenant{ID: SystemTenant, Slug: "system", Name: "Control plane", BaseURL: c.ControlURL, State: TenantActive}
	}
	d.lease = lease.New(d.readVersion)
	return d, nil
}

// now has the precision of the database.
func (d *Directory) now() time.Time { return d.clock().UTC().Truncate(time.Microsecond) }

// TenantByHost returns the tenant of a host without port, in any state; case and one trailing
// dot do not matter. It fails with [ErrTenantNotFound]. The result is at most one [lease.Term] old.
func (d *Directory) TenantByHost(ctx context.Context, host string) (Tenant, error) {
	host = strings.TrimSuffix(strings.ToLower(host), ".")
	if host == "" || len(host) > 253 { // the longest DNS name
		return Tenant{}, ErrTenantNotFound
	}
	if host == d.control {
		return d.system, nil
	}
	return d.cached(ctx, host, func() (Tenant, error) { return selectTenantByHost(ctx, d.db, host) })
}

// FirstTenant returns the first tenant that was created and is not decommissioned, which a
// development server serves on localhost. It fails with [ErrTenantNotFound] if there is none. The result is at most one
// [lease.Term] old.
func (d *Directory) FirstTenant(ctx context.Context) (Tenant, error) {
	// No host is empty, so the empty key is available.
	return d.cached(ctx, "", func() (Tenant, error) { return selectFirstTenant(ctx, d.db) })
}

// TenantByID returns a tenant in any state. It fails with [ErrTenantNotFound].
func (d *Directory) TenantByID(ctx context.Context, tenantID string) (Tenant, error) {
	if tenantID == SystemTenant && d.control != "" {
		return d.system, nil
	}
	if !sqldb.IsText(tenantID) {
		return Tenant{}, ErrTenantNotFound
	}
	return selectTenantByID(ctx, d.db, tenantID)
}

// TenantBySlug returns a tenant in any state. It fails with [ErrTenantNotFound].
func (d *Directory) TenantBySlug(ctx context.Context, slug string) (Tenant, error) {
	return selectTenantBySlug(ctx, d.db, slug)
}

// ControlURL returns the address of the control plane; empty: there is none.
func (d *Directory) ControlURL() string { return d.system.BaseURL }

// TenantURL returns the base URL of a new tenant: that of the control plane with the slug in place
// of the first label of its host.
func (d *Directory) TenantURL(slug string) string {
	scheme, host, _ := strings.Cut(d.system.BaseURL, "://")
	_, domain, _ := strings.Cut(host, ".")
	return scheme + "://" + slug + "." + domain
}

// MaxPage is how many tenants are listed at once at most.
const MaxPage = 250

// Tenants lists up to limit tenants after a slug, by slug, in all states.
func (d *Directory) Tenants(ctx context.Context, after string, limit int) (list []Tenant, err error) {
	if list, err = scanTenants(d.db.Query(ctx, selectTenants, after, min(limit, MaxPage))); err != nil {
		return nil, fmt.Errorf("list tenants: %w", err)
	}
	return list, nil
}

// TenantsOf lists up to limit tenants of an organisation, newest first, in one state or, if it is
// empty, in all states, after a tenant (the zero time: from the newest).
func (d *Directory) TenantsOf(ctx context.Context, orgID string, state TenantState, createdAt time.Time, id string, limit int) ([]Tenant, error) {
	before := int64(math.MaxInt64)
	if !createdAt.IsZero() {
		before = createdAt.UnixMicro()
	}
	list, err := scanTenants(d.db.Query(ctx, selectTenantsOf, orgID, string(state), before, id, limit))
	if err != nil {
		return nil, fmt.Errorf("list tenants: %w", err)
	}
	return list, nil
}

// CountTenants counts the tenants of an organisation that are not decommissioned.
func (d *Directory) CountTenants(ctx context.Context, tx *sqldb.Tx, orgID string) (n int, err error) {
	err = tx.QueryRow(ctx, countTenants, orgID).Scan(&n)
	return n, err
}

// Provisioning lists up to limit tenants that have been in this state since a time.
func (d *Directory) Provisioning(ctx context.Context, since time.Time, limit int) ([]Tenant, error) {
	return scanTenants(d.db.Query(ctx, selectProvisioning, since.UnixMicro(), limit))
}

// InactiveTenants lists the ids of the tenants that are not active.
func (d *Directory) InactiveTenants(ctx context.Context) ([]string, error) {
	return sqldb.Texts(d.db.Query(ctx, selectInactive))
}

// Empty reports, as of the transaction, whether no tenant was ever created.
func (d *Directory) Empty(ctx context.Context, tx *sqldb.Tx) (bool, error) {
	var n int64
	err := tx.QueryRow(ctx, selectAny).Scan(&n)
	return n == 0, err
}

// cached returns the result of read for the current version of the tenants. That a tenant does not
// exist, or is not active yet, is answered for the version of this moment, so that a new tenant is
// served at once.
func (d *Directory) cached(ctx context.Context, key string, read func() (Tenant, error)) (Tenant, error) {
	if err := d.lease.Hold(ctx); err != nil {
		return Tenant{}, err
	}
	a, ok := d.cache.Get(key)
	if ok && a.version == d.version.Load() && (a.tenant.ID == "" || a.tenant.State == TenantProvisioning) {
		if err := d.lease.Renew(ctx); err != nil {
			return Tenant{}, err
		}
	}
	version := d.version.Load() // before the read, which may see a newer one
	if ok && a.version == version {
		if a.tenant.ID == "" {
			return Tenant{}, ErrTenantNotFound
		}
		return a.tenant, nil
	}
	tenant, err := read()
	if err == nil || errors.Is(err, ErrTenantNotFound) && key != "" { // a first tenant is found as soon as it exists
		d.cache.Add(key, answer{tenant, version})
	}
	return tenant, err
}

func (d *Directory) readVersion(ctx context.Context) error {
	version, err := selectVersion(ctx, d.db)
	if err == nil {
		d.version.Store(version)
	}
	return err
}
