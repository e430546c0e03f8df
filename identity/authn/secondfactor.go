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

// Challenge is a request to prove a second factor.
type Challenge struct {
	ID          string
	Options     any    // of WebAuthn: PublicKeyCredentialRequestOptionsJSON
	Number      string // of SMS: the masked phone number
	ResendAfter time.Duration
	ExpiresAt   time.Time
}

// Answer is the response to a challenge. TOTP and backup codes need no challenge.
type Answer struct {
	Kind        factor.Kind
	Code        string
	Credential  []byte // AuthenticationResponseJSON
	ChallengeID string
}

const kindChallenge onetime.Kind = "challenge"

// challenge is the data of a challenge.
type challenge struct {
	Purpose  string          `json:"purpose"` // the one-time token or the session that it belongs to
	Factor   string          `json:"factor,omitzero"`
	Code     string          `json:"code,omitzero"`
	Ceremony factor.Ceremony `json:"ceremony,omitzero"`
}

const (
	smsFor      = 5 * time.Minute
	resendAfter = 30 * time.Second
)

// Challenge creates a challenge for the user of a sign-in in progress: for one factor or, if
// factorID is empty, for any factor of a kind. It fails with [ErrToken] or [ErrKind].
func (s *Service) Challenge(ctx context.Context, t Tenant, mfaToken, factorID string, kind factor.Kind) (Challenge, error) {
	waiting, err := s.tokens.Find(ctx, t.ID, kindMFA, mfaToken)
	if err != nil {
		return Challenge{}, invalid(err)
	}
	return s.challenge(ctx, t, waiting.UserID, mfaToken, factorID, kind)
}

// challenge creates a challenge for one purpose.
func (s *Service) challenge(ctx context.Context, t Tenant, userID, purpose, factorID string, kind factor.Kind) (c Challenge, err error) {
	factors, err := s.factors.List(ctx, t.ID, userID)
	if err != nil {
		return c, err
	}
	allowed := slices.DeleteFunc(slices.Clone(factors), func(f factor.Factor) bool {
		return factorID != "" && f.ID != factorID || factorID == "" && f.Kind != kind
	})
	if len(allowed) == 0 && (kind != factor.BackupCode || factorID != "") {
		return c, ErrKind
	}
	state := challenge{Purpose: purpose}
	valid := mfaFor
	if len(allowed) > 0 {
		switch allowed[0].Kind {
		case factor.WebAuthn:
			if factorID == "" {
				allowed = factors
			}
			options, ceremony, err := s.factors.BeginAssertion(party(t), factor.Person{TenantID: t.ID, UserID: userID}, allowed, false)
			if err != nil {
				return c, err
			}
			c.Options, state.Ceremony = options, *ceremony
		case factor.SMS:
			number, err := s.factors.Number(allowed[0])
			if err != nil {
				return c, err
			}
			valid, c.Number, c.ResendAfter = smsFor, factor.Masked(number), resendAfter
			state.Factor, state.Code = allowed[0].ID, factor.NewCode()
			if err := s.queueSMS(ctx, t, userID, number, state.Code); err != nil {
				return c, err
			}
		}
	}
	secret, token, err := s.tokens.Create(ctx, onetime.New{Kind: kindChallenge, TenantID: t.ID, UserID: userID, Payload: state, For: valid})
	c.ID, c.ExpiresAt = secret, token.ExpiresAt
	return c, err
}

// queueSMS queues a text message with a code. It fails with [*SlowDownError].
func (s *Service) queueSMS(ctx context.Context, t Tenant, userID, number, code string) error {
	if err := s.limit(ctx, t.ID, "text", userID, ratelimit.Limit{Requests: 3, Window: 10 * time.Minute}); err != nil {
		return err
	}
	if err := s.jobs.Put(ctx, t.ID, jobSMS, sms{userID, number, code}); err != nil {
		return err
	}
	s.jobs.Wake()
	return nil
}

// VerifyFactor continues a sign-in with a second factor. It fails with
// [ErrToken], [*WrongError] or [*SlowDownError].
func (s *Service) VerifyFactor(ctx context.Context, t Tenant, mfaToken string, a Answer, d Device) (Result, error) {
	// The limit of the account comes first: a refused attempt does not count for the token.
	waiting, err := s.tokens.Find(ctx, t.ID, kindMFA, mfaToken)
	if err != nil {
		return Result{}, invalid(err)
	}
	if _, err := s.attempt(ctx, t.ID, secondAccount(waiting.UserID)); err != nil {
		return Result{}, err
	}
	if waiting, err = s.tokens.Try(ctx, t.ID, kindMFA, mfaToken, maxAttempts); err != nil {
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
	method, err := s.prove(ctx, t, u, mfaToken, a, waiting.Left(maxAttempts), func(ctx context.Context, tx *sqldb.Tx) error {
		return invalid(onetime.Use(ctx, tx, waiting))
	})
	if err != nil {
		return Result{}, err
	}
	return s.resume(ctx, t, u, p.withSecond(method), d)
}

// prove verifies an answer and, if it is correct, runs then in the same transaction. It returns
// the method (RFC 8176).
func (s *Service) prove(ctx context.Context, t Tenant, u identity.User, purpose string, a Answer, left int,
	then func(ctx context.Context, tx *sqldb.Tx) error,
) (method string, err error) {
	var state challenge
	var found onetime.Token
	if a.Kind == factor.SMS || a.Kind == factor.WebAuthn {
		found, err = s.tokens.Find(ctx, t.ID, kindChallenge, a.ChallengeID)
		if err == nil {
			err = found.Read(&state)
		}
		if err == nil && (found.UserID != u.ID || state.Purpose != purpose) {
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
			return "", s.wrongAnswer(ctx, t, u, a.Kind, left, err)
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
			i := slices.IndexFunc(factors, func(f factor.Factor) bool { return f.ID == state.Factor })
			if i >= 0 && state.Code != "" && factor.SameCode(state.Code, a.Code) {
				s.factors.Used(&b, factors[i])
				err = invalid(onetime.Use(ctx, tx, found))
			}
		case factor.WebAuthn:
			_, err = s.factors.VerifyAssertion(ctx, tx, party(t), owned, state.Ceremony, a.Credential)
			if err == nil {
				err = invalid(onetime.Use(ctx, tx, found))
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
	return a.Kind.Method(), s.wrongAnswer(ctx, t, u, a.Kind, left, err)
}

// wrongAnswer records an event if an error means that an answer is wrong.
func (s *Service) wrongAnswer(ctx context.Context, t Tenant, u identity.User, kind factor.Kind, left int, err error) error {
	if !errors.Is(err, factor.ErrWrong) {
		return err
	}
	event := signInFailed(as(ctx, u.ID), failure{User: subjectOrNull(u), Reason: "wrong_" + string(kind)})
	if err := s.record(ctx, t.ID, event); err != nil {
		return err
	}
	return &WrongError{kind, left}
}

// party is the WebAuthn relying party of a tenant.
func party(t Tenant) factor.Party { return factor.Party{Name: t.Name, Origin: t.BaseURL} }

// limit counts an operation on an account against limits. It fails with [*SlowDownError].
func (s *Service) limit(ctx context.Context, tenantID, operation, account string, limits ...ratelimit.Limit) error {
	for _, l := range limits {
		bucket := ratelimit.Bucket{Tenant: tenantID, Counted: ratelimit.Counted{Family: ratelimit.Family(operation), By: "account"}, Key: s.accountKey(account)}
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
