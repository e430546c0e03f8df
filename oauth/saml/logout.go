package saml

import (
	"context"
	"slices"

	"stonetown/internal/samlprotocol"
	"stonetown/oauth/authorization"
	"stonetown/oauth/client"
	"stonetown/oauth/protocol"
)

// Logout is a valid message of single logout (SAML Profiles §4.4).
type Logout struct {
	// Sessions are the ids of the sessions that a service provider requests to end. They may have
	// ended already.
	Sessions []string
	// Partial reports that the user signed in to other service providers in these sessions, which
	// have single logout, too.
	Partial bool

	clientID string
	message  samlprotocol.Logout
}

// IsRequest reports whether the message is a request, which [Service.AnswerLogout] answers.
func (l Logout) IsRequest() bool { return l.message.Request != nil }

// ReadLogout validates a message of single logout, which its sender must have signed. It fails as
// [Service.Read] does, with [*authorization.PageError] only.
func (s *Service) ReadLogout(ctx context.Context, tenant protocol.Tenant, m samlprotocol.Received) (Logout, error) {
	issuer, err := m.Issuer()
	if err != nil {
		return Logout{}, s.refusal(ctx, tenant, client.Application{}, err)
	}
	app, sp, err := s.application(ctx, tenant, issuer)
	if err != nil {
		return Logout{}, err
	}
	if app.ServiceProvider.SLOURL == "" || len(sp.Certificates) == 0 {
		return Logout{}, &authorization.PageError{Description: "the application has no slo_url, or no certificate that verifies its messages"}
	}
	p, err := s.provider(ctx, tenant)
	if err != nil {
		return Logout{}, err
	}
	message, err := p.SingleLogout(sp).Read(m, s.Clock())
	if err != nil {
		return Logout{}, s.refusal(ctx, tenant, app, err)
	}
	l := Logout{clientID: app.ClientID, message: message}
	if message.Request == nil || !matches(message.Request.Subject, p.NameID(sp, message.Request.Subject.Value)) {
		return l, nil
	}
	grants, err := s.Access.SignIns(ctx, tenant, app.ClientID, message.Request.Subject.Value, message.Request.SessionIndexes)
	if err != nil {
		return l, err
	}
	for _, g := range grants {
		if !slices.Contains(l.Sessions, g.Authentication.SessionID) {
			l.Sessions = append(l.Sessions, g.Authentication.SessionID)
		}
	}
	l.Partial, err = s.others(ctx, tenant, l)
	return l, err
}

// matches reports whether a name in a message is a name here. Members that the message does not
// have do not matter: many service providers return the value only.
func matches(got, own samlprotocol.NameID) bool {
	same := func(got, own string) bool { return got == "" || got == own }
	return got.Value == own.Value && same(got.Format, own.Format) && same(got.NameQualifier, own.NameQualifier) &&
		same(got.SPNameQualifier, own.SPNameQualifier) && got.SPProvidedID == ""
}

// others reports whether the user signed in to other applications with single logout in the
// sessions of a request.
func (s *Service) others(ctx context.Context, tenant protocol.Tenant, l Logout) (bool, error) {
	for _, sessionID := range l.Sessions {
		list, err := s.Access.ServiceProviders(ctx, tenant, sessionID)
		if err != nil {
			return false, err
		}
		for _, clientID := range list {
			app, err := s.Clients.ByClientID(ctx, tenant.ID, clientID)
			switch {
			case client.IsNotFound(err) || clientID == l.clientID:
			case err != nil:
				return false, err
			case app.ServiceProvider.SLOURL != "":
				return true, nil
			}
		}
	}
	return false, nil
}

// AnswerLogout returns the answer to a request whose sessions have ended. It fails as
// [Service.ReadLogout] does.
func (s *Service) AnswerLogout(ctx context.Context, tenant protocol.Tenant, l Logout) (samlprotocol.Message, error) {
	app, sp, p, err := s.parties(ctx, tenant, l.clientID)
	if err != nil {
		return samlprotocol.Message{}, err
	}
	message, err := p.SingleLogout(sp).Answer(*l.message.Request, l.message.RelayState, l.Partial, s.Clock())
	if err != nil {
		return message, s.refusal(ctx, tenant, app, err)
	}
	return message, nil
}
