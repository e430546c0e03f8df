package access

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"stonetown/oauth/scope"
)

func TestClaims(t *testing.T) {
	ann := User{ID: "usr_1", Email: "ann@example.com", EmailVerified: true, Name: "Ann", UpdatedAt: time.Unix(60, 0), Attributes: []byte(`{
		"nickname": "a", "preferred_username": "ann", "website": "https://ann.example.com", "zoneinfo": "Europe/Zurich", "department": "research",
		"gender": 1, "birthdate": null, "profile": ["x"], "middle_name": "", "phone_number": "+41441234567", "phone_number_verified": true,
		"sub": "usr_2", "email": "eve@example.com", "email_verified": true, "name": "Eve", "acr": "aal2", "iss": "https://evil.test", "updated_at": 0,
		"address": {"locality": "Bern", "country": "CH", "postal_code": 3000, "x": "y", "formatted": ""}}`)}
	claims := func(more map[string]any) map[string]any {
		more["sub"] = "usr_1"
		return more
	}
	long := User{ID: "usr_1", Attributes: []byte(`{"phone_number": "` + strings.Repeat("1", maxClaim+1) + `", "address": {"formatted": "` + strings.Repeat("x", maxClaim+1) + `"}}`)}
	for _, test := range []struct {
		name   string
		user   User
		scopes string
		want   map[string]any
	}{
		{"openid", ann, "openid", map[string]any{}},
		{"profile", ann, "openid profile", map[string]any{
			"name": "Ann", "nickname": "a", "preferred_username": "ann", "website": "https://ann.example.com", "zoneinfo": "Europe/Zurich", "updated_at": int64(60),
		}},
		{"email", ann, "openid email", map[string]any{"email": "ann@example.com", "email_verified": true}},
		{"phone", ann, "openid phone", map[string]any{"phone_number": "+41441234567", "phone_number_verified": false}},
		{"address", ann, "openid address", map[string]any{"address": map[string]string{"locality": "Bern", "country": "CH"}}},
		{"no attributes", User{ID: "usr_1"}, "phone address", map[string]any{}},
		{"too long", long, "phone address", map[string]any{}},
		{"an address that is a text", User{ID: "usr_1", Attributes: []byte(`{"address":"Bern","phone_number":41}`)}, "phone address", map[string]any{}},
		{"attributes that are no object", User{ID: "usr_1", Attributes: []byte(`[]`)}, "phone address", map[string]any{}},
	} {
		if diff := cmp.Diff(claims(test.want), test.user.Claims(scope.SetOf(test.scopes), nil)); diff != "" {
			t.Errorf("%s: %s", test.name, diff)
		}
	}
}

// Requested claims add to those of the scopes, with the same rules for their values.
func TestRequestedClaims(t *testing.T) {
	ann := User{ID: "usr_1", Email: "ann@example.com", EmailVerified: true, Name: "Ann", UpdatedAt: time.Unix(60, 0), Attributes: []byte(`{"nickname": "a", "phone_number": "+41441234567", "phone_number_verified": true, "gender": 1}`)}
	got := ann.Claims(scope.SetOf("openid email"), []string{"nickname", "phone_number_verified", "gender", "updated_at", "department"})
	want := map[string]any{"sub": "usr_1", "email": "ann@example.com", "email_verified": true, "nickname": "a", "phone_number_verified": false, "updated_at": int64(60)}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	r := RequestedClaims{UserInfo: []string{"phone_number", "email"}, IDToken: []string{"name", "email"}}
	if diff := cmp.Diff([]string{"name", "email", "phone_number"}, r.Names()); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff(RequestedClaims{[]string{"email"}, []string{"email"}}, r.For([]string{"openid", "email"})); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff(RequestedClaims{[]string{"phone_number"}, []string{"name"}}, r.Beyond([]string{"openid", "email"})); diff != "" {
		t.Error(diff)
	}
	for name := range scopeOf {
		if !slices.Contains(StandardClaims, name) {
			t.Errorf("%s is no standard claim", name)
		}
	}
	if len(scopeOf) != len(StandardClaims)-1 { // sub is of no scope
		t.Errorf("%d claims have a scope", len(scopeOf))
	}
}
