package console

import (
	"encoding/json"
	"errors"
	"net/http"
	"net/url"
	"slices"

	"stonetown/api/inprocess"
)

const connectionsPage = "/console/connections"

func connections(v *visit) error {
	const title = "Connections"
	kind, state := v.form("kind"), v.form("state")
	kinds := []string{}
	for _, k := range connectionKinds {
		kinds = append(kinds, k.Value)
	}
	data := object{"Kind": kind, "Kinds": kinds, "State": state, "States": []string{"enabled", "disabled"}, "Write": v.may("federation:write")}
	a, err := v.read(http.MethodGet, query("/api/v1/federation/connections", "kind", kind, "state", state, "cursor", v.form("cursor")), nil)
	v.paged(data, a.Meta, connectionsPage, "kind", kind, "state", state)
	if e, ok := errors.AsType[*inprocess.Error](err); ok && e.Status == http.StatusBadRequest {
		return v.again("connections.html", title, data, faultOf(e, "kind", "kind", "state", "state"))
	}
	if err != nil {
		return err
	}
	data["Connections"] = a.Data
	return v.show("connections.html", title, data)
}

// connectionPath returns the path of the operations on the connection of a page.
func (v *visit) connectionPath() string {
	return "/api/v1/federation/connections/" + url.PathEscape(v.variable("connection_id"))
}

// connectionPage returns the path of the page of the connection.
func (v *visit) connectionPage() string {
	return connectionsPage + "/" + url.PathEscape(v.variable("connection_id"))
}

func connection(v *visit) error {
	c, err := v.one(v.connectionPath())
	if err != nil {
		return err
	}
	return v.show("connection.html", titleOf("", c), object{"Connection": c, "Write": v.may("federation:write")})
}

// connectionErrors are the fields that errors are about, by their codes.
func connectionErrors(kind string) map[string]string {
	codes := map[string]string{
		"slug_invalid": "slug", "slug_unavailable": "slug", "domain_unavailable": "domains", "attribute_mapping_invalid": "attribute_mapping",
		"metadata_fetch_failed": "issuer", "permission_denied": "link_policy",
	}
	if kind == "saml" {
		codes["metadata_fetch_failed"] = "idp_metadata_url"
	}
	return codes
}

const newConnectionTitle = "New connection"

// newConnection is the form of the kind that the query names; without one, nil.
func (v *visit) newConnection() (f *form, kind string) {
	kind = v.form("kind")
	if !slices.ContainsFunc(connectionKinds, func(k choice) bool { return k.Value == kind }) {
		return nil, ""
	}
	page := connectionsPage + "/new"
	return &form{Sections: sectionsOf(newConnectionFields, kind), Action: query(page, "kind", kind), Button: "Create", Cancel: page}, kind
}

func newConnectionForm(v *visit) error {
	if err := v.require("federation:write"); err != nil {
		return err
	}
	f, kind := v.newConnection()
	if f == nil {
		return v.show("choose.html", newConnectionTitle, object{"Text": "Choose the provider.", "Choices": connectionKinds, "Page": connectionsPage + "/new?kind=", "Cancel": connectionsPage})
	}
	f.show(newConnectionDefaults)
	v.calls = append(v.calls, call{http.MethodPost, "/api/v1/federation/connections", object{"kind": kind, "slug": "staff", "name": "Name"}})
	return v.show("form.html", newConnectionTitle, object{"Form": f})
}

func createConnection(v *visit) error {
	if err := v.require("federation:write"); err != nil {
		return err
	}
	f, kind := v.newConnection()
	if f == nil {
		v.redirect(connectionsPage + "/new")
		return nil
	}
	body, wrong := v.body(f, newConnectionFlags)
	if wrong != nil {
		return v.again("form.html", newConnectionTitle, object{"Form": f}, wrong)
	}
	body["kind"] = kind
	a, err := v.once(http.MethodPost, "/api/v1/federation/connections", body)
	if wrong := f.refused(err, connectionErrors(kind)); wrong != nil {
		return v.again("form.html", newConnectionTitle, object{"Form": f}, wrong)
	}
	if err != nil {
		return err
	}
	c, _ := a.Data.(object)
	id, _ := c["id"].(string)
	v.redirect(connectionsPage + "/" + id + "?done=connection-created")
	return nil
}

// connectionForm returns the form for the connection of the page.
func (v *visit) connectionForm() (f *form, c object, kind string, err error) {
	c, err = v.one(v.connectionPath())
	kind, _ = c["kind"].(string)
	return &form{Sections: sectionsOf(connectionFields, kind), Action: v.connectionPage() + "/edit", Button: "Save", Cancel: v.connectionPage()}, c, kind, err
}

func editConnectionForm(v *visit) error {
	if err := v.require("federation:write"); err != nil {
		return err
	}
	f, c, _, err := v.connectionForm()
	if err != nil {
		return err
	}
	f.show(c)
	v.calls = append(v.calls, call{http.MethodPatch, v.connectionPath(), object{"name": c["name"]}})
	return v.show("form.html", titleOf("Edit ", c), object{"Form": f})
}

func editConnection(v *visit) error {
	if err := v.require("federation:write"); err != nil {
		return err
	}
	f, c, kind, err := v.connectionForm()
	if err != nil {
		return err
	}
	return v.change(f, titleOf("Edit ", c), v.connectionPath(), c, connectionErrors(kind), v.connectionPage())
}

// confirmConnection asks for a confirmation of an action on the connection of the page.
func (v *visit) confirmConnection(verb, method, operation, text string) error {
	if err := v.require("federation:write"); err != nil {
		return err
	}
	a, err := v.call(http.MethodGet, v.connectionPath(), nil)
	if err != nil {
		return err
	}
	c, _ := a.Data.(object)
	v.calls = append(v.calls, call{method, v.connectionPath() + operation, nil})
	return v.show("confirm.html", titleOf(verb+" ", c)+"?", object{
		"Text": text, "Button": verb, "Action": v.r.URL.EscapedPath(), "Cancel": v.connectionPage(), "Fields": object{},
	})
}

func disableConnectionForm(v *visit) error {
	return v.confirmConnection("Disable", http.MethodPost, "/disable", "Users cannot sign in with it until it is enabled again. Their sessions go on.")
}

func disableConnection(v *visit) error {
	return v.act(v.connectionPath()+"/disable", nil, v.connectionPage(), "connection-disabled")
}

func enableConnection(v *visit) error {
	return v.act(v.connectionPath()+"/enable", nil, v.connectionPage(), "connection-enabled")
}

func deleteConnectionForm(v *visit) error {
	return v.confirmConnection("Delete", http.MethodDelete, "", "The connection is deleted for good, with the links between accounts and users of the provider. Users who have no other way to sign in cannot sign in any more.")
}

func deleteConnection(v *visit) error {
	if _, err := v.call(http.MethodDelete, v.connectionPath(), nil); err != nil {
		return err
	}
	v.redirect(connectionsPage + "?done=connection-deleted")
	return nil
}

// beginConnectionTest begins a sign-in at the provider that only leads to a report.
func beginConnectionTest(v *visit) error {
	a, err := v.call(http.MethodPost, v.connectionPath()+"/test", nil)
	if err != nil {
		return err
	}
	begun, _ := a.Data.(object)
	id, _ := begun["test_id"].(string)
	v.calls = append(v.calls, call{http.MethodPost, v.connectionPath() + "/test", nil})
	return v.show("connection-test.html", "Test of the connection", object{"Begun": begun, "Report": v.connectionPage() + "/tests/" + url.PathEscape(id), "Page": v.connectionPage()})
}

// connectionTest shows the report of a test.
func connectionTest(v *visit) error {
	report, err := v.one(v.connectionPath() + "/test/" + url.PathEscape(v.variable("test_id")))
	if err != nil {
		return err
	}
	data := object{"Test": report, "Page": v.connectionPage(), "Write": v.may("federation:write")}
	if report["claims_received"] != nil {
		data["Claims"] = indented(report["claims_received"])
	}
	return v.show("connection-test.html", "Report of the test", data)
}

// mappingForm returns the form with the mapping of a connection, and with claims to try it on.
func (v *visit) mappingForm() (*form, object, error) {
	c, err := v.one(v.connectionPath())
	return &form{Sections: []section{{"", []field{
		{Name: "attribute_mapping", Label: "Mapping", Kind: asJSON, Hint: `Sources by target, such as {"email": "$.mail", "attributes.team": "$.team"}. Targets that are absent have the default of the kind.`},
	}}}, Action: v.connectionPage() + "/mapping"}, c, err
}

func mapping(v *visit) error {
	f, c, err := v.mappingForm()
	if err != nil {
		return err
	}
	f.show(c)
	return v.showMapping(f, c, nil, nil)
}

func (v *visit) showMapping(f *form, c, preview object, wrong *fault) error {
	claims := v.form("claims")
	data := object{"Form": f, "Claims": claims, "Preview": preview, "Write": v.may("federation:write"), "Page": v.connectionPage()}
	if wrong != nil {
		return v.again("connection-mapping.html", titleOf("Mapping of ", c), data, wrong)
	}
	return v.show("connection-mapping.html", titleOf("Mapping of ", c), data)
}

// previewMapping tries the mapping of the form on claims, and stores nothing.
func previewMapping(v *visit) error {
	f, c, err := v.mappingForm()
	if err != nil {
		return err
	}
	var wrong *fault
	if v.form("stored") != "" { // from the report of a test
		f.show(c)
	} else {
		_, wrong = v.body(f, c)
	}
	var claims object
	if wrong == nil && (json.Unmarshal([]byte(v.form("claims")), &claims) != nil || claims == nil) {
		wrong = invalid("claims", `Claims are a JSON object, such as {"sub": "17", "email": "ann@example.com"}.`)
	}
	if wrong != nil {
		return v.showMapping(f, c, nil, wrong)
	}
	body := object{"claims": claims}
	if body["attribute_mapping"], _ = f.Sections[0].Fields[0].read(f.typed["attribute_mapping"]); body["attribute_mapping"] == nil {
		body["attribute_mapping"] = object{}
	}
	a, err := v.read(http.MethodPost, v.connectionPath()+"/mapping-preview", body)
	if wrong := f.refused(err, connectionErrors("")); wrong != nil {
		return v.showMapping(f, c, nil, wrong)
	}
	if err != nil {
		return err
	}
	preview, _ := a.Data.(object)
	return v.showMapping(f, c, preview, nil)
}

// saveMapping stores the mapping of the form. The operation merges it, so that targets which the form
// lacks are set to null.
func saveMapping(v *visit) error {
	if err := v.require("federation:write"); err != nil {
		return err
	}
	f, c, err := v.mappingForm()
	if err != nil {
		return err
	}
	body, wrong := v.body(f, c)
	if to, changed := body["attribute_mapping"].(object); changed {
		was, _ := c["attribute_mapping"].(object)
		for target := range was {
			if _, kept := to[target]; !kept {
				to[target] = nil
			}
		}
	}
	if wrong == nil && len(body) > 0 {
		_, err = v.call(http.MethodPatch, v.connectionPath(), body)
		wrong = f.refused(err, connectionErrors(""))
	}
	if wrong != nil {
		return v.showMapping(f, c, nil, wrong)
	}
	if err != nil {
		return err
	}
	v.redirect(v.connectionPage() + "/mapping?done=saved")
	return nil
}
