package console

import (
	"net/http"
	"net/url"
	"slices"

	"stonetown/api/inprocess"
)

const (
	scopesPage = securityPage + "/scopes"
	scopesPath = "/api/v1/scopes"
)

const newScopeTitle = "New scope"

// scopeFields are the members of a scope that can be changed.
var scopeFields = []field{
	{Name: "description", Label: "Description", Kind: asArea, Blank: true, Hint: "At most 500 bytes. People read it when they are asked for consent."},
	{Name: "entitlement", Label: "Entitled", Kind: asChoice, Required: true, Options: []string{"group", "self"}, Hint: "Members of groups get the scope by a group that has it. Every user gets it if an application asks for it."},
}

// allScopes returns the scopes of the tenant, with the built-in ones, by name.
func (v *visit) allScopes() (all []object, err error) {
	for cursor := ""; ; {
		a, err := v.call(http.MethodGet, query(scopesPath, "limit", "250", "cursor", cursor), nil)
		if err != nil {
			return nil, err
		}
		list, _ := a.Data.([]any)
		for _, item := range list {
			one, _ := item.(object)
			all = append(all, one)
		}
		if cursor = a.Meta.NextCursor; cursor == "" {
			return all, nil
		}
	}
}

// listScopes shows a page of the scopes of the tenant, with the built-in ones.
func listScopes(v *visit) error {
	data := object{"Write": v.may("applications:write"), "Page": scopesPage}
	a, err := v.read(http.MethodGet, query(scopesPath, "cursor", v.form("cursor")), nil)
	if err != nil {
		return err
	}
	data["Scopes"] = a.Data
	v.paged(data, a.Meta, scopesPage)
	return v.show("scopes.html", "Scopes", data)
}

func newScope() *form {
	name := field{Name: "name", Label: "Name", Kind: asText, Required: true, Hint: "Such as notes:read: at most 128 ASCII characters without space, quotation mark and backslash. It cannot be changed."}
	return &form{Sections: []section{{"", slices.Insert(slices.Clone(scopeFields), 0, name)}}, Action: scopesPage + "/new", Button: "Create", Cancel: scopesPage}
}

// scopeErrors are the fields that errors of operations on scopes are about.
var scopeErrors = map[string]string{"scope_exists": "name", "scope_reserved": "name"}

func newScopeForm(v *visit) error {
	if err := v.require("applications:write"); err != nil {
		return err
	}
	f := newScope()
	f.show(object{})
	v.calls = append(v.calls, call{http.MethodPost, scopesPath, object{"name": "notes:read", "description": "Read your notes", "entitlement": "self"}})
	return v.show("form.html", newScopeTitle, object{"Form": f})
}

func createScope(v *visit) error {
	if err := v.require("applications:write"); err != nil {
		return err
	}
	_, done, err := v.submit(newScope(), newScopeTitle, "", scopesPath, scopeErrors)
	if !done {
		return err
	}
	v.redirect(scopesPage + "?done=scope-created")
	return nil
}

// scopePath returns the path of the operations on the scope of a page, and scopePage that of its pages.
func (v *visit) scopePath() string { return scopesPath + "/" + url.PathEscape(v.variable("name")) }

func (v *visit) scopePage() string { return scopesPage + "/" + url.PathEscape(v.variable("name")) }

// ownScope returns the scope of the page, if the tenant has defined it and the person may change it.
func (v *visit) ownScope() (object, error) {
	if err := v.require("applications:write"); err != nil {
		return nil, err
	}
	if err := v.require("applications:read"); err != nil {
		return nil, err
	}
	all, err := v.allScopes()
	if err != nil {
		return nil, err
	}
	i := slices.IndexFunc(all, func(s object) bool { return s["name"] == v.variable("name") })
	if i < 0 {
		return nil, &inprocess.Error{Status: http.StatusNotFound, Code: "scope_not_found", Message: "scope is not registered"}
	}
	if all[i]["built_in"] == true {
		return nil, &inprocess.Error{Status: http.StatusForbidden, Code: "scope_reserved", Message: "scope is built in, and cannot be changed"}
	}
	return all[i], nil
}

func (v *visit) scopeForm() (f *form, s object, err error) {
	s, err = v.ownScope()
	if err != nil {
		return nil, nil, err
	}
	return &form{Sections: []section{{"", scopeFields}}, Action: v.scopePage() + "/edit", Button: "Save", Cancel: scopesPage}, versioned(s, scopeFields), nil
}

func editScopeForm(v *visit) error {
	f, s, err := v.scopeForm()
	if err != nil {
		return err
	}
	f.show(s)
	v.calls = append(v.calls, call{http.MethodPatch, v.scopePath(), object{"description": s["description"]}})
	return v.show("form.html", titleOf("Edit ", s), object{"Form": f})
}

func editScope(v *visit) error {
	f, s, err := v.scopeForm()
	if err != nil {
		return err
	}
	return v.change(f, titleOf("Edit ", s), v.scopePath(), s, nil, scopesPage)
}

// deleteScopeForm asks for a confirmation.
func deleteScopeForm(v *visit) error {
	if _, err := v.ownScope(); err != nil {
		return err
	}
	return v.deleteScopeWith(nil)
}

func (v *visit) deleteScopeWith(wrong *fault) error {
	v.calls = append(v.calls, call{http.MethodDelete, v.scopePath(), nil})
	return v.confirm("Delete "+v.variable("name")+"?", object{
		"Text":   "Applications can no longer ask for the scope, and groups can no longer be given it. A scope that a group or an application has cannot be deleted: take it away from them first.",
		"Button": "Delete", "Action": v.scopePage() + "/delete", "Cancel": scopesPage, "Fields": object{},
	}, wrong)
}

func deleteScope(v *visit) error {
	_, err := v.once(http.MethodDelete, v.scopePath(), nil)
	if e, ok := refused(err); ok && e.Status != http.StatusNotFound {
		return v.deleteScopeWith(faultOf(e))
	}
	if err != nil {
		return err
	}
	v.redirect(scopesPage + "?done=scope-deleted")
	return nil
}
