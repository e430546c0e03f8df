package session

import (
	"context"
	"embed"
	"errors"
	"fmt"
	"strings"
	"time"

	"stonetown/internal/sqldb"
)

//go:embed migrations
var migrations embed.FS

// Migrations create the package's tables.
func Migrations() sqldb.Migrations { return sqldb.EmbeddedMigrations("session", migrations) }

const columns = `id, user_id, token_hash, methods, auth_time, second_factor_at, must_enrol, created_at, last_active_at, expires_at, idle, ip, user_agent, claims, origin`

func insert(b *sqldb.Batch, s Session, hash []byte) {
	b.Queue(`
		INSERT INTO sessions (tenant_id, `+columns+`) VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16)`,
		[]any{
			s.TenantID, s.ID, s.UserID, hash, strings.Join(s.Methods, " "), s.AuthTime.UnixMicro(), sqldb.Micros(s.SecondFactor), s.MustEnrol,
			s.CreatedAt.UnixMicro(), s.LastActiveAt.UnixMicro(), s.ExpiresAt.UnixMicro(), s.idle.Microseconds(), s.Device.IP, s.Device.UserAgent, s.Claims, s.Origin.text(),
		}, nil)
}

// update queues an update of the authentication of a session; a nil hash keeps the token.
func update(b *sqldb.Batch, s Session, hash []byte) {
	b.Queue(`
		UPDATE sessions SET token_hash = COALESCE($3, token_hash), methods = $4, auth_time = $5, second_factor_at = $6, must_enrol = $7
		WHERE tenant_id = $1 AND id = $2`,
		[]any{s.TenantID, s.ID, hash, strings.Join(s.Methods, " "), s.AuthTime.UnixMicro(), sqldb.Micros(s.SecondFactor), s.MustEnrol}, nil)
}

func touch(ctx context.Context, db *sqldb.DB, s Session, now time.Time) error {
	_, err := db.Exec(ctx, `UPDATE sessions SET last_active_at = $3 WHERE tenant_id = $1 AND id = $2 AND last_active_at < $3`,
		s.TenantID, s.ID, now.UnixMicro())
	return err
}

const selectByID = `SELECT ` + columns + ` FROM sessions WHERE tenant_id = $1 AND id = $2`

func selectSession(ctx context.Context, db *sqldb.DB, tenantID, sessionID string) (Session, []byte, error) {
	if !sqldb.IsText(sessionID) {
		return Session{}, nil, ErrEnded
	}
	return scan(db.QueryRow(ctx, selectByID, tenantID, sessionID), tenantID)
}

func scan(row interface{ Scan(...any) error }, tenantID string) (Session, []byte, error) {
	s := Session{TenantID: tenantID}
	var hash []byte
	var methods, origin string
	var auth, second, created, active, expires, idle int64
	err := row.Scan(&s.ID, &s.UserID, &hash, &methods, &auth, &second, &s.MustEnrol, &created, &active, &expires, &idle, &s.Device.IP, &s.Device.UserAgent, &s.Claims, &origin)
	if errors.Is(err, sqldb.ErrNoRows) {
		return Session{}, nil, ErrEnded
	}
	if err != nil {
		return Session{}, nil, fmt.Errorf("read session: %w", err)
	}
	s.Methods, s.Origin = strings.Fields(methods), originOf(origin)
	s.AuthTime, s.SecondFactor = sqldb.Instant(auth), sqldb.Instant(second)
	s.CreatedAt, s.LastActiveAt, s.ExpiresAt, s.idle = sqldb.Instant(created), sqldb.Instant(active), sqldb.Instant(expires), time.Duration(idle)*time.Microsecond
	return s, hash, nil
}

// querier is a database or a transaction.
type querier interface {
	Query(ctx context.Context, sql string, args ...any) (*sqldb.Rows, error)
}

func selectOfUser(ctx context.Context, from querier, tenantID, userID string) ([]Session, error) {
	return selectSessions(ctx, from, tenantID, `user_id = $2 AND user_id <> '' ORDER BY created_at DESC, id DESC`, userID)
}

// selectSessions returns sessions of a tenant. The parameters of where begin with $2.
func selectSessions(ctx context.Context, from querier, tenantID, where string, args ...any) (found []Session, err error) {
	rows, err := from.Query(ctx, `SELECT `+columns+` FROM sessions WHERE tenant_id = $1 AND `+where, append([]any{tenantID}, args...)...)
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	for rows.Next() {
		s, _, err := scan(rows, tenantID)
		if err != nil {
			return nil, err
		}
		found = append(found, s)
	}
	return found, rows.Err()
}

// selectDevices returns the fingerprints of the devices with a sign-in of a user after an
// instant, latest first.
func selectDevices(ctx context.Context, from querier, tenantID, userID string, after time.Time) ([]string, error) {
	return sqldb.Texts(from.Query(ctx, `
		SELECT fingerprint FROM known_devices WHERE tenant_id = $1 AND user_id = $2 AND last_seen_at > $3 ORDER BY last_seen_at DESC, fingerprint`,
		tenantID, userID, after.UnixMicro()))
}

func seeDevice(b *sqldb.Batch, tenantID, userID, fingerprint string, at time.Time) {
	b.Queue(`
		INSERT INTO known_devices (tenant_id, user_id, fingerprint, last_seen_at) VALUES ($1, $2, $3, $4)
		ON CONFLICT (tenant_id, user_id, fingerprint) DO UPDATE SET last_seen_at = excluded.last_seen_at`,
		[]any{tenantID, userID, fingerprint, at.UnixMicro()}, nil)
}

func forgetDevice(b *sqldb.Batch, tenantID, userID, fingerprint string) {
	b.Queue(`DELETE FROM known_devices WHERE tenant_id = $1 AND user_id = $2 AND fingerprint = $3`, []any{tenantID, userID, fingerprint}, nil)
}
