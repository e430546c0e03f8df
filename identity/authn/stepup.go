package authn

import (
	"context"
	"time"

	"stonetown/identity"
	"stonetown/identity/factor"
	"stonetown/identity/session"
	"stonetown/internal/eventlog"
	"stonetown/internal/sqldb"
)

// SteppedUp reports whether a second factor was proved recently enough for the operations that
// require one (AAL 2 of NIST SP 800-63B).
func (s *Service) SteppedUp(secondFactor time.Time) bool {
	return !secondFactor.IsZero() && s.now().Sub(secondFactor) <= StepUpFor
}

// Way is the way in which a user can reach AAL 2.
type Way int

// The ways to AAL 2.
const (
	NoWay Way = iota // none: the tenant does not use second factors
	Prove            // by proving a factor
	Enrol            // by adding a first factor
)

// WayToAAL2 returns the way in which a user can reach AAL 2.
func (s *Service) WayToAAL2(ctx context.Context, tenantID, userID string) (Way, error) {
	factors, err := s.factors.List(ctx, tenantID, userID)
	if err != nil || len(factors) > 0 {
		return Prove, err
	}
	settings, err := s.users.Settings(ctx, tenantID)
	if err != nil || settings.MFA.Mode == identity.MFAOff || len(settings.MFA.Kinds) == 0 {
		return NoWay, err
	}
	return Enrol, nil
}

// BeginStepUp creates a challenge for the user of a session, as [Service.Challenge] does.
func (s *Service) BeginStepUp(ctx context.Context, t Tenant, current session.Session, factorID string, kind factor.Kind) (Challenge, error) {
	return s.challenge(ctx, t, current.UserID, current.ID, factorID, kind)
}

// CompleteStepUp raises a session to AAL 2 and replaces its token. It fails with
// [ErrToken], [*WrongError] or [*SlowDownError].
func (s *Service) CompleteStepUp(ctx context.Context, t Tenant, current session.Session, a Answer) (now session.Session, token string, err error) {
	if _, err := s.attempt(ctx, t.ID, secondAccount(current.UserID)); err != nil {
		return now, "", err
	}
	u, err := s.users.User(ctx, t.ID, current.UserID)
	if err != nil {
		return now, "", err
	}
	_, err = s.prove(ctx, t, u, current.ID, a, 0, func(ctx context.Context, tx *sqldb.Tx) error {
		var b sqldb.Batch
		now, token = s.sessions.StepUp(&b, current, a.Kind.Method())
		eventlog.Append(&b, t.ID, session.SteppedUp(ctx, now))
		return tx.Send(ctx, &b)
	})
	return now, token, err
}
