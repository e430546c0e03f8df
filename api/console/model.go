package console

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"maps"
	"net/http"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/pmezard/go-difflib/difflib"

	"stonetown/api/inprocess"
	"stonetown/api/web"
	"stonetown/client"
	"stonetown/internal/definitions"
	"stonetown/internal/notation"
)

const (
	modelPage  = "/console/model"
	applyPage  = modelPage + "/apply"
	modelTitle = "Model"

	typesPath = "/api/v1/resource-types"
)

// types reads the resource types of the tenant, the oldest first.
func (v *visit) types() (all []definitions.Type, err error) {
	for cursor := ""; ; {
		a, err := v.read(http.MethodGet, query(typesPath, "limit", strconv.Itoa(web.MaxLimit), "cursor", cursor), nil)
		if err != nil {
			return nil, err
		}
		var page []definitions.Type
		if err := decode(a.Data, &page); err != nil {
			return nil, err
		}
		for _, t := range page {
			t.CreatedAt, t.UpdatedAt = "", ""
			all = append(all, t)
		}
		if cursor = a.Meta.NextCursor; cursor == "" {
			slices.Reverse(all)
			return all, nil
		}
	}
}

// modelFields returns the fields of the form as they were typed.
func (v *visit) modelFields() object {
	v.island = "model"
	data := object{"Write": v.may("resources:write"), "Kept": []string{"text", "renames", "questions", "context"}}
	for _, name := range []string{"text", "renames", "questions", "context", "revision"} {
		data[name] = v.form(name)
	}
	return data
}

// model shows the resource types of the tenant as a text to edit.
func model(v *visit) error {
	data := v.modelFields()
	if v.form("text") != "" { // typed before a sign-in
		return v.show("model.html", modelTitle, data)
	}
	// The revision comes first: a change in between is noticed when the text is compared.
	a, err := v.call(http.MethodPost, typesPath+"/plan", object{})
	if err != nil {
		return err
	}
	plan, _ := a.Data.(object)
	types, err := v.types()
	if err != nil {
		return err
	}
	data["revision"] = plan["revision"]
	if data["text"], err = definitions.Text(types); err != nil {
		return err
	}
	if data["Types"], err = graphOf(types); err != nil {
		return err
	}
	if data["Active"], err = namesOf(types); err != nil {
		return err
	}
	return v.show("model.html", modelTitle, data)
}

// namesOf returns the names of types, and of relations as type#relation, as a JSON list for the island
// of the page: stored relations can have them, so a change of one is a rename.
func namesOf(types []definitions.Type) (string, error) {
	names := []string{}
	for _, t := range types {
		names = append(names, t.Name)
		for _, r := range t.Relations {
			names = append(names, t.Name+"#"+r.Name)
		}
	}
	slices.Sort(names)
	text, err := json.Marshal(names)
	return string(text), err
}

// graphOf returns types as the island of the page draws them: in the form of the API.
func graphOf(types []definitions.Type) (string, error) {
	text, err := json.Marshal(types)
	return string(text), err
}

// typesChange is a change of the model, as the operations take it and as the page shows it.
type typesChange struct {
	active    map[string]definitions.Type // by name
	planned   map[string]definitions.Type
	types     []definitions.Type // in the order of the text
	former    map[string]string  // the names of renamed types, by the new ones
	questions []string
	body      object
}

// typesChange reads the form: the text has all types that there are to be.
func (v *visit) typesChange() (*typesChange, *fault, error) {
	c := &typesChange{active: map[string]definitions.Type{}, planned: map[string]definitions.Type{}, former: map[string]string{}, body: object{}}
	if text := v.form("text"); strings.TrimSpace(text) != "" {
		list, err := definitions.Parse([]byte(text))
		if err != nil {
			return nil, invalid("text", "The text cannot be read: "+strings.TrimSuffix(err.Error(), ".")+"."), nil
		}
		types := make([]definitions.Type, len(list))
		for i, d := range list {
			if err := decode(d.JSON, &types[i]); err != nil {
				return nil, nil, err
			}
			types[i].CreatedAt, types[i].UpdatedAt = "", ""
			c.planned[d.Name] = types[i]
		}
		c.types, c.body["types"] = types, types
	}
	renamed := map[string]string{}
	var renames []notation.Rename
	for line := range lines(v.form("renames")) {
		r, err := notation.ParseRename(line)
		if err != nil {
			return nil, invalid("renames", web.Sentence(err.Error())), nil
		}
		if r.Type == "" {
			renamed[r.From], c.former[r.To] = r.To, r.From
		}
		renames = append(renames, r)
	}
	if renames != nil {
		c.body["renames"] = renames
	}
	active, err := v.types()
	if err != nil {
		return nil, nil, err
	}
	var gone []string
	for _, t := range active {
		c.active[t.Name] = t
		if name := cmp.Or(renamed[t.Name], t.Name); c.planned[name].Name == "" {
			gone = append(gone, name)
		}
	}
	if gone != nil {
		c.body["delete"] = gone
	}
	return c, nil, nil
}

// lines returns the lines of a text that are not empty.
func lines(text string) iter.Seq[string] {
	return func(yield func(string) bool) {
		for line := range strings.Lines(text) {
			if line = strings.TrimSpace(line); line != "" && !yield(line) {
				return
			}
		}
	}
}

// asked reads the questions of the form, which a plan answers before and after.
func (v *visit) asked(c *typesChange) (body object, f *fault) {
	body = with(c.body)
	var questions []object
	for line := range lines(v.form("questions")) {
		subject, rest, _ := strings.Cut(line, " ")
		action, resource, _ := strings.Cut(strings.TrimSpace(rest), " ")
		s, ok := notation.ParseSubject(subject)
		r, valid := notation.ParseRef(strings.TrimSpace(resource))
		if !ok || !valid {
			return nil, invalid("questions", fmt.Sprintf("%q is not a question. A question is a subject, an action and a resource, such as user:ann view document:q3.", line))
		}
		questions = append(questions, object{"subject": s, "action": action, "resource": r})
		c.questions = append(c.questions, line)
	}
	if questions != nil {
		body["questions"] = questions
	}
	values, f := v.valuesOf("context")
	if values != nil {
		body["context"] = values
	}
	return body, f
}

// typesPlan is what a change of the model would do, as the page shows it.
type typesPlan struct {
	client.TypesPlan
	Diffs     map[string][]diffLine // by the names of types
	Questions []string              // of the answers
	Changed   bool                  // any type, or a name
	Apply     bool                  // the page offers to apply it
}

// planModel compares the text with the active types, and shows what the change would do.
func planModel(v *visit) error { return v.planWith(nil) }

// planWith is planModel with the error of an attempt to apply the change.
func (v *visit) planWith(f *fault) error {
	data := v.modelFields()
	again := func(f *fault) error { return v.again("model.html", modelTitle, data, f) }
	c, malformed, err := v.typesChange()
	if malformed != nil {
		return again(malformed)
	}
	if err != nil {
		return err
	}
	if data["Types"], err = graphOf(c.types); err != nil {
		return err
	}
	if data["Active"], err = namesOf(slices.Collect(maps.Values(c.active))); err != nil {
		return err
	}
	body, malformed := v.asked(c)
	if malformed != nil {
		return again(malformed)
	}
	var expected any
	if v.form("revision") != "" {
		expected = v.form("revision")
	}
	a, err := v.call(http.MethodPost, typesPath+"/plan", with(body, "expected_revision", expected))
	if e, ok := errors.AsType[*inprocess.Error](err); ok && e.Code == "resource_types_changed" {
		if f == nil {
			f = &fault{e.Status, changedModel, "text"}
		}
		a, err = v.call(http.MethodPost, typesPath+"/plan", body)
	}
	if f := c.refusal(err); f != nil {
		data["Wrong"] = c.place(err)
		return again(f)
	}
	if err != nil {
		return err
	}
	v.calls = append(v.calls, call{http.MethodPost, typesPath + "/plan", body})
	var plan typesPlan
	if err := decode(a.Data, &plan); err != nil {
		return err
	}
	plan.Questions, plan.Changed, plan.Diffs = c.questions, len(plan.Renames) > 0, map[string][]diffLine{}
	for _, change := range plan.Changes {
		if change.Change == "unchanged" {
			continue
		}
		plan.Changed = true
		if plan.Diffs[change.Name], err = c.diff(change.Name, change.Change == "created"); err != nil {
			return err
		}
	}
	plan.Apply = plan.Changed && len(plan.Illegal) == 0 && f == nil && data["Write"] == true
	if plan.Apply {
		v.calls = append(v.calls, call{http.MethodPost, typesPath + "/apply", with(c.body, "expected_revision", plan.Revision)})
	}
	data["Plan"], data["revision"] = plan, plan.Revision
	if f != nil {
		return again(f)
	}
	return v.show("model.html", modelTitle, data)
}

const changedModel = "The model was changed by another person meanwhile. Compare again: the text is now compared with the model as it is, and what it does not have is removed."

// typeIndex is how errors name a type of the change.
var typeIndex = regexp.MustCompile(`\btypes/(\d+)`)

// refusal returns the error of a change; nil if the form is not to blame.
func (c *typesChange) refusal(err error) *fault {
	e, ok := refused(err)
	if !ok {
		return nil
	}
	f := faultOf(e, "questions", "questions", "context", "context", "renames", "renames", "types", "text")
	f.text = typeIndex.ReplaceAllStringFunc(f.text, func(found string) string {
		i, err := strconv.Atoi(strings.TrimPrefix(found, "types/"))
		if err != nil || i >= len(c.types) {
			return found
		}
		return c.types[i].Name
	})
	if f.field == "" {
		f.field = map[string]string{"rename_ambiguous": "renames", "name_taken": "renames", "check_too_complex": "questions"}[e.Code]
	}
	if f.field == "" && e.Status != http.StatusTooManyRequests {
		f.field = "text"
	}
	return f
}

// relationIndex finds the relation in the path of an error.
var relationIndex = regexp.MustCompile(`\brelations/(\d+)`)

// place returns where the error of a change is: a type, or type#relation. Empty: it is unknown.
func (c *typesChange) place(err error) string {
	e, ok := refused(err)
	if !ok {
		return ""
	}
	name, _ := e.Details["type"].(string)
	path, _ := e.Details["path"].(string)
	if faults, _ := e.Details["field_errors"].([]any); len(faults) > 0 {
		first, _ := faults[0].(object)
		path, _ = first["field"].(string)
		if found := typeIndex.FindStringSubmatch(path); found != nil {
			if i, err := strconv.Atoi(found[1]); err == nil && i < len(c.types) {
				name = c.types[i].Name
			}
		}
	}
	found := relationIndex.FindStringSubmatch(path)
	if found == nil {
		return name
	}
	i, err := strconv.Atoi(found[1])
	if relations := c.planned[name].Relations; err == nil && i < len(relations) {
		return name + "#" + relations[i].Name
	}
	return name
}

// applyModel makes the change that was compared.
func applyModel(v *visit) error {
	if err := v.require("resources:write"); err != nil {
		return err
	}
	c, f, err := v.typesChange()
	if f != nil {
		return v.again("model.html", modelTitle, v.modelFields(), f)
	}
	if err != nil {
		return err
	}
	_, err = v.call(http.MethodPost, typesPath+"/apply", with(c.body, "expected_revision", v.form("revision"), "require_assertions", v.form("require_assertions") != ""))
	if e, ok := errors.AsType[*inprocess.Error](err); ok && e.Code == "resource_types_changed" {
		return v.planWith(&fault{e.Status, changedModel, "text"})
	}
	if f := c.refusal(err); f != nil {
		return v.planWith(f)
	}
	if err != nil {
		return err
	}
	v.redirect(query(modelPage, "done", "model"))
	return nil
}

// diffLine is a line of a comparison.
type diffLine struct {
	Op   string // "ins", "del", "same" or, for lines that are left out, "gap"
	Text string
}

// diff compares the definition of a type before, unless it is created, and after.
func (c *typesChange) diff(name string, created bool) (all []diffLine, err error) {
	text := func(types map[string]definitions.Type, name string) (list []string) {
		t, ok := types[name]
		if !ok || err != nil {
			return nil
		}
		var yaml string
		yaml, err = definitions.Text([]definitions.Type{t})
		return strings.Split(strings.TrimSuffix(yaml, "\n"), "\n")
	}
	before, after := text(c.active, cmp.Or(c.former[name], name)), text(c.planned, name)
	if created {
		before = nil
	}
	if err != nil {
		return nil, err
	}
	add := func(op string, lines []string) {
		for _, line := range lines {
			all = append(all, diffLine{op, line})
		}
	}
	end := 0
	for _, group := range difflib.NewMatcher(before, after).GetGroupedOpCodes(3) {
		if group[0].I1 > end {
			add("gap", []string{"…"})
		}
		for _, code := range group {
			if code.Tag == 'e' {
				add("same", before[code.I1:code.I2])
			} else {
				add("del", before[code.I1:code.I2])
				add("ins", after[code.J1:code.J2])
			}
			end = code.I2
		}
	}
	if end < len(before) && all != nil {
		add("gap", []string{"…"})
	}
	return all, nil
}
