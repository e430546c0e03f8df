package identity

import (
	"context"
	"fmt"
	"strings"
	"time"

	"stonetown/internal/sqldb"
	"stonetown/internal/text"
)

// A condition on users or groups is composed in Go and decided by the database. It compares
// texts as the database stores them: folded, or byte by byte.

// Where is a condition on the users or the groups of a tenant. The zero value holds for all.
type Where struct {
	sql  string // with %s for each argument
	args []any
}

// IsAll reports whether the condition holds for all users or groups.
func (w Where) IsAll() bool { return w.sql == "" }

// And holds where both conditions hold.
func (w Where) And(other Where) Where {
	switch {
	case w.IsAll():
		return other
	case other.IsAll():
		return w
	}
	return Where{"(" + w.sql + " AND " + other.sql + ")", append(append([]any{}, w.args...), other.args...)}
}

// Or holds where one of the conditions holds.
func (w Where) Or(other Where) Where {
	if w.IsAll() || other.IsAll() {
		return Where{}
	}
	return Where{"(" + w.sql + " OR " + other.sql + ")", append(append([]any{}, w.args...), other.args...)}
}

// Not holds where the condition does not.
func (w Where) Not() Where {
	if w.IsAll() {
		return WhereNone()
	}
	return Where{"NOT " + w.sql, w.args}
}

// WhereNone holds for no user and no group.
func WhereNone() Where { return Where{"(1 = 0)", nil} }

// Comparison is a comparison of a column with a value.
type Comparison string

// The comparisons. Those of instants are the first six.
const (
	Equal          Comparison = "="
	Different      Comparison = "<>"
	Greater        Comparison = ">"
	GreaterOrEqual Comparison = ">="
	Less           Comparison = "<"
	LessOrEqual    Comparison = "<="
	Contains       Comparison = "contains"
	StartsWith     Comparison = "starts"
	EndsWith       Comparison = "ends"
)

// WhereID holds for the user or the group with an id.
func WhereID(id string) Where { return Where{"(o.id = %s)", []any{id}} }

// WhereEmail compares the folded addresses of users.
func WhereEmail(c Comparison, email string) Where {
	folded := NormalEmail(email)
	escaped := likeEscaper.Replace(folded)
	switch c {
	case Equal: // the index requires the second condition
		return Where{"(o.email_norm = %s AND o.email_norm <> '')", []any{folded}}
	case Contains:
		escaped = "%" + escaped + "%"
	case StartsWith:
		escaped += "%"
	case EndsWith:
		escaped = "%" + escaped
	default:
		return Where{"(o.email_norm " + string(c) + " %s)", []any{folded}}
	}
	return Where{`(o.email_norm LIKE %s ESCAPE '\')`, []any{escaped}}
}

// WhereDisabled holds for the users whose account is disabled.
func WhereDisabled() Where { return Where{"(o.state = %s)", []any{string(Disabled)}} }

// WhereManaged holds for managed users ([Directory.Admit]).
func WhereManaged() Where { return Where{"(o.managed_by <> '')", nil} }

// WhereCreated and WhereUpdated compare instants. Contains, StartsWith and EndsWith do not apply.
func WhereCreated(c Comparison, at time.Time) Where {
	return Where{"(o.created_at " + string(c) + " %s)", []any{at.UnixMicro()}}
}

// WhereUpdated is described with [WhereCreated].
func WhereUpdated(c Comparison, at time.Time) Where {
	return Where{"(o.updated_at " + string(c) + " %s)", []any{at.UnixMicro()}}
}

// WhereExternalID holds for the users or groups for which a client has an id.
func WhereExternalID(tenantID, clientID, externalID string) Where {
	return Where{
		"(o.id IN (SELECT e.object_id FROM external_ids e WHERE e.tenant_id = %s AND e.client_id = %s AND e.external_id = %s AND e.external_id <> ''))",
		[]any{tenantID, clientID, externalID},
	}
}

// WhereUserText holds at least for all users with an address, a name, or a text in an attribute
// that contains a text without regard to case. It may hold for others.
func WhereUserText(part string) Where {
	return Where{
		`(EXISTS (SELECT 1 FROM user_search s WHERE s.tenant_id = o.tenant_id AND s.created_at = o.created_at AND s.user_id = o.id
			AND (s.text LIKE %s ESCAPE '\' OR octet_length(s.text) > %s)))`,
		[]any{"%" + likeEscaper.Replace(text.Fold(part)) + "%", int64(maxSearchText - 4)},
	}
}

// WhereGroupText holds at least for all groups whose slug, name or description contains a text
// without regard to case. It may hold for others.
func WhereGroupText(part string) Where {
	return Where{`(o.search LIKE %s ESCAPE '\')`, []any{"%" + likeEscaper.Replace(text.Fold(part)) + "%"}}
}

// WhereIDIn holds for the users or groups with some ids.
func WhereIDIn(ids []string) Where {
	if len(ids) == 0 {
		return WhereNone()
	}
	args := make([]any, len(ids))
	for i, id := range ids {
		args[i] = id
	}
	return Where{"(o.id IN (" + strings.TrimSuffix(strings.Repeat("%s, ", len(ids)), ", ") + "))", args}
}

// Order is the order of a list.
type Order string

// The orders of lists. The second key is always the id.
const (
	ByCreation Order = "o.created_at"
	ByUpdate   Order = "o.updated_at"
	ByEmail    Order = "o.email_norm" // of users
	ByID       Order = "o.id"
)

// Selection selects the users or the groups of a tenant, in an order.
type Selection struct {
	Where      Where
	Order      Order // empty: ByCreation
	Descending bool
	After      *SelectionPosition // nil: from the start
	Offset     int
	Limit      int // 0: no limit
}

// SelectionPosition is the position after a user or a group.
type SelectionPosition struct {
	Key any // int64 for instants, in microseconds since 1970, or string
	ID  string
}

// UserPosition returns the position after a user in an order.
func UserPosition(o Order, u User) SelectionPosition {
	switch o {
	case ByUpdate:
		return SelectionPosition{u.UpdatedAt.UnixMicro(), u.ID}
	case ByEmail:
		return SelectionPosition{NormalEmail(u.Email), u.ID}
	case ByID:
		return SelectionPosition{u.ID, u.ID}
	}
	return SelectionPosition{u.CreatedAt.UnixMicro(), u.ID}
}

// GroupPosition returns the position after a group in an order.
func GroupPosition(o Order, g Group) SelectionPosition {
	switch o {
	case ByUpdate:
		return SelectionPosition{g.UpdatedAt.UnixMicro(), g.ID}
	case ByID:
		return SelectionPosition{g.ID, g.ID}
	}
	return SelectionPosition{g.CreatedAt.UnixMicro(), g.ID}
}

// statement returns the statement that reads columns of the selected rows of a table.
func (s Selection) statement(columns, table, tenantID string) (sql string, args []any) {
	var c conditions
	c.where("o.tenant_id = %s AND o.created_at > 0", tenantID)
	if !s.Where.IsAll() {
		c.where(s.Where.sql, s.Where.args...)
	}
	order, beyond, direction := s.Order, ">", "ASC"
	if order == "" {
		order = ByCreation
	}
	if s.Descending {
		beyond, direction = "<", "DESC"
	}
	if s.After != nil {
		c.where("("+string(order)+", o.id) "+beyond+" (%s, %s)", s.After.Key, s.After.ID)
	}
	sql = fmt.Sprintf("SELECT %s FROM %s o WHERE %s", columns, table, c.String())
	if s.Limit > 0 {
		sql += fmt.Sprintf(" ORDER BY %s %s, o.id %s LIMIT %s", order, direction, direction, c.arg(int64(s.Limit)))
		if s.Offset > 0 {
			sql += " OFFSET " + c.arg(int64(s.Offset))
		}
	}
	return sql, c.args
}

// SelectUsers lists the selected users.
func (d *Directory) SelectUsers(ctx context.Context, tenantID string, s Selection) ([]User, error) {
	sql, args := s.statement(strings.ReplaceAll(userColumns, "u.", "o."), "users", tenantID)
	found, err := d.readUsers(ctx, tenantID, sql, args)
	if err != nil {
		return nil, fmt.Errorf("select users: %w", err)
	}
	return found, nil
}

// SelectGroups lists the selected groups.
func (d *Directory) SelectGroups(ctx context.Context, tenantID string, s Selection) (found []Group, err error) {
	sql, args := s.statement("o."+strings.ReplaceAll(groupColumns, ", ", ", o."), "user_groups", tenantID)
	rows, err := d.db.Query(ctx, sql, args...)
	if err != nil {
		return nil, fmt.Errorf("select groups: %w", err)
	}
	defer rows.Close()
	for rows.Next() {
		g, err := scanGroup(rows, tenantID)
		if err != nil {
			return nil, err
		}
		found = append(found, g)
	}
	return found, rows.Err()
}

// CountUsers and CountGroups count the users or groups for which a condition holds.
func (d *Directory) CountUsers(ctx context.Context, tenantID string, w Where) (int, error) {
	return d.count(ctx, "users", tenantID, w)
}

// CountGroups is described with [Directory.CountUsers].
func (d *Directory) CountGroups(ctx context.Context, tenantID string, w Where) (int, error) {
	return d.count(ctx, "user_groups", tenantID, w)
}

func (d *Directory) count(ctx context.Context, table, tenantID string, w Where) (int, error) {
	sql, args := Selection{Where: w}.statement("count(*)", table, tenantID)
	var n int64
	if err := d.db.QueryRow(ctx, sql, args...).Scan(&n); err != nil {
		return 0, fmt.Errorf("count: %w", err)
	}
	return int(n), nil
}

// Storable reports whether a text can be a value of a condition.
func Storable(value string) bool { return sqldb.IsText(value) }
