package serviceprovider

import (
	"encoding/xml"
	"slices"
	"strings"
	"time"

	"stonetown/internal/samlprotocol"
	"stonetown/internal/text"
)

// assertion is what is read of an assertion (SAML Core §2.3.3). Members that may be present once
// are lists, so that a second one is found.
type assertion struct {
	XMLName      xml.Name              `xml:"urn:oasis:names:tc:SAML:2.0:assertion Assertion"`
	ID           string                `xml:"ID,attr"`
	Version      string                `xml:"Version,attr"`
	IssueInstant string                `xml:"IssueInstant,attr"`
	Issuers      []samlprotocol.Issuer `xml:"urn:oasis:names:tc:SAML:2.0:assertion Issuer"`
	Subjects     []subject             `xml:"urn:oasis:names:tc:SAML:2.0:assertion Subject"`
	Conditions   []struct {
		validity
		Members []condition `xml:",any"`
	} `xml:"urn:oasis:names:tc:SAML:2.0:assertion Conditions"`
	Authentications []struct {
		Instant      string   `xml:"AuthnInstant,attr"`
		SessionIndex string   `xml:"SessionIndex,attr"`
		SessionEnds  string   `xml:"SessionNotOnOrAfter,attr"`
		Contexts     []string `xml:"urn:oasis:names:tc:SAML:2.0:assertion AuthnContext>AuthnContextClassRef"`
	} `xml:"urn:oasis:names:tc:SAML:2.0:assertion AuthnStatement"`
	Statements []struct {
		Attributes []attribute `xml:"urn:oasis:names:tc:SAML:2.0:assertion Attribute"`
		Encrypted  []struct{}  `xml:"urn:oasis:names:tc:SAML:2.0:assertion EncryptedAttribute"`
	} `xml:"urn:oasis:names:tc:SAML:2.0:assertion AttributeStatement"`
}

type subject struct {
	Names         []samlprotocol.NameIDElement `xml:"urn:oasis:names:tc:SAML:2.0:assertion NameID"`
	Confirmations []struct {
		Method string `xml:"Method,attr"`
		Data   []struct {
			validity
			Recipient    string  `xml:"Recipient,attr"`
			InResponseTo *string `xml:"InResponseTo,attr"`
		} `xml:"urn:oasis:names:tc:SAML:2.0:assertion SubjectConfirmationData"`
	} `xml:"urn:oasis:names:tc:SAML:2.0:assertion SubjectConfirmation"`
}

type condition struct {
	XMLName   xml.Name
	Audiences []string `xml:"urn:oasis:names:tc:SAML:2.0:assertion Audience"`
}

type attribute struct {
	Name   string `xml:"Name,attr"`
	Values []struct {
		Text  string                       `xml:",chardata"`
		Names []samlprotocol.NameIDElement `xml:"urn:oasis:names:tc:SAML:2.0:assertion NameID"`
	} `xml:"urn:oasis:names:tc:SAML:2.0:assertion AttributeValue"`
}

// validity is a period.
type validity struct {
	NotBefore    string `xml:"NotBefore,attr"`
	NotOnOrAfter string `xml:"NotOnOrAfter,attr"`
}

const (
	bearer = "urn:oasis:names:tc:SAML:2.0:cm:bearer"

	maxAttributeNames = 500
)

// check refuses a period that has ended or not begun, and returns its end; zero: none.
func (v validity) check(now time.Time) (end time.Time, err error) {
	if v.NotBefore != "" {
		begin, err := samlprotocol.ParseTime(v.NotBefore)
		if err != nil || now.Add(Skew).Before(begin) {
			return end, samlprotocol.Refused("the assertion is not valid yet (NotBefore)")
		}
	}
	if v.NotOnOrAfter != "" {
		end, err = samlprotocol.ParseTime(v.NotOnOrAfter)
		if err != nil {
			return end, samlprotocol.Refused("NotOnOrAfter is not a time")
		}
		if end = end.Add(Skew); !now.Before(end) {
			return end, samlprotocol.Failed(Stale, "the assertion has expired (NotOnOrAfter)")
		}
	}
	return end, nil
}

// readAssertion reads an assertion from the bytes that are signed.
func readAssertion(document []byte) (a assertion, err error) {
	if xml.Unmarshal(document, &a) != nil {
		return a, samlprotocol.Refused("the signed element is not an assertion")
	}
	return a, nil
}

// accept validates an assertion for a sign-in (SAML Profiles §4.1.4.3).
func (p *Provider) accept(a assertion, inResponseTo string, now time.Time) (Identity, error) {
	issued, err := samlprotocol.ParseTime(a.IssueInstant)
	switch {
	case a.Version != samlprotocol.Version || a.ID == "" || len(a.ID) > samlprotocol.MaxText:
		return Identity{}, samlprotocol.Refused("the assertion has another version than 2.0, or no ID")
	case !p.isProvider(a.Issuers):
		return Identity{}, samlprotocol.Refused("the issuer of the assertion is not the identity provider")
	case err != nil || !samlprotocol.SentWithin(issued, now):
		return Identity{}, samlprotocol.Refused("the assertion was issued in the future, or has no time")
	}
	identity := Identity{AssertionID: a.ID}
	if identity.NotOnOrAfter, err = p.checkConditions(a, now); err != nil {
		return Identity{}, err
	}
	if len(a.Subjects) != 1 || len(a.Subjects[0].Names) != 1 {
		return Identity{}, samlprotocol.Refused("the assertion does not have one subject with one NameID that is not encrypted")
	}
	if identity.Subject, err = a.Subjects[0].Names[0].Read(); err != nil {
		return Identity{}, err
	}
	confirmed, err := p.confirm(a.Subjects[0], inResponseTo, now)
	if err != nil {
		return Identity{}, err
	}
	if identity.NotOnOrAfter.IsZero() || confirmed.Before(identity.NotOnOrAfter) {
		identity.NotOnOrAfter = confirmed
	}
	if err := identity.readAuthentication(a, now); err != nil {
		return Identity{}, err
	}
	identity.Attributes, err = a.attributes()
	return identity, err
}

// checkConditions validates the conditions of an assertion, and returns their end. The audience is
// required, and a condition that is not understood makes an assertion invalid (SAML Core §2.5.1.1).
func (p *Provider) checkConditions(a assertion, now time.Time) (end time.Time, err error) {
	if len(a.Conditions) != 1 {
		return end, samlprotocol.Refused("the assertion does not have one Conditions element")
	}
	conditions := a.Conditions[0]
	if end, err = conditions.check(now); err != nil {
		return end, err
	}
	restricted := false
	for _, c := range conditions.Members {
		switch {
		case c.XMLName.Space != samlprotocol.AssertionNS:
			return end, samlprotocol.Refused("a condition of the assertion is not supported: %s", text.Quote(c.XMLName.Local))
		case c.XMLName.Local == "AudienceRestriction": // each of several must hold
			if !slices.ContainsFunc(c.Audiences, func(a string) bool { return strings.TrimSpace(a) == p.EntityID }) {
				return end, samlprotocol.Refused("the audience of the assertion is another service provider, not %s", text.Quote(p.EntityID))
			}
			restricted = true
		case c.XMLName.Local != "OneTimeUse" && c.XMLName.Local != "ProxyRestriction": // an assertion is used once, and not passed on
			return end, samlprotocol.Refused("a condition of the assertion is not supported: %s", text.Quote(c.XMLName.Local))
		}
	}
	if !restricted {
		return end, samlprotocol.Refused("the assertion has no audience")
	}
	return end, nil
}

// confirm finds a confirmation with which the bearer of an assertion is its subject (SAML Profiles
// §4.1.4.2), and returns its end.
func (p *Provider) confirm(s subject, inResponseTo string, now time.Time) (end time.Time, err error) {
	err = samlprotocol.Refused("the subject of the assertion has no bearer confirmation")
	for _, c := range s.Confirmations {
		if c.Method != bearer || len(c.Data) != 1 {
			continue
		}
		data := c.Data[0]
		to := ""
		if data.InResponseTo != nil {
			to = *data.InResponseTo
		}
		until, problem := data.check(now)
		switch {
		case data.Recipient != p.ACS:
			err = samlprotocol.Refused("the recipient of the assertion is %s, not %s", text.Quote(data.Recipient), text.Quote(p.ACS))
		case to != inResponseTo:
			err = samlprotocol.Failed(Stale, "the assertion is not for the request of this sign-in (InResponseTo)")
		case problem != nil:
			err = problem
		case until.IsZero():
			err = samlprotocol.Refused("the confirmation of the subject has no end (NotOnOrAfter)")
		case until.After(end):
			end = until
		}
	}
	if end.IsZero() {
		return end, err
	}
	return end, nil
}

// readAuthentication reads the first authentication of an assertion. One is required (SAML Profiles
// §4.1.4.2).
func (i *Identity) readAuthentication(a assertion, now time.Time) (err error) {
	if len(a.Authentications) == 0 {
		return samlprotocol.Refused("the assertion has no AuthnStatement")
	}
	statement := a.Authentications[0]
	if i.AuthnInstant, err = samlprotocol.ParseTime(statement.Instant); err != nil || !samlprotocol.SentWithin(i.AuthnInstant, now) {
		return samlprotocol.Refused("AuthnInstant is in the future, or is not a time")
	}
	if statement.SessionEnds != "" {
		i.SessionEnds, err = samlprotocol.ParseTime(statement.SessionEnds)
		if err != nil || i.SessionEnds.IsZero() {
			return samlprotocol.Refused("SessionNotOnOrAfter is not a time")
		}
		if !now.Before(i.SessionEnds.Add(Skew)) {
			return samlprotocol.Failed(Stale, "the session at the identity provider has ended (SessionNotOnOrAfter)")
		}
	}
	if len(statement.Contexts) > 0 {
		i.AuthnContext = strings.TrimSpace(statement.Contexts[0])
	}
	i.SessionIndex = statement.SessionIndex
	for _, s := range []string{i.AuthnContext, i.SessionIndex} {
		if len(s) > samlprotocol.MaxText || !text.IsLine(s) {
			return samlprotocol.Refused("SessionIndex or the class of the authentication is not one line of at most %d bytes", samlprotocol.MaxText)
		}
	}
	return nil
}

// attributes returns the values of all attributes. Those of attributes with the same name are
// joined. The value of a name identifier is its text.
func (a assertion) attributes() (map[string]any, error) {
	all := make(map[string]any)
	for _, s := range a.Statements {
		if len(s.Encrypted) > 0 {
			return nil, samlprotocol.Refused("the assertion has an encrypted attribute, which is not supported; the assertion can be encrypted")
		}
		for _, at := range s.Attributes {
			if at.Name == "" || len(at.Name) > samlprotocol.MaxText || !text.IsLine(at.Name) {
				return nil, samlprotocol.Refused("the name of an attribute is not one line of 1 to %d bytes", samlprotocol.MaxText)
			}
			values, _ := all[at.Name].([]string)
			if values == nil {
				values = []string{}
			}
			for _, v := range at.Values {
				value := v.Text
				if len(v.Names) == 1 {
					value = v.Names[0].Value
				}
				values = append(values, value)
			}
			if all[at.Name] = values; len(all) > maxAttributeNames {
				return nil, samlprotocol.Refused("the assertion has more than %d attributes", maxAttributeNames)
			}
		}
	}
	return all, nil
}
