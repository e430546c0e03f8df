package controlplane

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"stonetown/internal/eventlog"
	"stonetown/internal/jobs"
	"stonetown/internal/sqldb"
)

const (
	purgeEvery  = time.Minute
	purgeAtOnce = 1000 // rows in one statement
)

// Run deletes the data of decommissioned tenants when their time has come, until ctx ends. Every
// process may run it.
func (d *Directory) Run(ctx context.Context) {
	jobs.Loop{Name: "purge tenants", Every: purgeEvery, Logger: d.log}.Run(ctx, jobs.Once(d.Purge))
}

// Purge deletes the data of the decommissioned tenants whose time has come. A tenant is purged
// when a step finds no row of it: until then each step deletes what is there, so that one that was
// interrupted is continued by the next, and rows that were written at the same time are found.
func (d *Directory) Purge(ctx context.Context) error {
	due, err := sqldb.Texts(d.db.Query(ctx, selectPurgeable, d.now().UnixMicro(), purgeAtOnce))
	if err != nil || len(due) == 0 {
		return err
	}
	tables, err := d.db.TenantTables(ctx)
	if err != nil {
		return err
	}
	for _, tenantID := range due {
		if err := d.purge(ctx, tenantID, tables); err != nil {
			return fmt.Errorf("purge tenant %s: %w", tenantID, err)
		}
	}
	return nil
}

func (d *Directory) purge(ctx context.Context, tenantID string, tables []sqldb.TenantTable) error {
	found := false
	for _, table := range tables {
		statement := purgeStatement(table)
		for {
			n, err := d.db.Exec(ctx, statement, table.Tenant(tenantID), purgeAtOnce)
			if err != nil {
				return fmt.Errorf("table %s: %w", table.Name, err)
			}
			found = found || n > 0
			if n < purgeAtOnce {
				break
			}
		}
	}
	if found {
		return nil
	}
	return d.db.Tx(ctx, func(tx *sqldb.Tx) error {
		n, err := tx.Exec(ctx, updatePurged, tenantID)
		if err != nil || n == 0 { // another process has done it
			return err
		}
		if err := advance(ctx, tx); err != nil {
			return err
		}
		t, err := selectTenantByID(ctx, tx, tenantID)
		if err != nil {
			return err
		}
		var b sqldb.Batch
		eventlog.Append(&b, t.OrgID, eventlog.New(TenantPurgedEvent, eventlog.Origin{}, t.Document()))
		return tx.Send(ctx, &b)
	})
}

// purgeStatement deletes some rows of a tenant from a table of the product.
func purgeStatement(t sqldb.TenantTable) string {
	var key []string
	for _, column := range t.Key {
		key = append(key, `"`+column+`"`)
	}
	if len(key) > 1 { // the tenant is given
		key = slices.DeleteFunc(key, func(column string) bool { return column == `"`+t.Column+`"` })
	}
	columns := strings.Join(key, ", ")
	of := columns
	if len(key) > 1 {
		of = "(" + columns + ")"
	}
	return fmt.Sprintf(`DELETE FROM "%s" WHERE %s = $1 AND %s IN (SELECT %s FROM "%s" WHERE %s = $1 LIMIT $2)`, t.Name, t.Column, of, columns, t.Name, t.Column)
}
