package console

import (
	"net/http"
	"net/url"
	"strings"
)

// claimsForm returns the form with the configured claims of an application.
func (v *visit) claimsForm() (*form, object, error) {
	a, err := v.one(v.applicationPath())
	if err != nil {
		return nil, nil, err
	}
	return &form{Sections: []section{{"", []field{
		{Name: "claims", Label: "Claims", Kind: asJSON, Hint: `A JSON list, at most 20, such as [{"name": "roles", "where": ["id_token"], "source": {"groups": "slug"}}]`},
	}}}, Action: v.applicationPage() + "/claims"}, a, nil
}

// claimsPage shows the configured claims of an application, and those that a token for a user would
// have.
func claimsPage(v *visit) error {
	f, a, err := v.claimsForm()
	if err != nil {
		return err
	}
	f.show(a)
	return v.showClaims(f, a, object{}, nil)
}

func (v *visit) showClaims(f *form, a, data object, wrong *fault) error {
	title := titleOf("Claims of ", a)
	data["Form"], data["Application"], data["User"], data["Write"], data["Page"] = f, a, v.form("user"), v.may("applications:write"), v.applicationPage()
	data["Preview"] = v.may("users:read") && v.may("resources:read")
	if wrong != nil {
		return v.again("application-claims.html", title, data, wrong)
	}
	return v.show("application-claims.html", title, data)
}

// previewClaims tries the claims of the form for a user, and stores nothing.
func previewClaims(v *visit) error {
	f, a, err := v.claimsForm()
	if err != nil {
		return err
	}
	body, wrong := v.body(f, a)
	if wrong != nil {
		return v.showClaims(f, a, object{}, wrong)
	}
	if body["claims"], _ = f.Sections[0].Fields[0].read(f.typed["claims"]); body["claims"] == nil {
		body["claims"] = []any{}
	}
	if id := strings.TrimSpace(v.form("user")); id != "" {
		if body["user_id"], wrong, err = v.userID(id); err != nil {
			return err
		}
		if wrong != nil {
			return v.showClaims(f, a, object{}, wrong)
		}
	}
	answer, err := v.read(http.MethodPost, v.applicationPath()+"/claims/preview", body)
	if wrong := f.refused(err, nil); wrong != nil {
		if wrong.field == "" {
			wrong.field = "user"
		}
		return v.showClaims(f, a, object{}, wrong)
	}
	if e, ok := refused(err); ok && e.Code == "user_not_found" {
		return v.showClaims(f, a, object{}, &fault{e.Status, "User not found, or disabled.", "user"})
	}
	if err != nil {
		return err
	}
	found, _ := answer.Data.(object)
	type part struct{ Name, Claims string }
	var parts []part
	for _, name := range []string{"id_token", "access_token", "userinfo"} {
		parts = append(parts, part{map[string]string{"id_token": "ID token", "access_token": "Access token", "userinfo": "UserInfo"}[name], indented(found[name])})
	}
	return v.showClaims(f, a, object{"Parts": parts, "Omitted": found["omitted"]}, nil)
}

// saveClaims stores the claims of the form.
func saveClaims(v *visit) error {
	if err := v.require("applications:write"); err != nil {
		return err
	}
	f, a, err := v.claimsForm()
	if err != nil {
		return err
	}
	body, wrong := v.body(f, a)
	if wrong == nil && len(body) > 0 {
		_, err = v.call(http.MethodPatch, v.applicationPath(), body)
		wrong = f.refused(err, nil)
	}
	if wrong != nil {
		return v.showClaims(f, a, object{}, wrong)
	}
	if err != nil {
		return err
	}
	v.redirect(v.applicationPage() + "/claims?done=saved")
	return nil
}

// userID returns the id of a user that is given by the id or by the address.
func (v *visit) userID(text string) (id string, wrong *fault, err error) {
	if !strings.Contains(text, "@") {
		return text, nil, nil
	}
	a, err := v.call(http.MethodGet, "/api/v1/users?email="+url.QueryEscape(text), nil)
	if err != nil {
		return "", nil, err
	}
	found, _ := a.Data.([]any)
	if len(found) == 0 {
		return "", invalid("user", "No user has this address."), nil
	}
	u, _ := found[0].(object)
	id, _ = u["id"].(string)
	return id, nil, nil
}
