package ticket

import (
	"embed"
	"errors"
	"fmt"
	"time"

	"stonetown/internal/sqldb"
)

//go:embed migrations
var migrations embed.FS

// Migrations create the package's tables.
func Migrations() sqldb.Migrations { return sqldb.EmbeddedMigrations("ticket", migrations) }

const columns = `kind, user_id, payload, attempts, created_at, expires_at`

func (s *Store) scan(row *sqldb.Row, tenantID string, kind Kind, ticketID string) (Ticket, error) {
	t := Ticket{TenantID: tenantID, id: ticketID}
	var sealed []byte
	var attempts, created, expires int64
	err := row.Scan((*string)(&t.Kind), &t.UserID, &sealed, &attempts, &created, &expires)
	if errors.Is(err, sqldb.ErrNoRows) {
		return Ticket{}, ErrInvalid
	}
	if err != nil {
		return Ticket{}, fmt.Errorf("read ticket: %w", err)
	}
	t.Attempts, t.CreatedAt, t.ExpiresAt = int(attempts), time.UnixMicro(created).UTC(), time.UnixMicro(expires).UTC()
	if t.Kind != kind || !s.now().Before(t.ExpiresAt) {
		return Ticket{}, ErrInvalid
	}
	if t.payload, err = s.seal.Open(tenantID, ticketID, sealed); err != nil {
		return Ticket{}, fmt.Errorf("read ticket: %w", err)
	}
	return t, nil
}
