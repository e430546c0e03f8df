package saml

import (
	"context"
	"slices"

	"stonetown/internal/samlprotocol"
	"stonetown/oauth/authorization"
	"stonetown/oauth/client"
	"stonetown/oauth/protocol"
)

// Logout is a valid message of single logout (SAML Profiles §4.4), with which
// [Service.ContinueLogout] continues.
type Logout struct {
	// Sessions are the ids of the sessions that a service provider requests to end: those that it
	// names, which may have ended already, or all of its user.
	Sessions []string

	app     client.Application // the sender
	channel samlprotocol.SingleLogout
	message samlprotocol.Logout
}

// IsRequest reports whether the message is a request, whose sessions must end before the sign-out
// continues.
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
	l := Logout{app: app, channel: p.SingleLogout(sp)}
	if l.message, err = l.channel.Read(m, s.Clock()); err != nil {
		return Logout{}, s.refusal(ctx, tenant, app, err)
	}
	message := l.message
	if message.Request == nil || !matches(message.Request.Subject, p.NameID(sp, message.Request.Subject.Value)) {
		return l, nil
	}
	grants, err := s.Access.SignIns(ctx, tenant, app.ClientID, message.Request.Subject.Value, message.Request.SessionIndexes)
	if err != nil {
		return l, err
	}
	for _, g := range grants {
		id := g.Authentication.SessionID
		if slices.Contains(l.Sessions, id) {
			continue
		}
		// A session that is named may have ended without its service providers, which are reached
		// now. The others of the past would be too many.
		live := len(message.Request.SessionIndexes) > 0
		if !live {
			if live, err = s.Users.SessionLive(ctx, tenant.ID, id); err != nil {
				return l, err
			}
		}
		if live {
			l.Sessions = append(l.Sessions, id)
		}
	}
	return l, nil
}

// matches reports whether a name in a message is a name here. Members that the message does not
// have do not matter: many service providers return the value only.
func matches(got, own samlprotocol.NameID) bool {
	same := func(got, own string) bool { return got == "" || got == own }
	return got.Value == own.Value && same(got.Format, own.Format) && same(got.NameQualifier, own.NameQualifier) &&
		same(got.SPNameQualifier, own.SPNameQualifier) && got.SPProvidedID == ""
}
