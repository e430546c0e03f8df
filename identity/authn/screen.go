package authn

import (
	"context"

	"stonetown/identity"
	"stonetown/identity/threat"
	"stonetown/internal/eventlog"
)

// Threats matches the threat feeds of tenants; [threat.Feeds] implements it.
type Threats interface {
	// Match returns the matches of the address of a client and of an e-mail address. revision is
	// [identity.Settings.ThreatRevision].
	Match(ctx context.Context, tenantID string, revision int64, address, email string) ([]threat.Match, error)
}

// NoThreats are [Threats] without feeds.
type NoThreats struct{}

// Match implements [Threats].
func (NoThreats) Match(context.Context, string, int64, string, string) ([]threat.Match, error) {
	return nil, nil
}

// screenSignIn matches a step of a sign-in whose proof is valid. A match is recorded once a sign-in,
// and that it was is returned; noted says that an earlier step has recorded one. screenSignIn fails
// with [ErrThreat] if a feed refuses.
func (s *Service) screenSignIn(ctx context.Context, settings identity.Settings, u identity.User, noted bool) (bool, error) {
	return s.screen(ctx, u.TenantID, settings, threat.Attempt{During: "sign_in", UserID: u.ID, Email: u.Email}, noted)
}

// screenSignUp matches the request for an account. It fails with [ErrThreat] if a feed refuses.
func (s *Service) screenSignUp(ctx context.Context, t Tenant, settings identity.Settings, email string) error {
	_, err := s.screen(ctx, t.ID, settings, threat.Attempt{During: "sign_up", Email: email}, false)
	return err
}

func (s *Service) screen(ctx context.Context, tenantID string, settings identity.Settings, a threat.Attempt, noted bool) (bool, error) {
	if settings.ThreatRevision == 0 {
		return noted, nil
	}
	matches, err := s.threats.Match(ctx, tenantID, settings.ThreatRevision, eventlog.OriginOf(ctx).ClientIP, a.Email)
	if err != nil || len(matches) == 0 {
		return noted, err
	}
	refused := threat.Refused(matches)
	if !noted || refused {
		if err := s.record(ctx, tenantID, threat.Matched(ctx, a, matches)...); err != nil {
			return noted, err
		}
	}
	if refused {
		return noted, ErrThreat
	}
	return true, nil
}
