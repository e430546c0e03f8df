// Package claimrequest reads the parameter claims of authorization requests, by which an application
// asks for single claims (OIDC Core §5.5). It is a JSON object:
//
//	{"userinfo": {"name": null}, "id_token": {"email": {"essential": true}, "acr": {"values": ["aal2"]}}}
//
// Each member names a place and the claims that the application would like to find there. A claim is
// null, or an object whose members are essential, value and values (§5.5.1). Three kinds of claims
// have an effect:
//
//   - Standard claims about the user are returned without their scope, if the application and the
//     user permit it ([access.RequestedClaims]). Whether they are essential, and which values the
//     application would like, changes nothing: their absence must not be an error.
//   - sub with a value names the user for whom the request is. Another user gets no response
//     (§3.1.2.2).
//   - acr of the ID token with values names the levels of authentication that the application prefers
//     or, if it is essential, accepts (§5.5.1.1).
//
// auth_time, which is essential to some applications, is in every ID token. Everything else is
// ignored: claims that are configured for applications, claims with a language, and other members.
package claimrequest

import (
	"slices"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"stonetown/oauth/access"
)

// Parameter is the name of the parameter.
const Parameter = "claims"

const maxBytes = 4 << 10 // of the parameter

// Request is what the parameter asks for.
type Request struct {
	Claims access.RequestedClaims
	// Users are the subjects of which one has to be the user; nil: any. It is empty if the two places
	// exclude each other.
	Users []string
	// ACR are levels of authentication in order of preference; nil: none. Essential states that
	// another level does not suffice.
	ACR       []string
	Essential bool
}

// Malformed is why a parameter is refused, for developers of clients.
const Malformed = "claims must be a JSON object of at most 4,096 bytes, whose members userinfo and id_token are objects; " +
	"each claim is null or an object in which essential is true or false, and sub and acr have a text as value or a list of texts as values (OpenID Connect Core 5.5)"

// errMalformed is the only error.
type errMalformed struct{}

func (errMalformed) Error() string { return Malformed }

// claim is a request for one claim. An absent or null member has the kind 0 or 'n'.
type claim struct {
	Essential bool           `json:"essential"`
	Value     jsontext.Value `json:"value"`
	Values    jsontext.Value `json:"values"`
}

// Parse reads the parameter; empty: nothing is asked for.
func Parse(parameter string) (r Request, err error) {
	if parameter == "" {
		return r, nil
	}
	var places struct {
		UserInfo map[string]jsontext.Value `json:"userinfo"`
		IDToken  map[string]jsontext.Value `json:"id_token"`
	}
	text := jsontext.Value(parameter)
	if len(parameter) > maxBytes || !text.IsValid() || text.Kind() != '{' || json.Unmarshal(text, &places) != nil {
		return Request{}, errMalformed{}
	}
	for _, place := range []struct {
		members map[string]jsontext.Value
		names   *[]string
		acr     bool // it states the level of authentication
	}{{places.UserInfo, &r.Claims.UserInfo, false}, {places.IDToken, &r.Claims.IDToken, true}} {
		for _, name := range slices.Concat(access.StandardClaims, []string{"acr"}) {
			value, requested := place.members[name]
			if !requested {
				continue
			}
			var c claim
			if value.Kind() != 'n' && (value.Kind() != '{' || json.Unmarshal(value, &c) != nil) {
				return Request{}, errMalformed{}
			}
			switch name {
			case "sub":
				err = r.restrict(c)
			case "acr":
				if place.acr {
					r.Essential = c.Essential
					r.ACR, err = c.texts()
				}
			default:
				*place.names = append(*place.names, name)
			}
			if err != nil {
				return Request{}, err
			}
		}
	}
	return r, nil
}

// restrict restricts the users to those of a claim sub. Both places can have one.
func (r *Request) restrict(c claim) error {
	users, err := c.texts()
	if users == nil || err != nil {
		return err
	}
	if r.Users != nil {
		users = slices.DeleteFunc(users, func(user string) bool { return !slices.Contains(r.Users, user) })
	}
	r.Users = users
	return nil
}

// texts returns the requested values of a claim that is a text; nil: any value.
func (c claim) texts() (list []string, err error) {
	one, many := given(c.Value), given(c.Values)
	values := []jsontext.Value{c.Value}
	switch {
	case !one && !many:
		return nil, nil
	case one && many, many && (json.Unmarshal(c.Values, &values) != nil || len(values) == 0):
		return nil, errMalformed{}
	}
	for _, value := range values {
		var text string
		if value.Kind() != '"' || json.Unmarshal(value, &text) != nil {
			return nil, errMalformed{}
		}
		list = append(list, text)
	}
	return list, nil
}

func given(value jsontext.Value) bool { return value.Kind() != 0 && value.Kind() != 'n' }
