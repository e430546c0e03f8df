package serviceprovider

import (
	"net/url"
	"time"

	"stonetown/internal/samlprotocol"
)

// The messages of single logout, which identity providers share, see [samlprotocol].
type (
	LogoutRequest  = samlprotocol.LogoutRequest
	LogoutResponse = samlprotocol.LogoutResponse
	Logout         = samlprotocol.Logout
	PendingLogout  = samlprotocol.PendingLogout
)

// singleLogout returns single logout between the two providers.
func (p *Provider) singleLogout() (samlprotocol.SingleLogout, error) {
	if err := p.check(); err != nil {
		return samlprotocol.SingleLogout{}, err
	}
	certificates, err := p.IdentityProvider.Signers()
	return samlprotocol.SingleLogout{
		EntityID: p.EntityID, URL: p.SLO, Keys: p.Keys,
		Peer: p.IdentityProvider.EntityID, Services: p.IdentityProvider.SingleLogout, Certificates: certificates,
	}, err
}

// CanLogout reports whether the identity provider has single logout, and this service provider a
// key and a URL for it. Messages of logout must be signed (SAML Profiles §4.4.4.1).
func (p *Provider) CanLogout() bool {
	l, err := p.singleLogout()
	return err == nil && l.Available()
}

// BeginLogout returns the message that requests the end of a session at the identity provider and
// at its other service providers. Without sessionIndex, all sessions of the subject end.
func (p *Provider) BeginLogout(s NameID, sessionIndex string, now time.Time) (Message, PendingLogout, error) {
	l, err := p.singleLogout()
	if err != nil {
		return Message{}, PendingLogout{}, err
	}
	return l.Begin(s, sessionIndex, now)
}

// AnswerLogout returns the answer to a request, with its RelayState. Partial reports that not all
// sessions ended.
func (p *Provider) AnswerLogout(r LogoutRequest, relayState string, partial bool, now time.Time) (Message, error) {
	l, err := p.singleLogout()
	if err != nil {
		return Message{}, err
	}
	return l.Answer(r, relayState, partial, now)
}

// ReadLogoutQuery reads a message of the redirect binding from the raw query of a URL.
func (p *Provider) ReadLogoutQuery(query string, now time.Time) (Logout, error) {
	m, err := samlprotocol.ReadQuery(query)
	if err != nil {
		return Logout{}, err
	}
	return p.readLogout(m, now)
}

// ReadLogoutForm reads a message of the POST binding.
func (p *Provider) ReadLogoutForm(form url.Values, now time.Time) (Logout, error) {
	m, err := samlprotocol.ReadForm(form)
	if err != nil {
		return Logout{}, err
	}
	return p.readLogout(m, now)
}

func (p *Provider) readLogout(m samlprotocol.Received, now time.Time) (Logout, error) {
	l, err := p.singleLogout()
	if err != nil {
		return Logout{}, err
	}
	return l.Read(m, now)
}

// FinishLogout validates an answer against its request. Complete reports that all sessions ended;
// some did not if it is false without an error.
func (p *Provider) FinishLogout(pending PendingLogout, l Logout) (complete bool, err error) {
	s, err := p.singleLogout()
	if err != nil {
		return false, err
	}
	return s.Finish(pending, l)
}
