package client

import (
	"slices"
	"time"

	"stonetown/oauth/keys"
	"stonetown/oauth/protocol"
)

// Type is the kind of program an application is. It is immutable.
type Type string

// The types of application. Those that run where a secret can be kept have one.
const (
	SPA     Type = "spa"
	Native  Type = "native"
	Machine Type = "m2m"
	Server  Type = "server"
	SAML    Type = "saml" // is told by SAML who signs in, and gets no tokens
)

// Types are all of them.
var Types = []Type{SPA, Native, Machine, Server, SAML}

// Confidential applications have a secret (RFC 6749 §2.1).
func (t Type) Confidential() bool { return t == Machine || t == Server }

// HasUsers reports whether applications of the type get tokens of users.
func (t Type) HasUsers() bool { return t != Machine && t != SAML }

// State says whether an application gets new tokens.
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

	Name            string
	Description     string
	RedirectURIs    []string // where people may be sent back to, compared byte for byte
	AllowedScopes   []string
	AllowedOrigins  []string      // web origins that may read responses: scheme://host[:port]
	Audience        string        // the aud of its tokens; empty: the tenant's base URL
	AccessTokenTTL  time.Duration // whole seconds; 0, until it is stored: as the tenant has it
	RefreshTokenTTL time.Duration // the same
	SigningAlg      keys.Alg      // of its access tokens; empty, for a new one: ES256
	Tags            []string
	TokenExchange   TokenExchange   // zero, for a new one: its type's default
	Options                         // zero, for a new one: its type's default
	ServiceProvider ServiceProvider // of the type saml

	CreatedAt       time.Time // UTC, as are all
	UpdatedAt       time.Time
	ChangedBy       string    // who made the last change; empty: the product
	SecretRotatedAt time.Time // zero: never
	LastUsedAt      time.Time // when it last got a token, to within an hour; zero: never

	secrets secrets
}

const (
	// DefaultAccessTokenTTL and DefaultRefreshTokenTTL are how long tokens are good unless the
	// tenant, or the application, is set up otherwise.
	DefaultAccessTokenTTL  = time.Hour
	DefaultRefreshTokenTTL = 30 * 24 * time.Hour
)

// GrantTypes are the ways in which an application can get tokens.
func (a Application) GrantTypes() []string {
	types := a.Type.grantsOfUsers()
	if a.ActsForItself() {
		types = append(types, protocol.GrantClientCredentials)
	}
	return types
}

// grantsOfUsers are the ways in which applications of the type can get tokens of users.
func (t Type) grantsOfUsers() (types []string) {
	if t.HasUsers() {
		types = append(types, protocol.GrantAuthorizationCode, protocol.GrantRefreshToken)
	}
	if t.HasDevices() {
		types = append(types, protocol.GrantDeviceCode)
	}
	return types
}

// ActsForItself reports whether an application gets tokens without a user. One that a client
// has registered does not, since nobody has decided what it would be entitled to.
func (a Application) ActsForItself() bool { return a.Type.Confidential() && a.Registration == nil }

// HasSecret reports whether an application proves who it is by a secret.
func (a Application) HasSecret() bool { return a.Type.Confidential() && a.AuthMethod != PrivateKeyJWT }

func (t Type) valid() bool { return slices.Contains(Types, t) }

// HasDevices reports whether applications of the type can run where nobody can sign in.
func (t Type) HasDevices() bool {
	return slices.Contains([]Type{Native, Server}, t)
}
