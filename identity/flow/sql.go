package flow

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"time"

	"stonetown/internal/sqldb"
)

// querier is a [*sqldb.DB] or a [*sqldb.Tx].
type querier interface {
	Query(ctx context.Context, query string, args ...any) (*sqldb.Rows, error)
	QueryRow(ctx context.Context, query string, args ...any) *sqldb.Row
}

func upsertDraft(b *sqldb.Batch, tenantID string, d Draft) {
	b.Queue(`
		INSERT INTO sign_in_flow_drafts (tenant_id, revision, document, updated_at, updated_by_type, updated_by) VALUES ($1, $2, $3, $4, $5, $6)
		ON CONFLICT (tenant_id) DO UPDATE SET revision = excluded.revision, document = excluded.document, updated_at = excluded.updated_at,
			updated_by_type = excluded.updated_by_type, updated_by = excluded.updated_by`,
		[]any{tenantID, d.Revision, stored(d.Document), d.UpdatedAt.UnixMicro(), d.UpdatedBy.Type, d.UpdatedBy.ID}, nil)
}

// selectDraft reads the draft. It fails with [ErrNoDraft].
func selectDraft(ctx context.Context, q querier, tenantID string) (d Draft, err error) {
	var text string
	var updated int64
	err = q.QueryRow(ctx, `SELECT revision, document, updated_at, updated_by_type, updated_by FROM sign_in_flow_drafts WHERE tenant_id = $1`, tenantID).
		Scan(&d.Revision, &text, &updated, &d.UpdatedBy.Type, &d.UpdatedBy.ID)
	if errors.Is(err, sqldb.ErrNoRows) {
		return Draft{}, ErrNoDraft
	}
	if err == nil {
		err = json.Unmarshal([]byte(text), &d.Document)
	}
	if err != nil {
		return Draft{}, fmt.Errorf("read draft of sign-in flow: %w", err)
	}
	d.UpdatedAt = sqldb.Instant(updated)
	return d, nil
}

func insertVersion(b *sqldb.Batch, tenantID string, v Version) {
	b.Queue(`INSERT INTO sign_in_flow_versions (tenant_id, version, document, note, restored_from, published_at, published_by_type, published_by) VALUES ($1, $2, $3, $4, $5, $6, $7, $8)`,
		[]any{tenantID, int64(v.Number), stored(v.Document), v.Note, int64(v.RestoredFrom), v.PublishedAt.UnixMicro(), v.PublishedBy.Type, v.PublishedBy.ID}, nil)
}

const versionColumns = `version, document, note, restored_from, published_at, published_by_type, published_by`

func scanVersion(row interface{ Scan(...any) error }) (v Version, err error) {
	var text string
	var number, restored, published int64
	err = row.Scan(&number, &text, &v.Note, &restored, &published, &v.PublishedBy.Type, &v.PublishedBy.ID)
	if errors.Is(err, sqldb.ErrNoRows) {
		return Version{}, ErrVersionNotFound
	}
	if err == nil {
		err = json.Unmarshal([]byte(text), &v.Document)
	}
	if err != nil {
		return Version{}, fmt.Errorf("read version of sign-in flow: %w", err)
	}
	v.Number, v.RestoredFrom, v.PublishedAt = int(number), int(restored), sqldb.Instant(published)
	return v, nil
}

// selectVersion reads a version. It fails with [ErrVersionNotFound].
func selectVersion(ctx context.Context, q querier, tenantID string, number int) (Version, error) {
	return scanVersion(q.QueryRow(ctx, `SELECT `+versionColumns+` FROM sign_in_flow_versions WHERE tenant_id = $1 AND version = $2`, tenantID, int64(number)))
}

func selectVersions(ctx context.Context, q querier, tenantID string, before, limit int) (found []Version, err error) {
	query, args := `SELECT `+versionColumns+` FROM sign_in_flow_versions WHERE tenant_id = $1`, []any{tenantID, int64(limit)}
	if before != 0 {
		query += ` AND version < $3`
		args = append(args, int64(before))
	}
	rows, err := q.Query(ctx, query+` ORDER BY version DESC LIMIT $2`, args...)
	if err != nil {
		return nil, fmt.Errorf("list versions of sign-in flow: %w", err)
	}
	defer rows.Close()
	for rows.Next() {
		v, err := scanVersion(rows)
		if err != nil {
			return nil, err
		}
		found = append(found, v)
	}
	return found, rows.Err()
}

// sealedSecrets are the secrets of an action.
type sealedSecrets struct {
	current, previous []byte // empty: none
	previousExpires   time.Time
}

func upsertSecrets(b *sqldb.Batch, tenantID, action string, s sealedSecrets) {
	b.Queue(`
		INSERT INTO sign_in_flow_secrets (tenant_id, action, secret, previous_secret, previous_expires_at) VALUES ($1, $2, $3, $4, $5)
		ON CONFLICT (tenant_id, action) DO UPDATE SET secret = excluded.secret, previous_secret = excluded.previous_secret, previous_expires_at = excluded.previous_expires_at`,
		[]any{tenantID, action, s.current, s.previous, sqldb.Micros(s.previousExpires)}, nil)
}

func selectSecrets(ctx context.Context, q querier, tenantID, action string) (s sealedSecrets, err error) {
	var expires int64
	err = q.QueryRow(ctx, `SELECT secret, previous_secret, previous_expires_at FROM sign_in_flow_secrets WHERE tenant_id = $1 AND action = $2`, tenantID, action).
		Scan(&s.current, &s.previous, &expires)
	if errors.Is(err, sqldb.ErrNoRows) {
		return sealedSecrets{}, nil
	}
	if err != nil {
		return s, fmt.Errorf("read secret of sign-in action: %w", err)
	}
	s.previousExpires = sqldb.Instant(expires)
	return s, nil
}

// checkSecrets requires a secret of each action that is published, and deletes the secrets of actions
// that are not kept. It fails with [*SecretMissingError].
func checkSecrets(ctx context.Context, tx *sqldb.Tx, tenantID string, published, kept []Action) error {
	have, err := sqldb.Texts(tx.Query(ctx, `SELECT action FROM sign_in_flow_secrets WHERE tenant_id = $1`, tenantID))
	if err != nil {
		return err
	}
	for _, a := range published {
		if !slices.Contains(have, a.Name) {
			return &SecretMissingError{a.Name}
		}
	}
	var b sqldb.Batch
	for _, name := range have {
		if !slices.ContainsFunc(kept, func(a Action) bool { return a.Name == name }) {
			b.Queue(`DELETE FROM sign_in_flow_secrets WHERE tenant_id = $1 AND action = $2`, []any{tenantID, name}, nil)
		}
	}
	return tx.Send(ctx, &b)
}
