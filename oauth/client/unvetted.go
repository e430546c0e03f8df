package client

import (
	"context"
	"fmt"
	"time"

	"stonetown/internal/sqldb"
	"stonetown/oauth/internal/storage"
	"stonetown/oauth/protocol"
)

// Source is how an application came to be.
type Source string

// The sources of applications. Unvetted ones are bounded: a tenant has at most
// [MaxUnvetted] of each source, and one that no user has signed in to within [UnvettedFor] is
// deleted.
const (
	FromAdministrator Source = ""         // or from a client with a token of one
	FromAnyone        Source = "anyone"   // a client registered it without a token ([DCROpen])
	FromDocument      Source = "document" // its client id is the URL of a document that describes it
)

// The bounds of unvetted applications.
const (
	MaxUnvetted = 1000 // of a tenant and a source
	UnvettedFor = 24 * time.Hour
)

// admitUnvetted refuses an application beyond the bound. It fails with [*protocol.Error].
func admitUnvetted(ctx context.Context, tx *sqldb.Tx, a Application) error {
	if a.Source == FromAdministrator {
		return nil
	}
	var n int64
	err := tx.QueryRow(ctx, `SELECT COUNT(*) FROM applications WHERE tenant_id = $1 AND source = $2 AND source <> ''`, a.TenantID, string(a.Source)).Scan(&n)
	if err != nil {
		return fmt.Errorf("count applications: %w", err)
	}
	if n >= MaxUnvetted {
		return protocol.NewError(protocol.InvalidRequest, fmt.Sprintf("the tenant has %d unvetted clients, and admits no more", MaxUnvetted))
	}
	return nil
}

// maxForgotten bounds the applications that one call of [Registry.ForgetUnvetted] deletes.
const maxForgotten = 100

// ForgetUnvetted deletes unvetted applications, of all tenants, that no user has signed in
// to in time, as an administrator would. A client can be admitted again.
func (s *Registry) ForgetUnvetted(ctx context.Context) error {
	rows, err := s.db.Query(ctx, `
		SELECT tenant_id, id FROM applications a
		WHERE source <> '' AND created_at < $1 AND last_used_at = 0
			AND NOT EXISTS (SELECT 1 FROM authorizations z WHERE z.tenant_id = a.tenant_id AND z.client_id = a.client_id)
		ORDER BY created_at LIMIT $2`, storage.Now(s.clock).Add(-UnvettedFor).UnixMicro(), int64(maxForgotten))
	if err != nil {
		return fmt.Errorf("find unused applications: %w", err)
	}
	defer rows.Close()
	var unused [][2]string
	for rows.Next() {
		var tenantID, id string
		if err := rows.Scan(&tenantID, &id); err != nil {
			return err
		}
		unused = append(unused, [2]string{tenantID, id})
	}
	if err := rows.Err(); err != nil {
		return err
	}
	for _, u := range unused {
		a, err := s.ByID(ctx, u[0], u[1])
		if err == nil {
			err = s.remove(ctx, a, "", false)
		}
		if err != nil && !IsNotFound(err) {
			return fmt.Errorf("forget unused application: %w", err)
		}
	}
	return nil
}
