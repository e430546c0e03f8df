package authn

import (
	"context"
	"errors"
	"slices"
	"time"

	"stonetown/identity"
	"stonetown/identity/factor"
	"stonetown/identity/onetime"
	"stonetown/internal/eventlog"
	"stonetown/internal/ratelimit"
	"stonetown/internal/sqldb"
)

// Challenge is what a factor asks of its user.
type Challenge struct {
	ID          string // what the answer names
	Options     any    // for the authenticator (PublicKeyCredentialRequestOptionsJSON), of WebAuthn
	Number      string // masked, of a telephone
	ResendAfter time.Duration
	ExpiresAt   time.Time
}

// Answer is what somebody has to say to a challenge.
type Answer struct {
	Kind        factor.Kind
	Code        string
	Credential  []byte // AuthenticationResponseJSON
	ChallengeID string
}

const kindChallenge onetime.Kind = "challenge"

// challenge is what is remembered of one.
type challenge struct {
	Purpose  string          `json:"purpose"` // the ticket or session it belongs to
	Factor   string          `json:"factor,omitzero"`
	Code     string          `json:"code,omitzero"`
	Ceremony factor.Ceremony `json:"ceremony,omitzero"`
}

const (
	smsFor      = 5 * time.Minute
	resendAfter = 30 * time.Second
)

// Challenge asks for a second factor of whoever a sign-in has found it to be: for a
// certain one, or one of a kind. It fails with [ErrToken] or [ErrKind].
func (s *Service) Challenge(ctx context.Context, t Tenant, mfaToken, factorID string, kind factor.Kind) (Challenge, error) {
	waiting, err := s.tokens.Find(ctx, t.ID, kindMFA, mfaToken)
	if err != nil {
		return Challenge{}, invalid(err)
	}
	return s.challenge(ctx, t, waiting.UserID, mfaToken, factorID, kind)
}

// challenge asks a user for a factor, for one purpose.
func (s *Service) challenge(ctx context.Context, t Tenant, userID, purpose, factorID string, kind factor.Kind) (c Challenge, err error) {
	factors, err := s.factors.List(ctx, t.ID, userID)
	if err != nil {
		return c, err
	}
	asked := slices.DeleteFunc(slices.Clone(factors), func(f factor.Factor) bool {
		return factorID != "" && f.ID != factorID || factorID == "" && f.Kind != kind
	})
	if len(asked) == 0 && (kind != factor.BackupCode || factorID != "") {
		return c, ErrKind
	}
	remembered := challenge{Purpose: purpose}
	valid := mfaFor
	if len(asked) > 0 {
		switch asked[0].Kind {
		case factor.WebAuthn:
			if factorID == "" {
				asked = factors // any of them
			}
			options, ceremony, err := s.factors.BeginAssertion(party(t), factor.Person{TenantID: t.ID, UserID: userID}, asked, false)
			if err != nil {
				return c, err
			}
			c.Options, remembered.Ceremony = options, *ceremony
		case factor.SMS:
			number, err := s.factors.Number(asked[0])
			if err != nil {
				return c, err
			}
			valid, c.Number, c.ResendAfter = smsFor, factor.Masked(number), resendAfter
			remembered.Factor, remembered.Code = asked[0].ID, factor.NewCode()
			if err := s.text(ctx, t, userID, number, remembered.Code); err != nil {
				return c, err
			}
		}
	}
	secret, handed, err := s.tokens.Create(ctx, onetime.New{Kind: kindChallenge, TenantID: t.ID, UserID: userID, Payload: remembered, For: valid})
	c.ID, c.ExpiresAt = secret, handed.ExpiresAt
	return c, err
}

// text sends a code to a telephone, after the answer. It fails with [*SlowDownError].
func (s *Service) text(ctx context.Context, t Tenant, userID, number, code string) error {
	if err := s.limit(ctx, t.ID, "text", userID, ratelimit.Limit{Requests: 3, Window: 10 * time.Minute}); err != nil {
		return err
	}
	if err := s.outbox.Put(ctx, t.ID, jobText, textJob{number, code}); err != nil {
		return err
	}
	s.outbox.Wake()
	return nil
}

// VerifyFactor goes on with a sign-in by proving a second factor. It fails with
// [ErrToken], [*WrongError] or [*SlowDownError].
func (s *Service) VerifyFactor(ctx context.Context, t Tenant, mfaToken string, a Answer, by By) (Result, error) {
	// The account first: a guess that must wait is none of the ticket's few.
	waiting, err := s.tokens.Find(ctx, t.ID, kindMFA, mfaToken)
	if err != nil {
		return Result{}, invalid(err)
	}
	if _, err := s.attempt(ctx, t.ID, secondAccount(waiting.UserID)); err != nil {
		return Result{}, err
	}
	if waiting, err = s.tokens.Try(ctx, t.ID, kindMFA, mfaToken, guesses); err != nil {
		return Result{}, invalid(err)
	}
	var p proof
	if err := waiting.Read(&p); err != nil {
		return Result{}, err
	}
	u, err := s.users.User(ctx, t.ID, waiting.UserID)
	if errors.Is(err, identity.ErrUserNotFound) {
		return Result{}, ErrToken
	}
	if err != nil {
		return Result{}, err
	}
	method, err := s.prove(ctx, t, u, mfaToken, a, waiting.Left(guesses), func(ctx context.Context, tx *sqldb.Tx) error {
		return invalid(onetime.Use(ctx, tx, waiting))
	})
	if err != nil {
		return Result{}, err
	}
	return s.resume(ctx, t, u, p.withSecond(method), by)
}

// prove judges an answer and, if it is right, commits that together with what it is for.
// It returns the method by its name of RFC 8176.
func (s *Service) prove(ctx context.Context, t Tenant, u identity.User, purpose string, a Answer, left int,
	then func(ctx context.Context, tx *sqldb.Tx) error,
) (method string, err error) {
	var asked challenge
	var handed onetime.Token
	if a.Kind == factor.SMS || a.Kind == factor.WebAuthn {
		handed, err = s.tokens.Find(ctx, t.ID, kindChallenge, a.ChallengeID)
		if err == nil {
			err = handed.Read(&asked)
		}
		if err == nil && (handed.UserID != u.ID || asked.Purpose != purpose) {
			err = ErrToken
		}
		if err != nil {
			return "", invalid(err)
		}
	}
	factors, err := s.factors.List(ctx, t.ID, u.ID)
	if err != nil {
		return "", err
	}
	var owned factor.Factor
	if a.Kind == factor.WebAuthn {
		if owned, err = s.factors.Owner(ctx, t.ID, u.ID, a.Credential); err != nil {
			return "", s.unproved(ctx, t, u, a.Kind, left, err)
		}
	}
	err = s.db.Tx(ctx, func(tx *sqldb.Tx) error {
		var b sqldb.Batch
		s.forgive(&b, t.ID, secondAccount(u.ID))
		err := factor.ErrWrong
		switch a.Kind {
		case factor.TOTP:
			for _, f := range factors {
				if f.Kind == factor.TOTP && errors.Is(err, factor.ErrWrong) {
					err = s.factors.VerifyTOTP(ctx, tx, f, a.Code)
				}
			}
		case factor.BackupCode:
			if err = s.factors.UseBackupCode(ctx, tx, t.ID, u.ID, a.Code); err == nil {
				eventlog.Append(&b, t.ID, backupCodeUsed(as(ctx, u.ID), u))
			}
		case factor.SMS:
			i := slices.IndexFunc(factors, func(f factor.Factor) bool { return f.ID == asked.Factor })
			if i >= 0 && asked.Code != "" && factor.SameCode(asked.Code, a.Code) {
				s.factors.Used(&b, factors[i])
				err = invalid(onetime.Use(ctx, tx, handed))
			}
		case factor.WebAuthn:
			_, err = s.factors.VerifyAssertion(ctx, tx, party(t), owned, asked.Ceremony, a.Credential)
			if err == nil {
				err = invalid(onetime.Use(ctx, tx, handed))
			}
		default:
			err = ErrKind
		}
		if err == nil {
			err = then(ctx, tx)
		}
		if err == nil {
			err = tx.Send(ctx, &b)
		}
		return err
	})
	return a.Kind.Method(), s.unproved(ctx, t, u, a.Kind, left, err)
}

// unproved notes that an answer was wrong, if that is what an error says.
func (s *Service) unproved(ctx context.Context, t Tenant, u identity.User, kind factor.Kind, left int, err error) error {
	if !errors.Is(err, factor.ErrWrong) {
		return err
	}
	event := signInFailed(as(ctx, u.ID), failure{User: subjectOrNull(u), Reason: "wrong_" + string(kind)})
	if err := s.note(ctx, t.ID, event); err != nil {
		return err
	}
	return &WrongError{kind, left}
}

// party is whom the credentials of a tenant are made for.
func party(t Tenant) factor.Party { return factor.Party{Name: t.Name, Origin: t.BaseURL} }

// limit counts what must not happen too often. It fails with [*SlowDownError].
func (s *Service) limit(ctx context.Context, tenantID, what, whose string, limits ...ratelimit.Limit) error {
	if s.limits == nil {
		return nil
	}
	for _, l := range limits {
		bucket := ratelimit.Bucket{Tenant: tenantID, Counted: ratelimit.Counted{Family: ratelimit.Family(what), By: "account"}, Key: s.accountKey(whose)}
		d, err := s.limits.Take(ctx, bucket, l)
		if err != nil {
			return err
		}
		if d.Limited {
			return &SlowDownError{d.RetryAfter}
		}
	}
	return nil
}
