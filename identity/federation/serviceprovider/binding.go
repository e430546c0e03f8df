package serviceprovider

import (
	"bytes"
	"compress/flate"
	"crypto/x509"
	"encoding/base64"
	"io"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/beevik/etree"
	dsig "github.com/russellhaering/goxmldsig"
)

// Message is a message that a browser carries to the identity provider.
type Message struct {
	// URL is where the browser is sent: with GET, or with POST if there is a form.
	URL string
	// Form are the fields of a form, for the POST binding (SAML Bindings §3.5); nil for the
	// redirect binding (§3.4). Its values are base64 and tokens, but must be escaped in HTML.
	Form url.Values
}

// The parameters of the bindings.
const (
	requestParam    = "SAMLRequest"
	responseParam   = "SAMLResponse"
	relayStateParam = "RelayState"
	methodParam     = "SigAlg"
	signatureParam  = "Signature"
	encodingParam   = "SAMLEncoding"

	deflateEncoding = "urn:oasis:names:tc:SAML:2.0:bindings:URL-Encoding:DEFLATE"

	maxRelayState = 1024 // bytes; the standard's limit is 80 (SAML Bindings §3.4.3), and many exceed it
)

// choose returns the service for a message: that of the redirect binding, or of POST.
func choose(list []Service) (Service, bool) {
	for _, binding := range []string{Redirect, Post} {
		if i := slices.IndexFunc(list, func(s Service) bool { return s.Binding == binding }); i >= 0 {
			return list[i], true
		}
	}
	return Service{}, false
}

// send returns a message for a binding. It is signed if there is a key.
func (p *Provider) send(binding, to, param string, message *etree.Element, relayState string) (Message, error) {
	key, signed := p.signs()
	var context *dsig.SigningContext
	if signed {
		var err error
		if context, err = signing(key); err != nil {
			return Message{}, failed(Misconfigured, "the key of the service provider cannot sign")
		}
	}
	if binding == Redirect {
		return redirect(to, param, message, relayState, context)
	}
	if signed {
		signature, err := context.ConstructSignature(message, true)
		if err != nil {
			return Message{}, failed(Misconfigured, "the key of the service provider cannot sign")
		}
		message.InsertChildAt(message.ChildElements()[0].Index()+1, signature) // after Issuer
	}
	text, err := write(message)
	if err != nil {
		return Message{}, err
	}
	form := url.Values{param: {base64.StdEncoding.EncodeToString(text)}}
	if relayState != "" {
		form.Set(relayStateParam, relayState)
	}
	return Message{to, form}, nil
}

// redirect returns a message of the redirect binding. The signature covers the parameters, in
// this order, as they are encoded (SAML Bindings §3.4.4.1), and not a query of the service's URL.
func redirect(to, param string, message *etree.Element, relayState string, context *dsig.SigningContext) (Message, error) {
	text, err := write(message)
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
	if relayState != "" {
		query += "&" + relayStateParam + "=" + url.QueryEscape(relayState)
	}
	if context != nil {
		query += "&" + methodParam + "=" + url.QueryEscape(context.GetSignatureMethodIdentifier())
		signature, err := context.SignString(query)
		if err != nil {
			return Message{}, failed(Misconfigured, "the key of the service provider cannot sign")
		}
		query += "&" + signatureParam + "=" + url.QueryEscape(base64.StdEncoding.EncodeToString(signature))
	}
	separator := "?"
	if strings.Contains(to, "?") {
		separator = "&"
	}
	return Message{URL: to + separator + query}, nil
}

// received is a message as it was received, with what its binding proves.
type received struct {
	document   []byte
	isRequest  bool
	relayState string
	signed     bool // by the binding
}

// readForm reads a message of the POST binding. No parameter may be present twice.
func readForm(form url.Values) (received, error) {
	var m received
	if err := readOnce(form, requestParam, responseParam, relayStateParam); err != nil {
		return m, err
	}
	encoded := form.Get(responseParam)
	if form.Has(requestParam) {
		encoded, m.isRequest = form.Get(requestParam), true
	}
	m.relayState = form.Get(relayStateParam)
	if len(encoded) > MaxDocument*3/2 {
		return m, refused("the message is too large")
	}
	var err error
	if m.document, err = decodeBase64(encoded); err != nil || len(m.document) == 0 {
		return m, refused("the message is missing, or is not base64")
	}
	return m, nil
}

// readOnce refuses parameters that are present twice, two messages, and a long RelayState.
func readOnce(values url.Values, names ...string) error {
	for _, name := range names {
		if len(values[name]) > 1 {
			return refused("the parameter %s is present twice", name)
		}
	}
	switch {
	case values.Has(requestParam) && values.Has(responseParam):
		return refused("there are a request and a response")
	case len(values.Get(relayStateParam)) > maxRelayState:
		return refused("RelayState is too long")
	}
	return nil
}

// readQuery reads a message of the redirect binding, and verifies its signature over the raw query
// as it was received: another encoding of the same values has another signature.
func (p *Provider) readQuery(query string, now time.Time) (received, error) {
	var m received
	raw := make(url.Values) // encoded values, by name
	for pair := range strings.SplitSeq(query, "&") {
		name, value, _ := strings.Cut(pair, "=")
		decoded, err := url.QueryUnescape(name)
		if err != nil || decoded != name && slices.Contains([]string{requestParam, responseParam, relayStateParam, methodParam, signatureParam, encodingParam}, decoded) {
			return m, refused("the name of a parameter has an unusual encoding")
		}
		raw[name] = append(raw[name], value)
	}
	if err := readOnce(raw, requestParam, responseParam, relayStateParam, methodParam, signatureParam, encodingParam); err != nil {
		return m, err
	}
	values := make(map[string]string)
	for name := range raw {
		value, err := url.QueryUnescape(raw.Get(name))
		if err != nil {
			return m, refused("a parameter is not URL-encoded")
		}
		values[name] = value
	}
	if encoding := values[encodingParam]; encoding != "" && encoding != deflateEncoding {
		return m, refused("the encoding is not supported: %s", quote(encoding))
	}
	param := responseParam
	if raw.Has(requestParam) {
		param, m.isRequest = requestParam, true
	}
	m.relayState = values[relayStateParam]
	signed := param + "=" + raw.Get(param)
	if raw.Has(relayStateParam) {
		signed += "&" + relayStateParam + "=" + raw.Get(relayStateParam)
	}
	signed += "&" + methodParam + "=" + raw.Get(methodParam)
	if err := p.verifyQuery(signed, values[methodParam], values[signatureParam], now); err != nil {
		return m, err
	}
	m.signed = true
	var err error
	m.document, err = inflate(values[param])
	return m, err
}

// verifyQuery verifies the signature of a query.
func (p *Provider) verifyQuery(signed, method, signature string, now time.Time) error {
	if methods[method] == 0 {
		return refused("the message is not signed, or with an algorithm that is not accepted: %s", quote(method))
	}
	raw, err := decodeBase64(signature)
	if err != nil {
		return refused("Signature is not base64")
	}
	certificates, err := p.IdentityProvider.Signers()
	if err != nil {
		return err
	}
	return tryCertificates(certificates, method, raw, now, func(c *x509.Certificate, signature []byte) error {
		return c.CheckSignature(methods[method], []byte(signed), signature)
	})
}

// inflate decodes a message of the redirect binding, up to [MaxDocument].
func inflate(encoded string) ([]byte, error) {
	deflated, err := decodeBase64(encoded)
	if err != nil || len(deflated) == 0 {
		return nil, refused("the message is missing, or is not base64")
	}
	document, err := io.ReadAll(io.LimitReader(flate.NewReader(bytes.NewReader(deflated)), MaxDocument+1))
	if err != nil {
		return nil, refused("the message is not DEFLATE")
	}
	if len(document) > MaxDocument {
		return nil, refused("the message is too large")
	}
	return document, nil
}
