package authn

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"stonetown/identity"
	"stonetown/identity/factor"
	"stonetown/identity/flow"
	"stonetown/identity/onetime"
	"stonetown/identity/password"
	"stonetown/identity/password/breached"
	"stonetown/identity/session"
	"stonetown/internal/eventlog"
	"stonetown/internal/fair"
	"stonetown/internal/sqldb"
)

// Status is the state of a sign-in.
type Status string

// The states of a sign-in: complete, or the next step.
const (
	Complete          Status = "complete"
	MFARequired       Status = "mfa_required"
	EnrolmentRequired Status = "mfa_enrolment_required" // of a second factor
	PasswordRequired  Status = "password_change_required"
	EmailRequired     Status = "email_verification_required"
)

// Result is the result of a step of a sign-in.
type Result struct {
	Status Status
	User   identity.User
	// Session and Token are set with Complete and with EnrolmentRequired, whose session can
	// only add a factor.
	Session session.Session
	Token   string
	// Device is the token of the device if it is remembered from now on.
	Device string
	// Continue is the one-time token of the next step with the other states. It is valid
	// until ExpiresAt.
	Continue  string
	ExpiresAt time.Time
	// Factors are the factors of the user, with MFARequired. BackupCodes reports whether the
	// user has backup codes.
	Factors     []factor.Factor
	BackupCodes bool
}

// proof is the list of proofs of a sign-in so far.
type proof struct {
	Methods []string `json:"methods"` // RFC 8176
	Second  bool     `json:"second"`  // a second factor was proved, or a passkey, which counts as two
	// At is the time of the authentication if it was at an identity provider, and no proof has
	// followed here; zero: that of the session.
	At time.Time `json:"at,omitzero"`
	// Forced: the token is for replacing the password.
	Forced bool `json:"forced,omitzero"`
	// Threat: the event of a match of a threat feed was recorded.
	Threat bool `json:"threat,omitzero"`
	// Federated is the proof of an identity provider; nil: there is none.
	Federated *federated `json:"federated,omitzero"`
	// Flow has the results of actions that were called; nil: none.
	Flow *flow.State `json:"flow,omitzero"`
	// Entry is an entry from the control plane, which has no further step; nil: there is none.
	Entry *entry `json:"-"`
}

// person returns the id of the user of the control plane who enters; empty: the user signs in here.
func (p proof) person() string { return p.origin().UserID }

// origin returns the origin of the session; zero: the user signs in here.
func (p proof) origin() session.Origin {
	if p.Entry == nil {
		return session.Origin{}
	}
	return p.Entry.origin
}

func (p proof) with(method string) proof {
	p.Methods = append(slices.Clone(p.Methods), method)
	return p
}

// withSecond adds a second factor.
func (p proof) withSecond(method string) proof {
	p = p.with(method).with("mfa")
	p.Second, p.At = true, time.Time{}
	return p
}

const (
	kindMFA     onetime.Kind = "mfa"
	kindDevice  onetime.Kind = "device"  // a remembered device
	kindPending onetime.Kind = "pending" // a sign-in with an unverified address
)

// SignIn begins a sign-in with an address and a password. It fails with [ErrCredentials],
// [*SlowDownError] or [ErrDisabled].
func (s *Service) SignIn(ctx context.Context, t Tenant, email, plain string, d Device) (Result, error) {
	u, err := s.verifyPassword(ctx, t, email, plain)
	if err != nil {
		return Result{}, err
	}
	return s.proceed(ctx, t, u, proof{Methods: []string{"pwd"}}, d)
}

// verifyPassword returns the user with an address and a password. It fails as [Service.SignIn]
// does.
func (s *Service) verifyPassword(ctx context.Context, t Tenant, email, plain string) (u identity.User, err error) {
	account := identity.NormalEmail(email)
	var failures int
	var took time.Duration
	// An attempt that is refused for lack of capacity does not count.
	err = password.Reserve(ctx, func(ctx context.Context) (err error) {
		if failures, err = s.attempt(ctx, t.ID, account); err == nil {
			began := time.Now()
			u, err = s.users.VerifyPassword(ctx, t.ID, email, plain)
			took = time.Since(began)
		}
		return err
	})
	if errors.Is(err, identity.ErrUserNotFound) {
		if err := s.paces.wait(ctx, t.ID, took); err != nil {
			return identity.User{}, err
		}
		return identity.User{}, s.failed(ctx, t, account, failures)
	}
	if err == nil {
		err = s.accept(as(ctx, u.ID), t, account, &u, plain)
	}
	return u, err
}

// failed records a failed attempt, whether or not the account exists.
func (s *Service) failed(ctx context.Context, t Tenant, account string, failures int) error {
	u, err := s.users.UserByEmail(ctx, t.ID, account)
	if err != nil && !errors.Is(err, identity.ErrUserNotFound) {
		return err
	}
	f := failure{User: subjectOrNull(u), Reason: "invalid_credentials", Failures: failures}
	events := []eventlog.Event{signInFailed(ctx, f)}
	switch failures {
	case freeFailures:
		events = append(events, userLocked(ctx, f))
	case alarmAt:
		events = append(events, bruteForceDetected(ctx, f))
	}
	if err := s.record(ctx, t.ID, events...); err != nil {
		return err
	}
	return ErrCredentials
}

// accept reverts the count of the attempt, replaces a hash with outdated parameters, and queues
// a check of the password if one is due.
func (s *Service) accept(ctx context.Context, t Tenant, account string, u *identity.User, plain string) error {
	var rehashed password.Hash
	if !u.PasswordHash.Current() {
		var err error
		if rehashed, err = password.NewHash(ctx, plain); err != nil {
			if _, busy := errors.AsType[*fair.ExhaustedError](err); !busy {
				return err
			}
			rehashed = "" // the next sign-in replaces the hash
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
			s.jobs.Enqueue(&b, t.ID, jobCheckPassword, passwordJob{u.ID, string(u.PasswordHash), breached.DigestOf(plain), eventlog.OriginOf(ctx)})
		}
		return tx.Send(ctx, &b)
	})
}

// proceed returns the result after a proof: a one-time token for the next step, or a session. It
// fails with [ErrDisabled], [identity.ErrManaged], [ErrThreat] or [*flow.DeniedError].
func (s *Service) proceed(ctx context.Context, t Tenant, u identity.User, p proof, d Device) (Result, error) {
	settings, err := s.users.Settings(ctx, t.ID)
	if err != nil {
		return Result{}, err
	}
	factors, err := s.factors.List(ctx, t.ID, u.ID)
	if err != nil {
		return Result{}, err
	}
	ctx = as(ctx, u.ID)
	remembered, err := s.remembers(ctx, t, u, d.Token)
	if err != nil {
		return Result{}, err
	}
	r := Result{User: u}
	at := account{u, len(factors), remembered}
	if r.Status, err = nextStep(at, p, settings, flow.Demands{}); err != nil {
		return Result{}, err
	}
	if p.Threat, err = s.screenSignIn(ctx, settings, u, p.Threat); err != nil {
		return Result{}, err
	}
	claims := ""
	if r.Status.begins() && settings.SignInFlow != 0 && p.Entry == nil {
		outcome, err := s.runFlow(ctx, t, settings.SignInFlow, at, p, d)
		if err != nil {
			return Result{}, err
		}
		p.Flow = outcome.State
		if claims, err = claimsOf(outcome); err != nil {
			return Result{}, err
		}
		if r.Status, err = nextStep(at, p, settings, outcome.Demands); err != nil {
			return Result{}, err
		}
	}
	kind := kindPending
	switch r.Status {
	case Complete, EnrolmentRequired:
		if err := s.begin(ctx, t, p, settings, claims, d, &r); err != nil {
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
	var token onetime.Token
	r.Continue, token, err = s.tokens.Create(ctx, onetime.New{Kind: kind, TenantID: t.ID, UserID: u.ID, Payload: p, For: mfaFor})
	r.ExpiresAt = token.ExpiresAt
	return r, err
}

// begin begins the session of a sign-in: an ordinary one, or one that can only add a factor. claims are
// those of [session.New].
func (s *Service) begin(ctx context.Context, t Tenant, p proof, settings identity.Settings, claims string, d Device, r *Result) error {
	u, enrol := r.User, r.Status == EnrolmentRequired
	err := s.db.Tx(ctx, func(tx *sqldb.Tx) error {
		now, err := s.users.UserIn(ctx, tx, t.ID, u.ID)
		if errors.Is(err, identity.ErrUserNotFound) || err == nil && now.PasswordHash != u.PasswordHash {
			return ErrCredentials // the password was changed since
		}
		if err == nil && now.State == identity.Disabled {
			err = ErrDisabled
		}
		if err != nil {
			return err
		}
		if p.Entry != nil {
			if err := onetime.Use(ctx, tx, p.Entry.token); err != nil {
				return invalid(err)
			}
		}
		r.Session, r.Token, err = s.sessions.Begin(ctx, tx, session.New{
			TenantID: t.ID, UserID: u.ID, Device: d.Device, Methods: p.Methods, SecondFactor: p.Second, AuthTime: p.At, MustEnrol: enrol, Claims: claims, Lifetimes: settings.Session.Lifetimes(), Origin: p.origin(),
		})
		if err != nil {
			return err
		}
		var b sqldb.Batch
		if !enrol {
			s.users.SignedIn(&b, u)
		}
		linked, err := s.beginFederated(ctx, tx, &b, u, p.Federated, r.Session)
		if err != nil {
			return err
		}
		events := append(linked, signedIn(ctx, u, p.Methods), session.Created(ctx, r.Session))
		known, others, err := s.sessions.Recognize(ctx, tx, &b, r.Session)
		if err != nil {
			return err
		}
		if !known && (others || !now.LastSignedInAt.IsZero()) {
			on := r.Session.Device
			events = append(events, newDeviceSignIn(ctx, u, r.Session))
			s.jobs.Enqueue(&b, t.ID, jobSignInMail, signInMail{UserID: u.ID, DeviceKind: on.Kind(), IP: on.IP, At: r.Session.CreatedAt})
		}
		if r.Device = ""; d.Remember && p.Second {
			r.Device, _ = s.tokens.Issue(&b, onetime.New{Kind: kindDevice, TenantID: t.ID, UserID: u.ID, For: DeviceFor})
		}
		eventlog.Append(&b, t.ID, events...)
		return tx.Send(ctx, &b)
	})
	if err == nil {
		err = s.federatedBegan(ctx, u, p.Federated)
	}
	if err != nil {
		return fmt.Errorf("begin session: %w", err)
	}
	return nil
}

// remembers reports whether a token is that of a remembered device of a user. A change of
// password and an administrator's reset revoke such tokens.
func (s *Service) remembers(ctx context.Context, t Tenant, u identity.User, device string) (bool, error) {
	if device == "" {
		return false, nil
	}
	found, err := s.tokens.Find(ctx, t.ID, kindDevice, device)
	if errors.Is(err, onetime.ErrInvalid) {
		return false, nil
	}
	return err == nil && found.UserID == u.ID, err
}

// resume is proceed after a step with a one-time token, which a user who was disabled meanwhile
// no longer has.
func (s *Service) resume(ctx context.Context, t Tenant, u identity.User, p proof, d Device) (Result, error) {
	r, err := s.proceed(ctx, t, u, p, d)
	if errors.Is(err, ErrDisabled) {
		err = ErrToken
	}
	return r, err
}

// Identify returns the methods of signing in. They are the same for every address.
func (s *Service) Identify(context.Context, Tenant, string) []string {
	return []string{"password", "passkey"}
}
