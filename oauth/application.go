package oauth

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"time"

	"stonetown/engine"
	"stonetown/internal/eventlog"
	"stonetown/internal/id"
	"stonetown/internal/sqldb"
	"stonetown/schema"
	"stonetown/tuplestore"
)

// ApplicationType is the kind of program an application is. It is immutable.
type ApplicationType string

// The types of application. Those that run where a secret can be kept have one.
const (
	SPA     ApplicationType = "spa"
	Native  ApplicationType = "native"
	Machine ApplicationType = "m2m"
	Server  ApplicationType = "server"
	SAML    ApplicationType = "saml" // is told by SAML who signs in, and gets no tokens
)

// ApplicationTypes are all of them.
var ApplicationTypes = []ApplicationType{SPA, Native, Machine, Server, SAML}

// Confidential applications have a secret (RFC 6749 §2.1).
func (t ApplicationType) Confidential() bool { return t == Machine || t == Server }

// hasUsers reports whether applications of the type get tokens of users.
func (t ApplicationType) hasUsers() bool { return t != Machine && t != SAML }

// ApplicationState says whether an application gets new tokens.
type ApplicationState string

// The states of an application.
const (
	Enabled  ApplicationState = "enabled"
	Disabled ApplicationState = "disabled"
)

// Application is an OAuth client of a tenant.
type Application struct {
	ID       string
	TenantID string
	ClientID string // its public name; immutable and never reused
	Type     ApplicationType
	State    ApplicationState

	Name            string
	Description     string
	RedirectURIs    []string // where people may be sent back to, compared byte for byte
	AllowedScopes   []string
	AllowedOrigins  []string      // web origins that may read responses: scheme://host[:port]
	Audience        string        // the aud of its tokens; empty: the tenant's base URL
	AccessTokenTTL  time.Duration // whole seconds; 0, until it is stored: as the tenant has it
	RefreshTokenTTL time.Duration // the same
	SigningAlg      Alg           // of its access tokens; empty, for a new one: ES256
	Tags            []string
	TokenExchange   TokenExchange   // zero, for a new one: its type's default
	Options                         // zero, for a new one: its type's default
	ServiceProvider ServiceProvider // of the type saml

	CreatedAt       time.Time // UTC, as are all
	UpdatedAt       time.Time
	ChangedBy       string    // who made the last change; empty: the product
	SecretRotatedAt time.Time // zero: never
	LastUsedAt      time.Time // when it last got a token, to within an hour; zero: never

	secrets secrets
}

const (
	// DefaultAccessTokenTTL and DefaultRefreshTokenTTL are how long tokens are good unless the
	// tenant, or the application, is set up otherwise.
	DefaultAccessTokenTTL  = time.Hour
	DefaultRefreshTokenTTL = 30 * 24 * time.Hour
)

// CreateApplication adds an enabled application, set up as a says, within the caller's
// transaction. The secret is empty where there is none; it cannot be had
// again. The scopes that the application holds become relations by [Service.HoldScopes].
// An application that may exchange tokens is made by [Service.Register]. Refusals wrap
// [ErrApplicationInvalid].
func (s *Service) CreateApplication(ctx context.Context, tx *sqldb.Tx, tenantID string, a Application) (app Application, secret string, err error) {
	if app, secret, err = s.newApplication(ctx, tx, tenantID, a); err != nil {
		return Application{}, "", err
	}
	if len(app.exchanges()) > 0 {
		return Application{}, "", errors.New("create application: one that may exchange tokens takes a transaction of the engine")
	}
	if err := s.insert(ctx, tx, app); err != nil {
		return Application{}, "", err
	}
	return app, secret, nil
}

// newApplication is a as it is when it is new, with its secret.
func (s *Service) newApplication(ctx context.Context, q querier, tenantID string, a Application) (app Application, secret string, err error) {
	if err := a.setLifetimes(ctx, q, tenantID); err != nil {
		return a, "", err
	}
	if a.SigningAlg == "" {
		a.SigningAlg = ES256
	}
	if reflect.DeepEqual(a.TokenExchange, TokenExchange{}) {
		a.TokenExchange = a.Type.DefaultTokenExchange()
	}
	if reflect.DeepEqual(a.Options, Options{}) {
		a.Options = a.Type.DefaultOptions()
	}
	a.ID, a.TenantID, a.ClientID, a.State = id.New(id.Application), tenantID, id.New(id.Client), Enabled
	a.CreatedAt = moment(s.clock)
	a.UpdatedAt = a.CreatedAt
	if a.HasSecret() {
		secret = newSecret()
		a.secrets.current = hashSecret(secret)
	}
	return a, secret, nil
}

// setLifetimes lets tokens of which it was not said be good as long as the tenant has it.
func (a *Application) setLifetimes(ctx context.Context, q querier, tenantID string) error {
	if a.AccessTokenTTL != 0 && a.RefreshTokenTTL != 0 {
		return nil
	}
	settings, err := selectSettings(ctx, q, tenantID)
	if err != nil {
		return err
	}
	a.AccessTokenTTL = cmp.Or(a.AccessTokenTTL, time.Duration(settings.Tokens.AccessS)*time.Second)
	a.RefreshTokenTTL = cmp.Or(a.RefreshTokenTTL, time.Duration(settings.Tokens.RefreshS)*time.Second)
	return nil
}

func (s *Service) insert(ctx context.Context, tx *sqldb.Tx, a Application) error {
	err := a.validate(ctx, tx, s.outbound)
	if err == nil {
		err = insertApplication(ctx, tx, a)
	}
	if err != nil {
		return fmt.Errorf("create application: %w", err)
	}
	return nil
}

// commit runs a transaction, with the relations of an application that change in it.
func (s *Service) commit(ctx context.Context, tenantID, by string, ops []engine.WriteOp, do func(ctx context.Context, tx *sqldb.Tx) error) error {
	if len(ops) == 0 {
		return s.db.Tx(ctx, func(tx *sqldb.Tx) error { return do(ctx, tx) })
	}
	_, err := s.relations.Write(ctx, tenantID, engine.WriteRequest{Origin: engine.Origin{Actor: by, Also: do}, Ops: ops})
	return err
}

// Register is [Service.CreateApplication] in a transaction of its own, with the relations of
// the application and its event. It also fails with [*authority.DeniedError] for an
// application that would hold more than the caller.
func (s *Service) Register(ctx context.Context, tenantID string, a Application) (app Application, secret string, err error) {
	if app, secret, err = s.newApplication(ctx, s.db, tenantID, a); err != nil {
		return Application{}, "", err
	}
	if err := app.TokenExchange.validate(app.Type); err != nil { // before they become relations
		return Application{}, "", fmt.Errorf("create application: %w", err)
	}
	if err := s.authority.MayGive(ctx, tenantID, app.holds()); err != nil {
		return Application{}, "", fmt.Errorf("create application: %w", err)
	}
	err = s.commit(ctx, tenantID, a.ChangedBy, relationsChanged(Application{}, app), func(ctx context.Context, tx *sqldb.Tx) error {
		if err := s.insert(ctx, tx, app); err != nil {
			return err
		}
		var b sqldb.Batch
		eventlog.Append(&b, tenantID, applicationCreated(ctx, app))
		return tx.Send(ctx, &b)
	})
	if err != nil {
		return Application{}, "", err
	}
	return app, secret, nil
}

// ApplicationByClientID finds an application, enabled or not. It fails with
// [ErrApplicationNotFound].
func (s *Service) ApplicationByClientID(ctx context.Context, tenantID, clientID string) (Application, error) {
	return selectApplication(ctx, s.db, tenantID, clientID)
}

// Application finds an application by its id. It fails with [ErrApplicationNotFound].
func (s *Service) Application(ctx context.Context, tenantID, applicationID string) (Application, error) {
	return selectApplicationByID(ctx, s.db, tenantID, applicationID)
}

// Settle waits, at most some tenths of a second, until on every process the tokens of
// applications that were deleted before are refused.
func (s *Service) Settle(ctx context.Context) { s.revoked.settle(ctx) }

// errSetUpMeanwhile: an application was changed concurrently.
var errSetUpMeanwhile = errors.New("the application was changed concurrently")

// UpdateApplication changes an application: change gets it as it is and makes of it what
// it shall be, and may run more than once; ids, type and creation stay. Without a difference
// nothing is written. It fails with [ErrApplicationNotFound], or with
// [*authority.DeniedError] for a change by which the caller gives more than it holds; refusals
// wrap [ErrApplicationInvalid].
func (s *Service) UpdateApplication(ctx context.Context, tenantID, applicationID, by string, change func(*Application)) (after Application, err error) {
	for {
		after, err = s.updateApplication(ctx, tenantID, applicationID, by, change)
		if !errors.Is(err, errSetUpMeanwhile) {
			break
		}
	}
	if err != nil {
		return Application{}, fmt.Errorf("update application: %w", err)
	}
	return after, nil
}

func (s *Service) updateApplication(ctx context.Context, tenantID, applicationID, by string, change func(*Application)) (after Application, err error) {
	seen, err := s.Application(ctx, tenantID, applicationID)
	if err != nil {
		return after, err
	}
	after = seen
	change(&after)
	if err := after.TokenExchange.validate(after.Type); err != nil {
		return after, err
	}
	if err := s.authority.MayGive(ctx, tenantID, given(seen, after)); err != nil {
		return after, err
	}
	err = s.commit(ctx, tenantID, by, relationsChanged(seen, after), func(ctx context.Context, tx *sqldb.Tx) error {
		before, err := selectApplicationByID(ctx, tx, tenantID, applicationID)
		if err != nil {
			return err
		}
		if !sameRights(before, seen) {
			return errSetUpMeanwhile
		}
		after = before
		change(&after)
		if err := after.setLifetimes(ctx, tx, tenantID); err != nil || reflect.DeepEqual(before, after) {
			return err
		}
		if err := after.validate(ctx, tx, s.outbound); err != nil {
			return err
		}
		if !after.HasSecret() { // nor will it when it is set up to have one, until that is rotated
			after.secrets = secrets{}
		}
		after.UpdatedAt, after.ChangedBy = moment(s.clock), by
		if err := updateApplication(ctx, tx, after); err != nil {
			return err
		}
		var b sqldb.Batch
		eventlog.Append(&b, tenantID, applicationChanged(ctx, before, after)...)
		return tx.Send(ctx, &b)
	})
	return after, err
}

// DeleteApplication removes an application for good, with every relation that names it; its
// client id is never used again. It fails with [ErrApplicationNotFound], and with
// [*InUseError] while users are signed in to it.
func (s *Service) DeleteApplication(ctx context.Context, tenantID, applicationID, by string) error {
	a, err := s.Application(ctx, tenantID, applicationID)
	if err == nil {
		err = s.refuseInUse(ctx, a)
	}
	if err != nil {
		return fmt.Errorf("delete application: %w", err)
	}
	return s.deleteApplication(ctx, a, by)
}

// deleteApplication does so whether or not users are signed in to it: what they have let it
// do ends.
func (s *Service) deleteApplication(ctx context.Context, a Application, by string) error {
	_, err := s.relations.Forget(ctx, a.TenantID, tuplestore.Object{Type: schema.ApplicationType, ID: a.ClientID}, engine.Origin{Actor: by, Also: func(ctx context.Context, tx *sqldb.Tx) error {
		a, err := selectApplicationByID(ctx, tx, a.TenantID, a.ID)
		if err != nil {
			return err
		}
		now := moment(s.clock).UnixMicro()
		var b sqldb.Batch
		s.revoked.set(&b, revocation{a.TenantID, revokedClient, a.ClientID}, moment(s.clock).Add(maxAccessTokenTTL))
		b.Queue(`DELETE FROM applications WHERE tenant_id = $1 AND client_id = $2`, []any{a.TenantID, a.ClientID}, nil)
		s.forgetClient(&b, a.TenantID, a.ClientID)
		b.Queue(`INSERT INTO retired_clients (tenant_id, client_id, retired_at) VALUES ($1, $2, $3)`, []any{a.TenantID, a.ClientID, now}, nil)
		eventlog.Append(&b, a.TenantID, applicationDeleted(ctx, a))
		return tx.Send(ctx, &b)
	}})
	if err != nil {
		return fmt.Errorf("delete application: %w", err)
	}
	return nil
}

// Rotated is what rotating a secret leads to.
type Rotated struct {
	Secret            string // the new one, which cannot be had again
	PreviousExpiresAt time.Time
}

// RotateSecret gives an application a new secret. The one it had stays valid
// for previousTTL, or without one as the tenant's settings say; one that was rotated out
// before dies now. It fails with [ErrApplicationNotFound] or [ErrNotApplicable], or with
// [*authority.DeniedError] for an application that holds more than the caller.
func (s *Service) RotateSecret(ctx context.Context, tenantID, applicationID, by string, previousTTL *time.Duration) (r Rotated, err error) {
	for {
		seen, err := s.Application(ctx, tenantID, applicationID)
		if err == nil {
			err = s.authority.MayGive(ctx, tenantID, seen.holds())
		}
		if err == nil {
			r, err = s.rotateSecret(ctx, seen, by, previousTTL)
		}
		if errors.Is(err, errSetUpMeanwhile) {
			continue
		}
		if err != nil {
			return Rotated{}, fmt.Errorf("rotate secret: %w", err)
		}
		return r, nil
	}
}

// rotateSecret does so, if the application still holds no more than it was seen to.
func (s *Service) rotateSecret(ctx context.Context, seen Application, by string, previousTTL *time.Duration) (r Rotated, err error) {
	tenantID, applicationID := seen.TenantID, seen.ID
	err = s.db.Tx(ctx, func(tx *sqldb.Tx) error {
		a, err := selectApplicationByID(ctx, tx, tenantID, applicationID)
		if err != nil {
			return err
		}
		if !a.HasSecret() {
			return ErrNotApplicable
		}
		if !sameRights(a, seen) {
			return errSetUpMeanwhile
		}
		settings, err := selectSettings(ctx, tx, tenantID)
		if err != nil {
			return err
		}
		ttl := time.Duration(settings.PreviousSecretTTLS) * time.Second
		if previousTTL != nil {
			ttl = *previousTTL
		}
		now := moment(s.clock)
		r = Rotated{newSecret(), now.Add(ttl)}
		a.secrets = secrets{current: hashSecret(r.Secret), previous: a.secrets.current, previousExpiresAt: r.PreviousExpiresAt}
		a.SecretRotatedAt, a.UpdatedAt, a.ChangedBy = now, now, by
		if err := updateApplication(ctx, tx, a); err != nil {
			return err
		}
		var b sqldb.Batch
		eventlog.Append(&b, tenantID, secretRotated(ctx, a))
		return tx.Send(ctx, &b)
	})
	return r, err
}

// usedEvery is how exact LastUsedAt is.
const usedEvery = time.Hour

// used notes that an application got a token.
func (s *Service) used(ctx context.Context, a Application) error {
	now := moment(s.clock)
	if now.Sub(a.LastUsedAt) < usedEvery {
		return nil
	}
	_, err := s.db.Exec(ctx, `UPDATE applications SET last_used_at = $3 WHERE tenant_id = $1 AND client_id = $2 AND last_used_at < $3`,
		a.TenantID, a.ClientID, now.UnixMicro())
	return err
}

// ApplicationFilter says which applications a list is of; the zero value is all.
type ApplicationFilter struct {
	Type  ApplicationType
	State ApplicationState
	// Query are words, all of which are in name, description or client id.
	Query string
}

// ApplicationPosition is where a page of a list ended.
type ApplicationPosition struct {
	CreatedAt time.Time
	ID        string
}

// Applications lists applications, newest first, behind a position (nil: from the
// start), at most limit.
func (s *Service) Applications(ctx context.Context, tenantID string, f ApplicationFilter, after *ApplicationPosition, limit int) ([]Application, error) {
	found, err := selectApplications(ctx, s.db, tenantID, f, after, limit)
	if err != nil {
		return nil, fmt.Errorf("list applications: %w", err)
	}
	return found, nil
}

// GrantTypes are the ways in which an application can get tokens.
func (a Application) GrantTypes() []string {
	types := a.Type.grantsOfUsers()
	if a.actsForItself() {
		types = append(types, GrantClientCredentials)
	}
	return types
}

// grantsOfUsers are the ways in which applications of the type can get tokens of users.
func (t ApplicationType) grantsOfUsers() (types []string) {
	if t.hasUsers() {
		types = append(types, GrantAuthorizationCode, GrantRefreshToken)
	}
	if t.hasDevices() {
		types = append(types, GrantDeviceCode)
	}
	return types
}

// actsForItself reports whether an application gets tokens without a user. One that a client
// has registered does not, since nobody has decided what it would be entitled to.
func (a Application) actsForItself() bool { return a.Type.Confidential() && a.Registration == nil }

// HasSecret reports whether an application proves who it is by a secret.
func (a Application) HasSecret() bool { return a.Type.Confidential() && a.AuthMethod != PrivateKeyJWT }

func notFound(err error) bool { return errors.Is(err, ErrApplicationNotFound) }

func (t ApplicationType) valid() bool { return slices.Contains(ApplicationTypes, t) }
