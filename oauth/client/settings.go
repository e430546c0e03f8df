package client

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"time"

	"stonetown/internal/sqldb"
	"stonetown/oauth/internal/storage"
)

// Settings are what a tenant decides about its applications and their tokens. Times are in
// seconds.
type Settings struct {
	// DCRMode says who may register applications at [RegisterPath].
	DCRMode DCRMode `json:"dcr_mode"`
	// RequireState refuses authorization requests without state. Where they all use PKCE,
	// that protects from forged answers as well (RFC 9700 §2.1).
	RequireState bool `json:"require_state"`
	// RefreshReuseLeewayS is for how long a refresh token that was replaced still leads to
	// another one, for clients that lost the answer; 0: not at all.
	RefreshReuseLeewayS int `json:"refresh_reuse_leeway_s"`
	// RefreshFamilyMaxS is for how long refresh tokens can follow from one authorization.
	RefreshFamilyMaxS int `json:"refresh_family_max_s"`
	// PreviousSecretTTLS is how long a rotated secret stays valid unless that is said.
	PreviousSecretTTLS int `json:"previous_secret_ttl_s"`
	// Tokens says how long tokens are good of applications that do not say it.
	Tokens Lifetimes `json:"token_defaults"`
	// TrustedOrigins are web origins that may read responses of the API, besides those of
	// applications.
	TrustedOrigins []string `json:"trusted_origins,omitempty"`
}

// Lifetimes are how long tokens are good.
type Lifetimes struct {
	AccessS  int `json:"access_token_ttl_s"`
	RefreshS int `json:"refresh_token_ttl_s"`
}

// DCRMode says who may register applications (RFC 7591 §3).
type DCRMode string

// The modes of registration.
const (
	DCROff                DCRMode = "off"
	DCRInitialAccessToken DCRMode = "initial_access_token" // who has a token for that
)

// How far a tenant's settings may go.
const (
	MostRefreshReuseLeeway  = time.Minute
	LeastRefreshFamily      = minRefreshTokenTTL
	MostRefreshFamily       = maxRefreshTokenTTL
	MostPreviousSecretTTL   = 7 * 24 * time.Hour
	LeastAccessTokenTTL     = minAccessTokenTTL
	MostAccessTokenTTL      = maxAccessTokenTTL
	LeastRefreshTokenTTL    = minRefreshTokenTTL
	MostRefreshTokenTTL     = maxRefreshTokenTTL
	defaultRefreshFamily    = 90 * 24 * time.Hour
	defaultPreviousLifetime = 72 * time.Hour
)

// DefaultSettings hold for a tenant that decided nothing.
func DefaultSettings() Settings {
	return Settings{
		DCRMode: DCROff, RequireState: true,
		RefreshFamilyMaxS: int(defaultRefreshFamily.Seconds()), PreviousSecretTTLS: int(defaultPreviousLifetime.Seconds()),
		Tokens: Lifetimes{int(DefaultAccessTokenTTL.Seconds()), int(DefaultRefreshTokenTTL.Seconds())},
	}
}

// Settings reads a tenant's settings. It is not cached: what asks does so once in a while,
// and by primary key.
func (s *Registry) Settings(ctx context.Context, tenantID string) (Settings, error) {
	return SelectSettings(ctx, s.db, tenantID)
}

// UpdateSettings changes a tenant's settings within a transaction; change gets them as they
// are and makes of them what they shall be.
func (s *Registry) UpdateSettings(ctx context.Context, tx *sqldb.Tx, tenantID string, change func(*Settings)) (before, after Settings, err error) {
	if before, err = SelectSettings(ctx, tx, tenantID); err != nil {
		return before, after, err
	}
	after = before
	if change(&after); reflect.DeepEqual(after, before) {
		return before, after, nil
	}
	if _, err := tx.Exec(ctx, `
		INSERT INTO oauth_settings (tenant_id, settings) VALUES ($1, $2)
		ON CONFLICT (tenant_id) DO UPDATE SET settings = excluded.settings`, tenantID, storage.JSON(after)); err != nil {
		return before, after, fmt.Errorf("update settings of applications: %w", err)
	}
	return before, after, nil
}

func SelectSettings(ctx context.Context, from storage.Querier, tenantID string) (Settings, error) {
	settings := DefaultSettings()
	var text string
	err := from.QueryRow(ctx, `SELECT settings FROM oauth_settings WHERE tenant_id = $1`, tenantID).Scan(&text)
	if errors.Is(err, sqldb.ErrNoRows) {
		return settings, nil
	}
	if err == nil {
		err = storage.ReadJSON(text, &settings)
	}
	if err != nil {
		return settings, fmt.Errorf("read settings of applications: %w", err)
	}
	return settings, nil
}
