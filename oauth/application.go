package oauth

import (
	"context"
	"fmt"
	"net/url"
	"slices"
	"time"

	"stonetown/internal/id"
	"stonetown/internal/sqldb"
)

// ApplicationType is the kind of program an application is. It is immutable.
type ApplicationType string

// The types of application. Those that run where a secret can be kept have one.
const (
	SPA     ApplicationType = "spa"
	Native  ApplicationType = "native"
	Machine ApplicationType = "m2m"
	Server  ApplicationType = "server"
)

func (t ApplicationType) valid() bool {
	return slices.Contains([]ApplicationType{SPA, Native, Machine, Server}, t)
}

// confidential applications have a secret (RFC 6749 §2.1).
func (t ApplicationType) confidential() bool { return t == Machine || t == Server }

// ApplicationState says whether an application gets new tokens.
type ApplicationState string

// The states of an application.
const (
	Enabled  ApplicationState = "enabled"
	Disabled ApplicationState = "disabled"
)

// Application is an OAuth client of a tenant.
type Application struct {
	ID             string
	TenantID       string
	ClientID       string // its public name; immutable and never reused
	Name           string
	Type           ApplicationType
	State          ApplicationState
	AllowedScopes  []string
	AllowedOrigins []string      // web origins that may read responses
	Audience       string        // the aud of its tokens; empty: the tenant's base URL
	AccessTokenTTL time.Duration // whole seconds
	SigningAlg     Alg           // of its access tokens
	CreatedAt      time.Time     // UTC

	secrets secrets
}

// NewApplication is what creating an application takes.
type NewApplication struct {
	Name           string
	Type           ApplicationType
	AllowedScopes  []string
	AllowedOrigins []string // scheme://host[:port], https but for localhost; at most 50
	Audience       string
	AccessTokenTTL time.Duration // 1 minute to 24 hours; 0: 1 hour
	SigningAlg     Alg           // empty: ES256
}

const (
	defaultAccessTokenTTL = time.Hour
	minAccessTokenTTL     = time.Minute
	maxAccessTokenTTL     = 24 * time.Hour
)

// CreateApplication adds an enabled application within the caller's
// transaction. The secret is empty for types that have none; it cannot be had
// again. Refusals wrap [ErrApplicationInvalid].
func (s *Service) CreateApplication(ctx context.Context, tx *sqldb.Tx, tenantID string, n NewApplication) (app Application, secret string, err error) {
	if n.AccessTokenTTL == 0 {
		n.AccessTokenTTL = defaultAccessTokenTTL
	}
	if n.SigningAlg == "" {
		n.SigningAlg = ES256
	}
	if err := n.validate(); err != nil {
		return Application{}, "", fmt.Errorf("create application: %w: %w", ErrApplicationInvalid, err)
	}
	app = Application{
		ID: id.New(id.Application), TenantID: tenantID, ClientID: id.New(id.Client), Name: n.Name, Type: n.Type,
		State: Enabled, AllowedScopes: slices.Clone(n.AllowedScopes), AllowedOrigins: slices.Clone(n.AllowedOrigins), Audience: n.Audience,
		AccessTokenTTL: n.AccessTokenTTL, SigningAlg: n.SigningAlg,
		CreatedAt: s.clock().UTC().Truncate(time.Microsecond),
	}
	if n.Type.confidential() {
		secret = newSecret()
		app.secrets.current = hashSecret(secret)
	}
	if err := insertApplication(ctx, tx, app); err != nil {
		return Application{}, "", fmt.Errorf("create application: %w", err)
	}
	return app, secret, nil
}

func (n NewApplication) validate() error {
	if n.Name == "" {
		return fmt.Errorf("name is empty")
	}
	if !n.Type.valid() {
		return fmt.Errorf("unknown type %q", n.Type)
	}
	for _, scope := range n.AllowedScopes {
		if !isBuiltin(scope) {
			return fmt.Errorf("scope %q is not registered", scope)
		}
	}
	if err := validateOrigins(n.AllowedOrigins); err != nil {
		return err
	}
	if u, err := url.Parse(n.Audience); n.Audience != "" && (err != nil || !u.IsAbs() || u.Fragment != "") {
		return fmt.Errorf("audience is not an absolute URL without fragment")
	}
	if n.AccessTokenTTL < minAccessTokenTTL || n.AccessTokenTTL > maxAccessTokenTTL || n.AccessTokenTTL%time.Second != 0 {
		return fmt.Errorf("access token lifetime is not between %v and %v in whole seconds", minAccessTokenTTL, maxAccessTokenTTL)
	}
	if !n.SigningAlg.valid() {
		return fmt.Errorf("unknown signing algorithm %q", n.SigningAlg)
	}
	return nil
}

// ApplicationByClientID finds an application, enabled or not. It fails with
// [ErrApplicationNotFound].
func (s *Service) ApplicationByClientID(ctx context.Context, tenantID, clientID string) (Application, error) {
	return selectApplication(ctx, s.db, tenantID, clientID)
}

// SetApplicationState enables or disables an application. It fails with
// [ErrApplicationNotFound].
func (s *Service) SetApplicationState(ctx context.Context, tx *sqldb.Tx, tenantID, clientID string, state ApplicationState) error {
	if err := updateApplicationState(ctx, tx, tenantID, clientID, state); err != nil {
		return fmt.Errorf("set state of application %s: %w", clientID, err)
	}
	return nil
}

// RotateSecret gives an application a new secret. The one it had stays valid
// for previousTTL; one that was rotated out before dies now. It fails with
// [ErrApplicationNotFound] or [ErrNotApplicable].
func (s *Service) RotateSecret(ctx context.Context, tx *sqldb.Tx, tenantID, clientID string, previousTTL time.Duration) (secret string, previousExpiresAt time.Time, err error) {
	defer func() {
		if err != nil {
			err = fmt.Errorf("rotate secret of application %s: %w", clientID, err)
		}
	}()
	app, err := selectApplication(ctx, tx, tenantID, clientID)
	if err != nil {
		return "", time.Time{}, err
	}
	if !app.Type.confidential() {
		return "", time.Time{}, ErrNotApplicable
	}
	secret = newSecret()
	next := secrets{
		current: hashSecret(secret), previous: app.secrets.current,
		previousExpiresAt: s.clock().UTC().Truncate(time.Microsecond).Add(previousTTL),
	}
	if err := updateSecrets(ctx, tx, tenantID, clientID, next); err != nil {
		return "", time.Time{}, err
	}
	return secret, next.previousExpiresAt, nil
}
