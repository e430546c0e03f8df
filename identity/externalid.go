package identity

import (
	"context"

	"stonetown/internal/sqldb"
)

// SetExternalID queues the id that a client has for a user or a group. The empty id removes it.
// Each client has its own ids; the same one can be that of several objects.
func SetExternalID(b *sqldb.Batch, tenantID, clientID, objectID, externalID string) {
	if externalID == "" {
		b.Queue(`DELETE FROM external_ids WHERE tenant_id = $1 AND object_id = $2 AND client_id = $3`, []any{tenantID, objectID, clientID}, nil)
		return
	}
	b.Queue(`
		INSERT INTO external_ids (tenant_id, object_id, client_id, external_id) VALUES ($1, $2, $3, $4)
		ON CONFLICT (tenant_id, object_id, client_id) DO UPDATE SET external_id = excluded.external_id`,
		[]any{tenantID, objectID, clientID, externalID}, nil)
}

// ExternalIDs returns the ids that a client has for some users or groups, by their own ids.
func (d *Directory) ExternalIDs(ctx context.Context, tenantID, clientID string, objectIDs []string) (map[string]string, error) {
	found := make(map[string]string, len(objectIDs))
	var b sqldb.Batch
	for _, objectID := range objectIDs {
		b.Queue(`SELECT external_id FROM external_ids WHERE tenant_id = $1 AND object_id = $2 AND client_id = $3`,
			[]any{tenantID, objectID, clientID}, func(rows *sqldb.Rows) error {
				for rows.Next() {
					var externalID string
					if err := rows.Scan(&externalID); err != nil {
						return err
					}
					found[objectID] = externalID
				}
				return nil
			})
	}
	if b.Len() == 0 {
		return found, nil
	}
	return found, d.db.Send(ctx, &b)
}

// forgetExternalIDs queues the deletion of the ids that clients have for a user or a group.
func forgetExternalIDs(b *sqldb.Batch, tenantID, objectID string) {
	b.Queue(`DELETE FROM external_ids WHERE tenant_id = $1 AND object_id = $2`, []any{tenantID, objectID}, nil)
}
