package people

import (
	"errors"
	"net/http"

	"stonetown/api/web"
	"stonetown/identity"
	"stonetown/identity/factor"
	"stonetown/identity/password"
	"stonetown/identity/session"
	"stonetown/oauth/access"
	"stonetown/oauth/client"
)

// Errors is the error format of the operations.
var Errors = web.ErrorFormat{Translate: translate}

// translate returns the response to an error of the directory, or nil for an internal error.
func translate(err error) *web.Error {
	var policy *password.PolicyError
	var unknown *identity.UnknownScopesError
	switch {
	case errors.Is(err, identity.ErrUserNotFound):
		return &web.Error{Status: http.StatusNotFound, Code: "user_not_found", Message: "user not found"}
	case errors.Is(err, session.ErrEnded):
		return &web.Error{Status: http.StatusNotFound, Code: "session_not_found", Message: session.ErrEnded.Error()}
	case errors.Is(err, factor.ErrNotFound):
		return &web.Error{Status: http.StatusNotFound, Code: "factor_not_found", Message: "factor not found"}
	case errors.Is(err, client.ErrNotFound):
		return &web.Error{Status: http.StatusNotFound, Code: "application_not_found", Message: client.ErrNotFound.Error()}
	case errors.Is(err, access.ErrNoAuthorization):
		return &web.Error{Status: http.StatusNotFound, Code: "application_not_found", Message: access.ErrNoAuthorization.Error()}
	case errors.Is(err, identity.ErrUserExists):
		return &web.Error{Status: http.StatusConflict, Code: "user_exists", Message: "a user with this e-mail address already exists"}
	case errors.Is(err, identity.ErrEmailInvalid):
		return &web.Error{Status: http.StatusBadRequest, Code: "email_invalid", Message: "email is not a valid e-mail address"}
	case errors.Is(err, identity.ErrGroupNotFound):
		return &web.Error{Status: http.StatusNotFound, Code: "group_not_found", Message: "group not found"}
	case errors.Is(err, identity.ErrSlugInvalid):
		return &web.Error{Status: http.StatusBadRequest, Code: "slug_invalid", Message: identity.ErrSlugInvalid.Error()}
	case errors.Is(err, identity.ErrSlugTaken):
		return &web.Error{Status: http.StatusConflict, Code: "slug_unavailable", Message: identity.ErrSlugTaken.Error()}
	case errors.As(err, &unknown):
		return &web.Error{Status: http.StatusBadRequest, Code: "scope_unknown", Message: unknown.Error(), Details: web.Details{"scopes": unknown.Scopes}}
	case errors.Is(err, identity.ErrBuiltin):
		return &web.Error{Status: http.StatusForbidden, Code: "permission_denied", Message: identity.ErrBuiltin.Error(), Details: web.Details{"required_scope": nil}}
	case errors.Is(err, identity.ErrOrganizationMembers):
		return &web.Error{Status: http.StatusForbidden, Code: "permission_denied", Message: identity.ErrOrganizationMembers.Error(), Details: web.Details{"required_scope": nil}}
	case errors.Is(err, identity.ErrManaged):
		return &web.Error{Status: http.StatusConflict, Code: "user_managed", Message: identity.ErrManaged.Error()}
	case errors.Is(err, identity.ErrLastAdministrator):
		return &web.Error{Status: http.StatusConflict, Code: "last_administrator", Message: identity.ErrLastAdministrator.Error()}
	case errors.As(err, &policy):
		violations := []map[string]string{}
		for _, rule := range policy.Violations {
			violations = append(violations, map[string]string{"rule": string(rule)})
		}
		return &web.Error{
			Status: http.StatusBadRequest, Code: "password_policy_violation", Message: policy.Error(),
			Details: web.Details{"violations": violations, "policy": policy.Policy},
		}
	}
	return importErrors(err)
}
