package identity

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"time"

	"stonetown/identity/factor"
	"stonetown/identity/password"
	"stonetown/identity/session"
	"stonetown/internal/sqldb"
)

// Settings are what a tenant decides about its users.
type Settings struct {
	PasswordPolicy password.Policy `json:"password_policy"`
	MFA            MFAPolicy       `json:"mfa_policy"`
	Session        SessionTimes    `json:"session"`
	// SignUp says whether people may create accounts of their own.
	SignUp SignUp `json:"sign_up"`
	// RequireVerifiedEmail: a pending user cannot sign in.
	RequireVerifiedEmail bool `json:"require_verified_email"`
}

// MFAPolicy says what second factors are for.
type MFAPolicy struct {
	Mode  MFAMode       `json:"mode"`
	Kinds []factor.Kind `json:"kinds"` // that can be added, sorted
}

// MFAMode says who needs a second factor.
type MFAMode string

// The modes of MFA.
const (
	MFAOff      MFAMode = "off"      // nobody is asked for one, and none can be added
	MFAOptional MFAMode = "optional" // who has one is asked for it
	MFARequired MFAMode = "required" // who has none adds one at sign-in
)

// SignUp says who creates accounts.
type SignUp string

// Who creates accounts.
const (
	SignUpOpen   SignUp = "open" // everybody their own
	SignUpClosed SignUp = "closed"
)

// SessionTimes say how long sessions last.
type SessionTimes struct {
	IdleS     int `json:"idle_s"`     // seconds, without being used
	AbsoluteS int `json:"absolute_s"` // seconds, in any case
}

// Lifetimes are the same as durations.
func (t SessionTimes) Lifetimes() session.Lifetimes {
	return session.Lifetimes{Idle: time.Duration(t.IdleS) * time.Second, Absolute: time.Duration(t.AbsoluteS) * time.Second}
}

// How far a tenant's settings may go, in seconds.
const (
	LeastSessionTime = 5 * 60
	MostSessionTime  = 365 * 24 * 60 * 60
)

// DefaultSettings hold for a tenant that decided nothing.
func DefaultSettings() Settings {
	return Settings{
		PasswordPolicy: password.Policy{MinLength: 8, MaxLength: 128},
		MFA:            MFAPolicy{MFAOptional, slices.Sorted(slices.Values(factor.Kinds))},
		Session:        SessionTimes{IdleS: 24 * 60 * 60, AbsoluteS: 30 * 24 * 60 * 60},
		SignUp:         SignUpOpen, RequireVerifiedEmail: true,
	}
}

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
	after.MFA.Kinds = slices.Clone(before.MFA.Kinds)
	if change(&after); reflect.DeepEqual(after, before) {
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
	s := DefaultSettings()
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
