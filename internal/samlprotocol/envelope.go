package samlprotocol

import (
	"cmp"
	"strings"
	"time"

	"github.com/crewjam/saml"

	"stonetown/internal/text"
)

// Envelope is what messages have in common (SAML Core §3.2), as it is received. Members that may be
// present once are lists, so that a second one is found.
type Envelope struct {
	ID           string   `xml:"ID,attr"`
	Version      string   `xml:"Version,attr"`
	IssueInstant string   `xml:"IssueInstant,attr"`
	Destination  string   `xml:"Destination,attr"`
	InResponseTo string   `xml:"InResponseTo,attr"`
	Issuers      []Issuer `xml:"urn:oasis:names:tc:SAML:2.0:assertion Issuer"`
	Statuses     []Status `xml:"urn:oasis:names:tc:SAML:2.0:protocol Status"`
}

// Issuer is the entity that a message or an assertion is from (SAML Core §2.2.5).
type Issuer struct {
	Format string `xml:"Format,attr"`
	Value  string `xml:",chardata"`
}

const entityFormat = "urn:oasis:names:tc:SAML:2.0:nameid-format:entity"

// IsFrom reports whether issuers are an entity, once.
func IsFrom(issuers []Issuer, entityID string) bool {
	return len(issuers) == 1 && cmp.Or(issuers[0].Format, entityFormat) == entityFormat &&
		strings.TrimSpace(issuers[0].Value) == entityID
}

// issuer returns the only issuer.
func (e Envelope) issuer() (string, error) {
	if len(e.Issuers) == 1 {
		if id := strings.TrimSpace(e.Issuers[0].Value); id != "" && len(id) <= MaxText {
			return id, nil
		}
	}
	return "", Refused("the message does not have one issuer of at most %d bytes", MaxText)
}

// Check refuses a message that is not from an entity, or not for an address. A message with a
// signature must have both (SAML Bindings §3.4.5.2, §3.5.5.2).
func (e Envelope) Check(from, destination string, signed bool, now time.Time) error {
	at, err := ParseTime(e.IssueInstant)
	switch {
	case e.Version != Version || e.ID == "" || len(e.ID) > MaxText:
		return Refused("the message has another version than %s, or no ID", Version)
	case err != nil || !SentWithin(at, now):
		return Refused("the message was issued in the future, or has no time")
	case e.Destination != destination && (e.Destination != "" || signed):
		return Refused("Destination is %s, not %s", text.Quote(e.Destination), text.Quote(destination))
	case !IsFrom(e.Issuers, from) && (len(e.Issuers) > 0 || signed):
		return Refused("the issuer of the message is not %s", text.Quote(from))
	}
	return nil
}

// CheckAge refuses a message that was issued longer ago than a lifetime, with [Skew].
func (e Envelope) CheckAge(lifetime time.Duration, now time.Time) error {
	if issued, err := ParseTime(e.IssueInstant); err != nil || now.After(issued.Add(lifetime+Skew)) {
		return Failed(Stale, "the message was issued more than %v ago", lifetime)
	}
	return nil
}

// CheckStatus returns the error of a response's status; nil for success.
func (e Envelope) CheckStatus() error {
	if len(e.Statuses) != 1 {
		return Refused("the message does not have one status")
	}
	return e.Statuses[0].check()
}

// Status is the status of a response (SAML Core §3.2.2.1), as it is received.
type Status struct {
	Codes []struct {
		Value  string `xml:"Value,attr"`
		Second []struct {
			Value string `xml:"Value,attr"`
		} `xml:"urn:oasis:names:tc:SAML:2.0:protocol StatusCode"`
	} `xml:"urn:oasis:names:tc:SAML:2.0:protocol StatusCode"`
	Message string `xml:"urn:oasis:names:tc:SAML:2.0:protocol StatusMessage"`
}

// statuses are the classes of errors of status codes (SAML Core §3.2.2.2), of the second level
// first.
var statuses = map[string]Class{
	saml.StatusAuthnFailed:              Denied,
	saml.StatusRequestDenied:            Denied,
	saml.StatusUnknownPrincipal:         Denied,
	saml.StatusNoAuthnContext:           Denied,
	saml.StatusNoPassive:                InteractionRequired,
	saml.StatusInvalidNameIDPolicy:      Misconfigured,
	saml.StatusRequestUnsupported:       Misconfigured,
	saml.StatusUnsupportedBinding:       Misconfigured,
	saml.StatusRequestVersionTooHigh:    Misconfigured,
	saml.StatusRequestVersionTooLow:     Misconfigured,
	saml.StatusRequestVersionDeprecated: Misconfigured,
	saml.StatusVersionMismatch:          Misconfigured,
	saml.StatusRequester:                Misconfigured,
	saml.StatusResponder:                Unavailable,
}

// check returns the error of a status; nil for success.
func (s Status) check() error {
	if len(s.Codes) != 1 {
		return Refused("the message does not have one status")
	}
	top := s.Codes[0]
	if top.Value == saml.StatusSuccess {
		return nil
	}
	second := ""
	if len(top.Second) > 0 {
		second = top.Second[0].Value
	}
	class, ok := statuses[second]
	if !ok {
		class, ok = statuses[top.Value]
	}
	if !ok {
		class = Unavailable
	}
	detail := "the other side answers " + text.Quote(top.Value)
	if second != "" {
		detail += ", " + text.Quote(second)
	}
	if message := strings.TrimSpace(s.Message); message != "" {
		detail += ": " + text.Quote(message)
	}
	return Failed(class, "%s", detail)
}

// hasSecond reports whether a code is that of the second level.
func (s Status) hasSecond(code string) bool {
	return len(s.Codes) == 1 && len(s.Codes[0].Second) > 0 && s.Codes[0].Second[0].Value == code
}
