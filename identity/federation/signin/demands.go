package signin

import (
	"context"
	"slices"
	"time"

	"stonetown/identity/federation"
	"stonetown/identity/federation/relyingparty"
)

// Demands are what the application of a sign-in demands of the authentication. The zero value demands
// nothing: a session at the provider suffices, however old it is.
type Demands struct {
	// Fresh demands that the user authenticates again (prompt=login).
	Fresh bool
	// MaxAge is the greatest time since the user authenticated (max_age); nil: any.
	MaxAge *time.Duration
	// SecondFactor prefers a second factor (acr_values).
	SecondFactor bool
}

// request returns the request with the demands, as far as the provider understands them. Its answer
// is compared with them: an older auth_time is refused, and a second factor counts only if the
// provider states it. Only OpenID providers of a tenant must state auth_time for max_age; others are
// asked to authenticate the user again.
func (s *Service) request(ctx context.Context, c federation.Connection, p relyingparty.Provider, d Demands) (r relyingparty.Request, err error) {
	r.Fresh = d.Fresh
	if c.Kind == federation.OIDC {
		r.MaxAge = d.MaxAge
	} else if d.MaxAge != nil {
		r.Fresh = true
	}
	if d.SecondFactor && c.SecondFactor == federation.AcceptSecondFactor {
		m, err := s.Providers.Metadata(ctx, p)
		if err != nil {
			return r, err
		}
		r.ACRValues = slices.DeleteFunc(slices.Clone(multiFactor), func(acr string) bool { return !slices.Contains(m.ACRValues, acr) })
	}
	return r, nil
}

// authTime returns the time of an authentication as a session has it. A provider states it in full
// seconds of its own clock, so one shortly before the sign-in began was made during the sign-in.
func authTime(stated, begun, now time.Time) time.Time {
	switch {
	case stated.IsZero(), stated.After(now):
		return now
	case stated.Before(begun) && !stated.Before(begun.Add(-relyingparty.Skew)):
		return begun
	}
	return stated
}
