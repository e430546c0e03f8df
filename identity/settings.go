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

// Settings are the settings of a tenant about its users.
type Settings struct {
	PasswordPolicy password.Policy `json:"password_policy"`
	MFA            MFAPolicy       `json:"mfa_policy"`
	Session        SessionTimes    `json:"session"`
	// SignUp determines whether users can create accounts.
	SignUp SignUp `json:"sign_up"`
	// RequireVerifiedEmail keeps pending users from signing in.
	RequireVerifiedEmail bool `json:"require_verified_email"`
	// SignInFlow is the number of the active version of the sign-in flow; 0: there is none. Package
	// flow changes it.
	SignInFlow int `json:"sign_in_flow,omitzero"`

	// ThreatRevision increases with each change of the threat feeds; 0: there were none. It is read
	// with the settings and not changed with them.
	ThreatRevision int64 `json:"-"`
}

// MFAPolicy is the policy of second factors.
type MFAPolicy struct {
	Mode  MFAMode       `json:"mode"`
	Kinds []factor.Kind `json:"kinds"` // the kinds that users can add, sorted
}

// MFAMode determines which users need a second factor.
type MFAMode string

// The modes of MFA.
const (
	MFAOff      MFAMode = "off"      // no factors are required, and none can be added
	MFAOptional MFAMode = "optional" // users with a factor must prove it
	MFARequired MFAMode = "required" // users without a factor must add one at the sign-in
)

// SignUp is the mode of sign-up.
type SignUp string

// The modes of sign-up.
const (
	SignUpOpen   SignUp = "open"   // users
	SignUpClosed SignUp = "closed" // administrators only
)

// SessionTimes are the lifetimes of sessions.
type SessionTimes struct {
	IdleS     int `json:"idle_s"`     // seconds without use
	AbsoluteS int `json:"absolute_s"` // seconds
}

// Lifetimes returns the lifetimes as durations.
func (t SessionTimes) Lifetimes() session.Lifetimes {
	return session.Lifetimes{Idle: time.Duration(t.IdleS) * time.Second, Absolute: time.Duration(t.AbsoluteS) * time.Second}
}

// The bounds of the lifetimes that a tenant can choose, in seconds.
const (
	LeastSessionTime = 5 * 60
	MostSessionTime  = 365 * 24 * 60 * 60
)

// DefaultSettings are the settings of a tenant without settings of its own.
func DefaultSettings() Settings {
	return Settings{
		PasswordPolicy: password.Policy{MinLength: 8, MaxLength: 128},
		MFA:            MFAPolicy{MFAOptional, slices.Sorted(slices.Values(factor.Kinds))},
		Session:        SessionTimes{IdleS: 24 * 60 * 60, AbsoluteS: 30 * 24 * 60 * 60},
		SignUp:         SignUpOpen, RequireVerifiedEmail: true,
	}
}

// Settings returns the settings of a tenant.
func (d *Directory) Settings(ctx context.Context, tenantID string) (Settings, error) {
	return selectSettings(ctx, d.db, tenantID)
}

// UpdateSettings changes the settings of a tenant within a transaction. change modifies the current
// settings.
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

// ThreatFeedsChanged queues that the threat feeds of a tenant have changed: see
// [Settings.ThreatRevision]. Settings that are not stored are those of [DefaultSettings].
func (d *Directory) ThreatFeedsChanged(b *sqldb.Batch, tenantID string) {
	b.Queue(`
		INSERT INTO identity_settings (tenant_id, settings, threat_revision) VALUES ($1, '{}', 1)
		ON CONFLICT (tenant_id) DO UPDATE SET threat_revision = identity_settings.threat_revision + 1`, []any{tenantID}, nil)
}

func selectSettings(ctx context.Context, from reader, tenantID string) (Settings, error) {
	s := DefaultSettings()
	var text string
	err := from.QueryRow(ctx, `SELECT settings, threat_revision FROM identity_settings WHERE tenant_id = $1`, tenantID).Scan(&text, &s.ThreatRevision)
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
