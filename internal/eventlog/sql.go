package eventlog

import (
	"context"
	"errors"
	"time"

	"stonetown/internal/sqldb"
)

const (
	advanceHead = `
		INSERT INTO event_heads (tenant_id, position) VALUES ($1, $2)
		ON CONFLICT (tenant_id) DO UPDATE SET position = event_heads.position + excluded.position`

	// insertEvent puts an event so many positions before the head.
	insertEvent = `
		INSERT INTO events (tenant_id, position, id, type, occurred_at, actor_type, actor_id, client_id, request_id, client_ip, data)
		SELECT h.tenant_id, h.position - $2, $3, $4, $5, $6, $7, $8, $9, $10, $11 FROM event_heads AS h WHERE h.tenant_id = $1`

	advanceReader = `
		INSERT INTO event_readers (tenant_id, reader, position) VALUES ($1, $2, $3)
		ON CONFLICT (tenant_id, reader) DO UPDATE SET position = excluded.position WHERE event_readers.position < excluded.position`
)

func (l *Log) readAfter(ctx context.Context, tenantID string, after int64, limit int) ([]Event, error) {
	rows, err := l.db.Query(ctx, `
		SELECT position, id, type, occurred_at, actor_type, actor_id, client_id, request_id, client_ip, data
		FROM events WHERE tenant_id = $1 AND position > $2 ORDER BY position LIMIT $3`, tenantID, after, int64(limit))
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	var events []Event
	for rows.Next() {
		e := Event{TenantID: tenantID}
		var µs int64
		var data string
		err := rows.Scan(&e.Position, &e.ID, &e.Type, &µs, &e.Origin.Actor.Type, &e.Origin.Actor.ID,
			&e.Origin.ClientID, &e.Origin.RequestID, &e.Origin.ClientIP, &data)
		if err != nil {
			return nil, err
		}
		e.At, e.Data = time.UnixMicro(µs).UTC(), []byte(data)
		events = append(events, e)
	}
	return events, rows.Err()
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

func (l *Log) place(ctx context.Context, tenantID, reader string) (position int64, err error) {
	err = l.db.QueryRow(ctx, `SELECT position FROM event_readers WHERE tenant_id = $1 AND reader = $2`, tenantID, reader).Scan(&position)
	if errors.Is(err, sqldb.ErrNoRows) {
		err = nil
	}
	return position, err
}

// tenants lists those that have a log, in order.
func (l *Log) tenants(ctx context.Context, after string, limit int) ([]string, error) {
	return sqldb.Texts(l.db.Query(ctx, `SELECT tenant_id FROM event_heads WHERE tenant_id > $1 ORDER BY tenant_id LIMIT $2`, after, int64(limit)))
}

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
