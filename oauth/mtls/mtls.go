// Package mtls reads the certificates with which clients authenticate, and to which their tokens are
// bound (RFC 8705).
//
// The server does not terminate TLS: a proxy does, verifies that the client has the private key,
// and passes the certificate in a header field. The package is pure: the caller must accept the
// field from trusted proxies only. The chain of a certificate is verified by the proxy, and not
// here; a self-signed one is compared with those of the client.
//
// A token is bound to a certificate by the SHA-256 of its DER form (claim cnf, member x5t#S256,
// §3.1), so it is a bearer token that is valid on connections with that certificate only.
package mtls

import (
	"bytes"
	"crypto/sha256"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/asn1"
	"encoding/base64"
	"encoding/pem"
	"errors"
	"net/netip"
	"net/url"
	"slices"
	"strings"
	"time"
)

// maxHeader bounds the header field, in bytes.
const maxHeader = 16 << 10

// Certificate is the certificate of a client, which was valid at the time of the request.
type Certificate struct {
	DER        []byte
	Thumbprint string // SHA-256 of DER in base64url, as in x5t#S256
	Subject    string // the distinguished name (RFC 4514)

	parsed *x509.Certificate
}

var (
	errSeveral   = errors.New("the request has more than one client certificate")
	errMalformed = errors.New("the client certificate is malformed")
	errTime      = errors.New("the client certificate has expired or is not yet valid")
)

// Parse reads the values of the header field: one, as a byte sequence with the certificate in DER
// (RFC 9440 §2.2) or as a percent-encoded PEM block. Without a value there is no certificate.
func Parse(values []string, now time.Time) (*Certificate, error) {
	values = slices.DeleteFunc(slices.Clone(values), isEmpty)
	switch {
	case len(values) == 0:
		return nil, nil
	case len(values) > 1:
		return nil, errSeveral
	case len(values[0]) > maxHeader:
		return nil, errMalformed
	}
	der, err := decode(strings.TrimSpace(values[0]))
	if err != nil {
		return nil, err
	}
	return read(der, now)
}

// isEmpty reports whether a value is empty, or an empty byte sequence: proxies with templates set the
// field so if there is no certificate.
func isEmpty(value string) bool {
	value = strings.TrimSpace(value)
	return value == "" || value == "::"
}

// decode returns the DER form of a certificate in a header field.
func decode(value string) ([]byte, error) {
	if inner, ok := strings.CutPrefix(value, ":"); ok {
		inner, ok = strings.CutSuffix(inner, ":")
		der, err := base64.StdEncoding.Strict().DecodeString(inner)
		if !ok || err != nil || strings.ContainsAny(inner, "\r\n") {
			return nil, errMalformed
		}
		return der, nil
	}
	text, err := url.PathUnescape(value)
	if err != nil {
		return nil, errMalformed
	}
	block, rest := pem.Decode([]byte(text))
	if block == nil || block.Type != "CERTIFICATE" || len(block.Headers) > 0 || len(bytes.TrimSpace(rest)) > 0 || !strings.HasPrefix(text, "-----BEGIN") {
		return nil, errMalformed
	}
	return block.Bytes, nil
}

// read reads a certificate in DER.
func read(der []byte, now time.Time) (*Certificate, error) {
	parsed, err := x509.ParseCertificate(der)
	if err != nil {
		return nil, errMalformed
	}
	if now.Before(parsed.NotBefore) || now.After(parsed.NotAfter) {
		return nil, errTime
	}
	// Not parsed.Subject, which loses the order of the names.
	var subject pkix.RDNSequence
	if rest, err := asn1.Unmarshal(parsed.RawSubject, &subject); err != nil || len(rest) > 0 {
		return nil, errMalformed
	}
	sum := sha256.Sum256(der)
	return &Certificate{DER: der, Thumbprint: base64.RawURLEncoding.EncodeToString(sum[:]), Subject: subject.String(), parsed: parsed}, nil
}

// Names are the names by which the certificate of a client is known (RFC 8705 §2.1.2). One is set.
type Names struct {
	SubjectDN string `json:"tls_client_auth_subject_dn,omitempty"` // RFC 4514
	DNS       string `json:"tls_client_auth_san_dns,omitempty"`
	URI       string `json:"tls_client_auth_san_uri,omitempty"`
	IP        string `json:"tls_client_auth_san_ip,omitempty"`
	Email     string `json:"tls_client_auth_san_email,omitempty"`
}

// Count returns how many names are set.
func (n Names) Count() int {
	return len(slices.DeleteFunc([]string{n.SubjectDN, n.DNS, n.URI, n.IP, n.Email}, func(name string) bool { return name == "" }))
}

// Has reports whether the certificate has the name that is set. Names are compared as they are
// written, except for the spaces between the parts of a distinguished name and the case of a host.
func (c *Certificate) Has(n Names) bool {
	switch {
	case n.Count() != 1:
		return false
	case n.SubjectDN != "":
		return normalize(c.Subject) == normalize(n.SubjectDN)
	case n.DNS != "":
		return slices.ContainsFunc(c.parsed.DNSNames, func(name string) bool { return strings.EqualFold(name, n.DNS) })
	case n.URI != "":
		return slices.ContainsFunc(c.parsed.URIs, func(uri *url.URL) bool { return uri.String() == n.URI })
	case n.Email != "":
		return slices.Contains(c.parsed.EmailAddresses, n.Email)
	}
	want, err := netip.ParseAddr(n.IP)
	for _, ip := range c.parsed.IPAddresses {
		if has, ok := netip.AddrFromSlice(ip); err == nil && ok && has.Unmap() == want.Unmap() {
			return true
		}
	}
	return false
}

// IsIP reports whether a text is an IP address.
func IsIP(text string) bool {
	_, err := netip.ParseAddr(text)
	return err == nil
}

// normalize removes the spaces around the separators of a distinguished name, and writes the types of
// attributes in upper case. A separator that is escaped is part of a value.
func normalize(dn string) string {
	var parts []string
	start, escaped := 0, false
	for i := 0; i <= len(dn); i++ {
		switch {
		case i == len(dn) || dn[i] == ',' && !escaped:
			kind, value, _ := strings.Cut(strings.TrimLeft(dn[start:i], " "), "=")
			parts = append(parts, strings.ToUpper(strings.TrimSpace(kind))+"="+trim(value))
			start = i + 1
			escaped = false
		default:
			escaped = dn[i] == '\\' && !escaped
		}
	}
	return strings.Join(parts, ",")
}

// trim removes the spaces around a value, except for an escaped one at its end.
func trim(value string) string {
	value = strings.TrimLeft(value, " ")
	short := strings.TrimRight(value, " ")
	if short != value && strings.HasSuffix(short, `\`) {
		return short + " "
	}
	return short
}

// bindingPrefix begins the names of certificates among those of keys.
const bindingPrefix = "x5t#S256:"

// Binding returns the name of a certificate to which tokens are bound. It is that of no DPoP key,
// whose names are thumbprints.
func (c *Certificate) Binding() string { return Binding(c.Thumbprint) }

// Binding returns the binding of the certificate with a thumbprint.
func Binding(thumbprint string) string { return bindingPrefix + thumbprint }

// ThumbprintOf returns the thumbprint of the certificate that a binding names; false: it names a DPoP
// key, or nothing.
func ThumbprintOf(binding string) (string, bool) { return strings.CutPrefix(binding, bindingPrefix) }
