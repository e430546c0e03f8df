package identity

import (
	"context"
	"fmt"
	"strings"
	"time"

	"stonetown/internal/sqldb"
)

// Filter selects users. Its zero value selects all.
type Filter struct {
	Email        string    // the whole address, whatever its case
	State        State     // in this state
	CreatedAfter time.Time // later than this
	// Query is words that all must be found somewhere in the address, the names or
	// the attributes, whatever their case.
	Query string
}

// MaxQuery bounds a filter's Query, in bytes.
const MaxQuery = 200

// Position is a place in a list of users: behind this one.
type Position struct {
	CreatedAt time.Time
	ID        string
}

// Users lists the users that a filter selects, newest first, behind a position
// (nil: from the start), at most limit.
func (d *Directory) Users(ctx context.Context, tenantID string, f Filter, after *Position, limit int) ([]User, error) {
	var q users
	q.where("u.tenant_id = %s", tenantID)
	if f.Email != "" {
		q.where("u.email_norm = %s", normalEmail(f.Email))
	}
	if f.State != "" {
		q.where("u.state = %s", string(f.State))
	}
	if !f.CreatedAfter.IsZero() {
		q.where("u.created_at > %s", f.CreatedAfter.UnixMicro())
	}
	for word := range strings.FieldsSeq(fold(f.Query)) {
		q.searched = true
		q.where(`s.text LIKE %s ESCAPE '\'`, "%"+likeEscaper.Replace(word)+"%")
	}
	if after != nil {
		q.where("(u.created_at, u.id) < (%s, %s)", after.CreatedAt.UnixMicro(), after.ID)
	}
	found, err := q.read(ctx, d.db, tenantID, limit)
	if err != nil {
		return nil, fmt.Errorf("list users: %w", err)
	}
	return found, nil
}

var likeEscaper = strings.NewReplacer(`\`, `\\`, `%`, `\%`, `_`, `\_`)

// users is a query for users that is being written.
type users struct {
	conditions []string
	args       []any
	searched   bool
}

// where adds a condition, with %s for each of its values.
func (q *users) where(condition string, values ...any) {
	places := make([]any, len(values))
	for i, value := range values {
		q.args = append(q.args, value)
		places[i] = fmt.Sprintf("$%d", len(q.args))
	}
	q.conditions = append(q.conditions, fmt.Sprintf(condition, places...))
}

func (q *users) read(ctx context.Context, db *sqldb.DB, tenantID string, limit int) ([]User, error) {
	from := "users u"
	conditions := strings.Join(q.conditions, " AND ")
	if q.searched {
		// The texts stand by themselves, in the order of the list, so that looking
		// through many of them reads little else.
		from = "user_search s JOIN users u ON u.tenant_id = s.tenant_id AND u.id = s.user_id"
		conditions = strings.ReplaceAll(conditions, "u.created_at", "s.created_at")
		conditions = strings.ReplaceAll(conditions, "u.tenant_id", "s.tenant_id")
		conditions = strings.ReplaceAll(conditions, "u.id", "s.user_id")
	}
	q.args = append(q.args, int64(limit))
	order := "u.created_at DESC, u.id DESC"
	if q.searched {
		order = "s.created_at DESC, s.user_id DESC"
	}
	rows, err := db.Query(ctx, fmt.Sprintf(`SELECT %s FROM %s WHERE %s ORDER BY %s LIMIT $%d`,
		userColumns, from, conditions, order, len(q.args)), q.args...)
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	var found []User
	for rows.Next() {
		u, err := scanUser(rows, tenantID)
		if err != nil {
			return nil, err
		}
		found = append(found, u)
	}
	return found, rows.Err()
}
