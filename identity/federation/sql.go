package federation

import (
	"context"
	"embed"
	"encoding/json"
	"errors"

	"stonetown/internal/sqldb"
)

//go:embed migrations
var migrations embed.FS

// Migrations create the package's tables.
func Migrations() sqldb.Migrations { return sqldb.EmbeddedMigrations("federation", migrations) }

// querier is a database or a transaction.
type querier interface {
	Query(ctx context.Context, sql string, args ...any) (*sqldb.Rows, error)
}

const (
	insertConnection = `
		INSERT INTO federation_connections (tenant_id, id, slug, kind, name, state, settings, client_secret, private_key, metadata, metadata_xml,
			check_at, warned_at, version, created_at, updated_at)
		VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, 1, $14, $15)`

	updateConnection = `
		UPDATE federation_connections SET name = $3, state = $4, settings = $5, client_secret = $6, private_key = $7, metadata = $8, metadata_xml = $9,
			check_at = $10, warned_at = $11, version = version + 1, updated_at = $12
		WHERE tenant_id = $1 AND id = $2 AND version = $13`

	deleteConnection = `DELETE FROM federation_connections WHERE tenant_id = $1 AND id = $2`

	selectConnections = `
		SELECT id, slug, kind, name, state, settings, client_secret, private_key, metadata, metadata_xml, warned_at, version, created_at, updated_at
		FROM federation_connections WHERE tenant_id = $1`
	selectByID   = selectConnections + ` AND id = $2`
	selectBySlug = selectConnections + ` AND slug = $2`

	selectSummaries = `
		SELECT id, slug, kind, name, state, created_at FROM federation_connections WHERE tenant_id = $1 ORDER BY created_at DESC, id DESC`
	selectByDomain = `
		SELECT c.id, c.slug, c.kind, c.name, c.state, c.created_at FROM federation_domains AS d
		JOIN federation_connections AS c ON c.tenant_id = d.tenant_id AND c.id = d.connection_id
		WHERE d.tenant_id = $1 AND d.domain = $2`
	selectEnabled    = `SELECT 1 FROM federation_connections WHERE tenant_id = $1 AND id = $2 AND state = 'enabled'`
	countConnections = `SELECT COUNT(*) FROM federation_connections WHERE tenant_id = $1`

	insertDomain  = `INSERT INTO federation_domains (tenant_id, domain, connection_id) VALUES ($1, $2, $3) ON CONFLICT (tenant_id, domain) DO NOTHING`
	deleteDomain  = `DELETE FROM federation_domains WHERE tenant_id = $1 AND domain = $2 AND connection_id = $3`
	deleteDomains = `DELETE FROM federation_domains WHERE tenant_id = $1 AND connection_id = $2`
)

// insert fails with [ErrSlugTaken].
func insert(ctx context.Context, tx *sqldb.Tx, c Connection, checkAt int64) error {
	_, err := tx.Exec(ctx, insertConnection,
		c.TenantID, c.ID, c.Slug, string(c.Kind), c.Name, string(c.State), asJSON(c.Settings), sqldb.Blob(c.ClientSecret.sealed), sqldb.Blob(c.PrivateKey.sealed),
		asJSON(c.Metadata), c.MetadataXML, checkAt, sqldb.Micros(c.warned), c.CreatedAt.UnixMicro(), c.UpdatedAt.UnixMicro())
	if sqldb.IsUniqueViolation(err) {
		err = ErrSlugTaken
	}
	return err
}

// update fails with errChanged if the connection was changed since it was read.
func update(ctx context.Context, tx *sqldb.Tx, c Connection, checkAt int64) error {
	n, err := tx.Exec(ctx, updateConnection,
		c.TenantID, c.ID, c.Name, string(c.State), asJSON(c.Settings), sqldb.Blob(c.ClientSecret.sealed), sqldb.Blob(c.PrivateKey.sealed),
		asJSON(c.Metadata), c.MetadataXML, checkAt, sqldb.Micros(c.warned), c.UpdatedAt.UnixMicro(), c.version)
	if err == nil && n == 0 {
		err = errChanged
	}
	return err
}

// selectOne reads a connection by its id or slug. It fails with [ErrNotFound].
func selectOne(ctx context.Context, from querier, statement, tenantID, key string) (c Connection, err error) {
	if !sqldb.IsText(key) {
		return Connection{}, ErrNotFound
	}
	rows, err := from.Query(ctx, statement, tenantID, key)
	if err != nil {
		return Connection{}, err
	}
	defer rows.Close()
	if !rows.Next() {
		return Connection{}, errors.Join(rows.Err(), ErrNotFound)
	}
	c.TenantID = tenantID
	var settings, metadata, kind, state, xml string
	var warned, created, updated int64
	err = rows.Scan(&c.ID, &c.Slug, &kind, &c.Name, &state, &settings, &c.ClientSecret.sealed, &c.PrivateKey.sealed, &metadata, &xml, &warned, &c.version, &created, &updated)
	if err != nil {
		return Connection{}, err
	}
	if err := errors.Join(json.Unmarshal([]byte(settings), &c.Settings), json.Unmarshal([]byte(metadata), &c.Metadata)); err != nil {
		return Connection{}, err
	}
	c.Kind, c.State, c.MetadataXML = Kind(kind), State(state), xml
	c.warned, c.CreatedAt, c.UpdatedAt = sqldb.Instant(warned), sqldb.Instant(created), sqldb.Instant(updated)
	return c, nil
}

// IsEnabled reports, in a transaction, whether a connection exists and is enabled.
func IsEnabled(ctx context.Context, tx *sqldb.Tx, tenantID, connectionID string) (bool, error) {
	var one int64
	err := tx.QueryRow(ctx, selectEnabled, tenantID, connectionID).Scan(&one)
	if errors.Is(err, sqldb.ErrNoRows) {
		return false, nil
	}
	return err == nil, err
}

// summaries reads connections of a list.
func summaries(ctx context.Context, from querier, statement string, args ...any) (found []Summary, err error) {
	rows, err := from.Query(ctx, statement, args...)
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	for rows.Next() {
		var s Summary
		var kind, state string
		var created int64
		if err := rows.Scan(&s.ID, &s.Slug, &kind, &s.Name, &state, &created); err != nil {
			return nil, err
		}
		s.Kind, s.State, s.CreatedAt = Kind(kind), State(state), sqldb.Instant(created)
		found = append(found, s)
	}
	return found, rows.Err()
}

// asJSON returns the stored form of settings and metadata.
func asJSON(value any) string {
	text, err := json.Marshal(value)
	if err != nil {
		panic("federation: " + err.Error()) // types of this package
	}
	return string(text)
}
