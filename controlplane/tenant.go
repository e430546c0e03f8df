package controlplane

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"time"

	"stonetown/internal/eventlog"
	"stonetown/internal/id"
	"stonetown/internal/ratelimit"
	"stonetown/internal/sqldb"
	"stonetown/internal/text"
)

// SystemTenant is the id of the built-in tenant. Its users manage organisations.
const SystemTenant = "tnt_system"

var (
	// ErrTenantNotFound is returned by lookups that match no tenant.
	ErrTenantNotFound = errors.New("tenant not found")

	// ErrSlugInvalid is returned for a slug that cannot be a subdomain or is
	// reserved.
	ErrSlugInvalid = errors.New("slug is not 1 to 63 lower-case letters, digits and single hyphens, or is reserved")

	// ErrReasonInvalid is returned for a reason that is more than a line.
	ErrReasonInvalid = errors.New("reason is not one line of at most 500 bytes, without control characters")

	// ErrEnvironmentInvalid is returned for an unknown [Environment].
	ErrEnvironmentInvalid = errors.New("environment is not production, staging or development")

	// ErrNameInvalid is returned for a name that is more than a line.
	ErrNameInvalid = errors.New("name is not one line of at most 500 bytes, without control characters")

	// ErrSlugTaken is returned if the slug of an organisation or tenant, or the host of a
	// tenant, is in use.
	ErrSlugTaken = errors.New("slug or host is in use")

	// errControlHost is returned for a tenant at the address of the control plane, which would
	// never receive a request.
	errControlHost = fmt.Errorf("%w: the host is that of the control plane", ErrSlugTaken)

	// ErrBaseURLInvalid is returned for a base URL that is more than a scheme,
	// http or https, and a host.
	ErrBaseURLInvalid = errors.New("base URL is not http(s)://host[:port] in lower case")
)

// TenantState decides which requests are served on a tenant's host.
type TenantState string

// The states of a tenant; see the package documentation.
const (
	TenantProvisioning   TenantState = "provisioning"
	TenantActive         TenantState = "active"
	TenantSuspended      TenantState = "suspended"
	TenantDecommissioned TenantState = "decommissioned"
)

// Environment is what a tenant is for.
type Environment string

// The environments of tenants. They have no effect on a tenant.
const (
	Production  Environment = "production"
	Staging     Environment = "staging"
	Development Environment = "development"
)

// Tenant is an isolated set of users, applications and relations.
type Tenant struct {
	ID          string
	OrgID       string
	Slug        string // unique in the deployment and immutable
	Name        string
	BaseURL     string // canonical address and token issuer; no trailing slash
	State       TenantState
	Environment Environment
	Region      string    // of its data; empty if the deployment has none
	CreatedBy   string    // id of the user or application; empty: by a command
	CreatedAt   time.Time // UTC, as all times
	UpdatedAt   time.Time

	// Zero in other states.
	SuspendedAt      time.Time
	SuspendReason    string
	DecommissionedAt time.Time
	PurgeAt          time.Time // when its data is deleted; zero if it was

	// RateLimits are limits that replace the deployment's. They must not be changed.
	RateLimits ratelimit.Limits
	// Branding is the mark of the tenant's branding; empty: it has none.
	Branding string
}

// NewTenant has the values of a tenant to create.
type NewTenant struct {
	ID          string // default: a new one
	OrgID       string
	Slug        string
	Name        string
	BaseURL     string
	Environment Environment // default: production
	Region      string
	CreatedBy   string
	// Provisioning leaves the tenant in this state, until [Directory.Activate].
	Provisioning bool
}

// CreateTenant adds a tenant, with its event. Every process serves it as soon as the transaction has
// committed. CreateTenant fails with [ErrSlugInvalid], [ErrNameInvalid], [ErrEnvironmentInvalid],
// [ErrBaseURLInvalid] or [ErrSlugTaken].
func (d *Directory) CreateTenant(ctx context.Context, tx *sqldb.Tx, n NewTenant) (Tenant, error) {
	now := d.now()
	t := Tenant{
		ID: cmp.Or(n.ID, id.New(id.Tenant)), OrgID: n.OrgID, Slug: n.Slug, Name: n.Name, BaseURL: n.BaseURL,
		State: TenantActive, Environment: n.Environment, Region: n.Region, CreatedBy: n.CreatedBy, CreatedAt: now, UpdatedAt: now,
	}
	if n.Provisioning {
		t.State = TenantProvisioning
	}
	if t.Environment == "" {
		t.Environment = Production
	}
	host, err := d.validate(t)
	if err == nil {
		err = advance(ctx, tx)
	}
	if err == nil {
		err = insertTenant(ctx, tx, t, host)
	}
	if err == nil {
		var b sqldb.Batch
		eventlog.Append(&b, t.OrgID, eventlog.Of(ctx, TenantCreatedEvent, t.Document()))
		err = tx.Send(ctx, &b)
	}
	if err != nil {
		return Tenant{}, fmt.Errorf("create tenant %q: %w", n.Slug, err)
	}
	d.lease.End()
	return t, nil
}

// validate returns the host of a tenant whose slug, name, environment and base URL are valid.
func (d *Directory) validate(t Tenant) (host string, err error) {
	switch t.Environment {
	case Production, Staging, Development:
	default:
		return "", ErrEnvironmentInvalid
	}
	if !validSlug(t.Slug) || slices.Contains(reservedSlugs, t.Slug) {
		return "", ErrSlugInvalid
	}
	if !validName(t.Name) {
		return "", ErrNameInvalid
	}
	return d.tenantHost(t.BaseURL)
}

// tenantHost returns the host of the base URL of a tenant, without port.
func (d *Directory) tenantHost(baseURL string) (string, error) {
	host, err := hostOf(baseURL)
	if err == nil && host == d.control {
		err = errControlHost
	}
	return host, err
}

// MoveTenant changes a tenant's base URL. Tokens with the old issuer become invalid, so it is
// for development, where the port may change between starts.
func (d *Directory) MoveTenant(ctx context.Context, tx *sqldb.Tx, tenantID, baseURL string) error {
	host, err := d.tenantHost(baseURL)
	if err == nil {
		err = advance(ctx, tx)
	}
	if err == nil {
		err = updateBaseURL(ctx, tx, tenantID, baseURL, host)
	}
	if err != nil {
		return fmt.Errorf("move tenant %s: %w", tenantID, err)
	}
	d.lease.End()
	return nil
}

var slugPattern = regexp.MustCompile(`^[a-z0-9](-?[a-z0-9]){0,62}$`)

// validSlug reports whether a slug can be a DNS label.
func validSlug(slug string) bool { return len(slug) <= 63 && slugPattern.MatchString(slug) }

func validName(name string) bool { return len(name) <= 500 && text.IsLine(name) }

// reservedSlugs are hosts that the deployment needs itself.
var reservedSlugs = []string{
	"admin", "api", "app", "auth", "cdn", "console", "control", "docs", "help",
	"localhost", "login", "mail", "static", "status", "support", "system", "www",
}

// ValidBaseURL fails with [ErrBaseURLInvalid] for a text that cannot be the base URL of a tenant.
func ValidBaseURL(baseURL string) error {
	_, err := hostOf(baseURL)
	return err
}

// hostOf returns the host of a base URL, without port.
func hostOf(baseURL string) (string, error) {
	u, err := url.Parse(baseURL)
	if err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Hostname() == "" ||
		baseURL != u.Scheme+"://"+strings.ToLower(u.Host) {
		return "", ErrBaseURLInvalid
	}
	return u.Hostname(), nil
}
