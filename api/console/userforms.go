package console

import (
	"net/http"
	"net/url"
)

// Creating, changing and deleting users, and what else an administrator does with an account. An
// address is changed by its user only.

const usersWrite = "users:write" // the scope

// signsInHere is the type of users that the control plane does not manage; see [field].
const signsInHere = "own"

var (
	nameFields = []field{
		{Name: "name", Label: "Name", Kind: asText, Hint: "Texts have at most 500 bytes.", of: signsInHere},
		{Name: "given_name", Label: "Given name", Kind: asText},
		{Name: "family_name", Label: "Family name", Kind: asText},
		{Name: "locale", Label: "Language", Kind: asText, Hint: "A language tag, such as de-AT. Mails are in this language if the tenant offers it."},
		{Name: "picture", Label: "Picture", Kind: asText, Hint: "An https URL."},
		{Name: "attributes", Label: "Attributes", Kind: asJSON, Hint: "A JSON object of at most 16 KiB. Applications can add attributes to their tokens."},
	}
	signInFields = []field{
		{Name: "email_verified", Label: "The address is confirmed", Kind: asFlag, of: signsInHere},
		{Name: "password_must_be_reset", Label: "Must choose another password at the next sign-in", Kind: asFlag, of: signsInHere},
	}

	newUserFields = []section{
		{"", append([]field{{Name: "email", Label: "E-mail address", Kind: asText, Required: true, Hint: "Users sign in with it. It cannot be changed here later."}}, nameFields...)},
		{"Sign-in", append([]field{{Name: "password", Label: "Password", Kind: asSecret, Hint: "Empty: the user has none, and chooses one by a link that you send."}}, signInFields...)},
	}
	userFields = []section{
		{"", nameFields},
		{"Sign-in", append([]field{{Name: "password", Label: "New password", Kind: asSecret, Hint: "It ends all sessions of the user. Empty: the password stays.", of: signsInHere}}, signInFields...)},
	}

	// userCodes are the fields that errors are about.
	userCodes = map[string]string{"email_invalid": "email", "user_exists": "email", "password_policy_violation": "password"}
)

const newUserTitle = "New user"

func newUser() *form {
	return &form{Sections: newUserFields, Action: usersPage + "/new", Button: "Create", Cancel: usersPage}
}

func newUserForm(v *visit) error {
	if err := v.require(usersWrite); err != nil {
		return err
	}
	f := newUser()
	f.show(object{})
	v.calls = append(v.calls, call{http.MethodPost, "/api/v1/users", object{"email": "ann@example.com"}})
	return v.show("form.html", newUserTitle, object{"Form": f})
}

func createUser(v *visit) error {
	if err := v.require(usersWrite); err != nil {
		return err
	}
	u, done, err := v.submit(newUser(), newUserTitle, "", "/api/v1/users", userCodes)
	if !done {
		return err
	}
	id, _ := u["id"].(string)
	v.redirect(usersPage + "/" + url.PathEscape(id) + "?done=user-created")
	return nil
}

// userForm returns the form for the user of the page.
func (v *visit) userForm() (f *form, u object, title string, err error) {
	if err := v.require(usersWrite); err != nil {
		return nil, nil, "", err
	}
	a, err := v.call(http.MethodGet, v.userPath(), nil)
	u, _ = a.Data.(object)
	kind := signsInHere
	if u["managed_by"] != nil {
		kind = ""
	}
	email, _ := u["email"].(string)
	return &form{Sections: sectionsOf(userFields, kind), Action: v.userPage() + "/edit", Button: "Save", Cancel: v.userPage()}, u, "Edit " + email, err
}

func editUserForm(v *visit) error {
	f, u, title, err := v.userForm()
	if err != nil {
		return err
	}
	f.show(u)
	v.calls = append(v.calls, call{http.MethodPatch, v.userPath(), object{"name": u["name"]}})
	return v.show("form.html", title, object{"Form": f})
}

func editUser(v *visit) error {
	f, u, title, err := v.userForm()
	if err != nil {
		return err
	}
	return v.change(f, title, v.userPath(), u, userCodes, v.userPage())
}

// confirmUser asks for a confirmation of what a call does with the account of the page. question ends
// with the address, and page is the path below that of the user.
func (v *visit) confirmUser(question, button, text, page string, c call) error {
	if err := v.require(usersWrite); err != nil {
		return err
	}
	a, err := v.call(http.MethodGet, v.userPath(), nil)
	if err != nil {
		return err
	}
	u, _ := a.Data.(object)
	email, _ := u["email"].(string)
	v.calls = append(v.calls, c)
	return v.confirm(question+" "+email+"?", object{
		"Text": text, "Button": button, "Action": v.userPage() + page, "Cancel": v.userPage(), "Fields": object{},
	}, nil)
}

func deleteUserForm(v *visit) error {
	return v.confirmUser("Delete", "Delete", "The account is deleted for good, with its sessions, factors, consents and memberships, and with all relations that name the user.", "/delete", call{http.MethodDelete, v.userPath(), nil})
}

func deleteUser(v *visit) error {
	if _, err := v.once(http.MethodDelete, v.userPath(), nil); err != nil {
		return err
	}
	v.redirect(usersPage + "?done=user-deleted")
	return nil
}

// sendReset mails a link to a new password.
func sendReset(v *visit) error {
	return v.act(v.userPath()+"/reset-password", nil, v.userPage(), "reset-sent")
}

func endSessionsForm(v *visit) error {
	return v.confirmUser("Sign out", "Sign out", "All sessions of the user end at once, and with them the tokens that were issued in them.", "/sign-out", call{http.MethodDelete, v.userPath() + "/sessions", nil})
}

func endSessions(v *visit) error {
	if _, err := v.once(http.MethodDelete, v.userPath()+"/sessions", nil); err != nil {
		return err
	}
	v.redirect(v.userPage() + "?done=signed-out")
	return nil
}

// endSession ends one session.
func endSession(v *visit) error {
	if _, err := v.once(http.MethodDelete, v.userPath()+"/sessions/"+url.PathEscape(v.variable("session_id")), nil); err != nil {
		return err
	}
	v.redirect(v.userPage() + "?done=session-ended")
	return nil
}

func resetFactorsForm(v *visit) error {
	return v.confirmUser("Remove all factors of", "Remove all", "All second factors and passkeys are removed, all sessions end, and the user must add a factor at the next sign-in.", "/reset-factors", call{http.MethodPost, v.userPath() + "/force-mfa-reset", nil})
}

func resetFactors(v *visit) error {
	return v.act(v.userPath()+"/force-mfa-reset", nil, v.userPage(), "factors-reset")
}

func removeFactorForm(v *visit) error {
	return v.confirmUser("Remove a factor of", "Remove", "The user cannot sign in with this factor any more.", "/factors/"+url.PathEscape(v.variable("factor_id"))+"/remove", call{http.MethodDelete, v.factorPath(), nil})
}

// factorPath returns the path of the operation on the factor of a page.
func (v *visit) factorPath() string {
	return v.userPath() + "/mfa/factors/" + url.PathEscape(v.variable("factor_id"))
}

func removeFactor(v *visit) error {
	if _, err := v.once(http.MethodDelete, v.factorPath(), nil); err != nil {
		return err
	}
	v.redirect(v.userPage() + "?done=factor-removed")
	return nil
}
