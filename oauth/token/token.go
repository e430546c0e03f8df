// Package token has the access tokens and ID tokens of a tenant: their claims, and how they
// are issued, verified, introspected and revoked.
//
// # Access tokens
//
// Access tokens are JWTs of the profile of RFC 9068 (typ at+jwt):
//
//	iss        the tenant's base URL
//	sub        the user, or for client credentials the client_id
//	aud        one audience or several; the product's own API requires the base URL
//	client_id  the application to which the token was issued
//	tid        the tenant's id
//	scope      the granted scopes, separated by spaces
//	iat, nbf, exp, jti
//
// The scopes of a token are an [Entitlement]. Only [Service.Entitled] returns one, from the
// application, the registered scopes, the user and the groups of the user as they are, and
// [Minter.AccessToken] accepts nothing else. So no grant can put a scope into a token without
// it.
//
// # Verification
//
// The header of a token selects one of the tenant's own keys by its id. The algorithm must be
// that of the key; keys and URLs in the header are ignored. Verified tokens are cached by
// their SHA-256 until they expire, so that a repeated token costs a hash and a lookup.
//
// A token that is bound to a key (claim cnf, RFC 9449) requires a proof of the key with each
// request: [Service.Verify] accepts only tokens that are not bound, [Service.VerifyBound] only
// tokens that are.
//
// # The end of a token
//
// A token ends with its application, its signing key, its grant, its session and its own
// revocation (RFC 7009). A token that was issued by a token exchange also names its ancestors
// (claim anc): the tokens from which it descends. Anything that ends an ancestor ends the
// token, however long the chain.
package token

import (
	"time"

	"stonetown/internal/sqldb"
	"stonetown/oauth/access"
	"stonetown/oauth/claim"
	"stonetown/oauth/client"
	"stonetown/oauth/detail"
	"stonetown/oauth/keys"
	"stonetown/oauth/revocation"
)

// Config is the configuration of a [Service]. All fields are required.
type Config struct {
	DB      *sqldb.DB
	Users   access.Users
	Keys    *keys.Service
	Access  *access.Store
	Clients *client.Authenticator // authenticates clients that revoke and introspect tokens
	Claims  *claim.Finder
	Details *detail.Checker
	Revoked *revocation.Feed
	Clock   func() time.Time
}

// Service verifies, introspects and revokes tokens of any number of tenants. It is safe for
// concurrent use.
type Service struct {
	db       *sqldb.DB
	users    access.Users
	keys     *keys.Service
	access   *access.Store
	authn    *client.Authenticator
	claims   *claim.Finder
	details  *detail.Checker
	revoked  *revocation.Feed
	clock    func() time.Time
	verified *verifiedTokens
}

// New returns the service, and the minter of its tokens, which belongs to the runner of the
// grants.
func New(c Config) (*Service, *Minter) {
	s := &Service{c.DB, c.Users, c.Keys, c.Access, c.Clients, c.Claims, c.Details, c.Revoked, c.Clock, newVerifiedTokens()}
	return s, &Minter{s}
}
