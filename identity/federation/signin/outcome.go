package signin

import (
	"cmp"
	"errors"

	"stonetown/identity/authn"
	"stonetown/identity/external"
	"stonetown/identity/federation"
)

// The outcomes of a start or a callback that [Config.Observe] receives, besides [Failure.Reason] for
// one that failed at the provider.
const (
	outcomeStarted  = "started"        // the browser was sent to the provider
	outcomeAccepted = "accepted"       // the answer was accepted: there is a session, a next step, or a link
	outcomeExpired  = "expired"        // the answer of no sign-in in progress
	outcomeDisabled = "disabled"       // the connection is disabled
	outcomeRefused  = "refused"        // the account is not for this user, or is disabled
	outcomeFailed   = "internal_error" // the server failed
)

// observed reports the outcome of a start or a callback: success unless there is an error. Tests of
// connections are not reported, and neither is an answer that belongs to no connection.
func (s *Service) observed(c federation.Connection, success string, err error) {
	if c.Kind == "" {
		return
	}
	outcome := success
	if failed, ok := errors.AsType[*Failure](err); ok {
		outcome = cmp.Or(failed.Reason, outcomeFailed)
	} else if err != nil {
		outcome = outcomeOf(err)
	}
	s.Observe(c.Kind, outcome)
}

func outcomeOf(err error) string {
	refusals := []error{
		authn.ErrNotProvisioned, authn.ErrAccountExists, authn.ErrNoEmail, authn.ErrDisabled, authn.ErrToken, authn.ErrCredentials,
		external.ErrTaken, external.ErrOther, external.ErrLimit,
	}
	switch {
	case errors.Is(err, ErrExpired):
		return outcomeExpired
	case errors.Is(err, ErrDisabled):
		return outcomeDisabled
	}
	for _, refusal := range refusals {
		if errors.Is(err, refusal) {
			return outcomeRefused
		}
	}
	return outcomeFailed
}
