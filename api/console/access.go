package console

import (
	"encoding/json"
	"errors"
	"net/http"
	"reflect"
	"strings"
	"time"

	"stonetown/api/inprocess"
	"stonetown/internal/notation"
	"stonetown/internal/proofgraph"
)

const (
	accessPage    = "/console/access"
	subjectsPage  = accessPage + "/subjects"
	resourcesPage = accessPage + "/resources"
)

// The size of a picture: how far and how many relations an expansion reads.
const (
	depth     = 10
	relations = 500
)

// The messages about texts that are not valid.
const (
	notRef     = "A resource is type:id, such as document:q3."
	notSubject = "A subject is type:id or type:id#relation, such as user:ann or group:staff#member."
)

// typed returns the fields of a question as they were typed.
func (v *visit) typed() object {
	data := object{}
	for _, name := range []string{"subject", "action", "resource", "type", "subject_type", "at", "context"} {
		data[name] = strings.TrimSpace(v.form(name))
	}
	return data
}

// question reads some fields of a question into the body of an operation.
func (v *visit) question(fields ...string) (object, *fault) {
	body := object{}
	for _, name := range append(fields, "at", "context") {
		text := strings.TrimSpace(v.form(name))
		switch name {
		case "subject":
			s, ok := notation.ParseSubject(text)
			if !ok {
				return nil, invalid(name, notSubject)
			}
			body[name] = s
		case "resource":
			r, ok := notation.ParseRef(text)
			if !ok {
				return nil, invalid(name, notRef)
			}
			body[name] = r
		case "context":
			values, f := v.valuesOf("context")
			if f != nil {
				return nil, f
			}
			if values != nil {
				body[name] = values
			}
		case "at":
			if text != "" {
				body[name] = text
			}
		default:
			if text == "" {
				return nil, invalid(name, "Enter "+map[string]string{"action": "an action", "type": "a type of resources", "subject_type": "a type of subjects"}[name]+".")
			}
			body[name] = text
		}
	}
	return body, nil
}

// valuesOf returns the values for conditions of a field; nil: there are none.
func (v *visit) valuesOf(field string) (values object, f *fault) {
	text := strings.TrimSpace(v.form(field))
	if text == "" {
		return nil, nil
	}
	decoder := json.NewDecoder(strings.NewReader(text))
	decoder.UseNumber() // numbers are sent as they were typed
	if !notation.DecodeAll(decoder, &values) || values == nil {
		return nil, invalid(field, `Values for conditions are a JSON object, such as {"ip": "192.0.2.7"}.`)
	}
	return values, nil
}

// fields are the fields of a question that errors are about, by their codes.
var fields = map[string]string{
	"subject_invalid": "subject", "relation_undefined": "action", "resource_type_not_found": "resource", "resource_not_found": "resource",
	"history_expired": "at", "condition_context_missing": "context", "condition_failed": "context",
}

// refused returns the error of an operation that another form could avoid.
func refused(err error) (*inprocess.Error, bool) {
	e, ok := errors.AsType[*inprocess.Error](err)
	return e, ok && e.Status < http.StatusInternalServerError && e.Status != http.StatusUnauthorized && e.Status != http.StatusForbidden
}

// refusal returns the error of a question; nil if the question is not to blame.
func (v *visit) refusal(err error) *fault {
	e, ok := refused(err)
	if !ok {
		return nil
	}
	f := faultOf(e, "subject_type", "subject_type", "subject", "subject", "resource", "resource", "action", "action", "type", "type", "at", "at", "context", "context")
	if f.field == "" {
		f.field = fields[e.Code]
	}
	if f.field == "subject" && v.form("subject_type") != "" {
		f.field = "subject_type" // the form has no other subject
	}
	return f
}

// with returns a copy of a body with more members. Those that are nil are left out.
func with(body object, pairs ...any) object {
	all := object{}
	for name, value := range body {
		all[name] = value
	}
	for i := 0; i+1 < len(pairs); i += 2 {
		if all[pairs[i].(string)] = pairs[i+1]; pairs[i+1] == nil {
			delete(all, pairs[i].(string))
		}
	}
	return all
}

// decision is the answer to a check.
type decision = proofgraph.Decision

// decode reads the data of an answer into a struct.
func decode(data, into any) error {
	text, err := json.Marshal(data)
	if err != nil {
		return err
	}
	return json.Unmarshal(text, into)
}

// decide asks a check, with the explanation. It returns the time that names the state of the answer,
// by which the same question has the same answer.
func (v *visit) decide(body object) (d decision, at string, err error) {
	body = with(body, "debug", true)
	if body["at"] != nil {
		d, _, err = v.check(body)
		return d, body["at"].(string), err
	}
	now := time.Now()
	current, token, err := v.check(body)
	if err != nil {
		return d, "", err
	}
	// A token stands for the time of its write. Relations may have expired since.
	body = with(body, "at", token)
	if d, _, err = v.check(body); err != nil || !reflect.DeepEqual(d, current) {
		body = with(body, "at", now.UTC().Format(time.RFC3339Nano))
		d, _, err = v.check(body)
	}
	return d, body["at"].(string), err
}

// check asks a check. The page prints the last one.
func (v *visit) check(body object) (d decision, token string, err error) {
	v.calls = nil
	a, err := v.read(http.MethodPost, "/api/v1/resources/check", body)
	if err == nil {
		err = decode(a.Data, &d)
	}
	return d, a.Meta.ConsistencyToken, err
}

// ask answers whether a subject may do something to a resource, and explains the answer.
func ask(v *visit) error {
	const title = "Access"
	data := v.typed()
	if data["subject"] == "" && data["action"] == "" && data["resource"] == "" {
		return v.show("access.html", title, data)
	}
	body, f := v.question("subject", "action", "resource")
	if f != nil {
		return v.again("access.html", title, data, f)
	}
	d, at, err := v.decide(body)
	if f := v.refusal(err); f != nil {
		return v.again("access.html", title, data, f)
	}
	if err != nil {
		return err
	}
	data["Decision"], data["Revision"] = d, at
	data["Link"] = query(accessPage, "subject", v.form("subject"), "action", v.form("action"), "resource", v.form("resource"), "context", v.form("context"), "at", at)
	data["WhatIf"] = query(simulatorPage, "subject", v.form("subject"), "action", v.form("action"), "resource", v.form("resource"), "context", v.form("context"), "at", v.form("at"))
	data["Subjects"] = query(subjectsPage, "resource", v.form("resource"), "action", v.form("action"), "subject_type", body["subject"].(notation.Subject).Type, "context", v.form("context"), "at", at)
	data["Resources"] = query(resourcesPage, "subject", v.form("subject"), "action", v.form("action"), "type", body["resource"].(notation.Ref).Type, "context", v.form("context"), "at", at)
	expansion := object{"resource": body["resource"], "action": body["action"], "at": at, "depth": depth, "limit": relations}
	if v.form("all") != "" {
		delete(expansion, "limit")
	}
	a, err := v.read(http.MethodPost, "/api/v1/resources/expand", expansion)
	if e, ok := errors.AsType[*inprocess.Error](err); ok && e.Status < http.StatusInternalServerError {
		data["Missing"] = faultOf(e).text // the decision is an answer all the same
		return v.show("access.html", title, data)
	}
	if err != nil {
		return err
	}
	var root proofgraph.Node
	if err := decode(a.Data, &root); err != nil {
		return err
	}
	p := proofgraph.New(&root, body["subject"].(notation.Subject), d.Reasons, proofgraph.DrawnBounds)
	data["Tree"], data["Graph"] = p.Tree, p.LayOut()
	if data["Explorer"], err = proofgraph.Explore(&root, body["subject"].(notation.Subject), d); err != nil {
		return err
	}
	if expansion["limit"] != nil && root.IsCut() {
		data["All"] = data["Link"].(string) + "&all=yes"
	}
	v.island = "explorer"
	return v.show("access.html", title, data)
}

// listSubjects lists the subjects of a type that may do something to a resource.
func listSubjects(v *visit) error {
	return v.list("subjects.html", "Who may?", subjectsPage, "/api/v1/resources/list-subjects", "resource", "action", "subject_type")
}

// listResources lists the resources of a type to which a subject may do something.
func listResources(v *visit) error {
	return v.list("resources.html", "What may be done?", resourcesPage, "/api/v1/resources/list-resources", "subject", "action", "type")
}

// list shows the answer to a question that is a list.
func (v *visit) list(name, title, page, path string, asked ...string) error {
	data := v.typed()
	body, f := v.question(asked...)
	if f != nil {
		empty := true
		for _, field := range asked {
			empty = empty && data[field] == ""
		}
		if empty {
			return v.show(name, title, data)
		}
		return v.again(name, title, data, f)
	}
	var cursor any
	if v.form("cursor") != "" {
		cursor = v.form("cursor")
	}
	a, err := v.read(http.MethodPost, path, with(body, "cursor", cursor))
	if f := v.refusal(err); f != nil {
		return v.again(name, title, data, f)
	}
	if err != nil {
		return err
	}
	var items []struct {
		notation.Subject
		ExternalID string `json:"external_id"`
		Excluded   bool   `json:"excluded"`
	}
	if err := decode(a.Data, &items); err != nil {
		return err
	}
	type item struct {
		Name     string
		Ask      string
		Excluded bool
	}
	list := []item{}
	for _, i := range items {
		if i.ExternalID != "" {
			r := notation.Ref{Type: i.Type, ExternalID: i.ExternalID}
			list = append(list, item{r.String(), query(accessPage, "subject", v.form("subject"), "action", v.form("action"), "resource", r.String(), "context", v.form("context"), "at", v.form("at")), false})
		} else {
			list = append(list, item{i.Subject.String(), query(accessPage, "subject", i.Text(), "action", v.form("action"), "resource", v.form("resource"), "context", v.form("context"), "at", v.form("at")), i.Excluded})
		}
	}
	data["Items"], data["Revision"] = list, a.Meta.ConsistencyToken
	filter := []string{}
	for _, field := range append(asked, "at", "context") {
		filter = append(filter, field, v.form(field))
	}
	v.paged(data, a.Meta, page, filter...)
	return v.show(name, title, data)
}
