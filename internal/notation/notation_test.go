package notation

import "testing"

func TestParseSubject(t *testing.T) {
	for text, want := range map[string]Subject{
		"user:ann":                             {"user", "ann", ""},
		"user:*":                               {"user", "*", ""},
		"group:eng#member":                     {"group", "eng", "member"},
		"user:a:b#c#member":                    {"user", "a:b#c", "member"},
		"user:#member":                         {"user", "#member", ""},
		"user:a#B":                             {"user", "a#B", ""},
		"user:ann#1":                           {"user", "ann#1", ""},
		"user:a#":                              {"user", "a#", ""},
		`{"type":"t","id":"a#b"}`:              {"t", "a#b", ""},
		`{"type":"t","id":"a","relation":"r"}`: {"t", "a", "r"},
	} {
		got, ok := ParseSubject(text)
		if !ok || got != want {
			t.Errorf("%s: %+v, %v", text, got, ok)
		}
		if again, ok := ParseSubject(got.Text()); !ok || again != want {
			t.Errorf("%s is given as %s, which is %+v, %v", text, got.Text(), again, ok)
		}
	}
	for _, text := range []string{"", "ann", ":", "user:", ":ann", "{", "{}", `{"type":"t"}`, `{"type":"t","id":"i","more":1}`, `{"id":1}`, `{"type":"t","id":"i"}{}`, `{"type":"t","id":"i"}}`} {
		if got, ok := ParseSubject(text); ok {
			t.Errorf("%s: %+v", text, got)
		}
	}
}

func TestParseRef(t *testing.T) {
	for text, want := range map[string]Ref{"document:q3": {"document", "q3"}, "document:a:b#c": {"document", "a:b#c"}} {
		if got, ok := ParseRef(text); !ok || got != want {
			t.Errorf("%s: %+v, %v", text, got, ok)
		}
	}
	for _, text := range []string{"", "q3", "document:", ":q3"} {
		if got, ok := ParseRef(text); ok {
			t.Errorf("%s: %+v", text, got)
		}
	}
}

// The first relation that an @ follows divides a tuple, whatever is in the ids.
func TestCutTuple(t *testing.T) {
	for text, want := range map[string][3]string{
		"document:q3#viewer@user:ann":          {"document:q3", "viewer", "user:ann"},
		"document:a@b#c#viewer@group:x#member": {"document:a@b#c", "viewer", "group:x#member"},
		"document:q3#viewer@user:a#b@c":        {"document:q3", "viewer", "user:a#b@c"},
		"document:q3#Viewer@user:ann":          {},
		"#viewer@user:ann":                     {},
		"document:q3#viewer@":                  {},
	} {
		resource, relation, subject, ok := CutTuple(text)
		if got := [3]string{resource, relation, subject}; got != want || ok != (want != [3]string{}) {
			t.Errorf("%s: %q, %v", text, got, ok)
		}
	}
}
