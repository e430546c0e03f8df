package identity

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"stonetown/internal/sqldb"
)

// Settings are what a tenant decides about its users.
type Settings struct {
	PasswordPolicy Policy `json:"password_policy"`
}

// DefaultSettings hold for a tenant that decided nothing.
var DefaultSettings = Settings{PasswordPolicy: Policy{MinLength: 8, MaxLength: 128}}

// Settings reads a tenant's settings.
func (d *Directory) Settings(ctx context.Context, tenantID string) (Settings, error) {
	return selectSettings(ctx, d.db, tenantID)
}

// UpdateSettings changes a tenant's settings within a transaction; change gets them as
// they are and makes of them what they shall be.
func (d *Directory) UpdateSettings(ctx context.Context, tx *sqldb.Tx, tenantID string, change func(*Settings)) (before, after Settings, err error) {
	if before, err = selectSettings(ctx, tx, tenantID); err != nil {
		return before, after, err
	}
	after = before
	if change(&after); after == before {
		return before, after, nil
	}
	text, err := json.Marshal(after)
	if err == nil {
		_, err = tx.Exec(ctx, `
			INSERT INTO identity_settings (tenant_id, settings) VALUES ($1, $2)
			ON CONFLICT (tenant_id) DO UPDATE SET settings = excluded.settings`, tenantID, string(text))
	}
	if err != nil {
		return before, after, fmt.Errorf("update settings of users: %w", err)
	}
	return before, after, nil
}

func selectSettings(ctx context.Context, from reader, tenantID string) (Settings, error) {
	s := DefaultSettings
	var text string
	err := from.QueryRow(ctx, `SELECT settings FROM identity_settings WHERE tenant_id = $1`, tenantID).Scan(&text)
	if errors.Is(err, sqldb.ErrNoRows) {
		return s, nil
	}
	if err == nil {
		err = json.Unmarshal([]byte(text), &s)
	}
	if err != nil {
		return s, fmt.Errorf("read settings of users: %w", err)
	}
	return s, nil
}
