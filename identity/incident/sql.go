package incident

import (
	"context"
	"errors"
	"fmt"

	"stonetown/internal/eventlog"
	"stonetown/internal/sqldb"
)

// querier is a [*sqldb.DB] or a [*sqldb.Tx].
type querier interface {
	QueryRow(ctx context.Context, query string, args ...any) *sqldb.Row
}

const columns = `id, title, description, severity, assignee_id, all_users, affected, resolution, opened_at, opened_by_type, opened_by, updated_at, closed_at`

func insertIncident(b *sqldb.Batch, i Incident) {
	b.Queue(`INSERT INTO breach_incidents (tenant_id, `+columns+`) VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, 0)`, []any{
		i.TenantID, i.ID, i.Title, i.Description, string(i.Severity), i.AssigneeID, i.AllUsers, int64(i.Affected), i.Resolution,
		i.OpenedAt.UnixMicro(), i.OpenedBy.Type, i.OpenedBy.ID, i.UpdatedAt.UnixMicro(),
	}, nil)
}

func updateIncident(b *sqldb.Batch, i Incident) {
	closed := int64(0)
	if !i.ClosedAt.IsZero() {
		closed = i.ClosedAt.UnixMicro()
	}
	b.Queue(`UPDATE breach_incidents SET title = $3, description = $4, severity = $5, assignee_id = $6, all_users = $7, affected = $8, resolution = $9, updated_at = $10, closed_at = $11
		WHERE tenant_id = $1 AND id = $2`, []any{
		i.TenantID, i.ID, i.Title, i.Description, string(i.Severity), i.AssigneeID, i.AllUsers, int64(i.Affected), i.Resolution, i.UpdatedAt.UnixMicro(), closed,
	}, nil)
}

// selectIncident reads an incident. It fails with [ErrNotFound].
func selectIncident(ctx context.Context, q querier, tenantID, incidentID string) (Incident, error) {
	if !sqldb.IsText(incidentID) {
		return Incident{}, ErrNotFound
	}
	i, err := scanIncident(q.QueryRow(ctx, `SELECT `+columns+` FROM breach_incidents WHERE tenant_id = $1 AND id = $2`, tenantID, incidentID), tenantID)
	if errors.Is(err, sqldb.ErrNoRows) {
		return Incident{}, ErrNotFound
	}
	return i, err
}

// lockIncident reads an incident that the transaction changes. It fails with [ErrNotFound].
func lockIncident(ctx context.Context, tx *sqldb.Tx, tenantID, incidentID string) (Incident, error) {
	if !sqldb.IsText(incidentID) {
		return Incident{}, ErrNotFound
	}
	if _, err := tx.Exec(ctx, `UPDATE breach_incidents SET affected = affected WHERE tenant_id = $1 AND id = $2`, tenantID, incidentID); err != nil {
		return Incident{}, err
	}
	return selectIncident(ctx, tx, tenantID, incidentID)
}

func scanIncident(row interface{ Scan(...any) error }, tenantID string) (Incident, error) {
	i := Incident{TenantID: tenantID}
	var affected, opened, updated, closed int64
	err := row.Scan(&i.ID, &i.Title, &i.Description, (*string)(&i.Severity), &i.AssigneeID, &i.AllUsers, &affected, &i.Resolution,
		&opened, &i.OpenedBy.Type, &i.OpenedBy.ID, &updated, &closed)
	if err != nil {
		return Incident{}, fmt.Errorf("read breach incident: %w", err)
	}
	i.Affected, i.OpenedAt, i.UpdatedAt, i.ClosedAt = int(affected), sqldb.Instant(opened), sqldb.Instant(updated), sqldb.Instant(closed)
	return i, nil
}

func selectIncidents(ctx context.Context, db *sqldb.DB, tenantID string, open bool, before string, limit int) (found []Incident, err error) {
	query, args := `SELECT `+columns+` FROM breach_incidents WHERE tenant_id = $1`, []any{tenantID, int64(limit)}
	if open {
		query += ` AND closed_at = 0`
	}
	if before != "" {
		query += ` AND id < $3`
		args = append(args, before)
	}
	rows, err := db.Query(ctx, query+` ORDER BY id DESC LIMIT $2`, args...)
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	for rows.Next() {
		i, err := scanIncident(rows, tenantID)
		if err != nil {
			return nil, err
		}
		found = append(found, i)
	}
	return found, rows.Err()
}

// insertAffected queues that a user is added, and calls added unless that was done before.
func insertAffected(b *sqldb.Batch, i Incident, a AffectedUser, added func()) {
	b.Queue(`INSERT INTO breach_affected_users (tenant_id, incident_id, user_id, added_at) VALUES ($1, $2, $3, $4)
		ON CONFLICT (tenant_id, incident_id, user_id) DO NOTHING RETURNING user_id`,
		[]any{i.TenantID, i.ID, a.UserID, a.AddedAt.UnixMicro()}, func(rows *sqldb.Rows) error {
			for rows.Next() {
				added()
			}
			return nil
		})
}

func deleteAffected(ctx context.Context, tx *sqldb.Tx, i Incident, userID string) (int, error) {
	if !sqldb.IsText(userID) {
		return 0, nil
	}
	n, err := tx.Exec(ctx, `DELETE FROM breach_affected_users WHERE tenant_id = $1 AND incident_id = $2 AND user_id = $3`, i.TenantID, i.ID, userID)
	return int(n), err
}

func selectAffected(ctx context.Context, db *sqldb.DB, tenantID, incidentID, after string, limit int) (found []AffectedUser, err error) {
	rows, err := db.Query(ctx, `SELECT user_id, added_at FROM breach_affected_users WHERE tenant_id = $1 AND incident_id = $2 AND user_id > $3 ORDER BY user_id LIMIT $4`,
		tenantID, incidentID, after, int64(limit))
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	for rows.Next() {
		var a AffectedUser
		var added int64
		if err := rows.Scan(&a.UserID, &added); err != nil {
			return nil, err
		}
		a.AddedAt = sqldb.Instant(added)
		found = append(found, a)
	}
	return found, rows.Err()
}

const notificationColumns = `id, subject, message, created_at, created_by_type, created_by, after_user, mails, finished_at`

func insertNotification(b *sqldb.Batch, n Notification) {
	b.Queue(`INSERT INTO breach_notifications (tenant_id, incident_id, `+notificationColumns+`) VALUES ($1, $2, $3, $4, $5, $6, $7, $8, '', 0, 0)`,
		[]any{n.TenantID, n.IncidentID, n.ID, n.Subject, n.Message, n.CreatedAt.UnixMicro(), n.CreatedBy.Type, n.CreatedBy.ID}, nil)
}

func updateNotification(b *sqldb.Batch, n Notification) {
	finished := int64(0)
	if !n.FinishedAt.IsZero() {
		finished = n.FinishedAt.UnixMicro()
	}
	b.Queue(`UPDATE breach_notifications SET after_user = $4, mails = $5, finished_at = $6 WHERE tenant_id = $1 AND incident_id = $2 AND id = $3`,
		[]any{n.TenantID, n.IncidentID, n.ID, n.after, int64(n.Mails), finished}, nil)
}

// selectNotification reads a notification. It fails with [ErrNotFound].
func selectNotification(ctx context.Context, q querier, tenantID, incidentID, notificationID string) (Notification, error) {
	n, err := scanNotification(q.QueryRow(ctx, `SELECT `+notificationColumns+` FROM breach_notifications WHERE tenant_id = $1 AND incident_id = $2 AND id = $3`,
		tenantID, incidentID, notificationID), tenantID, incidentID)
	if errors.Is(err, sqldb.ErrNoRows) {
		return Notification{}, ErrNotFound
	}
	return n, err
}

func scanNotification(row interface{ Scan(...any) error }, tenantID, incidentID string) (Notification, error) {
	n := Notification{TenantID: tenantID, IncidentID: incidentID}
	var by eventlog.Actor
	var created, mails, finished int64
	if err := row.Scan(&n.ID, &n.Subject, &n.Message, &created, &by.Type, &by.ID, &n.after, &mails, &finished); err != nil {
		return Notification{}, fmt.Errorf("read notification: %w", err)
	}
	n.CreatedAt, n.CreatedBy, n.Mails, n.FinishedAt = sqldb.Instant(created), by, int(mails), sqldb.Instant(finished)
	return n, nil
}

func selectNotifications(ctx context.Context, db *sqldb.DB, tenantID, incidentID string) (found []Notification, err error) {
	rows, err := db.Query(ctx, `SELECT `+notificationColumns+` FROM breach_notifications WHERE tenant_id = $1 AND incident_id = $2 ORDER BY id DESC`, tenantID, incidentID)
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	for rows.Next() {
		n, err := scanNotification(rows, tenantID, incidentID)
		if err != nil {
			return nil, err
		}
		found = append(found, n)
	}
	return found, rows.Err()
}
