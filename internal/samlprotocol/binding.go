package samlprotocol

import (
	"bytes"
	"compress/flate"
	"crypto/x509"
	"encoding/base64"
	"encoding/xml"
	"io"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/beevik/etree"
	"github.com/crewjam/saml"

	"stonetown/internal/text"
)

// The bindings of messages that are supported.
const (
	Redirect = saml.HTTPRedirectBinding // SAML Bindings §3.4
	Post     = saml.HTTPPostBinding     // §3.5
)

// MaxRelayState is the maximum size of a RelayState in bytes. The standard's limit is 80 (SAML
// Bindings §3.4.3), and many exceed it.
const MaxRelayState = 1024

// The parameters of the bindings.
const (
	requestParam    = "SAMLRequest"
	responseParam   = "SAMLResponse"
	relayStateParam = "RelayState"
	methodParam     = "SigAlg"
	signatureParam  = "Signature"
	encodingParam   = "SAMLEncoding"

	deflateEncoding = "urn:oasis:names:tc:SAML:2.0:bindings:URL-Encoding:DEFLATE"
)

// Message is a message that a browser carries to the other side.
type Message struct {
	// URL is where the browser is sent: with GET, or with POST if there is a form.
	URL string
	// Form are the fields of a form, for the POST binding; nil for the redirect binding. Its
	// values are base64 and tokens, but must be escaped in HTML.
	Form url.Values
}

// Outgoing is a message to send.
type Outgoing struct {
	Binding    string // Redirect or Post
	To         string // URL
	IsResponse bool
	Document   *etree.Element
	RelayState string
	Key        *Key // signs the message; nil: it is not signed, or Document has a signature
}

// Message returns the message in the form of its binding.
func (o Outgoing) Message() (Message, error) {
	param := requestParam
	if o.IsResponse {
		param = responseParam
	}
	if o.Binding == Redirect {
		return o.redirect(param)
	}
	if o.Key != nil {
		if err := Sign(o.Document, *o.Key); err != nil {
			return Message{}, err
		}
	}
	text, err := Write(o.Document)
	if err != nil {
		return Message{}, err
	}
	form := url.Values{param: {base64.StdEncoding.EncodeToString(text)}}
	if o.RelayState != "" {
		form.Set(relayStateParam, o.RelayState)
	}
	return Message{o.To, form}, nil
}

// redirect returns a message in a query. A signature covers the query in this order (SAML Bindings
// §3.4.4.1), and not a query of the receiver's URL.
func (o Outgoing) redirect(param string) (Message, error) {
	text, err := Write(o.Document)
	if err != nil {
		return Message{}, err
	}
	var deflated bytes.Buffer
	w, err := flate.NewWriter(&deflated, flate.BestCompression)
	if err != nil {
		return Message{}, err
	}
	if _, err := w.Write(text); err != nil {
		return Message{}, err
	}
	if err := w.Close(); err != nil {
		return Message{}, err
	}
	query := param + "=" + url.QueryEscape(base64.StdEncoding.EncodeToString(deflated.Bytes()))
	if o.RelayState != "" {
		query += "&" + relayStateParam + "=" + url.QueryEscape(o.RelayState)
	}
	if o.Key != nil {
		context, err := signing(*o.Key)
		if err != nil {
			return Message{}, err
		}
		query += "&" + methodParam + "=" + url.QueryEscape(context.GetSignatureMethodIdentifier())
		signature, err := context.SignString(query)
		if err != nil {
			return Message{}, errCannotSign
		}
		query += "&" + signatureParam + "=" + url.QueryEscape(base64.StdEncoding.EncodeToString(signature))
	}
	separator := "?"
	if strings.Contains(o.To, "?") {
		separator = "&"
	}
	return Message{URL: o.To + separator + query}, nil
}

// Received is a message as it was received. Only what [Received.Open] returns is authentic.
type Received struct {
	IsRequest  bool // else it is a response
	RelayState string

	encoded   string          // base64
	signature *querySignature // nil for the POST binding, whose signatures are in the message
}

// querySignature is the signature of the redirect binding. It covers the query as it was received:
// another encoding of the same values has another signature.
type querySignature struct {
	present               bool
	signed, method, value string
}

// ReadForm reads a message of the POST binding. No parameter may be present twice.
func ReadForm(form url.Values) (Received, error) {
	if err := readOnce(form, requestParam, responseParam, relayStateParam); err != nil {
		return Received{}, err
	}
	m := Received{IsRequest: form.Has(requestParam), RelayState: form.Get(relayStateParam), encoded: form.Get(responseParam)}
	if m.IsRequest {
		m.encoded = form.Get(requestParam)
	}
	return m, nil
}

// readOnce refuses parameters that are present twice, two messages, and a long RelayState.
func readOnce(values url.Values, names ...string) error {
	for _, name := range names {
		if len(values[name]) > 1 {
			return Refused("the parameter %s is present twice", name)
		}
	}
	switch {
	case values.Has(requestParam) && values.Has(responseParam):
		return Refused("there are a request and a response")
	case len(values.Get(relayStateParam)) > MaxRelayState:
		return Refused("RelayState is too long")
	}
	return nil
}

// ReadQuery reads a message of the redirect binding from the raw query of a URL. No parameter may
// be present twice, in whatever encoding.
func ReadQuery(query string) (Received, error) {
	names := []string{requestParam, responseParam, relayStateParam, methodParam, signatureParam, encodingParam}
	raw := make(url.Values) // encoded values, by name
	for pair := range strings.SplitSeq(query, "&") {
		name, value, _ := strings.Cut(pair, "=")
		decoded, err := url.QueryUnescape(name)
		if err != nil || decoded != name && slices.Contains(names, decoded) {
			return Received{}, Refused("the name of a parameter has an unusual encoding")
		}
		raw[name] = append(raw[name], value)
	}
	values := make(url.Values)
	for name, list := range raw {
		for _, encoded := range list {
			value, err := url.QueryUnescape(encoded)
			if err != nil {
				return Received{}, Refused("a parameter is not URL-encoded")
			}
			values.Add(name, value)
		}
	}
	if err := readOnce(values, names...); err != nil {
		return Received{}, err
	}
	if encoding := values.Get(encodingParam); encoding != "" && encoding != deflateEncoding {
		return Received{}, Refused("the encoding is not supported: %s", text.Quote(encoding))
	}
	param := responseParam
	if raw.Has(requestParam) {
		param = requestParam
	}
	signed := param + "=" + raw.Get(param)
	if raw.Has(relayStateParam) {
		signed += "&" + relayStateParam + "=" + raw.Get(relayStateParam)
	}
	signed += "&" + methodParam + "=" + raw.Get(methodParam)
	return Received{
		IsRequest: param == requestParam, RelayState: values.Get(relayStateParam), encoded: values.Get(param),
		signature: &querySignature{
			present: raw.Has(methodParam) || raw.Has(signatureParam),
			signed:  signed, method: values.Get(methodParam), value: values.Get(signatureParam),
		},
	}, nil
}

// RelayState returns the RelayState of a form or a query, by which the receiver of a response finds
// its request; empty: there is none, or several.
func RelayState(values url.Values) string {
	if list := values[relayStateParam]; len(list) == 1 && len(list[0]) <= MaxRelayState {
		return list[0]
	}
	return ""
}

// Document returns the XML of a message, up to [MaxDocument]. It is not authentic.
func (m Received) Document() ([]byte, error) {
	if len(m.encoded) > MaxDocument*3/2 {
		return nil, Refused("the message is too large")
	}
	document, err := decodeBase64(m.encoded)
	if err != nil || len(document) == 0 {
		return nil, Refused("the message is missing, or is not base64")
	}
	if m.signature == nil {
		return document, nil
	}
	if document, err = io.ReadAll(io.LimitReader(flate.NewReader(bytes.NewReader(document)), MaxDocument+1)); err != nil {
		return nil, Refused("the message is not DEFLATE")
	}
	if len(document) > MaxDocument {
		return nil, Refused("the message is too large")
	}
	return document, nil
}

// Issuer returns the entity id that a message claims to be from. It is not authentic, and is for
// finding the configuration with which [Received.Open] opens the message. It refuses a message
// without one.
func (m Received) Issuer() (string, error) {
	document, err := m.Document()
	if err != nil {
		return "", err
	}
	if _, err := Inspect(document, false); err != nil {
		return "", Refused("the document %v", err)
	}
	var e Envelope
	if xml.Unmarshal(document, &e) != nil {
		return "", Refused("the document is not a message")
	}
	return e.issuer()
}

// Open returns the bytes of a message, whose root has the given name. They are those that a
// signature covers if signed is true: a valid one, in the query for the redirect binding, and in the
// message for POST. A signature that is not valid is an error; without certificates, none is
// verified.
func (m Received) Open(root xml.Name, certificates []*x509.Certificate, now time.Time) (document []byte, signed bool, err error) {
	verifies := len(certificates) > 0
	if m.signature != nil && m.signature.present && verifies {
		if err := m.signature.verify(certificates, now); err != nil {
			return nil, false, err
		}
		signed = true
	}
	if document, err = m.Document(); err != nil {
		return nil, false, err
	}
	e, err := Parse(document, root)
	if err != nil {
		return nil, false, err
	}
	inside := len(Children(e, SignatureName)) > 0
	switch {
	case m.signature != nil && inside: // (SAML Bindings §3.4.4.1)
		return nil, false, Refused("a message of the redirect binding has a signature in it")
	case inside && verifies:
		document, err = Verify(e, certificates, now)
		return document, err == nil, err
	}
	return document, signed, nil
}

// verify verifies the signature of a query.
func (s querySignature) verify(certificates []*x509.Certificate, now time.Time) error {
	if methods[s.method] == 0 {
		return Refused("the message is not signed, or with an algorithm that is not accepted: %s", text.Quote(s.method))
	}
	raw, err := decodeBase64(s.value)
	if err != nil {
		return Refused("Signature is not base64")
	}
	return tryCertificates(certificates, s.method, raw, now, func(c *x509.Certificate, signature []byte) error {
		return c.CheckSignature(methods[s.method], []byte(s.signed), signature)
	})
}
