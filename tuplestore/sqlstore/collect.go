package sqlstore

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"stonetown/internal/jobs"
	"stonetown/internal/sqldb"
	"stonetown/tuplestore"
)

// Retention is the default retention of history.
const Retention = 24 * time.Hour

const (
	// receiptRetention is how long a write can be sent again with its commit ID: longer
	// than clients may do that.
	receiptRetention = 25 * time.Hour

	collectEvery  = 10 * time.Minute
	collectAtOnce = 500 // rows in one transaction
	commitsAtOnce = 100
	tenantsAtOnce = 500
)

// Run periodically deletes expired tuples and collects history older than the retention,
// until ctx ends.
func (s *Store) Run(ctx context.Context) {
	jobs.Loop{Name: "collect history", Every: collectEvery, Logger: s.Logger}.Run(ctx, jobs.Once(func(ctx context.Context) error {
		now := s.Clock()
		before := now.Add(-s.Retention)
		return errors.Join(s.Expire(ctx, before), s.Collect(ctx, before, now.Add(-receiptRetention)))
	}))
}

// Collect collects the history before an instant. The revision that was current at the
// instant and all later ones can still be read; earlier ones fail with
// [tuplestore.ErrRevisionCollected]. Receipts of writes before another instant are deleted.
// Several processes may collect concurrently, and one may end at any time.
func (s *Store) Collect(ctx context.Context, before, receipts time.Time) error {
	return s.eachTenant(ctx, selectCollectable, func(tenant string) error {
		if err := s.collect(ctx, tenant, before.UnixMicro(), receipts.UnixMicro()); err != nil {
			return fmt.Errorf("collect tenant %s: %w", tenant, err)
		}
		return nil
	}, receipts.UnixMicro(), s.Clock().Add(-s.EventRetention).UnixMicro())
}

// eachTenant calls fn with every tenant that a statement selects, until one fails. The statement
// reads one index entry of a tenant that has nothing to do.
func (s *Store) eachTenant(ctx context.Context, statement string, fn func(tenant string) error, at ...any) error {
	for after := ""; ; {
		tenants, err := sqldb.Texts(s.DB.Query(ctx, statement, append([]any{after, int64(tenantsAtOnce)}, at...)...))
		if err != nil {
			return fmt.Errorf("list tenants: %w", err)
		}
		for _, tenant := range tenants {
			if err := fn(tenant); err != nil {
				return err
			}
			after = tenant
		}
		if len(tenants) < tenantsAtOnce {
			return nil
		}
	}
}

const (
	// selectCollectable lists the tenants whose history may have grown since it was last collected,
	// whose last collection was not finished, that have receipts from before $3, or commits below
	// the floor whose events are from before $4. An idle tenant is none of them. Scalar subqueries
	// are read for each row by an index; EXISTS might become a join with a scan.
	selectCollectable = `
		SELECT h.tenant_id FROM tenant_heads AS h WHERE h.tenant_id > $1 AND (
			h.min_rev < h.rev
			OR h.collected_rev < h.min_rev - 1
			OR (SELECT MIN(r.committed_at) FROM tenant_receipts AS r WHERE r.tenant_id = h.tenant_id) < $3
			OR (SELECT c.committed_at FROM tenant_commits AS c WHERE c.tenant_id = h.tenant_id AND c.rev < h.min_rev ORDER BY c.rev LIMIT 1) < $4)
		ORDER BY h.tenant_id LIMIT $2`

	// selectExpiring lists the tenants with tuples that expired at $3 or before.
	selectExpiring = `
		SELECT h.tenant_id FROM tenant_heads AS h WHERE h.tenant_id > $1
			AND (SELECT MIN(t.expires_at) FROM tuples AS t WHERE t.tenant_number = h.tenant_number AND t.expires_at <> 0) <= $3
		ORDER BY h.tenant_id LIMIT $2`
)

// collect raises the floor first, so that no read uses rows that are being deleted, and
// then deletes the rows below it. The changelog names these tuples, and a commit counts as
// collected, or is deleted, after them, so an unfinished collection is continued. Commits with
// an event stay until the event is no longer kept.
func (s *Store) collect(ctx context.Context, tenant string, before, receipts int64) error {
	floor, err := s.floorAt(ctx, tenant, before)
	if err != nil {
		return err
	}
	_, err = s.DB.Exec(ctx, `UPDATE tenant_heads SET min_rev = $2 WHERE tenant_id = $1 AND min_rev < $2`, tenant, int64(floor))
	if err != nil {
		return err
	}
	if err := s.deleteAll(ctx, deleteSchemas, tenant, int64(floor), int64(collectAtOnce)); err != nil {
		return err
	}
	for {
		last, err := s.collectPage(ctx, tenant, floor)
		if err != nil {
			return err
		}
		if last {
			break
		}
	}
	events, err := s.EventFloor(ctx, tenant)
	if err != nil {
		return err
	}
	if err := s.deleteAll(ctx, deleteCommits, tenant, min(events, int64(floor)-1), int64(collectAtOnce)); err != nil {
		return err
	}
	return s.deleteAll(ctx, deleteReceipts, tenant, receipts, int64(collectAtOnce))
}

// collectPage deletes the tuples that the oldest commits below the floor ended, and those of the
// commits that have no event. The commit at the floor stays, and with it the newest.
func (s *Store) collectPage(ctx context.Context, tenant string, floor tuplestore.Revision) (last bool, err error) {
	rows, err := s.DB.Query(ctx, `
		SELECT rev, changes FROM tenant_commits
		WHERE tenant_id = $1 AND rev > (SELECT collected_rev FROM tenant_heads WHERE tenant_id = $1) AND rev < $2 ORDER BY rev LIMIT $3`,
		tenant, int64(floor), int64(commitsAtOnce))
	if err != nil {
		return false, err
	}
	defer rows.Close()
	var oldest, newest int64
	var tuples []tuplestore.Tuple
	n := 0
	for ; len(tuples) < s.ReadChanges && rows.Next(); n++ {
		var text string
		if err := rows.Scan(&newest, &text); err != nil {
			return false, err
		}
		if n == 0 {
			oldest = newest
		}
		changes, err := decodeChanges(text)
		if err != nil {
			return false, fmt.Errorf("revision %d: %w", newest, err)
		}
		for _, c := range changes { // a replaced qualifier ends an existence, too
			tuples = append(tuples, c.Tuple)
		}
	}
	if err := rows.Err(); err != nil || n == 0 {
		return true, err
	}
	rows.Close() // the next statement needs its connection
	for part := range slices.Chunk(tuples, collectAtOnce) {
		st := s.statement(tenant)
		sql := st.deleted(history, keysOf(part, key), floor)
		if st.err != nil {
			return false, st.err
		}
		if _, err := s.DB.Exec(ctx, sql, st.args...); err != nil {
			return false, err
		}
	}
	if _, err := s.DB.Exec(ctx, `DELETE FROM tenant_commits WHERE tenant_id = $1 AND rev >= $2 AND rev <= $3 AND event = ''`, tenant, oldest, newest); err != nil {
		return false, err
	}
	_, err = s.DB.Exec(ctx, `UPDATE tenant_heads SET collected_rev = $2 WHERE tenant_id = $1 AND collected_rev < $2`, tenant, newest)
	return n < commitsAtOnce && len(tuples) < s.ReadChanges, err
}

// floorAt returns the newest revision before an instant, or the current floor. It is a
// binary search, because revisions have no gaps.
func (s *Store) floorAt(ctx context.Context, tenant string, before int64) (tuplestore.Revision, error) {
	var low, high int64 // low is before the instant or the floor; high is not, or is unknown
	err := s.DB.QueryRow(ctx, `SELECT min_rev, rev FROM tenant_heads WHERE tenant_id = $1`, tenant).Scan(&low, &high)
	for high++; err == nil && high-low > 1; {
		middle := low + (high-low)/2
		var at int64
		err = s.DB.QueryRow(ctx, `SELECT committed_at FROM tenant_commits WHERE tenant_id = $1 AND rev = $2`, tenant, middle).Scan(&at)
		if errors.Is(err, sqldb.ErrNoRows) { // another process has collected it
			err, at = nil, before-1
		}
		if at < before {
			low = middle
		} else {
			high = middle
		}
	}
	return tuplestore.Revision(low), err
}

// deleteAll runs a statement that deletes some rows until no row is left.
func (s *Store) deleteAll(ctx context.Context, sql string, args ...any) error {
	for {
		n, err := s.DB.Exec(ctx, sql, args...)
		if err != nil || n == 0 {
			return err
		}
	}
}

const (
	// The document of the floor's revision stays.
	deleteSchemas = `
		DELETE FROM tenant_schemas WHERE tenant_id = $1 AND rev IN (
			SELECT rev FROM tenant_schemas
			WHERE tenant_id = $1 AND rev < (SELECT MAX(rev) FROM tenant_schemas WHERE tenant_id = $1 AND rev <= $2)
			ORDER BY rev LIMIT $3)`

	deleteCommits = `
		DELETE FROM tenant_commits WHERE tenant_id = $1 AND rev IN (
			SELECT rev FROM tenant_commits WHERE tenant_id = $1 AND rev <= $2 ORDER BY rev LIMIT $3)`

	deleteReceipts = `
		DELETE FROM tenant_receipts WHERE tenant_id = $1 AND commit_id IN (
			SELECT commit_id FROM tenant_receipts WHERE tenant_id = $1 AND committed_at < $2 ORDER BY committed_at LIMIT $3)`
)
