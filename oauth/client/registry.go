package client

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"reflect"
	"time"

	"stonetown/engine"
	"stonetown/engine/authority"
	"stonetown/internal/eventlog"
	"stonetown/internal/id"
	"stonetown/internal/outbound"
	"stonetown/internal/sqldb"
	"stonetown/oauth/internal/storage"
	"stonetown/oauth/keys"
	"stonetown/oauth/revocation"
	"stonetown/schema"
	"stonetown/tuplestore"
)

// Relations is the part of [engine.Engine] that writes the relations of applications.
type Relations interface {
	Write(ctx context.Context, tenantID string, req engine.WriteRequest) (engine.WriteResponse, error)
	Forget(ctx context.Context, tenantID string, subject tuplestore.Object, origin engine.Origin) (token string, err error)
}

// Access is the stored access of users to applications.
type Access interface {
	// Sessions counts the sessions in which users are signed in to an application: all of
	// them, or enough to know that there are some.
	Sessions(ctx context.Context, a Application, all bool) (InUseError, error)
	// ForgetClient queues that the access of users to a deleted application is revoked and
	// forgotten.
	ForgetClient(b *sqldb.Batch, tenantID, clientID string)
}

// Config is the configuration of a [Registry]. All fields are required.
type Config struct {
	DB        *sqldb.DB
	Relations Relations
	Authority *authority.Checker // compares the rights that an application gets with those of the caller
	Access    Access
	Keys      *keys.Service // has the keys that sign the tokens of applications
	Revoked   *revocation.Feed
	Outbound  *outbound.Client // decides which URLs of applications can be fetched
	Clock     func() time.Time
	// LocalRedirects accepts redirect URIs with http and a host under .localhost. For
	// development only: not every resolver keeps such names on the machine (RFC 6761 §6.3).
	LocalRedirects bool
	// Certificates states that the server gets the certificates of clients (RFC 8705).
	Certificates bool
}

// Registry stores the applications of all tenants. It is safe for concurrent use.
type Registry struct {
	db        *sqldb.DB
	relations Relations
	authority *authority.Checker
	access    Access
	keys      *keys.Service
	revoked   *revocation.Feed
	allowed   allowed
	clock     func() time.Time
	origins   *originCache
	documents *documents
}

// NewRegistry returns the registry of the applications in c.DB.
func NewRegistry(c Config) *Registry {
	return &Registry{c.DB, c.Relations, c.Authority, c.Access, c.Keys, c.Revoked, allowed{c.Outbound, c.LocalRedirects, c.Certificates}, c.Clock, newOriginCache(), newDocuments()}
}

// CreateIn creates an enabled application in the caller's transaction, without a caller whose
// rights would be compared, without relations and without an event. [Registry.HoldScopes]
// writes the relations of its scopes later. The secret, empty for an application without one,
// is not stored and cannot be read again. An application that may exchange tokens is created by [Registry.Create]. Refusals
// wrap [ErrInvalid].
func (r *Registry) CreateIn(ctx context.Context, tx *sqldb.Tx, tenantID string, a Application) (app Application, secret string, err error) {
	if app, secret, err = prepare(ctx, tx, tenantID, a, r.clock()); err != nil {
		return Application{}, "", err
	}
	if len(app.exchanges())+len(app.impersonators()) > 0 {
		return Application{}, "", errors.New("create application: one with token exchange or workloads takes a transaction of the engine")
	}
	if err := r.insert(ctx, tx, app); err != nil {
		return Application{}, "", err
	}
	return app, secret, nil
}

// prepare completes a new application with its ids, its defaults and its secret.
func prepare(ctx context.Context, q storage.Querier, tenantID string, a Application, now time.Time) (app Application, secret string, err error) {
	if err := a.setLifetimes(ctx, q, tenantID); err != nil {
		return a, "", err
	}
	if a.SigningAlg == "" {
		a.SigningAlg = keys.ES256
	}
	if reflect.DeepEqual(a.TokenExchange, TokenExchange{}) {
		a.TokenExchange = a.Type.DefaultTokenExchange()
	}
	if reflect.DeepEqual(a.Options, Options{}) {
		a.Options = a.Type.DefaultOptions()
	}
	a.ID, a.ClientID = cmp.Or(a.ID, id.New(id.Application)), cmp.Or(a.ClientID, id.New(id.Client))
	a.TenantID, a.State = tenantID, Enabled
	a.CreatedAt = now.UTC().Truncate(time.Microsecond)
	a.UpdatedAt = a.CreatedAt
	if a.HasSecret() {
		secret = newSecret()
		a.secrets.current = hashSecret(secret)
	}
	return a, secret, nil
}

// setLifetimes sets the lifetimes of tokens to the tenant's defaults where the application has
// none.
func (a *Application) setLifetimes(ctx context.Context, q storage.Querier, tenantID string) error {
	if a.AccessTokenTTL != 0 && a.RefreshTokenTTL != 0 {
		return nil
	}
	settings, err := SelectSettings(ctx, q, tenantID)
	if err != nil {
		return err
	}
	a.AccessTokenTTL = cmp.Or(a.AccessTokenTTL, time.Duration(settings.Tokens.AccessS)*time.Second)
	a.RefreshTokenTTL = cmp.Or(a.RefreshTokenTTL, time.Duration(settings.Tokens.RefreshS)*time.Second)
	return nil
}

// insert validates and stores a new application.
func (r *Registry) insert(ctx context.Context, tx *sqldb.Tx, a Application) error {
	err := a.validate(ctx, tx, r.allowed)
	if err == nil {
		err = admitUnvetted(ctx, tx, a)
	}
	if err == nil {
		err = insertRow(ctx, tx, a)
	}
	if err == nil {
		err = r.keys.Require(ctx, tx, a.TenantID, a.signingAlgs()...)
	}
	if err != nil {
		return fmt.Errorf("create application: %w", err)
	}
	return nil
}

// commit runs a transaction of a change of an application, which writes the relations of an application as well, and the
// events that do returns.
func (s *Registry) commit(ctx context.Context, tenantID, by string, ops []engine.WriteOp, do func(ctx context.Context, tx *sqldb.Tx) ([]eventlog.Event, error)) error {
	defer s.origins.changed(tenantID)
	if len(ops) == 0 {
		return s.db.Tx(ctx, func(tx *sqldb.Tx) error {
			events, err := do(ctx, tx)
			if err != nil || len(events) == 0 {
				return err
			}
			var b sqldb.Batch
			eventlog.Append(&b, tenantID, events...)
			return tx.Send(ctx, &b)
		})
	}
	var events []eventlog.Event // of the last attempt
	origin := engine.Origin{Actor: by}
	origin.Also = func(ctx context.Context, tx *sqldb.Tx) (err error) {
		events, err = do(ctx, tx)
		return err
	}
	origin.Attach = func(r tuplestore.Result, b *sqldb.Batch) {
		eventlog.AppendAt(b, tenantID, int64(r.Revision), events...)
	}
	_, err := s.relations.Write(ctx, tenantID, engine.WriteRequest{Origin: origin, Ops: ops})
	return err
}

// Create creates an enabled application, with its relations and its event, and returns its
// secret as [Registry.CreateIn] does. It also fails with [*authority.DeniedError] for an application
// that would hold more than the caller.
func (s *Registry) Create(ctx context.Context, tenantID string, a Application) (app Application, secret string, err error) {
	if app, secret, err = prepare(ctx, s.db, tenantID, a, s.clock()); err != nil {
		return Application{}, "", err
	}
	if err := app.validateRelations(); err != nil {
		return Application{}, "", fmt.Errorf("create application: %w", err)
	}
	if err := s.authority.MayGive(ctx, tenantID, app.holds()); err != nil {
		return Application{}, "", fmt.Errorf("create application: %w", err)
	}
	err = s.commit(ctx, tenantID, a.ChangedBy, relationsChanged(Application{}, app), func(ctx context.Context, tx *sqldb.Tx) ([]eventlog.Event, error) {
		return []eventlog.Event{applicationCreated(ctx, app)}, s.insert(ctx, tx, app)
	})
	if err != nil {
		return Application{}, "", err
	}
	s.keys.Wake()
	return app, secret, nil
}

// ByClientID finds an application, enabled or not. It fails with [ErrNotFound].
func (s *Registry) ByClientID(ctx context.Context, tenantID, clientID string) (Application, error) {
	return Select(ctx, s.db, tenantID, clientID)
}

// ByID finds an application by its id. It fails with [ErrNotFound].
func (s *Registry) ByID(ctx context.Context, tenantID, applicationID string) (Application, error) {
	return SelectByID(ctx, s.db, tenantID, applicationID)
}

// Settle waits until every process refuses the tokens of applications that were deleted
// before, a few tenths of a second.
func (s *Registry) Settle(ctx context.Context) { s.revoked.Settle(ctx) }

// errChanged: another request changed the application concurrently.
var errChanged = errors.New("the application was changed concurrently")

// Update changes an application. change is applied to the present application and may be
// called more than once; ids, type and creation stay. If it changes nothing, nothing is
// written. Update fails with [ErrNotFound], and with [*authority.DeniedError] for a change
// that gives more than the caller holds; refusals wrap [ErrInvalid].
func (s *Registry) Update(ctx context.Context, tenantID, applicationID, by string, change func(*Application)) (after Application, err error) {
	for {
		after, err = s.tryUpdate(ctx, tenantID, applicationID, by, change)
		if !errors.Is(err, errChanged) {
			break
		}
	}
	if err != nil {
		return Application{}, fmt.Errorf("update application: %w", err)
	}
	s.keys.Wake()
	return after, nil
}

func (s *Registry) tryUpdate(ctx context.Context, tenantID, applicationID, by string, change func(*Application)) (after Application, err error) {
	seen, err := s.ByID(ctx, tenantID, applicationID)
	if err != nil {
		return after, err
	}
	after = seen
	change(&after)
	if err := after.validateRelations(); err != nil {
		return after, err
	}
	if err := s.authority.MayGive(ctx, tenantID, given(seen, after)); err != nil {
		return after, err
	}
	err = s.commit(ctx, tenantID, by, relationsChanged(seen, after), func(ctx context.Context, tx *sqldb.Tx) ([]eventlog.Event, error) {
		before, err := SelectByID(ctx, tx, tenantID, applicationID)
		if err != nil {
			return nil, err
		}
		if !sameRights(before, seen) {
			return nil, errChanged
		}
		after = before
		change(&after)
		if err := after.setLifetimes(ctx, tx, tenantID); err != nil || reflect.DeepEqual(before, after) {
			return nil, err
		}
		if err := after.validate(ctx, tx, s.allowed); err != nil {
			return nil, err
		}
		if !after.HasSecret() { // it gets a new one only by a rotation
			after.secrets = secrets{}
		}
		after.UpdatedAt, after.ChangedBy = storage.Now(s.clock), by
		if err := updateRow(ctx, tx, after); err != nil {
			return nil, err
		}
		if err := s.keys.Require(ctx, tx, tenantID, after.signingAlgs()...); err != nil {
			return nil, err
		}
		return applicationChanged(ctx, before, after), nil
	})
	return after, err
}

// Delete deletes an application, with every relation that names it. Its client id is never
// used again. It fails with [ErrNotFound], and with [*InUseError] while users are signed in to
// it.
func (s *Registry) Delete(ctx context.Context, tenantID, applicationID, by string) error {
	a, err := s.ByID(ctx, tenantID, applicationID)
	if err == nil {
		err = s.refuseInUse(ctx, a)
	}
	if err != nil {
		return fmt.Errorf("delete application: %w", err)
	}
	return s.remove(ctx, a, by, true)
}

// remove deletes an application even if users are signed in to it, and revokes its grants. retire
// states that its client id must not be used again.
func (s *Registry) remove(ctx context.Context, a Application, by string, retire bool) error {
	defer s.origins.changed(a.TenantID)
	var deleted Application // as the last attempt read it
	origin := engine.Origin{Actor: by}
	origin.Also = func(ctx context.Context, tx *sqldb.Tx) (err error) {
		if deleted, err = SelectByID(ctx, tx, a.TenantID, a.ID); err != nil {
			return err
		}
		now := storage.Now(s.clock).UnixMicro()
		var b sqldb.Batch
		if retire {
			s.revoked.Set(&b, revocation.Item{TenantID: a.TenantID, Kind: revocation.Client, ID: a.ClientID}, storage.Now(s.clock).Add(maxAccessTokenTTL))
		}
		b.Queue(`DELETE FROM applications WHERE tenant_id = $1 AND client_id = $2`, []any{a.TenantID, a.ClientID}, nil)
		s.access.ForgetClient(&b, a.TenantID, a.ClientID)
		if retire {
			b.Queue(`INSERT INTO retired_clients (tenant_id, client_id, retired_at) VALUES ($1, $2, $3)`, []any{a.TenantID, a.ClientID, now}, nil)
		}
		return tx.Send(ctx, &b)
	}
	origin.Attach = func(r tuplestore.Result, b *sqldb.Batch) {
		eventlog.AppendAt(b, a.TenantID, int64(r.Revision), applicationDeleted(ctx, deleted))
	}
	_, err := s.relations.Forget(ctx, a.TenantID, tuplestore.Object{Type: schema.ApplicationType, ID: a.ClientID}, origin)
	if err != nil {
		return fmt.Errorf("delete application: %w", err)
	}
	return nil
}

// Rotated is the result of a rotation of a secret.
type Rotated struct {
	Secret            string // the new secret, which cannot be read again
	PreviousExpiresAt time.Time
}

// RotateSecret replaces the secret of an application. The present one stays valid for
// previousTTL, or if that is nil, as long as the tenant's settings state; one that was
// replaced before ends. It fails with [ErrNotFound] or [ErrNotApplicable], or with
// [*authority.DeniedError] for an application that holds more than the caller.
func (s *Registry) RotateSecret(ctx context.Context, tenantID, applicationID, by string, previousTTL *time.Duration) (Rotated, error) {
	return s.RotateSecretWith(ctx, tenantID, applicationID, by, previousTTL, func(*sqldb.Batch) {})
}

// RotateSecretWith is RotateSecret with statements that commit with the rotation.
func (s *Registry) RotateSecretWith(ctx context.Context, tenantID, applicationID, by string, previousTTL *time.Duration, attach func(b *sqldb.Batch)) (r Rotated, err error) {
	for {
		seen, err := s.ByID(ctx, tenantID, applicationID)
		if err == nil {
			err = s.authority.MayGive(ctx, tenantID, seen.holds())
		}
		if err == nil {
			r, err = s.tryRotateSecret(ctx, seen, by, previousTTL, attach)
		}
		if errors.Is(err, errChanged) {
			continue
		}
		if err != nil {
			return Rotated{}, fmt.Errorf("rotate secret: %w", err)
		}
		return r, nil
	}
}

// tryRotateSecret fails with errChanged if the rights of the application have changed since it
// was read.
func (s *Registry) tryRotateSecret(ctx context.Context, seen Application, by string, previousTTL *time.Duration, attach func(b *sqldb.Batch)) (r Rotated, err error) {
	tenantID, applicationID := seen.TenantID, seen.ID
	err = s.db.Tx(ctx, func(tx *sqldb.Tx) error {
		a, err := SelectByID(ctx, tx, tenantID, applicationID)
		if err != nil {
			return err
		}
		if !a.HasSecret() {
			return ErrNotApplicable
		}
		if !sameRights(a, seen) {
			return errChanged
		}
		settings, err := SelectSettings(ctx, tx, tenantID)
		if err != nil {
			return err
		}
		ttl := time.Duration(settings.PreviousSecretTTLS) * time.Second
		if previousTTL != nil {
			ttl = *previousTTL
		}
		now := storage.Now(s.clock)
		r = Rotated{newSecret(), now.Add(ttl)}
		a.secrets = secrets{current: hashSecret(r.Secret), previous: a.secrets.current, previousExpiresAt: r.PreviousExpiresAt}
		a.SecretRotatedAt, a.UpdatedAt, a.ChangedBy = now, now, by
		if err := updateRow(ctx, tx, a); err != nil {
			return err
		}
		var b sqldb.Batch
		eventlog.Append(&b, tenantID, secretRotated(ctx, a))
		attach(&b)
		return tx.Send(ctx, &b)
	})
	return r, err
}

// usedEvery is the precision of LastUsedAt.
const usedEvery = time.Hour

// NoteUse stores that an application got a token.
func (s *Registry) NoteUse(ctx context.Context, a Application) error {
	now := storage.Now(s.clock)
	if now.Sub(a.LastUsedAt) < usedEvery {
		return nil
	}
	_, err := s.db.Exec(ctx, `UPDATE applications SET last_used_at = $3 WHERE tenant_id = $1 AND client_id = $2 AND last_used_at < $3`,
		a.TenantID, a.ClientID, now.UnixMicro())
	return err
}

// Filter selects the applications of a list; the zero value selects all.
type Filter struct {
	Type  Type
	State State
	// Query are words that must all occur in name, description or client id.
	Query string
}

// Position is the end of a page of a list.
type Position struct {
	CreatedAt time.Time
	ID        string
}

// List lists at most limit applications, newest first, after a position; nil: from the start.
func (s *Registry) List(ctx context.Context, tenantID string, f Filter, after *Position, limit int) ([]Application, error) {
	found, err := selectPage(ctx, s.db, tenantID, f, after, limit)
	if err != nil {
		return nil, fmt.Errorf("list applications: %w", err)
	}
	return found, nil
}

// refuseInUse fails with [*InUseError] if users are signed in to an application.
func (s *Registry) refuseInUse(ctx context.Context, a Application) error {
	used, err := s.access.Sessions(ctx, a, true)
	if err == nil && used.Sessions > 0 {
		return &used
	}
	return err
}
