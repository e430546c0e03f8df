package pages

import (
	"encoding/json"
	"net/http"
	"net/url"
	"slices"
	"strings"

	"stonetown/api/web"
)

// maxAnswer bounds the parameters of an identity provider, in bytes.
const maxAnswer = 8 << 10

// maxResponse bounds the form of a SAML identity provider, in bytes: 256 KiB of XML in base64, and
// what is escaped of it.
const maxResponse = 512 << 10

const (
	// callbackPage is the redirect URI of connections.
	callbackPage = "/federation/{slug}/callback"
	// acsPage is the assertion consumer service of connections of the kind saml, to which identity
	// providers post, and responsePage is where the form goes from there.
	acsPage      = "/saml/sp/{slug}/acs"
	responsePage = "/saml/sp/{slug}/response"
)

// connection is a federation connection at which users can sign in.
type connection struct {
	Slug, Name string
}

func connectionsOf(list any) (all []connection) {
	items, _ := list.([]any)
	for _, item := range items {
		c, _ := item.(object)
		slug, _ := c["slug"].(string)
		name, _ := c["name"].(string)
		all = append(all, connection{slug, name})
	}
	return all
}

// Start returns the address at which a sign-in at the connection starts.
func (c connection) Start(next string) string {
	return "/api/v1/auth/federation/" + url.PathEscape(c.Slug) + "/start?next=" + url.QueryEscape(next)
}

const organizationTitle message = "Sign in with your organisation"

func organizationForm(v *visit) error {
	return v.show("organization.html", organizationTitle, object{"Email": v.form("email")})
}

// organization starts a sign-in at the connection of the user's domain.
func organization(v *visit) error {
	found, err := v.one(http.MethodPost, "/api/v1/auth/identify", object{"email": v.form("email")})
	if p, ok := problemOf(err); ok {
		return v.again("organization.html", organizationTitle, object{"Email": v.form("email")}, p)
	}
	if err != nil {
		return err
	}
	slug, _ := found["connection"].(string)
	if slug == "" {
		p := &problem{status: http.StatusBadRequest, code: "no_organization"}
		return v.again("organization.html", organizationTitle, object{"Email": v.form("email")}, p)
	}
	return v.redirect(connection{Slug: slug}.Start(v.next()) + "&login_hint=" + url.QueryEscape(v.form("email")))
}

// callbackForm receives the answer of an identity provider as a form, which another site posts. The
// browser sends its cookies with the request to which it is redirected.
func callbackForm(v *visit) error {
	query := v.r.PostForm.Encode()
	if len(query) > maxAnswer {
		return &web.Error{Status: http.StatusRequestEntityTooLarge, Code: "payload_too_large", Message: "the form must have at most 8 KiB"}
	}
	return v.redirect(v.r.URL.EscapedPath() + "?" + query)
}

// callback receives the answer of an identity provider, and continues with the next step of the
// sign-in.
func callback(v *visit) error {
	parameters := map[string]string{}
	for name, values := range v.r.URL.Query() {
		if len(values) > 1 { // RFC 6749 §4.1.2 by §3.1
			return &web.Error{Status: http.StatusBadRequest, Code: "validation_failed", Message: "the parameter " + strings.ToValidUTF8(name, "\uFFFD") + " is repeated"}
		}
		parameters[name] = values[0]
	}
	delete(v.r.Form, "next") // of the provider
	secret, link := v.info.TakeFederationCookie(parameters["state"])
	if secret == "" {
		return v.failed("/auth/sign-in", &problem{code: "federation_expired"})
	}
	return v.answered(object{"slug": strings.Split(v.r.URL.Path, "/")[2], "secret": secret, "parameters": parameters}, link)
}

// acs receives the form that a SAML identity provider posts. The browser sends no cookies with a form
// of another site, so this page posts it again, to another one.
func acs(v *visit) error {
	form := url.Values{}
	for _, name := range []string{"SAMLResponse", "RelayState"} {
		switch values := v.r.PostForm[name]; {
		case len(values) > 1:
			return &web.Error{Status: http.StatusBadRequest, Code: "validation_failed", Message: "the field " + name + " is repeated"}
		case len(values) == 1:
			form.Set(name, values[0])
		}
	}
	return web.PostForm(v.w, strings.TrimSuffix(v.r.URL.EscapedPath(), "acs")+"response", form)
}

// samlResponse continues with the form of a SAML identity provider. Without a cookie it can be a
// response to no request, whose RelayState is not used.
func samlResponse(v *visit) error {
	parameters := map[string]string{"SAMLResponse": v.r.PostForm.Get("SAMLResponse"), "RelayState": v.r.PostForm.Get("RelayState")}
	delete(v.r.Form, "next") // of the provider
	secret, link := v.info.TakeFederationCookie(parameters["RelayState"])
	return v.answered(object{"slug": strings.Split(v.r.URL.Path, "/")[3], "secret": secret, "parameters": parameters}, link)
}

// answered continues with the answer of an identity provider to a sign-in or, if link is true, to a
// link in the session of the browser.
func (v *visit) answered(answer object, link bool) error {
	if link {
		_, err := v.ask(http.MethodPost, "/api/v1/me/identities/complete", answer)
		if p, ok := problemOf(err); ok {
			if p.code == "unauthenticated" || p.code == "invalid_token" {
				return v.redirect("/auth/sign-in?next=" + url.QueryEscape(securityPage))
			}
			if p.code == "ceremony_invalid" {
				p.code = "federation_expired"
			}
			return v.failed(securityPage, p)
		}
		if err != nil {
			return err
		}
		return v.redirect(securityPage + "?done=linked")
	}
	result, err := v.one(http.MethodPost, "/api/v1/auth/federation/complete", answer)
	if p, ok := problemOf(err); ok {
		if next, ok := p.details["redirect_to"].(string); ok {
			v.r.Form.Set("next", next)
		}
		switch {
		case p.deniedByFlow():
		case p.code == "ceremony_invalid":
			p.code = "federation_expired"
		case p.code == "permission_denied":
			p.code = "no_account"
		}
		return v.failed("/auth/sign-in", p)
	}
	if err != nil {
		return err
	}
	next, _ := result["redirect_to"].(string)
	if !web.IsLocalPath(next) {
		next = home
	}
	switch result["status"] {
	case "tested":
		return v.testReport(result["test"])
	case "link_required":
		f := pendingSignIn{Next: next}
		f.Token, _ = result["link_token"].(string)
		f.Email, _ = result["email"].(string)
		return v.begin(linkPage, f)
	}
	return v.proceed(result, next)
}

// failures are the errors of a sign-in or a link at a connection, after which another page is shown.
var failures = []string{
	"federation_expired", "federation_failed", "connection_disabled", "connection_not_found",
	"no_account", "user_exists", "user_disabled", "identity_conflict", "threat",
}

// failed redirects to a page that shows an error of a sign-in at a connection: the callback accepts an
// answer once, so the user could not load it again. Other errors are shown at once.
func (v *visit) failed(page string, p *problem) error {
	switch {
	case slices.Contains(failures, p.code):
	case page == securityPage:
		return v.securityWith(p)
	default:
		return v.signInWith(p)
	}
	query := url.Values{"failed": {p.code}}
	if reason, ok := p.details["reason"].(string); ok {
		query.Set("reason", reason)
	}
	return v.redirect(onTo(page+"?"+query.Encode(), v.next()))
}

// failure returns the error that a page shows after failed; nil if there is none.
func (v *visit) failure() *problem {
	query := v.r.URL.Query()
	if !slices.Contains(failures, query.Get("failed")) {
		return nil
	}
	return &problem{status: http.StatusOK, code: query.Get("failed"), details: object{"reason": query.Get("reason")}}
}

// testReport shows the report of a test of a connection.
func (v *visit) testReport(test any) error {
	report, _ := test.(object)
	claims, err := json.MarshalIndent(report["claims_received"], "", "  ")
	if err != nil {
		return err
	}
	title := "The test failed"
	if report["success"] == true {
		title = "The test succeeded"
	}
	data := object{"Duration": report["duration_ms"], "Warnings": report["warnings"], "Claims": ""}
	if report["claims_received"] != nil {
		data["Claims"] = string(claims)
	}
	return v.showEnglish("federation-test.html", view{Title: title, Data: data})
}

const (
	linkPage          = "/auth/link-account"
	linkTitle message = "You already have an account"
)

func linkForm(v *visit) error { return v.linkWith(nil) }

func (v *visit) linkWith(p *problem) error {
	f := v.pending()
	if f.Token == "" {
		return v.redirect(onTo("/auth/sign-in", v.next()))
	}
	v.r.Form.Set("next", f.Next)
	data := object{"Step": f.id, "Email": f.Email}
	if p != nil {
		return v.again("link-account.html", linkTitle, data, p)
	}
	return v.show("link-account.html", linkTitle, data)
}

// linkAccount proves the account with a password or, if the form contains a ceremony, with a passkey.
func linkAccount(v *visit) error {
	f := v.pending()
	if f.Token == "" {
		return v.redirect(onTo("/auth/sign-in", v.next()))
	}
	form := object{"link_token": f.Token, "password": v.form("password")}
	if v.form("ceremony_id") != "" {
		form = object{"link_token": f.Token, "ceremony_id": v.form("ceremony_id"), "credential": json.RawMessage(v.credential())}
	}
	result, err := v.one(http.MethodPost, "/api/v1/auth/federation/link", form)
	if p, ok := problemOf(err); ok {
		if p.deniedByFlow() {
			return v.denied(p, f.Next)
		}
		if p.code == "ceremony_invalid" && v.form("ceremony_id") == "" || p.code == "identity_conflict" {
			v.end()
			v.r.Form.Set("next", f.Next)
			if p.code == "ceremony_invalid" {
				p.code = "federation_expired"
			}
			return v.failed("/auth/sign-in", p)
		}
		if p.code == "invalid_credentials" { // the page has no field for the address
			p.code = "proof_incorrect"
		}
		return v.linkWith(p)
	}
	if err != nil {
		return err
	}
	return v.proceed(result, f.Next)
}

// linkIdentityForm asks for a confirmation, after a second factor was required.
func linkIdentityForm(v *visit) error {
	policy, err := v.policy()
	if err != nil {
		return err
	}
	for _, c := range policy.connections {
		if c.Slug == v.form("slug") {
			return v.confirm("Link your {name} account?", confirmation{
				Text: v.say("You can use it to sign in then."), Action: "/account/link-identity", Field: "slug", Button: v.say("Link"), Cancel: securityPage,
			}, "name", c.Name)
		}
	}
	return v.redirect(securityPage)
}

// linkIdentity begins to link an identity with the account.
func linkIdentity(v *visit) error {
	begun, err := v.one(http.MethodPost, "/api/v1/me/identities/begin", object{"slug": v.form("slug")})
	if p, ok := problemOf(err); ok && p.code != "unauthenticated" && p.code != "invalid_token" && p.code != "insufficient_user_authentication" {
		return v.securityWith(p)
	}
	if err != nil {
		return err
	}
	return v.toProvider(begun)
}

// toProvider sends the browser to an identity provider.
func (v *visit) toProvider(begun object) error {
	to, form := destination(begun, home)
	if form != nil {
		return web.PostForm(v.w, to, form)
	}
	return v.redirect(to)
}

// textsOf returns the texts of a list.
func textsOf(list any) (texts []string) {
	items, _ := list.([]any)
	for _, item := range items {
		if text, ok := item.(string); ok {
			texts = append(texts, text)
		}
	}
	return texts
}

// destination returns where an operation sends the browser, with the form to post there; nil: a GET.
// otherwise is the destination if the operation names none.
func destination(begun object, otherwise string) (to string, form url.Values) {
	to, _ = begun["redirect_to"].(string)
	if to == "" {
		return otherwise, nil
	}
	if fields, ok := begun["form"].(object); ok {
		form = url.Values{}
		for name, value := range fields {
			text, _ := value.(string)
			form.Set(name, text)
		}
	}
	return to, form
}
