package console

import (
	"errors"
	"net/http"
	"net/url"
	"reflect"
	"strings"

	"stonetown/api/inprocess"
	"stonetown/api/web"
	"stonetown/internal/notation"
)

const (
	registeredPage = relationsPage + "/resources"
	registeredPath = "/api/v1/resources"
)

// attributesField is the field of the attributes of a resource.
var attributesField = field{Name: "attributes", Label: "Attributes", Kind: asJSON, Hint: `A JSON object of at most 16 KiB, such as {"title": "Third quarter"}. They are stored for your services, and do not decide who has access.`}

// registered is a resource as its operation lists it, with the pages of it.
type registered struct {
	notation.Ref
	Attributes, Changed     any
	Edit, Delete, Relations string // paths
}

// listRegistered shows a page of the resources of a type.
func listRegistered(v *visit) error {
	const title = "Resources"
	typ := strings.TrimSpace(v.form("type"))
	data := object{"Type": typ, "Write": v.may("resources:write"), "Page": registeredPage}
	if typ == "" {
		if err := v.require("resources:read"); err != nil {
			return err
		}
		return v.show("registered.html", title, data)
	}
	a, err := v.read(http.MethodGet, query(registeredPath, "type", typ, "cursor", v.form("cursor")), nil)
	v.paged(data, a.Meta, registeredPage, "type", typ)
	if e, ok := refused(err); ok {
		wrong := faultOf(e)
		wrong.field = "type" // the only one
		return v.again("registered.html", title, data, wrong)
	}
	if err != nil {
		return err
	}
	var all []registered
	list, _ := a.Data.([]any)
	for _, item := range list {
		o, _ := item.(object)
		id, _ := o["external_id"].(string)
		name, _ := o["type"].(string)
		r := registered{Ref: notation.Ref{Type: name, ExternalID: id}, Changed: o["updated_at"]}
		if attributes, _ := o["attributes"].(object); len(attributes) > 0 {
			r.Attributes = attributes
		}
		r.Edit, r.Delete = query(registeredPage+"/edit", "resource", r.String()), query(registeredPage+"/delete", "resource", r.String())
		r.Relations = record{Resource: r.Ref}.found("")
		all = append(all, r)
	}
	data["Asked"], data["Resources"] = true, all
	return v.show("registered.html", title, data)
}

const newRegisteredTitle = "Register a resource"

func newRegistered() *form {
	return &form{Sections: []section{{"", []field{
		{Name: "type", Label: "Type", Kind: asText, Required: true, Hint: "A type of the model, such as document."},
		{Name: "external_id", Label: "Id", Kind: asText, Required: true, Hint: "That of the resource in your service, at most 512 bytes."},
		attributesField,
	}}}, Action: registeredPage + "/new", Button: "Register", Cancel: registeredPage}
}

func newRegisteredForm(v *visit) error {
	if err := v.require("resources:write"); err != nil {
		return err
	}
	f := newRegistered()
	f.show(object{"type": v.form("type")})
	v.calls = append(v.calls, call{http.MethodPost, registeredPath, object{"type": "document", "external_id": "q3", "attributes": object{"title": "Third quarter"}}})
	return v.show("form.html", newRegisteredTitle, object{"Form": f, "Text": "The first relation of a resource registers it, too."})
}

// register registers a resource. The operation would replace the attributes of one that exists.
func register(v *visit) error {
	if err := v.require("resources:write"); err != nil {
		return err
	}
	f := newRegistered()
	body, wrong := v.body(f, object{})
	if wrong == nil {
		ref := notation.Ref{Type: body["type"].(string), ExternalID: body["external_id"].(string)}
		a, err := v.call(http.MethodGet, pathOf(ref), nil)
		if _, none := refused(err); err != nil && !none {
			return err
		}
		if now, _ := a.Data.(object); now != nil && !reflect.DeepEqual(now["attributes"], body["attributes"]) {
			wrong = &fault{http.StatusConflict, "This resource exists with other attributes. Find it in the list to edit it.", "external_id"}
		}
	}
	if wrong == nil {
		_, err := v.once(http.MethodPost, registeredPath, body)
		if wrong = f.refused(err, map[string]string{"permission_denied": "type"}); wrong == nil && err != nil {
			e, ok := refused(err)
			if !ok || e.Code != "resource_type_not_found" {
				return err
			}
			wrong = faultOf(e)
			wrong.field = "type"
		}
	}
	if wrong != nil {
		return v.again("form.html", newRegisteredTitle, object{"Form": f}, wrong)
	}
	v.redirect(query(registeredPage, "type", v.form("type"), "done", "registered"))
	return nil
}

// pathOf returns the path of the operations on a resource.
func pathOf(r notation.Ref) string {
	return registeredPath + "/" + url.PathEscape(r.Type) + "/" + url.PathEscape(r.ExternalID)
}

// registeredForm returns the form for the resource of the page.
func (v *visit) registeredForm() (f *form, r object, ref notation.Ref, err error) {
	if err := v.require("resources:write"); err != nil {
		return nil, nil, ref, err
	}
	ref, err = v.registeredRef()
	if err == nil {
		r, err = v.one(pathOf(ref))
	}
	return &form{
		Sections: []section{{"", []field{attributesField}}}, Action: query(registeredPage+"/edit", "resource", ref.String()), Button: "Save",
		Cancel: query(registeredPage, "type", ref.Type),
	}, r, ref, err
}

// registeredRef returns the resource that the page is about.
func (v *visit) registeredRef() (notation.Ref, error) {
	ref, ok := notation.ParseRef(strings.TrimSpace(v.form("resource")))
	if !ok {
		return ref, &web.Error{Status: http.StatusBadRequest, Message: notRef}
	}
	return ref, nil
}

func editRegisteredForm(v *visit) error {
	f, r, ref, err := v.registeredForm()
	if err != nil {
		return err
	}
	f.show(r)
	v.calls = append(v.calls, call{http.MethodPatch, pathOf(ref), object{"attributes": r["attributes"]}})
	return v.show("form.html", "Edit "+ref.String(), object{"Form": f})
}

func editRegistered(v *visit) error {
	f, r, ref, err := v.registeredForm()
	if err != nil {
		return err
	}
	body, wrong := v.body(f, r)
	if wrong == nil && len(body) > 0 {
		_, err = v.call(http.MethodPatch, pathOf(ref), body)
		wrong = f.refused(err, map[string]string{"permission_denied": "attributes"})
	}
	if wrong != nil {
		return v.again("form.html", "Edit "+ref.String(), object{"Form": f}, wrong)
	}
	if err != nil {
		return err
	}
	v.redirect(query(registeredPage, "type", ref.Type, "done", "saved"))
	return nil
}

// deleteRegisteredForm asks for a confirmation.
func deleteRegisteredForm(v *visit) error {
	if err := v.require("resources:write"); err != nil {
		return err
	}
	ref, err := v.registeredRef()
	if err != nil {
		return err
	}
	if _, err := v.call(http.MethodGet, pathOf(ref), nil); err != nil {
		return err
	}
	return v.deleteRegisteredWith(ref, nil)
}

func (v *visit) deleteRegisteredWith(ref notation.Ref, wrong *fault) error {
	v.calls = append(v.calls, call{http.MethodDelete, pathOf(ref), nil})
	return v.confirm("Delete "+ref.String()+"?", object{
		"Text":   "All relations that name the resource are deleted with it: access to it, and access to other resources through it, ends at once. This cannot be undone.",
		"Button": "Delete", "Action": registeredPage + "/delete", "Cancel": query(registeredPage, "type", ref.Type), "Fields": object{"resource": ref.String()},
	}, wrong)
}

func deleteRegistered(v *visit) error {
	ref, err := v.registeredRef()
	if err != nil {
		return err
	}
	_, err = v.once(http.MethodDelete, pathOf(ref), nil)
	if e, ok := errors.AsType[*inprocess.Error](err); ok && e.Code == "permission_denied" {
		return v.deleteRegisteredWith(ref, faultOf(e))
	}
	if err != nil {
		return err
	}
	v.redirect(query(registeredPage, "type", ref.Type, "done", "unregistered"))
	return nil
}
