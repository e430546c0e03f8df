package workload

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"slices"

	"stonetown/internal/eventlog"
	"stonetown/internal/id"
	"stonetown/internal/sqldb"
	"stonetown/oauth/client"
	"stonetown/oauth/internal/storage"
	"stonetown/oauth/protocol"
)

// List lists the issuers of a tenant, by their iss.
func (r *Registry) List(ctx context.Context, tenantID string) ([]Issuer, error) {
	all, err := selectIssuers(ctx, r.db, tenantID)
	if err != nil {
		return nil, fmt.Errorf("list trusted issuers: %w", err)
	}
	return all, nil
}

// Create stores a new issuer. It fails with [*ValidationError], [ErrExists] or [ErrTooMany].
func (r *Registry) Create(ctx context.Context, tenant protocol.Tenant, i Issuer) (Issuer, error) {
	if err := i.validate(tenant.BaseURL, r.fetch); err != nil {
		return Issuer{}, err
	}
	i.ID, i.TenantID = id.New(id.TrustedIssuer), tenant.ID
	i.CreatedAt = storage.Now(r.clock)
	i.UpdatedAt = i.CreatedAt
	err := r.db.Tx(ctx, func(tx *sqldb.Tx) error {
		var n int
		if err := tx.QueryRow(ctx, `SELECT COUNT(*) FROM trusted_issuers WHERE tenant_id = $1`, tenant.ID).Scan(&n); err != nil {
			return err
		}
		if n >= MaxIssuers {
			return ErrTooMany
		}
		var b sqldb.Batch
		insertIssuer(&b, i)
		eventlog.Append(&b, tenant.ID, created(ctx, i))
		return tx.Send(ctx, &b)
	})
	if sqldb.IsUniqueViolation(err) {
		return Issuer{}, ErrExists
	}
	if err != nil {
		return Issuer{}, fmt.Errorf("create trusted issuer: %w", err)
	}
	return i, nil
}

// errChanged: another request changed the issuer, or the applications that name it.
var errChanged = errors.New("the trusted issuer was changed concurrently")

// Update changes an issuer. change is applied to the present issuer and may be called more than
// once. If it changes nothing, nothing is written. Update fails with [ErrNotFound],
// [*ValidationError], and with [*authority.DeniedError] unless the caller holds what the
// applications hold that name the issuer.
func (r *Registry) Update(ctx context.Context, tenant protocol.Tenant, issuerID, by string, change func(*Issuer)) (after Issuer, err error) {
	for {
		after, err = r.tryUpdate(ctx, tenant, issuerID, by, change)
		if !errors.Is(err, errChanged) {
			break
		}
	}
	if err != nil {
		return Issuer{}, fmt.Errorf("update trusted issuer: %w", err)
	}
	return after, nil
}

func (r *Registry) tryUpdate(ctx context.Context, tenant protocol.Tenant, issuerID, by string, change func(*Issuer)) (after Issuer, err error) {
	seen, err := r.Get(ctx, tenant.ID, issuerID)
	if err != nil {
		return after, err
	}
	after = seen
	if change(&after); equal(seen, after) {
		return after, nil
	}
	if err := after.validate(tenant.BaseURL, r.fetch); err != nil {
		return after, err
	}
	var held []string
	if after.trusts(seen) {
		if _, held, err = client.Trusting(ctx, r.db, tenant.ID, issuerID); err == nil {
			err = r.authority.MayGive(ctx, tenant.ID, held)
		}
		if err != nil {
			return after, err
		}
	}
	after.UpdatedAt, after.ChangedBy = storage.Now(r.clock), by
	err = r.db.Tx(ctx, func(tx *sqldb.Tx) error {
		before, err := selectIssuer(ctx, tx, tenant.ID, `id`, issuerID)
		if err != nil {
			return err
		}
		_, now, err := client.Trusting(ctx, tx, tenant.ID, issuerID)
		if err != nil {
			return err
		}
		more := slices.ContainsFunc(now, func(scope string) bool { return !slices.Contains(held, scope) })
		if !equal(before, seen) || after.trusts(seen) && more {
			return errChanged
		}
		var b sqldb.Batch
		updateIssuer(&b, after)
		eventlog.Append(&b, tenant.ID, updated(ctx, before, after))
		return tx.Send(ctx, &b)
	})
	return after, err
}

// Delete deletes an issuer that no workload identity names. It fails with [ErrNotFound] or
// [ErrInUse].
func (r *Registry) Delete(ctx context.Context, tenantID, issuerID string) error {
	err := r.db.Tx(ctx, func(tx *sqldb.Tx) error {
		i, err := selectIssuer(ctx, tx, tenantID, `id`, issuerID)
		if err != nil {
			return err
		}
		// Before the applications are read: those that name the issuer write its row.
		n, err := tx.Exec(ctx, `DELETE FROM trusted_issuers WHERE tenant_id = $1 AND id = $2`, tenantID, issuerID)
		if err == nil && n == 0 {
			err = ErrNotFound
		}
		if err != nil {
			return err
		}
		named, _, err := client.Trusting(ctx, tx, tenantID, issuerID)
		if err != nil {
			return err
		}
		if len(named) > 0 {
			return ErrInUse
		}
		var b sqldb.Batch
		eventlog.Append(&b, tenantID, deleted(ctx, i))
		return tx.Send(ctx, &b)
	})
	if err != nil {
		return fmt.Errorf("delete trusted issuer: %w", err)
	}
	return nil
}

func equal(a, b any) bool { return reflect.DeepEqual(a, b) }
