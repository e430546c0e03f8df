package pages

import (
	"crypto/rand"
	"encoding/base64"
	"encoding/json"
	"net/http"
	"net/url"
)

// flowCookie begins the name of the cookie that holds what a sign-in needs from one page to the
// next. The rest of the name is the id of the sign-in, which its pages carry in the field step,
// so that sign-ins in several tabs do not get in each other's way. Nothing in the cookie is
// believed: the token in it leads to what the server remembers.
const flowCookie = "__Host-flow-"

// flowFor is how long the token in a flow is good, in seconds.
const flowFor = 600

// flow is a sign-in under way.
type flow struct {
	Token   string   `json:"t"`
	Factors []choice `json:"f,omitempty"`
	Next    string   `json:"n"`

	id string
}

// choice is a second factor that can be proved.
type choice struct {
	ID    string `json:"i,omitempty"`
	Kind  string `json:"k"`
	Label string `json:"l,omitempty"`
}

// flow is the sign-in that a page belongs to; without a token if there is none.
func (v *visit) flow() (f flow) {
	id := v.form("step")
	text, err := base64.RawURLEncoding.DecodeString(v.info.Cookie(flowCookie + id))
	if err != nil || json.Unmarshal(text, &f) != nil {
		return flow{}
	}
	f.id = id
	return f
}

// begin remembers a sign-in that goes on at a page.
func (v *visit) begin(page string, f flow) error {
	text, err := json.Marshal(f)
	if err != nil {
		return err
	}
	id := rand.Text()[:10]
	v.setFlow(id, base64.RawURLEncoding.EncodeToString(text), flowFor)
	return v.redirect(page + "?step=" + id)
}

// end forgets the sign-in that a page belongs to.
func (v *visit) end() {
	if f := v.flow(); f.Token != "" {
		v.setFlow(f.id, "", -1)
	}
}

func (v *visit) setFlow(id, value string, maxAge int) {
	v.info.SetCookie(&http.Cookie{Name: flowCookie + id, Value: value, Path: "/", Secure: true, HttpOnly: true, SameSite: http.SameSiteLaxMode, MaxAge: maxAge})
}

// proceed goes where a step of a sign-in leads.
func (v *visit) proceed(result object, next string) error {
	v.end()
	status, _ := result["status"].(string)
	f := flow{Next: next}
	switch status {
	case "mfa_required":
		f.Token, _ = result["mfa_token"].(string)
		f.Factors = choices(result["factors"])
		return v.begin("/auth/mfa", f)
	case "password_change_required":
		f.Token, _ = result["continue_token"].(string)
		return v.begin("/auth/reset-password", f)
	case "email_verification_required":
		return v.redirect(onTo("/auth/verify-email?email="+url.QueryEscape(v.form("email")), next))
	case "mfa_enrolment_required":
		return v.redirect(onTo(enrolPage, next))
	}
	return v.redirect(next)
}

// enrolPage is where a first second factor is added.
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
