package authn

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"stonetown/identity"
	"stonetown/identity/flow"
)

// begins reports whether a session begins with a status. The flow of the tenant runs before.
func (s Status) begins() bool { return s == Complete || s == EnrolmentRequired }

// runFlow runs the flow of the tenant before a session begins. It fails with [*flow.DeniedError].
func (s *Service) runFlow(ctx context.Context, t Tenant, version int, a account, p proof, d Device) (flow.Outcome, error) {
	known, others, err := s.sessions.Knows(ctx, t.ID, a.user.ID, d.Device)
	if err != nil {
		return flow.Outcome{}, err
	}
	in := s.flowInput(a.user, d)
	in.Methods, in.SecondFactor, in.HasFactors = p.Methods, p.Second, a.factors > 0
	in.NewDevice = !known && (others || !a.user.LastSignedInAt.IsZero())
	if p.Federated != nil {
		in.Connection = p.Federated.Identity.Slug
	}
	return s.flows.Run(ctx, t.ID, version, flow.SignIn, in, p.Flow)
}

// admitSignUp runs the flow of the tenant before an account is created by its user, at a connection if
// the slug of one is given. It fails with [*flow.DeniedError].
func (s *Service) admitSignUp(ctx context.Context, t Tenant, settings identity.Settings, u identity.User, connection string, d Device) error {
	if settings.SignInFlow == 0 {
		return nil
	}
	in := s.flowInput(u, d)
	in.NewDevice, in.Connection = true, connection
	if connection != "" {
		in.Methods = []string{"fed"}
	}
	_, err := s.flows.Run(ctx, t.ID, settings.SignInFlow, flow.SignUp, in, nil)
	return err
}

func (s *Service) flowInput(u identity.User, d Device) flow.Input {
	return flow.Input{User: u, IP: d.IP, Country: s.geoIP.Find(d.IP).Country, UserAgent: d.UserAgent, At: s.now()}
}

// claimsOf returns the claims of an outcome in the form of [session.New].
func claimsOf(o flow.Outcome) (string, error) {
	if len(o.Claims) == 0 {
		return "", nil
	}
	text, err := json.Marshal(o.Claims)
	if err != nil {
		return "", fmt.Errorf("claims of sign-in flow: %w", err)
	}
	return string(text), nil
}

// IsDenied reports whether a sign-up or a sign-in was refused by the flow of the tenant, and the message
// for the user, which can be empty.
func IsDenied(err error) (message string, denied bool) {
	refused, denied := errors.AsType[*flow.DeniedError](err)
	if !denied {
		return "", false
	}
	return refused.Message, true
}

// PreviewOf returns a user, and whether the user has second factors, for a preview of the flow. It fails
// with [identity.ErrUserNotFound].
func (s *Service) PreviewOf(ctx context.Context, tenantID, userID string) (u identity.User, hasFactors bool, err error) {
	if u, err = s.users.User(ctx, tenantID, userID); err != nil {
		return u, false, err
	}
	factors, err := s.factors.List(ctx, tenantID, userID)
	return u, len(factors) > 0, err
}
