package importer

import (
	"reflect"
	"testing"

	"stonetown/schema"
)

func TestRename(t *testing.T) {
	declared := map[string]Place{}
	for i, name := range []string{"document", "docs/document", "docs_document", "User", "user", "9lives", "é", "é_"} {
		declared[name] = Place{File: "f", Line: i + 1}
	}
	var w Data
	got := w.Rename("type", declared, schema.IsReserved)
	want := map[string]string{
		"document": "document", "docs_document": "docs_document", "docs/document": "docs_document_2",
		"User": "user_2", "user": "user_3", "9lives": "x_9lives", "é": "x_", "é_": "x__2",
	}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
	if len(w.Report) != 6 || w.Report[0] != (Finding{Place{File: "f", Line: 6}, Renamed, `type "9lives" is called "x_9lives"`}) {
		t.Errorf("report: %v", w.Report)
	}
}

func TestIsBuiltIn(t *testing.T) {
	members := func(subjects ...schema.SubjectType) schema.Type {
		return schema.Type{Name: "group", Relations: []schema.Relation{{Name: "member", Subjects: subjects}}}
	}
	for _, test := range []struct {
		typ  schema.Type
		want bool
	}{
		{schema.Type{Name: "user"}, true},
		{schema.Type{Name: "application"}, true},
		{schema.Type{Name: "document"}, false},
		{schema.Type{Name: "user", Relations: []schema.Relation{{Name: "manager"}}}, false},
		{members(schema.SubjectType{Type: "user"}, schema.SubjectType{Type: "group", Relation: "member"}), true},
		{members(schema.SubjectType{Type: "user", Wildcard: true}), false},
		{members(schema.SubjectType{Type: "device"}), false},
		{schema.Type{Name: "group"}, false},
		{schema.Type{Name: "group", Relations: []schema.Relation{{Name: "member", Rewrites: []schema.Rewrite{{Kind: schema.Computed, Relation: "member"}}}}}, false},
	} {
		if got := isBuiltIn(test.typ); got != test.want {
			t.Errorf("%+v: %t", test.typ, got)
		}
	}
}

func TestPinActions(t *testing.T) {
	var typ schema.Type
	PinActions(&typ, map[string]string{"view": "view", "viewer": "viewer", "can-share": "can_share", "é": "x_"})
	if want := map[string]string{"view": "view", "can-share": "can_share"}; !reflect.DeepEqual(typ.Actions, want) {
		t.Errorf("got %v, want %v", typ.Actions, want)
	}
}

func TestBuiltIns(t *testing.T) {
	kinds := func(names ...string) []schema.SubjectType {
		var all []schema.SubjectType
		for _, name := range names {
			if name == "group" { // in the text form these are its members
				all = append(all, schema.SubjectType{Type: name})
				continue
			}
			all = append(all, schema.ParseSubjectType(name))
		}
		return all
	}
	typ := func(name, relation string, subjects ...string) schema.Type {
		return schema.Type{Name: name, Relations: []schema.Relation{{Name: relation, Subjects: kinds(subjects...)}}}
	}
	user, app := schema.Type{Name: "user"}, schema.Type{Name: "application"}
	for name, test := range map[string]struct {
		types   []schema.Type
		want    map[string]bool
		widened bool
	}{
		"all":               {[]schema.Type{user, app, typ("group", "member", "user", "application", "group#member")}, map[string]bool{"user": true, "application": true, "group": true}, false},
		"fewer members":     {[]schema.Type{user, typ("group", "member", "user")}, map[string]bool{"user": true, "group": true}, true},
		"users of another":  {[]schema.Type{typ("user", "manager", "user"), typ("group", "member", "user")}, map[string]bool{}, false},
		"a group by itself": {[]schema.Type{user, typ("group", "member", "user"), typ("doc", "owner", "group")}, map[string]bool{"user": true}, false},
		"all groups":        {[]schema.Type{user, typ("group", "member", "user"), typ("doc", "owner", "group:*")}, map[string]bool{"user": true}, false},
		"members as such":   {[]schema.Type{user, typ("group", "member", "user"), typ("doc", "owner", "group#member")}, map[string]bool{"user": true, "group": true}, true},
	} {
		var w Data
		if got := w.BuiltIns(test.types, Place{}); !reflect.DeepEqual(got, test.want) || (len(w.Report) > 0) != test.widened {
			t.Errorf("%s: %v, %v", name, got, w.Report)
		}
	}
}

// Tuples of another engine cannot become relations of the product's own types.
func TestTypesThatAreNotShared(t *testing.T) {
	for name, want := range map[string]bool{
		schema.UserType: true, schema.ApplicationType: true, schema.GroupType: true,
		schema.ScopeType: false, schema.AudienceType: false, schema.WebhookSubscriptionType: false, "document": false,
	} {
		if got := IsShared(name); got != want {
			t.Errorf("%s: %t", name, got)
		}
	}
}
