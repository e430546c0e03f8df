package console

import (
	"net/http"
	"slices"
	"strings"

	"stonetown/api/inprocess"
)

// area is a part of the console.
type area struct {
	Name  string
	Path  string
	About string
	scope string // that it requires to be read; several, separated by spaces: any of them
}

// areas are all of them, in the order of the navigation.
var areas = []area{
	{"Users", usersPage, "Find users, see their sessions and second factors, disable and enable them.", "users:read"},
	{"Groups", groupsPage, "Create groups, change their scopes, and change who is a member.", "groups:read"},
	{"Applications", applicationsPage, "Create applications, change what they get, give them new secrets, and preview their claims.", "applications:read"},
	{"Connections", connectionsPage, "Connect identity providers, test them, and see what their claims become.", "federation:read"},
	{"Security", securityPage, "Set the rules for passwords, sign-in, sessions and tokens, replace keys and certificates, compare sign-ins with threat feeds, define scopes, and trust issuers of workloads.", "settings:read applications:read"},
	{"Sign-in flow", flowPage, "Add steps to sign-ups and sign-ins: conditions, demands, and services of yours that decide.", "settings:read"},
	{"Branding", brandingPage, "Set the name, logo, colours, links and languages of pages and mails, and the texts of mails.", "settings:read"},
	{"Access", accessPage, "Ask whether a subject may do something to a resource, and see why.", "resources:read"},
	{"Simulator", simulatorPage, "Compare an answer with what it would be with other relations, at another time or under other conditions.", "resources:read"},
	{"Model", modelPage, "Edit the types of resources, and see what a change would do before you apply it.", "resources:read"},
	{"Relations", relationsPage, "Find relations, add them, and see whose access changes before you remove one. Register, edit and delete resources.", "resources:read"},
	{"Tests", testsPage, "Edit and run the assertions that changes of the model must keep.", "resources:read"},
	{"Webhooks", webhooksPage, "Send events to receivers, see what was delivered to them, and send it again.", "webhooks:read"},
	{"Incidents", incidentsPage, "Manage breach incidents, and notify the users that are affected.", "audit:read"},
	{"Reports", reportsPage, "Save and schedule reports of sign-ins, second factors, unused applications and standing access.", "audit:read"},
	{"Audit", auditPage, "Read what has happened and who did it, follow the lineage of tokens, and export events.", "audit:read"},
}

// link is an entry of the navigation.
type link struct {
	area
	Current bool
}

// areas returns the areas of the tenant that the person may read.
func (v *visit) areas() []area { return v.readable(areas) }

// readable returns those areas that the person may read.
func (v *visit) readable(all []area) (some []area) {
	for _, a := range all {
		if slices.ContainsFunc(strings.Fields(a.scope), v.may) {
			some = append(some, a)
		}
	}
	return some
}

// navigation returns the areas of the console that the person may read.
func (v *visit) navigation() (all []link) {
	for _, a := range v.site.areas(v) {
		all = append(all, link{a, isPage(v.r.URL.Path, a.Path)})
	}
	return all
}

// may reports whether the person has a scope or, in the control plane, a permission.
func (v *visit) may(scope string) bool { return slices.Contains(v.scopes, scope) }

// require is for pages that call no operation with the scope, such as a confirmation.
func (v *visit) require(scope string) error {
	if v.may(scope) {
		return nil
	}
	if v.site.control {
		return &inprocess.Error{Status: http.StatusForbidden, Code: "FORBIDDEN", Message: "your role in the organisation does not permit this; ask an owner or an admin of it"}
	}
	return &inprocess.Error{Status: http.StatusForbidden, Code: "insufficient_scope", Details: inprocess.Object{"required_scope": scope}}
}
