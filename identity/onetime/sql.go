package onetime

import (
	"embed"
	"errors"
	"fmt"
	"time"

	"stonetown/internal/sqldb"
)

//go:embed migrations
var migrations embed.FS

// Migrations create the table of tokens.
func Migrations() sqldb.Migrations { return sqldb.EmbeddedMigrations("onetime", migrations) }

const columns = `kind, user_id, payload, attempts, created_at, expires_at`

func (s *Store) scan(row *sqldb.Row, tenantID string, kind Kind, tokenID string) (Token, error) {
	t := Token{TenantID: tenantID, id: tokenID}
	var sealed []byte
	var attempts, created, expires int64
	err := row.Scan((*string)(&t.Kind), &t.UserID, &sealed, &attempts, &created, &expires)
	if errors.Is(err, sqldb.ErrNoRows) {
		return Token{}, ErrInvalid
	}
	if err != nil {
		return Token{}, fmt.Errorf("read one-time token: %w", err)
	}
	t.Attempts, t.CreatedAt, t.ExpiresAt = int(attempts), time.UnixMicro(created).UTC(), time.UnixMicro(expires).UTC()
	if t.Kind != kind || !s.now().Before(t.ExpiresAt) {
		return Token{}, ErrInvalid
	}
	if t.payload, err = s.seal.Open(tenantID, tokenID, sealed); err != nil {
		return Token{}, fmt.Errorf("read one-time token: %w", err)
	}
	return t, nil
}
