package console

import (
	"errors"
	"net/http"
	"net/url"
	"slices"

	"stonetown/api/inprocess"
)

// tenantStates are what the states of a tenant mean.
var tenantStates = map[string]string{
	"provisioning":   "It is being created, and is active within a moment. Until then its address answers 503.",
	"active":         "It is served at its address.",
	"suspended":      "No sign-in, token or request of it is served, and deliveries of its webhooks wait. Its keys stay published. It can be resumed as it was.",
	"decommissioned": "It has ended for good. Its address answers 410, and nobody can use its slug again.",
}

func tenants(v *visit) error {
	const title = "Tenants"
	state := v.form("state")
	data := object{"State": state, "States": []string{"provisioning", "active", "suspended", "decommissioned"}, "Create": v.may(createTenantPermission)}
	a, err := v.read(http.MethodGet, query(v.organizationPath()+"/tenants", "state", state, "cursor", v.form("cursor")), nil)
	v.paged(data, a.Meta, v.organizationPage()+"/tenants", "state", state)
	if e, ok := errors.AsType[*inprocess.Error](err); ok && e.Status == http.StatusBadRequest {
		return v.again("tenants.html", title, data, faultOf(e, "state", "state"))
	}
	if err != nil {
		return err
	}
	list, _ := a.Data.([]any)
	data["Tenants"] = list
	data["Regions"] = slices.ContainsFunc(list, func(item any) bool { return member(item.(object), "region") != nil })
	return v.show("tenants.html", title, data)
}

const newTenantTitle = "New tenant"

func (v *visit) newTenant() *form {
	return &form{Sections: []section{{"", []field{
		{Name: "name", Label: "Name", Kind: asText, Required: true},
		{Name: "slug", Label: "Slug", Kind: asText, Required: true, Hint: "The first part of its address: lower-case letters, digits and hyphens. It cannot be changed later, and is never used again."},
		{Name: "environment", Label: "Environment", Kind: asChoice, Required: true, Options: []string{"production", "staging", "development"}, Hint: "What it is for. It has no effect."},
		{Name: "region", Label: "Region", Kind: asText, Hint: "Where its data is. Leave it empty for the default of the deployment."},
	}}}, Action: v.organizationPage() + "/tenants/new", Button: "Create", Cancel: v.organizationPage() + "/tenants"}
}

func newTenantForm(v *visit) error {
	if err := v.require(createTenantPermission); err != nil {
		return err
	}
	v.calls = append(v.calls, call{http.MethodPost, v.organizationPath() + "/tenants", object{"slug": "slug", "name": "Name"}})
	return v.show("form.html", newTenantTitle, object{"Form": v.newTenant()})
}

func createTenant(v *visit) error {
	if err := v.require(createTenantPermission); err != nil {
		return err
	}
	created, done, err := v.submit(v.newTenant(), newTenantTitle, "", v.organizationPath()+"/tenants", nil)
	if !done {
		return err
	}
	id, _ := created["id"].(string)
	return v.showSecret("Tenant created", member(created, "admin_application/client_secret"), object{
		"Text": "The tenant has one application, with all scopes, by which a program creates the first users and groups. This is its client secret.",
		"ID":   member(created, "admin_application/client_id"), "IDName": "Client id", "Continue": v.organizationPage() + "/tenants/" + url.PathEscape(id),
	})
}

// tenantPath returns the path of the operations on the tenant of a page.
func (v *visit) tenantPath() string { return v.below(v.organizationPath(), "tenants", "tenant_id") }

// tenantPage returns the path of the page of the tenant.
func (v *visit) tenantPage() string { return v.below(v.organizationPage(), "tenants", "tenant_id") }

func tenant(v *visit) error { return v.tenantWith(nil) }

func (v *visit) tenantWith(wrong *fault) error {
	t, err := v.one(v.tenantPath())
	if err != nil {
		return err
	}
	state, _ := t["state"].(string)
	id, _ := t["id"].(string)
	data := object{
		"Tenant": t, "Means": tenantStates[state], "Events": query(v.organizationPage()+"/events", "tenant_id", id),
		"Rename": v.may(updateTenantPermission), "Suspend": v.may(suspendPermission), "Decommission": v.may(decommissionPermission), "Open": v.may(openConsolePermission),
	}
	if wrong != nil {
		return v.again("tenant.html", titleOf("", t), data, wrong)
	}
	return v.show("tenant.html", titleOf("", t), data)
}

// tenantNow returns the tenant of a page that does something to it.
func (v *visit) tenantNow(permission string) (object, error) {
	if err := v.require(permission); err != nil {
		return nil, err
	}
	a, err := v.call(http.MethodGet, v.tenantPath(), nil)
	t, _ := a.Data.(object)
	return t, err
}

func (v *visit) tenantForm() *form {
	return &form{Sections: []section{{"", []field{{Name: "name", Label: "Name", Kind: asText, Required: true}}}}, Action: v.tenantPage() + "/edit", Button: "Save", Cancel: v.tenantPage()}
}

func renameTenantForm(v *visit) error {
	t, err := v.tenantNow(updateTenantPermission)
	if err != nil {
		return err
	}
	f := v.tenantForm()
	f.show(t)
	v.calls = append(v.calls, call{http.MethodPatch, v.tenantPath(), object{"name": t["name"]}})
	return v.show("form.html", titleOf("Rename ", t), object{"Form": f})
}

func renameTenant(v *visit) error {
	t, err := v.tenantNow(updateTenantPermission)
	if err != nil {
		return err
	}
	return v.change(v.tenantForm(), titleOf("Rename ", t), v.tenantPath(), t, nil, v.tenantPage())
}

const aboutSuspending = "No sign-in, token or request of the tenant is served until it is resumed, and deliveries of its webhooks wait. Nothing is deleted."

func (v *visit) suspendForm() *form {
	return &form{Sections: []section{{"", []field{{Name: "reason", Label: "Reason", Kind: asText, Hint: "Members of the organisation see it. It can be empty."}}}}, Action: v.tenantPage() + "/suspend", Button: "Suspend", Danger: true, Cancel: v.tenantPage()}
}

func suspendTenantForm(v *visit) error {
	t, err := v.tenantNow(suspendPermission)
	if err != nil {
		return err
	}
	v.calls = append(v.calls, call{http.MethodPost, v.tenantPath() + "/suspend", object{"reason": "Reason"}})
	return v.show("form.html", titleOf("Suspend ", t)+"?", object{"Form": v.suspendForm(), "Text": aboutSuspending})
}

func suspendTenant(v *visit) error {
	t, err := v.tenantNow(suspendPermission)
	if err != nil {
		return err
	}
	_, done, err := v.submit(v.suspendForm(), titleOf("Suspend ", t)+"?", aboutSuspending, v.tenantPath()+"/suspend", nil)
	if done {
		v.redirect(v.tenantPage() + "?done=suspended")
	}
	return err
}

func resumeTenant(v *visit) error {
	err := v.act(v.tenantPath()+"/resume", nil, v.tenantPage(), "resumed")
	if e, ok := refused(err); ok && e.Status == http.StatusConflict {
		return v.tenantWith(faultOf(e))
	}
	return err
}

func openConsoleForm(v *visit) error {
	t, err := v.tenantNow(openConsolePermission)
	if err != nil {
		return err
	}
	v.calls = append(v.calls, call{http.MethodPost, v.tenantPath() + "/open-console", nil})
	return v.openConsoleWith(t, nil)
}

func (v *visit) openConsoleWith(t object, wrong *fault) error {
	v.formTo, _ = t["base_url"].(string)
	data := object{
		"Text":   "You enter as a member of the organisation, for 30 minutes, with the rights that the tenant gives to the group organization-members. The tenant's administrators see you among its users, and its audit log records what you do.",
		"Button": "Open console", "Action": v.tenantPage() + "/open-console", "Cancel": v.tenantPage(), "Fields": object{}, "Safe": true,
	}
	return v.confirm(titleOf("Open the console of ", t), data, wrong)
}

// openConsole leads the browser to the tenant, where the person confirms.
func openConsole(v *visit) error {
	t, err := v.tenantNow(openConsolePermission)
	if err != nil {
		return err
	}
	a, err := v.once(http.MethodPost, v.tenantPath()+"/open-console", nil)
	if e, ok := refused(err); ok && e.Status == http.StatusConflict {
		return v.openConsoleWith(t, faultOf(e))
	}
	if err != nil {
		return err
	}
	link, _ := a.Data.(object)
	to, _ := link["url"].(string)
	v.redirect(to)
	return nil
}

const aboutDecommissioning = "This can't be undone. The tenant is not served any more, all of its data is deleted after 30 days, and its slug is never used again."

func (v *visit) decommissionForm(t object) *form {
	slug, _ := t["slug"].(string)
	return &form{Sections: []section{{"", []field{{Name: "confirm", Label: "Slug of the tenant", Kind: asText, Required: true, Hint: "Type " + slug + " to confirm."}}}}, Action: v.tenantPage() + "/decommission", Button: "Decommission", Danger: true, Cancel: v.tenantPage()}
}

func decommissionTenantForm(v *visit) error {
	t, err := v.tenantNow(decommissionPermission)
	if err != nil {
		return err
	}
	v.calls = append(v.calls, call{http.MethodPost, v.tenantPath() + "/decommission", object{"confirm": t["slug"]}})
	return v.show("form.html", titleOf("Decommission ", t)+"?", object{"Form": v.decommissionForm(t), "Text": aboutDecommissioning})
}

func decommissionTenant(v *visit) error {
	t, err := v.tenantNow(decommissionPermission)
	if err != nil {
		return err
	}
	_, done, err := v.submit(v.decommissionForm(t), titleOf("Decommission ", t)+"?", aboutDecommissioning, v.tenantPath()+"/decommission", nil)
	if done {
		v.redirect(v.tenantPage() + "?done=decommissioned")
	}
	return err
}
