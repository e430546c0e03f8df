package session

import (
	"context"
	"fmt"

	"stonetown/internal/sqldb"
)

// Ended is a session that somebody has ended. Those that end by themselves are not noticed.
type Ended struct{ TenantID, ID, UserID string }

// end queues the end of some sessions, and that those who have to know are told.
func end(b *sqldb.Batch, where string, args ...any) {
	b.Queue(`
		INSERT INTO ended_sessions (tenant_id, id, user_id) SELECT tenant_id, id, user_id FROM sessions WHERE `+where+`
		ON CONFLICT (tenant_id, id) DO NOTHING`, args, nil)
	b.Queue(`DELETE FROM sessions WHERE `+where, args, nil)
}

// Ended lists sessions that have ended, of all tenants, at most limit.
func (s *Store) Ended(ctx context.Context, limit int) (list []Ended, err error) {
	rows, err := s.db.Query(ctx, `SELECT tenant_id, id, user_id FROM ended_sessions LIMIT $1`, int64(limit))
	if err != nil {
		return nil, fmt.Errorf("list ended sessions: %w", err)
	}
	defer rows.Close()
	for rows.Next() {
		var e Ended
		if err := rows.Scan(&e.TenantID, &e.ID, &e.UserID); err != nil {
			return nil, fmt.Errorf("list ended sessions: %w", err)
		}
		list = append(list, e)
	}
	if err := rows.Err(); err != nil {
		return nil, fmt.Errorf("list ended sessions: %w", err)
	}
	return list, nil
}

// Told removes an ended session from the list within a transaction that tells those who
// have to know. It reports false if another has done so.
func Told(ctx context.Context, tx *sqldb.Tx, e Ended) (bool, error) {
	n, err := tx.Exec(ctx, `DELETE FROM ended_sessions WHERE tenant_id = $1 AND id = $2`, e.TenantID, e.ID)
	if err != nil {
		return false, fmt.Errorf("note that session end was told: %w", err)
	}
	return n == 1, nil
}
