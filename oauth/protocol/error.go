// Package protocol has the names and types that all of OAuth shares: the tenant as an
// authorization server, refusals with their error codes, grant and token types, endpoint
// paths, and random secrets.
package protocol

// Code is an error code of an OAuth endpoint (RFC 6749 §5.2, RFC 8707 §2).
type Code string

// The error codes of the token endpoint.
const (
	InvalidRequest       Code = "invalid_request"
	InvalidClient        Code = "invalid_client"
	UnauthorizedClient   Code = "unauthorized_client"
	UnsupportedGrantType Code = "unsupported_grant_type"
	InvalidScope         Code = "invalid_scope"
	InvalidTarget        Code = "invalid_target"
	InvalidGrant         Code = "invalid_grant"
	InvalidDPoPProof     Code = "invalid_dpop_proof" // RFC 9449 §5
	UseDPoPNonce         Code = "use_dpop_nonce"     // RFC 9449 §8

	InvalidAuthorizationDetails Code = "invalid_authorization_details" // RFC 9396 §5
)

// The error codes of client registration (RFC 7591 §3.2.2).
const (
	InvalidRedirectURI       Code = "invalid_redirect_uri"
	InvalidClientMetadata    Code = "invalid_client_metadata"
	InvalidSoftwareStatement Code = "invalid_software_statement"
)

// NewError returns a refusal.
func NewError(code Code, description string) *Error { return &Error{code, description} }

// Error is a refusal that is reported to the client. Description contains no secret and only
// characters that RFC 6749 §5.2 allows in error_description.
type Error struct {
	Code        Code
	Description string
}

func (e *Error) Error() string { return string(e.Code) + ": " + e.Description }

// The error codes of the authorization endpoint (OIDC Core §3.1.2.6, RFC 6749 §4.1.2.1).
const (
	UnsupportedResponseType = "unsupported_response_type"
	LoginRequired           = "login_required"
	InteractionRequired     = "interaction_required"
	AccessDenied            = "access_denied"
	ConsentRequired         = "consent_required"
	UnmetRequirements       = "unmet_authentication_requirements"
	RequestNotSupported     = "request_not_supported"
	InvalidRequestObject    = "invalid_request_object" // RFC 9101 §6
	RequestURINotSupported  = "request_uri_not_supported"
	InvalidRequestURI       = "invalid_request_uri"
	TemporarilyUnavailable  = "temporarily_unavailable"
)

// The error codes of the device grant (RFC 8628 §3.5).
const (
	AuthorizationPending Code = "authorization_pending"
	SlowDown             Code = "slow_down"
	ExpiredToken         Code = "expired_token"
)
