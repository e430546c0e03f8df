package eventlog

import (
	"context"
	"errors"
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
	before := l.clock().Add(-l.retention)
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
// to be kept. Those of commits are deleted by the store of the commits; see [Log.Floor].
func (l *Log) collect(ctx context.Context, tenantID string, before time.Time) error {
	for {
		h, err := l.settled(ctx, tenantID)
		if err != nil {
			return err
		}
		page, err := l.after(ctx, tenantID, h.floor.position, collectAtOnce)
		if _, raised := errors.AsType[*ExpiredError](err); raised {
			continue // by another process
		}
		if err != nil {
			return err
		}
		n := 0
		for n < len(page) && page[n].At.Before(before) {
			n++
		}
		if n == 0 {
			return nil
		}
		err = l.db.Tx(ctx, func(tx *sqldb.Tx) error { return deleteUpTo(ctx, tx, tenantID, h.floor, page[n-1].mark()) })
		if err != nil || n < collectAtOnce {
			return err
		}
	}
}

// Floor returns the newest revision of a tenant whose event, if its commit has one, is no longer
// kept.
func (l *Log) Floor(ctx context.Context, tenantID string) (revision int64, err error) {
	h, err := l.head(ctx, tenantID)
	if err != nil {
		return 0, fmt.Errorf("read floor of events: %w", err)
	}
	return h.floor.revision, nil
}
