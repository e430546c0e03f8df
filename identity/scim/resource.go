package scim

import (
	"maps"
	"strings"
	"unicode/utf8"
)

// Object is a resource or a complex value: values are strings, booleans, objects and arrays of
// objects.
type Object = map[string]any

// Canonical returns the members of a resource that the type has and clients may write, with the
// names of the schema. Values that are null or empty are absent (RFC 7643 §2.5). Texts that are
// booleans are accepted where the schema has a boolean, and a text or an array of one object
// where it has an object, as Entra ID sends them.
func (t *Type) Canonical(in Object) (Object, error) {
	out := Object{}
	seen := map[string]bool{}
	for name, value := range in {
		if folded := strings.ToLower(name); seen[folded] {
			return nil, refuse(InvalidSyntax, "%s is given more than once", name)
		} else {
			seen[folded] = true
		}
		if e := t.extension(name); e != nil {
			part, ok := value.(Object)
			if !ok && value != nil {
				return nil, refuse(InvalidValue, "%s must be an object", name)
			}
			inner, err := canonical(e.Attributes, part, "")
			if err != nil {
				return nil, err
			}
			if len(inner) > 0 {
				out[e.ID] = inner
			}
			continue
		}
		a, _ := t.attribute("", name)
		if a == nil || a.Mutability == "readOnly" {
			continue
		}
		if err := assign(out, a, value, ""); err != nil {
			return nil, err
		}
	}
	return out, nil
}

// canonical is [Type.Canonical] for a complex value.
func canonical(attributes []Attribute, in Object, path string) (Object, error) {
	out := Object{}
	seen := map[string]bool{}
	for name, value := range in {
		folded := strings.ToLower(name)
		if seen[folded] {
			return nil, refuse(InvalidSyntax, "%s%s is given more than once", path, name)
		}
		seen[folded] = true
		a := find(attributes, name)
		if a == nil || a.Mutability == "readOnly" {
			continue
		}
		if err := assign(out, a, value, path); err != nil {
			return nil, err
		}
	}
	return out, nil
}

// assign sets an attribute of an object, or removes it if the value is empty.
func assign(to Object, a *Attribute, value any, path string) error {
	converted, err := convert(a, value, path)
	if err != nil {
		return err
	}
	if isEmpty(converted) {
		delete(to, a.Name)
	} else {
		to[a.Name] = converted
	}
	return nil
}

func isEmpty(value any) bool {
	switch v := value.(type) {
	case nil:
		return true
	case string:
		return v == ""
	case []any:
		return len(v) == 0
	case Object:
		return len(v) == 0
	}
	return false
}

// convert returns a value as the schema has it.
func convert(a *Attribute, value any, path string) (any, error) {
	if value == nil {
		return nil, nil
	}
	if !a.MultiValued {
		if list, ok := value.([]any); ok && a.Type == "complex" && len(list) == 1 {
			value = list[0]
		}
		return convertOne(a, value, path)
	}
	list, ok := value.([]any)
	if !ok {
		list = []any{value}
	}
	var out []any
	for _, item := range list {
		one, err := convertOne(a, item, path)
		if err != nil {
			return nil, err
		}
		if !isEmpty(one) {
			out = append(out, one)
		}
	}
	return out, onePrimary(a, out, path)
}

// onePrimary refuses several preferred values (RFC 7643 §2.4).
func onePrimary(a *Attribute, list []any, path string) error {
	n := 0
	for _, item := range list {
		if o, ok := item.(Object); ok && o["primary"] == true {
			n++
		}
	}
	if n > 1 {
		return refuse(InvalidValue, "%s%s has more than one primary value", path, a.Name)
	}
	return nil
}

func convertOne(a *Attribute, value any, path string) (any, error) {
	name := path + a.Name
	switch a.Type {
	case "complex":
		if text, ok := value.(string); ok && find(a.SubAttributes, "value") != nil {
			value = Object{"value": text}
		}
		o, ok := value.(Object)
		if !ok {
			return nil, refuse(InvalidValue, "%s must be an object", name)
		}
		return canonical(a.SubAttributes, o, name+".")
	case "boolean":
		if text, ok := value.(string); ok {
			switch strings.ToLower(text) {
			case "true":
				return true, nil
			case "false":
				return false, nil
			}
		}
		b, ok := value.(bool)
		if !ok {
			return nil, refuse(InvalidValue, "%s must be a boolean", name)
		}
		return b, nil
	}
	text, ok := value.(string)
	if !ok {
		return nil, refuse(InvalidValue, "%s must be a string", name)
	}
	if strings.IndexByte(text, 0) >= 0 || !utf8.ValidString(text) {
		return nil, refuse(InvalidValue, "%s must be valid UTF-8 without NUL", name)
	}
	return text, nil
}

// clone returns a copy of a value that shares no object or array with it.
func clone(value any) any {
	switch v := value.(type) {
	case Object:
		c := make(Object, len(v))
		for name, item := range v {
			c[name] = clone(item)
		}
		return c
	case []any:
		c := make([]any, len(v))
		for i, item := range v {
			c[i] = clone(item)
		}
		return c
	}
	return value
}

// Projection selects the attributes of a response (RFC 7644 §3.9).
type Projection struct{ include, exclude map[string]bool }

// ParseProjection reads the parameters attributes and excludedAttributes.
func ParseProjection(attributes, excluded string) (p Projection, err error) {
	if attributes != "" && excluded != "" {
		return p, refuse(InvalidValue, "attributes and excludedAttributes exclude each other")
	}
	p.include, p.exclude = names(attributes), names(excluded)
	return p, nil
}

// names returns the names of a list that is separated by commas, folded and without the URN of a
// core schema.
func names(list string) map[string]bool {
	if list == "" {
		return nil
	}
	set := map[string]bool{}
	for name := range strings.SplitSeq(list, ",") {
		name = strings.ToLower(strings.TrimSpace(name))
		for _, t := range Types {
			name = strings.TrimPrefix(name, strings.ToLower(t.Core.ID)+":")
		}
		if name != "" {
			set[name] = true
		}
	}
	return set
}

// Wants reports whether an attribute of the response is selected, given when it is returned.
func (p Projection) Wants(name, returned string) bool {
	name = strings.ToLower(name)
	if p.include != nil {
		if p.include[name] {
			return true
		}
		for wanted := range p.include {
			if strings.HasPrefix(wanted, name+".") || strings.HasPrefix(wanted, name+":") {
				return true
			}
		}
		return false
	}
	return returned != "request" && !p.exclude[name]
}

// Apply returns the selected part of a resource.
func (p Projection) Apply(t *Type, o Object) Object {
	out := Object{}
	for name, value := range o {
		if t.extension(name) != nil {
			p.extension(out, name, value.(Object))
			continue
		}
		a, _ := t.attribute("", name)
		switch {
		case a.Returned == "always":
			out[name] = value
		case p.Wants(name, a.Returned):
			if part := p.part(name+".", value); !isEmpty(part) {
				out[name] = part
			}
		}
	}
	return out
}

func (p Projection) extension(out Object, urn string, value Object) {
	if p.include != nil && p.include[strings.ToLower(urn)] || p.include == nil && p.exclude == nil {
		out[urn] = value
		return
	}
	if p.exclude[strings.ToLower(urn)] {
		return
	}
	part := Object{}
	for name, item := range value {
		if p.Wants(urn+":"+name, "default") {
			part[name] = p.part(urn+":"+name+".", item)
		}
	}
	if len(part) > 0 {
		out[urn] = part
	}
}

// part returns the selected sub-attributes of a value. prefix is the path of the attribute with a
// dot.
func (p Projection) part(prefix string, value any) any {
	switch v := value.(type) {
	case []any:
		list := make([]any, len(v))
		for i, item := range v {
			list[i] = p.part(prefix, item)
		}
		return list
	case Object:
		whole := p.include == nil || p.include[strings.ToLower(strings.TrimSuffix(prefix, "."))]
		out := maps.Clone(v)
		for name := range v {
			path := strings.ToLower(prefix + name)
			if p.exclude[path] || !whole && !p.include[path] {
				delete(out, name)
			}
		}
		return out
	}
	return value
}
