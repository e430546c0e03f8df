package console

import (
	"errors"
	"net/http"
	"net/url"
	"slices"

	"stonetown/api/inprocess"
)

const applicationsPage = "/console/applications"

func applications(v *visit) error {
	const title = "Applications"
	q, typ, state := v.form("q"), v.form("type"), v.form("state")
	data := object{"Write": v.may("applications:write"), "Q": q, "Type": typ, "State": state, "Types": []string{"spa", "native", "server", "m2m", "saml"}, "States": []string{"enabled", "disabled"}}
	filter := []string{"q", q, "type", typ, "state", state}
	a, err := v.read(http.MethodGet, query("/api/v1/applications", append(filter, "cursor", v.form("cursor"))...), nil)
	v.paged(data, a.Meta, applicationsPage, filter...)
	if e, ok := errors.AsType[*inprocess.Error](err); ok && e.Status == http.StatusBadRequest {
		return v.again("applications.html", title, data, faultOf(e, "q", "q", "type", "type", "state", "state"))
	}
	if err != nil {
		return err
	}
	data["Applications"] = a.Data
	return v.show("applications.html", title, data)
}

// applicationPath returns the path of the operations on the application of a page.
func (v *visit) applicationPath() string {
	return "/api/v1/applications/" + url.PathEscape(v.variable("application_id"))
}

// applicationPage returns the path of the page of the application.
func (v *visit) applicationPage() string {
	return applicationsPage + "/" + url.PathEscape(v.variable("application_id"))
}

func application(v *visit) error {
	a, err := v.one(v.applicationPath())
	if err != nil {
		return err
	}
	name, _ := a["name"].(string)
	data := object{"Application": a, "Write": v.may("applications:write"), "Claims": v.may("users:read") && v.may("resources:read"), "Relations": v.may("resources:read")}
	if a["type"] != "saml" && v.may("resources:read") {
		if data["Policy"], err = v.exchangePolicy(a); err != nil {
			return err
		}
	}
	if kind := a["type"]; kind != "saml" && kind != "m2m" && v.may("users:read") {
		users, err := v.read(http.MethodGet, query(v.applicationPath()+"/users", "cursor", v.form("cursor")), nil)
		if err != nil {
			return err
		}
		data["ReadUsers"], data["WriteUsers"], data["Users"] = true, v.may("users:write"), users.Data
		v.paged(data, users.Meta, v.applicationPage())
	}
	return v.show("application.html", name, data)
}

// exchangePolicy returns the relations that decide about token exchanges of an application.
func (v *visit) exchangePolicy(a object) (list []record, err error) {
	id, _ := a["client_id"].(string)
	answer, err := v.read(http.MethodGet, query("/api/v1/relations", "subject_type", "application", "subject_id", id, "limit", "100"), nil)
	if err != nil {
		return nil, err
	}
	if err := decode(answer.Data, &list); err != nil {
		return nil, err
	}
	return slices.DeleteFunc(list, func(r record) bool {
		return !slices.Contains([]string{"application", "audience", "user"}, r.Resource.Type)
	}), nil
}

// disableApplicationForm asks for a confirmation.
func disableApplicationForm(v *visit) error {
	if err := v.require("applications:write"); err != nil {
		return err
	}
	a, err := v.call(http.MethodGet, v.applicationPath(), nil)
	if err != nil {
		return err
	}
	app, _ := a.Data.(object)
	name, _ := app["name"].(string)
	v.calls = append(v.calls, call{http.MethodPost, v.applicationPath() + "/disable", nil})
	return v.show("confirm.html", "Disable "+name+"?", object{
		"Text": "The application gets no new tokens until it is enabled again. Access tokens that it has are good until they expire. Nothing is deleted.", "Button": "Disable", "Action": v.applicationPage() + "/disable", "Cancel": v.applicationPage(), "Fields": object{},
	})
}

func disableApplication(v *visit) error {
	return v.act(v.applicationPath()+"/disable", nil, v.applicationPage(), "app-disabled")
}

func enableApplication(v *visit) error {
	return v.act(v.applicationPath()+"/enable", nil, v.applicationPage(), "app-enabled")
}
