package authn

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"stonetown/identity"
	"stonetown/identity/factor"
	"stonetown/identity/onetime"
	"stonetown/identity/password"
	"stonetown/identity/password/breached"
	"stonetown/identity/session"
	"stonetown/internal/eventlog"
	"stonetown/internal/fair"
	"stonetown/internal/sqldb"
)

// Status says how far a sign-in has come.
type Status string

// What comes next.
const (
	Complete          Status = "complete"
	MFARequired       Status = "mfa_required"
	EnrolmentRequired Status = "mfa_enrolment_required" // of a second factor
	PasswordRequired  Status = "password_change_required"
	EmailRequired     Status = "email_verification_required"
)

// Result is what a step of a sign-in led to.
type Result struct {
	Status Status
	User   identity.User
	// Session and Token are there when Status is Complete or, good for nothing but adding a
	// factor, EnrolmentRequired.
	Session session.Session
	Token   string
	// Device is the token of a device that is remembered from now on.
	Device string
	// Continue is the one-time token of the next step with the other states. It is valid
	// until ExpiresAt.
	Continue  string
	ExpiresAt time.Time
	// Factors are what the second factor can be, with MFARequired, and BackupCodes
	// whether it can be one of those.
	Factors     []factor.Factor
	BackupCodes bool
}

// proof is what somebody has proved so far.
type proof struct {
	Methods []string `json:"methods"` // RFC 8176
	Second  bool     `json:"second"`  // a second factor, or one that counts as two
	// Forced: the password must be changed before anything else.
	Forced bool `json:"forced,omitzero"`
}

func (p proof) with(method string) proof {
	p.Methods = append(slices.Clone(p.Methods), method)
	return p
}

// withSecond is with a second factor proved.
func (p proof) withSecond(method string) proof {
	p = p.with(method).with("mfa")
	p.Second = true
	return p
}

const (
	kindMFA     onetime.Kind = "mfa"
	kindDevice  onetime.Kind = "device"  // one that is remembered
	kindPending onetime.Kind = "pending" // a sign-in that waits for the address to be verified
)

// SignIn begins with an address and a password. It fails with [ErrCredentials],
// [*SlowDownError] or [ErrDisabled].
func (s *Service) SignIn(ctx context.Context, t Tenant, email, plain string, by By) (Result, error) {
	account := identity.NormalEmail(email)
	var failures int
	var u identity.User
	var took time.Duration
	// An attempt for which there is no time does not count.
	err := password.Reserve(ctx, func(ctx context.Context) (err error) {
		if failures, err = s.attempt(ctx, t.ID, account); err == nil {
			began := time.Now()
			u, err = s.users.VerifyPassword(ctx, t.ID, email, plain)
			took = time.Since(began)
		}
		return err
	})
	if errors.Is(err, identity.ErrUserNotFound) {
		if err := s.paces.putOff(ctx, t.ID, took); err != nil {
			return Result{}, err
		}
		return Result{}, s.failed(ctx, t, account, failures)
	}
	if err != nil {
		return Result{}, err
	}
	if err := s.accept(as(ctx, u.ID), t, account, &u, plain); err != nil {
		return Result{}, err
	}
	return s.proceed(ctx, t, u, proof{Methods: []string{"pwd"}}, by)
}

// failed notes that an attempt failed, whether or not the account exists.
func (s *Service) failed(ctx context.Context, t Tenant, account string, failures int) error {
	u, err := s.users.UserByEmail(ctx, t.ID, account)
	if err != nil && !errors.Is(err, identity.ErrUserNotFound) {
		return err
	}
	f := failure{User: subjectOrNull(u), Reason: "invalid_credentials", Failures: failures}
	events := []eventlog.Event{signInFailed(ctx, f)}
	switch failures {
	case free:
		events = append(events, userLocked(ctx, f))
	case alarmAt:
		events = append(events, bruteForceDetected(ctx, f))
	}
	if err := s.note(ctx, t.ID, events...); err != nil {
		return err
	}
	return ErrCredentials
}

// accept takes back that an attempt counts as failed, keeps the password in today's form if
// it was in another, and has it looked up among breached ones, later, if it is time.
func (s *Service) accept(ctx context.Context, t Tenant, account string, u *identity.User, plain string) error {
	var rehashed password.Hash
	if !u.PasswordHash.Current() {
		var err error
		if rehashed, err = password.NewHash(ctx, plain); err != nil {
			if _, busy := errors.AsType[*fair.ExhaustedError](err); !busy {
				return err
			}
			rehashed = "" // at the next sign-in
		}
	}
	proved := u.PasswordHash
	return s.db.Tx(ctx, func(tx *sqldb.Tx) error {
		if rehashed != "" {
			c, err := s.users.UpdateIn(ctx, tx, t.ID, u.ID, func(now *identity.User) {
				if now.PasswordHash == proved {
					now.PasswordHash = rehashed
				}
			})
			if err != nil {
				return err
			}
			*u = c.After
		}
		var b sqldb.Batch
		s.forgive(&b, t.ID, account)
		if u.State != identity.Disabled && s.users.PasswordCheckDue(*u) {
			s.outbox.Queue(&b, t.ID, jobPassword, passwordJob{u.ID, string(u.PasswordHash), breached.DigestOf(plain), eventlog.OriginOf(ctx)})
		}
		return tx.Send(ctx, &b)
	})
}

// proceed takes the step that follows a proof: it hands out a ticket for the next one, or
// begins a session. It fails with [ErrDisabled].
func (s *Service) proceed(ctx context.Context, t Tenant, u identity.User, p proof, by By) (Result, error) {
	settings, err := s.users.Settings(ctx, t.ID)
	if err != nil {
		return Result{}, err
	}
	factors, err := s.factors.List(ctx, t.ID, u.ID)
	if err != nil {
		return Result{}, err
	}
	ctx = as(ctx, u.ID)
	remembered, err := s.knows(ctx, t, u, by.Known)
	if err != nil {
		return Result{}, err
	}
	r := Result{User: u}
	if r.Status, err = nextStep(account{u, len(factors), remembered}, p, settings); err != nil {
		return Result{}, err
	}
	kind := kindPending
	switch r.Status {
	case Complete, EnrolmentRequired:
		if err := s.begin(ctx, t, p, settings, by, &r); err != nil {
			return Result{}, err
		}
		return r, nil
	case MFARequired:
		left, err := s.factors.BackupCodesLeft(ctx, t.ID, u.ID)
		if err != nil {
			return Result{}, err
		}
		r.Factors, r.BackupCodes = factors, left > 0
		kind = kindMFA
	case PasswordRequired:
		p.Forced = true
		kind = kindReset
	}
	var handed onetime.Token
	r.Continue, handed, err = s.tokens.Create(ctx, onetime.New{Kind: kind, TenantID: t.ID, UserID: u.ID, Payload: p, For: mfaFor})
	r.ExpiresAt = handed.ExpiresAt
	return r, err
}

// begin begins the session of a sign-in that is complete, or that can only add a factor.
func (s *Service) begin(ctx context.Context, t Tenant, p proof, settings identity.Settings, by By, r *Result) error {
	u, enrol := r.User, r.Status == EnrolmentRequired
	err := s.db.Tx(ctx, func(tx *sqldb.Tx) error {
		now, err := s.users.UserIn(ctx, tx, t.ID, u.ID)
		if errors.Is(err, identity.ErrUserNotFound) || err == nil && now.PasswordHash != u.PasswordHash {
			return ErrCredentials // changed since it was proved
		}
		if err == nil && now.State == identity.Disabled {
			err = ErrDisabled
		}
		if err != nil {
			return err
		}
		r.Session, r.Token, err = s.sessions.Begin(ctx, tx, session.New{
			TenantID: t.ID, UserID: u.ID, Device: by.Device, Methods: p.Methods, SecondFactor: p.Second, MustEnrol: enrol, Lifetimes: settings.Session.Lifetimes(),
		})
		if err != nil {
			return err
		}
		var b sqldb.Batch
		if !enrol {
			s.users.SignedIn(&b, u)
		}
		events := []eventlog.Event{
			signedIn(ctx, u, p.Methods),
			session.Created(ctx, r.Session),
		}
		known, others, err := s.sessions.Recognize(ctx, tx, &b, r.Session)
		if err != nil {
			return err
		}
		if !known && (others || !now.LastSignedInAt.IsZero()) {
			d := r.Session.Device
			events = append(events, newDeviceSignIn(ctx, u, r.Session))
			s.outbox.Queue(&b, t.ID, letterSignIn, signInLetter{UserID: u.ID, DeviceKind: d.Kind(), IP: d.IP, At: r.Session.CreatedAt})
		}
		if r.Device = ""; by.Remember && p.Second {
			r.Device, _ = s.tokens.Issue(&b, onetime.New{Kind: kindDevice, TenantID: t.ID, UserID: u.ID, For: DeviceFor})
		}
		eventlog.Append(&b, t.ID, events...)
		return tx.Send(ctx, &b)
	})
	if err != nil {
		return fmt.Errorf("begin session: %w", err)
	}
	return nil
}

// knows reports whether a device is one that the user has had remembered. Another
// password, or an administrator, makes it forgotten.
func (s *Service) knows(ctx context.Context, t Tenant, u identity.User, device string) (bool, error) {
	if device == "" {
		return false, nil
	}
	found, err := s.tokens.Find(ctx, t.ID, kindDevice, device)
	if errors.Is(err, onetime.ErrInvalid) {
		return false, nil
	}
	return err == nil && found.UserID == u.ID, err
}

// resume is proceed for who comes back with a ticket, which a user who was disabled
// meanwhile has no more.
func (s *Service) resume(ctx context.Context, t Tenant, u identity.User, p proof, by By) (Result, error) {
	r, err := s.proceed(ctx, t, u, p, by)
	if errors.Is(err, ErrDisabled) {
		err = ErrToken
	}
	return r, err
}

// Identify says how somebody can sign in. The answer is the same for every address.
func (s *Service) Identify(context.Context, Tenant, string) []string {
	return []string{"password", "passkey"}
}
