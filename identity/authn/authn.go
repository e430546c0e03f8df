// Package authn authenticates users.
//
// A sign-in is a series of steps, each of which proves something: a password, a second
// factor, a new password where the old one must be replaced. The proofs so far are stored
// under a one-time token that the client sends with the next step; after the last step
// there is a session. [Service.SignIn] begins, [Result.Status] names the next step, and no
// step can be omitted, because each is decided from the current account.
//
// Neither a response nor its timing reveals whether an account exists. Work that differs
// between a known address and an unknown one, such as sending a mail, runs in the
// background, out of the outbox.
//
// Guessing is slowed down by account, whether or not it exists: an attempt is counted
// before its password is looked at, by the database, so that parallel guesses are no
// more than those one after another.
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
	"stonetown/identity/onetime"
	"stonetown/identity/session"
	"stonetown/internal/eventlog"
	"stonetown/internal/geo"
	"stonetown/internal/jobs"
	"stonetown/internal/outbox"
	"stonetown/internal/post"
	"stonetown/internal/ratelimit"
	"stonetown/internal/seal"
	"stonetown/internal/sqldb"
)

var (
	// ErrCredentials is returned for an address and a password that are not those of an
	// account, whatever is wrong with them.
	ErrCredentials = errors.New("unknown address or wrong password")
	// ErrDisabled is returned for a user who may not sign in, and has proved to be it.
	ErrDisabled = errors.New("the account is disabled")
	// ErrToken is returned for a token or a ceremony that was never handed out, is
	// used, or is over.
	ErrToken = errors.New("the token is unknown, used or expired")
	// ErrStepUp is returned for what takes a recent second factor.
	ErrStepUp = errors.New("a recent second factor is required")
	// ErrKind is returned for a kind of factor that does not exist, that the tenant does
	// not allow, or that the user does not have.
	ErrKind = errors.New("the kind of factor is not supported")
	// ErrNoPassword is returned for changing the password of a user who has none.
	ErrNoPassword = errors.New("the user has no password")
	// ErrPassword is returned for a present password that is wrong.
	ErrPassword = errors.New("the current password is wrong")
	// ErrSignUpClosed is returned where people cannot create accounts of their own.
	ErrSignUpClosed = errors.New("sign-up is closed")
	// ErrVerified is returned for verifying an address again.
	ErrVerified = errors.New("the address is already verified")
	// ErrCurrent is returned for ending the session that a user is working in.
	ErrCurrent = errors.New("the session is the current one")
	// ErrChangeNotFound is returned for a change of address that is not under way.
	ErrChangeNotFound = errors.New("change of address not found")
	// ErrNumber is returned for what is not a telephone number, or one that the
	// deployment does not send to.
	ErrNumber = errors.New("not a phone number that can receive codes")
	// ErrLastMethod is returned for giving up the last way to sign in.
	ErrLastMethod = errors.New("this is the user's last way to sign in; set a password or add a passkey first")
)

// WrongError is returned for a code or a credential that proves nothing.
type WrongError struct {
	Kind factor.Kind
	Left int // attempts
}

func (e *WrongError) Error() string { return "the code or credential is wrong" }

// Unwrap makes it [factor.ErrWrong].
func (e *WrongError) Unwrap() error { return factor.ErrWrong }

// SlowDownError is returned for an attempt that came too soon.
type SlowDownError struct{ RetryAfter time.Duration }

func (e *SlowDownError) Error() string { return "too many attempts" }

const (
	// StepUpFor is how long a second factor counts as recent.
	StepUpFor = 15 * time.Minute
	// PrimaryFor is how recent a sign-in must be to add a first factor.
	PrimaryFor = 10 * time.Minute
	// mfaFor is how long a sign-in waits for its second factor.
	mfaFor = 10 * time.Minute
	// ceremonyFor is how long adding a factor may take.
	ceremonyFor = 10 * time.Minute
	// DeviceFor is how long a device is remembered.
	DeviceFor = 30 * 24 * time.Hour
	// guesses is how many codes may be tried on one token.
	guesses = 5
)

// Tenant is what the package needs to know of one.
type Tenant struct {
	ID      string
	Name    string
	BaseURL string // where its pages are, and which origin its passkeys are bound to
}

// By is the device that a person signs in with.
type By struct {
	Device session.Device
	// Known is the token of a device that was remembered, if it came with one.
	Known string
	// Remember: the device need not prove a second factor again for a while.
	Remember bool
}

// Config says what a service works on. All but Places, Limits, Pace, Clock and Logger is required.
type Config struct {
	DB      *sqldb.DB
	Seal    *seal.Key
	Users   *identity.Directory
	Outbox  *outbox.Outbox
	Mail    post.Mailer
	Texts   post.Texter
	Tenants Tenants
	// Places says where addresses are. Default: that is not known.
	Places *geo.Database
	// Limits counts letters and text messages. Default: there are no limits.
	Limits *ratelimit.Limiter
	// Pace is the step at which wrong passwords are answered, so that the time does not tell
	// whose hash was imported. Default: 500 ms.
	Pace time.Duration
	// Clock tells the time. Default: time.Now.
	Clock func() time.Time
	// Logger gets what goes wrong in the background. Default: discarded.
	Logger *slog.Logger
}

// Tenants finds the tenant that a letter is from.
type Tenants interface {
	AuthnTenant(ctx context.Context, tenantID string) (Tenant, error)
}

// Service signs people in. It is safe for concurrent use.
type Service struct {
	db       *sqldb.DB
	users    *identity.Directory
	sessions *session.Store
	tokens   *onetime.Store
	factors  *factor.Store
	external *external.Store
	outbox   *outbox.Outbox
	record   *eventlog.Recorder
	mail     post.Mailer
	texts    post.Texter
	tenants  Tenants
	places   *geo.Database
	limits   *ratelimit.Limiter
	account  []byte // key of accounts' names in attempts
	paces    *paces
	clock    func() time.Time
	log      *slog.Logger

	others       map[string]func(context.Context, outbox.Job) error // by kind
	sessionEnded []func(ctx context.Context, tx *sqldb.Tx, e session.Ended) error
}

// New returns the service whose state is in c.DB.
func New(c Config) (*Service, error) {
	if c.DB == nil || c.Seal == nil || c.Users == nil || c.Outbox == nil || c.Mail == nil || c.Texts == nil || c.Tenants == nil {
		return nil, errors.New("authn: Config.DB, Seal, Users, Outbox, Mail, Texts and Tenants are required")
	}
	if c.Clock == nil {
		c.Clock = time.Now
	}
	if c.Logger == nil {
		c.Logger = slog.New(slog.DiscardHandler)
	}
	if c.Pace == 0 {
		c.Pace = defaultPace
	}
	paces, err := newPaces(c.Pace)
	if err != nil {
		return nil, fmt.Errorf("authn: %w", err)
	}
	return &Service{
		paces: paces,
		db:    c.DB, users: c.Users, outbox: c.Outbox, mail: c.Mail, texts: c.Texts, tenants: c.Tenants, places: c.Places, limits: c.Limits, clock: c.Clock, log: c.Logger,
		sessions: session.NewStore(c.DB, c.Clock),
		record:   eventlog.NewRecorder(c.DB),
		tokens:   onetime.NewStore(c.DB, c.Seal, c.Clock),
		factors:  factor.NewStore(c.DB, c.Seal, c.Clock),
		external: external.NewStore(c.DB, c.Clock),
		account:  c.Seal.Derive("accounts that are tried"),
		others:   map[string]func(context.Context, outbox.Job) error{},
	}, nil
}

func (s *Service) now() time.Time { return s.clock().UTC().Truncate(time.Microsecond) }

// Run does what is done in the background until ctx ends: it sends letters, tells of
// sessions that have ended, and deletes what is over. Several processes may run it.
func (s *Service) Run(ctx context.Context) {
	var working sync.WaitGroup
	defer working.Wait()
	working.Go(func() { s.outbox.Run(ctx, s.work) })
	working.Go(func() { s.tellEnded(ctx) })
	jobs.Loop{Name: "delete what is over", Every: tidyEvery, Logger: s.log}.Run(ctx, jobs.Once(s.tidy))
}

// tidyEvery is how often what is over is deleted.
const tidyEvery = time.Hour

func (s *Service) tidy(ctx context.Context) error {
	now := s.now()
	if _, err := s.db.Exec(ctx, `DELETE FROM sign_in_attempts WHERE updated_at < $1`, now.Add(-forgetAfter).UnixMicro()); err != nil {
		return err
	}
	if _, err := s.db.Exec(ctx, `DELETE FROM email_changes WHERE expires_at < $1`, now.UnixMicro()); err != nil {
		return err
	}
	if err := s.sessions.Tidy(ctx); err != nil {
		return err
	}
	return s.tokens.DeleteExpired(ctx)
}

// invalid states translates onetime.ErrInvalid.
func invalid(err error) error {
	if errors.Is(err, onetime.ErrInvalid) {
		return ErrToken
	}
	return err
}
