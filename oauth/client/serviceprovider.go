package client

import (
	"context"
	"crypto/rsa"
	"crypto/x509"
	"encoding/pem"
	"fmt"
	"slices"
	"strings"

	"stonetown/internal/sqldb"
	"stonetown/internal/text"
)

// ServiceProvider is an application that gets SAML 2.0 assertions about users.
type ServiceProvider struct {
	EntityID string   `json:"entity_id"`
	ACSURL   string   `json:"acs_url"`            // to which assertions are posted
	ACSURLs  []string `json:"acs_urls,omitempty"` // others that a request may name
	SLOURL   string   `json:"slo_url,omitempty"`  // empty: it gets no logout requests
	// Certificate, in PEM, verifies its requests and encrypts assertions; empty: none.
	Certificate         string               `json:"certificate,omitempty"`
	AttributeStatements []AttributeStatement `json:"attribute_statements,omitempty"`
	NameIDFormat        string               `json:"name_id_format"`
	SignResponse        bool                 `json:"sign_response"`
	SignAssertion       bool                 `json:"sign_assertion"`
	EncryptAssertion    bool                 `json:"encrypt_assertion"`
	SignedRequests      bool                 `json:"want_authn_requests_signed"`
	AllowIDPInitiated   bool                 `json:"allow_idp_initiated"`
}

// AttributeStatement is one attribute of an assertion.
type AttributeStatement struct {
	Name       string `json:"name"`
	NameFormat string `json:"name_format"`
	Value      string `json:"value"` // a field of the profile, attributes.x, or groups
}

// The values of enumerations of a [ServiceProvider].
var (
	nameIDFormats    = []string{"persistent", "emailAddress", "transient"}
	attributeFormats = []string{"unspecified", "uri", "basic"}
	attributeValues  = []string{"id", "email", "email_verified", "name", "given_name", "family_name", "locale", "picture", "groups"}
)

const (
	maxAttributes  = 50
	maxACSURLs     = 20
	maxCertificate = 16 << 10 // bytes
)

// DefaultServiceProvider returns a service provider with the default settings.
func DefaultServiceProvider() ServiceProvider {
	return ServiceProvider{NameIDFormat: nameIDFormats[0], SignAssertion: true}
}

func (p ServiceProvider) validate() error {
	if p.EntityID == "" || p.ACSURL == "" {
		field := "entity_id"
		if p.EntityID != "" {
			field = "acs_url"
		}
		return &ValidationError{field, "required", "is required"}
	}
	if len(p.EntityID) > 1024 || !visible(p.EntityID) { // SAML 2.0 Core §8.3.6
		return &ValidationError{"entity_id", "invalid", "must be a URI of at most 1024 characters"}
	}
	urls := map[string][]string{"acs_url": {p.ACSURL}, "acs_urls": p.ACSURLs, "slo_url": {p.SLOURL}}
	for field, list := range urls {
		for _, uri := range list {
			if (uri != "" || field == "acs_urls") && !text.IsSecureURL(uri) {
				return &ValidationError{field, "invalid", fmt.Sprintf("must be https without fragment, of at most %d characters", maxURI)}
			}
		}
	}
	switch {
	case len(p.ACSURLs) > maxACSURLs:
		return &ValidationError{"acs_urls", "too_many", fmt.Sprintf("must be at most %d", maxACSURLs)}
	case !slices.Contains(nameIDFormats, p.NameIDFormat):
		return &ValidationError{"name_id_format", "unknown_value", fmt.Sprintf("must be one of %q", nameIDFormats)}
	case !p.SignResponse && !p.SignAssertion:
		return &ValidationError{"sign_assertion", "invalid", "must be true unless the response is signed"}
	case p.Certificate == "" && (p.EncryptAssertion || p.SignedRequests):
		return &ValidationError{"certificate", "required", "is required for encrypt_assertion and signed_requests"}
	case len(p.AttributeStatements) > maxAttributes:
		return &ValidationError{"attribute_statements", "too_many", fmt.Sprintf("must be at most %d", maxAttributes)}
	}
	if p.Certificate != "" {
		certificate, ok := parseCertificate(p.Certificate)
		if !ok {
			return &ValidationError{"certificate", "invalid", "must be one X.509 certificate in PEM"}
		}
		if _, ok := certificate.PublicKey.(*rsa.PublicKey); p.EncryptAssertion && !ok {
			return &ValidationError{"certificate", "invalid", "must have an RSA key for encrypt_assertion"}
		}
	}
	for _, a := range p.AttributeStatements {
		known := slices.Contains(attributeValues, a.Value) || strings.HasPrefix(a.Value, "attributes.") && len(a.Value) > len("attributes.")
		switch {
		case a.Name == "" || validLine("name", a.Name) != nil || validLine("value", a.Value) != nil:
			return &ValidationError{"attribute_statements", "invalid", fmt.Sprintf("must each have a name of 1 to %d bytes", maxText)}
		case !slices.Contains(attributeFormats, a.NameFormat):
			return &ValidationError{"attribute_statements", "unknown_value", fmt.Sprintf("must each have a name_format of %q", attributeFormats)}
		case !known:
			return &ValidationError{"attribute_statements", "unknown_value", fmt.Sprintf("must each have a value that is attributes.<name> or one of %q", attributeValues)}
		}
	}
	return nil
}

// validateEntityID refuses the entity id of another application: the issuer of a message must lead to
// one application.
func (a Application) validateEntityID(ctx context.Context, tx *sqldb.Tx) error {
	other, err := SelectByEntityID(ctx, tx, a.TenantID, a.ServiceProvider.EntityID)
	switch {
	case IsNotFound(err) || err == nil && other.ID == a.ID:
		return nil
	case err != nil:
		return err
	}
	return &ValidationError{"entity_id", "taken", "is the entity id of another application"}
}

// parseCertificate reads one certificate in PEM.
func parseCertificate(text string) (*x509.Certificate, bool) {
	if len(text) > maxCertificate {
		return nil, false
	}
	block, rest := pem.Decode([]byte(text))
	if block == nil || block.Type != "CERTIFICATE" || len(strings.TrimSpace(string(rest))) > 0 {
		return nil, false
	}
	certificate, err := x509.ParseCertificate(block.Bytes)
	return certificate, err == nil
}
