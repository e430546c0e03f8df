package console

import (
	"net/http"
	"net/url"
)

func serviceAccounts(v *visit) error {
	a, err := v.read(http.MethodGet, query(v.organizationPath()+"/service-accounts", "cursor", v.form("cursor")), nil)
	if err != nil {
		return err
	}
	data := object{"Accounts": a.Data, "Manage": v.may(manageMembers)}
	v.paged(data, a.Meta, v.organizationPage()+"/service-accounts")
	return v.show("service-accounts.html", "Service accounts", data)
}

const newServiceAccountTitle = "New service account"

// serviceAccountFields are the fields of a service account with a role.
func (v *visit) serviceAccountFields(role any) []section {
	return []section{{"", []field{
		{Name: "name", Label: "Name", Kind: asText, Required: true, Hint: "Such as the program that uses it."},
		{Name: "role", Label: "Role", Kind: asChoice, Required: true, Options: v.manageable(role), Hint: aboutRoles},
	}}}
}

func (v *visit) newServiceAccount() *form {
	return &form{Sections: v.serviceAccountFields(nil), Action: v.organizationPage() + "/service-accounts/new", Button: "Create", Cancel: v.organizationPage() + "/service-accounts"}
}

func newServiceAccountForm(v *visit) error {
	if err := v.require(manageMembers); err != nil {
		return err
	}
	v.calls = append(v.calls, call{http.MethodPost, v.organizationPath() + "/service-accounts", object{"name": "Name", "role": "viewer"}})
	return v.show("form.html", newServiceAccountTitle, object{"Form": v.newServiceAccount()})
}

func createServiceAccount(v *visit) error {
	if err := v.require(manageMembers); err != nil {
		return err
	}
	created, done, err := v.submit(v.newServiceAccount(), newServiceAccountTitle, "", v.organizationPath()+"/service-accounts", nil)
	if !done {
		return err
	}
	id, _ := created["id"].(string)
	return v.showSecret("Service account created", created["client_secret"], object{
		"Text": "A program gets tokens with its client id and its client secret. This is the secret.",
		"ID":   created["client_id"], "IDName": "Client id", "Continue": v.organizationPage() + "/service-accounts/" + url.PathEscape(id),
	})
}

// accountPath returns the path of the operations on the service account of a page.
func (v *visit) accountPath() string {
	return v.below(v.organizationPath(), "service-accounts", "service_account_id")
}

// accountPage returns the path of the page of the service account.
func (v *visit) accountPage() string {
	return v.below(v.organizationPage(), "service-accounts", "service_account_id")
}

func serviceAccount(v *visit) error {
	a, err := v.one(v.accountPath())
	if err != nil {
		return err
	}
	actor, _ := a["client_id"].(string)
	return v.show("service-account.html", titleOf("", a), object{
		"Account": a, "Manage": v.mayManage(a["role"]), "TokenURL": v.info.Tenant.BaseURL + "/oauth2/token", "Events": query(v.organizationPage()+"/events", "actor", actor),
	})
}

// serviceAccountForm returns the form for the service account of the page.
func (v *visit) serviceAccountForm() (*form, object, error) {
	if err := v.require(manageMembers); err != nil {
		return nil, nil, err
	}
	a, err := v.one(v.accountPath())
	if err != nil {
		return nil, nil, err
	}
	name, _ := a["name"].(string)
	role, _ := a["role"].(string)
	a["updated_at"] = role + " " + name // nothing else changes, so it is the version
	return &form{Sections: v.serviceAccountFields(role), Action: v.accountPage() + "/edit", Button: "Save", Cancel: v.accountPage()}, a, nil
}

func editServiceAccountForm(v *visit) error {
	f, a, err := v.serviceAccountForm()
	if err != nil {
		return err
	}
	f.show(a)
	v.calls = append(v.calls, call{http.MethodPatch, v.accountPath(), object{"name": a["name"], "role": a["role"]}})
	return v.show("form.html", titleOf("Edit ", a), object{"Form": f})
}

func editServiceAccount(v *visit) error {
	f, a, err := v.serviceAccountForm()
	if err != nil {
		return err
	}
	return v.change(f, titleOf("Edit ", a), v.accountPath(), a, nil, v.accountPage())
}

// accountNow returns the service account of a page that does something to it.
func (v *visit) accountNow() (object, error) {
	if err := v.require(manageMembers); err != nil {
		return nil, err
	}
	answer, err := v.call(http.MethodGet, v.accountPath(), nil)
	a, _ := answer.Data.(object)
	return a, err
}

func rotateServiceAccountSecretForm(v *visit) error {
	a, err := v.accountNow()
	if err != nil {
		return err
	}
	v.calls = append(v.calls, call{http.MethodPost, v.accountPath() + "/rotate-secret", nil})
	return v.show("rotate.html", titleOf("New secret for ", a), object{
		"Text":   "The service account gets a new secret, which is shown once. The old one stays valid for a while, so that you can replace it without an interruption.",
		"Action": v.accountPage() + "/rotate-secret", "Cancel": v.accountPage(),
	})
}

func rotateServiceAccountSecret(v *visit) error {
	a, err := v.once(http.MethodPost, v.accountPath()+"/rotate-secret", nil)
	if err != nil {
		return err
	}
	rotated, _ := a.Data.(object)
	return v.showSecret("New secret", rotated["client_secret"], object{"Text": "This is the client secret.", "Previous": rotated["previous_expires_at"], "Continue": v.accountPage()})
}

// deleteServiceAccountForm asks for a confirmation.
func deleteServiceAccountForm(v *visit) error { return v.deleteServiceAccountWith(nil) }

func (v *visit) deleteServiceAccountWith(wrong *fault) error {
	a, err := v.accountNow()
	if err != nil {
		return err
	}
	v.calls = append(v.calls, call{http.MethodDelete, v.accountPath(), nil})
	return v.confirm(titleOf("Delete ", a)+"?", object{
		"Text":   "Its role, its secret and its tokens end at once. Programs that use it get no access any more.",
		"Button": "Delete", "Action": v.accountPage() + "/delete", "Cancel": v.accountPage(), "Fields": object{},
	}, wrong)
}

func deleteServiceAccount(v *visit) error {
	return v.delete(v.accountPath(), v.organizationPage()+"/service-accounts", "account-deleted", v.deleteServiceAccountWith)
}
