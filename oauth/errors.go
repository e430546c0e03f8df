package oauth

import "errors"

// Code is an error code of the token endpoint (RFC 6749 §5.2, RFC 8707 §2).
type Code string

// The codes that [Service.Token] answers with.
const (
	InvalidRequest       Code = "invalid_request"
	InvalidClient        Code = "invalid_client"
	UnauthorizedClient   Code = "unauthorized_client"
	UnsupportedGrantType Code = "unsupported_grant_type"
	InvalidScope         Code = "invalid_scope"
	InvalidTarget        Code = "invalid_target"
	InvalidGrant         Code = "invalid_grant"
	InvalidDPoPProof     Code = "invalid_dpop_proof" // RFC 9449 §5
)

// The codes of refused registrations (RFC 7591 §3.2.2).
const (
	InvalidRedirectURI       Code = "invalid_redirect_uri"
	InvalidClientMetadata    Code = "invalid_client_metadata"
	InvalidSoftwareStatement Code = "invalid_software_statement"
)

// Error is a refusal that the client is told about. Description holds nothing
// secret and only characters that RFC 6749 §5.2 allows in error_description.
type Error struct {
	Code        Code
	Description string
}

func (e *Error) Error() string { return string(e.Code) + ": " + e.Description }

// Reason says in a word why an access token was refused.
type Reason string

// The reasons that [Service.Verify] and [Service.VerifyBound] answer with.
const (
	Malformed      Reason = "malformed"       // not a signed JWT, or a required claim is missing
	WrongType      Reason = "wrong_type"      // a JWT for another purpose
	BadSignature   Reason = "bad_signature"   // not signed by this tenant, or not as its key is used
	WrongIssuer    Reason = "wrong_issuer"    // issued under another base URL
	WrongTenant    Reason = "wrong_tenant"    // issued for another tenant
	WrongAudience  Reason = "wrong_audience"  // meant for another API
	Expired        Reason = "expired"         // its time is over
	NotYetValid    Reason = "not_yet_valid"   // its time has not come
	Revoked        Reason = "revoked"         // its session has ended
	UnsupportedAlg Reason = "unsupported_alg" // signed with an algorithm that is never used here
	Bound          Reason = "bound"           // bound to a key, and presented as if it were not
	NotBound       Reason = "not_bound"       // presented as bound to a key, and it is not
	WrongKey       Reason = "wrong_key"       // bound to another key than the proof's
)

// TokenError is the refusal of an access token. It never quotes the token.
type TokenError struct{ Reason Reason }

func (e *TokenError) Error() string { return "access token refused: " + string(e.Reason) }

var (
	// ErrApplicationNotFound is returned by lookups that match no application.
	ErrApplicationNotFound = errors.New("application not found")

	// ErrApplicationInvalid is wrapped by every refusal to create an application.
	ErrApplicationInvalid = errors.New("invalid application")

	// ErrNotApplicable is returned for a secret operation on an application
	// that has none, by its type or because it signs.
	ErrNotApplicable = errors.New("the application has no secret")
)
