package flow

import (
	"context"
	"embed"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"time"

	lru "github.com/hashicorp/golang-lru/v2"
	"golang.org/x/sync/singleflight"

	"stonetown/engine/authority"
	"stonetown/identity"
	"stonetown/internal/eventlog"
	"stonetown/internal/fair"
	"stonetown/internal/id"
	"stonetown/internal/seal"
	"stonetown/internal/sqldb"
)

//go:embed migrations
var migrations embed.FS

// Migrations create the package's tables.
func Migrations() sqldb.Migrations { return sqldb.EmbeddedMigrations("flow", migrations) }

var (
	// ErrNoDraft is returned if the tenant has no draft.
	ErrNoDraft = errors.New("there is no draft of the sign-in flow")
	// ErrChanged is returned if the draft is not the expected one.
	ErrChanged = errors.New("the draft of the sign-in flow has another revision")
	// ErrVersionNotFound is returned for a version that does not exist, or is no longer kept.
	ErrVersionNotFound = errors.New("version of the sign-in flow not found")
	// ErrActionNotFound is returned for an action of neither the draft nor the active version.
	ErrActionNotFound = errors.New("neither the draft nor the active version of the sign-in flow has this action")
)

// SecretMissingError is returned for publishing a flow with an action that has no signing secret.
type SecretMissingError struct{ Action string }

func (e *SecretMissingError) Error() string {
	return fmt.Sprintf("the action %s has no signing secret; create one first", e.Action)
}

const (
	// MaxVersions is the number of versions that are kept.
	MaxVersions = 100
	// DefaultPreviousTTL and MaxPreviousTTL are the times for which the previous secret signs
	// requests as well, after a rotation.
	DefaultPreviousTTL = 24 * time.Hour
	MaxPreviousTTL     = 7 * 24 * time.Hour

	// cachedFlows bounds the compiled flows in memory, of which a tenant has one.
	cachedFlows = 256
)

// Users is the part of [identity.Directory] that flows use.
type Users interface {
	Settings(ctx context.Context, tenantID string) (identity.Settings, error)
	UpdateSettings(ctx context.Context, tx *sqldb.Tx, tenantID string, change func(*identity.Settings)) (before, after identity.Settings, err error)
}

// Authority is the part of [authority.Checker] that flows use.
type Authority interface {
	MayGive(ctx context.Context, tenantID string, scopes []string) error
}

var _ Authority = (*authority.Checker)(nil)

// Config contains the dependencies of a registry. All fields but Clock and CallTime are required.
type Config struct {
	DB        *sqldb.DB
	Seal      *seal.Key
	Users     Users
	Authority Authority
	Outbound  Outbound
	Signer    Signer
	// MayClaim reports whether an action can add a claim with a name.
	MayClaim func(name string) bool
	// CallTime bounds the request of an action. Default: [CallTime].
	CallTime time.Duration
	// Clock returns the current time. Default: time.Now.
	Clock func() time.Time
}

// Registry stores the flows of tenants and runs them. It is safe for concurrent use.
type Registry struct {
	db        *sqldb.DB
	seal      *seal.Key
	users     Users
	authority Authority
	outbound  Outbound
	signer    Signer
	mayClaim  func(string) bool
	callTime  time.Duration
	clock     func() time.Time
	gate      *fair.Gate
	recorder  *eventlog.Recorder
	compiled  *lru.Cache[string, compiledVersion] // by tenant
	compiling singleflight.Group
}

// compiledVersion is a version, which never changes, in its compiled form.
type compiledVersion struct {
	number int
	*compiled
}

// New returns a registry.
func New(c Config) (*Registry, error) {
	if c.DB == nil || c.Seal == nil || c.Users == nil || c.Authority == nil || c.Outbound == nil || c.Signer == nil || c.MayClaim == nil {
		return nil, errors.New("flow: Config.DB, Seal, Users, Authority, Outbound, Signer and MayClaim are required")
	}
	if c.Clock == nil {
		c.Clock = time.Now
	}
	if c.CallTime == 0 {
		c.CallTime = CallTime
	}
	cache, err := lru.New[string, compiledVersion](cachedFlows)
	if err != nil {
		return nil, fmt.Errorf("flow: %w", err)
	}
	return &Registry{
		db: c.DB, seal: c.Seal, users: c.Users, authority: c.Authority, outbound: c.Outbound, signer: c.Signer, mayClaim: c.MayClaim,
		callTime: c.CallTime, clock: c.Clock, gate: newGate(), recorder: eventlog.NewRecorder(c.DB), compiled: cache,
	}, nil
}

func (r *Registry) now() time.Time { return r.clock().UTC().Truncate(time.Microsecond) }

// Active returns the active version. Its number is 0 if none was published.
func (r *Registry) Active(ctx context.Context, tenantID string) (Version, error) {
	settings, err := r.users.Settings(ctx, tenantID)
	if err != nil || settings.SignInFlow == 0 {
		return Version{}, err
	}
	return selectVersion(ctx, r.db, tenantID, settings.SignInFlow)
}

// Draft returns the draft. It fails with [ErrNoDraft].
func (r *Registry) Draft(ctx context.Context, tenantID string) (Draft, error) {
	return selectDraft(ctx, r.db, tenantID)
}

// SaveDraft replaces the draft, or creates it. Unless expected is nil, the present draft must have that
// revision; an empty one expects that there is no draft. It fails with [*ValidationError] or
// [ErrChanged].
func (r *Registry) SaveDraft(ctx context.Context, tenantID string, d Document, expected *string) (saved Draft, err error) {
	d = d.normal()
	if err := validate(d, r.outbound.CheckURL); err != nil {
		return Draft{}, err
	}
	saved = Draft{Document: d, Revision: id.New("rev"), UpdatedAt: r.now(), UpdatedBy: eventlog.OriginOf(ctx).Actor}
	return saved, r.change(ctx, "save draft of sign-in flow", tenantID, func(tx *sqldb.Tx) error {
		if err := expect(ctx, tx, tenantID, expected); err != nil {
			return err
		}
		var b sqldb.Batch
		upsertDraft(&b, tenantID, saved)
		return tx.Send(ctx, &b)
	})
}

// DeleteDraft deletes the draft. It fails with [ErrNoDraft].
func (r *Registry) DeleteDraft(ctx context.Context, tenantID string) error {
	n, err := r.db.Exec(ctx, `DELETE FROM sign_in_flow_drafts WHERE tenant_id = $1`, tenantID)
	if err == nil && n == 0 {
		err = ErrNoDraft
	}
	return err
}

// expect compares the revision of the draft with the expected one.
func expect(ctx context.Context, tx *sqldb.Tx, tenantID string, expected *string) error {
	if expected == nil {
		return nil
	}
	present, err := selectDraft(ctx, tx, tenantID)
	if errors.Is(err, ErrNoDraft) {
		err = nil
	}
	if err == nil && present.Revision != *expected {
		err = ErrChanged
	}
	return err
}

// Publish makes the draft the active version, and deletes the draft. Unless expected is nil, the draft
// must have that revision. The caller must hold the rights that the actions of the flow have. It fails
// with [ErrNoDraft], [ErrChanged], [*ValidationError], [*SecretMissingError] or
// [*authority.DeniedError].
func (r *Registry) Publish(ctx context.Context, tenantID, note string, expected *string) (Version, error) {
	draft, err := r.Draft(ctx, tenantID)
	if err != nil {
		return Version{}, err
	}
	if expected != nil && draft.Revision != *expected {
		return Version{}, ErrChanged
	}
	return r.publish(ctx, tenantID, Version{Document: draft.Document, Note: note}, func(ctx context.Context, tx *sqldb.Tx) error {
		if err := expect(ctx, tx, tenantID, &draft.Revision); err != nil {
			return err
		}
		_, err := tx.Exec(ctx, `DELETE FROM sign_in_flow_drafts WHERE tenant_id = $1`, tenantID)
		return err
	})
}

// RollBack publishes an earlier version again, as a new one. The draft stays as it is. It fails with
// [ErrVersionNotFound], or as [Registry.Publish] does.
func (r *Registry) RollBack(ctx context.Context, tenantID string, number int, note string) (Version, error) {
	earlier, err := r.Version(ctx, tenantID, number)
	if err != nil {
		return Version{}, err
	}
	return r.publish(ctx, tenantID, Version{Document: earlier.Document, Note: note, RestoredFrom: number}, func(context.Context, *sqldb.Tx) error { return nil })
}

// publish stores a version and makes it the active one. also runs first in the transaction.
func (r *Registry) publish(ctx context.Context, tenantID string, v Version, also func(context.Context, *sqldb.Tx) error) (Version, error) {
	if err := validate(v.Document, r.outbound.CheckURL); err != nil {
		return Version{}, err
	}
	if err := r.authority.MayGive(ctx, tenantID, v.rights()); err != nil {
		return Version{}, err
	}
	v.PublishedAt, v.PublishedBy = r.now(), eventlog.OriginOf(ctx).Actor
	err := r.change(ctx, "publish sign-in flow", tenantID, func(tx *sqldb.Tx) error {
		if err := also(ctx, tx); err != nil {
			return err
		}
		earlier, err := selectVersions(ctx, tx, tenantID, 0, MaxVersions-1)
		if err != nil {
			return err
		}
		draft, err := selectDraft(ctx, tx, tenantID)
		if err != nil && !errors.Is(err, ErrNoDraft) {
			return err
		}
		// A version can only be rolled back to while its actions have their secrets.
		kept := slices.Concat(v.Actions, draft.Actions)
		v.Number = 1
		for i, e := range earlier {
			if kept = append(kept, e.Actions...); i == 0 {
				v.Number = e.Number + 1
			}
		}
		if err := checkSecrets(ctx, tx, tenantID, v.Actions, kept); err != nil {
			return err
		}
		before, _, err := r.users.UpdateSettings(ctx, tx, tenantID, func(s *identity.Settings) { s.SignInFlow = v.Number })
		if err != nil {
			return err
		}
		var b sqldb.Batch
		insertVersion(&b, tenantID, v)
		b.Queue(`DELETE FROM sign_in_flow_versions WHERE tenant_id = $1 AND version <= $2`, []any{tenantID, int64(v.Number - MaxVersions)}, nil)
		eventlog.Append(&b, tenantID, published(ctx, v, before.SignInFlow))
		return tx.Send(ctx, &b)
	})
	return v, err
}

// rights returns the scopes that a caller must hold to publish a document: the services of its actions
// get the users, and can add to the tokens of applications.
func (d Document) rights() (scopes []string) {
	if len(d.Actions) > 0 {
		scopes = append(scopes, "users:read")
	}
	if slices.ContainsFunc(d.Actions, func(a Action) bool { return slices.Contains(a.Effects, EffectAddClaims) }) {
		scopes = append(scopes, "applications:write")
	}
	return scopes
}

// change runs a transaction.
func (r *Registry) change(ctx context.Context, what, tenantID string, do func(tx *sqldb.Tx) error) error {
	if err := r.db.Tx(ctx, do); err != nil {
		return fmt.Errorf("%s: %w", what, err)
	}
	return nil
}

// Versions lists versions without their documents, newest first: at most limit, and those before a
// number unless that is 0.
func (r *Registry) Versions(ctx context.Context, tenantID string, before, limit int) ([]Version, error) {
	return selectVersions(ctx, r.db, tenantID, before, limit)
}

// Version returns a version. It fails with [ErrVersionNotFound].
func (r *Registry) Version(ctx context.Context, tenantID string, number int) (Version, error) {
	return selectVersion(ctx, r.db, tenantID, number)
}

// RotateSecret gives an action of the draft or the active version a signing secret, or a new one. The
// previous secret signs requests as well for previousTTL. It fails with [ErrActionNotFound].
func (r *Registry) RotateSecret(ctx context.Context, tenantID, action string, previousTTL time.Duration) (secret string, previousExpires time.Time, err error) {
	active, err := r.Active(ctx, tenantID)
	if err != nil {
		return "", time.Time{}, err
	}
	draft, err := r.Draft(ctx, tenantID)
	if err != nil && !errors.Is(err, ErrNoDraft) {
		return "", time.Time{}, err
	}
	if !slices.ContainsFunc(slices.Concat(active.Actions, draft.Actions), func(a Action) bool { return a.Name == action }) {
		return "", time.Time{}, ErrActionNotFound
	}
	secret = r.signer.NewSecret()
	now := r.now()
	return secret, previousExpires, r.change(ctx, "rotate secret of sign-in action", tenantID, func(tx *sqldb.Tx) error {
		have, err := selectSecrets(ctx, tx, tenantID, action)
		if err != nil {
			return err
		}
		next := sealedSecrets{current: r.seal.Seal(tenantID, sealedID(action), []byte(secret)), previous: []byte{}}
		previousExpires = time.Time{}
		if len(have.current) > 0 && previousTTL > 0 {
			previousExpires = now.Add(previousTTL)
			next.previous, next.previousExpires = have.current, previousExpires
		}
		var b sqldb.Batch
		upsertSecrets(&b, tenantID, action, next)
		eventlog.Append(&b, tenantID, secretRotated(ctx, action))
		return tx.Send(ctx, &b)
	})
}

// sealedID is the id under which the secrets of an action are sealed.
func sealedID(action string) string { return "sign-in action " + action }

// secrets returns the secrets that sign requests now. It fails with [*failure].
func (r *Registry) secrets(ctx context.Context, tenantID, action string) (current, previous string, err error) {
	have, err := selectSecrets(ctx, r.db, tenantID, action)
	if err != nil {
		return "", "", err
	}
	if len(have.current) == 0 {
		return "", "", &failure{Reason: SecretMissing}
	}
	opened, err := r.seal.Open(tenantID, sealedID(action), have.current)
	if err == nil && len(have.previous) > 0 && r.now().Before(have.previousExpires) {
		var earlier []byte
		earlier, err = r.seal.Open(tenantID, sealedID(action), have.previous)
		previous = string(earlier)
	}
	if err != nil {
		return "", "", fmt.Errorf("open secret of sign-in action %s: %w", action, err)
	}
	return string(opened), previous, nil
}

// version returns the compiled form of a version.
func (r *Registry) version(ctx context.Context, tenantID string, number int) (*compiled, error) {
	if c, ok := r.compiled.Get(tenantID); ok && c.number == number {
		return c.compiled, nil
	}
	// Sign-ins at the same time share the work, which the end of one of them must not cancel.
	c, err, _ := r.compiling.Do(fmt.Sprint(tenantID, " ", number), func() (any, error) {
		v, err := selectVersion(context.WithoutCancel(ctx), r.db, tenantID, number)
		if err != nil {
			return nil, err
		}
		c, err := compile(v.Document)
		if err != nil {
			return nil, err
		}
		r.compiled.Add(tenantID, compiledVersion{number, c})
		return c, nil
	})
	if err != nil {
		return nil, err
	}
	return c.(*compiled), nil
}

// Run runs a point of a version, and records denials and the failures of actions. kept is the state of
// an earlier run of the same sign-in; nil: it is the first. It fails with [*DeniedError].
func (r *Registry) Run(ctx context.Context, tenantID string, number int, p Point, in Input, kept *State) (Outcome, error) {
	c, err := r.version(ctx, tenantID, number)
	if err != nil {
		return Outcome{}, fmt.Errorf("read sign-in flow: %w", err)
	}
	o, err := c.run(ctx, p, number, in, kept, r.caller(tenantID, p, in))
	if err != nil {
		return Outcome{}, fmt.Errorf("run sign-in flow: %w", err)
	}
	if events := stepEvents(ctx, number, p, in.User, o.Steps); len(events) > 0 {
		if err := r.recorder.Record(ctx, tenantID, events...); err != nil {
			return Outcome{}, err
		}
	}
	if o.denied {
		return Outcome{}, &DeniedError{o.message}
	}
	return o, nil
}

func (r *Registry) caller(tenantID string, p Point, in Input) caller {
	return func(ctx context.Context, s Step, a Action) (Result, error) { return r.call(ctx, tenantID, p, s, a, in) }
}

// Preview runs a point of a document without effects on users, now unless in has a time. With calls, the services of its actions
// are called, with the member test; the caller must hold the rights to publish the document then. It
// fails with [*authority.DeniedError].
func (r *Registry) Preview(ctx context.Context, tenantID string, d Document, p Point, in Input, calls bool) (Outcome, error) {
	c, err := compile(d)
	if err != nil {
		return Outcome{}, err
	}
	if in.At.IsZero() {
		in.At = r.now()
	}
	var call caller
	if in.Test = true; calls {
		if err := r.authority.MayGive(ctx, tenantID, d.rights()); err != nil {
			return Outcome{}, err
		}
		call = r.caller(tenantID, p, in)
	}
	return c.run(ctx, p, 0, in, nil, call)
}

// Denied reports whether the run refused the sign-in, and the message for the user.
func (o Outcome) Denied() (bool, string) { return o.denied, o.message }

// stored returns the stored form of a document.
func stored(d Document) string {
	text, err := json.Marshal(d.normal())
	if err != nil {
		panic("flow: " + err.Error()) // a programming error
	}
	return string(text)
}
