package oauth

import (
	"context"
	"embed"
	"errors"
	"fmt"
	"strings"
	"time"

	"stonetown/internal/sqldb"
)

//go:embed migrations/*.sql
var migrations embed.FS

// Migrations create the package's tables.
func Migrations() sqldb.Migrations { return sqldb.EmbeddedMigrations("oauth", migrations) }

// querier is the database or a transaction on it.
type querier interface {
	QueryRow(ctx context.Context, sql string, args ...any) *sqldb.Row
}

func insertApplication(ctx context.Context, tx *sqldb.Tx, a Application) error {
	_, err := tx.Exec(ctx, `
		INSERT INTO applications (
			tenant_id, client_id, id, name, type, state, allowed_scopes, audience,
			access_token_ttl_s, signing_alg, secret_hash, previous_secret_hash, previous_expires_at, created_at, allowed_origins)
		VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15)`,
		a.TenantID, a.ClientID, a.ID, a.Name, string(a.Type), string(a.State), strings.Join(a.AllowedScopes, " "), a.Audience,
		int64(a.AccessTokenTTL/time.Second), string(a.SigningAlg), a.secrets.current[:], a.secrets.previous[:], int64(0),
		a.CreatedAt.UnixMicro(), strings.Join(a.AllowedOrigins, " "))
	return err
}

func selectApplication(ctx context.Context, q querier, tenantID, clientID string) (Application, error) {
	a := Application{TenantID: tenantID, ClientID: clientID}
	var (
		scopes, named             string
		ttl                       int64
		current, previous         []byte
		previousExpires, createAt int64
	)
	err := q.QueryRow(ctx, `
		SELECT id, name, type, state, allowed_scopes, audience, access_token_ttl_s, signing_alg,
			secret_hash, previous_secret_hash, previous_expires_at, created_at, allowed_origins
		FROM applications WHERE tenant_id = $1 AND client_id = $2`, tenantID, clientID).
		Scan(&a.ID, &a.Name, (*string)(&a.Type), (*string)(&a.State), &scopes, &a.Audience, &ttl, (*string)(&a.SigningAlg),
			&current, &previous, &previousExpires, &createAt, &named)
	if errors.Is(err, sqldb.ErrNoRows) {
		return Application{}, ErrApplicationNotFound
	}
	if err != nil {
		return Application{}, fmt.Errorf("read application: %w", err)
	}
	if len(current) != len(a.secrets.current) || len(previous) != len(a.secrets.previous) {
		return Application{}, fmt.Errorf("read application %s: stored secret hash is damaged", clientID)
	}
	copy(a.secrets.current[:], current)
	copy(a.secrets.previous[:], previous)
	a.secrets.previousExpiresAt = time.UnixMicro(previousExpires).UTC()
	a.AllowedScopes = strings.Fields(scopes)
	a.AllowedOrigins = strings.Fields(named)
	a.AccessTokenTTL = time.Duration(ttl) * time.Second
	a.CreatedAt = time.UnixMicro(createAt).UTC()
	return a, nil
}

// selectOrigins lists the origins that enabled applications name.
func selectOrigins(ctx context.Context, db *sqldb.DB, tenantID string) (map[string][]string, error) {
	rows, err := db.Query(ctx, `
		SELECT client_id, allowed_origins FROM applications
		WHERE tenant_id = $1 AND state = 'enabled' AND allowed_origins <> ''`, tenantID)
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	byClient := map[string][]string{}
	for rows.Next() {
		var clientID, named string
		if err := rows.Scan(&clientID, &named); err != nil {
			return nil, err
		}
		byClient[clientID] = strings.Fields(named)
	}
	return byClient, rows.Err()
}

func updateApplicationState(ctx context.Context, tx *sqldb.Tx, tenantID, clientID string, state ApplicationState) error {
	n, err := tx.Exec(ctx, `UPDATE applications SET state = $3 WHERE tenant_id = $1 AND client_id = $2`,
		tenantID, clientID, string(state))
	if err == nil && n == 0 {
		return ErrApplicationNotFound
	}
	return err
}

func updateSecrets(ctx context.Context, tx *sqldb.Tx, tenantID, clientID string, s secrets) error {
	_, err := tx.Exec(ctx, `
		UPDATE applications SET secret_hash = $3, previous_secret_hash = $4, previous_expires_at = $5
		WHERE tenant_id = $1 AND client_id = $2`,
		tenantID, clientID, s.current[:], s.previous[:], s.previousExpiresAt.UnixMicro())
	return err
}

// insertKey violates the index on active keys if the tenant has one of the
// algorithm.
func insertKey(ctx context.Context, tx *sqldb.Tx, tenantID string, k storedKey) error {
	_, err := tx.Exec(ctx, `
		INSERT INTO signing_keys (tenant_id, kid, alg, state, private_sealed, created_at)
		VALUES ($1, $2, $3, 'active', $4, $5)`,
		tenantID, k.kid, string(k.alg), k.sealed, k.createdAt.UnixMicro())
	return err
}

func selectKeys(ctx context.Context, db *sqldb.DB, tenantID string) (keys []storedKey, err error) {
	rows, err := db.Query(ctx, `
		SELECT kid, alg, private_sealed, created_at
		FROM signing_keys WHERE tenant_id = $1 AND state = 'active' ORDER BY alg`, tenantID)
	if err != nil {
		return nil, fmt.Errorf("read signing keys: %w", err)
	}
	defer rows.Close()
	for rows.Next() {
		var (
			k       storedKey
			created int64
		)
		if err := rows.Scan(&k.kid, (*string)(&k.alg), &k.sealed, &created); err != nil {
			return nil, fmt.Errorf("read signing keys: %w", err)
		}
		k.createdAt = time.UnixMicro(created).UTC()
		keys = append(keys, k)
	}
	if err := rows.Err(); err != nil {
		return nil, fmt.Errorf("read signing keys: %w", err)
	}
	return keys, nil
}
