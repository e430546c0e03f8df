package relyingparty

import (
	"encoding/json"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"testing"

	"github.com/lestrrat-go/jwx/v3/jwa"
)

// Directories at Microsoft: two of organizations, the first with a domain.
const (
	firstDirectory  = "00000000-1111-2222-3333-444444444444"
	secondDirectory = "55555555-6666-7777-8888-999999999999"
	firstDomain     = "contoso.onmicrosoft.com"
)

const microsoftLogin = "/login.microsoftonline.com/"

// issuer returns the issuer of a directory at the recorded provider.
func (r *recorded) issuer(id string) string { return issuerOf(r.Discovery["issuer"].(string), id) }

// publish serves the documents of a directory, as Microsoft does: its endpoints are below part, and
// the issuer is that of a directory with an id, or the template.
func (r *recorded) publish(directory, part, id string) {
	r.t.Helper()
	m := object{}
	below := strings.ReplaceAll(string(asText(r.t, r.Discovery)), microsoftLogin+"common/", microsoftLogin+part+"/")
	if err := json.Unmarshal([]byte(below), &m); err != nil {
		r.t.Fatal(err)
	}
	m["issuer"] = r.issuer(id)
	serve := func(document any) http.HandlerFunc {
		return func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write(asText(r.t, document)) }
	}
	r.on(microsoftLogin+directory+"/v2.0"+wellKnown, serve(m))
	r.on(pathOf(r.t, m["jwks_uri"].(string)), serve(r.jwks))
	r.on(pathOf(r.t, m["token_endpoint"].(string)), r.endpoint)
}

// openMicrosoft is a local Microsoft with all forms of directories. Every token endpoint issues
// tokens of every directory, which the true ones do not.
func openMicrosoft(t *testing.T, directory string) *recorded {
	t.Helper()
	r := openRecorded(t, Microsoft)
	r.of.Directory = directory
	for name, of := range map[string]struct{ part, id string }{
		"common": {"common", placeOfID}, "organizations": {"organizations", placeOfID}, "consumers": {"consumers", consumers},
		firstDirectory: {firstDirectory, firstDirectory}, firstDomain: {firstDirectory, firstDirectory},
	} {
		r.publish(name, of.part, of.id)
	}
	return r
}

// Each form of a directory allows the users of some directories, by the issuer and the tenant of
// their tokens.
func TestDirectories(t *testing.T) {
	for directory, test := range map[string]struct {
		part    string // of the endpoints
		allowed []string
	}{
		"common":        {"common", []string{firstDirectory, secondDirectory, consumers}},
		"organizations": {"organizations", []string{firstDirectory, secondDirectory}},
		"consumers":     {"consumers", []string{consumers}},
		firstDirectory:  {firstDirectory, []string{firstDirectory}},
		firstDomain:     {firstDirectory, []string{firstDirectory}},
	} {
		t.Run(directory, func(t *testing.T) {
			r := openMicrosoft(t, directory)
			whole := r.claims
			all := []string{firstDirectory, secondDirectory, consumers}
			for _, id := range all {
				allowed := slices.Contains(test.allowed, id)
				r.claims = with(whole, object{"iss": r.issuer(id), "tid": id})
				i, err := r.in(nil)
				if !allowed {
					wantError(t, "token of "+id, err, Invalid, IDToken, "iss is not the issuer")
				} else if err != nil || i.Issuer != r.issuer(id) {
					t.Errorf("token of %s: %s, %s", id, i.Issuer, detail(err))
				}
				// The same holds for the issuer in an answer.
				r.claims = with(whole, object{"iss": r.issuer(test.allowed[0]), "tid": test.allowed[0]})
				_, err = r.in(func(v url.Values) { v.Set("iss", r.issuer(id)) })
				if !allowed {
					wantError(t, "answer of "+id, err, Invalid, Authorization, "iss")
				} else if err != nil {
					t.Errorf("answer of %s: %s", id, detail(err))
				}
				for _, tid := range []any{nil, "", placeOfID, firstDirectory, secondDirectory, consumers, []string{id}, strings.ToUpper(id) + "a"} {
					if tid == id {
						continue
					}
					r.claims = with(whole, object{"iss": r.issuer(id), "tid": tid})
					_, err := r.in(nil)
					wantError(t, "mixed claims", err, Invalid, IDToken, "iss is not the issuer")
				}
				for _, iss := range []string{"https://evil.example/" + id + "/v2.0", r.issuer(id) + "/", r.issuer("x/" + id), r.Discovery["issuer"].(string)} {
					r.claims = with(whole, object{"iss": iss, "tid": id})
					_, err := r.in(nil)
					wantError(t, iss, err, Invalid, IDToken, "iss is not the issuer")
				}
			}
			to, _, err := r.Begin(t.Context(), r.of, Request{RedirectURI: redirectURI})
			if below := r.URL + microsoftLogin + test.part + "/"; err != nil || !strings.HasPrefix(to, below) {
				t.Errorf("%s, %s", to, detail(err))
			}
			if n := r.count(microsoftLogin + "common/v2.0" + wellKnown); (n > 0) != (directory == "common") {
				t.Errorf("%d requests for common", n)
			}
		})
	}
}

// A logout token of another directory ends no session.
func TestDirectoryOfLogoutToken(t *testing.T) {
	r := openMicrosoft(t, firstDirectory)
	token := func(id string) string {
		now := r.provider.clock.Now().Unix()
		return sign(t, jwa.RS256(), signers()["rsa"], object{"kid": "rsa"}, object{
			"iss": r.issuer(id), "tid": id, "aud": clientID, "iat": now, "exp": now + 60, "jti": "1", "sub": "a", "events": object{logoutEvent: object{}},
		})
	}
	if _, err := r.VerifyLogoutToken(t.Context(), r.of, token(firstDirectory)); err != nil {
		t.Error(detail(err))
	}
	_, err := r.VerifyLogoutToken(t.Context(), r.of, token(secondDirectory))
	wantError(t, "another directory", err, Invalid, LogoutToken, "iss is not the issuer")
}

// The issuer of the metadata is that of the directory.
func TestMetadataOfDirectory(t *testing.T) {
	for what, test := range map[string]struct{ directory, issuer string }{
		"id with the issuer of another":         {firstDirectory, secondDirectory},
		"id with the template":                  {firstDirectory, placeOfID},
		"domain with the template":              {firstDomain, placeOfID},
		"domain without the id of a directory":  {firstDomain, "common"},
		"domain with a path":                    {firstDomain, "x/" + firstDirectory},
		"consumers with the template":           {"consumers", placeOfID},
		"consumers with another directory":      {"consumers", firstDirectory},
		"common with one directory":             {"common", firstDirectory},
		"organizations with personal accounts":  {"organizations", consumers},
		"organizations with only one directory": {"organizations", firstDirectory},
	} {
		r := openMicrosoft(t, test.directory)
		r.publish(test.directory, test.directory, test.issuer)
		_, _, err := r.Begin(t.Context(), r.of, Request{RedirectURI: redirectURI})
		wantError(t, what, err, Misconfigured, Discovery, "issuer")
	}

	// A domain that has moved to another directory leads to this one, but not in the middle of a
	// sign-in.
	r := openMicrosoft(t, firstDomain)
	pending, params := r.begin(r.Service, r.of, Request{})
	r.publish(firstDomain, secondDirectory, secondDirectory)
	r.provider.clock.advance(fetchEvery)
	_, err := r.Finish(t.Context(), r.of, pending, params)
	wantError(t, "a moved domain", err, Stale, Authorization, "another provider")
	_, err = r.in(nil)
	wantError(t, "token of the former directory", err, Invalid, IDToken, "iss is not the issuer")
	r.claims = with(r.claims, object{"iss": r.issuer(secondDirectory), "tid": secondDirectory})
	if _, err := r.in(nil); err != nil {
		t.Error(detail(err))
	}
}

func TestCheckDirectory(t *testing.T) {
	r := openMicrosoft(t, "")
	preset := Presets()[Microsoft]
	for _, directory := range []string{"common", "organizations", "consumers", firstDirectory, consumers, firstDomain, "a.b", "xn--bcher-kva.example"} {
		if err := preset.CheckDirectory(directory); err != nil {
			t.Errorf("%s: %s", directory, detail(err))
		}
	}
	for _, directory := range []string{
		"", "Common", "contoso", "common/", "../x", "a/b.c", "a.b/../c", "a.b?c", "a.b#c", "a..b", ".a.b", "a.b.", "-a.b", "a-.b", "a b.c", "a.b\n", "a%2fb.c",
		placeOfID, strings.ToUpper("abcdefab" + firstDirectory[8:]), firstDirectory + "0", firstDirectory[1:], strings.Repeat("a.", 126) + "ab",
	} {
		r.of.Directory = directory
		_, _, err := r.Begin(t.Context(), r.of, Request{RedirectURI: redirectURI})
		wantError(t, directory, err, Misconfigured, Configuration, "directory")
	}
	if len(r.requests) != 0 {
		t.Errorf("requests were sent: %v", r.requests)
	}
	if err := Presets()[Google].CheckDirectory(""); err != nil {
		t.Error(detail(err))
	}
}
