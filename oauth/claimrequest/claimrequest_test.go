package claimrequest

import (
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"stonetown/oauth/access"
)

// example is that of OIDC Core §5.5.
const example = `{
	"userinfo": {
		"given_name": {"essential": true}, "nickname": null, "email": {"essential": true}, "email_verified": {"essential": true}, "picture": null,
		"http://example.info/claims/groups": null
	},
	"id_token": {"auth_time": {"essential": true}, "acr": {"values": ["urn:mace:incommon:iap:silver"]}}
}`

var valid = []struct {
	parameter string
	want      Request
}{
	{"", Request{}},
	{"{}", Request{}},
	{example, Request{Claims: access.RequestedClaims{UserInfo: []string{"given_name", "picture", "email", "email_verified", "nickname"}}, ACR: []string{"urn:mace:incommon:iap:silver"}}},
	{`{"userinfo":null,"id_token":{"name":{}}}`, Request{Claims: access.RequestedClaims{IDToken: []string{"name"}}}},
	{`{"userinfo":{"name":{"value":1,"values":[{}],"x":true}},"x":[]}`, Request{Claims: access.RequestedClaims{UserInfo: []string{"name"}}}},
	{`{"userinfo":{"name#de":null,"verified_claims":[{}],"amr":7,"acr":{"value":"aal2"}}}`, Request{}},
	{`{"id_token":{"sub":{"value":"usr_1"}}}`, Request{Users: []string{"usr_1"}}},
	{`{"id_token":{"sub":null},"userinfo":{"sub":{"essential":true}}}`, Request{}},
	{`{"id_token":{"sub":{"values":["usr_1","usr_2"]}},"userinfo":{"sub":{"value":"usr_2"}}}`, Request{Users: []string{"usr_2"}}},
	{`{"id_token":{"sub":{"value":"usr_1"}},"userinfo":{"sub":{"value":"usr_2"}}}`, Request{Users: []string{}}},
	{`{"id_token":{"acr":{"essential":true,"values":["aal2","aal1"]}}}`, Request{ACR: []string{"aal2", "aal1"}, Essential: true}},
	{`{"id_token":{"acr":{"essential":null,"value":"aal2","values":null}}}`, Request{ACR: []string{"aal2"}}},
	{`{"id_token":{"acr":{"essential":true}}}`, Request{Essential: true}},
}

var malformed = []string{
	"x", "null", "1", `"{}"`, "[]", "[{}]", "{", "{} {}", `{"userinfo":[]}`, `{"userinfo":"name"}`, `{"id_token":true}`,
	`{"userinfo":{"name":true}}`, `{"userinfo":{"name":[]}}`, `{"userinfo":{"name":"Ann"}}`, `{"userinfo":{"name":{"essential":"true"}}}`, `{"userinfo":{"name":{"essential":1}}}`,
	`{"userinfo":{"name":null,"name":null}}`, `{"userinfo":{},"userinfo":{}}`, `{"id_token":{"sub":{"value":1}}}`, `{"id_token":{"sub":{"values":"usr_1"}}}`, `{"id_token":{"sub":{"values":[]}}}`,
	`{"id_token":{"sub":{"values":[null]}}}`, `{"id_token":{"sub":{"value":"usr_1","values":["usr_1"]}}}`, `{"id_token":{"acr":{"values":["aal2",1]}}}`, `{"id_token":{"acr":"aal2"}}`,
	"{\"userinfo\":{\"\xff\":null}}", `{"x":"` + strings.Repeat("x", maxBytes) + `"}`,
}

func TestParse(t *testing.T) {
	for _, test := range valid {
		got, err := Parse(test.parameter)
		if diff := cmp.Diff(test.want, got); err != nil || diff != "" {
			t.Errorf("%s: %v\n%s", test.parameter, err, diff)
		}
	}
	for _, parameter := range malformed {
		if got, err := Parse(parameter); err == nil {
			t.Errorf("%.80s: %+v", parameter, got)
		}
	}
	if _, err := Parse(`{"x":"` + strings.Repeat("x", maxBytes-len(`{"x":""}`)) + `"}`); err != nil {
		t.Errorf("a parameter of the greatest size: %v", err)
	}
}

func FuzzParse(f *testing.F) {
	for _, test := range valid {
		f.Add(test.parameter)
	}
	for _, parameter := range malformed {
		f.Add(parameter)
	}
	f.Fuzz(func(t *testing.T, parameter string) {
		r, err := Parse(parameter)
		if err != nil {
			if diff := cmp.Diff(Request{}, r); diff != "" {
				t.Errorf("an error, and %s", diff)
			}
			return
		}
		if len(parameter) > maxBytes {
			t.Errorf("%d bytes", len(parameter))
		}
		for _, names := range [][]string{r.Claims.UserInfo, r.Claims.IDToken} {
			for _, name := range names {
				if !slices.Contains(access.StandardClaims, name) || name == "sub" {
					t.Errorf("claim %q", name)
				}
			}
			if len(slices.Compact(slices.Sorted(slices.Values(names)))) != len(names) {
				t.Errorf("repeated: %q", names)
			}
		}
		if diff := cmp.Diff(r.Claims, r.Claims.Of(r.Claims.Names())); diff != "" {
			t.Errorf("names: %s", diff)
		}
	})
}
