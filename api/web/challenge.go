package web

import (
	"net/http"
	"strings"

	"stonetown/oauth/dpop"
	"stonetown/oauth/protocol"
	"stonetown/oauth/token"
)

// challenge returns WWW-Authenticate fields: of the scheme in the request, with the error, and
// of the other one (RFC 6750 §3, RFC 9449 §7.1). params, if any, begin with a comma.
func (info *RequestInfo) challenge(scheme, params string) http.Header {
	realm := ` realm="` + info.Tenant.BaseURL + `", resource_metadata="` + info.Tenant.BaseURL + protocol.ProtectedResourcePath + `"` // RFC 9728 §5.1
	bearer := protocol.TokenTypeBearer + realm
	bound := protocol.TokenTypeDPoP + realm + `, algs="` + strings.Join(dpop.Algs, " ") + `"`
	if scheme == protocol.TokenTypeDPoP {
		return http.Header{"Www-Authenticate": {bound + params, bearer}}
	}
	return http.Header{"Www-Authenticate": {bearer + params, bound}}
}

// scheme returns the scheme of the caller's token; Bearer without a token.
func (info *RequestInfo) scheme() string {
	if info.Principal != nil && info.Principal.Thumbprint != "" {
		return protocol.TokenTypeDPoP
	}
	return protocol.TokenTypeBearer
}

// InvalidToken refuses a token that the pipeline had accepted.
func InvalidToken(info *RequestInfo, reason token.Reason) *Error {
	return info.invalidToken(info.scheme(), reason)
}

func (info *RequestInfo) invalidToken(scheme string, reason token.Reason) *Error {
	return &Error{
		Status: http.StatusUnauthorized, Code: "invalid_token", Message: "the access token is not valid",
		Details: Details{"reason": string(reason)}, Header: info.challenge(scheme, `, error="invalid_token"`),
	}
}

// invalidTokenRequest refuses a request with more than one token (RFC 6750 §3.1).
func (info *RequestInfo) invalidTokenRequest(message string) *Error {
	return &Error{
		Status: http.StatusBadRequest, Code: "invalid_request", Message: message,
		Header: info.challenge(protocol.TokenTypeBearer, `, error="invalid_request"`),
	}
}

// InsufficientScope refuses a token without a scope (RFC 6750 §3.1). It is for the handlers of
// operations that are [Operation.Related], or that require another scope for a part of the request.
func InsufficientScope(info *RequestInfo, scope string) *Error {
	return info.insufficientScope(info.scheme(), scope)
}

func (info *RequestInfo) insufficientScope(scheme, scope string) *Error {
	return &Error{
		Status: http.StatusForbidden, Code: "insufficient_scope", Message: "the access token lacks the scope " + scope,
		Details: Details{"required_scope": scope}, Header: info.challenge(scheme, `, error="insufficient_scope", scope="`+scope+`"`),
	}
}

func (info *RequestInfo) invalidProof(reason dpop.Reason) *Error {
	if reason == dpop.UseNonce {
		return &Error{
			Status: http.StatusUnauthorized, Code: "use_dpop_nonce", Message: "the DPoP proof must have the nonce of the header field " + dpop.NonceHeader,
			Header: info.challenge(protocol.TokenTypeDPoP, `, error="use_dpop_nonce"`),
		}
	}
	return &Error{
		Status: http.StatusUnauthorized, Code: "invalid_dpop_proof", Message: "the DPoP proof is not valid",
		Details: Details{"reason": string(reason)}, Header: info.challenge(protocol.TokenTypeDPoP, `, error="invalid_dpop_proof"`),
	}
}
