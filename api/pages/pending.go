package pages

import (
	"crypto/rand"
	"encoding/base64"
	"encoding/json"
	"net/http"
	"net/url"
)

// pendingCookie is the prefix of the name of the cookie with the state of a sign-in in progress.
// The rest of the name is the id of the sign-in, which its pages contain in the field step, so that
// sign-ins in several tabs are independent. The cookie is not trusted: it contains a one-time
// token, and the state that matters is on the server.
const pendingCookie = "__Host-flow-"

// pendingFor is the lifetime of the token in a cookie, in seconds.
const pendingFor = 600

// pendingSignIn is a sign-in in progress.
type pendingSignIn struct {
	Token   string   `json:"t"`
	Factors []choice `json:"f,omitempty"`
	Email   string   `json:"e,omitempty"`
	Next    string   `json:"n"`

	id string
}

// choice is a second factor that the user can prove.
type choice struct {
	ID    string `json:"i,omitempty"`
	Kind  string `json:"k"`
	Label string `json:"l,omitempty"`
}

// pending returns the sign-in that a page belongs to; without a token if there is none.
func (v *visit) pending() (f pendingSignIn) {
	id := v.form("step")
	text, err := base64.RawURLEncoding.DecodeString(v.info.Cookie(pendingCookie + id))
	if err != nil || json.Unmarshal(text, &f) != nil {
		return pendingSignIn{}
	}
	f.id = id
	return f
}

// begin stores a sign-in that continues at a page, and redirects to it.
func (v *visit) begin(page string, f pendingSignIn) error {
	text, err := json.Marshal(f)
	if err != nil {
		return err
	}
	id := rand.Text()[:10]
	v.setPending(id, base64.RawURLEncoding.EncodeToString(text), pendingFor)
	return v.redirect(page + "?step=" + id)
}

// end deletes the cookie of the sign-in that a page belongs to.
func (v *visit) end() {
	if f := v.pending(); f.Token != "" {
		v.setPending(f.id, "", -1)
	}
}

func (v *visit) setPending(id, value string, maxAge int) {
	v.info.SetCookie(&http.Cookie{Name: pendingCookie + id, Value: value, Path: "/", Secure: true, HttpOnly: true, SameSite: http.SameSiteLaxMode, MaxAge: maxAge})
}

// proceed redirects to the next step of a sign-in.
func (v *visit) proceed(result object, next string) error {
	v.end()
	status, _ := result["status"].(string)
	f := pendingSignIn{Next: next}
	switch status {
	case "mfa_required":
		f.Token, _ = result["mfa_token"].(string)
		f.Factors = choices(result["factors"])
		return v.begin("/auth/mfa", f)
	case "password_change_required":
		f.Token, _ = result["continue_token"].(string)
		return v.begin("/auth/reset-password", f)
	case "email_verification_required":
		email, _ := result["email"].(string)
		return v.redirect(onTo("/auth/verify-email?email="+url.QueryEscape(email), next))
	case "mfa_enrolment_required":
		return v.redirect(onTo(enrolPage, next))
	}
	return v.redirect(next)
}

// enrolPage is the page on which a user adds a first second factor.
const enrolPage = "/account/security?done=enrol"

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
