package identity

import (
	"context"
	"fmt"
	"strings"
	"time"

	"stonetown/internal/text"
)

// Filter selects users. The zero value selects all.
type Filter struct {
	Email        string // the complete address, without regard to case
	State        State
	CreatedAfter time.Time
	// Query consists of words that the address, the names or the attributes must contain,
	// without regard to case.
	Query string
}

// Position is a position in a list: after the user or group with these properties.
type Position struct {
	CreatedAt time.Time
	ID        string
}

// Users lists the users that a filter selects, newest first, at most limit, after a position (nil:
// from the start).
func (d *Directory) Users(ctx context.Context, tenantID string, f Filter, after *Position, limit int) ([]User, error) {
	from, tenant, created, userID := "users u", "u.tenant_id", "u.created_at", "u.id"
	words := strings.Fields(text.Fold(f.Query))
	if len(words) > 0 {
		// The texts are in a table of their own, in the order of the list, so that a
		// search reads little else.
		from = "user_search s JOIN users u ON u.tenant_id = s.tenant_id AND u.id = s.user_id"
		tenant, created, userID = "s.tenant_id", "s.created_at", "s.user_id"
	}
	var c conditions
	c.where(tenant+" = %s AND "+created+" > 0", tenantID)
	c.contains("s.text", words)
	if f.Email != "" {
		c.where("u.email_norm = %s AND u.email_norm <> ''", NormalEmail(f.Email))
	}
	if f.State != "" {
		c.where("u.state = %s AND u.state <> ''", string(f.State))
	}
	if !f.CreatedAfter.IsZero() {
		// The API rounds times down to milliseconds.
		c.where(created+" >= %s", f.CreatedAfter.Truncate(time.Millisecond).Add(time.Millisecond).UnixMicro())
	}
	if after != nil {
		c.where("("+created+", "+userID+") < (%s, %s)", after.CreatedAt.UnixMicro(), after.ID)
	}
	sql := fmt.Sprintf(`SELECT %s FROM %s WHERE %s ORDER BY %s DESC, %s DESC LIMIT %s`,
		userColumns, from, c.String(), created, userID, c.arg(int64(limit)))
	found, err := d.readUsers(ctx, tenantID, sql, c.args)
	if err != nil {
		return nil, fmt.Errorf("list users: %w", err)
	}
	return found, nil
}

func (d *Directory) readUsers(ctx context.Context, tenantID, sql string, args []any) (found []User, err error) {
	rows, err := d.db.Query(ctx, sql, args...)
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	for rows.Next() {
		u, err := scanUser(rows, tenantID)
		if err != nil {
			return nil, err
		}
		found = append(found, u)
	}
	return found, rows.Err()
}
