package console

import (
	"net/http"
	"net/url"
	"slices"
)

const (
	issuersPage = securityPage + "/issuers"
	issuersPath = "/api/v1/trusted-issuers"
)

// preset is a kind of platforms, with what an issuer of that kind has besides the defaults and with
// how to set it up. Both are those of docs/workload-identity.md.
type preset struct {
	choice
	help   string
	issuer object
}

var presets = []preset{
	{
		choice{"github", "GitHub Actions", "Jobs of repositories at github.com."},
		"Jobs need the permission id-token: write, and request their token for the audience of this tenant. After this, name the repository and the environment that may deploy in the form of an application, under Authentication: the subject of a protected environment, such as repo:acme/app:environment:production, is the narrowest.",
		object{"issuer": "https://token.actions.githubusercontent.com", "description": "GitHub Actions", "max_lifetime_s": 900.0, "single_use": true},
	},
	{
		choice{"kubernetes", "Kubernetes", "Pods of a cluster, by their service account."},
		"The issuer is in the output of kubectl get --raw /.well-known/openid-configuration. Most clusters cannot be reached from outside: then copy the keys from kubectl get --raw /openid/v1/jwks, and replace them when the cluster rotates its keys. A pod presents its token until the kubelet replaces it, so each token is accepted more than once. After this, name the service account in the form of an application, under Authentication, such as system:serviceaccount:billing:worker.",
		object{"description": "Kubernetes", "single_use": false},
	},
	{
		choice{"spiffe", "SPIFFE", "Workloads with a JWT-SVID of SPIRE."},
		"SPIRE sets the issuer with jwt_issuer. With its OIDC discovery provider the keys are found by the issuer; otherwise copy them from the bundle of the trust domain. SVIDs have no jti, so each is accepted more than once until it expires: keep their lifetime short. After this, name the SPIFFE ID in the form of an application, under Authentication.",
		object{"description": "SPIFFE", "single_use": false},
	},
	{choice{"other", "Another issuer", "Any issuer of signed JWTs."}, "After this, name the subject or the claims of its tokens in the form of an application, under Authentication.", object{}},
}

// issuerDefaults are the members of an issuer that a request does not set.
var issuerDefaults = object{"enabled": true, "signing_algs": []any{"RS256", "PS256", "ES256", "EdDSA"}, "max_lifetime_s": 3600.0, "single_use": true}

// issuerFields are the members of a trusted issuer that can be changed.
var issuerFields = []section{
	{"General", []field{
		{Name: "description", Label: "Description", Kind: asText, Hint: "At most 500 bytes."},
		{Name: "enabled", Label: "Accept its tokens", Kind: asFlag},
	}},
	{"Keys", []field{
		{Name: "jwks_uri", Label: "URL of its keys", Kind: asText, Hint: "An https URL of a JWK set on the public Internet. Without this and without keys, the discovery document of the issuer has the URL."},
		{Name: "jwks", Label: "Its keys", Kind: asJSON, Hint: "A JWK set with public keys, for an issuer that this server cannot reach."},
		{Name: "signing_algs", Label: "Accepted algorithms", Kind: asChoices, Options: []string{"RS256", "RS384", "RS512", "PS256", "PS384", "PS512", "ES256", "ES384", "ES512", "EdDSA"}},
	}},
	{"Tokens", []field{
		{Name: "audience", Label: "Audience", Kind: asText, Hint: "The aud of its tokens, which must have no other. Empty: the issuer of the tenant."},
		{Name: "max_lifetime_s", Label: "Longest lifetime (seconds)", Kind: asNumber, Hint: "60 to 86,400. Empty: 3,600 (1 hour)."},
		{Name: "single_use", Label: "Accept each token once; it needs a jti", Kind: asFlag},
	}},
}

// newIssuerFields has the issuer besides, which cannot be changed.
var newIssuerFields = append([]section{{"Issuer", []field{
	{Name: "issuer", Label: "Issuer", Kind: asText, Required: true, Hint: "The iss of its tokens, byte for byte: an absolute URL of at most 500 characters. It cannot be changed."},
}}}, issuerFields...)

// issuerErrors are the fields that errors are about, by their codes.
var issuerErrors = map[string]string{"trusted_issuer_exists": "issuer"}

func issuers(v *visit) error {
	a, err := v.read(http.MethodGet, query(issuersPath, "cursor", v.form("cursor")), nil)
	if err != nil {
		return err
	}
	data := object{"Issuers": a.Data, "Write": v.may("applications:write"), "Page": issuersPage}
	v.paged(data, a.Meta, issuersPage)
	return v.show("issuers.html", "Trusted issuers", data)
}

// issuerPath returns the path of the operations on the issuer of a page.
func (v *visit) issuerPath() string {
	return issuersPath + "/" + url.PathEscape(v.variable("issuer_id"))
}

// issuerPage returns the path of the page of the issuer.
func (v *visit) issuerPage() string {
	return issuersPage + "/" + url.PathEscape(v.variable("issuer_id"))
}

// nameOf returns what an issuer is called.
func nameOf(issuer object) string {
	for _, member := range []string{"description", "issuer"} {
		if name, _ := issuer[member].(string); name != "" {
			return name
		}
	}
	return "trusted issuer"
}

func issuer(v *visit) error {
	i, err := v.one(v.issuerPath())
	if err != nil {
		return err
	}
	return v.show("issuer.html", nameOf(i), object{"Issuer": i, "Write": v.may("applications:write"), "Page": v.issuerPage(), "Own": v.info.Tenant.BaseURL})
}

const newIssuerTitle = "Trust an issuer"

// newIssuer is the form of the preset that the query names; nil: of none.
func (v *visit) newIssuer() (*form, preset) {
	i := slices.IndexFunc(presets, func(p preset) bool { return p.Value == v.form("preset") })
	if i < 0 {
		return nil, preset{}
	}
	page := issuersPage + "/new"
	return &form{Sections: newIssuerFields, Action: query(page, "preset", presets[i].Value), Button: "Trust", Cancel: page}, presets[i]
}

func newIssuerForm(v *visit) error {
	if err := v.require("applications:write"); err != nil {
		return err
	}
	f, p := v.newIssuer()
	if f == nil {
		var choices []choice
		for _, p := range presets {
			choices = append(choices, p.choice)
		}
		return v.show("choose.html", newIssuerTitle, object{"Text": "A platform gives its workloads tokens, which they exchange for tokens of an application. No secret is stored with them. Choose the platform.", "Choices": choices, "Page": issuersPage + "/new?preset=", "Cancel": issuersPage})
	}
	shown := object{}
	for _, from := range []object{issuerDefaults, p.issuer} {
		for name, value := range from {
			shown[name] = value
		}
	}
	f.show(shown)
	example := object{"issuer": "https://issuer.example.com"}
	for name, value := range p.issuer {
		example[name] = value
	}
	v.calls = append(v.calls, call{http.MethodPost, issuersPath, example})
	return v.show("form.html", newIssuerTitle, object{"Form": f, "Text": p.help})
}

func createIssuer(v *visit) error {
	if err := v.require("applications:write"); err != nil {
		return err
	}
	f, p := v.newIssuer()
	if f == nil {
		v.redirect(issuersPage + "/new")
		return nil
	}
	data := object{"Form": f, "Text": p.help}
	body, wrong := v.body(f, issuerDefaults)
	if wrong != nil {
		return v.again("form.html", newIssuerTitle, data, wrong)
	}
	a, err := v.once(http.MethodPost, issuersPath, body)
	if wrong := f.refused(err, issuerErrors); wrong != nil {
		return v.again("form.html", newIssuerTitle, data, wrong)
	}
	if err != nil {
		return err
	}
	created, _ := a.Data.(object)
	id, _ := created["id"].(string)
	v.redirect(issuersPage + "/" + url.PathEscape(id) + "?done=issuer-created")
	return nil
}

// issuerForm returns the form for the issuer of the page.
func (v *visit) issuerForm() (*form, object, error) {
	i, err := v.one(v.issuerPath())
	return &form{Sections: issuerFields, Action: v.issuerPage() + "/edit", Button: "Save", Cancel: v.issuerPage()}, i, err
}

func editIssuerForm(v *visit) error {
	if err := v.require("applications:write"); err != nil {
		return err
	}
	f, i, err := v.issuerForm()
	if err != nil {
		return err
	}
	f.show(i)
	v.calls = append(v.calls, call{http.MethodPatch, v.issuerPath(), object{"description": i["description"]}})
	return v.show("form.html", "Edit "+nameOf(i), object{"Form": f})
}

func editIssuer(v *visit) error {
	if err := v.require("applications:write"); err != nil {
		return err
	}
	f, i, err := v.issuerForm()
	if err != nil {
		return err
	}
	return v.change(f, "Edit "+nameOf(i), v.issuerPath(), i, issuerErrors, v.issuerPage())
}

// confirmIssuer asks for a confirmation of an action on the issuer of the page, or shows its error.
func (v *visit) confirmIssuer(verb, text string, request call, wrong *fault) error {
	a, err := v.call(http.MethodGet, v.issuerPath(), nil)
	if err != nil {
		return err
	}
	i, _ := a.Data.(object)
	v.calls = append(v.calls, request)
	return v.confirm(verb+" "+nameOf(i)+"?", object{
		"Text": text, "Button": verb, "Action": v.r.URL.EscapedPath(), "Cancel": v.issuerPage(), "Fields": object{},
	}, wrong)
}

func disableIssuerForm(v *visit) error {
	if err := v.require("applications:write"); err != nil {
		return err
	}
	return v.confirmIssuer("Disable", "Workloads of the issuer get no new tokens, at once. Tokens that they have are valid until they expire. Nothing is deleted.", call{http.MethodPatch, v.issuerPath(), object{"enabled": false}}, nil)
}

func disableIssuer(v *visit) error { return v.enableIssuerAs(false, "issuer-disabled") }
func enableIssuer(v *visit) error  { return v.enableIssuerAs(true, "issuer-enabled") }

func (v *visit) enableIssuerAs(enabled bool, done string) error {
	if _, err := v.call(http.MethodPatch, v.issuerPath(), object{"enabled": enabled}); err != nil {
		return err
	}
	v.redirect(v.issuerPage() + "?done=" + done)
	return nil
}

func deleteIssuerForm(v *visit) error {
	if err := v.require("applications:write"); err != nil {
		return err
	}
	return v.deleteIssuerWith(nil)
}

func (v *visit) deleteIssuerWith(wrong *fault) error {
	return v.confirmIssuer("Delete", "Its workloads get no more tokens. An issuer that a workload of an application names cannot be deleted: remove the workload first, or disable the issuer.", call{http.MethodDelete, v.issuerPath(), nil}, wrong)
}

func deleteIssuer(v *visit) error {
	_, err := v.call(http.MethodDelete, v.issuerPath(), nil)
	if e, ok := refused(err); ok && e.Status == http.StatusConflict {
		return v.deleteIssuerWith(faultOf(e))
	}
	if err != nil {
		return err
	}
	v.redirect(issuersPage + "?done=issuer-deleted")
	return nil
}
