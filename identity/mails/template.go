package mails

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"stonetown/internal/text"
	"stonetown/internal/translation"
)

// Template is the text of a mail in a language. An empty field is that of the built-in text.
type Template struct {
	Subject string `json:"subject"`
	Heading string `json:"heading"` // empty: the subject
	Body    string `json:"body"`    // paragraphs, separated by blank lines, with {{link}} as one of them
	Button  string `json:"button"`
}

// The maximum lengths of the fields, in bytes.
const (
	MaxLine   = 200 // of the subject and the heading
	MaxBody   = 5000
	MaxButton = 80
)

// The variables that stand for a paragraph of their own.
const (
	linkVariable    = "link"
	messageVariable = "message"
)

// extra are the variables of a mail besides tenant, email, name and link.
var extra = map[string][]string{
	"verify_email": {"count"},
	"change_email": {"count"},
	"new_sign_in":  {"device", "place", "at", "ip"},
	"invitation":   {"organization", "inviter", "count"},
	"report":       {"report", "at", messageVariable},
	Announcement:   {"subject", messageVariable},
}

// Names returns the names of all mails, sorted.
func Names() []string {
	return slices.DeleteFunc(slices.Sorted(maps.Keys(all().byName)), func(name string) bool { return name == code })
}

// Variables returns the variables of a mail.
func Variables(name string) []string {
	return append([]string{"tenant", "email", "name", linkVariable}, extra[name]...)
}

// Exists reports whether there is a mail with a name, and a language with a tag.
func Exists(name, tag string) bool {
	_, ok := languageOf(tag)
	return ok && slices.Contains(Names(), name)
}

func languageOf(tag string) (translation.Language, bool) {
	for _, l := range translation.Languages() {
		if l.Tag() == tag {
			return l, true
		}
	}
	return translation.Language{}, false
}

// Fault is an error of a field. The message continues after the field's name.
type Fault struct{ Field, Code, Message string }

// InvalidError is returned for a template that is not valid.
type InvalidError struct{ Faults []Fault }

func (e *InvalidError) Error() string { return e.Faults[0].Field + " " + e.Faults[0].Message }

// Validate returns an [*InvalidError] for a template that is not valid for a mail.
func (t Template) Validate(name string) error {
	var faults []Fault
	add := func(field, code, format string, args ...any) {
		faults = append(faults, Fault{field, code, fmt.Sprintf(format, args...)})
	}
	for _, f := range []struct {
		name, value string
		most        int
		valid       func(string) bool
		must        string
	}{
		{"subject", t.Subject, MaxLine, text.IsLine, "must be one line without control characters"},
		{"heading", t.Heading, MaxLine, text.IsLine, "must be one line without control characters"},
		{"body", t.Body, MaxBody, text.IsParagraphs, "must have no control characters except line breaks and tabs"},
		{"button", t.Button, MaxButton, text.IsLine, "must be one line without control characters"},
	} {
		if !f.valid(f.value) {
			add(f.name, "control_character", "%s", f.must)
			continue
		}
		if len(f.value) > f.most {
			add(f.name, "too_long", "must have at most %d bytes", f.most)
			continue
		}
		used, err := variables(f.value)
		if err != nil {
			add(f.name, "variable_invalid", "%s", err)
			continue
		}
		for variable := range maps.Keys(used) {
			switch {
			case !slices.Contains(Variables(name), variable):
				add(f.name, "unknown_variable", "has the variable {{%s}}; those of this mail are {{%s}}", variable, strings.Join(Variables(name), "}}, {{"))
			case f.name != "body" && (variable == linkVariable || variable == messageVariable):
				add(f.name, "variable_misplaced", "must not have the variable {{%s}}, which is for the body", variable)
			}
		}
		if f.name == "body" && f.value != "" {
			faults = append(faults, misplaced(f.value, name, used)...)
		}
	}
	if t == (Template{}) {
		add("subject", "required", "or another field is required")
	}
	if faults == nil {
		return nil
	}
	return &InvalidError{faults}
}

// misplaced returns an error for each variable of a paragraph of its own that a body does not have once.
func misplaced(body, name string, used map[string]int) (faults []Fault) {
	for _, variable := range []string{linkVariable, messageVariable} {
		if !slices.Contains(Variables(name), variable) {
			continue
		}
		alone := 0
		for _, p := range paragraphs(body) {
			if p == "{{"+variable+"}}" {
				alone++
			}
		}
		if alone != 1 || used[variable] != 1 {
			faults = append(faults, Fault{"body", "variable_misplaced", fmt.Sprintf("must have the variable {{%s}} once, in a paragraph of its own", variable)})
		}
	}
	return faults
}

// variables counts the variables of a text.
func variables(s string) (map[string]int, error) {
	found := map[string]int{}
	for {
		_, rest, ok := strings.Cut(s, "{{")
		if !ok {
			return found, nil
		}
		name, after, ok := strings.Cut(rest, "}}")
		if !ok || name == "" || strings.Trim(name, "abcdefghijklmnopqrstuvwxyz_") != "" {
			return nil, errors.New("has {{ that does not begin a variable such as {{tenant}}")
		}
		found[name]++
		s = after
	}
}

// fill replaces the variables of a validated text by their values, which are not read again. An unknown
// variable, as of a later version, is empty.
func fill(s string, values []any) string {
	var b strings.Builder
	for {
		before, rest, ok := strings.Cut(s, "{{")
		b.WriteString(before)
		name, after, closed := strings.Cut(rest, "}}")
		if !ok || !closed {
			return b.String()
		}
		for i := 0; i+1 < len(values); i += 2 {
			if values[i] == name {
				fmt.Fprint(&b, values[i+1])
				break
			}
		}
		s = after
	}
}

// paragraphs returns the paragraphs of the body above and below the link. One with a value that is
// unknown is left out.
func (t Template) paragraphs(values []any, d Data) (before, after []string) {
	into := &before
	for _, p := range paragraphs(t.Body) {
		switch {
		case p == "{{"+linkVariable+"}}":
			into = &after
		case p == "{{"+messageVariable+"}}":
			*into = append(*into, paragraphs(d.Message)...)
		case d.Place == "" && strings.Contains(p, "{{place}}"):
		default:
			*into = append(*into, fill(p, values))
		}
	}
	return before, after
}

// BuiltIn returns the built-in text of a mail in a language as a template.
func BuiltIn(name, tag string) Template {
	in, _ := languageOf(tag)
	mail := all().byName[name]
	// The first value of a name is inserted, and the number chooses the plural form.
	values := []any{"count", "{{count}}", "count", sample(name).Count}
	for _, v := range Variables(name) {
		values = append(values, v, "{{"+v+"}}")
	}
	render := func(english string) string { return all().texts.Text(in, english, values...) }
	t := Template{Subject: "{{subject}}", Button: render(mail.Action)}
	if mail.Subject != "" {
		t.Subject = render(mail.Subject)
	}
	var body []string
	for _, p := range mail.Before {
		body = append(body, render(p))
	}
	if slices.Contains(extra[name], messageVariable) {
		body = append(body, "{{"+messageVariable+"}}")
	}
	body = append(body, "{{"+linkVariable+"}}")
	for _, p := range mail.After {
		body = append(body, render(p))
	}
	t.Heading, t.Body = t.Subject, strings.Join(body, "\n\n")
	return t
}

// sample has the values of previews and test mails.
func sample(name string) Data {
	d := Data{
		Email: "ann@example.com", Name: "Ann Example", Count: 24, Device: "desktop", IP: "192.0.2.7", Place: "Berlin, DE", At: "2026-11-20 19:27 UTC",
		Organization: "Example", Inviter: "bob@example.com",
	}
	switch name {
	case "invitation":
		d.Count = 7
	case "report":
		d.Report, d.Message = "Sign-ins", "Sign-ins: 1,204\n\nFailures: 31"
	case Announcement:
		d.Subject, d.Message = "Announcement", "First paragraph.\n\nSecond paragraph."
	}
	return d
}
