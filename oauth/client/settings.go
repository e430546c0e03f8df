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

// Settings are the settings of a tenant for its applications and their tokens. Times are in
// seconds.
type Settings struct {
	// DCRMode decides about registration at [protocol.RegisterPath].
	DCRMode DCRMode `json:"dcr_mode"`
	// DCRRequirePKCE is RequirePKCE of applications that confidential clients register from now on.
	// Without PKCE such a client has to send a nonce (RFC 9700 §2.1.1).
	DCRRequirePKCE bool `json:"dcr_require_pkce"`
	// ClientIDDocuments decides about client ids that are URLs of documents, and
	// ClientIDDocumentHosts are the permitted hosts with [DocumentsHosts].
	ClientIDDocuments     DocumentMode `json:"client_id_documents"`
	ClientIDDocumentHosts []string     `json:"client_id_document_hosts,omitempty"`
	// RequireState refuses authorization requests without state. PKCE protects from forged
	// responses as well (RFC 9700 §2.1).
	RequireState bool `json:"require_state"`
	// RefreshReuseLeewayS is how long a refresh token that was replaced still leads to its
	// successor, for clients that did not receive the response or renew it twice at once; 0: never.
	RefreshReuseLeewayS int `json:"refresh_reuse_leeway_s"`
	// RefreshFamilyMaxS bounds how long refresh tokens follow from one authorization.
	RefreshFamilyMaxS int `json:"refresh_family_max_s"`
	// PreviousSecretTTLS is how long a rotated secret stays valid by default.
	PreviousSecretTTLS int `json:"previous_secret_ttl_s"`
	// ClientAssertionMaxS bounds the lifetime of the assertions by which clients authenticate.
	ClientAssertionMaxS int `json:"client_assertion_max_s"`
	// Tokens are the lifetimes of tokens of applications that set none.
	Tokens Lifetimes `json:"token_defaults"`
	// TrustedOrigins are web origins that may read responses of the API, besides those of
	// applications.
	TrustedOrigins []string `json:"trusted_origins,omitempty"`
}

// Lifetimes are the lifetimes of tokens.
type Lifetimes struct {
	AccessS  int `json:"access_token_ttl_s"`
	RefreshS int `json:"refresh_token_ttl_s"`
}

// DCRMode decides about dynamic client registration (RFC 7591 §3).
type DCRMode string

// The modes of registration.
const (
	DCROff                DCRMode = "off"
	DCRInitialAccessToken DCRMode = "initial_access_token" // callers with an access token of that scope
	DCROpen               DCRMode = "open"                 // everyone, see [FromAnyone]
)

// The bounds of settings.
const (
	MostRefreshReuseLeeway  = time.Minute
	LeastRefreshFamily      = minRefreshTokenTTL
	MostRefreshFamily       = maxRefreshTokenTTL
	MostPreviousSecretTTL   = 7 * 24 * time.Hour
	LeastClientAssertion    = time.Minute
	MostClientAssertion     = time.Hour
	LeastAccessTokenTTL     = minAccessTokenTTL
	MostAccessTokenTTL      = maxAccessTokenTTL
	LeastRefreshTokenTTL    = minRefreshTokenTTL
	MostRefreshTokenTTL     = maxRefreshTokenTTL
	defaultRefreshFamily    = 90 * 24 * time.Hour
	defaultPreviousLifetime = 72 * time.Hour
)

// DefaultSettings returns the settings of a tenant that has set none.
func DefaultSettings() Settings {
	return Settings{
		DCRMode: DCROff, DCRRequirePKCE: true, ClientIDDocuments: DocumentsOff, RequireState: true,
		RefreshFamilyMaxS: int(defaultRefreshFamily.Seconds()), PreviousSecretTTLS: int(defaultPreviousLifetime.Seconds()),
		ClientAssertionMaxS: int(MostClientAssertion.Seconds()),
		Tokens:              Lifetimes{int(DefaultAccessTokenTTL.Seconds()), int(DefaultRefreshTokenTTL.Seconds())},
	}
}

// Settings reads the settings of a tenant. They are not cached: few requests need them, and
// they are read by primary key.
func (s *Registry) Settings(ctx context.Context, tenantID string) (Settings, error) {
	return SelectSettings(ctx, s.db, tenantID)
}

// UpdateSettings changes the settings of a tenant within a transaction. change is applied to
// the present settings.
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

// SelectSettings reads the settings of a tenant.
func SelectSettings(ctx context.Context, from storage.Querier, tenantID string) (Settings, error) {
	return scanSettings(from.QueryRow(ctx, selectSettings, tenantID))
}

// QueueSettings queues the read of the settings of a tenant. When the batch was sent, result
// returns them.
func QueueSettings(b *sqldb.Batch, tenantID string) (result func() (Settings, error)) {
	var settings Settings
	var err error
	b.Queue(selectSettings, []any{tenantID}, func(rows *sqldb.Rows) error {
		settings, err = scanSettings(rows.First())
		return nil
	})
	return func() (Settings, error) { return settings, err }
}

const selectSettings = `SELECT settings FROM oauth_settings WHERE tenant_id = $1`

func scanSettings(row *sqldb.Row) (Settings, error) {
	settings := DefaultSettings()
	var text string
	err := row.Scan(&text)
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
