package pages

import (
	"errors"
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
		code := e.Code
		if e.Details["reason"] == "threat_feed" {
			code = "threat"
		}
		if e.Details["reason"] == "opened_from_control_plane" {
			code = "opened"
		}
		err = &problem{e.Status, code, e.Message, e.Details, e.After}
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

// person is the user who is signed in.
type person struct{ email, locale string }

// user returns the address of the user who is signed in; empty if no user is.
func (v *visit) user() string { return v.session().email }

// session returns the user who is signed in, as of the first call.
func (v *visit) session() person {
	if v.who != nil {
		return *v.who
	}
	v.who = &person{}
	if v.info.Cookie(web.SessionCookie) == "" {
		return *v.who
	}
	if status, err := v.one(http.MethodGet, "/api/v1/auth/session", nil); err == nil {
		user, _ := status["user"].(object)
		v.who.email, _ = user["email"].(string)
		v.who.locale, _ = user["locale"].(string)
	}
	return *v.who
}
