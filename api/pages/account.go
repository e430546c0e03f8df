package pages

import (
	"encoding/json"
	"errors"
	"net/http"
	"slices"
)

// problemOf returns the error response of an operation, if err is one.
func problemOf(err error) (*problem, bool) {
	var p *problem
	return p, errors.As(err, &p)
}

// is reports whether err is an error response with a code.
func is(err error, code string) bool {
	p, ok := problemOf(err)
	return ok && p.code == code
}

func account(v *visit) error {
	profile, err := v.one(http.MethodGet, "/api/v1/me/profile", nil)
	if err != nil {
		return err
	}
	return v.show("account.html", "Your profile", profile)
}

func saveProfile(v *visit) error {
	patch := object{}
	for _, name := range []string{"name", "given_name", "family_name", "locale"} {
		patch[name] = nil
		if text := v.form(name); text != "" {
			patch[name] = text
		}
	}
	_, err := v.one(http.MethodPatch, "/api/v1/me/profile", patch)
	if p, ok := problemOf(err); ok && p.code == "validation_failed" {
		profile, err := v.one(http.MethodGet, "/api/v1/me/profile", nil)
		if err != nil {
			return err
		}
		for name, value := range patch {
			profile[name] = value
		}
		return v.again("account.html", "Your profile", profile, p)
	}
	if err != nil {
		return err
	}
	return v.redirect("/account?done=profile")
}

// security shows the ways in which the user signs in. It also serves a session that can only add a
// factor.
func security(v *visit) error { return v.securityWith(v.failure()) }

func (v *visit) securityWith(p *problem) error {
	const title message = "Sign-in and security"
	status, err := v.one(http.MethodGet, "/api/v1/auth/session", nil)
	if err != nil {
		return err
	}
	if status["authenticated"] != true {
		return &problem{code: "unauthenticated"}
	}
	policy, err := v.policy()
	if err != nil {
		return err
	}
	data := object{"Enrolling": status["enrolment_required"]}
	linked := map[string]bool{}
	if status["enrolment_required"] != true {
		if data["Factors"], err = v.many("/api/v1/me/mfa/factors"); err != nil {
			return err
		}
		identities, err := v.many("/api/v1/me/identities")
		if err != nil {
			return err
		}
		for _, item := range identities {
			if i, ok := item.(object); ok {
				i["provider"] = provider(i, policy.connections)
				slug, _ := i["slug"].(string)
				linked[slug] = true
			}
		}
		data["Identities"] = identities
	}
	for _, kind := range policy.kinds {
		data[kind] = true
	}
	if status["enrolment_required"] != true {
		data["Linkable"] = slices.DeleteFunc(policy.connections, func(c connection) bool { return linked[c.Slug] })
	}
	if p != nil {
		return v.render(p.status, "security.html", view{Title: v.say(title), Path: securityPage, Problem: p.say(v.speech), Data: data})
	}
	return v.show("security.html", title, data)
}

// policy is the part of the settings of a tenant that pages show.
type policy struct {
	signUp    bool
	kinds     []string // the kinds of second factors that users can add
	minLength any      // of passwords
	// connections are those at which users can sign in.
	connections []connection
}

func (v *visit) policy() (p policy, err error) {
	said, err := v.one(http.MethodGet, "/api/v1/auth/policy", nil)
	if err != nil {
		return p, err
	}
	p.signUp, p.connections = said["sign_up"] == "open", connectionsOf(said["connections"])
	if passwords, ok := said["password_policy"].(object); ok {
		p.minLength = passwords["min_length"]
	}
	mfa, _ := said["mfa_policy"].(object)
	kinds, _ := mfa["kinds"].([]any)
	if mfa["mode"] == "off" {
		kinds = nil
	}
	for _, kind := range kinds {
		if name, ok := kind.(string); ok {
			p.kinds = append(p.kinds, name)
		}
	}
	return p, nil
}

func sessions(v *visit) error {
	all, err := v.many("/api/v1/me/sessions")
	if err != nil {
		return err
	}
	others := slices.ContainsFunc(all, func(item any) bool { s, _ := item.(object); return s["current"] != true })
	return v.show("sessions.html", "Where you are signed in", object{"Sessions": all, "Others": others})
}

func passwordForm(v *visit) error {
	if _, err := v.one(http.MethodGet, "/api/v1/me/profile", nil); err != nil {
		return err
	}
	return v.show("password.html", "Change your password", nil)
}

func changePassword(v *visit) error {
	_, err := v.ask(http.MethodPost, "/api/v1/me/password", object{"current": v.form("current"), "next": v.form("next_password")})
	if p, ok := problemOf(err); ok {
		switch p.code {
		case "password_incorrect", "password_policy_violation", "rate_limited", "validation_failed":
			return v.again("password.html", "Change your password", nil, p, "password", "next_password", "next", "next_password")
		case "password_not_set":
			return v.redirect("/auth/reset-password")
		}
	}
	if err != nil {
		return err
	}
	return v.redirect("/account/security?done=password")
}

func emailForm(v *visit) error {
	profile, err := v.one(http.MethodGet, "/api/v1/me/profile", nil)
	if err != nil {
		return err
	}
	return v.show("email.html", "Change your e-mail address", object{"Email": profile["email"], "New": v.form("new_email")})
}

func changeEmail(v *visit) error {
	_, err := v.one(http.MethodPost, "/api/v1/me/email/change", object{"new_email": v.form("new_email")})
	if p, ok := problemOf(err); ok && (p.status == http.StatusBadRequest || p.code == "rate_limited") {
		return v.again("email.html", "Change your e-mail address", object{"Email": v.user(), "New": v.form("new_email")}, p, "email", "new_email")
	}
	if err != nil {
		return err
	}
	return v.redirect("/account?done=email")
}

// added redirects after a factor was added: to the destination of the user, or back to the list.
func (v *visit) added(notice string) error {
	if next := v.next(); next != home {
		return v.redirect(next)
	}
	return v.redirect(securityPage + "?done=" + notice)
}

func totpForm(v *visit) error {
	begun, err := v.one(http.MethodPost, "/api/v1/me/mfa/factors/totp/begin", object{"label": v.say("Authenticator app")})
	if err != nil {
		return err
	}
	return v.show("totp.html", "Add an authenticator app", begun)
}

func addTOTP(v *visit) error {
	_, err := v.one(http.MethodPost, "/api/v1/me/mfa/factors/totp/complete", object{"ceremony_id": v.form("ceremony_id"), "code": v.form("code")})
	if p, ok := problemOf(err); ok && p.code == "code_invalid" {
		data := object{}
		for _, name := range []string{"ceremony_id", "secret", "otpauth_uri", "qr_code"} {
			data[name] = v.form(name)
		}
		return v.again("totp.html", "Add an authenticator app", data, p)
	}
	if err != nil {
		return err
	}
	return v.added("factor")
}

func smsForm(v *visit) error {
	return v.show("sms.html", "Add a phone", object{"phone_number": v.form("phone_number")})
}

func addSMS(v *visit) error {
	const title message = "Add a phone"
	if v.form("ceremony_id") == "" {
		begun, err := v.one(http.MethodPost, "/api/v1/me/mfa/factors/sms/begin", object{"label": v.say("Phone"), "phone_number": v.form("phone_number")})
		if p, ok := problemOf(err); ok && (p.status == http.StatusBadRequest || p.code == "rate_limited") {
			return v.again("sms.html", title, object{"phone_number": v.form("phone_number")}, p)
		}
		if err != nil {
			return err
		}
		return v.show("sms.html", title, begun)
	}
	_, err := v.one(http.MethodPost, "/api/v1/me/mfa/factors/sms/complete", object{"ceremony_id": v.form("ceremony_id"), "code": v.form("code")})
	if p, ok := problemOf(err); ok && p.code == "code_invalid" {
		return v.again("sms.html", title, object{"ceremony_id": v.form("ceremony_id"), "phone_number_masked": v.form("phone_number_masked")}, p)
	}
	if err != nil {
		return err
	}
	return v.added("factor")
}

func passkeyForm(v *visit) error { return v.passkeyWith(nil) }

// passkeyWith begins the registration of a passkey, which the script of the page completes.
func (v *visit) passkeyWith(p *problem) error {
	begun, err := v.one(http.MethodPost, "/api/v1/me/mfa/factors/webauthn/begin", object{"label": v.say("Passkey")})
	if err != nil {
		return err
	}
	options, err := json.Marshal(begun["public_key"])
	if err != nil {
		return err
	}
	data := object{"Ceremony": begun["ceremony_id"], "Options": string(options)}
	if p != nil {
		return v.again("passkey.html", "Add a passkey", data, p)
	}
	return v.show("passkey.html", "Add a passkey", data)
}

func addPasskey(v *visit) error {
	_, err := v.one(http.MethodPost, "/api/v1/me/mfa/factors/webauthn/complete", object{
		"ceremony_id": v.form("ceremony_id"), "credential": json.RawMessage(v.credential()), "label": v.form("label"),
	})
	if p, ok := problemOf(err); ok && (p.status == http.StatusBadRequest || p.status == http.StatusConflict) {
		return v.passkeyWith(p)
	}
	if err != nil {
		return err
	}
	return v.added("passkey")
}

// credential returns the credential that the script of a page got from the browser, as JSON.
func (v *visit) credential() string {
	if text := v.form("credential"); json.Valid([]byte(text)) {
		return text
	}
	return "{}"
}

// stepUpForm asks for a second factor that another page requires.
func stepUpForm(v *visit) error { return v.stepUpWith(nil, object{}) }

func (v *visit) stepUpWith(p *problem, data object) error {
	factors, err := v.many("/api/v1/me/mfa/factors")
	if err != nil {
		return err
	}
	if len(factors) == 0 {
		return v.redirect(onTo(enrolPage, v.next()))
	}
	v.choose(append(choices(factors), choice{Kind: "backup_code"}), data)
	data["Action"], data["StepUp"] = "/account/step-up", true
	if p != nil {
		return v.again("second-factor.html", confirmTitle, data, p)
	}
	return v.show("second-factor.html", confirmTitle, data)
}

func stepUp(v *visit) error {
	if v.form("send") != "" {
		challenge, err := v.one(http.MethodPost, "/api/v1/auth/step-up/begin", object{"kind": v.form("kind")})
		if p, ok := problemOf(err); ok && p.status != http.StatusUnauthorized {
			return v.stepUpWith(p, object{})
		}
		if err != nil {
			return err
		}
		return v.stepUpWith(nil, object{"ChallengeID": challenge["challenge_id"], "Number": challenge["phone_number_masked"]})
	}
	_, err := v.one(http.MethodPost, "/api/v1/auth/step-up/complete", v.answer())
	if p, ok := problemOf(err); ok && p.status != http.StatusUnauthorized {
		return v.stepUpWith(p, object{"ChallengeID": v.form("challenge_id"), "Number": v.form("number")})
	}
	if err != nil {
		return err
	}
	return v.redirect(v.next())
}

// answer returns the answer to a challenge from a form.
func (v *visit) answer() object {
	answer := object{"kind": v.form("kind"), "code": v.form("code"), "challenge_id": v.form("challenge_id")}
	if v.form("kind") == "webauthn" {
		answer["credential"] = json.RawMessage(v.credential())
	}
	return answer
}
