package pages

import (
	"net/http"
	"net/url"
)

// confirmation is a page that requires a confirmation before something is removed. It works
// without a script.
type confirmation struct {
	Text   string
	Action string // the path that the form is sent to
	Field  string // the name of the value in the form; empty: none
	Value  string
	Button string
	Cancel string // the page to return to
}

func (v *visit) confirm(title message, c confirmation, values ...any) error {
	if c.Field != "" {
		c.Value = v.form(c.Field)
	}
	return v.show("confirm.html", title, c, values...)
}

// item returns the object of a list with a value of a member; nil if there is none.
func (v *visit) item(path, member, value string) (object, error) {
	list, err := v.many(path)
	for _, item := range list {
		if o, _ := item.(object); o[member] == value {
			return o, err
		}
	}
	return nil, err
}

const securityPage, sessionsPage, applicationsPage = "/account/security", "/account/sessions", "/account/applications"

func removeFactorForm(v *visit) error {
	f, err := v.item("/api/v1/me/mfa/factors", "id", v.form("factor_id"))
	if err != nil {
		return err
	}
	if f == nil {
		return v.redirect(securityPage)
	}
	return v.confirm("Remove “{name}”?", confirmation{
		Text: v.say("You can no longer use it to sign in."), Action: "/account/remove-factor", Field: "factor_id", Button: v.say("Remove"), Cancel: securityPage,
	}, "name", v.Factor(f["label"], f["kind"]))
}

func removeIdentityForm(v *visit) error {
	i, err := v.item("/api/v1/me/identities", "connection_id", v.form("connection_id"))
	if err != nil {
		return err
	}
	if i == nil {
		return v.redirect(securityPage)
	}
	policy, err := v.policy()
	if err != nil {
		return err
	}
	return v.confirm("Unlink your {name} account?", confirmation{
		Text: v.say("You can no longer use it to sign in."), Action: "/account/remove-identity", Field: "connection_id", Button: v.say("Unlink"), Cancel: securityPage,
	}, "name", provider(i, policy.connections))
}

// provider returns the name of the provider of an identity: that of its connection, if users can sign
// in there.
func provider(i object, known []connection) string {
	slug, _ := i["slug"].(string)
	for _, c := range known {
		if c.Slug == slug {
			return c.Name
		}
	}
	kind, _ := i["kind"].(string)
	if name, ok := map[string]string{"social.google": "Google", "social.github": "GitHub", "social.microsoft": "Microsoft", "social.apple": "Apple"}[kind]; ok {
		return name
	}
	return slug
}

func backupCodesForm(v *visit) error {
	if _, err := v.one(http.MethodGet, "/api/v1/me/profile", nil); err != nil {
		return err
	}
	return v.confirm("Create new backup codes?", confirmation{
		Text: v.say("You get ten new codes. Any codes that you have now stop working."), Action: "/account/backup-codes", Button: v.say("Create new codes"), Cancel: securityPage,
	})
}

func endSessionForm(v *visit) error {
	id := v.form("session_id")
	if id == "" {
		if _, err := v.one(http.MethodGet, "/api/v1/me/profile", nil); err != nil {
			return err
		}
		return v.confirm("Sign out all other devices?", confirmation{
			Text: v.say("Only this device stays signed in."), Action: "/account/end-session", Button: v.say("Sign out all other devices"), Cancel: sessionsPage,
		})
	}
	s, err := v.item("/api/v1/me/sessions", "id", id)
	if err != nil {
		return err
	}
	if s == nil {
		return v.redirect(sessionsPage)
	}
	agent, _ := s["user_agent"].(string)
	return v.confirm("Sign out this device?", confirmation{Text: agent, Action: "/account/end-session", Field: "session_id", Button: v.say("Sign out"), Cancel: sessionsPage})
}

func endAuthorizationForm(v *visit) error {
	a, err := v.item("/api/v1/me/authorizations", "application_id", v.form("application_id"))
	if err != nil {
		return err
	}
	if a == nil {
		return v.redirect(applicationsPage)
	}
	name, _ := a["name"].(string)
	return v.confirm("Remove access for “{name}”?", confirmation{
		Text:   v.say("It can no longer use your account. If you sign in to it again, it may ask for access again."),
		Action: "/account/end-authorization", Field: "application_id", Button: v.say("Remove access"), Cancel: applicationsPage,
	}, "name", name)
}

func endSession(v *visit) error {
	if id := v.form("session_id"); id != "" {
		if _, err := v.ask(http.MethodDelete, "/api/v1/me/sessions/"+url.PathEscape(id), nil); err != nil && !is(err, "session_not_found") {
			return err
		}
		return v.redirect(sessionsPage + "?done=session")
	}
	if _, err := v.ask(http.MethodDelete, "/api/v1/me/sessions?except=current", nil); err != nil {
		return err
	}
	return v.redirect(sessionsPage + "?done=sessions")
}

func removeFactor(v *visit) error {
	if _, err := v.ask(http.MethodDelete, "/api/v1/me/mfa/factors/"+url.PathEscape(v.form("factor_id")), nil); err != nil && !is(err, "factor_not_found") {
		return err
	}
	return v.redirect(securityPage + "?done=removed")
}

func removeIdentity(v *visit) error {
	_, err := v.ask(http.MethodDelete, "/api/v1/me/identities/"+url.PathEscape(v.form("connection_id")), nil)
	if p, ok := problemOf(err); ok && p.code == "last_sign_in_method" {
		return v.securityWith(p)
	}
	if err != nil && !is(err, "identity_not_found") {
		return err
	}
	return v.redirect(securityPage + "?done=removed")
}

func endAuthorization(v *visit) error {
	if _, err := v.ask(http.MethodDelete, "/api/v1/me/authorizations/"+url.PathEscape(v.form("application_id")), nil); err != nil && !is(err, "application_not_found") {
		return err
	}
	return v.redirect(applicationsPage + "?done=application")
}

func backupCodes(v *visit) error {
	made, err := v.one(http.MethodPost, "/api/v1/me/mfa/backup-codes", nil)
	if err != nil {
		return err
	}
	return v.show("backup-codes.html", "Your backup codes", made)
}
