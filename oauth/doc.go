// Package oauth issues and verifies a tenant's access tokens. It speaks no
// HTTP: the token endpoint hands it a [TokenRequest] and renders the
// [TokenResponse] or [*Error].
//
// # Applications
//
// An [Application] is an OAuth client. Machines (m2m) and servers have a
// secret, shown once when it is made and kept as its SHA-256: it is 256 random
// bits, so nothing slower is needed. A rotated secret stays valid beside its
// successor for a while, never more than one.
//
// Or they sign (private_key_jwt, RFC 7523): each request comes with a JWT that says who
// asks, good for minutes and once. Such an application has no secret and nothing here that
// could be stolen. Package assertion judges the JWT. Which were used is a row each, made only
// after everything else was right. The keys are part of the setup, or published by the
// application (jwks_uri) and fetched when they are needed.
//
// A client may register itself (RFC 7591), where the tenant lets it ([Settings]), and say
// something else later (RFC 7592). What it says is one part of an application, which
// describe takes over and nothing else does; the rest is what a stranger gets: users are
// asked, there is no token without one, and no scope that they have through their groups
// alone. A secret of its own for that, replaced with each change, says that it is the client.
//
// # Access tokens
//
// Tokens are JWTs in the profile of RFC 9068 (typ at+jwt):
//
//	iss        the tenant's base URL
//	sub        who acts; for client credentials the client_id
//	aud        one audience, or several; the product's own API asks for the base URL
//	client_id  the application the token was issued to
//	tid        the tenant's id
//	scope      what was granted, separated by spaces
//	iat, nbf, exp, jti
//
// They are signed with a key of the tenant, so a token of one tenant means
// nothing to another. Each tenant has an ES256 key, the default, and an RS256
// key of 2048 bits for clients that need it; a key's id is its RFC 7638
// thumbprint. Private keys are sealed under the deployment's master key. The
// keys are made when a tenant's first token is issued or its key set is first
// asked for; two processes that do so at once agree on one pair.
//
// # Keys rotate
//
//	next      published for a day, so that everybody has it before it signs
//	active    signs, for 90 days
//	retired   published until the last token it has signed has expired, and an hour
//	removed   refused; the private half is destroyed
//
// Which steps the keys of a tenant have to take is a function of the keys and the time
// ([Service.Run] takes them). No process leads: the steps are written if the keys are still
// those that they were planned for. A process may know the keys of a minute ago, which harms
// nothing, as no key signs that was published for less than a day, or is removed that was
// retired for less. Except in an emergency ([Service.RotateSigningKeys]), when old keys are
// removed and new ones sign at once: removals go the way of revocations, below, and whoever
// holds a removed key reads the keys again.
//
// # Verification
//
// The header of a token chooses among the tenant's own keys by id, and nothing
// more: the algorithm must be the one that key was made for, and keys or URLs
// in the header are not looked at. What has been verified is remembered by the
// token's SHA-256 until it expires, so a token that comes again costs a hash
// and a lookup.
//
// # Token exchange
//
// An application trades a token for one that can do less, is for another audience, or says
// that somebody acts in the place of the subject (RFC 8693). What it may trade for is
// kept as relations of the engine, by [TokenExchange] alone, and asked at one revision:
//
//	application:a#exchange           the application may exchange tokens
//	audience:https://x#exchanger     ... for this audience
//	audience:https://x#caller        which subjects may call that audience
//	application:a#act_as_user        it may let somebody act as a user
//	user:u#act_as                    who may act as this user
//
// The new token carries at most what its subject is entitled to at that moment, expires no
// later than the relations that permitted it, and names its ancestors: the tokens that it
// descends from. Whatever ends one of them ends it, however long the chain.
//
// # Entitlement
//
// Every grant ends in [Service.mint], which takes an entitlement: the scopes that a token
// may carry, decided by one function from the application, the registry of scopes, the user
// and their groups as they are. No grant can put a scope into a token in another way.
//
// # Tokens that are bound to a key
//
// A client that proves to have a key (RFC 9449, package dpop) gets access tokens that name
// it, in cnf, and are refused without a proof of it for each request: [Service.Verify] takes
// only tokens that are bound to none, [Service.VerifyBound] only others. The token of a
// request is remembered as any other; its proof costs a signature to verify and a row to
// write, by which no process accepts it again.
//
// What can become an access token is bound as well, or a thief would take that way: a code,
// if the authorization request named the key; a refresh token, for a client that has no
// secret to prove itself by; an ID token and everything else that can be exchanged. All
// that is refused for want of the key stays as it was, so that a thief cannot use it up.
//
// # Revocation
//
// A token that was taken back is refused at once, on every process. What users have
// granted is read from the database with each use. Single tokens, applications and keys
// are many requests' concern and few requests' change: each process keeps in memory
// which of them are revoked and lets that become 200 ms old, no more; who revokes
// waits as long before the answer ([Service.Revoke], [Service.Settle]).
package oauth
