package console

import (
	"encoding/json"
	"io"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"testing"

	"github.com/gorilla/mux"
)

// applicationAPI has an application, and metadata of a server that gets certificates of clients or not.
type applicationAPI struct {
	application  object
	certificates bool
	patched      string // the body of the last change
}

func (a *applicationAPI) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	switch {
	case r.URL.Path == "/.well-known/oauth-authorization-server":
		metadata := object{"issuer": "https://dev.test"}
		if a.certificates {
			metadata["tls_client_certificate_bound_access_tokens"] = true
		}
		_ = json.NewEncoder(w).Encode(metadata)
		return
	case r.Method == http.MethodPatch:
		text, _ := io.ReadAll(r.Body)
		a.patched = string(text)
	}
	_ = json.NewEncoder(w).Encode(object{"data": a.application})
}

// Certificates are offered by servers that get them. Others keep what is stored.
func TestCertificatesOfApplications(t *testing.T) {
	plain := object{"id": "app_1", "name": "Worker", "type": "m2m", "updated_at": "1", "token_endpoint_auth_method": "client_secret_basic", "tls_client_auth_san_dns": nil, "tls_client_certificate_bound_access_tokens": false}
	certified := object{"id": "app_1", "name": "Worker", "type": "m2m", "updated_at": "1", "token_endpoint_auth_method": "tls_client_auth", "tls_client_auth_san_dns": "worker.example.com", "tls_client_certificate_bound_access_tokens": true}
	const subject, name, bound = `name="tls_client_auth_subject_dn"`, `name="tls_client_auth_san_dns"`, `name="tls_client_certificate_bound_access_tokens"`
	const byName, selfSigned = ">tls_client_auth<", ">self_signed_tls_client_auth<"
	for _, of := range []struct {
		name         string
		application  object // nil: a new one
		certificates bool
		want         []string
	}{
		{"new, with certificates", nil, true, []string{byName, selfSigned}},
		{"new, without", nil, false, nil},
		{"with certificates", plain, true, []string{byName, selfSigned, subject, name, bound}},
		{"without", plain, false, nil},
		{"stored, without", certified, false, []string{">tls_client_auth<", name, bound}},
	} {
		v, w := sent(t, &applicationAPI{application: of.application, certificates: of.certificates}, "ses_a", url.Values{"type": {"m2m"}})
		v.r = mux.SetURLVars(v.r, map[string]string{"application_id": "app_1"})
		show := editApplicationForm
		if of.application == nil {
			show = newApplicationForm
		}
		if err := show(v); err != nil {
			t.Fatal(err)
		}
		page := strings.NewReplacer(" selected>", ">").Replace(w.Body.String())
		for _, what := range []string{byName, selfSigned, subject, name, bound} {
			if got := strings.Contains(page, what); got != slices.Contains(of.want, what) {
				t.Errorf("%s: %s is there: %t", of.name, what, got)
			}
		}
	}

	// The form of an application with a certificate, as the browser sends it with another name.
	api := &applicationAPI{application: certified}
	v, w := sent(t, api, "ses_a", url.Values{
		"version": {"1"}, "name": {"Other"}, "profile": {"default"}, "token_endpoint_auth_method": {"tls_client_auth"}, "tls_client_auth_san_dns": {"worker.example.com"}, "tls_client_certificate_bound_access_tokens": {"yes"},
		"group_scopes": {"all"}, "access_token_signing_alg": {"ES256"}, "token_exchange/subject_tokens": {"any"},
	})
	v.r = mux.SetURLVars(v.r, map[string]string{"application_id": "app_1"})
	if err := editApplication(v); err != nil || w.Code != http.StatusSeeOther || strings.Contains(api.patched, "tls") || !strings.Contains(api.patched, `"name":"Other"`) {
		t.Errorf("%v, %d, sent %s", err, w.Code, api.patched)
	}
}
