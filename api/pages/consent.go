package pages

import (
	"fmt"
	"net/http"
	"net/url"
	"regexp"
	"strconv"
	"strings"
)

// consentRequest is the request of an application, as pages show it.
type consentRequest struct {
	Flow, Client, Logo, Person string // Flow is the id of the authorization request, or the code of a device
	Host                       string // that vouches for the client; empty: the tenant does
	Wants, ByGroups, Details   []string
}

// consentForm asks the user to allow an application access.
func consentForm(v *visit) error {
	page, err := v.consentRequest()
	if err != nil {
		return err
	}
	origin := pictureOrigin(page.Logo)
	if origin == "" {
		page.Logo = ""
	} else {
		v.w.Header().Set("Content-Security-Policy", strings.Replace(contentPolicy, images, images+" "+origin, 1))
	}
	return v.show("consent.html", "Allow {client} to access your account?", page, "client", page.Client)
}

// hostName matches names that are safe in a content security policy: no wildcard, and no character
// that ends a directive.
var hostName = regexp.MustCompile(`^[a-z0-9]([a-z0-9-]*[a-z0-9])?(\.[a-z0-9]([a-z0-9-]*[a-z0-9])?)+$`)

// pictureOrigin returns the origin that the policy of a page must allow for the picture of an
// application; empty if the picture is not shown.
func pictureOrigin(picture string) string {
	u, err := url.Parse(picture)
	if err != nil || u.Scheme != "https" || u.User != nil || !hostName.MatchString(strings.ToLower(u.Hostname())) {
		return ""
	}
	origin := "https://" + strings.ToLower(u.Hostname())
	if port, err := strconv.ParseUint(u.Port(), 10, 16); err == nil {
		origin += ":" + strconv.FormatUint(port, 10)
	} else if u.Port() != "" {
		return ""
	}
	return origin
}

func consent(v *visit) error {
	return v.answerRequest("/api/v1/auth/consent", object{"flow_id": v.form("flow"), "decision": v.form("decision")})
}

// accountForm shows the account that an application would get access to.
func accountForm(v *visit) error {
	page, err := v.consentRequest()
	if err != nil {
		return err
	}
	return v.show("select-account.html", "Choose an account", struct {
		consentRequest
		Next string
	}{page, "/oauth2/authorize/resume?flow=" + url.QueryEscape(page.Flow)})
}

func selectAccount(v *visit) error {
	return v.answerRequest("/api/v1/auth/select-account", object{"flow_id": v.form("flow")})
}

func (v *visit) consentRequest() (consentRequest, error) {
	page := consentRequest{Flow: v.form("flow"), Person: v.user()}
	flow, err := v.one(http.MethodGet, requestsPath+url.PathEscape(page.Flow), nil)
	if err != nil {
		return page, err
	}
	if page.Person == "" {
		return page, &problem{status: http.StatusUnauthorized, code: "unauthenticated"}
	}
	page.read(flow, v.speech)
	return page, nil
}

// read reads the request from the response of an operation.
func (page *consentRequest) read(wants object, in speech) {
	client, _ := wants["client"].(object)
	page.Client, _ = client["name"].(string)
	page.Logo, _ = client["logo_uri"].(string)
	page.Host, _ = wants["client_host"].(string)
	said, _ := wants["scope_descriptions"].(object)
	page.Details = in.describeDetails(wants["authorization_details"])
	page.Wants = append(in.describe(wants["scopes"], said, meanings), in.describe(wants["claims"], nil, claimMeanings)...)
	page.ByGroups = in.describe(wants["group_scopes"], said, meanings)
}

// answerRequest answers an authorization request and redirects to the application.
func (v *visit) answerRequest(path string, form object) error {
	answer, err := v.one(http.MethodPost, path, form)
	if err != nil {
		return err
	}
	to, _ := answer["redirect_to"].(string)
	return v.redirect(to)
}

// applications shows the applications that the user has signed in to.
func applications(v *visit) error {
	list, err := v.many("/api/v1/me/authorizations")
	if err != nil {
		return err
	}
	for _, item := range list {
		if o, ok := item.(object); ok {
			o["wants"] = append(v.describe(o["scopes"], nil, meanings), v.describe(o["claims"], nil, claimMeanings)...)
		}
	}
	return v.show("applications.html", "Applications", list)
}

// describe describes scopes or claims: in the words of the tenant, in known ones, or by their names.
func (s speech) describe(scopes any, said object, known map[string]message) (texts []string) {
	list, _ := scopes.([]any)
	for _, item := range list {
		scope, _ := item.(string)
		text, ok := said[scope].(string)
		if !ok {
			text = scope
			if meaning, ok := known[scope]; ok {
				text = s.say(meaning)
			}
		}
		texts = append(texts, text)
	}
	return texts
}

// describeDetails describes actions on resources: "edit and view document plans/q1".
func (s speech) describeDetails(details any) (texts []string) {
	list, _ := details.([]any)
	for _, item := range list {
		d, _ := item.(object)
		actions, _ := d["actions"].([]any)
		identifiers, _ := d["identifiers"].([]any)
		texts = append(texts, s.say("{actions} {type} {identifiers}", "actions", s.enumerate(actions), "type", d["type"], "identifiers", s.enumerate(identifiers)))
	}
	return texts
}

// enumerate joins items: "a, b and c".
func (s speech) enumerate(items []any) string {
	var texts []string
	for _, item := range items {
		texts = append(texts, fmt.Sprint(item))
	}
	if len(texts) < 2 {
		return strings.Join(texts, "")
	}
	last := len(texts) - 1
	return s.say("{list} and {last}", "list", strings.Join(texts[:last], ", "), "last", texts[last])
}

// meanings describe the built-in scopes.
var meanings = map[string]message{
	"openid": "Know who you are", "profile": "See your name, picture and other details of your profile", "email": "See your e-mail address",
	"phone": "See your phone number", "address": "See your postal address",
	"offline_access": "Keep this access when you are not using it",
	"me:read":        "See your account", "me:write": "Change your account",
	"users:read": "See all users", "users:write": "Change all users",
	"groups:read": "See all groups", "groups:write": "Change all groups",
	"applications:read": "See all applications", "applications:write": "Change all applications",
	"federation:read": "See connections to other providers", "federation:write": "Change connections to other providers",
	"resources:read": "See resources and who may use them", "resources:write": "Change resources and who may use them",
	"webhooks:read": "See webhooks", "webhooks:write": "Change webhooks",
	"settings:read": "See settings", "settings:write": "Change settings",
	"scim:write":      "Change all users and groups by SCIM",
	"audit:read":      "See the log of everything that happens here",
	"incidents:write": "Manage breach incidents and notify users about them",
	"saml:groups":     "See your groups", "saml:attributes": "See other details about you",
}

// claimMeanings describe the claims about users that applications can ask for by their names.
var claimMeanings = map[string]message{
	"name": "See your name", "given_name": "See your first name", "family_name": "See your last name", "middle_name": "See your middle name", "nickname": "See your nickname",
	"preferred_username": "See your user name", "profile": "See the address of your profile page", "picture": "See your picture", "website": "See the address of your website",
	"gender": "See your gender", "birthdate": "See your date of birth", "zoneinfo": "See your time zone", "locale": "See your language", "updated_at": "See when your profile was last changed",
	"email": "See your e-mail address", "email_verified": "See whether your e-mail address is verified",
	"phone_number": "See your phone number", "phone_number_verified": "See whether your phone number is verified", "address": "See your postal address",
}
