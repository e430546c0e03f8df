package claims

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"
)

// decoded decodes a JSON object.
func decoded(t testing.TB, text string) (claims map[string]any) {
	t.Helper()
	if err := json.Unmarshal([]byte(text), &claims); err != nil {
		t.Fatal(err)
	}
	return claims
}

func mapping(t testing.TB, p Preset, rules map[string]string) Mapping {
	t.Helper()
	m, err := New(p, rules)
	if err != nil {
		t.Fatal(err)
	}
	return m
}

// codes are the keys and codes of warnings.
func codes(warnings []Warning) (list []string) {
	for _, w := range warnings {
		list = append(list, w.Target+" "+w.Code)
	}
	return list
}

// The examples of RFC 9535 for names and indexes, and what a subset of it refuses.
func TestPaths(t *testing.T) {
	claims := decoded(t, `{"o": {"j j": {"k.k": 3}, "'": {"@": 2}}, "a": ["b", "c"], "☺": "smile", "_x1": "x", "\"": 1, "\u0001\n/": "c", "😀": "g", "n": null, "a-b": 4}`)
	for path, want := range map[string]any{
		`$.o['j j']`: map[string]any{"k.k": 3.0}, `$.o['j j']['k.k']`: 3.0, `$["o"]["j j"]["k.k"]`: 3.0, `$["o"]["'"]["@"]`: 2.0, `$['o']['\'']['@']`: 2.0,
		`$.a[0]`: "b", `$.a[1]`: "c", `$.a[-2]`: "b", `$.a[2]`: nil, `$.a[-3]`: nil, `$.a.b`: nil, `$.o[0]`: nil, `$.a[0].b`: nil,
		`$.☺`: "smile", `$._x1`: "x", `$["\""]`: 1.0, `$['"']`: 1.0, `$['\u0001\n\/']`: "c", `$['\uD83D\uDE00']`: "g", `$.n`: nil, `$.absent`: nil, `$['a-b']`: 4.0,
	} {
		p, err := parsePath(path)
		if err != nil {
			t.Errorf("%s: %v", path, err)
			continue
		}
		if diff := cmp.Diff(want, find(claims, p)); diff != "" {
			t.Errorf("%s: %s", path, diff)
		}
	}
	for _, path := range []string{
		"", "email", "$", "$.", "$..a", "$[0]", "$.a[01]", "$.a[-0]", "$.a[+1]", "$.a[]", "$.a[0", "$.a[10000]", "$.a[99999999999999999999]", "$.*", "$[*]", "$.a[0:1]", "$.a[0,1]", "$[?@.a]",
		"$.1a", "$.a-b", "$.a ", " $.a", "$ .a", "$['a'", "$['a", "$['a' ]", `$['\x']`, `$['\"']`, `$['\uD83D']`, `$['\uDE00']`, `$['\uD83Dx']`, `$['\u+123']`, `$['\u12']`, "$['\n']", `$['\`, "$a", "$.a$", "$\xff",
		"$" + strings.Repeat(".a", maxSteps+1),
	} {
		if p, err := parsePath(path); err == nil {
			t.Errorf("%q is accepted: %v", path, p)
		}
	}
}

func TestInvalidMappings(t *testing.T) {
	many := map[string]string{}
	for i := range MaxRules + 1 {
		many[fmt.Sprintf("attributes.a%d", i)] = "$.a"
	}
	for name, tc := range map[string]struct {
		preset      Preset
		rules       map[string]string
		key, reason string
	}{
		"not a path":         {OpenID, map[string]string{"email": "email"}, "email", Syntax},
		"no source":          {OpenID, map[string]string{"email": ""}, "email", Syntax},
		"long path":          {OpenID, map[string]string{"email": "$." + strings.Repeat("a", maxSource)}, "email", Syntax},
		"unknown target":     {OpenID, map[string]string{"phone": "$.phone"}, "phone", UnknownTarget},
		"no attribute":       {OpenID, map[string]string{"attributes.": "$.a"}, "attributes.", UnknownTarget},
		"long attribute":     {OpenID, map[string]string{"attributes." + strings.Repeat("a", 100): "$.a"}, "attributes." + strings.Repeat("a", 100), UnknownTarget},
		"attribute of lines": {OpenID, map[string]string{"attributes.a\nb": "$.a"}, "attributes.a\nb", UnknownTarget},
		"twice":              {OpenID, map[string]string{"first_name": "$.a", "given_name": "$.b"}, "given_name", DuplicateTarget},
		"lines in a name":    {SAML, map[string]string{"email": "a\nb"}, "email", Syntax},
		"too many":           {OpenID, many, "", TooMany},
	} {
		_, err := New(tc.preset, tc.rules)
		var invalid *Error
		if !errors.As(err, &invalid) || invalid.Key != tc.key || invalid.Reason != tc.reason || invalid.Error() == "" {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// Only rules that were set are compared with the claims that a provider lists.
func TestSupports(t *testing.T) {
	m := mapping(t, OpenID, map[string]string{"email": "$.upn", "attributes.city": "$.address.city"})
	if err := m.Supports([]string{"upn", "address"}); err != nil {
		t.Error(err)
	}
	var invalid *Error
	if err := m.Supports([]string{"upn", "city"}); !errors.As(err, &invalid) || invalid.Key != "attributes.city" || invalid.Reason != UnsupportedClaim {
		t.Error(err)
	}
}

func TestMap(t *testing.T) {
	for name, tc := range map[string]struct {
		preset   Preset
		rules    map[string]string
		claims   string
		want     Profile
		warnings []string
	}{
		"standard claims": {
			OpenID, nil,
			`{"sub": "1", "email": "ann@example.com", "email_verified": true, "name": "Ann Example", "given_name": "Ann", "family_name": "Example", "picture": "https://example.com/a.png", "locale": "en-GB", "groups": ["a", "b", "a"]}`,
			Profile{Email: "ann@example.com", EmailVerified: new(true), Name: "Ann Example", GivenName: "Ann", FamilyName: "Example", Picture: "https://example.com/a.png", Locale: "en-GB", Groups: []string{"a", "b"}},
			nil,
		},
		"rules over defaults": {
			OpenID,
			map[string]string{"email": "$.mails[0]", "first_name": "$.n.first", "groups": "$['https://example.com/groups']", "attributes.team": "$.team", "attributes.on": "$.on", "attributes.a.b": "$.n"},
			`{"mails": ["ann@example.com"], "email": "other@example.com", "n": {"first": "Ann"}, "https://example.com/groups": "staff", "team": "<R&D>", "on": [1, null, {"a": false}]}`,
			Profile{Email: "ann@example.com", GivenName: "Ann", Groups: []string{"staff"}, Attributes: []byte(`{"a.b":{"first":"Ann"},"on":[1,null,{"a":false}],"team":"<R&D>"}`)},
			nil,
		},
		"no claims": {OpenID, map[string]string{"first_name": "$.n", "attributes.x": "$.x"}, `{"x": null}`, Profile{}, []string{"attributes.x missing", "email missing", "first_name missing"}},
		"wrong types": {
			OpenID,
			map[string]string{"attributes.x": "$.name"},
			`{"email": ["ann@example.com"], "email_verified": {}, "name": 7, "groups": [1, "a", "", null], "picture": true, "locale": {}}`,
			Profile{Groups: []string{"a"}, Attributes: []byte(`{"x":7}`)},
			[]string{"email type_invalid", "email_verified type_invalid", "groups invalid", "locale type_invalid", "name type_invalid", "picture type_invalid"},
		},
		"wrong values": {
			OpenID, nil,
			`{"email": "ann", "email_verified": "yes", "name": "a\nb", "given_name": "` + strings.Repeat("x", MaxText+1) + `", "picture": "http://example.com/a.png", "locale": "no language"}`,
			Profile{},
			[]string{"email invalid", "email_verified type_invalid", "given_name too_long", "locale invalid", "name invalid", "picture invalid"},
		},
		"flag as text":              {OpenID, nil, `{"email": "a@b", "email_verified": "true"}`, Profile{Email: "a@b", EmailVerified: new(true)}, nil},
		"flag is false":             {OpenID, nil, `{"email": "a@b", "email_verified": "false"}`, Profile{Email: "a@b", EmailVerified: new(false)}, nil},
		"Microsoft, of a directory": {Microsoft, nil, `{"email": "a@b", "email_verified": true}`, Profile{Email: "a@b"}, nil},
		"Microsoft, verified":       {Microsoft, nil, `{"email": "a@b", "xms_edov": "1"}`, Profile{Email: "a@b", EmailVerified: new(true)}, nil},
		"Microsoft, as a number":    {Microsoft, nil, `{"email": "a@b", "xms_edov": 1}`, Profile{Email: "a@b", EmailVerified: new(true)}, nil},
		"Google":                    {Google, nil, `{"email": "a@b", "email_verified": true, "hd": "b"}`, Profile{Email: "a@b", EmailVerified: new(true)}, nil},
		"GitHub":                    {GitHub, nil, `{"login": "ann", "id": 1, "name": null, "avatar_url": "https://example.com/a", "email": "a@b", "email_verified": true}`, Profile{Email: "a@b", EmailVerified: new(true), Name: "ann", Picture: "https://example.com/a"}, nil},
		"Apple":                     {Apple, nil, `{"email": "a@b", "email_verified": "true", "given_name": "Ann", "family_name": "Example"}`, Profile{Email: "a@b", EmailVerified: new(true), GivenName: "Ann", FamilyName: "Example"}, nil},
		"SAML": {
			SAML,
			map[string]string{"attributes.phones": "phone", "attributes.office": "office"},
			`{"urn:oid:0.9.2342.19200300.100.1.3": ["ann@example.com"], "displayName": ["Ann Example", "Ann"], "sn": "Example", "memberOf": ["a", "b"], "phone": ["1", "2"], "office": ["3"]}`,
			Profile{Email: "ann@example.com", Name: "Ann Example", FamilyName: "Example", Groups: []string{"a", "b"}, Attributes: []byte(`{"office":"3","phones":["1","2"]}`)},
			[]string{"name several_values"},
		},
		"SAML names are not paths": {SAML, map[string]string{"email": "$.mail"}, `{"$.mail": ["a@b"], "email": ["c@d"]}`, Profile{Email: "a@b"}, nil},
		"SAML without values":      {SAML, nil, `{"email": [], "mail": [null]}`, Profile{}, []string{"email missing"}},
	} {
		t.Run(name, func(t *testing.T) {
			got, warnings := mapping(t, tc.preset, tc.rules).Map(decoded(t, tc.claims))
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Error(diff)
			}
			if diff := cmp.Diff(tc.warnings, codes(warnings)); diff != "" {
				t.Error(diff)
			}
		})
	}
}

// Lists of strings are what decoders of SAML return.
func TestStringLists(t *testing.T) {
	got, warnings := mapping(t, SAML, nil).Map(map[string]any{"mail": []string{"a@b"}, "groups": []string{"x", "y"}})
	if diff := cmp.Diff(Profile{Email: "a@b", Groups: []string{"x", "y"}}, got); diff != "" || warnings != nil {
		t.Error(diff, warnings)
	}
}

// What is beyond the limits is left out, with a warning.
func TestHostileClaims(t *testing.T) {
	deep := any("x")
	for range 100_000 {
		deep = []any{deep}
	}
	many := make([]any, 100_000)
	for i := range many {
		many[i] = fmt.Sprintf("group%d", i)
	}
	long := strings.Repeat("x", 1<<20)
	m := mapping(t, OpenID, map[string]string{"attributes.deep": "$.deep", "attributes.long": "$.long", "attributes.a": "$.part", "attributes.b": "$.part", "attributes.many": "$.groups", "attributes.f": "$.f"})
	p, warnings := m.Map(map[string]any{"email": long, "deep": deep, "long": long, "groups": many, "part": strings.Repeat("y", MaxAttributes/2), "f": func() {}})
	if len(p.Groups) != MaxGroups || p.Email != "" || len(p.Attributes) > MaxAttributes || !json.Valid(p.Attributes) || !strings.HasPrefix(string(p.Attributes), `{"a":"yyy`) {
		t.Errorf("%d groups, %q, %d bytes of attributes", len(p.Groups), p.Email, len(p.Attributes))
	}
	want := []string{"attributes.b too_long", "attributes.deep too_long", "attributes.f type_invalid", "attributes.long too_long", "attributes.many too_long", "email too_long", "groups too_many"}
	if diff := cmp.Diff(want, codes(warnings)); diff != "" {
		t.Error(diff)
	}
}

// Whatever the rules and the claims, a profile keeps its limits.
func FuzzMap(f *testing.F) {
	f.Add("$.a['b'][0]", `{"a": {"b": ["x"]}}`)
	f.Add(`$['\uD83D\uDE00']`, `{"😀": [1, [2, {"c": null}], "d"]}`)
	f.Add("$.n", `{"n": 1e400, "a": "https://[::1", "b": "\ud800"}`)
	f.Fuzz(func(t *testing.T, path, text string) {
		var claims map[string]any
		if json.Unmarshal([]byte(text), &claims) != nil {
			return
		}
		for _, preset := range []Preset{OpenID, GitHub, Microsoft, Apple, SAML} {
			rules := map[string]string{"attributes.x": path}
			for _, target := range targets {
				rules[target] = path
			}
			all, err := New(preset, rules)
			if err != nil {
				all = mapping(t, preset, nil)
			}
			p, warnings := all.Map(claims)
			for _, s := range []string{p.Email, p.Name, p.GivenName, p.FamilyName, p.Picture, p.Locale} {
				if len(s) > MaxText || !utf8.ValidString(s) || strings.ContainsAny(s, "\x00\n\r") {
					t.Errorf("%q", s)
				}
			}
			if len(p.Groups) > MaxGroups || len(p.Attributes) > MaxAttributes || len(warnings) > 2*len(all.rules) {
				t.Errorf("%d groups, %d bytes of attributes, %d warnings", len(p.Groups), len(p.Attributes), len(warnings))
			}
			if p.Attributes != nil && !json.Valid(p.Attributes) {
				t.Errorf("attributes %q", p.Attributes)
			}
		}
	})
}

// A path that parses finds what it names.
func FuzzPath(f *testing.F) {
	for _, path := range []string{`$.a`, `$['a\'b']`, `$["\u00e9"]`, `$.a[0].b[-1]`, `$['a`, `$.a[99999999999]`} {
		f.Add(path)
	}
	f.Fuzz(func(t *testing.T, text string) {
		path, err := parsePath(text)
		if err != nil {
			return
		}
		value, canonical := any("found"), "$"
		for i := len(path) - 1; i >= 0; i-- {
			s := path[i]
			switch {
			case s.element && s.index < 0:
				list := make([]any, -s.index)
				list[0], value = value, list
			case s.element:
				list := make([]any, s.index+1)
				list[s.index], value = value, list
			default:
				value = map[string]any{s.name: value}
			}
		}
		if got := find(value, path); got != "found" {
			t.Errorf("%q: found %v", text, got)
		}
		for _, s := range path {
			if s.element {
				canonical += fmt.Sprintf("[%d]", s.index)
			} else {
				quoted, err := json.Marshal(s.name)
				if err != nil {
					t.Fatal(err)
				}
				canonical += "[" + string(quoted) + "]"
			}
		}
		again, err := parsePath(canonical)
		if diff := cmp.Diff(path, again, cmp.AllowUnexported(step{})); err != nil || diff != "" {
			t.Errorf("%q as %q: %v %s", text, canonical, err, diff)
		}
	})
}

// A claim about one address does not verify another one.
func TestVerifiedAddress(t *testing.T) {
	claims := map[string]any{"email": "ann@example.com", "email_verified": true, "xms_edov": true, "upn": "admin@example.com", "upn_verified": true}
	yes := true
	for name, c := range map[string]struct {
		preset Preset
		rules  map[string]string
		want   *bool
	}{
		"default":               {OpenID, nil, &yes},
		"the default, set":      {OpenID, map[string]string{"email": "$['email']"}, &yes},
		"another claim":         {OpenID, map[string]string{"email": "$.upn"}, nil},
		"another, with its own": {OpenID, map[string]string{"email": "$.upn", "email_verified": "$.upn_verified"}, &yes},
		"Microsoft":             {Microsoft, nil, &yes},
		"another of Microsoft":  {Microsoft, map[string]string{"email": "$.upn"}, nil},
		"another of GitHub":     {GitHub, map[string]string{"email": "$.upn"}, nil},
	} {
		m, err := New(c.preset, c.rules)
		if err != nil {
			t.Fatal(err)
		}
		if p, _ := m.Map(claims); (p.EmailVerified == nil) != (c.want == nil) || c.want != nil && *p.EmailVerified != *c.want {
			t.Errorf("%s: %+v", name, p)
		}
	}
}
