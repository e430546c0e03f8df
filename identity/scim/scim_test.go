package scim

import (
	"encoding/json"
	"errors"
	"reflect"
	"strings"
	"testing"
	"time"

	"stonetown/identity"
)

func object(t testing.TB, text string) Object {
	t.Helper()
	var o Object
	if err := json.Unmarshal([]byte(text), &o); err != nil {
		t.Fatal(err)
	}
	return o
}

const ann = `{
	"userName": "ann@example.com", "displayName": "Ann Lee", "active": true, "title": "Engineer", "externalId": "A-1",
	"name": {"givenName": "Ann", "familyName": "Lee"},
	"emails": [{"value": "ann@example.com", "type": "work", "primary": true}, {"value": "ann@home.example", "type": "home"}],
	"phoneNumbers": [{"value": "1", "type": "work"}],
	"urn:ietf:params:scim:schemas:extension:enterprise:2.0:User": {"department": "R&D", "manager": {"value": "usr_1"}}
}`

func TestFilter(t *testing.T) {
	o := object(t, ann)
	o["meta"] = Object{"created": "2026-01-02T03:04:05.000000Z"}
	for source, want := range map[string]bool{
		`userName eq "ANN@example.com"`:                                     true,
		`userName Eq "bob@example.com"`:                                     false,
		`externalId eq "a-1"`:                                               false, // caseExact
		`externalId eq "A-1"`:                                               true,
		`emails[type eq "work"].value eq "ann@example.com"`:                 true, // Entra ID
		`emails[type eq "home"].value eq "ann@example.com"`:                 false,
		`emails[type eq "work" or type eq "other"].value co "@example"`:     true,
		`emails[type eq "home" and value sw "ann@home"]`:                    true,
		`emails.value ew "home.example"`:                                    true,
		`emails co "home.example"`:                                          true,
		`active eq true`:                                                    true,
		`active eq "True"`:                                                  true,
		`active ne true`:                                                    false,
		`title pr and not (title eq "Chef")`:                                true,
		`nickName pr`:                                                       false,
		`nickName ne "x"`:                                                   true,
		`nickName eq null`:                                                  true,
		`meta.created gt "2026-01-01T00:00:00Z"`:                            true,
		`meta.created lt "2026-01-01T00:00:00Z"`:                            false,
		EnterpriseSchema + `:department eq "r&d"`:                           true,
		EnterpriseSchema + `:manager.value eq "usr_1"`:                      true,
		EnterpriseSchema + `:manager eq "usr_1"`:                            true,
		`urn:ietf:params:scim:schemas:core:2.0:User:title eq "engineer"`:    true,
		`(title eq "a" or title eq "Engineer") and userName sw "ann"`:       true,
		`displayName eq "Ann \u004cee"`:                                     true, // escapes of JSON
		`displayName eq "a\"b"`:                                             false,
		`name.familyName ge "lea" and name.familyName le "leo"`:             true,
		`title eq "Engineer" or nickName eq "x" and userName eq "nobody@x"`: true,
	} {
		e, err := parseFilter(source)
		if err != nil {
			t.Errorf("%s: %v", source, err)
			continue
		}
		if got, err := e.holds(e.node, scope{of: Users, object: o}); err != nil || got != want {
			t.Errorf("%s: %v %v, want %v", source, got, err, want)
		}
	}
	for _, source := range []string{
		`userName`, `userName eq`, `unknown eq "x"`, `userName eq 'x'`, `title gt`, `active gt true`, `active eq "maybe"`, `meta.created co "2026"`, `meta.created gt "yesterday"`,
		`title eq 5`, `addresses eq "x"`, `name.unknown pr`, `title[value eq "x"]`, `emails[unknown eq "x"]`, `userName eq "` + "a\\u0000" + `"`,
		strings.Repeat("(", 400) + "title pr" + strings.Repeat(")", 400), `title eq "` + strings.Repeat("x", MaxFilter) + `"`,
	} {
		e, err := parseFilter(source)
		if err == nil {
			_, err = e.holds(e.node, scope{of: Users, object: Object{}})
		}
		if refused, ok := errors.AsType[*Error](err); !ok || refused.Type != InvalidFilter {
			t.Errorf("%.60s: %v", source, err)
		}
	}
}

func TestPatch(t *testing.T) {
	for name, tc := range map[string]struct{ operations, path, want string }{
		"Entra ID disables":            {`[{"op":"Replace","path":"active","value":"False"}]`, "active", `false`},
		"Entra ID sets a work address": {`[{"op":"Replace","path":"emails[type eq \"work\"].value","value":"new@example.com"}]`, "emails", `[{"value":"new@example.com","type":"work","primary":true},{"value":"ann@home.example","type":"home"}]`},
		"Entra ID adds a value":        {`[{"op":"Add","path":"phoneNumbers[type eq \"mobile\"].value","value":"2"}]`, "phoneNumbers", `[{"value":"1","type":"work"},{"value":"2","type":"mobile"}]`},
		"Entra ID sets the manager":    {`[{"op":"Add","path":"` + EnterpriseSchema + `:manager","value":"usr_2"}]`, EnterpriseSchema, `{"department":"R&D","manager":{"value":"usr_2"}}`},
		"Entra ID has dotted keys":     {`[{"op":"Add","value":{"name.givenName":"Anna","title":"Chef","` + EnterpriseSchema + `:department":"Sales"}}]`, "name", `{"givenName":"Anna","familyName":"Lee"}`},
		"Entra ID selects in a key":    {`[{"op":"Add","value":{"emails[type eq \"home\"].value":"h@example.com"}}]`, "emails", `[{"value":"ann@example.com","type":"work","primary":true},{"value":"h@example.com","type":"home"}]`},
		"Okta disables":                {`[{"op":"replace","value":{"active":false}}]`, "active", `false`},
		"Okta repeats the id":          {`[{"op":"replace","value":{"id":"usr_x","displayName":"A. Lee"}}]`, "displayName", `"A. Lee"`},
		"an extension as a key":        {`[{"op":"replace","value":{"` + EnterpriseSchema + `":{"division":"D"}}}]`, EnterpriseSchema, `{"department":"R&D","division":"D","manager":{"value":"usr_1"}}`},
		"an extension as the path":     {`[{"op":"add","path":"` + EnterpriseSchema + `","value":{"division":"D"}}]`, EnterpriseSchema, `{"department":"R&D","division":"D","manager":{"value":"usr_1"}}`},
		"remove an extension":          {`[{"op":"remove","path":"` + EnterpriseSchema + `"}]`, EnterpriseSchema, `null`},
		"remove":                       {`[{"op":"remove","path":"title"}]`, "title", `null`},
		"remove by a filter":           {`[{"op":"remove","path":"emails[type eq \"home\"]"}]`, "emails", `[{"value":"ann@example.com","type":"work","primary":true}]`},
		"remove of nothing":            {`[{"op":"remove","path":"emails[type eq \"other\"]"}]`, "title", `"Engineer"`},
		"remove by values":             {`[{"op":"Remove","path":"emails","value":[{"value":"ann@home.example"}]}]`, "emails", `[{"value":"ann@example.com","type":"work","primary":true}]`},
		"null removes":                 {`[{"op":"replace","path":"title","value":null}]`, "title", `null`},
		"add merges":                   {`[{"op":"add","path":"emails","value":[{"value":"ann@home.example","type":"home"},{"value":"x@example.com","primary":true}]}]`, "emails", `[{"value":"ann@example.com","type":"work","primary":false},{"value":"ann@home.example","type":"home"},{"value":"x@example.com","primary":true}]`},
		"replace replaces":             {`[{"op":"replace","path":"emails","value":[{"value":"x@example.com"}]}]`, "emails", `[{"value":"x@example.com"}]`},
		"names fold":                   {`[{"op":"replace","path":"NAME.GIVENNAME","value":"Anna"}]`, "name", `{"givenName":"Anna","familyName":"Lee"}`},
	} {
		before := object(t, ann)
		var operations []Operation
		if err := json.Unmarshal([]byte(tc.operations), &operations); err != nil {
			t.Fatal(name, err)
		}
		got, err := Users.Patch(before, operations)
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		var want any
		if err := json.Unmarshal([]byte(tc.want), &want); err != nil {
			t.Fatal(err)
		}
		if !reflect.DeepEqual(got[tc.path], want) {
			t.Errorf("%s: %v, want %v", name, got[tc.path], want)
		}
		if !reflect.DeepEqual(before, object(t, ann)) {
			t.Errorf("%s changed the original", name)
		}
	}
	for operations, want := range map[string]ErrorType{
		`[]`:                                  InvalidSyntax,
		`[{"op":"move","path":"title"}]`:      InvalidSyntax,
		`[{"op":"remove"}]`:                   NoTarget,
		`[{"op":"remove","path":"userName"}]`: Mutability,
		`[{"op":"replace","path":"id","value":"x"}]`:                                                         Mutability,
		`[{"op":"replace","path":"groups","value":[]}]`:                                                      Mutability,
		`[{"op":"replace","path":"password","value":"x"}]`:                                                   InvalidPath,
		`[{"op":"replace","path":"emails[type","value":"x"}]`:                                                InvalidPath,
		`[{"op":"replace","path":"title[value eq \"x\"]","value":"x"}]`:                                      InvalidPath,
		`[{"op":"replace","path":"emails[color eq \"x\"].value","value":"x"}]`:                               InvalidPath,
		`[{"op":"replace","path":"emails[type co \"zzz\"].value","value":"x"}]`:                              NoTarget,
		`[{"op":"replace","path":"title","value":{}}]`:                                                       InvalidValue,
		`[{"op":"replace","path":"active","value":"perhaps"}]`:                                               InvalidValue,
		`[{"op":"replace","path":"userName","value":""}]`:                                                    InvalidValue,
		`[{"op":"add","value":"x"}]`:                                                                         InvalidValue,
		`[{"op":"add","path":"emails","value":[{"primary":true,"value":"1"},{"primary":true,"value":"2"}]}]`: InvalidValue,
	} {
		var list []Operation
		if err := json.Unmarshal([]byte(operations), &list); err != nil {
			t.Fatal(err)
		}
		_, err := Users.Patch(object(t, ann), list)
		if refused, ok := errors.AsType[*Error](err); !ok || refused.Type != want {
			t.Errorf("%s: %v, want %s", operations, err, want)
		}
	}
}

// TestAccount writes a resource to an account and reads it again.
func TestAccount(t *testing.T) {
	in, err := Users.Canonical(object(t, ann))
	if err != nil {
		t.Fatal(err)
	}
	u := identity.User{State: identity.Active, Profile: identity.Profile{Attributes: []byte(`{"team":"blue"}`)}}
	if err := write(&u, in, nil); err != nil {
		t.Fatal(err)
	}
	if u.Email != "ann@example.com" || u.Name != "Ann Lee" || u.GivenName != "Ann" || !strings.Contains(string(u.Attributes), `"team":"blue"`) || !strings.Contains(string(u.Attributes), `"enterprise":{"department":"R\u0026D"`) {
		t.Errorf("%+v %s", u, u.Attributes)
	}
	if again := ofUser(u, "A-1"); !reflect.DeepEqual(again, in) {
		t.Errorf("%v, want %v", again, in)
	}
	// A name that was composed follows its parts.
	var named identity.User
	first := Object{"userName": "bo@example.com", "name": Object{"givenName": "Bo", "familyName": "Ek"}}
	if err := write(&named, first, nil); err != nil || named.Name != "Bo Ek" {
		t.Errorf("%q %v", named.Name, err)
	}
	before := ofUser(named, "")
	after := clone(before).(Object)
	after["name"].(Object)["familyName"] = "Ekström"
	if err := write(&named, after, before); err != nil || named.Name != "Bo Ekström" {
		t.Errorf("%q %v", named.Name, err)
	}
	if named.Attributes != nil {
		t.Errorf("attributes of a user with columns only: %s", named.Attributes)
	}
}

// FuzzFilter compares what the database decides about a filter with its parts in memory: neither
// panics, and an accepted filter decides about every resource.
func FuzzFilter(f *testing.F) {
	for _, seed := range []string{`userName eq "a"`, `emails[type eq "work"].value eq "x"`, `not (title pr) or active eq "False"`, `meta.created gt "2026-01-01T00:00:00Z"`, EnterpriseSchema + `:manager.value pr`, `((((`, `a[b[c`, `members.value eq "x"`} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, source string) {
		e, err := parseFilter(source)
		if err != nil {
			return
		}
		for _, of := range Types {
			if _, err := e.holds(e.node, scope{of: of, object: Object{}}); err != nil {
				continue
			}
			if _, err := e.holds(e.node, scope{of: of, object: object(t, ann)}); err != nil {
				t.Fatalf("%s: %v", source, err)
			}
			c := conditions{of: of, groupsOf: func(string) ([]string, error) { return nil, nil }}
			if _, err := c.compile(e, e.node); err != nil {
				if _, own := errors.AsType[*Error](err); !own {
					t.Fatal(err)
				}
			}
		}
	})
}

// FuzzPatch applies an operation; its result is a canonical resource.
func FuzzPatch(f *testing.F) {
	for _, seed := range [][3]string{{"Replace", `emails[type eq "work"].value`, `"x"`}, {"add", "", `{"name.givenName":"x","emails":[{"value":"y"}]}`}, {"remove", `phoneNumbers[value eq "1"]`, `null`}, {"add", EnterpriseSchema + ":manager", `"x"`}, {"remove", "emails.type", `null`}} {
		f.Add(seed[0], seed[1], seed[2])
	}
	f.Fuzz(func(t *testing.T, op, path, value string) {
		var v any
		if json.Unmarshal([]byte(value), &v) != nil {
			return
		}
		out, err := Users.Patch(object(t, ann), []Operation{{op, path, v}})
		if err != nil {
			if _, own := errors.AsType[*Error](err); !own {
				t.Fatal(err)
			}
			return
		}
		again, err := Users.Canonical(out)
		if err != nil || !reflect.DeepEqual(again, out) {
			t.Fatalf("%v %v, want %v", again, err, out)
		}
	})
}

func TestProjection(t *testing.T) {
	o := object(t, ann)
	o["id"], o["schemas"] = "usr_1", []any{UserSchema}
	for _, tc := range []struct{ attributes, excluded, want string }{
		{"userName", "", `{"id":"usr_1","schemas":["` + UserSchema + `"],"userName":"ann@example.com"}`},
		{"name.givenName," + EnterpriseSchema + ":department", "", `{"id":"usr_1","schemas":["` + UserSchema + `"],"name":{"givenName":"Ann"},"` + EnterpriseSchema + `":{"department":"R&D"}}`},
		{"emails.value", "", `{"id":"usr_1","schemas":["` + UserSchema + `"],"emails":[{"value":"ann@example.com"},{"value":"ann@home.example"}]}`},
		{"", "userName,displayName,active,title,externalId,name,emails,phoneNumbers.type," + EnterpriseSchema, `{"id":"usr_1","schemas":["` + UserSchema + `"],"phoneNumbers":[{"value":"1"}]}`},
	} {
		p, err := ParseProjection(tc.attributes, tc.excluded)
		if err != nil {
			t.Fatal(err)
		}
		if got := p.Apply(Users, o); !reflect.DeepEqual(got, object(t, tc.want)) {
			t.Errorf("%s %s: %v", tc.attributes, tc.excluded, got)
		}
	}
	if _, err := ParseProjection("a", "b"); err == nil {
		t.Error("both parameters are accepted")
	}
}

func TestVersions(t *testing.T) {
	now := time.Unix(1, 0)
	if versionOf(Object{"a": "b"}, now) == versionOf(Object{"a": "c"}, now) || versionOf(Object{}, now) == versionOf(Object{}, now.Add(time.Microsecond)) {
		t.Error("two versions are equal")
	}
	v := versionOf(Object{}, now)
	for tags, want := range map[string]bool{"*": true, v: true, `"x", ` + v: true, strings.TrimPrefix(v, "W/"): true, `"x"`: false} {
		if Matches(tags, v) != want {
			t.Errorf("%s: %v", tags, !want)
		}
	}
}
