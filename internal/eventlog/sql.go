package eventlog

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/go-json-experiment/json"

	"stonetown/internal/sqldb"
)

const (
	// advanceHead numbers the events of all commits and $2 more, and advanceTo those of the
	// commits up to the revision $3, which commits with the $2 events.
	advanceHead = `
		INSERT INTO event_heads (tenant_id, position, commit_events, revision)
		SELECT $1, t.commit_events + $2, t.commit_events, t.rev FROM (
			SELECT COALESCE(MAX(commit_events), 0) AS commit_events, COALESCE(MAX(rev), 0) AS rev FROM tenant_heads WHERE tenant_id = $1) AS t
		WHERE TRUE` + onAdvance
	advanceTo = `
		INSERT INTO event_heads (tenant_id, position, commit_events, revision)
		SELECT $1, t.commit_events + $2, t.commit_events, CAST($3 AS BIGINT) FROM (
			SELECT COALESCE(MAX(commit_events), 0) AS commit_events FROM tenant_commits WHERE tenant_id = $1 AND rev = $3) AS t
		WHERE TRUE` + onAdvance
	onAdvance = `
		ON CONFLICT (tenant_id) DO UPDATE SET
			position = event_heads.position + $2 +
				CASE WHEN excluded.commit_events > event_heads.commit_events THEN excluded.commit_events - event_heads.commit_events ELSE 0 END,
			commit_events = CASE WHEN excluded.commit_events > event_heads.commit_events THEN excluded.commit_events ELSE event_heads.commit_events END,
			revision = CASE WHEN excluded.revision > event_heads.revision THEN excluded.revision ELSE event_heads.revision END`

	selectHead = `
		SELECT COALESCE(h.position, 0), COALESCE(h.commit_events, 0), COALESCE(h.revision, 0),
			COALESCE(h.floor, 0), COALESCE(h.floor_commit_events, 0), COALESCE(h.floor_revision, 0),
			COALESCE(t.commit_events, 0), COALESCE(t.rev, 0)
		FROM (SELECT CAST($1 AS TEXT) AS tenant_id) AS k
		LEFT JOIN event_heads AS h ON h.tenant_id = k.tenant_id LEFT JOIN tenant_heads AS t ON t.tenant_id = k.tenant_id`

	// selectMark reads the last event at or before a position that is not of a commit.
	selectMark = `
		SELECT position, commit_events, revision FROM events WHERE tenant_id = $1 AND position <= $2 ORDER BY position DESC LIMIT 1`

	selectCommits = `
		SELECT rev, commit_events, committed_at, event FROM tenant_commits
		WHERE tenant_id = $1 AND rev >= $2 AND rev <= $3 AND event <> '' ORDER BY rev LIMIT $4`

	columns = `e.position, e.id, e.type, e.occurred_at, e.origin, e.data, e.revision, e.commit_events`

	selectAfter = `SELECT ` + columns + ` FROM events AS e WHERE e.tenant_id = $1 AND e.position > $2 AND e.position <= $3 ORDER BY e.position LIMIT $4`

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
			SELECT r.tenant_id, r.position, COALESCE((SELECT h.position - h.commit_events FROM event_heads AS h WHERE h.tenant_id = r.tenant_id), 0)
				+ COALESCE((SELECT t.commit_events FROM tenant_heads AS t WHERE t.tenant_id = r.tenant_id), 0) AS newest
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

// stored reads those of the events at some positions that are not of commits.
func (l *Log) stored(ctx context.Context, tenantID string, positions []int64) ([]Event, error) {
	dialect := l.db.Dialect()
	var list any = positions
	if dialect == sqldb.SQLite {
		text, err := json.Marshal(positions)
		if err != nil {
			return nil, err
		}
		list = string(text)
	}
	rows, err := l.db.Query(ctx, selectAt[dialect], tenantID, list)
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	all, err := scanStored(rows, tenantID)
	events := make([]Event, len(all))
	for i, e := range all {
		events[i] = e.Event
	}
	return events, err
}

// scanStored reads the columns of a tenant's events.
func scanStored(rows *sqldb.Rows, tenantID string) (events []numbered, err error) {
	for rows.Next() {
		e := numbered{Event: Event{TenantID: tenantID}}
		var µs int64
		var origin, data string
		if err := rows.Scan(&e.Position, &e.ID, &e.Type, &µs, &origin, &data, &e.Revision, &e.commitEvents); err != nil {
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

// scanCommits reads the events of a tenant's commits, without their positions.
func scanCommits(rows *sqldb.Rows, tenantID string) (events []numbered, err error) {
	for rows.Next() {
		e := numbered{Event: Event{TenantID: tenantID}}
		var µs int64
		var text string
		if err := rows.Scan(&e.Revision, &e.commitEvents, &µs, &text); err != nil {
			return nil, err
		}
		if err := e.parse(text); err != nil {
			return nil, fmt.Errorf("event of revision %d: %w", e.Revision, err)
		}
		e.At = time.UnixMicro(µs).UTC()
		events = append(events, e)
	}
	return events, rows.Err()
}

// head reads the head of a log; that of a log without events is zero.
func (l *Log) head(ctx context.Context, tenantID string) (h head, err error) {
	err = l.db.QueryRow(ctx, selectHead, tenantID).Scan(&h.position, &h.commitEvents, &h.revision,
		&h.floor.position, &h.floor.commitEvents, &h.floor.revision, &h.commits.commitEvents, &h.commits.revision)
	return h, err
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
func (l *Log) expiring(ctx context.Context, before time.Time, after string, limit int) ([]string, error) {
	return sqldb.Texts(l.db.Query(ctx, selectExpiring, after, int64(limit), before.UnixMicro()))
}

// selectExpiring reads the oldest event and the oldest commit of each tenant. A commit without an
// event hides later ones, but not for longer than the store keeps history. Scalar subqueries are read
// for each row by an index; EXISTS might become a join with a scan.
const selectExpiring = `
	SELECT tenant_id FROM (
		SELECT tenant_id FROM (
			SELECT h.tenant_id FROM event_heads AS h WHERE h.tenant_id > $1
				AND (SELECT e.occurred_at FROM events AS e WHERE e.tenant_id = h.tenant_id ORDER BY e.position LIMIT 1) < $3
			ORDER BY h.tenant_id LIMIT $2) AS stored
		UNION
		SELECT tenant_id FROM (
			SELECT t.tenant_id FROM tenant_heads AS t WHERE t.tenant_id > $1
				AND (SELECT CASE WHEN c.event <> '' THEN c.committed_at END FROM tenant_commits AS c
					WHERE c.tenant_id = t.tenant_id AND c.rev > COALESCE((SELECT f.floor_revision FROM event_heads AS f WHERE f.tenant_id = t.tenant_id), 0)
					ORDER BY c.rev LIMIT 1) < $3
			ORDER BY t.tenant_id LIMIT $2) AS of_commits) AS both_kinds
	ORDER BY tenant_id LIMIT $2`

// deleteUpTo raises the floor, and deletes the events up to it that are not of commits.
func deleteUpTo(ctx context.Context, tx *sqldb.Tx, tenantID string, from, to mark) error {
	if _, err := tx.Exec(ctx, advanceHead, tenantID, int64(0)); err != nil {
		return err
	}
	_, err := tx.Exec(ctx, `DELETE FROM events WHERE tenant_id = $1 AND position > $2 AND position <= $3`, tenantID, from.position, to.position)
	if err != nil {
		return err
	}
	_, err = tx.Exec(ctx, `UPDATE event_heads SET floor = $2, floor_commit_events = $3, floor_revision = $4 WHERE tenant_id = $1 AND floor < $2`,
		tenantID, to.position, to.commitEvents, to.revision)
	return err
}
