package federation

import (
	"errors"
	"fmt"

	"stonetown/identity/federation/relyingparty"
	"stonetown/internal/outbound"
)

// Provider returns a connection of any kind but [SAML] as package relyingparty uses it, with its
// secrets in clear.
func (r *Registry) Provider(c Connection) (relyingparty.Provider, error) {
	secrets, err := r.Secrets(c)
	if err != nil {
		return relyingparty.Provider{}, err
	}
	p := relyingparty.Provider{
		Kind: relyingparty.Kind(c.Kind), Issuer: c.Issuer, Directory: c.MicrosoftTenant,
		ClientID: c.ClientID, Secret: secrets.Client, AppleKey: secrets.AppleKey, Scopes: c.RequestedScopes(),
	}
	if c.Kind == OIDC {
		p.Metadata = c.providerMetadata()
	}
	return p, nil
}

// providerMetadata returns the metadata of an OpenID provider: that of its discovery document, or
// the endpoints that were set.
func (c Connection) providerMetadata() *relyingparty.Metadata {
	if c.Metadata.Provider != nil {
		return c.Metadata.Provider
	}
	e := c.Endpoints
	return &relyingparty.Metadata{
		Issuer: c.Issuer, AuthorizationEndpoint: e.Authorization, TokenEndpoint: e.Token, JWKSURI: e.JWKS, UserinfoEndpoint: e.UserInfo, EndSessionEndpoint: e.EndSession,
	}
}

// parseProvider parses and validates a discovery document.
func (r *Registry) parseProvider(document []byte, issuer string) (*relyingparty.Metadata, error) {
	m, err := r.providers.ParseMetadata(document, issuer)
	var invalid *relyingparty.Error
	if errors.As(err, &invalid) {
		err = fmt.Errorf("%s", invalid.Detail)
	}
	return &m, err
}

// validate fails with [*FieldError] unless the endpoints are there and can be used.
func (e Endpoints) validate(client *outbound.Client) *FieldError {
	for _, one := range []struct {
		field, url string
		required   bool
	}{
		{"authorization_endpoint", e.Authorization, true},
		{"token_endpoint", e.Token, true},
		{"jwks_uri", e.JWKS, true},
		{"userinfo_endpoint", e.UserInfo, false},
		{"end_session_endpoint", e.EndSession, false},
	} {
		if one.url == "" {
			if one.required {
				return &FieldError{one.field, "required", "is required"}
			}
			continue
		}
		if problem := urlProblem(client.CheckURL(one.url)); problem != nil {
			return &FieldError{one.field, "invalid", "must be an https URL on the public Internet without user information and fragment: " + problem.Error()}
		}
	}
	return nil
}
