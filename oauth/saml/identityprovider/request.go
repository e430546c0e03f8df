package identityprovider

import (
	"encoding/xml"
	"slices"
	"strconv"
	"strings"
	"time"

	"stonetown/internal/samlprotocol"
	"stonetown/internal/text"
)

// RequestLifetime is the time in which a request must arrive.
const RequestLifetime = 5 * time.Minute

// maxContexts is the maximum number of classes in a RequestedAuthnContext.
const maxContexts = 20

// Request is a validated request of a sign-in (SAML Core §3.4.1). It can be stored as JSON.
type Request struct {
	// ID names the request in the response; empty: the sign-in was not requested.
	ID string `json:"id,omitempty"`
	// ServiceProvider is the entity id of the service provider.
	ServiceProvider string `json:"service_provider"`
	// ACS is the URL to which the response is posted. It is registered.
	ACS string `json:"acs"`
	// RelayState is returned with the response.
	RelayState string `json:"relay_state,omitempty"`
	// Signed reports that the service provider signed the request.
	Signed bool `json:"signed,omitempty"`
	// ForceAuthn requires that the user authenticates again.
	ForceAuthn bool `json:"force_authn,omitempty"`
	// Passive forbids to ask the user: the answer is [NoPassive] if that is required.
	Passive bool `json:"passive,omitempty"`
	// AuthnContexts are the classes of [Provider.AuthnContexts] of which the assertion must have
	// one, in order of preference; empty: any.
	AuthnContexts []string `json:"authn_contexts,omitempty"`
	// Subject is the user that the assertion must be about; nil: any (SAML Core §3.4.1). The
	// answer for another one is [UnknownPrincipal].
	Subject *samlprotocol.NameID `json:"subject,omitempty"`
}

// Unsolicited returns the request of a sign-in that the identity provider begins, with a RelayState
// that the service provider is known to accept (SAML Profiles §4.1.5).
func Unsolicited(sp ServiceProvider, relayState string) Request {
	r := Request{ServiceProvider: sp.EntityID, RelayState: relayState}
	if len(sp.ACS) > 0 {
		r.ACS = sp.ACS[0]
	}
	return r
}

// UnsupportedError is returned for a valid request that cannot be granted. The caller answers it
// with [Provider.Refuse] and the Status.
type UnsupportedError struct {
	Status Status
	Detail string // the cause, for logs, as that of [samlprotocol.Error]
}

func (e *UnsupportedError) Error() string { return "the request is not supported: " + string(e.Status) }

// authnRequest is what is read of AuthnRequest (SAML Core §3.4.1).
type authnRequest struct {
	samlprotocol.Envelope
	ForceAuthn string `xml:"ForceAuthn,attr"`
	IsPassive  string `xml:"IsPassive,attr"`
	Binding    string `xml:"ProtocolBinding,attr"`
	ACS        string `xml:"AssertionConsumerServiceURL,attr"`
	Index      string `xml:"AssertionConsumerServiceIndex,attr"`
	Subjects   []struct {
		Names   []samlprotocol.NameIDElement `xml:"urn:oasis:names:tc:SAML:2.0:assertion NameID"`
		Members []struct{}                   `xml:",any"`
	} `xml:"urn:oasis:names:tc:SAML:2.0:assertion Subject"`
	Policies []struct {
		Format          string `xml:"Format,attr"`
		SPNameQualifier string `xml:"SPNameQualifier,attr"`
	} `xml:"urn:oasis:names:tc:SAML:2.0:protocol NameIDPolicy"`
	Contexts []requestedContext `xml:"urn:oasis:names:tc:SAML:2.0:protocol RequestedAuthnContext"`
}

type requestedContext struct {
	Comparison   string   `xml:"Comparison,attr"`
	Classes      []string `xml:"urn:oasis:names:tc:SAML:2.0:assertion AuthnContextClassRef"`
	Declarations []string `xml:"urn:oasis:names:tc:SAML:2.0:assertion AuthnContextDeclRef"`
}

// ReadRequest validates a request of a service provider, which must be the issuer of the message. If
// the error is [*UnsupportedError], the request is returned with it, and can be refused.
func (p *Provider) ReadRequest(sp ServiceProvider, m samlprotocol.Received, now time.Time) (Request, error) {
	if err := p.check(); err != nil {
		return Request{}, err
	}
	switch {
	case !m.IsRequest:
		return Request{}, samlprotocol.Refused("there is a response where a request is expected")
	case sp.EntityID == "" || len(sp.ACS) == 0:
		return Request{}, samlprotocol.Failed(samlprotocol.Misconfigured, "the service provider has no entity id or no assertion consumer service")
	case sp.WantRequestsSigned && len(sp.Certificates) == 0:
		return Request{}, samlprotocol.Failed(samlprotocol.Misconfigured, "requests of the service provider must be signed, and it has no certificate")
	}
	document, signed, err := m.Open(xml.Name{Space: samlprotocol.ProtocolNS, Local: "AuthnRequest"}, sp.Certificates, now)
	if err != nil {
		return Request{}, err
	}
	if sp.WantRequestsSigned && !signed {
		return Request{}, samlprotocol.Refused("the request is not signed")
	}
	var a authnRequest
	if xml.Unmarshal(document, &a) != nil {
		return Request{}, samlprotocol.Refused("the message is not an AuthnRequest")
	}
	if !samlprotocol.IsFrom(a.Issuers, sp.EntityID) { // required (SAML Profiles §4.1.4.1)
		return Request{}, samlprotocol.Refused("the issuer of the request is not %s", text.Quote(sp.EntityID))
	}
	if err := a.Check(sp.EntityID, p.SSO, signed, now); err != nil {
		return Request{}, err
	}
	if err := a.CheckAge(RequestLifetime, now); err != nil {
		return Request{}, err
	}
	r := Request{
		ID: a.ID, ServiceProvider: sp.EntityID, RelayState: m.RelayState, Signed: signed,
		ForceAuthn: samlprotocol.IsTrue(a.ForceAuthn), Passive: samlprotocol.IsTrue(a.IsPassive),
	}
	if r.ACS, err = sp.chooseACS(a.ACS, a.Index); err != nil {
		return Request{}, err
	}
	err = p.readWishes(&r, sp, a)
	return r, err
}

// chooseACS returns the assertion consumer service for a response. A URL must be registered, byte for
// byte; an index is the position of one that is.
func (sp ServiceProvider) chooseACS(location, index string) (string, error) {
	switch {
	case location != "" && index != "":
		return "", samlprotocol.Refused("the request has a URL and an index of an assertion consumer service")
	case location != "":
		if !slices.Contains(sp.ACS, location) {
			return "", samlprotocol.Refused("the assertion consumer service is not registered: %s", text.Quote(location))
		}
		return location, nil
	case index != "":
		i, err := strconv.ParseUint(index, 10, 16)
		if err != nil || i >= uint64(len(sp.ACS)) {
			return "", samlprotocol.Refused("no assertion consumer service is registered with the index %s", text.Quote(index))
		}
		return sp.ACS[i], nil
	}
	return sp.ACS[0], nil
}

// readWishes reads the members of a request that the identity provider may not be able to comply
// with.
func (p *Provider) readWishes(r *Request, sp ServiceProvider, a authnRequest) error {
	if a.Binding != "" && a.Binding != samlprotocol.Post {
		return unsupported(UnsupportedBinding, "the response is requested with the binding "+text.Quote(a.Binding))
	}
	if len(a.Subjects) > 1 || len(a.Policies) > 1 || len(a.Contexts) > 1 {
		return samlprotocol.Refused("the request has an element twice")
	}
	for _, s := range a.Subjects {
		if len(s.Names) != 1 || len(s.Members) > 0 {
			return unsupported(RequestUnsupported, "the requested subject is not one NameID")
		}
		name, err := s.Names[0].Read()
		if err != nil {
			return err
		}
		r.Subject = &name
	}
	for _, policy := range a.Policies {
		if policy.Format != "" && policy.Format != Unspecified && policy.Format != sp.NameIDFormat {
			return unsupported(InvalidNameIDPolicy, "the requested format of the NameID is not that of the service provider: "+text.Quote(policy.Format))
		}
		if policy.SPNameQualifier != "" && policy.SPNameQualifier != sp.EntityID {
			return unsupported(InvalidNameIDPolicy, "the requested NameID is that of another service provider: "+text.Quote(policy.SPNameQualifier))
		}
	}
	for _, c := range a.Contexts {
		var err error
		if r.AuthnContexts, err = p.acceptable(c); err != nil {
			return err
		}
	}
	return nil
}

func unsupported(status Status, detail string) *UnsupportedError {
	return &UnsupportedError{status, detail}
}

const anyContext = "urn:oasis:names:tc:SAML:2.0:ac:classes:unspecified"

// acceptable returns the classes of authentication that satisfy a RequestedAuthnContext (SAML Core
// §3.3.2.2.1); none: any satisfies it.
func (p *Provider) acceptable(c requestedContext) (list []string, err error) {
	if len(c.Classes) > maxContexts || len(c.Declarations) > maxContexts {
		return nil, samlprotocol.Refused("the request has more than %d classes of authentication", maxContexts)
	}
	lowest, highest := len(p.AuthnContexts), -1 // of the requested classes that are known
	for _, text := range c.Classes {
		class := strings.TrimSpace(text)
		if class == anyContext && (c.Comparison == "" || c.Comparison == "exact" || c.Comparison == "minimum") {
			return nil, nil
		}
		if i := slices.Index(p.AuthnContexts, class); i >= 0 {
			lowest, highest = min(lowest, i), max(highest, i)
			if !slices.Contains(list, class) {
				list = append(list, class)
			}
		}
	}
	known := highest >= 0
	switch c.Comparison {
	case "", "exact":
	case "minimum": // at least as strong as one of them
		list = slices.Clone(p.AuthnContexts[lowest:])
	case "better": // stronger than each of them
		list = slices.Clone(p.AuthnContexts[highest+1:])
	case "maximum": // as strong as possible, and not stronger than one of them
		list = slices.Clone(p.AuthnContexts[:highest+1])
		slices.Reverse(list)
	default:
		return nil, samlprotocol.Refused("the comparison of classes of authentication is unknown: %s", text.Quote(c.Comparison))
	}
	if !known || len(list) == 0 {
		return nil, unsupported(NoAuthnContext, "none of the requested classes of authentication is supported")
	}
	return list, nil
}
