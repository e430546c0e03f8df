package oauth

import (
	"context"
	"embed"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"golang.org/x/text/unicode/norm"

	"stonetown/internal/sqldb"
)

//go:embed migrations
var migrations embed.FS

// Migrations create the package's tables.
func Migrations() sqldb.Migrations { return sqldb.EmbeddedMigrations("oauth", migrations) }

// querier is the database or a transaction on it.
type querier interface {
	QueryRow(ctx context.Context, sql string, args ...any) *sqldb.Row
}

const applicationColumns = `client_id, id, name, type, state, allowed_scopes, audience, access_token_ttl_s, signing_alg, secret_hash,
	previous_secret_hash, previous_expires_at, created_at, allowed_origins, description, redirect_uris, refresh_token_ttl_s, tags, search,
	updated_at, changed_by, secret_rotated_at, last_used_at, token_exchange,
	options, service_provider`

// values are those of the columns.
func (a Application) values() []any {
	return []any{
		a.TenantID, a.ClientID, a.ID, a.Name, string(a.Type), string(a.State), strings.Join(a.AllowedScopes, " "), a.Audience,
		int64(a.AccessTokenTTL / time.Second), string(a.SigningAlg), a.secrets.current[:], a.secrets.previous[:], micros(a.secrets.previousExpiresAt),
		a.CreatedAt.UnixMicro(), strings.Join(a.AllowedOrigins, " "), a.Description, strings.Join(a.RedirectURIs, " "),
		int64(a.RefreshTokenTTL / time.Second), strings.Join(a.Tags, "\n"), fold(a.Name + "\n" + a.Description + "\n" + a.ClientID),
		micros(a.UpdatedAt), a.ChangedBy, micros(a.SecretRotatedAt), micros(a.LastUsedAt),
		stored(a.TokenExchange), stored(a.Options), stored(a.ServiceProvider),
	}
}

func insertApplication(ctx context.Context, tx *sqldb.Tx, a Application) error {
	_, err := tx.Exec(ctx, `
		INSERT INTO applications (tenant_id, `+applicationColumns+`)
		VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16, $17, $18, $19, $20, $21, $22, $23, $24, $25, $26, $27)`, a.values()...)
	return err
}

// updateApplication brings an application to its present state; when it was last used
// is noted elsewhere.
func updateApplication(ctx context.Context, tx *sqldb.Tx, a Application) error {
	v := a.values()
	_, err := tx.Exec(ctx, `
		UPDATE applications SET name = $3, state = $4, allowed_scopes = $5, audience = $6, access_token_ttl_s = $7, signing_alg = $8,
			secret_hash = $9, previous_secret_hash = $10, previous_expires_at = $11, allowed_origins = $12, description = $13,
			redirect_uris = $14, refresh_token_ttl_s = $15, tags = $16, search = $17, updated_at = $18, changed_by = $19, secret_rotated_at = $20, token_exchange = $21,
			options = $22, service_provider = $23
		WHERE tenant_id = $1 AND client_id = $2`,
		slices.Concat(v[:2], v[3:4], v[5:13], v[14:23], v[24:])...)
	return err
}

func selectApplication(ctx context.Context, q querier, tenantID, clientID string) (Application, error) {
	if !sqldb.IsText(clientID) {
		return Application{}, ErrApplicationNotFound
	}
	return scanApplication(q.QueryRow(ctx, `SELECT `+applicationColumns+` FROM applications WHERE tenant_id = $1 AND client_id = $2`, tenantID, clientID), tenantID)
}

func selectApplicationByID(ctx context.Context, q querier, tenantID, applicationID string) (Application, error) {
	if !sqldb.IsText(applicationID) {
		return Application{}, ErrApplicationNotFound
	}
	return scanApplication(q.QueryRow(ctx, `SELECT `+applicationColumns+` FROM applications WHERE tenant_id = $1 AND id = $2`, tenantID, applicationID), tenantID)
}

func scanApplication(row interface{ Scan(...any) error }, tenantID string) (Application, error) {
	a := Application{TenantID: tenantID}
	var (
		scopes, origins, redirects, tags, search             string
		exchange, options, provider                          string
		ttl, refresh                                         int64
		current, previous                                    []byte
		previousExpires, created, updated, rotated, lastUsed int64
	)
	err := row.Scan(&a.ClientID, &a.ID, &a.Name, (*string)(&a.Type), (*string)(&a.State), &scopes, &a.Audience, &ttl, (*string)(&a.SigningAlg),
		&current, &previous, &previousExpires, &created, &origins, &a.Description, &redirects, &refresh, &tags, &search, &updated, &a.ChangedBy, &rotated, &lastUsed,
		&exchange, &options, &provider)
	if errors.Is(err, sqldb.ErrNoRows) {
		return Application{}, ErrApplicationNotFound
	}
	if err != nil {
		return Application{}, fmt.Errorf("read application: %w", err)
	}
	if len(current) != len(a.secrets.current) || len(previous) != len(a.secrets.previous) {
		return Application{}, fmt.Errorf("read application %s: stored secret hash is damaged", a.ClientID)
	}
	copy(a.secrets.current[:], current)
	copy(a.secrets.previous[:], previous)
	a.secrets.previousExpiresAt = instant(previousExpires)
	a.AllowedScopes, a.AllowedOrigins, a.RedirectURIs = strings.Fields(scopes), strings.Fields(origins), strings.Fields(redirects)
	if tags != "" {
		a.Tags = strings.Split(tags, "\n")
	}
	a.TokenExchange, a.Options = a.Type.DefaultTokenExchange(), a.Type.DefaultOptions()
	if err := errors.Join(unstore(exchange, &a.TokenExchange), unstore(options, &a.Options), unstore(provider, &a.ServiceProvider)); err != nil {
		return Application{}, fmt.Errorf("read application %s: %w", a.ClientID, err)
	}
	a.AccessTokenTTL, a.RefreshTokenTTL = time.Duration(ttl)*time.Second, time.Duration(refresh)*time.Second
	a.CreatedAt, a.UpdatedAt, a.SecretRotatedAt, a.LastUsedAt = instant(created), instant(updated), instant(rotated), instant(lastUsed)
	return a, nil
}

func selectApplications(ctx context.Context, db *sqldb.DB, tenantID string, f ApplicationFilter, after *ApplicationPosition, limit int) (found []Application, err error) {
	where, args := `tenant_id = $1 AND created_at > 0`, []any{tenantID}
	bind := func(value any) string { args = append(args, value); return fmt.Sprintf("$%d", len(args)) }
	if f.Type != "" {
		where += ` AND type = ` + bind(string(f.Type))
	}
	if f.State != "" {
		where += ` AND state = ` + bind(string(f.State))
	}
	for _, word := range strings.Fields(fold(f.Query)) {
		where += ` AND search LIKE ` + bind("%"+likeLiteral.Replace(word)+"%") + ` ESCAPE '!'`
	}
	if after != nil {
		at := bind(after.CreatedAt.UnixMicro())
		where += ` AND (created_at < ` + at + ` OR created_at = ` + at + ` AND id < ` + bind(after.ID) + `)`
	}
	rows, err := db.Query(ctx, `SELECT `+applicationColumns+` FROM applications WHERE `+where+` ORDER BY created_at DESC, id DESC LIMIT `+bind(int64(limit)), args...)
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	for rows.Next() {
		a, err := scanApplication(rows, tenantID)
		if err != nil {
			return nil, err
		}
		found = append(found, a)
	}
	return found, rows.Err()
}

// likeLiteral makes a pattern of LIKE that matches a text alone.
var likeLiteral = strings.NewReplacer("!", "!!", "%", "!%", "_", "!_")

func fold(text string) string { return strings.ToLower(norm.NFC.String(text)) }

// moment is the present time as it is stored: UTC, in microseconds.
func moment(clock func() time.Time) time.Time { return clock().UTC().Truncate(time.Microsecond) }

// micros is 0 for the zero time, which is instant's inverse.
func micros(t time.Time) int64 {
	if t.IsZero() {
		return 0
	}
	return t.UnixMicro()
}

func instant(micros int64) time.Time {
	if micros == 0 {
		return time.Time{}
	}
	return time.UnixMicro(micros).UTC()
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

// putKey queues that a key is as it is. It violates an index if another of the algorithm
// is active or next.
func putKey(b *sqldb.Batch, tenantID string, k SigningKey) {
	b.Queue(`
		INSERT INTO signing_keys (tenant_id, kid, alg, state, private_sealed, created_at, activated_at, retired_at, removed_at)
		VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9)
		ON CONFLICT (tenant_id, kid) DO UPDATE SET state = excluded.state, private_sealed = excluded.private_sealed,
			activated_at = excluded.activated_at, retired_at = excluded.retired_at, removed_at = excluded.removed_at`,
		[]any{tenantID, k.KID, string(k.Alg), string(k.State), k.sealed, k.CreatedAt.UnixMicro(), micros(k.ActivatedAt), micros(k.RetiredAt), micros(k.RemovedAt)}, nil)
}

// keyColumns but for the private half.
const keyColumns = `kid, alg, state, created_at, activated_at, retired_at, removed_at`

func scanKey(rows *sqldb.Rows, k *SigningKey, others ...any) error {
	var created, activated, retired, removed int64
	err := rows.Scan(append([]any{&k.KID, (*string)(&k.Alg), (*string)(&k.State), &created, &activated, &retired, &removed}, others...)...)
	k.CreatedAt, k.ActivatedAt, k.RetiredAt, k.RemovedAt = instant(created), instant(activated), instant(retired), instant(removed)
	return err
}

// selectKeys reads the keys of a tenant, by algorithm, and of each the active one first.
func selectKeys(ctx context.Context, from interface {
	Query(ctx context.Context, sql string, args ...any) (*sqldb.Rows, error)
}, tenantID string,
) (keys []SigningKey, err error) {
	rows, err := from.Query(ctx, `SELECT `+keyColumns+`, private_sealed FROM signing_keys WHERE tenant_id = $1 ORDER BY alg, state, created_at DESC, kid`, tenantID)
	if err != nil {
		return nil, fmt.Errorf("read signing keys: %w", err)
	}
	defer rows.Close()
	for rows.Next() {
		var k SigningKey
		if err := scanKey(rows, &k, &k.sealed); err != nil {
			return nil, fmt.Errorf("read signing keys: %w", err)
		}
		keys = append(keys, k)
	}
	if err := rows.Err(); err != nil {
		return nil, fmt.Errorf("read signing keys: %w", err)
	}
	return keys, nil
}

// selectLivingKeys reads the keys of all tenants that are not removed, without their
// private halves.
func selectLivingKeys(ctx context.Context, db *sqldb.DB) (byTenant map[string][]SigningKey, err error) {
	rows, err := db.Query(ctx, `SELECT `+keyColumns+`, tenant_id FROM signing_keys WHERE state <> 'removed'`)
	if err != nil {
		return nil, fmt.Errorf("read signing keys: %w", err)
	}
	defer rows.Close()
	byTenant = map[string][]SigningKey{}
	for rows.Next() {
		var k SigningKey
		var tenantID string
		if err := scanKey(rows, &k, &tenantID); err != nil {
			return nil, fmt.Errorf("read signing keys: %w", err)
		}
		byTenant[tenantID] = append(byTenant[tenantID], k)
	}
	if err := rows.Err(); err != nil {
		return nil, fmt.Errorf("read signing keys: %w", err)
	}
	return byTenant, nil
}

// stored is how a part of an application is stored that is read and written whole.
func stored(part any) string {
	text, err := json.Marshal(part)
	if err != nil {
		panic("oauth: " + err.Error()) // of texts, numbers and truth values
	}
	return string(text)
}

// unstore reads what stored wrote; of what was never written, part stays as it is.
func unstore(text string, part any) error {
	if text == "" {
		return nil
	}
	return json.Unmarshal([]byte(text), part)
}
