package console

import (
	"net/http"
	"net/url"
	"slices"

	"stonetown/api/web"
)

// The console of the control plane has the frame and the forms of a tenant's console. It calls the
// operations of the control plane, which accept the session of the person itself. What a page offers
// follows from the permissions of the person in the organisation that the path names.

const organizationsPage = home + "/organizations"

// roles are those that every deployment has, the least first. An operation lists others in its error.
var roles = []string{"viewer", "operator", "admin", "owner"}

const aboutRoles = "A viewer reads. An operator also suspends and resumes tenants. An admin also creates tenants and manages members below owner. An owner does everything."

// ControlRoutes returns the pages of the console of the control plane by path and method.
func (h *Handlers) ControlRoutes(wrap wrap) (map[string]map[string]http.Handler, error) {
	pages := map[string]map[string]page{
		home:                        {"GET": enterOrganization},
		confirmedPage:               {"GET": confirmedInTab},
		organizationsPage:           {"GET": organizations},
		organizationsPage + "/new":  {"GET": newOrganizationForm, "POST": createOrganization},
		organizationsPage + "/left": {"GET": organizations, "POST": leave},
	}
	for path, methods := range map[string]map[string]page{
		"":      {"GET": organization},
		"/edit": {"GET": editOrganizationForm, "POST": editOrganization},

		"/tenants":                            {"GET": tenants},
		"/tenants/new":                        {"GET": newTenantForm, "POST": createTenant},
		"/tenants/{tenant_id}":                {"GET": tenant},
		"/tenants/{tenant_id}/edit":           {"GET": renameTenantForm, "POST": renameTenant},
		"/tenants/{tenant_id}/suspend":        {"GET": suspendTenantForm, "POST": suspendTenant},
		"/tenants/{tenant_id}/resume":         {"GET": tenant, "POST": resumeTenant},
		"/tenants/{tenant_id}/decommission":   {"GET": decommissionTenantForm, "POST": decommissionTenant},
		"/tenants/{tenant_id}/open-console":   {"GET": openConsoleForm, "POST": openConsole},
		"/members":                            {"GET": members},
		"/members/{member_id}":                {"GET": memberDetails},
		"/members/{member_id}/edit":           {"GET": changeRoleForm, "POST": changeRole},
		"/members/{member_id}/remove":         {"GET": removeFromOrganizationForm, "POST": removeFromOrganization},
		"/invitations":                        {"GET": invitations},
		"/invitations/new":                    {"GET": newInvitationForm, "POST": createInvitation},
		"/invitations/{invitation_id}":        {"GET": invitation},
		"/invitations/{invitation_id}/resend": {"GET": invitation, "POST": resendInvitation},
		"/invitations/{invitation_id}/revoke": {"GET": revokeInvitationForm, "POST": revokeInvitation},

		"/service-accounts":                                    {"GET": serviceAccounts},
		"/service-accounts/new":                                {"GET": newServiceAccountForm, "POST": createServiceAccount},
		"/service-accounts/{service_account_id}":               {"GET": serviceAccount},
		"/service-accounts/{service_account_id}/edit":          {"GET": editServiceAccountForm, "POST": editServiceAccount},
		"/service-accounts/{service_account_id}/rotate-secret": {"GET": rotateServiceAccountSecretForm, "POST": rotateServiceAccountSecret},
		"/service-accounts/{service_account_id}/delete":        {"GET": deleteServiceAccountForm, "POST": deleteServiceAccount},

		"/events":              {"GET": organizationEvents},
		"/events/events.csv":   {"GET": exportOrganizationCSV},
		"/events/events.jsonl": {"GET": exportOrganizationLines},
	} {
		within := map[string]page{}
		for method, p := range methods {
			within[method] = inOrganization(p)
		}
		pages[inOrganizations+path] = within
	}
	return h.routes(wrap, &site{enter: (*visit).enterControl, areas: (*visit).organizationAreas, control: true}, pages)
}

// enterControl calls operations with the session of the person. That a session of a tenant is none of
// the control plane is decided where sessions are found, by the host.
func (v *visit) enterControl() error {
	_, err := v.signedIn()
	v.token = v.info.Cookie(web.SessionCookie)
	return err
}

// inOrganization returns a page of the organisation that the path names. To a person without a role
// in it, the organisation does not exist.
func inOrganization(p page) page {
	return func(v *visit) error {
		a, err := v.call(http.MethodGet, v.organizationPath(), nil)
		if err != nil {
			return err
		}
		found, err := v.call(http.MethodGet, v.organizationPath()+"/permissions", nil)
		if err != nil {
			return err
		}
		permitted, _ := found.Data.(object)
		list, _ := permitted["permissions"].([]any)
		v.org, _ = a.Data.(object)
		v.scopes = texts(list)
		return p(v)
	}
}

// organizationAreas returns the areas of the organisation of the page. Who may read it may read all of
// them.
func (v *visit) organizationAreas() []area {
	if v.org == nil {
		return nil
	}
	page := v.organizationPage()
	return []area{
		{"Tenants", page + "/tenants", "Create tenants, open their consoles, suspend, resume and decommission them.", readPermission},
		{"Members", page + "/members", "See who is a member and with which role, change roles, and leave.", readPermission},
		{"Invitations", page + "/invitations", "Invite people, and see which invitations were accepted.", readPermission},
		{"Service accounts", page + "/service-accounts", "Give programs a role, with a secret of their own.", readPermission},
		{"Events", page + "/events", "Read what has happened in the organisation and who did it, and export it.", readPermission},
	}
}

// The permissions of the control plane that pages depend on.
const (
	readPermission         = "read"
	updateOrganization     = "update_organization"
	createTenantPermission = "create_tenant"
	updateTenantPermission = "update_tenant"
	suspendPermission      = "suspend_tenant"
	decommissionPermission = "decommission_tenant"
	openConsolePermission  = "open_console"
	manageMembers          = "manage_members"
	manageOwners           = "manage_owners"
)

// mayManage reports whether the person may give a role and take it from others.
func (v *visit) mayManage(role any) bool {
	return v.may(manageMembers) && (role != "owner" || v.may(manageOwners))
}

// manageable returns the roles that the person may give, and the one that something has.
func (v *visit) manageable(has any) (all []string) {
	for _, role := range roles {
		if v.mayManage(role) || role == has {
			all = append(all, role)
		}
	}
	if role, ok := has.(string); ok && role != "" && !slices.Contains(all, role) {
		all = append(all, role)
	}
	return all
}

// organizationPath returns the path of the operations on the organisation of a page.
func (v *visit) organizationPath() string {
	return "/api/v1/organizations/" + url.PathEscape(v.variable("org_id"))
}

// organizationPage returns the path of the page of the organisation.
func (v *visit) organizationPage() string {
	return organizationsPage + "/" + url.PathEscape(v.variable("org_id"))
}

// below returns the path of an operation, or of a page, on one of the resources of an organisation.
func (v *visit) below(base, kind, variable string) string {
	return base + "/" + kind + "/" + url.PathEscape(v.variable(variable))
}

// delete ends a resource after its confirmation, once, and leads to a page that says so. asked shows
// the confirmation again if the operation does not allow it.
func (v *visit) delete(path, page, done string, asked func(*fault) error) error {
	_, err := v.once(http.MethodDelete, path, nil)
	if e, ok := refused(err); ok && e.Status == http.StatusConflict {
		return asked(faultOf(e))
	}
	if err != nil {
		return err
	}
	v.redirect(page + "?done=" + done)
	return nil
}
