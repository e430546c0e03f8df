package console

import (
	"net/http"
	"net/url"
)

// enterOrganization leads to the only organisation of the person, or else to the list.
func enterOrganization(v *visit) error {
	list, err := v.many("/api/v1/organizations?limit=2")
	if err != nil {
		return err
	}
	to := organizationsPage
	if len(list) == 1 {
		only, _ := list[0].(object)
		id, _ := only["id"].(string)
		to += "/" + url.PathEscape(id)
	}
	v.redirect(to)
	return nil
}

func organizations(v *visit) error {
	a, err := v.read(http.MethodGet, query("/api/v1/organizations", "cursor", v.form("cursor")), nil)
	if err != nil {
		return err
	}
	data := object{"Organizations": a.Data}
	v.paged(data, a.Meta, organizationsPage)
	return v.show("organizations.html", "Organisations", data)
}

const newOrganizationTitle = "New organisation"

func newOrganization() *form {
	return &form{Sections: []section{{"", []field{
		{Name: "name", Label: "Name", Kind: asText, Required: true},
		{Name: "slug", Label: "Slug", Kind: asText, Required: true, Hint: "Lower-case letters, digits and hyphens. It can't be changed later."},
	}}}, Action: organizationsPage + "/new", Button: "Create", Cancel: organizationsPage}
}

const aboutNewOrganization = "You become its owner. In some deployments, only owners of other organisations can create one."

func newOrganizationForm(v *visit) error {
	v.calls = append(v.calls, call{http.MethodPost, "/api/v1/organizations", object{"slug": "slug", "name": "Name"}})
	return v.show("form.html", newOrganizationTitle, object{"Form": newOrganization(), "Text": aboutNewOrganization})
}

func createOrganization(v *visit) error {
	created, done, err := v.submit(newOrganization(), newOrganizationTitle, aboutNewOrganization, "/api/v1/organizations", nil)
	if !done {
		return err
	}
	id, _ := created["id"].(string)
	v.redirect(organizationsPage + "/" + url.PathEscape(id) + "?done=organization-created")
	return nil
}

// organization is the overview of an organisation.
func organization(v *visit) error {
	v.calls = append(v.calls, call{http.MethodGet, v.organizationPath(), nil}, call{http.MethodGet, v.organizationPath() + "/permissions", nil})
	return v.show("organization.html", titleOf("", v.org), object{"Organization": v.org, "Permissions": v.scopes, "Update": v.may(updateOrganization)})
}

func (v *visit) organizationForm() *form {
	return &form{Sections: []section{{"", []field{{Name: "name", Label: "Name", Kind: asText, Required: true}}}}, Action: v.organizationPage() + "/edit", Button: "Save", Cancel: v.organizationPage()}
}

func editOrganizationForm(v *visit) error {
	if err := v.require(updateOrganization); err != nil {
		return err
	}
	f := v.organizationForm()
	f.show(v.org)
	v.calls = append(v.calls, call{http.MethodPatch, v.organizationPath(), object{"name": v.org["name"]}})
	return v.show("form.html", titleOf("Rename ", v.org), object{"Form": f})
}

func editOrganization(v *visit) error {
	if err := v.require(updateOrganization); err != nil {
		return err
	}
	return v.change(v.organizationForm(), titleOf("Rename ", v.org), v.organizationPath(), v.org, nil, v.organizationPage())
}
