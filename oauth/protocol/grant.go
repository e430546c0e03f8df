package protocol

import "time"

// GrantDeviceCode is the device authorization grant (RFC 8628).
const GrantDeviceCode = "urn:ietf:params:oauth:grant-type:device_code"

// GrantTokenExchange is the token exchange grant (RFC 8693).
const GrantTokenExchange = "urn:ietf:params:oauth:grant-type:token-exchange"

// GrantJWTBearer is the grant of assertions (RFC 7523 §2.1). It works for tenants with a trusted
// issuer, so it is not among [GrantTypes].
const GrantJWTBearer = "urn:ietf:params:oauth:grant-type:jwt-bearer"

// The token types of token exchange (RFC 8693 §3).
const (
	TypeAccessToken  = "urn:ietf:params:oauth:token-type:access_token"
	TypeRefreshToken = "urn:ietf:params:oauth:token-type:refresh_token"
	TypeIDToken      = "urn:ietf:params:oauth:token-type:id_token"
	TypeJWT          = "urn:ietf:params:oauth:token-type:jwt"
)

// The grants that lead from an authorization request to tokens.
const (
	GrantAuthorizationCode = "authorization_code" // RFC 6749 §4.1
	GrantRefreshToken      = "refresh_token"      // RFC 6749 §6
)

// GrantTypes are the supported grant types.
var GrantTypes = []string{GrantAuthorizationCode, GrantRefreshToken, GrantClientCredentials, GrantDeviceCode, GrantTokenExchange}

// The values of token_type, which are also the authentication schemes at resources.
const (
	TokenTypeBearer = "Bearer" // RFC 6750
	TokenTypeDPoP   = "DPoP"   // RFC 9449
)

// ResponseTypeCode is the only supported response type.
const ResponseTypeCode = "code"

// GrantClientCredentials is the client credentials grant (RFC 6749 §4.4).
const GrantClientCredentials = "client_credentials"

// MaxAccessTokenTTL bounds the lifetime of access tokens. It also bounds how long a retired
// signing key is published and a revocation is stored.
const MaxAccessTokenTTL = 24 * time.Hour

// The levels of assurance, as values of the claim acr.
const (
	AAL1 = "aal1"
	AAL2 = "aal2"
)
