package samlprotocol

import (
	"cmp"
	"crypto/rand"
	"crypto/x509"
	"encoding/xml"
	"slices"
	"time"

	"github.com/crewjam/saml"
)

// LogoutLifetime is the time in which a request or response of single logout must arrive. There is
// no other protection against its replay than this, and that a session ends once.
const LogoutLifetime = 5 * time.Minute

// maxSessions is the maximum number of sessions in a request of single logout.
const maxSessions = 100

// SingleLogout is single logout between this side and another one (SAML Profiles §4.4). Its
// messages must be signed (§4.4.4.1).
type SingleLogout struct {
	EntityID string // of this side
	URL      string // of this side, for messages; empty: there is no single logout
	Keys     []Key  // the first signs

	Peer         string    // entity id of the other side
	Services     []Service // of the other side
	Certificates []*x509.Certificate
}

// LogoutRequest is a request to end sessions of a user (SAML Core §3.7.1).
type LogoutRequest struct {
	ID      string
	Subject NameID // all members must equal those of the session
	// SessionIndexes name the sessions; empty: all sessions of the subject.
	SessionIndexes []string
}

// LogoutResponse is the answer to a request.
type LogoutResponse struct {
	InResponseTo string
	status       Status
}

// Logout is a message for the URL of single logout, of which one is set, with a valid signature.
type Logout struct {
	Request    *LogoutRequest
	Response   *LogoutResponse
	RelayState string // to be returned with an answer
}

// PendingLogout is a request between [SingleLogout.Begin] and [SingleLogout.Finish]. It is used once.
type PendingLogout struct {
	RequestID  string
	RelayState string // random
	Provider   string // entity id of the other side
}

// Available reports whether both sides have single logout, and this one has a key for it.
func (s SingleLogout) Available() bool {
	return Signer(s.Keys) != nil && s.EntityID != "" && s.Peer != "" && s.URL != "" && len(s.Services) > 0
}

// Begin returns the message that requests the end of a session. Without sessionIndex, all sessions
// of the subject end.
func (s SingleLogout) Begin(subject NameID, sessionIndex string, now time.Time) (Message, PendingLogout, error) {
	service, err := s.service()
	if err != nil {
		return Message{}, PendingLogout{}, err
	}
	pending := PendingLogout{NewID(), rand.Text(), s.Peer}
	request := saml.LogoutRequest{
		ID: pending.RequestID, Version: Version, IssueInstant: Instant(now), NotOnOrAfter: new(Instant(now.Add(LogoutLifetime))),
		Destination: service.Location, Issuer: &saml.Issuer{Value: s.EntityID}, NameID: subject.XML(),
	}
	if sessionIndex != "" {
		request.SessionIndex = &saml.SessionIndex{Value: sessionIndex}
	}
	message, err := Outgoing{
		Binding: service.Binding, To: service.Location, Document: request.Element(), RelayState: pending.RelayState, Key: Signer(s.Keys),
	}.Message()
	return message, pending, err
}

// service returns the service for messages.
func (s SingleLogout) service() (Service, error) {
	service, ok := ChooseService(s.Services)
	if !ok || !s.Available() {
		return service, Failed(Misconfigured, "single logout requires a service of the other side, and a key and a URL of this side")
	}
	return service, nil
}

// Answer returns the answer to a request, with its RelayState. Partial reports that not all
// sessions ended.
func (s SingleLogout) Answer(r LogoutRequest, relayState string, partial bool, now time.Time) (Message, error) {
	service, err := s.service()
	if err != nil {
		return Message{}, err
	}
	code := saml.StatusCode{Value: saml.StatusSuccess}
	if partial {
		code = saml.StatusCode{Value: saml.StatusResponder, StatusCode: &saml.StatusCode{Value: saml.StatusPartialLogout}}
	}
	to := cmp.Or(service.ResponseLocation, service.Location)
	response := saml.LogoutResponse{
		ID: NewID(), InResponseTo: r.ID, Version: Version, IssueInstant: Instant(now),
		Destination: to, Issuer: &saml.Issuer{Value: s.EntityID}, Status: saml.Status{StatusCode: code},
	}
	return Outgoing{
		Binding: service.Binding, To: to, IsResponse: true, Document: response.Element(), RelayState: relayState, Key: Signer(s.Keys),
	}.Message()
}

// logoutMessage is LogoutRequest or LogoutResponse.
type logoutMessage struct {
	Envelope
	NotOnOrAfter string          `xml:"NotOnOrAfter,attr"`
	Names        []NameIDElement `xml:"urn:oasis:names:tc:SAML:2.0:assertion NameID"`
	Sessions     []string        `xml:"urn:oasis:names:tc:SAML:2.0:protocol SessionIndex"`
}

// Read validates a message.
func (s SingleLogout) Read(m Received, now time.Time) (Logout, error) {
	name := xml.Name{Space: ProtocolNS, Local: "LogoutResponse"}
	if m.IsRequest {
		name.Local = "LogoutRequest"
	}
	document, signed, err := m.Open(name, s.Certificates, now)
	if err != nil {
		return Logout{}, err
	}
	if !signed {
		return Logout{}, Refused("the message is not signed")
	}
	var l logoutMessage
	if xml.Unmarshal(document, &l) != nil {
		return Logout{}, Refused("the message is not a %s", name.Local)
	}
	if slices.Contains([]string{s.EntityID, s.URL, s.Peer}, "") {
		return Logout{}, Failed(Misconfigured, "this side has no URL for single logout")
	}
	if err := l.Check(s.Peer, s.URL, true, now); err != nil {
		return Logout{}, err
	}
	if err := l.CheckAge(LogoutLifetime, now); err != nil {
		return Logout{}, err
	}
	result := Logout{RelayState: m.RelayState}
	if m.IsRequest {
		if result.Request, err = l.request(now); err != nil {
			return Logout{}, err
		}
		return result, nil
	}
	if len(l.Statuses) != 1 || l.InResponseTo == "" {
		return Logout{}, Refused("the response does not have one status, or no InResponseTo")
	}
	result.Response = &LogoutResponse{l.InResponseTo, l.Statuses[0]}
	return result, nil
}

// request returns a validated request.
func (l logoutMessage) request(now time.Time) (*LogoutRequest, error) {
	if l.NotOnOrAfter != "" {
		if end, err := ParseTime(l.NotOnOrAfter); err != nil || !now.Before(end.Add(Skew)) {
			return nil, Failed(Stale, "the request has expired (NotOnOrAfter)")
		}
	}
	if len(l.Names) != 1 {
		return nil, Refused("the request does not have one NameID that is not encrypted")
	}
	if len(l.Sessions) > maxSessions {
		return nil, Refused("the request has more than %d sessions", maxSessions)
	}
	subject, err := l.Names[0].Read()
	if err != nil {
		return nil, err
	}
	return &LogoutRequest{l.ID, subject, l.Sessions}, nil
}

// Finish validates an answer against its request. Complete reports that all sessions ended; some
// did not if it is false without an error.
func (s SingleLogout) Finish(pending PendingLogout, l Logout) (complete bool, err error) {
	switch {
	case l.Response == nil:
		return false, Refused("there is a request where a response is expected")
	case pending.RequestID == "" || l.Response.InResponseTo != pending.RequestID || l.RelayState != pending.RelayState,
		pending.Provider != s.Peer:
		return false, Failed(Stale, "the response is not for the request of this sign-out")
	case l.Response.status.hasSecond(saml.StatusPartialLogout):
		return false, nil
	}
	return true, l.Response.status.check()
}
