package mails

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"stonetown/internal/sqldb"
)

// selectTemplate reads a template; the zero value if there is none.
func selectTemplate(ctx context.Context, q querier, tenantID, name, tag string) (t Template, err error) {
	var text string
	err = q.QueryRow(ctx, `SELECT template FROM mail_templates WHERE tenant_id = $1 AND mail = $2 AND language = $3`, tenantID, name, tag).Scan(&text)
	if errors.Is(err, sqldb.ErrNoRows) {
		return t, nil
	}
	if err == nil {
		err = json.Unmarshal([]byte(text), &t)
	}
	if err != nil {
		return t, fmt.Errorf("read mail template: %w", err)
	}
	return t, nil
}

// writeTemplate writes a template, or deletes it if it is empty.
func writeTemplate(ctx context.Context, tx *sqldb.Tx, tenantID, name, tag string, t Template, now time.Time) error {
	if t == (Template{}) {
		_, err := tx.Exec(ctx, `DELETE FROM mail_templates WHERE tenant_id = $1 AND mail = $2 AND language = $3`, tenantID, name, tag)
		return err
	}
	text, err := json.Marshal(t)
	if err == nil {
		_, err = tx.Exec(ctx, `
			INSERT INTO mail_templates (tenant_id, mail, language, template, updated_at) VALUES ($1, $2, $3, $4, $5)
			ON CONFLICT (tenant_id, mail, language) DO UPDATE SET template = excluded.template, updated_at = excluded.updated_at`,
			tenantID, name, tag, string(text), now.UnixMicro())
	}
	return err
}
