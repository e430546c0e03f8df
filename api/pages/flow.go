package pages

import (
	"encoding/base64"
	"encoding/json"
	"net/http"
)

// flowCookie holds what a sign-in needs from one page to the next. Nothing in it is
// believed: the token in it leads to what the server remembers.
const flowCookie = "__Host-flow"

// flow is a sign-in under way.
type flow struct {
	Token   string   `json:"t"`
	Factors []choice `json:"f,omitempty"`
	Next    string   `json:"n"`
}

// choice is a second factor that can be proved.
type choice struct {
	ID    string `json:"i,omitempty"`
	Kind  string `json:"k"`
	Label string `json:"l,omitempty"`
}

func (v *visit) flow() (f flow) {
	cookie, err := v.r.Cookie(flowCookie)
	if err != nil {
		return f
	}
	text, err := base64.RawURLEncoding.DecodeString(cookie.Value)
	if err != nil || json.Unmarshal(text, &f) != nil {
		return flow{}
	}
	return f
}

// setFlow remembers a sign-in; nil forgets it.
func (v *visit) setFlow(f *flow) error {
	c := &http.Cookie{Name: flowCookie, Path: "/", Secure: true, HttpOnly: true, SameSite: http.SameSiteLaxMode, MaxAge: -1}
	if f != nil {
		text, err := json.Marshal(f)
		if err != nil {
			return err
		}
		c.Value, c.MaxAge = base64.RawURLEncoding.EncodeToString(text), 600
	}
	v.call.SetCookie(c)
	return nil
}

// proceed goes where a step of a sign-in leads.
func (v *visit) proceed(result object, next string) error {
	status, _ := result["status"].(string)
	switch status {
	case "mfa_required":
		f := flow{Next: next}
		f.Token, _ = result["mfa_token"].(string)
		f.Factors = choices(result["factors"])
		if err := v.setFlow(&f); err != nil {
			return err
		}
		return v.redirect("/auth/mfa")
	case "password_change_required":
		token, _ := result["continue_token"].(string)
		if err := v.setFlow(&flow{Token: token, Next: next}); err != nil {
			return err
		}
		return v.redirect("/auth/reset-password?forced=true")
	case "email_verification_required":
		return v.redirect("/auth/verify-email?email=" + queryEscape(v.form("email")))
	case "mfa_enrolment_required":
		return v.redirect("/account/security?done=enrol")
	}
	if err := v.setFlow(nil); err != nil {
		return err
	}
	return v.redirect(next)
}

func choices(list any) (all []choice) {
	items, _ := list.([]any)
	for _, item := range items {
		f, _ := item.(object)
		c := choice{}
		c.ID, _ = f["id"].(string)
		c.Kind, _ = f["kind"].(string)
		c.Label, _ = f["label"].(string)
		all = append(all, c)
	}
	return all
}
