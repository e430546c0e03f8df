package console

import (
	"errors"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"

	"stonetown/api/inprocess"
	"stonetown/api/web"
	"stonetown/internal/notation"
	"stonetown/internal/proofgraph"
)

const (
	relationsPage = "/console/relations"
	addPage       = relationsPage + "/add"
	removePage    = relationsPage + "/remove"
)

// filter are the parameters by which relations are found.
var filter = []string{"resource_type", "external_id", "relation", "subject_type", "subject_id", "subject_relation"}

// record is a relation as the operation lists it.
type record struct {
	Resource  notation.Ref          `json:"resource"`
	Relation  string                `json:"relation"`
	Subject   notation.Subject      `json:"subject"`
	CreatedAt string                `json:"created_at"`
	CreatedBy string                `json:"created_by"`
	ExpiresAt string                `json:"expires_at"`
	Condition *proofgraph.Condition `json:"condition"`
}

// Terms describes the expiry and the condition.
func (r record) Terms() string { return proofgraph.Terms(r.ExpiresAt, r.Condition) }

// Remove returns the path of the page that removes the relation.
func (r record) Remove() string {
	return query(removePage, "resource", r.Resource.String(), "relation", r.Relation, "subject", r.Subject.Text())
}

// Ask returns the path of the page that explains the relation.
func (r record) Ask() string {
	return query(accessPage, "subject", r.Subject.Text(), "action", r.Relation, "resource", r.Resource.String())
}

// findRelations lists the relations that a filter selects.
func findRelations(v *visit) error {
	const title = "Relations"
	data := object{"Write": v.may("resources:write")}
	var pairs []string
	for _, name := range filter {
		value := v.form(name)
		data[name] = value
		pairs = append(pairs, name, value)
	}
	if query("", pairs...) == "" {
		return v.show("relations.html", title, data)
	}
	a, err := v.read(http.MethodGet, query("/api/v1/relations", append(pairs, "cursor", v.form("cursor"))...), nil)
	v.paged(data, a.Meta, relationsPage, pairs...)
	if e, ok := errors.AsType[*inprocess.Error](err); ok && (e.Status == http.StatusBadRequest || e.Status == http.StatusNotFound) {
		f := faultOf(e, "resource_type", "resource_type", "external_id", "external_id", "relation", "relation", "subject_type", "subject_type", "subject_id", "subject_id", "subject_relation", "subject_relation")
		if f.field == "" {
			f.field = map[string]string{"relation_undefined": "relation", "resource_type_not_found": "resource_type", "subject_invalid": "subject_type"}[e.Code]
		}
		return v.again("relations.html", title, data, f)
	}
	if err != nil {
		return err
	}
	var list []record
	if err := decode(a.Data, &list); err != nil {
		return err
	}
	data["Relations"], data["Asked"] = list, true
	return v.show("relations.html", title, data)
}

// relation reads a relation from the form.
func (v *visit) relation() (r record, f *fault) {
	var ok bool
	if r.Resource, ok = notation.ParseRef(strings.TrimSpace(v.form("resource"))); !ok {
		return r, invalid("resource", notRef)
	}
	if r.Relation = strings.TrimSpace(v.form("relation")); r.Relation == "" {
		return r, invalid("relation", "Enter a relation.")
	}
	if r.Subject, ok = notation.ParseSubject(strings.TrimSpace(v.form("subject"))); !ok {
		return r, invalid("subject", notSubject)
	}
	return r, nil
}

// wire returns the relation in the form of the operations.
func (r record) wire() object {
	return object{"resource": r.Resource, "relation": r.Relation, "subject": r.Subject}
}

const addTitle = "Add a relation"

// relationFields returns the fields of the form of a relation as they were typed.
func (v *visit) relationFields() object {
	return object{"resource": v.form("resource"), "relation": v.form("relation"), "subject": v.form("subject"), "expires_at": v.form("expires_at"), "context": v.form("context")}
}

func addForm(v *visit) error {
	if err := v.require("resources:write"); err != nil {
		return err
	}
	return v.show("relation-add.html", addTitle, v.relationFields())
}

func add(v *visit) error {
	r, f := v.relation()
	if f != nil {
		return v.again("relation-add.html", addTitle, v.relationFields(), f)
	}
	operation := with(r.wire(), "op", "create")
	if at := strings.TrimSpace(v.form("expires_at")); at != "" {
		operation["expires_at"] = at
	}
	_, err := v.call(http.MethodPost, "/api/v1/resources/relations/bulk", object{"operations": []object{operation}})
	if f := refusedRelation(err); f != nil {
		return v.again("relation-add.html", addTitle, v.relationFields(), f)
	}
	if err != nil {
		return err
	}
	v.redirect(r.found("added"))
	return nil
}

// found returns the path of the list with the relations of the same resource.
func (r record) found(done string) string {
	return query(relationsPage, "resource_type", r.Resource.Type, "external_id", r.Resource.ExternalID, "done", done)
}

// refusedRelation returns the error of a relation; nil if it is not to blame.
func refusedRelation(err error) *fault {
	e, ok := errors.AsType[*inprocess.Error](err)
	if !ok || e.Status >= http.StatusInternalServerError || e.Status == http.StatusUnauthorized || e.Code == "insufficient_scope" {
		return nil
	}
	f := faultOf(e, "operations/0/resource", "resource", "operations/0/relation", "relation", "operations/0/subject", "subject", "operations/0/expires_at", "expires_at")
	if f.field == "" {
		f.field = map[string]string{"relation_undefined": "relation", "resource_type_not_found": "resource", "subject_invalid": "subject", "relation_single_valued": "resource"}[e.Code]
	}
	return f
}

const removeTitle = "Remove this relation?"

// removeForm asks for a confirmation, and names the subjects whose access the removal changes.
func removeForm(v *visit) error {
	if err := v.require("resources:write"); err != nil {
		return err
	}
	return v.removeWith(nil)
}

func (v *visit) removeWith(f *fault) error {
	data := v.relationFields()
	r, malformed := v.relation()
	if malformed != nil {
		return v.again("relation-remove.html", removeTitle, data, malformed)
	}
	data["Relation"], data["Cancel"] = r, r.found("")
	data["action"], data["subject_type"] = v.form("action"), v.form("subject_type")
	if data["action"] == "" {
		data["action"] = r.Relation
	}
	if data["subject_type"] == "" {
		data["subject_type"] = "user"
	}
	if f != nil {
		return v.again("relation-remove.html", removeTitle, data, f)
	}
	values, malformed := v.valuesOf("context")
	if malformed != nil {
		return v.again("relation-remove.html", removeTitle, data, malformed)
	}
	question := object{"resource": r.Resource, "action": data["action"], "subject_type": data["subject_type"]}
	if values != nil {
		question["context"] = values
	}
	lost, gained, all, err := v.changes(r, question)
	if f := v.refusal(err); f != nil {
		return v.again("relation-remove.html", removeTitle, data, f)
	}
	if err != nil {
		return err
	}
	data["Lost"], data["Gained"], data["All"], data["Asked"] = lost, gained, all, true
	return v.show("relation-remove.html", removeTitle, data)
}

// changes returns the subjects that lose an action, and those that get it, if a relation is removed.
// all is false if there are more subjects than were compared.
func (v *visit) changes(r record, question object) (lost, gained []string, all bool, err error) {
	now := func(question object) ([]allowedSubject, bool, error) {
		a, err := v.read(http.MethodPost, "/api/v1/resources/list-subjects", question)
		if err != nil {
			return nil, false, err
		}
		var list []allowedSubject
		return list, a.Meta.NextCursor == "", decode(a.Data, &list)
	}
	then := func(question object) ([]allowedSubject, bool, error) {
		a, err := v.read(http.MethodPost, "/api/v1/resources/simulate", object{"assume": object{"relations": object{"remove": []object{r.wire()}}}, "list_subjects": question})
		if err != nil {
			return nil, false, err
		}
		var answer struct {
			List []allowedSubject `json:"list_subjects"`
		}
		return answer.List, a.Meta.NextCursor == "", decode(a.Data, &answer)
	}
	// The lists have the wildcard and exceptions from it. To compare them, each subject in one is
	// looked up in both.
	all = true
	ids := map[string]bool{}
	for _, list := range []func(object) ([]allowedSubject, bool, error){now, then} {
		found, complete, err := list(with(question, "limit", web.MaxLimit))
		if err != nil {
			return nil, nil, false, err
		}
		all = all && complete
		for _, s := range found {
			ids[s.ID] = true
		}
	}
	if len(ids) == 0 {
		return nil, nil, all, nil
	}
	had, has := map[string]bool{}, map[string]bool{}
	for some := range slices.Chunk(slices.Sorted(maps.Keys(ids)), web.MaxLimit) {
		asked := with(question, "limit", web.MaxLimit, "ids", some)
		before, _, err := now(asked)
		if err != nil {
			return nil, nil, false, err
		}
		after, _, err := then(asked)
		if err != nil {
			return nil, nil, false, err
		}
		for _, s := range before {
			had[s.ID] = !s.Excluded
		}
		for _, s := range after {
			has[s.ID] = !s.Excluded
		}
	}
	for _, id := range slices.Sorted(maps.Keys(ids)) {
		name := fmt.Sprintf("%s:%s", question["subject_type"], id)
		if id == "*" {
			name = fmt.Sprintf("every %s, except those named otherwise", question["subject_type"])
		}
		switch {
		case had[id] && !has[id]:
			lost = append(lost, name)
		case !had[id] && has[id]:
			gained = append(gained, name)
		}
	}
	return lost, gained, all, nil
}

// allowedSubject is a subject in a list of those who may do something.
type allowedSubject struct {
	notation.Subject
	Excluded bool `json:"excluded"` // not allowed, although the wildcard is
}

func remove(v *visit) error {
	r, f := v.relation()
	if f != nil {
		return v.removeWith(f)
	}
	_, err := v.call(http.MethodPost, "/api/v1/resources/relations/bulk", object{"operations": []object{with(r.wire(), "op", "delete")}})
	if f := refusedRelation(err); f != nil {
		return v.removeWith(f)
	}
	if err != nil {
		return err
	}
	v.redirect(r.found("removed"))
	return nil
}
