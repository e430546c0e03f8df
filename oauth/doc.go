// Package oauth is the authorization server of a tenant: OAuth 2.0, OpenID Connect and token
// exchange. It has no HTTP; package api/oauth2 maps its requests and responses.
//
// [Service] composes the packages below it. Each has one idea, and imports only those above it
// in this list:
//
//	protocol       the tenant, refusals with error codes, grant and token types, paths
//	scope          the scope parameter, built-in and OpenID Connect scopes, the registry
//	revocation     the feed of revoked tokens, applications and keys
//	keys           signing keys: rotation, the key set, signatures
//	client         applications: validation, authentication, registration, rights
//	access         the access of applications to users: grants, codes, refresh tokens, consent
//	token          access and ID tokens: claims, entitlement, verification, introspection
//	workload       trusted issuers, and the tokens of their workloads (RFC 7523)
//	grants         the token endpoint: a file for each grant type, and their runner
//	authorization  authorization requests, consent, devices, logout
//
// Packages assertion (RFC 7523) and dpop (RFC 9449) verify what clients sign. They are pure: the
// store of used assertions and proofs is in package client. grants and authorization do not
// know each other; a code or a grant in package access leads from one to the other.
//
// # A token request
//
// [grants.Service] authenticates the client ([client.Authenticator]), verifies its proof of
// possession, lets the grant decide, asks for the entitlement of the token
// ([token.Service.Entitled]), counts limits, signs ([token.Minter]) and commits.
//
// # An authorization request
//
// [authorization.Service] validates the request, stores it while the user signs in on the
// hosted pages, and issues a code for a new [access.Grant].
package oauth
