package pages

import (
	"net/http"
	"net/url"
	"regexp"
	"strconv"
	"strings"
)

// asked is what an application wants, as the page of consent shows it.
type asked struct {
	Flow, Client, Logo, Person string // Flow is the code, of a device
	Wants, ByGroups            []string
}

// consentForm shows what an application wants to be allowed.
func consentForm(v *visit) error {
	page, err := v.asked()
	if err != nil {
		return err
	}
	origin := pictureOrigin(page.Logo)
	if origin == "" {
		page.Logo = ""
	} else {
		v.w.Header().Set("Content-Security-Policy", strings.Replace(contentPolicy, images, images+" "+origin, 1))
	}
	return v.show("consent.html", "Allow "+page.Client+" to access your account?", page)
}

// hostName is a name that can stand in a policy as it is: no wildcard, and nothing that would
// end a directive.
var hostName = regexp.MustCompile(`^[a-z0-9]([a-z0-9-]*[a-z0-9])?(\.[a-z0-9]([a-z0-9-]*[a-z0-9])?)+$`)

// pictureOrigin is the one origin that a page has to allow for an application's picture; empty if
// the picture is not shown.
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
	return v.answerFlow("/api/v1/auth/consent", object{"flow_id": v.form("flow"), "decision": v.form("decision")})
}

// accountForm shows which account an application would get.
func accountForm(v *visit) error {
	page, err := v.asked()
	if err != nil {
		return err
	}
	return v.show("select-account.html", "Choose an account", struct {
		asked
		Next string
	}{page, "/oauth2/authorize/resume?flow=" + url.QueryEscape(page.Flow)})
}

func selectAccount(v *visit) error {
	return v.answerFlow("/api/v1/auth/select-account", object{"flow_id": v.form("flow")})
}

func (v *visit) asked() (asked, error) {
	page := asked{Flow: v.form("flow"), Person: v.person()}
	flow, err := v.one(http.MethodGet, flowsPath+url.PathEscape(page.Flow), nil)
	if err != nil {
		return page, err
	}
	if page.Person == "" {
		return page, &problem{status: http.StatusUnauthorized, code: "unauthenticated"}
	}
	page.read(flow)
	return page, nil
}

// read takes over what an application wants.
func (page *asked) read(wants object) {
	client, _ := wants["client"].(object)
	page.Client, _ = client["name"].(string)
	page.Logo, _ = client["logo_uri"].(string)
	said, _ := wants["scope_descriptions"].(object)
	page.Wants, page.ByGroups = describe(wants["scopes"], said), describe(wants["group_scopes"], said)
}

// answerFlow answers a request of an application and goes where that leads.
func (v *visit) answerFlow(path string, form object) error {
	answer, err := v.one(http.MethodPost, path, form)
	if err != nil {
		return err
	}
	to, _ := answer["redirect_to"].(string)
	return v.redirect(to)
}

// applications shows which applications the person has signed in to.
func applications(v *visit) error {
	list, err := v.many("/api/v1/me/authorizations")
	if err != nil {
		return err
	}
	for _, item := range list {
		if o, ok := item.(object); ok {
			o["wants"] = describe(o["scopes"], nil)
		}
	}
	return v.show("applications.html", "Applications", list)
}

// describe says in words what scopes let an application do: in the tenant's, in ours, or
// by their names.
func describe(scopes any, said object) (texts []string) {
	list, _ := scopes.([]any)
	for _, item := range list {
		scope, _ := item.(string)
		text, ok := said[scope].(string)
		if !ok {
			if text, ok = meanings[scope]; !ok {
				text = scope
			}
		}
		texts = append(texts, text)
	}
	return texts
}

// meanings are what the product's own scopes let an application do.
var meanings = map[string]string{
	"openid": "Know who you are", "profile": "See your name and picture", "email": "See your e-mail address",
	"offline_access": "Keep this access when you are not using it",
	"me:read":        "See your account", "me:write": "Change your account",
	"users:read": "See all users", "users:write": "Change all users",
	"groups:read": "See all groups", "groups:write": "Change all groups",
	"applications:read": "See all applications", "applications:write": "Change all applications",
	"federation:read": "See connections to other providers", "federation:write": "Change connections to other providers",
	"resources:read": "See resources and who may use them", "resources:write": "Change resources and who may use them",
	"webhooks:read": "See webhooks", "webhooks:write": "Change webhooks",
	"settings:read": "See settings", "settings:write": "Change settings",
}
