package console

import (
	"encoding/json"
	"errors"
	"fmt"
	"html/template"
	"net/http"
	"reflect"
	"slices"
	"strconv"
	"strings"

	"stonetown/api/inprocess"
	"stonetown/api/web"
	"stonetown/internal/notation"
)

// kind is how a member of a resource is shown in a form, and how it is read from one.
type kind string

const (
	asText    kind = "text"    // a string; empty: null
	asArea    kind = "area"    // a string of several lines; empty: null
	asLines   kind = "lines"   // a list of strings, one on each line
	asNumber  kind = "number"  // a whole number; empty: null
	asChoice  kind = "choice"  // one of the options; empty: null
	asChoices kind = "choices" // a list of options
	asFlag    kind = "flag"    // true or false
	asJSON    kind = "json"    // any JSON; empty: null
	asSecret  kind = "secret"  // a string that is never shown; empty: not sent

	asSecretArea kind = "secret area" // asSecret, of several lines
)

// field is a member of a resource in a form.
type field struct {
	Name     string // the path of the member, such as token_exchange/enabled
	Label    string
	Hint     string
	Kind     kind
	Options  []string
	Own      bool // the options are names that the tenant chose
	Required bool
	Blank    bool   // empty is the empty string, not null
	of       string // the types of resources that have the member, separated by spaces; empty: all
}

// ID returns the id of the element.
func (f field) ID() string { return strings.ReplaceAll(f.Name, "/", "-") }

// OptionName returns the name of an option for people.
func (f field) OptionName(option string) string {
	if f.Own {
		return option
	}
	return displayName(option)
}

// section is a group of fields.
type section struct {
	Title  string
	Fields []field
}

// choice is an option with a description.
type choice struct{ Value, Name, About string }

// sectionsOf returns the sections with the fields that resources of a type have.
func sectionsOf(all []section, typ string) (some []section) {
	for _, s := range all {
		fields := slices.DeleteFunc(slices.Clone(s.Fields), func(f field) bool {
			return f.of != "" && !slices.Contains(strings.Fields(f.of), typ)
		})
		if len(fields) > 0 {
			some = append(some, section{s.Title, fields})
		}
	}
	return some
}

// form is a form for the members of a resource. It is sent as a whole, and becomes a body with the
// members that differ from the resource, so that the others stay as they are.
type form struct {
	Sections []section
	Action   string // the path that it is sent to
	Button   string
	Danger   bool // the button is marked as dangerous
	Cancel   string
	Version  string // the updated_at of the resource that it shows; empty: of a new one
	typed    map[string][]string
}

// show fills the form with a resource.
func (f *form) show(resource object) {
	f.Version, _ = resource["updated_at"].(string)
	f.typed = map[string][]string{}
	for _, s := range f.Sections {
		for _, one := range s.Fields {
			f.typed[one.Name] = one.write(member(resource, one.Name))
		}
	}
}

// body reads what was sent into a body with the members that differ from a resource, the state that
// is stored now.
func (v *visit) body(f *form, now object) (body object, wrong *fault) {
	f.Version, _ = now["updated_at"].(string)
	f.typed, body = map[string][]string{}, object{}
	for _, s := range f.Sections {
		for _, one := range s.Fields {
			f.typed[one.Name] = v.r.PostForm[one.Name]
			to, fault := one.read(f.typed[one.Name])
			if fault != nil && wrong == nil {
				wrong = fault
			}
			stored := member(now, one.Name)
			if _, list := stored.([]any); list && to == nil {
				to = []any{}
			}
			hidden := to == nil && (one.Kind == asSecret || one.Kind == asSecretArea)
			if !hidden && !same(to, stored) {
				setMember(body, one.Name, to)
			}
		}
	}
	// A form that is sent twice finds its own change.
	if wrong == nil && len(body) > 0 && v.form("version") != f.Version {
		wrong = &fault{http.StatusConflict, "This was changed meanwhile. Check it against what is stored now, and save again to replace that.", ""}
	}
	return body, wrong
}

// same reports whether a member of a form is that of a resource. What is absent in a resource is
// false, empty or null.
func same(to, now any) bool {
	list, isList := to.([]any)
	if isList && len(list) == 0 || to == false {
		if now == nil {
			return true
		}
	}
	return reflect.DeepEqual(to, now) || to == nil && now == ""
}

// change sends what the form changes in a resource, now, to the operation that patches it, and leads
// to the page of the resource.
func (v *visit) change(f *form, title, path string, now object, codes map[string]string, page string) error {
	body, wrong := v.body(f, now)
	var err error
	if wrong == nil && len(body) > 0 {
		_, err = v.call(http.MethodPatch, path, body)
		wrong = f.refused(err, codes)
	}
	if wrong != nil {
		return v.again("form.html", title, object{"Form": f}, wrong)
	}
	if err != nil {
		return err
	}
	v.redirect(page + "?done=saved")
	return nil
}

// submit sends a new resource, or what a form says about one, to an operation, once. codes are as for
// [form.refused]. done is false if the form was shown again, with what is wrong.
func (v *visit) submit(f *form, title, text, path string, codes map[string]string) (answer object, done bool, err error) {
	body, wrong := v.body(f, object{})
	if wrong == nil {
		a, err := v.once(http.MethodPost, path, body)
		if wrong = f.refused(err, codes); wrong == nil {
			answer, _ = a.Data.(object)
			return answer, err == nil, err
		}
	}
	return nil, false, v.again("form.html", title, object{"Form": f, "Text": text}, wrong)
}

// filled is a field with its values.
type filled struct {
	field
	Value   string
	Mark    template.HTMLAttr
	Problem string // the error of the form, if it is about the field
	chosen  []string
}

// Chosen returns the names of the options that are chosen.
func (f filled) Chosen() string {
	var all []string
	for _, option := range f.chosen {
		all = append(all, f.OptionName(option))
	}
	return strings.Join(all, ", ")
}

// Has reports whether an option is chosen.
func (f filled) Has(option string) bool { return slices.Contains(f.chosen, option) }

// Fill returns the fields of a section with their values.
func (f *form) Fill(s section, page view) (all []filled) {
	for _, one := range s.Fields {
		hint := ""
		if one.Hint != "" {
			hint = one.ID() + "-hint"
		}
		chosen := f.typed[one.Name]
		text := strings.Join(chosen, "\n")
		if one.Kind == asSecret || one.Kind == asSecretArea {
			text = ""
		}
		problem := ""
		if page.Bad == one.Name {
			problem = page.Problem
			if at, ok := strings.CutPrefix(problem, "Please check: "+one.Name+" "); ok { // the label says the name
				problem = web.Sentence(at)
			}
		}
		all = append(all, filled{one, text, page.Mark(one.Name, hint), problem, chosen})
	}
	return all
}

// refused returns the error of an operation that another input could avoid; nil: it has another
// cause. codes are the fields that errors with these codes are about.
func (f *form) refused(err error, codes map[string]string) *fault {
	e, ok := errors.AsType[*inprocess.Error](err)
	if !ok || e.Status >= http.StatusInternalServerError || e.Status == http.StatusUnauthorized || e.Status == http.StatusNotFound || e.Code == "insufficient_scope" {
		return nil
	}
	var names, pairs []string
	for _, s := range f.Sections {
		for _, one := range s.Fields {
			names = append(names, one.Name)
		}
	}
	// A name may be the beginning of another.
	slices.SortFunc(names, func(a, b string) int { return len(b) - len(a) })
	for _, name := range names {
		pairs = append(pairs, name, name)
	}
	wrong := faultOf(e, pairs...)
	if wrong.field == "" {
		wrong.field = codes[e.Code]
	}
	return wrong
}

// write returns the values of a member in a form.
func (f field) write(member any) []string {
	list, _ := member.([]any)
	switch {
	case f.Kind == asJSON:
		if member == nil || list != nil && len(list) == 0 {
			return nil
		}
		return []string{indented(member)}
	case f.Kind == asFlag:
		if member == true {
			return []string{"yes"}
		}
		return nil
	case f.Kind == asLines:
		return []string{strings.Join(texts(list), "\n")}
	case f.Kind == asChoices:
		return texts(list)
	case member == nil:
		return nil
	}
	if n, ok := member.(float64); ok {
		return []string{strconv.FormatFloat(n, 'f', -1, 64)}
	}
	return []string{fmt.Sprint(member)}
}

// indented returns a value of an answer as JSON for people.
func indented(value any) string {
	var b strings.Builder
	encoder := json.NewEncoder(&b)
	encoder.SetEscapeHTML(false)
	encoder.SetIndent("", "  ")
	if err := encoder.Encode(value); err != nil {
		panic("console: " + err.Error()) // it was JSON
	}
	return strings.TrimSpace(b.String())
}

// texts returns the items of a list as strings.
func texts(list []any) (all []string) {
	for _, item := range list {
		all = append(all, fmt.Sprint(item))
	}
	return all
}

// read returns the member that the values of a form stand for.
func (f field) read(values []string) (any, *fault) {
	text := ""
	if len(values) > 0 {
		text = strings.TrimSpace(strings.ReplaceAll(values[0], "\r\n", "\n"))
	}
	switch f.Kind {
	case asFlag:
		return text != "", nil
	case asLines:
		list := []any{}
		for line := range strings.SplitSeq(text, "\n") {
			if line = strings.TrimSpace(line); line != "" {
				list = append(list, line)
			}
		}
		return list, nil
	case asChoices:
		list := []any{}
		for _, option := range values {
			list = append(list, option)
		}
		return list, nil
	}
	switch {
	case text == "" && f.Required:
		return nil, invalid(f.Name, f.Label+" is required.")
	case text == "" && f.Blank:
		return "", nil
	case text == "":
		return nil, nil
	case f.Kind == asNumber:
		n, err := strconv.ParseInt(text, 10, 32)
		if err != nil {
			return nil, invalid(f.Name, f.Label+" must be a whole number.")
		}
		return float64(n), nil
	case f.Kind == asJSON:
		var value any
		if !notation.DecodeAll(json.NewDecoder(strings.NewReader(text)), &value) {
			return nil, invalid(f.Name, f.Label+" must be JSON.")
		}
		return value, nil
	}
	return text, nil
}

// member returns the member of an object at a path; nil: there is none.
func member(o object, path string) any {
	first, rest, nested := strings.Cut(path, "/")
	if !nested {
		return o[first]
	}
	inner, _ := o[first].(object)
	return member(inner, rest)
}

// setMember sets the member of an object at a path.
func setMember(o object, path string, to any) {
	first, rest, nested := strings.Cut(path, "/")
	if !nested {
		o[first] = to
		return
	}
	inner, ok := o[first].(object)
	if !ok {
		inner = object{}
		o[first] = inner
	}
	setMember(inner, rest, to)
}
