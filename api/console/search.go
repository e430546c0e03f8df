package console

import (
	"net/http"
	"net/url"
	"slices"
	"strings"

	"stonetown/internal/notation"
)

const searchPage = "/console/search"

// hits are what was found of one kind.
type hits struct {
	Name string
	List []hit
	More string // the path of the page with all of them; empty: these are all
}

// hit is something that was found.
type hit struct{ Name, About, Page string }

// Bounds of a search.
const (
	maxHits  = 10 // of each kind
	maxTypes = 25 // that are asked for a resource whose type is not given
)

// furtherPages are pages below areas that are found by their names.
var furtherPages = []area{
	{"New group", groupsPage + "/new", "Give scopes to a set of users.", "groups:write"},
	{"New scope", scopesPage + "/new", "Define a right that tokens carry.", "applications:write"},
	{"Resources", registeredPage, "List the resources of a type, register, edit and delete them.", "resources:read"},
	{"New application", applicationsPage + "/new", "Create an OAuth client.", "applications:write"},
	{"New connection", connectionsPage + "/new", "Connect an identity provider.", "federation:write"},
	{"New subscription", webhooksPage + "/new", "Send events to a receiver.", "webhooks:write"},
	{"New trusted issuer", issuersPage + "/new", "Trust a platform of workloads.", "applications:write"},
	{"New incident", incidentsPage + "/new", "Open a breach incident.", incidentsWrite},
	{"Types of events", webhooksPage + "/event-types", "What webhooks and the audit log tell.", "webhooks:read"},
	{"Who may", subjectsPage, "List the subjects that may do something to a resource.", "resources:read"},
	{"What a subject may", resourcesPage, "List the resources that a subject may do something to.", "resources:read"},
}

// named are lists whose items are found by their names, among the first of them.
var named = []struct {
	name, scope, path, page, title, about string
}{
	{"Connections", "federation:read", "/api/v1/federation/connections", connectionsPage, "name", "kind"},
	{"Webhooks", "webhooks:read", "/api/v1/webhooks/subscriptions", webhooksPage, "name", "url"},
	{"Trusted issuers", "applications:read", issuersPath, issuersPage, "issuer", "description"},
	{"Incidents", "audit:read", incidentsPath, incidentsPage, "title", "severity"},
	{"Reports", "audit:read", reportsPath, reportsPage, "name", "kind"},
}

// searchNamed finds the items of the named lists.
func (v *visit) searchNamed(text string) (all []hits, err error) {
	for _, kind := range named {
		if !v.may(kind.scope) {
			continue
		}
		a, err := v.read(http.MethodGet, kind.path+"?limit=250", nil)
		if err != nil {
			return nil, err
		}
		found := hits{Name: kind.name}
		list, _ := a.Data.([]any)
		for _, item := range list {
			o, _ := item.(object)
			id, _ := o["id"].(string)
			name, _ := o[kind.title].(string)
			about, _ := o[kind.about].(string)
			if !hasWords(name+" "+about+" "+displayName(about), text) {
				continue
			}
			if len(found.List) == maxHits {
				found.More = kind.page
				break
			}
			found.List = append(found.List, hit{name, displayName(about), kind.page + "/" + url.PathEscape(id)})
		}
		all = append(all, found)
	}
	return all, nil
}

// search finds users, groups, applications, resources and other items that the person may read, and
// pages.
func search(v *visit) error {
	const title = "Search"
	text := strings.TrimSpace(v.form("search"))
	data := object{}
	if text == "" {
		return v.show("search.html", title, data)
	}
	pages := hits{Name: "Pages"}
	for _, a := range v.readable(slices.Concat(areas, userAreas, securityAreas, furtherPages)) {
		if hasWords(a.Name+" "+a.About, text) {
			pages.List = append(pages.List, hit{a.Name, a.About, a.Path})
		}
	}
	all := []hits{pages}
	for _, kind := range []struct {
		name, scope, path, page, title, about string
	}{
		{"Users", "users:read", "/api/v1/users", usersPage, "email", "name"},
		{"Groups", "groups:read", "/api/v1/groups", groupsPage, "name", "description"},
		{"Applications", "applications:read", "/api/v1/applications", applicationsPage, "name", "client_id"},
	} {
		if !v.may(kind.scope) {
			continue
		}
		a, err := v.read(http.MethodGet, query(kind.path, "q", text, "limit", "10"), nil)
		if e, ok := refused(err); ok {
			return v.again("search.html", title, data, faultOf(e, "q", "search"))
		}
		if err != nil {
			return err
		}
		found := hits{Name: kind.name}
		list, _ := a.Data.([]any)
		for _, item := range list {
			o, _ := item.(object)
			id, _ := o["id"].(string)
			name, _ := o[kind.title].(string)
			about, _ := o[kind.about].(string)
			found.List = append(found.List, hit{name, displayName(about), kind.page + "/" + url.PathEscape(id)})
		}
		if a.Meta.NextCursor != "" {
			found.More = query(kind.page, "q", text)
		}
		all = append(all, found)
	}
	found, err := v.searchNamed(text)
	if err != nil {
		return err
	}
	all = append(all, found...)
	if v.may("resources:read") {
		found, err := v.searchResources(text)
		if err != nil {
			return err
		}
		all = append(all, found)
	}
	all = slices.DeleteFunc(all, func(h hits) bool { return len(h.List) == 0 })
	data["Found"], data["Text"] = all, text
	return v.show("search.html", title, data)
}

// searchResources finds the resource type:id or, without a type, those of all types with the id. A
// resource is found if it has relations.
func (v *visit) searchResources(text string) (found hits, err error) {
	found.Name = "Resources"
	var refs []notation.Ref
	if ref, ok := notation.ParseRef(text); ok {
		refs = append(refs, ref)
	} else {
		a, err := v.call(http.MethodGet, "/api/v1/resource-types?limit=25", nil)
		if err != nil {
			return found, err
		}
		types, _ := a.Data.([]any)
		for _, item := range types[:min(len(types), maxTypes)] {
			o, _ := item.(object)
			name, _ := o["name"].(string)
			refs = append(refs, notation.Ref{Type: name, ExternalID: text})
		}
	}
	for _, ref := range refs {
		filter := []string{"resource_type", ref.Type, "external_id", ref.ExternalID}
		a, err := v.call(http.MethodGet, query("/api/v1/relations", append(filter, "limit", "1")...), nil)
		if _, none := refused(err); none {
			continue // the type does not exist, or the id is too long for one
		}
		if err != nil {
			return found, err
		}
		if list, _ := a.Data.([]any); len(list) > 0 && len(found.List) < maxHits {
			found.List = append(found.List, hit{ref.String(), "", query(relationsPage, filter...)})
		}
	}
	return found, nil
}

// hasWords reports whether a text has all words of another, in any case.
func hasWords(text, words string) bool {
	text = strings.ToLower(text)
	for word := range strings.FieldsSeq(strings.ToLower(words)) {
		if !strings.Contains(text, word) {
			return false
		}
	}
	return true
}
