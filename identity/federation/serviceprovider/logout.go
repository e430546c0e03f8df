package serviceprovider

import (
	"cmp"
	"crypto/rand"
	"encoding/xml"
	"net/url"
	"time"

	"github.com/beevik/etree"
	"github.com/crewjam/saml"
)

// logoutLifetime is the time in which a request or response of single logout must arrive. There is
// no other protection against its replay than this, and that a session ends once.
const logoutLifetime = 5 * time.Minute

// maxSessions is the maximum number of sessions in a request of single logout.
const maxSessions = 100

// LogoutRequest is a request of the identity provider to end sessions of a user (SAML Core §3.7.1).
type LogoutRequest struct {
	ID      string
	Subject NameID // all members must equal those of the session
	// SessionIndexes name the sessions; empty: all sessions of the subject.
	SessionIndexes []string
}

// LogoutResponse is the answer to a request of this service provider.
type LogoutResponse struct {
	InResponseTo string
	status       status
}

// Logout is a message for the URL of single logout, of which one is set, with a valid signature.
type Logout struct {
	Request    *LogoutRequest
	Response   *LogoutResponse
	RelayState string // to be returned with an answer
}

// PendingLogout is a request between [Provider.BeginLogout] and [Provider.FinishLogout], as
// [Pending] is for a sign-in.
type PendingLogout struct {
	RequestID  string
	RelayState string // random
	Provider   string // entity id of the identity provider
}

// CanLogout reports whether the identity provider has single logout, and this service provider a
// key and a URL for it. Messages of logout must be signed (SAML Profiles §4.4.4.1).
func (p *Provider) CanLogout() bool {
	_, signed := p.signs()
	return signed && p.SLO != "" && len(p.IdentityProvider.SingleLogout) > 0
}

// BeginLogout returns the message that requests the end of a session at the identity provider and
// at its other service providers. Without sessionIndex, all sessions of the subject end.
func (p *Provider) BeginLogout(s NameID, sessionIndex string, now time.Time) (Message, PendingLogout, error) {
	service, err := p.logoutService()
	if err != nil {
		return Message{}, PendingLogout{}, err
	}
	pending := PendingLogout{newID(), rand.Text(), p.IdentityProvider.EntityID}
	request := saml.LogoutRequest{
		ID: pending.RequestID, Version: version, IssueInstant: instant(now), NotOnOrAfter: new(instant(now.Add(logoutLifetime))),
		Destination: service.Location, Issuer: &saml.Issuer{Value: p.EntityID},
		NameID: &saml.NameID{
			Value: s.Value, Format: s.Format, NameQualifier: s.NameQualifier,
			SPNameQualifier: s.SPNameQualifier, SPProvidedID: s.SPProvidedID,
		},
	}
	if sessionIndex != "" {
		request.SessionIndex = &saml.SessionIndex{Value: sessionIndex}
	}
	message, err := p.send(service.Binding, service.Location, requestParam, request.Element(), pending.RelayState)
	return message, pending, err
}

// logoutService returns the service for messages of single logout.
func (p *Provider) logoutService() (Service, error) {
	service, ok := choose(p.IdentityProvider.SingleLogout)
	if !ok || !p.CanLogout() || p.check() != nil {
		return service, failed(Misconfigured, "single logout requires a service of the identity provider, and a key and a URL of the service provider")
	}
	return service, nil
}

// AnswerLogout returns the answer to a request, with its RelayState. Partial reports that not all
// sessions ended.
func (p *Provider) AnswerLogout(r LogoutRequest, relayState string, partial bool, now time.Time) (Message, error) {
	service, err := p.logoutService()
	if err != nil {
		return Message{}, err
	}
	code := saml.StatusCode{Value: saml.StatusSuccess}
	if partial {
		code = saml.StatusCode{Value: saml.StatusResponder, StatusCode: &saml.StatusCode{Value: saml.StatusPartialLogout}}
	}
	to := cmp.Or(service.ResponseLocation, service.Location)
	response := saml.LogoutResponse{
		ID: newID(), InResponseTo: r.ID, Version: version, IssueInstant: instant(now),
		Destination: to, Issuer: &saml.Issuer{Value: p.EntityID}, Status: saml.Status{StatusCode: code},
	}
	return p.send(service.Binding, to, responseParam, response.Element(), relayState)
}

// ReadLogoutQuery reads a message of the redirect binding from the raw query of a URL.
func (p *Provider) ReadLogoutQuery(query string, now time.Time) (Logout, error) {
	if err := p.check(); err != nil {
		return Logout{}, err
	}
	m, err := p.readQuery(query, now)
	if err != nil {
		return Logout{}, err
	}
	return p.readLogout(m, now)
}

// ReadLogoutForm reads a message of the POST binding.
func (p *Provider) ReadLogoutForm(form url.Values, now time.Time) (Logout, error) {
	if err := p.check(); err != nil {
		return Logout{}, err
	}
	m, err := readForm(form)
	if err != nil {
		return Logout{}, err
	}
	return p.readLogout(m, now)
}

// logoutMessage is LogoutRequest or LogoutResponse.
type logoutMessage struct {
	envelope
	NotOnOrAfter string   `xml:"NotOnOrAfter,attr"`
	Names        []nameID `xml:"urn:oasis:names:tc:SAML:2.0:assertion NameID"`
	Sessions     []string `xml:"urn:oasis:names:tc:SAML:2.0:protocol SessionIndex"`
}

// readLogout validates a message. Its signature is that of the redirect binding, which was
// verified, or in the message.
func (p *Provider) readLogout(m received, now time.Time) (Logout, error) {
	name := xml.Name{Space: protocolNS, Local: "LogoutResponse"}
	if m.isRequest {
		name.Local = "LogoutRequest"
	}
	root, err := parse(m.document, name)
	if err != nil {
		return Logout{}, err
	}
	document, err := p.signedLogout(m, root, now)
	if err != nil {
		return Logout{}, err
	}
	var l logoutMessage
	if xml.Unmarshal(document, &l) != nil {
		return Logout{}, refused("the message is not XML")
	}
	if p.SLO == "" {
		return Logout{}, failed(Misconfigured, "the service provider has no URL for single logout")
	}
	if err := l.check(p, p.SLO, true, now); err != nil {
		return Logout{}, err
	}
	if issued, err := parseTime(l.IssueInstant); err != nil || now.After(issued.Add(logoutLifetime+Skew)) {
		return Logout{}, failed(Stale, "the message was issued more than %v ago", logoutLifetime)
	}
	result := Logout{RelayState: m.relayState}
	if m.isRequest {
		if result.Request, err = l.request(now); err != nil {
			return Logout{}, err
		}
		return result, nil
	}
	if len(l.Statuses) != 1 || l.InResponseTo == "" {
		return Logout{}, refused("the response does not have one status, or no InResponseTo")
	}
	result.Response = &LogoutResponse{l.InResponseTo, l.Statuses[0]}
	return result, nil
}

// signedLogout returns the bytes of a message that are signed.
func (p *Provider) signedLogout(m received, root *etree.Element, now time.Time) ([]byte, error) {
	inside := len(children(root, signatureName)) > 0
	switch {
	case m.signed && inside: // (SAML Bindings §3.4.4.1)
		return nil, refused("a message of the redirect binding has a signature in it")
	case m.signed:
		return m.document, nil
	case !inside:
		return nil, refused("the message is not signed")
	}
	certificates, err := p.IdentityProvider.Signers()
	if err != nil {
		return nil, err
	}
	return verify(root, certificates, now)
}

// request returns a validated request.
func (l logoutMessage) request(now time.Time) (*LogoutRequest, error) {
	if _, err := (validity{NotOnOrAfter: l.NotOnOrAfter}).check(now); err != nil {
		return nil, failed(Stale, "the request has expired (NotOnOrAfter)")
	}
	if len(l.Names) != 1 {
		return nil, refused("the request does not have one NameID that is not encrypted")
	}
	if len(l.Sessions) > maxSessions {
		return nil, refused("the request has more than %d sessions", maxSessions)
	}
	s, err := l.Names[0].read()
	if err != nil {
		return nil, err
	}
	return &LogoutRequest{l.ID, s, l.Sessions}, nil
}

// FinishLogout validates an answer against its request. Complete reports that all sessions ended;
// some did not if it is false without an error.
func (p *Provider) FinishLogout(pending PendingLogout, l Logout) (complete bool, err error) {
	switch {
	case l.Response == nil:
		return false, refused("there is a request where a response is expected")
	case pending.RequestID == "" || l.Response.InResponseTo != pending.RequestID || l.RelayState != pending.RelayState,
		pending.Provider != p.IdentityProvider.EntityID:
		return false, failed(Stale, "the response is not for the request of this sign-out")
	}
	if s := l.Response.status; len(s.Codes) == 1 && len(s.Codes[0].Second) > 0 && s.Codes[0].Second[0].Value == saml.StatusPartialLogout {
		return false, nil
	}
	return true, l.Response.status.check()
}
