package client

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"golang.org/x/text/unicode/norm"

	"stonetown/internal/sqldb"
	"stonetown/oauth/internal/storage"
)

const columns = `client_id, id, name, type, state, allowed_scopes, audience, access_token_ttl_s, signing_alg, secret_hash,
	previous_secret_hash, previous_expires_at, created_at, allowed_origins, description, redirect_uris, refresh_token_ttl_s, tags, search,
	updated_at, changed_by, secret_rotated_at, last_used_at, token_exchange,
	options, service_provider, entity_id, claim_names, source, workload_issuers`

// values returns the values of the columns.
func (a Application) values() []any {
	return []any{
		a.TenantID, a.ClientID, a.ID, a.Name, string(a.Type), string(a.State), strings.Join(a.AllowedScopes, " "), a.Audience,
		int64(a.AccessTokenTTL / time.Second), string(a.SigningAlg), a.secrets.current[:], a.secrets.previous[:], sqldb.Micros(a.secrets.previousExpiresAt),
		a.CreatedAt.UnixMicro(), strings.Join(a.AllowedOrigins, " "), a.Description, strings.Join(a.RedirectURIs, " "),
		int64(a.RefreshTokenTTL / time.Second), strings.Join(a.Tags, "\n"), fold(a.Name + "\n" + a.Description + "\n" + a.ClientID),
		sqldb.Micros(a.UpdatedAt), a.ChangedBy, sqldb.Micros(a.SecretRotatedAt), sqldb.Micros(a.LastUsedAt),
		storage.JSON(a.TokenExchange), storage.JSON(a.Options), storage.JSON(a.ServiceProvider), a.entityID(), a.claimNames(), string(a.Source), a.workloadIssuers(),
	}
}

// entityID returns the entity id of a service provider. Other applications may have one that was not
// validated, which is not used.
func (a Application) entityID() string {
	if a.Type != SAML {
		return ""
	}
	return a.ServiceProvider.EntityID
}

func insertRow(ctx context.Context, tx *sqldb.Tx, a Application) error {
	_, err := tx.Exec(ctx, `
		INSERT INTO applications (tenant_id, `+columns+`)
		VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16, $17, $18, $19, $20, $21, $22, $23, $24, $25, $26, $27, $28, $29, $30, $31)`, a.values()...)
	return err
}

// updateRow stores the present state of an application, except its last use.
func updateRow(ctx context.Context, tx *sqldb.Tx, a Application) error {
	v := a.values()
	_, err := tx.Exec(ctx, `
		UPDATE applications SET name = $3, state = $4, allowed_scopes = $5, audience = $6, access_token_ttl_s = $7, signing_alg = $8,
			secret_hash = $9, previous_secret_hash = $10, previous_expires_at = $11, allowed_origins = $12, description = $13,
			redirect_uris = $14, refresh_token_ttl_s = $15, tags = $16, search = $17, updated_at = $18, changed_by = $19, secret_rotated_at = $20, token_exchange = $21,
			options = $22, service_provider = $23, entity_id = $24, claim_names = $25, workload_issuers = $26
		WHERE tenant_id = $1 AND client_id = $2`,
		slices.Concat(v[:2], v[3:4], v[5:13], v[14:23], v[24:29], v[30:])...)
	return err
}

// Select reads an application by its client id. It fails with [ErrNotFound].
func Select(ctx context.Context, q storage.Querier, tenantID, clientID string) (Application, error) {
	if !sqldb.IsText(clientID) {
		return Application{}, ErrNotFound
	}
	return scanRow(q.QueryRow(ctx, selectByClientID, tenantID, clientID), tenantID)
}

const selectByClientID = `SELECT ` + columns + ` FROM applications WHERE tenant_id = $1 AND client_id = $2`

// QueueSelect queues the read of an application. When the batch was sent, result returns it, as
// [Select] does.
func QueueSelect(b *sqldb.Batch, tenantID, clientID string) (result func() (Application, error)) {
	found, err := Application{}, ErrNotFound
	if sqldb.IsText(clientID) {
		b.Queue(selectByClientID, []any{tenantID, clientID}, func(rows *sqldb.Rows) error {
			found, err = scanRow(rows.First(), tenantID)
			return nil
		})
	}
	return func() (Application, error) { return found, err }
}

// SelectByID reads an application by its id. It fails with [ErrNotFound].
func SelectByID(ctx context.Context, q storage.Querier, tenantID, applicationID string) (Application, error) {
	if !sqldb.IsText(applicationID) {
		return Application{}, ErrNotFound
	}
	return scanRow(q.QueryRow(ctx, `SELECT `+columns+` FROM applications WHERE tenant_id = $1 AND id = $2`, tenantID, applicationID), tenantID)
}

// SelectByEntityID reads the oldest application that has an entity id as a SAML service provider. It
// fails with [ErrNotFound].
func SelectByEntityID(ctx context.Context, q storage.Querier, tenantID, entityID string) (Application, error) {
	if entityID == "" || !sqldb.IsText(entityID) {
		return Application{}, ErrNotFound
	}
	return scanRow(q.QueryRow(ctx, `
		SELECT `+columns+` FROM applications WHERE tenant_id = $1 AND entity_id = $2 AND entity_id <> '' ORDER BY created_at, id LIMIT 1`, tenantID, entityID), tenantID)
}

func scanRow(row interface{ Scan(...any) error }, tenantID string) (Application, error) {
	a := Application{TenantID: tenantID}
	var (
		scopes, origins, redirects, tags, search             string
		exchange, options, provider, entityID, claimNames    string
		issuers                                              string
		ttl, refresh                                         int64
		current, previous                                    []byte
		previousExpires, created, updated, rotated, lastUsed int64
	)
	err := row.Scan(&a.ClientID, &a.ID, &a.Name, (*string)(&a.Type), (*string)(&a.State), &scopes, &a.Audience, &ttl, (*string)(&a.SigningAlg),
		&current, &previous, &previousExpires, &created, &origins, &a.Description, &redirects, &refresh, &tags, &search, &updated, &a.ChangedBy, &rotated, &lastUsed,
		&exchange, &options, &provider, &entityID, &claimNames, (*string)(&a.Source), &issuers)
	if errors.Is(err, sqldb.ErrNoRows) {
		return Application{}, ErrNotFound
	}
	if err != nil {
		return Application{}, fmt.Errorf("read application: %w", err)
	}
	if len(current) != len(a.secrets.current) || len(previous) != len(a.secrets.previous) {
		return Application{}, fmt.Errorf("read application %s: stored secret hash is damaged", a.ClientID)
	}
	copy(a.secrets.current[:], current)
	copy(a.secrets.previous[:], previous)
	a.secrets.previousExpiresAt = sqldb.Instant(previousExpires)
	a.AllowedScopes, a.AllowedOrigins, a.RedirectURIs = strings.Fields(scopes), strings.Fields(origins), strings.Fields(redirects)
	if tags != "" {
		a.Tags = strings.Split(tags, "\n")
	}
	a.TokenExchange, a.Options = a.Type.DefaultTokenExchange(), a.Type.DefaultOptions()
	a.IDTokenAlg = registeredIDTokenAlg
	if err := errors.Join(storage.ReadJSON(exchange, &a.TokenExchange), storage.ReadJSON(options, &a.Options), storage.ReadJSON(provider, &a.ServiceProvider)); err != nil {
		return Application{}, fmt.Errorf("read application %s: %w", a.ClientID, err)
	}
	a.AccessTokenTTL, a.RefreshTokenTTL = time.Duration(ttl)*time.Second, time.Duration(refresh)*time.Second
	a.CreatedAt, a.UpdatedAt, a.SecretRotatedAt, a.LastUsedAt = sqldb.Instant(created), sqldb.Instant(updated), sqldb.Instant(rotated), sqldb.Instant(lastUsed)
	return a, nil
}

func selectPage(ctx context.Context, db *sqldb.DB, tenantID string, f Filter, after *Position, limit int) (found []Application, err error) {
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
	return selectRows(ctx, db, tenantID, `SELECT `+columns+` FROM applications WHERE `+where+` ORDER BY created_at DESC, id DESC LIMIT `+bind(int64(limit)), args...)
}

// selectClaiming reads the applications that have configured claims.
func selectClaiming(ctx context.Context, db *sqldb.DB, tenantID string) ([]Application, error) {
	return selectRows(ctx, db, tenantID, `SELECT `+columns+` FROM applications WHERE tenant_id = $1 AND claim_names <> '' ORDER BY client_id`, tenantID)
}

// selectNaming reads the applications whose workload identities name a trusted issuer.
func selectNaming(ctx context.Context, q querier, tenantID, issuerID string) ([]Application, error) {
	all, err := selectRows(ctx, q, tenantID, `SELECT `+columns+` FROM applications WHERE tenant_id = $1 AND workload_issuers <> '' ORDER BY client_id`, tenantID)
	return slices.DeleteFunc(all, func(a Application) bool { return !a.names(issuerID) }), err
}

// querier is a database or a transaction.
type querier interface {
	Query(ctx context.Context, sql string, args ...any) (*sqldb.Rows, error)
}

func selectRows(ctx context.Context, q querier, tenantID, query string, args ...any) (found []Application, err error) {
	rows, err := q.Query(ctx, query, args...)
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	for rows.Next() {
		a, err := scanRow(rows, tenantID)
		if err != nil {
			return nil, err
		}
		found = append(found, a)
	}
	return found, rows.Err()
}

// likeLiteral escapes a text for LIKE.
var likeLiteral = strings.NewReplacer("!", "!!", "%", "!%", "_", "!_")

func fold(text string) string { return strings.ToLower(norm.NFC.String(text)) }

// selectOrigins reads the origins that enabled applications name, by client id.
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

// QueueClaimNames queues the read of the names of the claims that are configured for the
// applications of a tenant. When the batch was sent, result returns them, sorted.
func QueueClaimNames(b *sqldb.Batch, tenantID string) (result func() []string) {
	var names []string
	b.Queue(`SELECT DISTINCT claim_names FROM applications WHERE tenant_id = $1 AND claim_names <> ''`, []any{tenantID}, func(rows *sqldb.Rows) error {
		lists, err := sqldb.Texts(rows, nil)
		for _, list := range lists {
			names = append(names, strings.Fields(list)...)
		}
		return err
	})
	return func() []string {
		slices.Sort(names)
		return slices.Compact(names)
	}
}
