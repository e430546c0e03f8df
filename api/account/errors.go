package account

import (
	"errors"
	"maps"
	"net/http"

	"stonetown/api/people"
	"stonetown/api/web"
	"stonetown/identity/authn"
	"stonetown/identity/external"
	"stonetown/identity/factor"
	"stonetown/identity/flow"
	"stonetown/oauth/token"
)

// Errors is the error format of the operations.
var Errors = web.ErrorFormat{Translate: translate}

// translate returns the response to an error of the domain, or nil for an internal error.
func translate(err error) *web.Error {
	bad := func(code, message string) *web.Error {
		return &web.Error{Status: http.StatusBadRequest, Code: code, Message: message}
	}
	if e := requestError(err); e != nil {
		return e
	}
	if e := federationError(err); e != nil {
		if again, ok := errors.AsType[*returningError](err); ok {
			e.Details = maps.Clone(e.Details)
			if e.Details == nil {
				e.Details = web.Details{}
			}
			e.Details["redirect_to"] = again.next
		}
		return e
	}
	if message, denied := authn.IsDenied(err); denied {
		return deniedByFlow(message)
	}
	var wrong *authn.WrongError
	var slow *authn.SlowDownError
	switch {
	case errors.As(err, &wrong):
		code := "code_invalid"
		if wrong.Kind == factor.WebAuthn {
			code = "credential_invalid"
		}
		return &web.Error{Status: http.StatusBadRequest, Code: code, Message: wrong.Error(), Details: web.Details{"attempts_left": wrong.Left}}
	case errors.As(err, &slow):
		return web.SlowDown(slow.RetryAfter)
	case errors.Is(err, authn.ErrCredentials):
		return &web.Error{Status: http.StatusUnauthorized, Code: "invalid_credentials", Message: authn.ErrCredentials.Error()}
	case errors.Is(err, authn.ErrDisabled):
		return &web.Error{Status: http.StatusForbidden, Code: "user_disabled", Message: authn.ErrDisabled.Error()}
	case errors.Is(err, authn.ErrThreat):
		return &web.Error{Status: http.StatusForbidden, Code: "permission_denied", Message: authn.ErrThreat.Error(), Details: web.Details{"required_scope": nil, "reason": "threat_feed"}}
	case errors.Is(err, authn.ErrSignUpClosed):
		return &web.Error{Status: http.StatusForbidden, Code: "permission_denied", Message: authn.ErrSignUpClosed.Error(), Details: web.Details{"required_scope": nil}}
	case errors.Is(err, authn.ErrToken):
		return bad("ceremony_invalid", authn.ErrToken.Error())
	case errors.Is(err, authn.ErrKind):
		return &web.Error{
			Status: http.StatusBadRequest, Code: "factor_kind_unsupported", Message: authn.ErrKind.Error(),
			Details: web.Details{"supported": []factor.Kind{factor.WebAuthn, factor.TOTP, factor.SMS, factor.BackupCode}},
		}
	case errors.Is(err, authn.ErrNumber):
		return web.ValidationFailed(web.FieldError{Field: "phone_number", Code: "invalid", Message: "phone_number is " + authn.ErrNumber.Error()})
	case errors.Is(err, authn.ErrNoPassword):
		return bad("password_not_set", authn.ErrNoPassword.Error())
	case errors.Is(err, authn.ErrPassword):
		return bad("password_incorrect", authn.ErrPassword.Error())
	case errors.Is(err, authn.ErrVerified):
		return &web.Error{Status: http.StatusConflict, Code: "email_already_verified", Message: authn.ErrVerified.Error()}
	case errors.Is(err, authn.ErrCurrent):
		return &web.Error{
			Status: http.StatusConflict, Code: "session_is_current", Message: authn.ErrCurrent.Error(), Details: web.Details{"logout_url": "/api/v1/auth/logout"},
		}
	case errors.Is(err, authn.ErrChangeNotFound):
		return &web.Error{Status: http.StatusNotFound, Code: "email_change_not_found", Message: authn.ErrChangeNotFound.Error()}
	case errors.Is(err, external.ErrNotFound):
		return &web.Error{Status: http.StatusNotFound, Code: "identity_not_found", Message: external.ErrNotFound.Error()}
	case errors.Is(err, authn.ErrLastMethod):
		return &web.Error{Status: http.StatusConflict, Code: "last_sign_in_method", Message: authn.ErrLastMethod.Error()}
	case errors.Is(err, factor.ErrLimit):
		return &web.Error{Status: http.StatusConflict, Code: "factor_limit_reached", Message: factor.ErrLimit.Error()}
	case errors.Is(err, factor.ErrCredentialExists):
		return &web.Error{Status: http.StatusConflict, Code: "credential_exists", Message: factor.ErrCredentialExists.Error()}
	}
	return people.Errors.Translate(err)
}

// deniedByFlow returns the response to a sign-up or a sign-in that the flow of the tenant refused.
func deniedByFlow(message string) *web.Error {
	e := &web.Error{
		Status: http.StatusForbidden, Code: "permission_denied", Message: (&flow.DeniedError{Message: message}).Error(),
		Details: web.Details{"required_scope": nil, "reason": "sign_in_flow"},
	}
	if message != "" {
		e.Details["flow_message"] = message
	}
	return e
}

var _ Tokens = (*token.Service)(nil)
