// Package authn authenticates users.
//
// A sign-in is a sequence of steps: a password, a second factor, a new password where the old
// one must be replaced. The proofs so far are stored under a one-time token that the client
// sends with the next step; the last step begins a session. [Service.SignIn] is the first step,
// and [Result.Status] names the next one. No step can be omitted, because each next step is
// computed from the current account, the proofs and the settings of the tenant.
//
// Neither a response nor its timing reveals whether an account exists. Work that differs
// between a known address and an unknown one, such as sending a mail, runs in the
// background, as a job.
//
// Attempts are limited by account, whether or not it exists. The database counts an attempt
// before the password is verified, so that parallel attempts are limited like consecutive ones.
package authn

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"stonetown/identity"
	"stonetown/identity/external"
	"stonetown/identity/factor"
	"stonetown/identity/flow"
	"stonetown/identity/mails"
	"stonetown/identity/onetime"
	"stonetown/identity/session"
	"stonetown/internal/eventlog"
	"stonetown/internal/geo"
	"stonetown/internal/jobs"
	"stonetown/internal/notify"
	"stonetown/internal/ratelimit"
	"stonetown/internal/seal"
	"stonetown/internal/sqldb"
)

var (
	// ErrCredentials is returned for an unknown address and for a wrong password.
	ErrCredentials = errors.New("unknown address or wrong password")
	// ErrDisabled is returned for a disabled user with the correct password.
	ErrDisabled = errors.New("the account is disabled")
	// ErrToken is returned for a one-time token or a ceremony that is unknown, used or
	// expired.
	ErrToken = errors.New("the token is unknown, used or expired")
	// ErrStepUp is returned for an operation that requires a recent second factor.
	ErrStepUp = errors.New("a recent second factor is required")
	// ErrKind is returned for a kind of factor that is unknown, that the tenant does not
	// allow, or that the user does not have.
	ErrKind = errors.New("the kind of factor is not supported")
	// ErrNoPassword is returned for a change of password of a user without a password.
	ErrNoPassword = errors.New("the user has no password")
	// ErrPassword is returned if the current password is wrong.
	ErrPassword = errors.New("the current password is wrong")
	// ErrSignUpClosed is returned if only administrators create accounts.
	ErrSignUpClosed = errors.New("sign-up is closed")
	// ErrVerified is returned if the address is already verified.
	ErrVerified = errors.New("the address is already verified")
	// ErrUnverified is returned for a mail that goes to verified addresses only.
	ErrUnverified = errors.New("the address is not verified")
	// ErrCurrent is returned for ending the session of the request itself.
	ErrCurrent = errors.New("the session is the current one")
	// ErrChangeNotFound is returned for an unknown or expired change of address.
	ErrChangeNotFound = errors.New("change of address not found")
	// ErrNumber is returned for an invalid phone number and for one that the deployment
	// does not send to.
	ErrNumber = errors.New("not a phone number that can receive codes")
	// ErrNotProvisioned is returned for a user of a connection that does not create accounts.
	ErrNotProvisioned = errors.New("there is no account for this user, and the connection does not create accounts")
	// ErrAccountExists is returned if an account has the address of a user of a connection that
	// does not link accounts.
	ErrAccountExists = errors.New("an account with this e-mail address exists already")
	// ErrNoEmail is returned for a user without an account whose provider sends no valid e-mail
	// address.
	ErrNoEmail = errors.New("the identity provider sent no valid e-mail address")
	// ErrThreat is returned for a sign-in or sign-up that a threat feed refuses. It does not say which.
	ErrThreat = errors.New("this is refused from your network, or with this e-mail address")
	// ErrLastMethod is returned for removing the last way to sign in.
	ErrLastMethod = errors.New("this is the user's last way to sign in; set a password or add a passkey first")
)

// WrongError is returned for a wrong code or credential.
type WrongError struct {
	Kind factor.Kind
	Left int // the number of attempts that are left
}

func (e *WrongError) Error() string { return "the code or credential is wrong" }

// Unwrap returns [factor.ErrWrong].
func (e *WrongError) Unwrap() error { return factor.ErrWrong }

// SlowDownError is returned for an attempt that exceeds a limit.
type SlowDownError struct{ RetryAfter time.Duration }

func (e *SlowDownError) Error() string { return "too many attempts" }

const (
	// StepUpFor is how long a second factor counts as recent.
	StepUpFor = 15 * time.Minute
	// PrimaryFor is the maximum age of a sign-in that permits adding a first factor.
	PrimaryFor = 10 * time.Minute
	// DeviceFor is how long a device is remembered.
	DeviceFor = 30 * 24 * time.Hour

	// mfaFor is the lifetime of the token between two steps of a sign-in.
	mfaFor = 10 * time.Minute
	// ceremonyFor is the lifetime of a ceremony with an authenticator.
	ceremonyFor = 10 * time.Minute
	// maxAttempts is the number of codes that can be tried with one token.
	maxAttempts = 5
)

// Tenant contains the properties of a tenant that the package uses.
type Tenant struct {
	ID      string
	Name    string
	BaseURL string // of the hosted pages; the origin of passkeys
	// Branding is the mark of its branding; empty: it has none.
	Branding string
}

func (t Tenant) mails() mails.Tenant { return mails.Tenant(t) }

// Device is the device of a sign-in.
type Device struct {
	session.Device
	// Token is the token of a remembered device; empty if the request has none.
	Token string
	// Remember requests that the device need not prove a second factor again for DeviceFor.
	Remember bool
}

// Config contains the dependencies of a service. All fields but Pace and Clock are required.
type Config struct {
	DB      *sqldb.DB
	Seal    *seal.Key
	Users   *identity.Directory
	Jobs    *jobs.Queue
	Mail    notify.Mailer // [notify.None] sends nothing
	Texts   notify.Texter // [notify.None] sends nothing
	Mails   *mails.Composer
	Tenants Tenants
	Flows   Flows
	// Origins decides about the sessions that are opened from the control plane; [session.NoOrigins]
	// if none are.
	Origins session.Origins
	// GeoIP locates the addresses in mails about new devices; [geo.None] knows no location.
	GeoIP geo.Locator
	// Limits counts mails, text messages and changes of address.
	Limits Limits
	// Threats are the threat feeds of tenants; [NoThreats] has none.
	Threats Threats
	// Pace is the unit of the response time of wrong passwords, so that it does not reveal
	// imported hashes. Default: 500 ms.
	Pace time.Duration
	// Clock returns the time. Default: time.Now.
	Clock  func() time.Time
	Logger *slog.Logger
}

// Flows runs the sign-in flows of tenants; [flow.Registry] implements it.
type Flows interface {
	Run(ctx context.Context, tenantID string, version int, p flow.Point, in flow.Input, kept *flow.State) (flow.Outcome, error)
}

// Limits counts requests; [ratelimit.Limiter] implements it.
type Limits interface {
	Take(ctx context.Context, b ratelimit.Bucket, l ratelimit.Limit) (ratelimit.Decision, error)
}

// Unlimited are [Limits] that admit every request.
type Unlimited struct{}

// Take implements [Limits].
func (Unlimited) Take(context.Context, ratelimit.Bucket, ratelimit.Limit) (ratelimit.Decision, error) {
	return ratelimit.Decision{}, nil
}

// Tenants finds the tenant that sends a mail.
type Tenants interface {
	AuthnTenant(ctx context.Context, tenantID string) (Tenant, error)
}

// Service authenticates users. It is safe for concurrent use.
type Service struct {
	db       *sqldb.DB
	users    *identity.Directory
	sessions *session.Store
	tokens   *onetime.Store
	factors  *factor.Store
	external *external.Store
	// connections is set by UseConnections.
	connections Connections
	jobs        *jobs.Queue
	recorder    *eventlog.Recorder
	mail        notify.Mailer
	texts       notify.Texter
	composer    *mails.Composer
	tenants     Tenants
	flows       Flows
	origins     session.Origins
	geoIP       geo.Locator
	limits      Limits
	threats     Threats
	account     []byte // the key of [Service.accountKey]
	paces       *paces
	clock       func() time.Time
	log         *slog.Logger

	sessionEnded []func(ctx context.Context, tx *sqldb.Tx, e session.Ended) error
}

// New returns a service. Its tables are [Migrations] and those of the packages beside it.
func New(c Config) (*Service, error) {
	if c.DB == nil || c.Seal == nil || c.Users == nil || c.Jobs == nil || c.Mail == nil || c.Texts == nil || c.Mails == nil ||
		c.Tenants == nil || c.Flows == nil || c.Origins == nil || c.GeoIP == nil || c.Limits == nil || c.Threats == nil || c.Logger == nil {
		return nil, errors.New("authn: Config.DB, Seal, Users, Jobs, Mail, Texts, Mails, Tenants, Flows, Origins, GeoIP, Limits, Threats and Logger are required")
	}
	if c.Clock == nil {
		c.Clock = time.Now
	}
	if c.Pace == 0 {
		c.Pace = defaultPace
	}
	paces, err := newPaces(c.Pace)
	if err != nil {
		return nil, fmt.Errorf("authn: %w", err)
	}
	s := &Service{
		db: c.DB, users: c.Users, jobs: c.Jobs, mail: c.Mail, texts: c.Texts, composer: c.Mails, tenants: c.Tenants, flows: c.Flows, origins: c.Origins, geoIP: c.GeoIP, limits: c.Limits, threats: c.Threats, paces: paces, clock: c.Clock, log: c.Logger,
		sessions: session.NewStore(c.DB, c.Origins, c.Clock),
		recorder: eventlog.NewRecorder(c.DB),
		tokens:   onetime.NewStore(c.DB, c.Seal, c.Clock),
		factors:  factor.NewStore(c.DB, c.Seal, c.Clock),
		external: external.NewStore(c.DB, c.Seal, c.Clock),
		account:  c.Seal.Derive("accounts that are tried"),
	}
	s.register(c.Jobs)
	s.OnSessionEnd(func(ctx context.Context, tx *sqldb.Tx, e session.Ended) error {
		return external.SessionEnded(ctx, tx, e.TenantID, e.ID)
	})
	return s, nil
}

func (s *Service) now() time.Time { return s.clock().UTC().Truncate(time.Microsecond) }

// Run reports ended sessions and deletes expired rows, until ctx ends. Several processes may
// run it.
func (s *Service) Run(ctx context.Context) {
	var working sync.WaitGroup
	defer working.Wait()
	working.Go(func() { s.reportEnded(ctx) })
	jobs.Loop{Name: "delete expired tokens, attempts, devices and sessions at connections", Every: deleteEvery, Logger: s.log}.Run(ctx, jobs.Once(s.deleteExpired))
}

// deleteEvery is the interval of deleting expired rows.
const deleteEvery = time.Hour

func (s *Service) deleteExpired(ctx context.Context) error {
	now := s.now()
	if _, err := s.db.Exec(ctx, `DELETE FROM sign_in_attempts WHERE updated_at < $1`, now.Add(-forgetAfter).UnixMicro()); err != nil {
		return err
	}
	if _, err := s.db.Exec(ctx, `DELETE FROM email_changes WHERE expires_at < $1`, now.UnixMicro()); err != nil {
		return err
	}
	if err := s.sessions.DeleteForgotten(ctx); err != nil {
		return err
	}
	if err := s.external.DeleteExpired(ctx); err != nil {
		return err
	}
	return s.tokens.DeleteExpired(ctx)
}

// invalid translates [onetime.ErrInvalid].
func invalid(err error) error {
	if errors.Is(err, onetime.ErrInvalid) {
		return ErrToken
	}
	return err
}
