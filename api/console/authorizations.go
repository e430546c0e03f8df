package console

import (
	"net/http"
	"net/url"
)

// authorizationPath returns the path of the operation on what the user of a page has given to an
// application.
func (v *visit) authorizationPath() string {
	return v.userPath() + "/applications/" + url.PathEscape(v.variable("application_id"))
}

// authorizationBack returns the page that leads to the form: that of the application, or of the user.
func (v *visit) authorizationBack() string {
	if v.form("from") == "application" {
		return v.applicationPage()
	}
	return v.userPage()
}

// revokeAccessForm asks for a confirmation.
func revokeAccessForm(v *visit) error {
	if err := v.require("users:write"); err != nil {
		return err
	}
	a, err := v.call(http.MethodGet, v.userPath(), nil)
	if err != nil {
		return err
	}
	application := "an application"
	if v.may("applications:read") {
		a, err := v.call(http.MethodGet, v.applicationPath(), nil)
		if err != nil {
			return err
		}
		o, _ := a.Data.(object)
		application, _ = o["name"].(string)
	}
	u, _ := a.Data.(object)
	email, _ := u["email"].(string)
	v.calls = append(v.calls, call{http.MethodDelete, v.authorizationPath(), nil})
	return v.confirm("Revoke the access of "+application+" to "+email+"?", object{
		"Text": "Its tokens for the user are refused at once. If users are asked for consent, it has to ask this user again.", "Button": "Revoke",
		"Action": v.userPage() + "/applications/" + url.PathEscape(v.variable("application_id")) + "/revoke", "Cancel": v.authorizationBack(), "Fields": object{"from": v.form("from")},
	}, nil)
}

func revokeAccess(v *visit) error {
	if _, err := v.once(http.MethodDelete, v.authorizationPath(), nil); err != nil {
		return err
	}
	v.redirect(v.authorizationBack() + "?done=access-revoked")
	return nil
}
