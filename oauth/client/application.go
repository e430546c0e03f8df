// Package client has the applications of a tenant, which are its OAuth clients.
//
// An [Application] is registered by an administrator ([Registry.Create]) or, if the tenant
// allows it, by the client itself (RFC 7591, [Registry.Register]). A registered client can
// change only its own metadata (RFC 7592); the rest is the least that an application can have:
// users are asked for consent, there are no tokens without a user, and no scopes of groups
// unless they are allowed.
//
// # Authentication
//
// Machines and servers have a secret, which is shown once and stored as its SHA-256: it has
// 256 random bits, so a slower hash is not needed. A rotated secret stays valid beside its
// successor for a while; at most two are valid at once. Or they sign (private_key_jwt, RFC
// 7523): each request has a JWT that is valid for minutes and once. The keys are part of the
// application, or published by it (jwks_uri).
//
// [Authenticator] authenticates the requests of clients. An assertion, and a proof of
// possession (RFC 9449), is consumed only when the request is admitted: after limits were
// counted and before the request changes anything. So a client over a limit can send the same
// request again.
//
// # Rights
//
// The administrative scopes that an application holds without a user, and its permissions to
// exchange tokens, are relations of the engine, which change in the transaction that changes
// the application. No caller can give an application more than it holds itself (package
// authority).
package client

import (
	"slices"
	"time"

	"stonetown/oauth/keys"
	"stonetown/oauth/protocol"
)

// Type is the kind of an application. It is immutable.
type Type string

// The types of applications. Those that can keep a secret have one.
const (
	SPA     Type = "spa"
	Native  Type = "native"
	Machine Type = "m2m"
	Server  Type = "server"
	SAML    Type = "saml" // gets SAML assertions about users, and no tokens
)

// Types are all types.
var Types = []Type{SPA, Native, Machine, Server, SAML}

// Confidential reports whether applications of the type have credentials (RFC 6749 §2.1).
func (t Type) Confidential() bool { return t == Machine || t == Server }

// HasUsers reports whether applications of the type get tokens of users.
func (t Type) HasUsers() bool { return t != Machine && t != SAML }

// SignsUsersIn reports whether users sign in to applications of the type.
func (t Type) SignsUsersIn() bool { return t != Machine }

// State decides whether an application gets new tokens.
type State string

// The states of an application.
const (
	Enabled  State = "enabled"
	Disabled State = "disabled"
)

// Application is an OAuth client of a tenant.
type Application struct {
	ID       string
	TenantID string
	ClientID string // its public name; immutable and never reused
	Type     Type
	State    State
	Source   Source // immutable

	Name            string
	Description     string
	RedirectURIs    []string // compared byte for byte
	AllowedScopes   []string
	AllowedOrigins  []string      // web origins that may read responses: scheme://host[:port]
	Audience        string        // the aud of its tokens; empty: the tenant's base URL
	AccessTokenTTL  time.Duration // whole seconds; 0 for a new one: the tenant's default
	RefreshTokenTTL time.Duration // as AccessTokenTTL
	SigningAlg      keys.Alg      // of its access tokens; empty, for a new one: ES256
	Tags            []string
	TokenExchange   TokenExchange   // zero, for a new one: its type's default
	Options                         // zero, for a new one: its type's default
	ServiceProvider ServiceProvider // of the type saml

	CreatedAt       time.Time // UTC, as the other times
	UpdatedAt       time.Time
	ChangedBy       string    // actor of the last change; empty: the product
	SecretRotatedAt time.Time // zero: never
	LastUsedAt      time.Time // of a token, to within an hour; zero: never

	secrets secrets
}

const (
	// DefaultAccessTokenTTL and DefaultRefreshTokenTTL are the lifetimes of tokens, unless the
	// tenant or the application sets others.
	DefaultAccessTokenTTL  = time.Hour
	DefaultRefreshTokenTTL = 30 * 24 * time.Hour
)

// GrantTypes returns the grants that the application can use: those of its type or, if its client
// registered it, those that the client asked for. Token exchange depends on [TokenExchange].
func (a Application) GrantTypes() []string {
	if a.Registration != nil {
		return a.Registration.GrantTypes
	}
	types := a.Type.grantsOfUsers()
	if a.ActsForItself() {
		types = append(types, protocol.GrantClientCredentials)
	}
	if len(a.WorkloadIdentities) > 0 {
		types = append(types, protocol.GrantJWTBearer)
	}
	return types
}

// Uses reports whether the application can use a grant.
func (a Application) Uses(grantType string) bool { return slices.Contains(a.GrantTypes(), grantType) }

// grantsOfUsers returns the grants by which applications of the type get tokens of users.
func (t Type) grantsOfUsers() (types []string) {
	if t.HasUsers() {
		types = append(types, protocol.GrantAuthorizationCode, protocol.GrantRefreshToken)
	}
	if t.HasDevices() {
		types = append(types, protocol.GrantDeviceCode)
	}
	return types
}

// ActsForItself reports whether the application gets tokens without a user. An application
// that its client registered does not, because no administrator has decided about its rights.
func (a Application) ActsForItself() bool { return a.Type.Confidential() && a.Registration == nil }

// HasSecret reports whether the application authenticates by a secret.
func (a Application) HasSecret() bool {
	return a.Type.Confidential() && a.AuthMethod != PrivateKeyJWT && !a.AuthMethod.usesTLS()
}

// signingAlgs returns the algorithms by which the tokens of the application, and the
// responses to it, are signed.
func (a Application) signingAlgs() (algs []keys.Alg) {
	if a.Type != SAML {
		algs = append(algs, a.SigningAlg)
	}
	if a.Type.HasUsers() {
		algs = append(algs, a.IDTokenAlg, a.AuthorizationAlg)
		if a.UserInfoAlg != "" {
			algs = append(algs, a.UserInfoAlg)
		}
	}
	if a.Type.Confidential() {
		algs = append(algs, a.IntrospectionAlg)
	}
	slices.Sort(algs)
	return slices.Compact(algs)
}

func (t Type) valid() bool { return slices.Contains(Types, t) }

// HasDevices reports whether applications of the type may run on devices without a browser.
func (t Type) HasDevices() bool {
	return slices.Contains([]Type{Native, Server}, t)
}
