package pages

import (
	"errors"
	"net/http"
	"net/url"
)

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
	if p := new(problem); errors.As(err, &p) && p.code == "validation_failed" {
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

// security shows how the person signs in, also to who can do nothing yet but add a factor.
func security(v *visit) error { return v.securityWith(nil) }

func (v *visit) securityWith(p *problem) error {
	const title = "Sign-in and security"
	status, err := v.one(http.MethodGet, "/api/v1/auth/session", nil)
	if err != nil {
		return err
	}
	if status["authenticated"] != true {
		return &problem{code: "unauthenticated"}
	}
	data := object{"Enrolling": status["enrolment_required"]}
	if status["enrolment_required"] != true {
		if data["Factors"], err = v.many("/api/v1/me/mfa/factors"); err != nil {
			return err
		}
		if data["Identities"], err = v.many("/api/v1/me/identities"); err != nil {
			return err
		}
	}
	if p != nil {
		return v.again("security.html", title, data, p)
	}
	return v.show("security.html", title, data)
}

func sessions(v *visit) error {
	all, err := v.many("/api/v1/me/sessions")
	if err != nil {
		return err
	}
	return v.show("sessions.html", "Where you are signed in", all)
}

func endSession(v *visit) error {
	if id := v.form("session_id"); id != "" {
		_, err := v.ask(http.MethodDelete, "/api/v1/me/sessions/"+url.PathEscape(id), nil)
		if p := new(problem); err != nil && (!errors.As(err, &p) || p.code != "session_not_found") {
			return err
		}
		return v.redirect("/account/sessions?done=session")
	}
	if _, err := v.ask(http.MethodDelete, "/api/v1/me/sessions?except=current", nil); err != nil {
		return err
	}
	return v.redirect("/account/sessions?done=sessions")
}

func passwordForm(v *visit) error {
	if _, err := v.one(http.MethodGet, "/api/v1/me/profile", nil); err != nil {
		return err
	}
	return v.show("password.html", "Change your password", nil)
}

func changePassword(v *visit) error {
	_, err := v.ask(http.MethodPost, "/api/v1/me/password", object{"current": v.form("current"), "next": v.form("next_password")})
	if p := new(problem); errors.As(err, &p) {
		switch p.code {
		case "password_incorrect", "password_policy_violation", "rate_limited", "validation_failed":
			return v.again("password.html", "Change your password", nil, p)
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
	return v.show("email.html", "Change your address", profile)
}

func changeEmail(v *visit) error {
	_, err := v.one(http.MethodPost, "/api/v1/me/email/change", object{"new_email": v.form("new_email")})
	if p := new(problem); errors.As(err, &p) && (p.status == http.StatusBadRequest || p.code == "rate_limited") {
		return v.again("email.html", "Change your address", object{"email": v.person()}, p)
	}
	if err != nil {
		return err
	}
	return v.redirect("/account?done=email")
}

func totpForm(v *visit) error {
	begun, err := v.one(http.MethodPost, "/api/v1/me/mfa/factors/totp/begin", object{"label": "Authenticator app"})
	if err != nil {
		return err
	}
	return v.show("totp.html", "Add an authenticator app", begun)
}

func addTOTP(v *visit) error {
	_, err := v.one(http.MethodPost, "/api/v1/me/mfa/factors/totp/complete", object{"ceremony_id": v.form("ceremony_id"), "code": v.form("code")})
	if p := new(problem); errors.As(err, &p) && p.code == "code_invalid" {
		data := object{}
		for _, name := range []string{"ceremony_id", "secret", "otpauth_uri", "qr_code"} {
			data[name] = v.form(name)
		}
		return v.again("totp.html", "Add an authenticator app", data, p)
	}
	if err != nil {
		return err
	}
	return v.redirect("/account/security?done=factor")
}

func smsForm(v *visit) error { return v.show("sms.html", "Add a telephone", object{}) }

func addSMS(v *visit) error {
	const title = "Add a telephone"
	if v.form("ceremony_id") == "" {
		begun, err := v.one(http.MethodPost, "/api/v1/me/mfa/factors/sms/begin", object{"label": "Telephone", "phone_number": v.form("phone_number")})
		if p := new(problem); errors.As(err, &p) && (p.status == http.StatusBadRequest || p.code == "rate_limited") {
			return v.again("sms.html", title, object{"phone_number": v.form("phone_number")}, p)
		}
		if err != nil {
			return err
		}
		return v.show("sms.html", title, begun)
	}
	_, err := v.one(http.MethodPost, "/api/v1/me/mfa/factors/sms/complete", object{"ceremony_id": v.form("ceremony_id"), "code": v.form("code")})
	if p := new(problem); errors.As(err, &p) && p.code == "code_invalid" {
		return v.again("sms.html", title, object{"ceremony_id": v.form("ceremony_id"), "phone_number_masked": v.form("phone_number_masked")}, p)
	}
	if err != nil {
		return err
	}
	return v.redirect("/account/security?done=factor")
}

func passkeyForm(v *visit) error { return v.show("passkey.html", "Add a passkey", nil) }

func removeFactor(v *visit) error {
	_, err := v.ask(http.MethodDelete, "/api/v1/me/mfa/factors/"+url.PathEscape(v.form("factor_id")), nil)
	if p := new(problem); err != nil && (!errors.As(err, &p) || p.code != "factor_not_found") {
		return err
	}
	return v.redirect("/account/security?done=removed")
}

func removeIdentity(v *visit) error {
	_, err := v.ask(http.MethodDelete, "/api/v1/me/identities/"+url.PathEscape(v.form("connection_id")), nil)
	if p := new(problem); errors.As(err, &p) {
		switch p.code {
		case "identity_not_found":
			err = nil
		case "last_sign_in_method":
			return v.securityWith(p)
		case "insufficient_user_authentication":
			if p.details["enrolment_required"] == true { // there is none to ask for yet
				return v.redirect("/account/security?done=enrol")
			}
		}
	}
	if err != nil {
		return err
	}
	return v.redirect("/account/security?done=removed")
}

func backupCodes(v *visit) error {
	made, err := v.one(http.MethodPost, "/api/v1/me/mfa/backup-codes", nil)
	if err != nil {
		return err
	}
	return v.show("backup-codes.html", "Your backup codes", made)
}

// stepUpForm asks for a second factor on the way to what takes one.
func stepUpForm(v *visit) error { return v.stepUpWith(nil, object{}) }

func (v *visit) stepUpWith(p *problem, data object) error {
	factors, err := v.many("/api/v1/me/mfa/factors")
	if err != nil {
		return err
	}
	v.choose(append(choices(factors), choice{Kind: "backup_code"}), data)
	data["Action"], data["StepUp"], data["Then"] = "/account/step-up", true, v.next()
	if p != nil {
		return v.again("second-factor.html", "Confirm that it is you", data, p)
	}
	return v.show("second-factor.html", "Confirm that it is you", data)
}

func stepUp(v *visit) error {
	if v.form("send") != "" {
		challenge, err := v.one(http.MethodPost, "/api/v1/auth/step-up/begin", object{"kind": v.form("kind")})
		if p := new(problem); errors.As(err, &p) && p.status != http.StatusUnauthorized {
			return v.stepUpWith(p, object{})
		}
		if err != nil {
			return err
		}
		return v.stepUpWith(nil, object{"ChallengeID": challenge["challenge_id"], "Number": challenge["phone_number_masked"]})
	}
	_, err := v.one(http.MethodPost, "/api/v1/auth/step-up/complete", object{"kind": v.form("kind"), "code": v.form("code"), "challenge_id": v.form("challenge_id")})
	if p := new(problem); errors.As(err, &p) && p.status != http.StatusUnauthorized {
		return v.stepUpWith(p, object{"ChallengeID": v.form("challenge_id"), "Number": v.form("number")})
	}
	if err != nil {
		return err
	}
	return v.redirect(v.next())
}
