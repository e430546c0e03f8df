package relyingparty

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"golang.org/x/oauth2"

	"stonetown/internal/outbound"
	"stonetown/internal/text"
)

// Class is the class of an error: what a person can do about it.
type Class string

// The classes of errors.
const (
	Denied              Class = "access_denied"        // the user or the provider refused
	InteractionRequired Class = "interaction_required" // the provider requires a page, which prompt=none forbids
	Stale               Class = "stale"                // the answer came too late, or for the second time
	Invalid             Class = "invalid_response"     // the answer violates the protocol; it may be an attack
	Misconfigured       Class = "misconfigured"        // the connection must be changed, here or at the provider
	Unavailable         Class = "provider_error"       // the provider failed
	Unreachable         Class = "unreachable"          // the provider did not answer
)

// sentences are the messages of the classes, for a person.
var sentences = map[Class]string{
	Denied:              "the identity provider refused the sign-in, or it was canceled there",
	InteractionRequired: "the identity provider requires the user to interact",
	Stale:               "the sign-in has expired or was completed before; start again",
	Invalid:             "the answer of the identity provider is not valid",
	Misconfigured:       "the connection to the identity provider is not configured correctly",
	Unavailable:         "the identity provider failed; try again later",
	Unreachable:         "the identity provider cannot be reached; try again later",
}

// Step is the step of the protocol that failed.
type Step string

// The steps.
const (
	Configuration Step = "configuration"
	Discovery     Step = "discovery"
	Authorization Step = "authorization"
	Token         Step = "token"
	Keys          Step = "keys"
	IDToken       Step = "id_token"
	Userinfo      Step = "userinfo"
	LogoutToken   Step = "logout_token"
)

// Error is a failed operation. Its text is safe for a person: it contains nothing that the
// provider sent.
type Error struct {
	Class Class
	Step  Step
	// Detail is the cause, for logs and for the administrator of the connection. It may quote
	// an error code and a description of the provider, as printable text of limited length, but
	// no token, no code and no secret.
	Detail string
	err    error
}

func (e *Error) Error() string { return sentences[e.Class] }

// Unwrap returns the cause, which may be nil. It may contain internal addresses and is for logs.
func (e *Error) Unwrap() error { return e.err }

// failed returns an error. The detail must not quote what the provider sent, except by quote.
func failed(class Class, step Step, format string, args ...any) *Error {
	return &Error{Class: class, Step: step, Detail: fmt.Sprintf(format, args...)}
}

// at returns a step's error for an error of verification or of a request.
func at(step Step, err error) error {
	var known *Error
	var refused *refusal
	var request *outbound.Error
	switch {
	case err == nil, errors.Is(err, context.Canceled), errors.Is(err, context.DeadlineExceeded) && !errors.As(err, &request):
		return err
	case errors.As(err, &known):
		return known
	case errors.As(err, &refused):
		return failed(Invalid, step, "%s", refused.reason)
	case errors.As(err, &request):
		return &Error{Class: classOf(request), Step: step, Detail: "request: " + request.Error(), err: request.Unwrap()}
	}
	return &Error{Class: Unavailable, Step: step, Detail: "the answer cannot be read", err: err}
}

// classOf returns the class of a failed request.
func classOf(e *outbound.Error) Class {
	switch e.Class {
	case outbound.Invalid, outbound.BlockedAddress:
		return Misconfigured
	case outbound.Status:
		if e.Status >= 500 || e.Status == 429 || e.Status == 408 {
			return Unavailable
		}
		return Misconfigured
	case outbound.TooLarge:
		return Invalid
	}
	return Unreachable
}

// codes are the error codes of the authorization endpoint (RFC 6749 §4.1.2.1, Core §3.1.2.6) and
// the token endpoint (RFC 6749 §5.2), and those of providers that have their own. The provider
// failed with any other code.
var codes = map[string]Class{
	"access_denied":            Denied,
	"user_cancelled_authorize": Denied, // Apple
	"user_cancelled_login":     Denied,

	"login_required":             InteractionRequired,
	"interaction_required":       InteractionRequired,
	"consent_required":           InteractionRequired,
	"account_selection_required": InteractionRequired,

	"invalid_grant":         Stale,
	"bad_verification_code": Stale, // GitHub

	"invalid_request":                   Misconfigured,
	"invalid_client":                    Misconfigured,
	"unauthorized_client":               Misconfigured,
	"unsupported_grant_type":            Misconfigured,
	"unsupported_response_type":         Misconfigured,
	"invalid_scope":                     Misconfigured,
	"invalid_target":                    Misconfigured,
	"invalid_resource":                  Misconfigured, // Microsoft
	"redirect_uri_mismatch":             Misconfigured, // Google, GitHub
	"incorrect_client_credentials":      Misconfigured, // GitHub
	"application_suspended":             Misconfigured, // GitHub
	"unmet_authentication_requirements": Denied,        // the requested acr (OpenID Connect Unmet Authentication Requirements)
	"unverified_user_email":             Denied,        // GitHub
}

// answered returns the error of an answer with an error code and a description. Secrets are
// replaced in them.
func answered(step Step, code, description string, secrets ...string) *Error {
	class, ok := codes[code]
	if !ok {
		class = Unavailable
	}
	detail := "the provider answers " + quote(code, secrets)
	if description != "" {
		detail += ": " + quote(description, secrets)
	}
	return &Error{Class: class, Step: step, Detail: detail}
}

// retrieved returns the error of a token request.
func retrieved(err error, secrets ...string) error {
	var answer *oauth2.RetrieveError
	var request *outbound.Error
	switch {
	case errors.As(err, &answer) && answer.ErrorCode != "":
		return answered(Token, answer.ErrorCode, answer.ErrorDescription, secrets...)
	case errors.As(err, &answer):
		status := &outbound.Error{Class: outbound.Status, Status: answer.Response.StatusCode}
		return failed(classOf(status), Token, "request: %s", status)
	case errors.As(err, &request), errors.Is(err, context.Canceled), errors.Is(err, context.DeadlineExceeded):
		return at(Token, err)
	}
	return failed(Invalid, Token, "the answer is not a token response") // the library's text may quote it
}

// quote returns text of a provider in quotation marks, without secrets, control characters and
// the rest of a long text.
func quote(sent string, secrets []string) string {
	for _, secret := range secrets {
		if secret != "" {
			sent = strings.ReplaceAll(sent, secret, "[removed]")
		}
	}
	return text.Quote(sent)
}
