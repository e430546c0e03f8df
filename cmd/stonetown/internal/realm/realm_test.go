package realm

import (
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"stonetown/identity/password"
)

// secret is the password of all users of the example.
const secret = "correct horse battery staple"

// export returns the export of the example.
func export(t testing.TB) []byte {
	t.Helper()
	text, err := os.ReadFile("../../../../examples/keycloak/realm.json")
	if err != nil {
		t.Fatal(err)
	}
	return text
}

func TestKeycloak(t *testing.T) {
	r, err := Keycloak(export(t))
	if err != nil {
		t.Fatal(err)
	}
	byEmail := map[string]User{}
	for _, u := range r.Users {
		byEmail[u.Email] = u
	}
	for _, email := range []string{"ann@example.com", "bob@example.com", "cleo@example.com"} {
		hash := byEmail[email].PasswordHash
		if hash == nil {
			t.Fatalf("%s has no password", email)
		}
		imported, err := password.ImportHash(hash.Algorithm, hash.Value)
		if err != nil {
			t.Fatal(email, err)
		}
		if ok, err := imported.Verify(t.Context(), secret); !ok || err != nil {
			t.Errorf("%s: the password is not that of the hash: %v", email, err)
		}
		if ok, err := imported.Verify(t.Context(), "another"); ok || err != nil {
			t.Errorf("%s: another password is accepted, %v", email, err)
		}
	}
	ann := byEmail["ann@example.com"]
	ann.PasswordHash = nil
	want := User{
		Email: "ann@example.com", EmailVerified: true, Name: "Ann Lee", GivenName: "Ann", FamilyName: "Lee", Locale: "de",
		Attributes: map[string]any{"department": "research", "badges": []string{"a", "b"}, "username": "ann"}, Groups: []string{"sales-north-america"},
	}
	if diff := cmp.Diff(want, ann); diff != "" {
		t.Error(diff)
	}
	if bob := byEmail["bob@example.com"]; !bob.Disabled || !bob.PasswordMustBeReset || bob.EmailVerified || bob.Attributes != nil {
		t.Errorf("%+v", bob)
	}
	if len(r.Users) != 4 || byEmail["dora@example.com"].PasswordHash != nil {
		t.Errorf("%d users: %+v", len(r.Users), r.Users)
	}
	if diff := cmp.Diff([]Group{{Slug: "sales", Name: "Sales"}, {Slug: "sales-north-america", Name: "Sales/North America"}}, r.Groups); diff != "" {
		t.Error(diff)
	}
	applications := []Application{
		{FormerID: "app", Name: "app", Type: "native", RedirectURIs: []string{"com.example.app:/cb"}},
		{FormerID: "jobs", Name: "jobs", Type: "m2m"},
		{FormerID: "spa", Name: "spa", Type: "spa", RedirectURIs: []string{"https://spa.example.com/cb"}, AllowedOrigins: []string{"https://spa.example.com", "https://other.example.com"}},
		{FormerID: "web", Name: "Shop", Type: "server", RedirectURIs: []string{"https://shop.example.com/callback"}, PostLogoutRedirectURIs: []string{"https://shop.example.com/bye"}, BackchannelLogoutURI: "https://shop.example.com/logout"},
	}
	if diff := cmp.Diff(applications, r.Applications); diff != "" {
		t.Error(diff)
	}
	report := ""
	for _, f := range r.Report {
		report += f.String() + "\n"
	}
	for _, want := range []string{
		"group /Sales: gives roles", "group /sales: has the slug sales, as /Sales: left out", "group /営業: its name has no letter", "user ann: is in the group /sales",
		"a second factor or passkey (otp) cannot be moved", "realm role buyer: roles", `user dora: the password is left out, and the user has to choose a new one: it is hashed with "md5"`,
		"user nobody: has no e-mail address", "user ANN@example.com: the address belongs to another user", "links with other identity providers are not moved",
		"client web: the redirect URI https://shop.example.com/* is a pattern", "client web: the implicit flow and the password grant", "client api: only verifies", "client old: is disabled", "client legacy: speaks saml",
		"identity provider google: has to be set up again", "attribute department: users can change",
	} {
		if !strings.Contains(report, want) {
			t.Errorf("the report lacks %q:\n%s", want, report)
		}
	}
	if strings.Contains(report, "default-roles") || strings.Contains(report, "eA==") {
		t.Error(report)
	}
}

func TestAuth0(t *testing.T) {
	const bcrypt = "$2b$10$ebxEv8UjlEtWKdgZcDiHGukbVcsBNWRQLgN3VkOkhyONDjxEJ2xmK"
	users := []byte("\xef\xbb\xbf" + `{"user_id":"auth0|1","email":"ann@example.com","email_verified":true,"name":"ann@example.com","picture":"https://s.gravatar.com/avatar/1","user_metadata":{"plan":"x"},"app_metadata":{"role":"admin"}}
{"user_id":"google-oauth2|2","email":"bob@example.com","name":"Bob","picture":"https://example.com/b.png","identities":[{"provider":"google-oauth2","user_id":"2"}]}

{"user_id":"auth0|3","email":"cleo@example.com","blocked":true}`)
	hashes := []byte(`[{"_id":{"$oid":"1"},"email":"ann@example.com","passwordHash":"` + bcrypt + `"}]`)
	r, err := Auth0(users, hashes)
	if err != nil {
		t.Fatal(err)
	}
	want := []User{
		{Email: "ann@example.com", EmailVerified: true, Attributes: map[string]any{"user_metadata": map[string]any{"plan": "x"}}, PasswordHash: &PasswordHash{"bcrypt", bcrypt}},
		{Email: "bob@example.com", Name: "Bob", Picture: "https://example.com/b.png"},
		{Email: "cleo@example.com", Disabled: true},
	}
	if diff := cmp.Diff(want, r.Users); diff != "" {
		t.Error(diff)
	}
	if len(r.Report) != 3 {
		t.Errorf("%v", r.Report)
	}
	if r, err = Auth0(users); err != nil || !slices.ContainsFunc(r.Report, func(f Finding) bool { return f.Count == 2 && strings.Contains(f.Message, "no file of password hashes") }) {
		t.Errorf("%v, %v", r, err)
	}
}

func TestBadExports(t *testing.T) {
	for _, text := range []string{"", "x", "[]", "{}", `{"realm":1}`, `{"users":[{"credentials":"$2b$10$secret"}]}`} {
		if _, err := Keycloak([]byte(text)); err == nil || strings.Contains(err.Error(), "secret") {
			t.Errorf("Keycloak(%s): %v", text, err)
		}
		if _, err := Auth0([]byte(text)); err == nil || strings.Contains(err.Error(), "secret") {
			t.Errorf("Auth0(%s): %v", text, err)
		}
	}
}

func TestSlug(t *testing.T) {
	for path, want := range map[string]string{
		"/Sales/North America": "sales-north-america", "--a--b--": "a-b", "/ä/ö": "", strings.Repeat("a", 62) + "-b": strings.Repeat("a", 62), "": "",
	} {
		if got := Slug(path); got != want {
			t.Errorf("Slug(%q) = %q, want %q", path, got, want)
		}
	}
}

// FuzzExports: no export crashes a reader, and users have addresses and slugs that are allowed.
func FuzzExports(f *testing.F) {
	f.Add(export(f))
	f.Add([]byte(`{"user_id":"auth0|1","email":"a@b"}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		for _, read := range []func() (*Realm, error){func() (*Realm, error) { return Keycloak(data) }, func() (*Realm, error) { return Auth0(data) }} {
			r, err := read()
			if err != nil {
				continue
			}
			for _, u := range r.Users {
				if u.Email == "" {
					t.Error("a user has no address")
				}
				for _, slug := range u.Groups {
					if !slices.ContainsFunc(r.Groups, func(g Group) bool { return g.Slug == slug }) {
						t.Errorf("the group %q is not created", slug)
					}
				}
			}
		}
	})
}
