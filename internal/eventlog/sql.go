package eventlog

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/go-json-experiment/json"

	"stonetown/internal/sqldb"
)

const (
	advanceHead = `
		INSERT INTO event_heads (tenant_id, position, revision) VALUES ($1, $2, $3)
		ON CONFLICT (tenant_id) DO UPDATE SET position = event_heads.position + excluded.position,
			revision = CASE WHEN event_heads.revision < excluded.revision THEN excluded.revision ELSE event_heads.revision END`

	columns = `e.position, e.id, e.type, e.occurred_at, e.origin, e.data, e.revision`

	selectAfter = `SELECT ` + columns + ` FROM events AS e WHERE e.tenant_id = $1 AND e.position > $2 ORDER BY e.position LIMIT $3`

	startReader = `
		INSERT INTO event_readers (reader, tenant_id, position)
		VALUES ($1, $2, COALESCE((SELECT position FROM event_heads WHERE tenant_id = $2), 0))
		ON CONFLICT (reader, tenant_id) DO NOTHING`
	stopReader    = `DELETE FROM event_readers WHERE reader = $1 AND tenant_id = $2`
	advanceReader = `UPDATE event_readers SET position = $4 WHERE reader = $1 AND tenant_id = $2 AND position = $3`
	selectReader  = `SELECT position FROM event_readers WHERE reader = $1 AND tenant_id = $2`

	// selectBehind looks each head up by its key, also where the planner would read all heads in
	// the order of a join.
	selectBehind = `
		SELECT l.tenant_id, l.position, l.newest FROM (
			SELECT r.tenant_id, r.position, (SELECT h.position FROM event_heads AS h WHERE h.tenant_id = r.tenant_id) AS newest
			FROM event_readers AS r WHERE r.reader = $1 AND r.tenant_id > $2) AS l
		WHERE l.newest > l.position ORDER BY l.tenant_id LIMIT $3`
)

// selectAt reads the events at given positions, each of which is looked up in the index.
// PostgreSQL does not reorder LATERAL with OFFSET 0; it would otherwise plan by the statistics
// of the table, which may be of an empty one.
var selectAt = map[sqldb.Dialect]string{
	sqldb.SQLite: `SELECT ` + columns + ` FROM json_each($2) AS k CROSS JOIN events AS e ON e.tenant_id = $1 AND e.position = k.value ORDER BY e.position`,
	sqldb.Postgres: `SELECT ` + columns + ` FROM unnest(CAST($2 AS BIGINT[])) AS k (position)
		CROSS JOIN LATERAL (SELECT * FROM events AS t WHERE t.tenant_id = $1 AND t.position = k.position OFFSET 0) AS e ORDER BY e.position`,
	sqldb.Cockroach: `SELECT ` + columns + ` FROM unnest(CAST($2 AS BIGINT[])) AS k (position)
		JOIN events AS e ON e.tenant_id = $1 AND e.position = k.position ORDER BY e.position`,
}

func (l *Log) readAfter(ctx context.Context, tenantID string, after int64, limit int) ([]Event, error) {
	return scan(tenantID)(l.db.Query(ctx, selectAfter, tenantID, after, int64(limit)))
}

func (l *Log) readAt(ctx context.Context, tenantID string, positions []int64) ([]Event, error) {
	positions = slices.Clone(positions)
	slices.Sort(positions)
	positions = slices.Compact(positions)
	dialect := l.db.Dialect()
	var list any = positions
	if dialect == sqldb.SQLite {
		text, err := json.Marshal(positions)
		if err != nil {
			return nil, err
		}
		list = string(text)
	}
	return scan(tenantID)(l.db.Query(ctx, selectAt[dialect], tenantID, list))
}

// scan returns a function that reads the columns of a tenant's events.
func scan(tenantID string) func(*sqldb.Rows, error) ([]Event, error) {
	return func(rows *sqldb.Rows, err error) ([]Event, error) {
		if err != nil {
			return nil, err
		}
		defer rows.Close()
		var events []Event
		for rows.Next() {
			e := Event{TenantID: tenantID}
			var µs int64
			var origin, data string
			if err := rows.Scan(&e.Position, &e.ID, &e.Type, &µs, &origin, &data, &e.Revision); err != nil {
				return nil, err
			}
			if err := json.Unmarshal([]byte(origin), &e.Origin); err != nil {
				return nil, fmt.Errorf("origin of event %s: %w", e.ID, err)
			}
			e.At, e.Data = time.UnixMicro(µs).UTC(), []byte(data)
			events = append(events, e)
		}
		return events, rows.Err()
	}
}

// head is the newest position of a log and its floor, both 0 for one without
// events.
func (l *Log) head(ctx context.Context, tenantID string) (position, floor int64, err error) {
	err = l.db.QueryRow(ctx, `SELECT position, floor FROM event_heads WHERE tenant_id = $1`, tenantID).Scan(&position, &floor)
	if errors.Is(err, sqldb.ErrNoRows) {
		err = nil
	}
	return position, floor, err
}

// place is the position of a reader; ok is false if it has not been started.
func (l *Log) place(ctx context.Context, tenantID, reader string) (position int64, ok bool, err error) {
	err = l.db.QueryRow(ctx, selectReader, reader, tenantID).Scan(&position)
	if errors.Is(err, sqldb.ErrNoRows) {
		return 0, false, nil
	}
	return position, err == nil, err
}

func (l *Log) behind(ctx context.Context, reader, after string, limit int) ([]Lag, error) {
	rows, err := l.db.Query(ctx, selectBehind, reader, after, int64(limit))
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	var list []Lag
	for rows.Next() {
		var lag Lag
		if err := rows.Scan(&lag.TenantID, &lag.Position, &lag.Newest); err != nil {
			return nil, err
		}
		list = append(list, lag)
	}
	return list, rows.Err()
}

// expiring lists the tenants whose oldest event is from before an instant, in order.
func (l *Log) expiring(ctx context.Context, before int64, after string, limit int) ([]string, error) {
	return sqldb.Texts(l.db.Query(ctx, selectExpiring, after, int64(limit), before))
}

// A scalar subquery is read for each row by an index; EXISTS might become a join with a scan.
const selectExpiring = `
	SELECT h.tenant_id FROM event_heads AS h WHERE h.tenant_id > $1
		AND (SELECT e.occurred_at FROM events AS e WHERE e.tenant_id = h.tenant_id ORDER BY e.position LIMIT 1) < $3
	ORDER BY h.tenant_id LIMIT $2`

// times returns the times of the events after a position.
func (l *Log) times(ctx context.Context, tenantID string, after int64, limit int) ([]int64, error) {
	rows, err := l.db.Query(ctx, `
		SELECT occurred_at FROM events WHERE tenant_id = $1 AND position > $2 ORDER BY position LIMIT $3`, tenantID, after, int64(limit))
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	var times []int64
	for rows.Next() {
		var µs int64
		if err := rows.Scan(&µs); err != nil {
			return nil, err
		}
		times = append(times, µs)
	}
	return times, rows.Err()
}

// deleteUpTo deletes events and raises the floor. It locks the events before the head, the
// order in which writers lock.
func deleteUpTo(ctx context.Context, tx *sqldb.Tx, tenantID string, from, to int64) error {
	_, err := tx.Exec(ctx, `DELETE FROM events WHERE tenant_id = $1 AND position > $2 AND position <= $3`, tenantID, from, to)
	if err != nil {
		return err
	}
	_, err = tx.Exec(ctx, `UPDATE event_heads SET floor = $2 WHERE tenant_id = $1 AND floor < $2`, tenantID, to)
	return err
}
