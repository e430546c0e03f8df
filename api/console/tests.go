package console

import (
	"encoding/json"
	"errors"
	"net/http"
	"net/url"
	"strings"

	"stonetown/api/inprocess"
	"stonetown/internal/definitions"
)

const testsPage = "/console/tests"

// assertionsReport is the result of assertions.
type assertionsReport struct {
	Set        string `json:"-"`
	Assertions int    `json:"assertions"`
	Failed     int    `json:"failed"`
	Unreadable []string
	Failures   []struct {
		Test     string   `json:"test"`
		Question string   `json:"question"`
		Expected []string `json:"expected"`
		After    []string `json:"after"`
	} `json:"failures"`
}

// Page returns the path of the page of the set.
func (r assertionsReport) Page() string { return setPage(r.Set) }

// setPage returns the path of the page of a set, and setPath that of the operations on it.
func setPage(name string) string { return testsPage + "/sets/" + url.PathEscape(name) }
func setPath(name string) string { return "/api/v1/assertions/" + url.PathEscape(name) }

// assertionSets lists the stored sets of assertions.
func assertionSets(v *visit) error { return v.showSets(nil) }

func (v *visit) showSets(run func(sets []any) ([]assertionsReport, error)) error {
	a, err := v.read(http.MethodGet, query("/api/v1/assertions", "limit", "100", "cursor", v.form("cursor")), nil)
	if err != nil {
		return err
	}
	data := object{"Sets": a.Data, "Write": v.may("resources:write")}
	v.paged(data, a.Meta, testsPage)
	if run != nil {
		sets, _ := a.Data.([]any)
		reports, err := run(sets)
		if err != nil {
			return err
		}
		data["Reports"] = reports
	}
	return v.show("tests.html", "Tests", data)
}

// runAllSets runs the sets of the page.
func runAllSets(v *visit) error {
	return v.showSets(func(sets []any) (reports []assertionsReport, err error) {
		for _, s := range sets {
			set, _ := s.(object)
			name, _ := set["name"].(string)
			r, err := v.run(name, object{})
			if e, ok := errors.AsType[*inprocess.Error](err); ok && e.Status == http.StatusNotFound {
				continue // deleted meanwhile
			}
			if err != nil {
				return nil, err
			}
			reports = append(reports, r)
		}
		return reports, nil
	})
}

// run runs a stored set, or that of the body.
func (v *visit) run(name string, body object) (r assertionsReport, err error) {
	a, err := v.read(http.MethodPost, setPath(name)+"/run", body)
	if err == nil {
		err = decode(a.Data, &r)
	}
	r.Set = name
	return r, err
}

// exampleSet is the text of the form for a new set.
const exampleSet = `relations:
  - resource: {type: document, external_id: q3}
    relation: owner
    subject: {type: user, id: ann}
tests:
  - name: owners view
    allow:
      - {subject: {type: user, id: ann}, action: view, resource: {type: document, external_id: q3}}
    deny:
      - {subject: {type: user, id: eve}, action: view, resource: {type: document, external_id: q3}}
`

const newSetTitle = "New assertions"

func newSetForm(v *visit) error {
	if err := v.require("resources:write"); err != nil {
		return err
	}
	return v.showSet("", exampleSet, nil, nil)
}

// set shows a set as a text.
func set(v *visit) error {
	name := v.variable("name")
	stored, err := v.one(setPath(name))
	if err != nil {
		return err
	}
	text, err := json.Marshal(object{"relations": stored["relations"], "tests": stored["tests"]})
	if err != nil {
		return err
	}
	var b strings.Builder
	if err := definitions.WriteYAML(&b, text); err != nil {
		return err
	}
	return v.showSet(name, b.String(), nil, nil)
}

func (v *visit) showSet(name, text string, report *assertionsReport, wrong *fault) error {
	title, action := name, setPage(name)
	if name == "" {
		title, action = newSetTitle, testsPage+"/new"
	}
	data := object{"Name": name, "Typed": v.form("name"), "Text": text, "Report": report, "Action": action, "Write": v.may("resources:write")}
	if wrong != nil {
		return v.again("test.html", title, data, wrong)
	}
	return v.show("test.html", title, data)
}

// setOf returns the set that the text of the form has.
func (v *visit) setOf() (set object, text string, wrong *fault) {
	text = strings.ReplaceAll(v.form("text"), "\r\n", "\n")
	document, err := definitions.JSON([]byte(text))
	if err == nil {
		err = json.Unmarshal(document, &set)
	}
	if err != nil || set == nil {
		message := "The text must be an object with relations and tests."
		if err != nil {
			message = "The text cannot be read: " + err.Error() + "."
		}
		return nil, text, invalid("text", message)
	}
	return set, text, nil
}

// runSet runs the text of the form, and stores nothing.
func runSet(v *visit) error {
	name := v.variable("name")
	set, text, wrong := v.setOf()
	if wrong != nil {
		return v.showSet(name, text, nil, wrong)
	}
	unsaved := name
	if unsaved == "" {
		unsaved = "new"
	}
	report, err := v.run(unsaved, object{"set": set})
	if wrong := refusedSet(err); wrong != nil {
		return v.showSet(name, text, nil, wrong)
	}
	if err != nil {
		return err
	}
	return v.showSet(name, text, &report, nil)
}

// saveSet stores the text of the form.
func saveSet(v *visit) error {
	if err := v.require("resources:write"); err != nil {
		return err
	}
	name := v.variable("name")
	set, text, wrong := v.setOf()
	if wrong != nil {
		return v.showSet(name, text, nil, wrong)
	}
	to := name
	if name == "" {
		to = strings.TrimSpace(v.form("name"))
		if to == "" {
			return v.showSet(name, text, nil, invalid("name", "Enter a name."))
		}
		_, err := v.call(http.MethodGet, setPath(to), nil)
		if err == nil {
			return v.showSet(name, text, nil, invalid("name", "There are assertions of this name."))
		}
	}
	_, err := v.call(http.MethodPut, setPath(to), set)
	if wrong := refusedSet(err); wrong != nil {
		return v.showSet(name, text, nil, wrong)
	}
	if err != nil {
		return err
	}
	v.redirect(setPage(to) + "?done=saved")
	return nil
}

// refusedSet returns the error of a set; nil if it is not to blame.
func refusedSet(err error) *fault {
	e, ok := refused(err)
	if !ok {
		return nil
	}
	f := faultOf(e, "name", "name")
	if f.field == "" {
		f.field = "text"
	}
	return f
}

// deleteSetForm asks for a confirmation.
func deleteSetForm(v *visit) error {
	if err := v.require("resources:write"); err != nil {
		return err
	}
	name := v.variable("name")
	if _, err := v.call(http.MethodGet, setPath(name), nil); err != nil {
		return err
	}
	v.calls = append(v.calls, call{http.MethodDelete, setPath(name), nil})
	return v.show("confirm.html", "Delete "+name+"?", object{
		"Text":   "The assertions are deleted for good, and changes of the model no longer run them.",
		"Button": "Delete", "Action": setPage(name) + "/delete", "Cancel": setPage(name), "Fields": object{},
	})
}

func deleteSet(v *visit) error {
	if _, err := v.call(http.MethodDelete, setPath(v.variable("name")), nil); err != nil {
		return err
	}
	v.redirect(testsPage + "?done=deleted")
	return nil
}
