package console

import (
	"errors"
	"net/http"
	"net/url"

	"stonetown/api/inprocess"
)

const usersPage = "/console/users"

// userAreas are the pages of the area Users.
var userAreas = []area{
	{"Imports", importsPage, "Import many users from a file, and see the rows that failed.", "users:read"},
}

// query returns the path of an operation or a page with those parameters that have a value.
func query(path string, pairs ...string) string {
	values := url.Values{}
	for i := 0; i+1 < len(pairs); i += 2 {
		if pairs[i+1] != "" {
			values.Set(pairs[i], pairs[i+1])
		}
	}
	if len(values) == 0 {
		return path
	}
	return path + "?" + values.Encode()
}

// paged adds the links between the pages of a list to the data of a page. filter has the path of the
// page and its parameters.
func (v *visit) paged(data object, meta inprocess.Meta, path string, filter ...string) {
	data["First"], data["Next"] = "", ""
	if v.form("cursor") != "" {
		data["First"] = query(path, filter...)
	}
	if meta.NextCursor != "" {
		data["Next"] = query(path, append(filter, "cursor", meta.NextCursor)...)
	}
}

func users(v *visit) error {
	const title = "Users"
	q, state := v.form("q"), v.form("state")
	data := object{"Q": q, "State": state, "States": []string{"active", "disabled", "pending"}}
	a, err := v.read(http.MethodGet, query("/api/v1/users", "q", q, "state", state, "cursor", v.form("cursor")), nil)
	v.paged(data, a.Meta, usersPage, "q", q, "state", state)
	if e, ok := errors.AsType[*inprocess.Error](err); ok && e.Status == http.StatusBadRequest {
		return v.again("users.html", title, data, faultOf(e, "q", "q", "state", "state"))
	}
	if err != nil {
		return err
	}
	data["Users"], data["Write"] = a.Data, v.may(usersWrite)
	return v.show("users.html", title, data)
}

// userPath returns the path of the operations on the user of a page.
func (v *visit) userPath() string { return "/api/v1/users/" + url.PathEscape(v.variable("user_id")) }

// userPage returns the path of the page of the user.
func (v *visit) userPage() string { return usersPage + "/" + url.PathEscape(v.variable("user_id")) }

func user(v *visit) error {
	u, err := v.one(v.userPath())
	if err != nil {
		return err
	}
	id, _ := u["id"].(string)
	data := object{"User": u, "Subject": "user:" + id, "Write": v.may("users:write"), "Groups": v.may("groups:read"), "ReadApplications": v.may("applications:read"), "Access": v.may("resources:read")}
	for _, list := range []struct{ name, path string }{{"Sessions", "/sessions"}, {"Factors", "/mfa/factors"}, {"Identities", "/external-identities"}, {"Applications", "/applications"}} {
		if data[list.name], err = v.many(v.userPath() + list.path); err != nil {
			return err
		}
	}
	title, _ := u["email"].(string)
	if name, _ := u["name"].(string); u["managed_by"] != nil && name != "" {
		title = name
	}
	return v.show("user.html", title, data)
}

// disableForm asks for a confirmation.
func disableForm(v *visit) error {
	if err := v.require("users:write"); err != nil {
		return err
	}
	a, err := v.call(http.MethodGet, v.userPath(), nil)
	if err != nil {
		return err
	}
	u, _ := a.Data.(object)
	email, _ := u["email"].(string)
	page := v.userPage()
	v.calls = append(v.calls, call{http.MethodPost, v.userPath() + "/disable", nil})
	return v.show("confirm.html", "Disable "+email+"?", object{
		"Text": "The user is signed out everywhere and cannot sign in until enabled again. Nothing is deleted.", "Button": "Disable", "Action": page + "/disable", "Cancel": page, "Fields": object{},
	})
}

func disable(v *visit) error {
	return v.act(v.userPath()+"/disable", nil, v.userPage(), "disabled")
}

func enable(v *visit) error {
	return v.act(v.userPath()+"/enable", nil, v.userPage(), "enabled")
}
