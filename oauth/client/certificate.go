package client

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"slices"

	"stonetown/internal/jwks"
	"stonetown/internal/text"
	"stonetown/oauth/mtls"
	"stonetown/oauth/protocol"
)

// usesTLS reports whether clients authenticate by their certificate (RFC 8705 §2).
func (m AuthMethod) usesTLS() bool { return m == TLSClientAuth || m == SelfSignedTLS }

// certified verifies that the certificate of the connection is the application's. The chain of one
// that is known by a name was verified by the proxy.
func (s *Authenticator) certified(ctx context.Context, app Application, c *Credentials) (unproved, error) {
	switch {
	case c.ClientSecret != "" || c.Assertion != "":
		return unproved{reason: "the application has a certificate, and neither a secret nor private_key_jwt"}, nil
	case c.Certificate == nil:
		return unproved{reason: "no client certificate"}, nil
	case app.AuthMethod == TLSClientAuth:
		if !c.Certificate.Has(app.Certificate) {
			return unproved{reason: "the client certificate has another name; its subject is " + c.Certificate.Subject}, nil
		}
		return unproved{}, nil
	}
	err := s.Signed(ctx, app, func(keys jwks.Set) error {
		if slices.ContainsFunc(keys, func(k jwks.Key) bool { return bytes.Equal(k.Certificate, c.Certificate.DER) }) {
			return nil
		}
		return jwks.ErrUnknown
	})
	if errors.Is(err, jwks.ErrUnknown) {
		return unproved{reason: "the client certificate is none of the application's"}, nil
	}
	return unproved{}, err
}

// ByCertificate reports whether a request without other credentials is that of an application that
// authenticates by its certificate. Otherwise a certificate proves nothing about the client: a proxy
// may present one on every connection.
func (s *Authenticator) ByCertificate(ctx context.Context, tenant protocol.Tenant, c Credentials) (bool, error) {
	if c.Certificate == nil || c.ClientID == "" || len(c.ClientAuthMethods) > 0 {
		return false, nil
	}
	app, err := Select(ctx, s.db, tenant.ID, c.ClientID)
	if IsNotFound(err) {
		return false, nil
	}
	return app.AuthMethod.usesTLS(), err
}

// maxCertificateName bounds the name of a certificate, in bytes.
const maxCertificateName = 1024

// validateCertificate refuses settings of certificates that cannot work.
func (o Options) validateCertificate(addresses allowed) error {
	names := o.Certificate.Count()
	switch {
	case !addresses.certificates && o.CertificateBound:
		return &ValidationError{"tls_client_certificate_bound_access_tokens", "not_supported", "must be false, because this server gets no certificates of clients"}
	case o.CertificateBound && o.DPoPBound:
		return &ValidationError{"tls_client_certificate_bound_access_tokens", "invalid", "cannot be combined with dpop_bound_access_tokens"}
	case o.AuthMethod == TLSClientAuth && names != 1:
		return &ValidationError{"tls_client_auth_subject_dn", "required", "or one of tls_client_auth_san_dns, _uri, _ip and _email is required for tls_client_auth, and no other"}
	case o.AuthMethod != TLSClientAuth && names > 0:
		return &ValidationError{"tls_client_auth_subject_dn", "invalid", "and the names tls_client_auth_san_dns, _uri, _ip and _email are for tls_client_auth only"}
	case o.AuthMethod == SelfSignedTLS && o.JWKS == nil && o.JWKSURI == "":
		return &ValidationError{"jwks", "required", "or jwks_uri is required for self_signed_tls_client_auth"}
	}
	for field, value := range map[string]string{
		"tls_client_auth_subject_dn": o.Certificate.SubjectDN, "tls_client_auth_san_dns": o.Certificate.DNS, "tls_client_auth_san_uri": o.Certificate.URI,
		"tls_client_auth_san_ip": o.Certificate.IP, "tls_client_auth_san_email": o.Certificate.Email,
	} {
		if len(value) > maxCertificateName || !text.IsLine(value) {
			return &ValidationError{field, "invalid", fmt.Sprintf("must be one line of at most %d bytes", maxCertificateName)}
		}
	}
	if ip := o.Certificate.IP; ip != "" && !mtls.IsIP(ip) {
		return &ValidationError{"tls_client_auth_san_ip", "invalid", "must be an IP address"}
	}
	return nil
}
