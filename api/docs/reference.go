package docs

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"stonetown/api/control"
	"stonetown/api/openapi"
)

// reference returns the pages that are generated from the OpenAPI documents.
func reference() (all []Page, err error) {
	for _, of := range []struct {
		text                   []byte
		prefix, chapter, title string
	}{
		{openapi.DataPlane.YAML, "api", "API", "API"},
		{control.Document.YAML, "control-api", "API of the control plane", "Control plane API"},
	} {
		d, err := read(of.text)
		if err != nil {
			return nil, err
		}
		w := &writer{document: &d, prefix: of.prefix}
		add := func(name, title string) {
			all = append(all, Page{Chapter: of.chapter, Name: name, File: "docs/" + name + ".md", source: []byte("# " + of.title + ": " + title + "\n\n" + w.String())})
			w.Reset()
		}
		w.WriteString(d.Info.Description)
		add(of.prefix, "conventions")
		for _, tag := range d.Tags {
			w.printf("%s\n\n", tag.Description)
			for _, path := range d.Paths {
				for _, o := range path.Value {
					if o.Value.Tags[0] == tag.Name {
						w.operation(strings.ToUpper(o.Name), path.Name, &o.Value)
					}
				}
			}
			add(of.prefix+"-"+tag.Name, tag.Name)
		}
		w.schemas()
		add(of.prefix+"-schemas", "schemas")
		w.errors()
		add(of.prefix+"-errors", "errors")
		if len(d.Webhooks) > 0 {
			w.events()
			add(of.prefix+"-events", "events")
		}
		if w.err != nil {
			return nil, w.err
		}
	}
	return all, nil
}

// writer writes pages about a document.
type writer struct {
	*document
	prefix string // of the names of pages
	strings.Builder
	err error // the first one
}

func (w *writer) printf(format string, args ...any) { fmt.Fprintf(w, format, args...) }

// cell returns a text as a cell of a table.
func cell(text string) string {
	parts := strings.Split(strings.Join(strings.Fields(text), " "), "`")
	for i := 0; i < len(parts); i += 2 { // the others are code
		parts[i] = strings.ReplaceAll(parts[i], "<", "&lt;")
	}
	return strings.ReplaceAll(strings.Join(parts, "`"), "|", `\|`)
}

// operation writes the section of an operation. Its anchor is the operation's id.
func (w *writer) operation(method, path string, o *operation) {
	w.printf("## %s {#%s}\n\n`%s %s`\n\n%s\n\n%s\n\n", strings.TrimSuffix(o.Summary, "."), o.ID, method, path, o.Description, o.needs())
	if len(o.Parameters) > 0 {
		w.printf("| parameter | in | type | meaning |\n|---|---|---|---|\n")
		for _, p := range o.Parameters {
			p = w.parameter(p)
			needed := ""
			if p.Required && p.In != "path" {
				needed = "Required. "
			}
			w.printf("| `%s` | %s | %s | %s |\n", p.Name, p.In, cell(w.kind(p.Schema)), cell(needed+p.Description))
		}
		w.printf("\n")
	}
	for _, m := range o.Body.Content {
		w.printf("The body is %s (`%s`)%s.\n\n", w.kind(m.Value.Schema), m.Name, map[bool]string{false: " and optional"}[o.Body.Required])
		w.members(m.Value.Schema)
	}
	w.curl(method, path, o)
	w.printf("| status | meaning | body or errors |\n|---|---|---|\n")
	var answer string
	for _, named := range o.Responses {
		r := w.response(named.Value)
		var parts []string
		if codes := slices.Concat(r.Codes, o.Codes[named.Name]); len(codes) > 0 {
			parts = append(parts, "`"+strings.Join(codes, "`, `")+"`")
		} else {
			for _, m := range r.Content {
				parts = append(parts, w.kind(m.Value.Schema))
			}
		}
		w.printf("| %s | %s | %s |\n", named.Name, cell(r.Description), cell(strings.Join(parts, " or ")))
		if strings.HasPrefix(named.Name, "2") && answer == "" && len(r.Content) > 0 {
			answer = w.json(r.Content[0].Value)
		}
	}
	w.printf("\n")
	if answer != "" {
		w.printf("An answer:\n\n```json\n%s\n```\n\n", answer)
	}
}

// json returns the example of a body.
func (w *writer) json(m media) string {
	text, err := w.example(m)
	if err != nil && w.err == nil {
		w.err = err
	}
	return text
}

// curl writes an operation as a command. BASE and TOKEN are those of the README.
func (w *writer) curl(method, path string, o *operation) {
	command := "curl -sS"
	if method != "GET" {
		command += " -X " + method
	}
	command += ` "$BASE` + path + `"`
	if o.authorized() {
		command += " \\\n  -H \"Authorization: Bearer $TOKEN\""
	}
	if len(o.Body.Content) > 0 {
		m := o.Body.Content[0]
		if body := w.json(m.Value); body != "" && strings.HasSuffix(m.Name, "json") {
			command += " \\\n  -H 'Content-Type: " + m.Name + "' \\\n  -d '" + strings.ReplaceAll(body, "'", `'\''`) + "'"
		}
	}
	w.printf("```sh\n%s\n```\n\n", command)
}

// kind returns the type of a schema with its limits; components are links.
func (w *writer) kind(s schema) string {
	if s.Ref != "" {
		name := component(s.Ref)
		return fmt.Sprintf("[%s](%s-schemas.md#%s)", name, w.prefix, name)
	}
	alternatives := func(all []schema, word string) string {
		var names []string
		for _, one := range all {
			if name := w.kind(one); !slices.Contains(names, name) {
				names = append(names, name)
			}
		}
		return strings.Join(names, word)
	}
	switch {
	case len(s.AllOf) > 0:
		return alternatives(s.AllOf, " and ")
	case len(s.AnyOf) > 0:
		return alternatives(s.AnyOf, " or ")
	case len(s.OneOf) > 0:
		return alternatives(s.OneOf, " or ")
	case s.Const != nil:
		return fmt.Sprintf("`%v`", s.Const)
	case len(s.Enum) > 0:
		var values []string
		for _, v := range s.Enum {
			values = append(values, fmt.Sprintf("`%v`", v))
		}
		return strings.Join(values, ", ")
	}
	var text string
	switch t := s.Type.(type) {
	case string:
		text = t
	case []any:
		var names []string
		for _, name := range t {
			names = append(names, fmt.Sprint(name))
		}
		text = strings.Join(names, " or ")
	default:
		text = "any value"
		if len(s.Properties) > 0 {
			text = "object"
		}
	}
	if s.Items != nil {
		text += " of " + w.kind(*s.Items)
	}
	if s.Format != "" {
		text += " (" + s.Format + ")"
	}
	for _, limit := range []struct {
		text  string
		value any
	}{{"at least %v", s.Minimum}, {"at most %v", s.Maximum}, {"at least %v characters", s.MinLength}, {"at most %v characters", s.MaxLength}, {"at most %v items", s.MaxItems}, {"default `%v`", s.Default}} {
		if limit.value != nil {
			text += ", " + fmt.Sprintf(limit.text, limit.value)
		}
	}
	if s.Pattern != "" {
		text += ", matches `" + s.Pattern + "`"
	}
	return text
}

// members writes the members of an object.
func (w *writer) members(s schema) {
	if s.Ref != "" || len(s.Properties) == 0 {
		return // the section of the component has them
	}
	w.printf("| member | type | meaning |\n|---|---|---|\n")
	for _, p := range s.Properties {
		needed := ""
		if slices.Contains(s.Required, p.Name) {
			needed = "Required. "
		}
		w.printf("| `%s` | %s | %s |\n", p.Name, cell(w.kind(p.Value)), cell(needed+p.Value.Description))
	}
	w.printf("\n")
}

// schemas writes the components. A member that has members itself is a section below.
func (w *writer) schemas() {
	w.printf("The objects in requests and responses. A member that is not required can be absent.\n\n")
	slices.SortFunc(w.Components.Schemas, func(a, b named[schema]) int { return strings.Compare(a.Name, b.Name) })
	for _, s := range w.Components.Schemas {
		w.printf("## %s {#%s}\n\n%s\n\n", s.Name, s.Name, s.Value.Description)
		w.object(s.Name, s.Value)
	}
}

// object writes what a component consists of.
func (w *writer) object(path string, s schema) {
	if len(s.Properties) == 0 {
		w.printf("%s\n\n", w.kind(s))
	}
	w.members(s)
	for _, part := range slices.Concat(s.AllOf, s.AnyOf, s.OneOf) {
		w.members(part)
	}
	for _, p := range s.Properties {
		inner := p.Value
		if inner.Items != nil {
			inner = *inner.Items
		}
		if len(inner.Properties) > 0 {
			w.printf("### %s.%s\n\n", path, p.Name)
			w.object(path+"."+p.Name, inner)
		}
	}
}

// errors writes the codes of errors, with the operations that return them.
func (w *writer) errors() {
	type use struct{ statuses, operations []string }
	uses := map[string]*use{}
	note := func(code, status, operation string) {
		u := uses[code]
		if u == nil {
			u = &use{}
			uses[code] = u
		}
		if !slices.Contains(u.statuses, status) {
			u.statuses = append(u.statuses, status)
		}
		if !slices.Contains(u.operations, operation) {
			u.operations = append(u.operations, operation)
		}
	}
	total := 0
	for _, path := range w.Paths {
		for _, o := range path.Value {
			total++
			link := fmt.Sprintf("[%s](%s-%s.md#%s)", o.Value.ID, w.prefix, o.Value.Tags[0], o.Value.ID)
			for _, r := range o.Value.Responses {
				for _, code := range slices.Concat(w.response(r.Value).Codes, o.Value.Codes[r.Name]) {
					note(code, r.Name, link)
				}
			}
		}
	}
	w.printf("The codes of errors, on which clients may branch. Messages are for people and can change.\n\n| code | status | operations |\n|---|---|---|\n")
	for _, code := range slices.Sorted(maps.Keys(uses)) {
		u := uses[code]
		slices.Sort(u.statuses)
		text := strings.Join(u.operations, ", ")
		if n := len(u.operations); n > 12 {
			text = fmt.Sprintf("%d of %d", n, total)
		}
		w.printf("| `%s` | %s | %s |\n", code, strings.Join(u.statuses, ", "), text)
	}
}

// events writes the types of events.
func (w *writer) events() {
	w.printf("Events are delivered by [webhooks](webhooks.md) and exported by `stonetown audit export`. All have the members of [EventEnvelope](%s-schemas.md#EventEnvelope); `data` depends on the type.\n\n", w.prefix)
	for _, hook := range w.Webhooks {
		for _, o := range hook.Value {
			w.printf("## %s\n\n%s\n\n", hook.Name, o.Value.Summary)
			for _, m := range o.Value.Body.Content {
				for _, part := range m.Value.Schema.AllOf {
					for _, p := range part.Properties {
						if p.Name == "data" {
							w.printf("`data` is %s.\n\n", w.kind(p.Value))
						}
					}
				}
				w.printf("```json\n%s\n```\n\n", w.json(m.Value))
			}
		}
	}
}
