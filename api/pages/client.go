package pages

import (
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strconv"
	"strings"

	"stonetown/api/inprocess"
	"stonetown/api/web"
)

// object is a JSON object.
type object = inprocess.Object

// problem is the error response of an operation.
type problem struct {
	status  int
	code    string
	message string
	details object
	after   int // seconds to wait
}

func (p *problem) Error() string { return p.code }

// text returns the message of a problem on a page.
func (p *problem) text() string {
	switch p.code {
	case "invalid_credentials":
		return "The e-mail address or the password is wrong."
	case "user_disabled":
		return "This account is disabled."
	case "rate_limited":
		return fmt.Sprintf("Too many attempts. Please wait %d seconds and try again.", max(1, p.after))
	case "code_invalid":
		return "This code is wrong."
	case "credential_invalid":
		return "This passkey was not accepted."
	case "credential_exists":
		return "This passkey is already registered."
	case "ceremony_invalid":
		return "This link or form has expired, or was used before."
	case "email_invalid":
		return "This is not an e-mail address."
	case "proof_incorrect":
		return "This password is wrong."
	case "password_incorrect":
		return "The current password is wrong."
	case "factor_kind_unsupported":
		return "This kind of second factor cannot be used here."
	case "factor_limit_reached":
		return "You have the maximum number of second factors. Remove one first."
	case "last_sign_in_method":
		return "You cannot remove your last way to sign in. Set a password or add a passkey first."
	case "flow_not_found", "flow_expired":
		return "This sign-in has expired. Please go back to the application and start again."
	case "permission_denied":
		return "This is not possible here."
	case "federation_expired":
		return "This sign-in has expired, or was completed before. Please start again."
	case "federation_failed":
		return p.federation()
	case "connection_disabled", "connection_not_found":
		return "You cannot sign in this way any more. Please choose another one."
	case "no_account":
		return "There is no account for you here. Please ask your administrator."
	case "user_exists":
		return "There is an account with your e-mail address already. Please sign in to it another way."
	case "identity_conflict":
		return "This account cannot be linked: it is linked with another user, or you have linked another account of the same provider."
	case "no_organization":
		return "We do not know where your organisation signs in. Please sign in another way."
	case "NOT_FOUND":
		return "This invitation has expired, was revoked, or was accepted before."
	case "FORBIDDEN":
		return "This invitation was sent to another address than the verified one of your account."
	case "CONFLICT":
		return "You are a member of this organisation already."
	case "RATE_LIMITED":
		return fmt.Sprintf("Too many attempts. Please wait %d seconds and try again.", max(1, p.after))
	case "password_policy_violation":
		var parts []string
		policy, _ := p.details["policy"].(object)
		violations, _ := p.details["violations"].([]any)
		for _, v := range violations {
			rule, _ := v.(object)["rule"].(string)
			switch rule {
			case "min_length":
				parts = append(parts, fmt.Sprintf("needs at least %v characters", policy["min_length"]))
			case "max_length":
				parts = append(parts, fmt.Sprintf("can have at most %v characters", policy["max_length"]))
			case "common":
				parts = append(parts, "is one of the most common passwords")
			case "contains_identifier":
				parts = append(parts, "contains your name or e-mail address")
			case "breached":
				parts = append(parts, "appears in a list of stolen passwords")
			}
		}
		return "The password " + strings.Join(parts, " and ") + "."
	case "validation_failed":
		var parts []string
		faults, _ := p.details["field_errors"].([]any)
		for _, f := range faults {
			message, _ := f.(object)["message"].(string)
			parts = append(parts, strings.ReplaceAll(message, "_", " "))
		}
		return "Please check: " + strings.Join(parts, "; ") + "."
	}
	return "Something went wrong. Please try again later."
}

// federation returns the message of a sign-in that failed at an identity provider.
func (p *problem) federation() string {
	switch p.details["reason"] {
	case "access_denied":
		return "The sign-in was cancelled, or your provider does not let you in."
	case "stale":
		return "This sign-in took too long. Please start again."
	case "misconfigured":
		return "The connection to your provider is not set up correctly. Please tell your administrator."
	case "email_missing":
		return "Your provider has not sent an e-mail address, so no account can be created."
	case "provider_error", "unreachable":
		return "Your provider does not answer as it should. Please try again later."
	}
	return "Your provider has sent an answer that is not valid. Please start again."
}

// field returns the field of the form that the problem is about; empty if it is about no field.
func (p *problem) field() string {
	switch p.code {
	case "invalid_credentials", "proof_incorrect", "password_policy_violation":
		return "password"
	case "code_invalid":
		return "code"
	case "email_invalid", "no_organization":
		return "email"
	case "password_incorrect":
		return "current"
	case "validation_failed":
		faults, _ := p.details["field_errors"].([]any)
		if len(faults) > 0 {
			fault, _ := faults[0].(object)
			name, _ := fault["field"].(string)
			return name
		}
	}
	return ""
}

// ask calls an operation with the session of the browser and returns its data. It passes the
// cookies of the response to the browser. The error is a [*problem] or an internal one.
func (v *visit) ask(method, path string, body any) (data any, err error) {
	a, err := v.send(method, path, body)
	return a.Data, err
}

func (v *visit) send(method, path string, body any) (inprocess.Answer, error) {
	token := ""
	if strings.HasPrefix(path, "/api/v1/me/") || strings.HasPrefix(path, requestsPath) || sessionOperations[path] {
		token = v.info.Cookie(web.SessionCookie)
	}
	a, err := inprocess.Call(v.handlers.API, v.r, token, method, path, body)
	for _, cookie := range a.Cookies {
		v.w.Header().Add("Set-Cookie", cookie)
	}
	if e, ok := errors.AsType[*inprocess.Error](err); ok {
		err = &problem{e.Status, e.Code, e.Message, e.Details, e.After}
	}
	return a, err
}

// requestsPath is the path of pending authorization requests, whose representation depends on the
// session.
const requestsPath = "/api/v1/auth/flows/"

// sessionOperations are the operations outside of /me that use the session.
var sessionOperations = map[string]bool{
	"/api/v1/auth/logout": true, "/api/v1/auth/federation/logout": true, "/api/v1/auth/session": true, "/api/v1/auth/step-up/begin": true, "/api/v1/auth/step-up/complete": true,
	"/api/v1/auth/consent": true, "/api/v1/auth/select-account": true, "/api/v1/auth/device": true,
	acceptPath: true,
}

// one is ask for an operation that returns an object.
func (v *visit) one(method, path string, body any) (object, error) {
	data, err := v.ask(method, path, body)
	o, _ := data.(object)
	return o, err
}

// many is ask for an operation that returns a list. It reads all pages.
func (v *visit) many(path string) ([]any, error) {
	var all []any
	for cursor := ""; ; {
		query := url.Values{"limit": {strconv.Itoa(web.MaxLimit)}}
		if cursor != "" {
			query.Set("cursor", cursor)
		}
		a, err := v.send(http.MethodGet, path+"?"+query.Encode(), nil)
		if err != nil {
			return nil, err
		}
		list, _ := a.Data.([]any)
		all = append(all, list...)
		if cursor = a.Meta.NextCursor; cursor == "" {
			return all, nil
		}
	}
}

// user returns the address of the user who is signed in; empty if no user is.
func (v *visit) user() string {
	status, err := v.one(http.MethodGet, "/api/v1/auth/session", nil)
	if err != nil {
		return ""
	}
	user, _ := status["user"].(object)
	email, _ := user["email"].(string)
	return email
}
