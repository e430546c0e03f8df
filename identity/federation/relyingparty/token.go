package relyingparty

import (
	"bytes"
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"io"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/lestrrat-go/jwx/v3/jwa"
	"github.com/lestrrat-go/jwx/v3/jws"
	"golang.org/x/oauth2"

	"stonetown/internal/outbound"
)

// tokens are the tokens of a token response.
type tokens struct{ access, id string }

// redeem exchanges a code (RFC 6749 §4.1.3).
func (s *Service) redeem(ctx context.Context, p Provider, m Metadata, pending Pending, code string) (tokens, error) {
	preset, err := s.preset(p)
	if err != nil {
		return tokens{}, err
	}
	config := oauth2.Config{ClientID: p.ClientID, ClientSecret: p.Secret, RedirectURL: pending.RedirectURI}
	if p.Kind == Apple && p.AppleKey != nil {
		if config.ClientSecret, err = p.AppleKey.secret(p.ClientID, preset.Issuer, s.clock()); err != nil {
			return tokens{}, &Error{Class: Misconfigured, Step: Configuration, Detail: "the client secret cannot be signed", err: err}
		}
	}
	method, err := authMethod(p, preset, m, config.ClientSecret)
	if err != nil {
		return tokens{}, err
	}
	config.Endpoint = oauth2.Endpoint{TokenURL: m.TokenEndpoint, AuthStyle: oauth2.AuthStyleInParams}
	if method == ClientSecretBasic {
		config.Endpoint.AuthStyle = oauth2.AuthStyleInHeader
	}
	ctx = context.WithValue(ctx, oauth2.HTTPClient, &http.Client{
		Transport:     transport{s},
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	})
	token, err := config.Exchange(ctx, code, oauth2.VerifierOption(pending.Verifier))
	if err != nil {
		return tokens{}, retrieved(err, code, pending.Verifier, p.Secret, config.ClientSecret)
	}
	if token.TokenType != "" && !strings.EqualFold(token.TokenType, "bearer") {
		return tokens{}, failed(Invalid, Token, "token_type is not Bearer")
	}
	id, _ := token.Extra("id_token").(string)
	return tokens{token.AccessToken, id}, nil
}

// authMethod returns the method of client authentication. The default of metadata is
// client_secret_basic (Discovery §3).
func authMethod(p Provider, preset Preset, m Metadata, secret string) (string, error) {
	switch {
	case p.AuthMethod == ClientSecretBasic || p.AuthMethod == ClientSecretPost || p.AuthMethod == NoAuthentication:
		return p.AuthMethod, nil
	case p.AuthMethod != "":
		return "", failed(Misconfigured, Configuration, "the method of client authentication is not supported")
	case secret == "":
		return NoAuthentication, nil
	case preset.AuthMethod != "":
		return preset.AuthMethod, nil
	case len(m.AuthMethods) == 0 || slices.Contains(m.AuthMethods, ClientSecretBasic):
		return ClientSecretBasic, nil
	case slices.Contains(m.AuthMethods, ClientSecretPost):
		return ClientSecretPost, nil
	}
	return "", failed(Misconfigured, Configuration, "token_endpoint_auth_methods_supported has neither client_secret_basic nor client_secret_post")
}

// transport sends the requests of package oauth2 by package outbound.
type transport struct{ service *Service }

// RoundTrip implements [http.RoundTripper].
func (t transport) RoundTrip(req *http.Request) (*http.Response, error) {
	if req.Body != nil {
		defer req.Body.Close()
	}
	req = req.Clone(req.Context())
	req.Header.Set("Accept", "application/json") // GitHub answers with a form otherwise
	a, err := t.service.do(req, Token)
	var status *outbound.Error
	if err != nil && (!errors.As(err, &status) || status.Class != outbound.Status) {
		return nil, err
	}
	return &http.Response{
		StatusCode: a.Status, Header: a.Header, Body: io.NopCloser(bytes.NewReader(a.Body)), ContentLength: int64(len(a.Body)),
		Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1, Request: req,
	}, nil
}

// AppleKey is a key of an Apple developer account, which signs client secrets.
type AppleKey struct {
	teamID, keyID string
	private       *ecdsa.PrivateKey
}

// appleSecretLife is the lifetime of a client secret, which is made for one request.
const appleSecretLife = 5 * time.Minute

// ParseAppleKey returns the key in a file of Apple: a private key of the curve P-256 as PKCS #8 in
// PEM, with the ids of the team and of the key. Its errors do not quote the key.
func ParseAppleKey(teamID, keyID, file string) (*AppleKey, error) {
	block, rest := pem.Decode([]byte(strings.TrimSpace(file)))
	if block == nil || block.Type != "PRIVATE KEY" || len(bytes.TrimSpace(rest)) > 0 {
		return nil, errors.New("must be one private key in PEM, as Apple's .p8 file")
	}
	parsed, err := x509.ParsePKCS8PrivateKey(block.Bytes)
	private, ok := parsed.(*ecdsa.PrivateKey)
	if err != nil || !ok || private.Curve != elliptic.P256() {
		return nil, errors.New("must be a private key of the curve P-256")
	}
	if teamID == "" || keyID == "" {
		return nil, errors.New("the id of the team and of the key are required")
	}
	return &AppleKey{teamID, keyID, private}, nil
}

// secret returns a client secret.
func (k *AppleKey) secret(clientID, audience string, now time.Time) (string, error) {
	payload, err := json.Marshal(map[string]any{
		"iss": k.teamID, "sub": clientID, "aud": audience, "iat": now.Unix(), "exp": now.Add(appleSecretLife).Unix(),
	}, json.Deterministic(true))
	if err != nil {
		return "", err
	}
	h := jws.NewHeaders()
	if err := h.Set(jws.KeyIDKey, k.keyID); err != nil {
		return "", err
	}
	secret, err := jws.Sign(payload, jws.WithKey(jwa.ES256(), k.private, jws.WithProtectedHeaders(h)))
	return string(secret), err
}
