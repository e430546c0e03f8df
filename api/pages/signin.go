package pages

import (
	"errors"
	"net/http"
	"net/url"
	"slices"
)

func queryEscape(text string) string { return url.QueryEscape(text) }

func signInForm(v *visit) error {
	return v.show("sign-in.html", "Sign in", object{"Email": v.form("email")})
}

func signIn(v *visit) error {
	result, err := v.one(http.MethodPost, "/api/v1/auth/sign-in", object{"email": v.form("email"), "password": v.form("password")})
	if p := new(problem); errors.As(err, &p) {
		return v.again("sign-in.html", "Sign in", object{"Email": v.form("email")}, p)
	}
	if err != nil {
		return err
	}
	return v.proceed(result, v.next())
}

func signUpForm(v *visit) error { return v.show("sign-up.html", "Create an account", object{}) }

func signUp(v *visit) error {
	form := object{"email": v.form("email"), "password": v.form("password")}
	if name := v.form("name"); name != "" {
		form["name"] = name
	}
	_, err := v.one(http.MethodPost, "/api/v1/auth/sign-up", form)
	if p := new(problem); errors.As(err, &p) {
		return v.again("sign-up.html", "Create an account", object{"Email": v.form("email"), "Name": v.form("name")}, p)
	}
	if err != nil {
		return err
	}
	return v.redirect("/auth/verify-email?email=" + queryEscape(v.form("email")))
}

// verifyEmail finishes with the token of a letter or, without one, waits for it.
func verifyEmail(v *visit) error {
	token := v.form("token")
	if token == "" {
		return v.show("check-mail.html", "Confirm your address", object{"Email": v.form("email")})
	}
	verified, err := v.one(http.MethodPost, "/api/v1/auth/email/verify", object{"token": token})
	if p := new(problem); errors.As(err, &p) {
		return v.again("check-mail.html", "Confirm your address", object{"Email": ""}, p)
	}
	if err != nil {
		return err
	}
	return v.show("verified.html", "Your address is confirmed", verified)
}

func resendEmail(v *visit) error {
	_, err := v.one(http.MethodPost, "/api/v1/auth/email/resend", object{"email": v.form("email")})
	if p := new(problem); errors.As(err, &p) {
		return v.again("check-mail.html", "Confirm your address", object{"Email": v.form("email")}, p)
	}
	if err != nil {
		return err
	}
	return v.redirect("/auth/verify-email?done=sent&email=" + queryEscape(v.form("email")))
}

// revertForm asks before anything is done: programs follow links in letters, too.
func revertForm(v *visit) error {
	return v.show("revert-email.html", "Keep your address", object{"Token": v.form("token")})
}

func revertEmail(v *visit) error {
	reverted, err := v.one(http.MethodPost, "/api/v1/auth/email/revert", object{"token": v.form("token")})
	if p := new(problem); errors.As(err, &p) {
		return v.again("revert-email.html", "Keep your address", object{"Token": v.form("token")}, p)
	}
	if err != nil {
		return err
	}
	return v.show("reverted.html", "You have your address back", reverted)
}

// resetForm asks for a new password, if the browser comes with a token, and else for the
// address to send one to.
func resetForm(v *visit) error {
	switch {
	case v.form("forced") != "":
		return v.show("new-password.html", "Choose a new password", object{"Forced": true})
	case v.form("token") != "":
		return v.show("new-password.html", "Choose a new password", object{"Token": v.form("token")})
	}
	return v.show("forgot.html", "Forgot your password?", object{"Email": v.form("email")})
}

func reset(v *visit) error {
	token, next, forced := v.form("token"), v.next(), v.form("forced") != ""
	if forced {
		f := v.flow()
		token, next = f.Token, f.Next
	}
	if token == "" {
		_, err := v.one(http.MethodPost, "/api/v1/auth/password/forgot", object{"email": v.form("email")})
		if p := new(problem); errors.As(err, &p) {
			return v.again("forgot.html", "Forgot your password?", object{"Email": v.form("email")}, p)
		}
		if err != nil {
			return err
		}
		return v.redirect("/auth/reset-password?done=sent")
	}
	result, err := v.one(http.MethodPost, "/api/v1/auth/password/reset", object{"token": token, "password": v.form("password")})
	if p := new(problem); errors.As(err, &p) {
		return v.again("new-password.html", "Choose a new password", object{"Token": v.form("token"), "Forced": forced}, p)
	}
	if err != nil {
		return err
	}
	return v.proceed(result, next)
}

// secondFactor asks for the factor that was chosen, or for the first there is.
func secondFactor(v *visit) error { return v.factorForm(nil, object{}) }

// factorForm shows what there is to choose from, and the form of what was chosen.
func (v *visit) factorForm(p *problem, data object) error {
	f := v.flow()
	if f.Token == "" {
		return v.redirect("/auth/sign-in")
	}
	v.choose(f.Factors, data)
	data["Token"], data["Action"], data["Then"] = f.Token, "/auth/mfa", f.Next
	if p != nil {
		return v.again("second-factor.html", "Confirm that it is you", data, p)
	}
	return v.show("second-factor.html", "Confirm that it is you", data)
}

// choose fills in which factors there are, each kind once, and which was chosen.
func (v *visit) choose(all []choice, data object) {
	chosen := v.form("kind")
	var kinds []string
	for _, c := range all {
		if !slices.Contains(kinds, c.Kind) {
			kinds = append(kinds, c.Kind)
		}
	}
	if !slices.Contains(kinds, chosen) && len(kinds) > 0 {
		chosen = kinds[0]
	}
	var others []string
	for _, kind := range kinds {
		if kind != chosen {
			others = append(others, kind)
		}
	}
	data["Kind"], data["Others"] = chosen, others
}

func proveFactor(v *visit) error {
	f := v.flow()
	if f.Token == "" {
		return v.redirect("/auth/sign-in")
	}
	data := object{"ChallengeID": v.form("challenge_id"), "Number": v.form("number")}
	if v.form("send") != "" { // a text, first
		challenge, err := v.one(http.MethodPost, "/api/v1/auth/mfa/challenge", object{"mfa_token": f.Token, "kind": v.form("kind")})
		if p := new(problem); errors.As(err, &p) {
			return v.factorForm(p, data)
		}
		if err != nil {
			return err
		}
		return v.factorForm(nil, object{"ChallengeID": challenge["challenge_id"], "Number": challenge["phone_number_masked"]})
	}
	result, err := v.one(http.MethodPost, "/api/v1/auth/mfa/verify", object{
		"mfa_token": f.Token, "kind": v.form("kind"), "code": v.form("code"), "challenge_id": v.form("challenge_id"), "remember_device": v.form("remember") != "",
	})
	if p := new(problem); errors.As(err, &p) {
		if left, ok := p.details["attempts_left"].(float64); ok && left == 0 || p.code == "ceremony_invalid" && v.form("challenge_id") == "" {
			if err := v.setFlow(nil); err != nil {
				return err
			}
			return v.again("sign-in.html", "Sign in", object{}, &problem{status: p.status, code: "ceremony_invalid"})
		}
		return v.factorForm(p, data)
	}
	if err != nil {
		return err
	}
	return v.proceed(result, f.Next)
}

func errorPage(v *visit) error {
	return v.render(http.StatusOK, "error.html", view{Title: "That did not work", Data: struct{ Message, RequestID string }{"The page that sent you here could not go on.", v.call.RequestID}})
}

func signOutForm(v *visit) error {
	return v.show("sign-out.html", "Sign out?", v.person())
}

func signOut(v *visit) error {
	if _, err := v.ask(http.MethodPost, "/api/v1/auth/logout", nil); err != nil {
		var p *problem
		if !errors.As(err, &p) {
			return err
		}
	}
	if v.form("next") != "" {
		return v.redirect(v.next())
	}
	return v.redirect("/auth/sign-in?done=out")
}

func mailbox(v *visit) error {
	items, err := v.surface.Mailbox.Items(100)
	if err != nil {
		return err
	}
	return v.show("mailbox.html", "Mailbox", items)
}
