package pages

import (
	"encoding/json"
	"net/http"
	"net/url"
	"slices"
	"strings"

	"stonetown/api/web"
	"stonetown/identity/branding"
)

func signInForm(v *visit) error { return v.signInWith(v.failure()) }

func (v *visit) signInWith(p *problem) error {
	policy, err := v.policy()
	if err != nil {
		return err
	}
	v.heading = v.own.Text(v.language, branding.SignInTitle, "")
	data := object{"Email": v.form("email"), "SignUp": policy.signUp, "Connections": policy.connections, "Back": v.cancel(p), "Text": v.own.Text(v.language, branding.SignInText, "")}
	if p != nil {
		return v.again("sign-in.html", "Sign in", data, p)
	}
	return v.show("sign-in.html", "Sign in", data)
}

// signIn signs in with a password or, if the form contains a ceremony, with a passkey.
func signIn(v *visit) error {
	path, form := "/api/v1/auth/sign-in", object{"email": v.form("email"), "password": v.form("password")}
	if v.form("ceremony_id") != "" {
		path, form = "/api/v1/auth/webauthn/complete", object{"ceremony_id": v.form("ceremony_id"), "credential": json.RawMessage(v.credential())}
	}
	result, err := v.one(http.MethodPost, path, form)
	if p, ok := problemOf(err); ok {
		return v.signInWith(p)
	}
	if err != nil {
		return err
	}
	return v.proceed(result, v.next())
}

// cancel returns the path that leads back to the application after a denial by the flow of the tenant;
// empty: the user does not come from one.
func (v *visit) cancel(p *problem) string {
	if next := v.next(); p != nil && p.deniedByFlow() && strings.HasPrefix(next, "/oauth2/authorize/resume?") {
		return next + "&cancel=true"
	}
	return ""
}

// denied shows that the flow of the tenant refused a sign-in in progress, which is at its end.
func (v *visit) denied(p *problem, next string) error {
	v.end()
	v.r.Form.Set("next", next)
	return v.signInWith(p)
}

func signUpForm(v *visit) error { return v.signUpWith(nil) }

func (v *visit) signUpWith(p *problem) error {
	const title message = "Create an account"
	policy, err := v.policy()
	if err != nil {
		return err
	}
	data := object{"Email": v.form("email"), "Name": v.form("name"), "MinLength": policy.minLength, "Back": v.cancel(p), "Text": v.own.Text(v.language, branding.SignUpText, "")}
	if !policy.signUp {
		return v.render(http.StatusForbidden, "sign-up-closed.html", view{Title: v.say("You cannot create an account here")})
	}
	v.heading = v.own.Text(v.language, branding.SignUpTitle, "")
	if p != nil {
		return v.again("sign-up.html", title, data, p)
	}
	return v.show("sign-up.html", title, data)
}

func signUp(v *visit) error {
	form := object{"email": v.form("email"), "password": v.form("password"), "redirect_to": v.onward(), "locale": v.Language()}
	if name := v.form("name"); name != "" {
		form["name"] = name
	}
	_, err := v.one(http.MethodPost, "/api/v1/auth/sign-up", form)
	if p, ok := problemOf(err); ok {
		return v.signUpWith(p)
	}
	if err != nil {
		return err
	}
	return v.redirect(onTo("/auth/verify-email?email="+url.QueryEscape(v.form("email")), v.next()))
}

const verifyTitle message = "Confirm your e-mail address"

// verifyEmail is the page of links that verify an address. The link of a change of address
// completes the change. The link of a sign-up requires a confirmation: mail scanners open links, and
// must not verify an account that another person created for the address.
func verifyEmail(v *visit) error {
	if v.form("token") == "" {
		return v.show("check-mail.html", verifyTitle, object{"Email": v.form("email")})
	}
	link, err := v.link("verify_email", "change_email")
	if p, ok := problemOf(err); ok {
		return v.again("check-mail.html", verifyTitle, object{"Email": ""}, p)
	}
	if err != nil {
		return err
	}
	if link["purpose"] == "change_email" {
		return v.verify()
	}
	return v.show("confirm-email.html", verifyTitle, object{"Email": link["email"], "Token": v.form("token")})
}

// link describes the link to a page. An invalid link, and one with another purpose than those
// given, is a problem.
func (v *visit) link(purposes ...string) (object, error) {
	link, err := v.one(http.MethodPost, "/api/v1/auth/link", object{"token": v.form("token")})
	if err != nil {
		return nil, err
	}
	if purpose, _ := link["purpose"].(string); !slices.Contains(purposes, purpose) {
		return nil, &problem{status: http.StatusBadRequest, code: "ceremony_invalid"}
	}
	return link, nil
}

// verify verifies an address.
func (v *visit) verify() error {
	verified, err := v.one(http.MethodPost, "/api/v1/auth/email/verify", object{"token": v.form("token")})
	if p, ok := problemOf(err); ok {
		return v.again("check-mail.html", verifyTitle, object{"Email": ""}, p)
	}
	if err != nil {
		return err
	}
	v.who = nil // the address may be another one now
	verified["Continue"] = v.next()
	if v.user() != verified["email"] { // signed out, or signed in as another user
		verified["Continue"] = onTo("/auth/sign-in", v.next())
	}
	return v.show("verified.html", "E-mail address confirmed", verified)
}

// confirmEmail verifies an address after the confirmation, or sends the mail again.
func confirmEmail(v *visit) error {
	if v.form("token") != "" {
		return v.verify()
	}
	_, err := v.one(http.MethodPost, "/api/v1/auth/email/resend", object{"email": v.form("email"), "redirect_to": v.onward()})
	if p, ok := problemOf(err); ok {
		return v.again("check-mail.html", verifyTitle, object{"Email": v.form("email")}, p)
	}
	if err != nil {
		return err
	}
	return v.redirect(onTo("/auth/verify-email?done=sent&email="+url.QueryEscape(v.form("email")), v.next()))
}

const revertTitle message = "Keep your e-mail address"

// revertForm requires a confirmation, because mail scanners open links.
func revertForm(v *visit) error {
	link, err := v.link("revert_email")
	if p, ok := problemOf(err); ok {
		return v.again("revert-email.html", revertTitle, object{}, p)
	}
	if err != nil {
		return err
	}
	return v.show("revert-email.html", revertTitle, object{"Email": link["email"], "Token": v.form("token")})
}

func revertEmail(v *visit) error {
	reverted, err := v.one(http.MethodPost, "/api/v1/auth/email/revert", object{"token": v.form("token")})
	if p, ok := problemOf(err); ok {
		return v.again("revert-email.html", revertTitle, object{}, p)
	}
	if err != nil {
		return err
	}
	return v.show("reverted.html", "Your account is yours again", reverted)
}

const forgotTitle, newPasswordTitle message = "Forgot your password?", "Choose a new password"

// resetForm asks for a new password, with the token of a link or during a sign-in that requires a
// new one. Otherwise it asks for the address to send a link to.
func resetForm(v *visit) error {
	if f := v.pending(); f.Token != "" {
		return v.newPasswordWith(nil, object{"Step": f.id})
	}
	if v.form("step") != "" {
		return v.redirect("/auth/sign-in")
	}
	if v.form("token") == "" {
		return v.show("forgot.html", forgotTitle, object{"Email": v.form("email")})
	}
	_, err := v.link("reset_password")
	if p, ok := problemOf(err); ok {
		return v.again("forgot.html", forgotTitle, object{}, p)
	}
	if err != nil {
		return err
	}
	return v.newPasswordWith(nil, object{"Token": v.form("token")})
}

func (v *visit) newPasswordWith(p *problem, data object) error {
	policy, err := v.policy()
	if err != nil {
		return err
	}
	data["MinLength"] = policy.minLength
	if p != nil {
		return v.again("new-password.html", newPasswordTitle, data, p)
	}
	return v.show("new-password.html", newPasswordTitle, data)
}

func reset(v *visit) error {
	f := v.pending()
	token, next, data := v.form("token"), v.next(), object{"Token": v.form("token")}
	if f.Token != "" {
		token, next, data = f.Token, f.Next, object{"Step": f.id}
	}
	if token == "" {
		_, err := v.one(http.MethodPost, "/api/v1/auth/password/forgot", object{"email": v.form("email"), "redirect_to": v.onward()})
		if p, ok := problemOf(err); ok {
			return v.again("forgot.html", forgotTitle, object{"Email": v.form("email")}, p)
		}
		if err != nil {
			return err
		}
		return v.redirect(onTo("/auth/reset-password?done=sent", next))
	}
	result, err := v.one(http.MethodPost, "/api/v1/auth/password/reset", object{"token": token, "password": v.form("password")})
	if p, ok := problemOf(err); ok {
		if p.deniedByFlow() { // with the new password
			return v.denied(p, next)
		}
		if p.code == "ceremony_invalid" { // used or expired meanwhile
			return v.again("forgot.html", forgotTitle, object{}, p)
		}
		return v.newPasswordWith(p, data)
	}
	if err != nil {
		return err
	}
	return v.proceed(result, next)
}

const confirmTitle message = "Confirm that it is you"

// secondFactor asks for the chosen factor, or for the first one.
func secondFactor(v *visit) error { return v.factorForm(nil, object{}) }

// factorForm shows the choice of factors and the form of the chosen one.
func (v *visit) factorForm(p *problem, data object) error {
	f := v.pending()
	if f.Token == "" {
		return v.redirect(onTo("/auth/sign-in", v.next()))
	}
	v.choose(f.Factors, data)
	data["Token"], data["Step"], data["Action"] = f.Token, f.id, "/auth/mfa"
	if p != nil {
		return v.again("second-factor.html", confirmTitle, data, p)
	}
	return v.show("second-factor.html", confirmTitle, data)
}

// choose sets the kinds of factors, each once, and the chosen one.
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
	f := v.pending()
	if f.Token == "" {
		return v.redirect(onTo("/auth/sign-in", v.next()))
	}
	data := object{"ChallengeID": v.form("challenge_id"), "Number": v.form("number")}
	if v.form("send") != "" { // request a text message first
		challenge, err := v.one(http.MethodPost, "/api/v1/auth/mfa/challenge", object{"mfa_token": f.Token, "kind": v.form("kind")})
		if p, ok := problemOf(err); ok {
			return v.factorForm(p, data)
		}
		if err != nil {
			return err
		}
		return v.factorForm(nil, object{"ChallengeID": challenge["challenge_id"], "Number": challenge["phone_number_masked"]})
	}
	answer := v.answer()
	answer["mfa_token"], answer["remember_device"] = f.Token, v.form("remember") != ""
	result, err := v.one(http.MethodPost, "/api/v1/auth/mfa/verify", answer)
	if p, ok := problemOf(err); ok {
		if p.deniedByFlow() {
			return v.denied(p, f.Next)
		}
		if left, ok := p.details["attempts_left"].(float64); ok && left == 0 || p.code == "ceremony_invalid" && v.form("challenge_id") == "" {
			v.end()
			v.r.Form.Set("next", f.Next)
			return v.signInWith(&problem{status: p.status, code: "ceremony_invalid"})
		}
		return v.factorForm(p, data)
	}
	if err != nil {
		return err
	}
	return v.proceed(result, f.Next)
}

func errorPage(v *visit) error {
	data := struct{ Message, RequestID string }{v.say("The page that sent you here could not continue."), v.info.RequestID}
	return v.render(http.StatusOK, "error.html", view{Title: v.say("Something went wrong"), Data: data})
}

func signOutForm(v *visit) error {
	return v.show("sign-out.html", "Sign out?", v.user())
}

// signOut signs out here, and then at the provider at which the session began and at its SAML
// applications.
func signOut(v *visit) error {
	next := "/auth/sign-in?done=out"
	if v.form("next") != "" {
		next = v.next()
	}
	begun, err := v.one(http.MethodPost, "/api/v1/auth/federation/logout", object{"redirect_to": next})
	if _, ok := problemOf(err); err != nil && !ok {
		return err
	}
	if _, err := v.ask(http.MethodPost, "/api/v1/auth/logout", nil); err != nil {
		if _, ok := problemOf(err); !ok {
			return err
		}
	}
	if frames := textsOf(begun["frontchannel_logout_uris"]); len(frames) > 0 {
		to, form := destination(begun, next)
		return web.LogoutFrames(v.w, frames, to, form)
	}
	if begun["redirect_to"] != nil {
		return v.toProvider(begun)
	}
	return v.redirect(next)
}

func mailbox(v *visit) error {
	items, err := v.handlers.Mailbox.Items(100)
	if err != nil {
		return err
	}
	return v.showEnglish("mailbox.html", view{Title: "Mailbox", Data: items})
}
