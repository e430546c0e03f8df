package threat

import (
	"context"
	"embed"
	"errors"
	"fmt"
	"strconv"
	"strings"

	"stonetown/internal/sqldb"
)

//go:embed migrations
var migrations embed.FS

// Migrations create the package's tables.
func Migrations() sqldb.Migrations { return sqldb.EmbeddedMigrations("threat", migrations) }

// querier is a [*sqldb.DB] or a [*sqldb.Tx].
type querier interface {
	Query(ctx context.Context, query string, args ...any) (*sqldb.Rows, error)
	QueryRow(ctx context.Context, query string, args ...any) *sqldb.Row
}

const columns = `id, kind, source, name, url, mode, enabled, refresh_s, entries, bad_lines, first_bad, listed_at, checked_at, failing_at, failure,
	requested_at, version, chunks, digest, etag, last_modified, created_at, updated_at`

func insertFeed(b *sqldb.Batch, f Feed, checkAt int64) {
	b.Queue(`INSERT INTO threat_feeds (tenant_id, `+columns+`, check_at)
		VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, 0, 0, '', 0, 0, 0, '', 0, 0, 0, '', '', '', $10, $11, $12)`, []any{
		f.TenantID, f.ID, string(f.Kind), string(f.Source), f.Name, f.URL, string(f.Mode), f.Enabled, int64(f.RefreshS),
		f.CreatedAt.UnixMicro(), f.UpdatedAt.UnixMicro(), checkAt,
	}, nil)
}

func updateFeed(b *sqldb.Batch, f Feed, checkAt int64) {
	b.Queue(`UPDATE threat_feeds SET name = $3, url = $4, mode = $5, enabled = $6, refresh_s = $7, entries = $8, bad_lines = $9, first_bad = $10,
			listed_at = $11, checked_at = $12, failing_at = $13, failure = $14, requested_at = $15, version = $16, chunks = $17, digest = $18,
			etag = $19, last_modified = $20, updated_at = $21, check_at = $22
		WHERE tenant_id = $1 AND id = $2`, []any{
		f.TenantID, f.ID, f.Name, f.URL, string(f.Mode), f.Enabled, int64(f.RefreshS), int64(f.Entries), int64(f.BadLines), joined(f.FirstBad),
		sqldb.Micros(f.ListedAt), sqldb.Micros(f.CheckedAt), sqldb.Micros(f.FailingAt), f.Failure, sqldb.Micros(f.requestedAt), f.version, int64(f.chunks), f.digest,
		f.etag, f.lastModified, f.UpdatedAt.UnixMicro(), checkAt,
	}, nil)
}

func joined(numbers []int) string {
	var all []string
	for _, n := range numbers {
		all = append(all, strconv.Itoa(n))
	}
	return strings.Join(all, ",")
}

// selectFeed reads a feed. It fails with [ErrNotFound].
func selectFeed(ctx context.Context, q querier, tenantID, feedID string) (Feed, error) {
	if !sqldb.IsText(feedID) {
		return Feed{}, ErrNotFound
	}
	f, err := scanFeed(q.QueryRow(ctx, `SELECT `+columns+` FROM threat_feeds WHERE tenant_id = $1 AND id = $2`, tenantID, feedID), tenantID)
	if errors.Is(err, sqldb.ErrNoRows) {
		return Feed{}, ErrNotFound
	}
	return f, err
}

// lockFeed reads a feed that the transaction changes. It fails with [ErrNotFound].
func lockFeed(ctx context.Context, tx *sqldb.Tx, tenantID, feedID string) (Feed, error) {
	if !sqldb.IsText(feedID) {
		return Feed{}, ErrNotFound
	}
	if _, err := tx.Exec(ctx, `UPDATE threat_feeds SET version = version WHERE tenant_id = $1 AND id = $2`, tenantID, feedID); err != nil {
		return Feed{}, err
	}
	return selectFeed(ctx, tx, tenantID, feedID)
}

func scanFeed(row interface{ Scan(...any) error }, tenantID string) (Feed, error) {
	f := Feed{TenantID: tenantID}
	var refresh, entries, bad, listed, checked, failing, requested, chunks, created, updated int64
	var firstBad string
	err := row.Scan(&f.ID, (*string)(&f.Kind), (*string)(&f.Source), &f.Name, &f.URL, (*string)(&f.Mode), &f.Enabled, &refresh, &entries, &bad, &firstBad,
		&listed, &checked, &failing, &f.Failure, &requested, &f.version, &chunks, &f.digest, &f.etag, &f.lastModified, &created, &updated)
	if err != nil {
		return Feed{}, fmt.Errorf("read threat feed: %w", err)
	}
	for number := range strings.SplitSeq(firstBad, ",") {
		if n, err := strconv.Atoi(number); err == nil {
			f.FirstBad = append(f.FirstBad, n)
		}
	}
	f.RefreshS, f.Entries, f.BadLines, f.chunks = int(refresh), int(entries), int(bad), int(chunks)
	f.ListedAt, f.CheckedAt, f.FailingAt, f.requestedAt = sqldb.Instant(listed), sqldb.Instant(checked), sqldb.Instant(failing), sqldb.Instant(requested)
	f.CreatedAt, f.UpdatedAt = sqldb.Instant(created), sqldb.Instant(updated)
	return f, nil
}

// selectFeeds reads the feeds of a tenant, newest first.
func selectFeeds(ctx context.Context, q querier, tenantID string) (found []Feed, err error) {
	rows, err := q.Query(ctx, `SELECT `+columns+` FROM threat_feeds WHERE tenant_id = $1 ORDER BY id DESC`, tenantID)
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	for rows.Next() {
		f, err := scanFeed(rows, tenantID)
		if err != nil {
			return nil, err
		}
		found = append(found, f)
	}
	return found, rows.Err()
}

func insertList(b *sqldb.Batch, f Feed, chunks [][]byte) {
	for n, data := range chunks {
		b.Queue(`INSERT INTO threat_lists (tenant_id, feed_id, version, chunk, data) VALUES ($1, $2, $3, $4, $5)`, []any{f.TenantID, f.ID, f.version, int64(n), data}, nil)
	}
}

// deleteLists queues that the lists of a feed are deleted, except that of a version.
func deleteLists(b *sqldb.Batch, f Feed, except int64) {
	b.Queue(`DELETE FROM threat_lists WHERE tenant_id = $1 AND feed_id = $2 AND version <> $3`, []any{f.TenantID, f.ID, except}, nil)
}

// selectList reads the rows of the list of a feed; fewer than the feed has if it is another one now.
func selectList(ctx context.Context, q querier, f Feed) (chunks [][]byte, err error) {
	rows, err := q.Query(ctx, `SELECT data FROM threat_lists WHERE tenant_id = $1 AND feed_id = $2 AND version = $3 ORDER BY chunk`, f.TenantID, f.ID, f.version)
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	for rows.Next() {
		var data []byte
		if err := rows.Scan(&data); err != nil {
			return nil, err
		}
		chunks = append(chunks, data)
	}
	return chunks, rows.Err()
}
