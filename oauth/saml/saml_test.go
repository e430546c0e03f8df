package saml

import (
	"encoding/json"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"stonetown/internal/samlprotocol"
	"stonetown/internal/seal"
	"stonetown/oauth/access"
	"stonetown/oauth/client"
	"stonetown/oauth/protocol"
	"stonetown/oauth/saml/identityprovider"
)

func TestTexts(t *testing.T) {
	for value, want := range map[string][]string{
		``: nil, `null`: nil, `""`: nil, `"a"`: {"a"}, `7.50`: {"7.50"}, `true`: {"true"}, `{"a":1}`: nil,
		`[]`: nil, `["a",1,false,null,"",["b"],{"c":1}]`: {"a", "1", "false"},
	} {
		if got := texts(json.RawMessage(value)); !slices.Equal(got, want) {
			t.Errorf("%s: %q, want %q", value, got, want)
		}
	}
}

// Each value that an application can be configured to get has a scope, and is left out without
// consent to it.
func TestAttributesNeedTheirScopes(t *testing.T) {
	user := Person{
		User: access.User{
			ID: "usr_a", Email: "ann@example.com", EmailVerified: true, Name: "Ann Lee", GivenName: "Ann", FamilyName: "Lee", Picture: "https://example.com/a.png", Locale: "de",
		},
		Attributes: json.RawMessage(`{"unit":"R&D"}`), Groups: []string{"editors"},
	}
	of := map[string]string{
		"id": "openid", "email": "email", "email_verified": "email", "name": "profile", "given_name": "profile", "family_name": "profile",
		"locale": "profile", "picture": "profile", "groups": groupsScope, "attributes.unit": attributesScope,
	}
	for value, scope := range of {
		sp := client.ServiceProvider{AttributeStatements: []client.AttributeStatement{{Name: "x", NameFormat: "uri", Value: value}}}
		if !slices.Contains(scopesOf(sp), scope) {
			t.Errorf("%s does not ask for %s", value, scope)
		}
		for _, other := range of {
			got := attributes(sp, user, []string{other})
			if other != scope && len(got) > 0 || other == scope && (len(got) != 1 || len(got[0].Values) != 1 || got[0].NameFormat != "urn:oasis:names:tc:SAML:2.0:attrname-format:uri") {
				t.Errorf("%s with %s: %+v", value, other, got)
			}
		}
	}
	user.EmailVerified = false
	if got := user.values("email"); got != nil {
		t.Errorf("an address that is not verified: %q", got)
	}
}

// Names do not lead from one application, tenant or session to another.
func TestNames(t *testing.T) {
	key, err := seal.NewKey([]byte("12345678901234567890123456789012"))
	if err != nil {
		t.Fatal(err)
	}
	s := &Service{Config{Seal: key}}
	name := func(tenant protocol.Tenant, app client.Application, user Person, sessionID string) string {
		t.Helper()
		name, err := s.nameID(tenant, app, user, sessionID)
		if err != nil {
			t.Fatal(err)
		}
		return name
	}
	app := func(id, format string) client.Application {
		return client.Application{ClientID: id, ServiceProvider: client.ServiceProvider{NameIDFormat: format}}
	}
	user := Person{User: access.User{ID: "usr_a", Email: "ann@example.com"}}
	a, b := protocol.Tenant{ID: "tnt_a"}, protocol.Tenant{ID: "tnt_b"}
	persistent := name(a, app("one", "persistent"), user, "ses_1")
	if persistent != name(a, app("one", "persistent"), user, "ses_2") {
		t.Error("a persistent name changes with the session")
	}
	names := []string{
		persistent, name(a, app("two", "persistent"), user, "ses_1"), name(b, app("one", "persistent"), user, "ses_1"),
		name(a, app("one", "transient"), user, "ses_1"), name(a, app("one", "transient"), user, "ses_2"), name(a, app("two", "transient"), user, "ses_1"),
	}
	if slices.Sort(names); len(slices.Compact(names)) != 6 {
		t.Error("two names are equal")
	}
	if got := name(a, app("one", "emailAddress"), user, "ses_1"); got != "" {
		t.Errorf("an address that is not verified is the name %q", got)
	}
	user.EmailVerified = true
	if got := name(a, app("one", "emailAddress"), user, "ses_1"); got != "ann@example.com" {
		t.Errorf("the address is %q", got)
	}
}

// A request leads to the sign-in that it requires, and its assertion states a class that was
// requested if it can.
func TestContexts(t *testing.T) {
	plain, strong := access.Authentication{}, access.Authentication{SecondFactor: time.Unix(1, 0)}
	for _, tc := range []struct {
		requested              []string
		prefers, requires      bool
		plainClass, strongerTo string
	}{
		{nil, false, false, contexts[1], contexts[2]},
		{contexts[:1], false, false, contexts[0], contexts[0]},
		{contexts[2:3], true, true, contexts[1], contexts[2]},
		{contexts[2:], true, true, contexts[1], contexts[2]},
		{contexts[3:], true, true, contexts[1], contexts[3]},
		{[]string{contexts[2], contexts[0]}, true, false, contexts[0], contexts[2]},
		{[]string{contexts[0], contexts[2]}, false, false, contexts[0], contexts[0]},
	} {
		r := request(client.Application{}, identityprovider.Request{AuthnContexts: tc.requested})
		got := []any{r.AAL2, r.StepUp, contextOf(plain, tc.requested), contextOf(strong, tc.requested)}
		if diff := cmp.Diff([]any{tc.prefers, tc.requires, tc.plainClass, tc.strongerTo}, got); diff != "" {
			t.Errorf("%q: %s", tc.requested, diff)
		}
	}
}

func TestMatches(t *testing.T) {
	own := samlprotocol.NameID{Value: "n", Format: "f", NameQualifier: "idp", SPNameQualifier: "sp"}
	for _, same := range []samlprotocol.NameID{own, {Value: "n"}, {Value: "n", Format: "f"}} {
		if !matches(same, own) {
			t.Errorf("%+v does not match", same)
		}
	}
	for _, other := range []samlprotocol.NameID{
		{Value: "m", Format: "f"}, {Value: "n", Format: "g"}, {Value: "n", NameQualifier: "x"}, {Value: "n", SPNameQualifier: "x"}, {Value: "n", SPProvidedID: "x"},
	} {
		if matches(other, own) {
			t.Errorf("%+v matches", other)
		}
	}
}
