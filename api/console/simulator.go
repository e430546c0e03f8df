package console

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strings"

	"stonetown/internal/notation"
)

const simulatorPage = "/console/simulator"

// simulator compares the answer to a question with the answer under an assumption.
func simulator(v *visit) error {
	const title = "Simulator"
	data := v.typed()
	var link []string
	for _, name := range []string{"subject", "action", "resource", "context", "remove", "add", "instant", "then"} {
		data[name] = v.form(name)
		link = append(link, name, v.form(name))
	}
	if query("", link...) == "" {
		return v.show("simulator.html", title, data)
	}
	again := func(f *fault) error { return v.again("simulator.html", title, data, f) }
	question, f := v.question("subject", "action", "resource")
	if f != nil {
		return again(f)
	}
	assume, f := v.assumption()
	if f != nil {
		return again(f)
	}
	before, at, err := v.decide(question)
	if f := v.refusal(err); f != nil {
		data["Unanswered"], v.calls = f.text, nil // the assumption may give an answer
	} else if err != nil {
		return err
	} else {
		question["at"], data["Before"] = at, before
	}
	then, f := v.valuesOf("then")
	if f != nil {
		return again(f)
	}
	if then != nil {
		question["context"] = then
	}
	a, err := v.read(http.MethodPost, "/api/v1/resources/simulate", object{"assume": assume, "check": with(question, "debug", true)})
	if f := v.refusedAssumption(err); f != nil {
		return again(f)
	}
	if err != nil {
		return err
	}
	var answer struct {
		Check decision `json:"check"`
	}
	if err := decode(a.Data, &answer); err != nil {
		return err
	}
	if question["at"] == nil {
		question["at"] = a.Meta.ConsistencyToken
	}
	data["After"], data["Link"] = answer.Check, query(simulatorPage, append(link, "at", question["at"].(string))...)
	return v.show("simulator.html", title, data)
}

// assumption reads what is assumed.
func (v *visit) assumption() (assume object, f *fault) {
	relations := object{}
	for _, field := range []string{"remove", "add"} {
		var list []any
		for line := range lines(v.form(field)) {
			one, ok := tuple(line)
			if !ok {
				return nil, invalid(field, fmt.Sprintf("%q is not a relation. A relation is resource#relation@subject, such as document:q3#viewer@user:ann.", line))
			}
			list = append(list, one)
		}
		if list != nil {
			relations[field] = list
		}
	}
	assume = object{}
	if len(relations) > 0 {
		assume["relations"] = relations
	}
	if instant := strings.TrimSpace(v.form("instant")); instant != "" {
		assume["instant"] = instant
	}
	return assume, nil
}

// tuple reads resource#relation@subject, or a relation in the form of the API.
func tuple(text string) (any, bool) {
	if strings.HasPrefix(text, "{") {
		var one object
		decoder := json.NewDecoder(strings.NewReader(text))
		decoder.UseNumber() // numbers are sent as they were typed
		return one, notation.DecodeAll(decoder, &one)
	}
	resource, relation, subject, ok := notation.CutTuple(text)
	r, valid := notation.ParseRef(resource)
	s, named := notation.ParseSubject(subject)
	return record{Resource: r, Relation: relation, Subject: s}.wire(), ok && valid && named
}

// refusedAssumption returns the error of a question or of what it assumes; nil if they are not to
// blame.
func (v *visit) refusedAssumption(err error) *fault {
	f := v.refusal(err)
	e, _ := refused(err)
	switch {
	case f == nil:
	case e.Code == "relation_not_found":
		f.field = "remove"
	case e.Code == "validation_failed":
		f = faultOf(e, "assume/relations/remove", "remove", "assume/relations/add", "add", "assume/instant", "instant",
			"check/subject", "subject", "check/action", "action", "check/resource", "resource", "check/context", "then", "check/at", "at")
		f.text = strings.NewReplacer("assume/relations/", "", "assume/", "", "check/", "").Replace(f.text)
	case f.field == "context" && v.form("then") != "":
		f.field = "then"
	}
	return f
}
