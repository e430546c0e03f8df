package controlplane

import (
	"context"
	"errors"
	"fmt"
	"time"

	"stonetown/internal/id"
	"stonetown/internal/sqldb"
)

// Organization owns tenants.
type Organization struct {
	ID        string
	Slug      string // unique in the deployment
	Name      string
	CreatedAt time.Time // UTC, as all times
	UpdatedAt time.Time
}

// CreateOrganization adds an organisation. It fails with [ErrSlugInvalid],
// [ErrNameInvalid] or [ErrSlugTaken].
func (d *Directory) CreateOrganization(ctx context.Context, tx *sqldb.Tx, slug, name string) (Organization, error) {
	now := d.now()
	o := Organization{ID: id.New(id.Organization), Slug: slug, Name: name, CreatedAt: now, UpdatedAt: now}
	if !validSlug(slug) {
		return Organization{}, fmt.Errorf("create organisation %q: %w", slug, ErrSlugInvalid)
	}
	if !validName(name) {
		return Organization{}, fmt.Errorf("create organisation %q: %w", slug, ErrNameInvalid)
	}
	if err := insertOrganization(ctx, tx, o); err != nil {
		return Organization{}, fmt.Errorf("create organisation %q: %w", slug, err)
	}
	return o, nil
}

// ErrOrganizationNotFound is returned by lookups that match no organisation.
var ErrOrganizationNotFound = errors.New("organisation not found")

// OrganizationBySlug returns an organisation. It fails with [ErrOrganizationNotFound].
func (d *Directory) OrganizationBySlug(ctx context.Context, slug string) (Organization, error) {
	return scanOrganization(d.db.QueryRow(ctx, selectOrganization+`WHERE slug = $1`, slug))
}
