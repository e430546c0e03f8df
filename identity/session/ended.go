package session

import (
	"context"
	"fmt"

	"stonetown/internal/sqldb"
)

// Ended is a session that was ended. Expired sessions are not reported.
type Ended struct{ TenantID, ID, UserID string }

// end queues the end of sessions, and of each session that it is to be reported.
func end(b *sqldb.Batch, where string, args ...any) {
	b.Queue(`
		INSERT INTO ended_sessions (tenant_id, id, user_id) SELECT tenant_id, id, user_id FROM sessions WHERE `+where+`
		ON CONFLICT (tenant_id, id) DO NOTHING`, args, nil)
	b.Queue(`DELETE FROM sessions WHERE `+where, args, nil)
}

// Ended lists the ended sessions of all tenants that are not reported yet, at most limit.
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

// Reported removes an ended session from the list, in the transaction that reports it. It
// returns false if another process has reported it.
func Reported(ctx context.Context, tx *sqldb.Tx, e Ended) (bool, error) {
	n, err := tx.Exec(ctx, `DELETE FROM ended_sessions WHERE tenant_id = $1 AND id = $2`, e.TenantID, e.ID)
	if err != nil {
		return false, fmt.Errorf("mark session end as reported: %w", err)
	}
	return n == 1, nil
}
