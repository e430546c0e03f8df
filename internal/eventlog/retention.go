package eventlog

import (
	"context"
	"fmt"
	"time"

	"stonetown/internal/jobs"
	"stonetown/internal/sqldb"
)

const (
	collectEvery  = time.Hour
	collectAtOnce = 500 // events in one transaction
	tenantsAtOnce = 500
)

// Run deletes events that are past their retention, until ctx ends.
func (l *Log) Run(ctx context.Context) {
	jobs.Loop{Name: "collect events", Every: collectEvery, Logger: l.log}.Run(ctx, jobs.Once(l.Collect))
}

// Collect deletes the events that are past their retention. Several processes may
// do so at once.
func (l *Log) Collect(ctx context.Context) error {
	before := l.clock().Add(-l.retention).UnixMicro()
	after := ""
	for {
		tenants, err := l.expiring(ctx, before, after, tenantsAtOnce)
		if err != nil {
			return fmt.Errorf("collect events: %w", err)
		}
		for _, tenant := range tenants {
			if err := l.collect(ctx, tenant, before); err != nil {
				return fmt.Errorf("collect events of %s: %w", tenant, err)
			}
			after = tenant
		}
		if len(tenants) < tenantsAtOnce {
			return nil
		}
	}
}

// collect deletes a tenant's events from the floor up to the first one that has
// to be kept.
func (l *Log) collect(ctx context.Context, tenantID string, before int64) error {
	for {
		_, floor, err := l.head(ctx, tenantID)
		if err != nil {
			return err
		}
		times, err := l.times(ctx, tenantID, floor, collectAtOnce)
		if err != nil {
			return err
		}
		n := 0
		for n < len(times) && times[n] < before {
			n++
		}
		if n == 0 {
			return nil
		}
		err = l.db.Tx(ctx, func(tx *sqldb.Tx) error { return deleteUpTo(ctx, tx, tenantID, floor, floor+int64(n)) })
		if err != nil || n < collectAtOnce {
			return err
		}
	}
}
