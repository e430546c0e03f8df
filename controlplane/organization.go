package controlplane

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"stonetown/internal/eventlog"
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

// CreateOrganization adds an organisation, with its event. It fails with [ErrSlugInvalid],
// [ErrNameInvalid] or [ErrSlugTaken].
func (d *Directory) CreateOrganization(ctx context.Context, tx *sqldb.Tx, slug, name string) (Organization, error) {
	return d.CreateOrganizationAs(ctx, tx, id.New(id.Organization), slug, name)
}

// CreateOrganizationAs is CreateOrganization with a given id.
func (d *Directory) CreateOrganizationAs(ctx context.Context, tx *sqldb.Tx, orgID, slug, name string) (Organization, error) {
	now := d.now()
	o := Organization{ID: orgID, Slug: slug, Name: name, CreatedAt: now, UpdatedAt: now}
	if !validSlug(slug) {
		return Organization{}, fmt.Errorf("create organisation %q: %w", slug, ErrSlugInvalid)
	}
	if !validName(name) {
		return Organization{}, fmt.Errorf("create organisation %q: %w", slug, ErrNameInvalid)
	}
	if err := insertOrganization(ctx, tx, o); err != nil {
		return Organization{}, fmt.Errorf("create organisation %q: %w", slug, err)
	}
	var b sqldb.Batch
	eventlog.Append(&b, o.ID, eventlog.Of(ctx, OrganizationCreatedEvent, o.Document()))
	if err := tx.Send(ctx, &b); err != nil {
		return Organization{}, fmt.Errorf("create organisation %q: %w", slug, err)
	}
	return o, nil
}

// RenameOrganization changes the name of an organisation, with an event in the origin of ctx. It
// fails with [ErrOrganizationNotFound] or [ErrNameInvalid].
func (d *Directory) RenameOrganization(ctx context.Context, orgID, name string) (o Organization, err error) {
	if !validName(name) {
		return Organization{}, ErrNameInvalid
	}
	err = d.db.Tx(ctx, func(tx *sqldb.Tx) error {
		if o, err = scanOrganization(tx.QueryRow(ctx, selectOrganization+`WHERE id = $1`, orgID)); err != nil || o.Name == name {
			return err
		}
		o.Name, o.UpdatedAt = name, d.now()
		var b sqldb.Batch
		b.Queue(`UPDATE organizations SET name = $2, updated_at = $3 WHERE id = $1`, []any{o.ID, o.Name, o.UpdatedAt.UnixMicro()}, nil)
		eventlog.Append(&b, o.ID, eventlog.Of(ctx, OrganizationUpdatedEvent, o.Document()))
		return tx.Send(ctx, &b)
	})
	if err != nil {
		return Organization{}, fmt.Errorf("rename organisation %s: %w", orgID, err)
	}
	return o, nil
}

// ErrOrganizationNotFound is returned by lookups that match no organisation.
var ErrOrganizationNotFound = errors.New("organisation not found")

// OrganizationBySlug returns an organisation. It fails with [ErrOrganizationNotFound].
func (d *Directory) OrganizationBySlug(ctx context.Context, slug string) (Organization, error) {
	return scanOrganization(d.db.QueryRow(ctx, selectOrganization+`WHERE slug = $1`, slug))
}

// OrganizationByID returns an organisation. It fails with [ErrOrganizationNotFound].
func (d *Directory) OrganizationByID(ctx context.Context, orgID string) (Organization, error) {
	return scanOrganization(d.db.QueryRow(ctx, selectOrganization+`WHERE id = $1`, orgID))
}

// OrganizationsByID returns those of some organisations that exist, newest first.
func (d *Directory) OrganizationsByID(ctx context.Context, orgIDs []string) (list []Organization, err error) {
	var b sqldb.Batch
	for _, orgID := range orgIDs {
		b.Queue(selectOrganization+`WHERE id = $1`, []any{orgID}, func(rows *sqldb.Rows) error {
			for rows.Next() {
				o, err := scanOrganization(rows)
				if err != nil {
					return err
				}
				list = append(list, o)
			}
			return nil
		})
	}
	if err := d.db.Send(ctx, &b); err != nil {
		return nil, fmt.Errorf("read organisations: %w", err)
	}
	slices.SortFunc(list, func(a, b Organization) int {
		return cmp.Or(b.CreatedAt.Compare(a.CreatedAt), cmp.Compare(b.ID, a.ID))
	})
	return list, nil
}
