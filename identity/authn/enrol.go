package authn

import (
	"context"
	"errors"
	"slices"
	"time"

	"stonetown/identity"
	"stonetown/identity/factor"
	"stonetown/identity/onetime"
	"stonetown/identity/session"
	"stonetown/internal/eventlog"
	"stonetown/internal/ratelimit"
	"stonetown/internal/sqldb"
)

const kindEnrol onetime.Kind = "enrol"

// enrolment is the data of an enrolment in progress.
type enrolment struct {
	Kind     factor.Kind     `json:"kind"`
	Label    string          `json:"label"`
	Secret   string          `json:"secret,omitzero"` // of TOTP
	Number   string          `json:"number,omitzero"`
	Code     string          `json:"code,omitzero"` // sent to the number
	Ceremony factor.Ceremony `json:"ceremony,omitzero"`
}

// Enrolment contains what a client needs to complete an enrolment.
type Enrolment struct {
	ID          string
	Key         factor.Key // of TOTP
	Number      string     // masked, of SMS
	ResendAfter time.Duration
	Options     any // of WebAuthn: PublicKeyCredentialCreationOptionsJSON
	ExpiresAt   time.Time
}

// NewFactor describes a factor to add.
type NewFactor struct {
	Kind    factor.Kind
	Label   string
	Number  string // of SMS, E.164
	Passkey bool   // of WebAuthn: require user verification, so that it counts as two factors
}

// MayAddFactor fails with [ErrStepUp] if the user has to authenticate again first. A user with a
// factor must have proved it recently, so that a stolen session cannot add a factor of its own;
// a user without one must have signed in recently, here: at an identity provider, the user may have
// authenticated long before.
func (s *Service) MayAddFactor(ctx context.Context, current session.Session) error {
	have, err := s.factors.List(ctx, current.TenantID, current.UserID)
	if err != nil {
		return err
	}
	signedIn := current.AuthTime
	if current.CreatedAt.After(signedIn) {
		signedIn = current.CreatedAt
	}
	if len(have) > 0 && !s.SteppedUp(current.SecondFactor) || len(have) == 0 && s.now().Sub(signedIn) > PrimaryFor {
		return ErrStepUp
	}
	return nil
}

// BeginFactor begins the enrolment of a factor. It fails with [ErrKind], [ErrNumber],
// [ErrStepUp], [factor.ErrLimit] or [*SlowDownError].
func (s *Service) BeginFactor(ctx context.Context, t Tenant, current session.Session, n NewFactor) (e Enrolment, err error) {
	settings, err := s.users.Settings(ctx, t.ID)
	if err != nil {
		return e, err
	}
	if settings.MFA.Mode == identity.MFAOff || !slices.Contains(settings.MFA.Kinds, n.Kind) {
		return e, ErrKind
	}
	if err := s.MayAddFactor(ctx, current); err != nil {
		return e, err
	}
	u, err := s.users.User(ctx, t.ID, current.UserID)
	if err != nil {
		return e, err
	}
	have, err := s.factors.List(ctx, t.ID, u.ID)
	if err != nil {
		return e, err
	}
	if len(have) >= factor.MostPerUser {
		return e, factor.ErrLimit
	}
	state, valid := enrolment{Kind: n.Kind, Label: n.Label}, ceremonyFor
	switch n.Kind {
	case factor.TOTP:
		if e.Key, err = factor.NewKey(t.Name, u.Email); err != nil {
			return e, err
		}
		state.Secret = e.Key.Secret
	case factor.SMS:
		if !factor.ValidNumber(n.Number) || !s.texts.Accepts(n.Number) {
			return e, ErrNumber
		}
		state.Number, state.Code = n.Number, factor.NewCode()
		valid, e.Number, e.ResendAfter = smsFor, factor.Masked(n.Number), resendAfter
		if err := s.limit(ctx, t.ID, "text", n.Number, ratelimit.Limit{Requests: 3, Window: 10 * time.Minute}); err != nil {
			return e, err
		}
		if err := s.queueSMS(ctx, t, u.ID, n.Number, state.Code); err != nil {
			return e, err
		}
	case factor.WebAuthn:
		options, ceremony, err := s.factors.BeginCredential(party(t), person(u), have, n.Passkey)
		if err != nil {
			return e, err
		}
		e.Options, state.Ceremony = options, *ceremony
	}
	secret, token, err := s.tokens.Create(ctx, onetime.New{Kind: kindEnrol, TenantID: t.ID, UserID: u.ID, Payload: state, For: valid})
	e.ID, e.ExpiresAt = secret, token.ExpiresAt
	return e, err
}

func person(u identity.User) factor.Person {
	p := factor.Person{TenantID: u.TenantID, UserID: u.ID, Name: u.Email, DisplayName: u.Name}
	if p.DisplayName == "" {
		p.DisplayName = u.Email
	}
	return p
}

// FactorProof proves that the user possesses the new factor.
type FactorProof struct {
	Code       string
	Credential []byte  // RegistrationResponseJSON
	Label      *string // replaces the label of the enrolment
}

// CompleteFactor adds the factor of an enrolment and raises the session to AAL 2. It fails with
// [ErrToken], [*WrongError], [ErrStepUp], [factor.ErrCredentialExists] or [factor.ErrLimit].
func (s *Service) CompleteFactor(ctx context.Context, t Tenant, current session.Session, kind factor.Kind, ceremonyID string, p FactorProof) (f factor.Factor, err error) {
	if err := s.MayAddFactor(ctx, current); err != nil {
		return f, err
	}
	token, err := s.tokens.Try(ctx, t.ID, kindEnrol, ceremonyID, maxAttempts)
	if err != nil {
		return f, invalid(err)
	}
	var begun enrolment
	if err := token.Read(&begun); err != nil {
		return f, err
	}
	if token.UserID != current.UserID || begun.Kind != kind {
		return f, ErrToken
	}
	if p.Label != nil {
		begun.Label = *p.Label
	}
	u, err := s.users.User(ctx, t.ID, current.UserID)
	if err != nil {
		return f, err
	}
	err = s.db.Tx(ctx, func(tx *sqldb.Tx) error {
		switch kind {
		case factor.TOTP:
			f, err = s.factors.AddTOTP(ctx, tx, t.ID, u.ID, begun.Label, begun.Secret, p.Code)
		case factor.SMS:
			if err = factor.ErrWrong; factor.SameCode(begun.Code, p.Code) {
				f, err = s.factors.AddNumber(ctx, tx, t.ID, u.ID, begun.Label, begun.Number)
			}
		case factor.WebAuthn:
			f, err = s.factors.AddCredential(ctx, tx, party(t), person(u), begun.Ceremony, begun.Label, p.Credential)
		}
		if err == nil {
			err = invalid(onetime.Use(ctx, tx, token))
		}
		if err == nil {
			_, err = s.users.UpdateIn(ctx, tx, t.ID, u.ID, func(u *identity.User) { u.MustEnrol = false })
		}
		if err != nil {
			return err
		}
		var b sqldb.Batch
		s.sessions.Enrolled(&b, current, kind.Method())
		eventlog.Append(&b, t.ID, mfaEnrolled(ctx, u, f))
		s.notify(&b, t.ID, u.ID, factorAdded)
		return tx.Send(ctx, &b)
	})
	if errors.Is(err, factor.ErrWrong) {
		err = &WrongError{kind, token.Left(maxAttempts)}
	}
	if err == nil {
		s.jobs.Wake()
	}
	return f, err
}

// Factors lists the factors of a user, the oldest first.
func (s *Service) Factors(ctx context.Context, tenantID, userID string) ([]factor.Factor, error) {
	return s.factors.List(ctx, tenantID, userID)
}

// FactorHolders returns those of some users that have a factor.
func (s *Service) FactorHolders(ctx context.Context, tenantID string, userIDs []string) (map[string]bool, error) {
	return s.factors.Holders(ctx, tenantID, userIDs)
}

// FactorKinds is [factor.Store.Kinds].
func (s *Service) FactorKinds(ctx context.Context, tenantID, after, last string) (map[string][]string, error) {
	return s.factors.Kinds(ctx, tenantID, after, last)
}

// RenameFactor changes the label of a factor. It fails with [factor.ErrNotFound].
func (s *Service) RenameFactor(ctx context.Context, tenantID, userID, factorID, label string) (f factor.Factor, err error) {
	if f, err = s.factors.Find(ctx, tenantID, userID, factorID); err != nil {
		return f, err
	}
	f.Label = label
	return f, s.db.Tx(ctx, func(tx *sqldb.Tx) error { return factor.Rename(ctx, tx, f) })
}

// RemoveFactor removes a factor of a user. It fails with [factor.ErrNotFound].
func (s *Service) RemoveFactor(ctx context.Context, tenantID, userID, factorID string) error {
	f, err := s.factors.Find(ctx, tenantID, userID, factorID)
	if err != nil {
		return err
	}
	u, err := s.users.User(ctx, tenantID, userID)
	if err != nil {
		return err
	}
	err = s.db.Tx(ctx, func(tx *sqldb.Tx) error {
		if err := factor.Remove(ctx, tx, f); err != nil {
			return err
		}
		var b sqldb.Batch
		eventlog.Append(&b, tenantID, mfaRemoved(ctx, u, f))
		s.notify(&b, tenantID, u.ID, factorRemoved)
		return tx.Send(ctx, &b)
	})
	if err == nil {
		s.jobs.Wake()
	}
	return err
}

// NewBackupCodes replaces the backup codes of a user.
func (s *Service) NewBackupCodes(ctx context.Context, tenantID, userID string) (codes []string, err error) {
	u, err := s.users.User(ctx, tenantID, userID)
	if err != nil {
		return nil, err
	}
	err = s.db.Tx(ctx, func(tx *sqldb.Tx) error {
		var b sqldb.Batch
		if codes, err = s.factors.NewBackupCodes(&b, tenantID, userID); err != nil {
			return err
		}
		eventlog.Append(&b, tenantID, backupCodesRegenerated(ctx, u))
		return tx.Send(ctx, &b)
	})
	return codes, err
}

// BackupCodesLeft returns the number of unused backup codes of a user.
func (s *Service) BackupCodesLeft(ctx context.Context, tenantID, userID string) (int, error) {
	return s.factors.BackupCodesLeft(ctx, tenantID, userID)
}

// ResetFactors removes all factors of a user, ends all sessions, and requires the user to add a
// factor at the next sign-in.
func (s *Service) ResetFactors(ctx context.Context, tenantID, userID string) (u identity.User, err error) {
	err = s.db.Tx(ctx, func(tx *sqldb.Tx) error {
		c, err := s.users.UpdateIn(ctx, tx, tenantID, userID, func(u *identity.User) { u.MustEnrol = true })
		if err != nil {
			return err
		}
		u = c.After
		if err := factor.RemoveAll(ctx, tx, tenantID, userID); err != nil {
			return err
		}
		ended, err := s.users.SignOut(ctx, tx, tenantID, userID, "")
		if err != nil {
			return err
		}
		var b sqldb.Batch
		eventlog.Append(&b, tenantID, append([]eventlog.Event{mfaReset(ctx, u)}, revoked(ctx, ended, session.EndedByAdmin)...)...)
		return tx.Send(ctx, &b)
	})
	return u, err
}
