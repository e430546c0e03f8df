package console

import (
	"net/http"
	"slices"
	"strings"
)

// applicationTypes are the types of applications, with a description.
var applicationTypes = []choice{
	{"spa", "Single-page application", "Runs in a browser and has no secret."},
	{"native", "Native application", "Runs on a phone or a desktop and has no secret."},
	{"server", "Web application", "Runs on a server, signs in users and authenticates itself."},
	{"m2m", "Service", "Gets tokens for itself, without users."},
	{"saml", "SAML service provider", "Gets assertions about users by SAML 2.0."},
}

// applicationErrors are the fields that errors are about, by their codes.
var applicationErrors = map[string]string{
	"redirect_uri_invalid": "redirect_uris", "redirect_uri_forbidden": "redirect_uris", "scope_unknown": "allowed_scopes", "permission_denied": "allowed_scopes",
}

const newApplicationTitle = "New application"

// newApplicationDefaults are the defaults of a new application that its form shows.
var newApplicationDefaults = object{"first_party": true}

// newApplication is the form of the type that the query names; without one, nil for the choice of a
// type.
func (v *visit) newApplication() (f *form, typ string, err error) {
	typ = v.form("type")
	known := slices.ContainsFunc(applicationTypes, func(t choice) bool { return t.Value == typ })
	if !known {
		return nil, "", nil
	}
	page := applicationsPage + "/new"
	sections, err := v.supported(sectionsOf(newApplicationFields, typ), object{})
	return &form{Sections: sections, Action: query(page, "type", typ), Button: "Create", Cancel: page}, typ, err
}

// supported returns the sections of an application that the server can use, by its metadata (RFC 8705
// §3.3), and what is stored in the application.
func (v *visit) supported(all []section, stored object) ([]section, error) {
	a, err := v.call(http.MethodGet, "/.well-known/oauth-authorization-server", nil)
	if err != nil {
		return nil, err
	}
	metadata, _ := a.Data.(object)
	if metadata["tls_client_certificate_bound_access_tokens"] == true {
		return all, nil
	}
	return withoutCertificates(all, stored), nil
}

func newApplicationForm(v *visit) error {
	if err := v.require("applications:write"); err != nil {
		return err
	}
	f, typ, err := v.newApplication()
	if err != nil {
		return err
	}
	if f == nil {
		return v.show("choose.html", newApplicationTitle, object{"Text": "Choose the type. It cannot be changed later.", "Choices": applicationTypes, "Page": applicationsPage + "/new?type=", "Cancel": applicationsPage})
	}
	f.show(newApplicationDefaults)
	v.calls = append(v.calls, call{http.MethodPost, "/api/v1/applications", object{"type": typ, "name": "Name"}})
	return v.show("form.html", newApplicationTitle, object{"Form": f})
}

func createApplication(v *visit) error {
	if err := v.require("applications:write"); err != nil {
		return err
	}
	f, typ, err := v.newApplication()
	if err != nil {
		return err
	}
	if f == nil {
		v.redirect(applicationsPage + "/new")
		return nil
	}
	body, wrong := v.body(f, newApplicationDefaults)
	if wrong != nil {
		return v.again("form.html", newApplicationTitle, object{"Form": f}, wrong)
	}
	body["type"] = typ
	a, err := v.once(http.MethodPost, "/api/v1/applications", body)
	if wrong := f.refused(err, applicationErrors); wrong != nil {
		return v.again("form.html", newApplicationTitle, object{"Form": f}, wrong)
	}
	if err != nil {
		return err
	}
	app, _ := a.Data.(object)
	id, _ := app["id"].(string)
	page := applicationsPage + "/" + id
	if app["client_secret"] == nil {
		v.redirect(page + "?done=app-created")
		return nil
	}
	return v.showSecret("Application created", app["client_secret"], object{"Text": "This is its client secret.", "ID": app["client_id"], "IDName": "Client id", "Continue": page})
}

// showSecret shows a secret that no operation returns again.
func (v *visit) showSecret(title string, secret any, data object) error {
	data["Secret"] = secret
	return v.show("secret.html", title, data)
}

// applicationForm returns the form for the settings of the application of the page.
func (v *visit) applicationForm() (*form, object, error) {
	a, err := v.one(v.applicationPath())
	if err != nil {
		return nil, nil, err
	}
	typ, _ := a["type"].(string)
	sections, err := v.supported(sectionsOf(applicationFields, typ), a)
	return &form{Sections: sections, Action: v.applicationPage() + "/edit", Button: "Save", Cancel: v.applicationPage()}, a, err
}

func editApplicationForm(v *visit) error {
	if err := v.require("applications:write"); err != nil {
		return err
	}
	f, a, err := v.applicationForm()
	if err != nil {
		return err
	}
	f.show(a)
	v.calls = append(v.calls, call{http.MethodPatch, v.applicationPath(), object{"name": a["name"]}})
	return v.show("form.html", titleOf("Edit ", a), object{"Form": f})
}

func editApplication(v *visit) error {
	if err := v.require("applications:write"); err != nil {
		return err
	}
	f, a, err := v.applicationForm()
	if err != nil {
		return err
	}
	return v.change(f, titleOf("Edit ", a), v.applicationPath(), a, applicationErrors, v.applicationPage())
}

// titleOf returns a title with the name of a resource.
func titleOf(verb string, resource object) string {
	name, _ := resource["name"].(string)
	return strings.TrimSpace(verb + name)
}

// oldSecret are the choices for how long a replaced secret stays valid, in seconds.
var oldSecret = []struct{ Value, Name string }{
	{"", "for the default time"}, {"0", "no longer"}, {"3600", "for 1 hour"}, {"86400", "for 1 day"}, {"604800", "for 7 days"},
}

func rotateApplicationSecretForm(v *visit) error {
	if err := v.require("applications:write"); err != nil {
		return err
	}
	a, err := v.call(http.MethodGet, v.applicationPath(), nil)
	if err != nil {
		return err
	}
	app, _ := a.Data.(object)
	v.calls = append(v.calls, call{http.MethodPost, v.applicationPath() + "/rotate-secret", nil})
	return v.show("rotate.html", titleOf("New secret for ", app), object{
		"Text": "The application gets a new secret, which is shown once. The old one stays valid for a while, so that you can replace it without an interruption. A secret from before the old one is invalid at once.",
		"Old":  oldSecret, "Action": v.applicationPage() + "/rotate-secret", "Cancel": v.applicationPage(),
	})
}

func rotateApplicationSecret(v *visit) error {
	return v.rotate(v.applicationPath(), v.applicationPage(), "client_secret", "This is the client secret.")
}

// rotate replaces the secret of a resource, and shows the new one.
func (v *visit) rotate(path, page, member, text string) error {
	body := object{}
	seconds, wrong := field{Name: "previous", Label: "The old secret", Kind: asNumber}.read([]string{v.form("previous")})
	if wrong != nil {
		v.redirect(page + "/rotate-secret")
		return nil
	}
	if seconds != nil {
		body["previous_ttl_s"] = seconds
	}
	a, err := v.once(http.MethodPost, path+"/rotate-secret", body)
	if err != nil {
		return err
	}
	rotated, _ := a.Data.(object)
	return v.showSecret("New secret", rotated[member], object{"Text": text, "Previous": rotated["previous_expires_at"], "Continue": page})
}

// deleteApplicationForm asks for a confirmation.
func deleteApplicationForm(v *visit) error {
	if err := v.require("applications:write"); err != nil {
		return err
	}
	return v.deleteApplicationWith(nil)
}

func (v *visit) deleteApplicationWith(wrong *fault) error {
	a, err := v.call(http.MethodGet, v.applicationPath(), nil)
	if err != nil {
		return err
	}
	app, _ := a.Data.(object)
	v.calls = append(v.calls, call{http.MethodDelete, v.applicationPath(), nil})
	return v.confirm(titleOf("Delete ", app)+"?", object{
		"Text":   "The application is deleted for good, and its tokens become invalid at once. The client id is never used again.",
		"Button": "Delete", "Action": v.applicationPage() + "/delete", "Cancel": v.applicationPage(), "Fields": object{},
	}, wrong)
}

// confirm shows a page that asks for a confirmation, or an error of the confirmed action.
func (v *visit) confirm(title string, data object, wrong *fault) error {
	if wrong != nil {
		return v.again("confirm.html", title, data, wrong)
	}
	return v.show("confirm.html", title, data)
}

func deleteApplication(v *visit) error {
	if err := v.require("applications:write"); err != nil {
		return err
	}
	_, err := v.call(http.MethodDelete, v.applicationPath(), nil)
	if e, ok := refused(err); ok && e.Status == http.StatusConflict {
		return v.deleteApplicationWith(faultOf(e))
	}
	if err != nil {
		return err
	}
	v.redirect(applicationsPage + "?done=app-deleted")
	return nil
}
