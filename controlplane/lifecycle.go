package controlplane

import (
	"context"
	"fmt"
	"slices"
	"time"

	"stonetown/internal/eventlog"
	"stonetown/internal/lease"
	"stonetown/internal/sqldb"
)

// PurgeAfter is how long the data of a decommissioned tenant is kept.
const PurgeAfter = 30 * 24 * time.Hour

// StateError is returned for a change of state that the state of the tenant does not allow.
type StateError struct {
	State TenantState // of the tenant
}

func (e *StateError) Error() string { return "the tenant is " + string(e.State) }

// change is a change of the state of a tenant.
type change struct {
	from  []TenantState
	apply func(t *Tenant, now time.Time)
	event eventlog.Type // empty: none
	// settles waits until every process knows of the change.
	settles bool
}

// Activate makes a tenant active that was created as provisioning. It fails with
// [ErrTenantNotFound] or [*StateError].
func (d *Directory) Activate(ctx context.Context, tenantID string) (Tenant, error) {
	return d.change(ctx, tenantID, eventlog.Origin{}, change{[]TenantState{TenantProvisioning}, func(t *Tenant, _ time.Time) {
		t.State = TenantActive
	}, "", false})
}

// Rename changes the name of a tenant. It fails with [ErrTenantNotFound], [ErrNameInvalid] or
// [*StateError].
func (d *Directory) Rename(ctx context.Context, tenantID, name string, o eventlog.Origin) (Tenant, error) {
	if !validName(name) {
		return Tenant{}, ErrNameInvalid
	}
	return d.change(ctx, tenantID, o, change{[]TenantState{TenantProvisioning, TenantActive, TenantSuspended}, func(t *Tenant, _ time.Time) {
		t.Name = name
	}, TenantUpdatedEvent, false})
}

// Suspend suspends an active tenant, until [Directory.Resume]. It fails with [ErrTenantNotFound],
// [ErrReasonInvalid] or [*StateError]. After it returns, no process serves the tenant.
func (d *Directory) Suspend(ctx context.Context, tenantID, reason string, o eventlog.Origin) (Tenant, error) {
	if !validName(reason) {
		return Tenant{}, ErrReasonInvalid
	}
	return d.change(ctx, tenantID, o, change{[]TenantState{TenantActive}, func(t *Tenant, now time.Time) {
		t.State, t.SuspendedAt, t.SuspendReason = TenantSuspended, now, reason
	}, TenantSuspendedEvent, true})
}

// Resume makes a suspended tenant active. It fails with [ErrTenantNotFound] or [*StateError].
func (d *Directory) Resume(ctx context.Context, tenantID string, o eventlog.Origin) (Tenant, error) {
	return d.change(ctx, tenantID, o, change{[]TenantState{TenantSuspended}, func(t *Tenant, _ time.Time) {
		t.State, t.SuspendedAt, t.SuspendReason = TenantActive, time.Time{}, ""
	}, TenantResumedEvent, true})
}

// Decommission ends a tenant for good. Its data is deleted after [PurgeAfter], and its slug and its
// host are never used again. It fails with [ErrTenantNotFound] or [*StateError]. After it returns,
// no process serves the tenant.
func (d *Directory) Decommission(ctx context.Context, tenantID string, o eventlog.Origin) (Tenant, error) {
	return d.change(ctx, tenantID, o, change{[]TenantState{TenantActive, TenantSuspended}, func(t *Tenant, now time.Time) {
		t.State, t.SuspendedAt, t.SuspendReason = TenantDecommissioned, time.Time{}, ""
		t.DecommissionedAt, t.PurgeAt = now, now.Add(PurgeAfter)
	}, TenantDecommissionedEvent, true})
}

// change changes the state of a tenant, with its event in the log of the organisation. Of changes
// at the same time, one finds the state that another one has left.
func (d *Directory) change(ctx context.Context, tenantID string, o eventlog.Origin, c change) (t Tenant, err error) {
	err = d.db.Tx(ctx, func(tx *sqldb.Tx) error {
		if err := advance(ctx, tx); err != nil { // orders the changes
			return err
		}
		if t, err = selectTenantByID(ctx, tx, tenantID); err != nil {
			return err
		}
		if !slices.Contains(c.from, t.State) {
			return &StateError{t.State}
		}
		now := d.now()
		c.apply(&t, now)
		t.UpdatedAt = now
		var b sqldb.Batch
		updateTenant(&b, t)
		if c.event != "" {
			eventlog.Append(&b, t.OrgID, eventlog.New(c.event, o, t.Document()))
		}
		return tx.Send(ctx, &b)
	})
	if err != nil {
		return Tenant{}, fmt.Errorf("change tenant %s: %w", tenantID, err)
	}
	d.lease.End()
	if c.settles {
		lease.Settle(ctx)
	}
	return t, nil
}
