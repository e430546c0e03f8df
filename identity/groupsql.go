package identity

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"stonetown/internal/sqldb"
	"stonetown/internal/text"
)

func (g Group) searchText() string {
	return text.Fold(strings.Join([]string{g.Slug, g.Name, g.Description}, "\n"))
}

func insertGroup(ctx context.Context, tx *sqldb.Tx, g Group) error {
	_, err := tx.Exec(ctx, `
		INSERT INTO user_groups (tenant_id, id, slug, name, description, search, scopes, member_count, created_at, updated_at)
		VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10)`,
		g.TenantID, g.ID, g.Slug, g.Name, g.Description, g.searchText(), strings.Join(g.Scopes, " "), int64(g.MemberCount), g.CreatedAt.UnixMicro(), g.UpdatedAt.UnixMicro())
	if sqldb.IsUniqueViolation(err) {
		return ErrSlugTaken
	}
	return err
}

// updateGroup fails with errChanged if the group was changed since before was read.
func updateGroup(ctx context.Context, tx *sqldb.Tx, before, after Group) error {
	n, err := tx.Exec(ctx, `
		UPDATE user_groups SET name = $3, description = $4, search = $5, scopes = $6, updated_at = $7
		WHERE tenant_id = $1 AND id = $2 AND name = $8 AND description = $9 AND scopes = $10`,
		after.TenantID, after.ID, after.Name, after.Description, after.searchText(), strings.Join(after.Scopes, " "), after.UpdatedAt.UnixMicro(),
		before.Name, before.Description, strings.Join(before.Scopes, " "))
	if err == nil && n == 0 {
		err = errChanged
	}
	return err
}

func deleteGroup(ctx context.Context, tx *sqldb.Tx, g Group) error {
	n, err := tx.Exec(ctx, `DELETE FROM user_groups WHERE tenant_id = $1 AND id = $2`, g.TenantID, g.ID)
	if err == nil && n == 0 {
		err = ErrGroupNotFound
	}
	return err
}

// countMembers queues a change of the number of members of a group.
func countMembers(b *sqldb.Batch, g Group, more int, now time.Time) {
	b.Queue(`UPDATE user_groups SET member_count = member_count + $3, updated_at = $4 WHERE tenant_id = $1 AND id = $2`,
		[]any{g.TenantID, g.ID, int64(more), now.UnixMicro()}, nil)
}

const groupColumns = `id, slug, name, description, scopes, member_count, created_at, updated_at`

func scanGroup(row interface{ Scan(...any) error }, tenantID string) (Group, error) {
	g := Group{TenantID: tenantID}
	var scopes string
	var members, created, updated int64
	err := row.Scan(&g.ID, &g.Slug, &g.Name, &g.Description, &scopes, &members, &created, &updated)
	if errors.Is(err, sqldb.ErrNoRows) {
		return Group{}, ErrGroupNotFound
	}
	if err != nil {
		return Group{}, fmt.Errorf("read group: %w", err)
	}
	g.Scopes, g.MemberCount, g.CreatedAt, g.UpdatedAt = strings.Fields(scopes), int(members), sqldb.Instant(created), sqldb.Instant(updated)
	return g, nil
}

func selectGroup(ctx context.Context, from reader, tenantID, groupID string) (Group, error) {
	if !sqldb.IsText(groupID) {
		return Group{}, ErrGroupNotFound
	}
	return scanGroup(from.QueryRow(ctx, `SELECT `+groupColumns+` FROM user_groups WHERE tenant_id = $1 AND id = $2`, tenantID, groupID), tenantID)
}

func selectGroupBySlug(ctx context.Context, from reader, tenantID, slug string) (Group, error) {
	return scanGroup(from.QueryRow(ctx, `SELECT `+groupColumns+` FROM user_groups WHERE tenant_id = $1 AND slug = $2 AND slug <> ''`, tenantID, slug), tenantID)
}

// selectGroups lists the groups that contain all words and, unless of is nil, whose ids are in
// of.
func selectGroups(ctx context.Context, from lister, tenantID string, words, of []string, after *Position, limit int) (found []Group, err error) {
	var q conditions
	q.where("tenant_id = %s AND created_at > 0", tenantID)
	q.contains("search", words)
	if of != nil {
		q.among("id", of)
	}
	if after != nil {
		q.where("(created_at, id) < (%s, %s)", after.CreatedAt.UnixMicro(), after.ID)
	}
	sql := fmt.Sprintf(`SELECT %s FROM user_groups WHERE %s ORDER BY created_at DESC, id DESC LIMIT %s`,
		groupColumns, q.String(), q.arg(int64(limit)))
	rows, err := from.Query(ctx, sql, q.args...)
	if err != nil {
		return nil, err
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

// sender is a database or a transaction.
type sender interface {
	Send(ctx context.Context, b *sqldb.Batch) error
}

// selectUsers returns the existing accounts among ids. Each is a statement of its own: PostgreSQL
// can plan a list of ids as a scan of all users of the tenant.
func selectUsers(ctx context.Context, from sender, tenantID string, userIDs []string) (map[string]User, error) {
	found := make(map[string]User, len(userIDs))
	var b sqldb.Batch
	for _, userID := range userIDs {
		if !sqldb.IsText(userID) {
			continue
		}
		b.Queue(`SELECT `+userColumns+` FROM users u WHERE u.tenant_id = $1 AND u.id = $2`, []any{tenantID, userID}, func(rows *sqldb.Rows) error {
			for rows.Next() {
				u, err := scanUser(rows, tenantID)
				if err != nil {
					return err
				}
				found[u.ID] = u
			}
			return nil
		})
	}
	if b.Len() == 0 {
		return found, nil
	}
	return found, from.Send(ctx, &b)
}

// selectKnown returns the ids that are accounts.
func selectKnown(ctx context.Context, from sender, tenantID string, userIDs []string) (map[string]bool, error) {
	users, err := selectUsers(ctx, from, tenantID, userIDs)
	known := make(map[string]bool, len(users))
	for userID := range users {
		known[userID] = true
	}
	return known, err
}

// countActive counts the active accounts among ids, without managed ones.
func countActive(ctx context.Context, tx *sqldb.Tx, tenantID string, userIDs []string) (n int, err error) {
	users, err := selectUsers(ctx, tx, tenantID, userIDs)
	for _, u := range users {
		if u.State == Active && u.ManagedBy == "" {
			n++
		}
	}
	return n, err
}
