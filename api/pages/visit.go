package pages

import (
	"bytes"
	"errors"
	"fmt"
	"html/template"
	"net/http"
	"net/url"
	"regexp"
	"strings"

	"stonetown/api/web"
	"stonetown/identity/branding"
)

// visit is a request for a page.
type visit struct {
	handlers *Handlers
	w        http.ResponseWriter
	r        *http.Request
	info     *web.RequestInfo
	speech
	own     *branding.Branding // of the tenant
	heading string             // a text of the tenant in the place of the title; empty: none
	who     *person            // who is signed in; nil: not known yet
}

// view is the data of every template.
type view struct {
	speech
	Tenant  string // its name
	Look    branding.Look
	Title   string
	Path    string // of the page; default: that of the request
	Next    string // the destination after the sign-in
	Problem string // the error of the form
	Bad     string // the field of the error; empty: none
	Notice  string // the result of the last action
	Wide    bool   // the page is as wide as those of the account
	Person  string // the address of the user who is signed in, on the pages of the account
	Data    any
}

// setLook sets what the page has of the branding of the tenant.
func (v *view) setLook(own *branding.Branding, info *web.RequestInfo) {
	v.Look = own.Look(info.Tenant.Name, info.Tenant.Branding)
	v.Tenant = v.Look.Name
}

// Link returns the path of another page with the same destination.
func (v view) Link(page string) string { return onTo(page, v.Next) }

// Mark returns the attributes of a field: those of an error and of the focus, if the field has an
// error, and the ids of elements that describe it.
func (v view) Mark(field string, others ...string) template.HTMLAttr {
	if v.Bad != field {
		return described(others)
	}
	return ` aria-invalid="true" autofocus` + described(append([]string{"problem"}, others...))
}

// First is Mark for the field that has the focus if no field has an error.
func (v view) First(field string, others ...string) template.HTMLAttr {
	if v.Bad == "" {
		return " autofocus" + described(others)
	}
	return v.Mark(field, others...)
}

func described(ids []string) template.HTMLAttr {
	if len(ids) == 0 {
		return ""
	}
	return template.HTMLAttr(` aria-describedby="` + strings.Join(ids, " ") + `"`)
}

// form returns a value of the form or of the query.
func (v *visit) form(name string) string { return v.r.Form.Get(name) }

// show renders a template. Values are those of the title.
func (v *visit) show(name string, title message, data any, values ...any) error {
	page := view{Title: v.say(title, values...), Data: data}
	if notice, ok := notices[v.r.URL.Query().Get("done")]; ok {
		page.Notice = v.say(notice)
	}
	return v.render(http.StatusOK, name, page)
}

// showEnglish renders a template of a page for developers or administrators.
func (v *visit) showEnglish(name string, page view) error {
	v.speech = speech{}
	return v.render(http.StatusOK, name, page)
}

// again renders a form with an error. renamed are pairs of the names of fields in the operation and
// in the form, where they differ.
func (v *visit) again(name string, title message, data any, problem *problem, renamed ...string) error {
	bad := problem.field()
	for i := 0; i+1 < len(renamed); i += 2 {
		if bad == renamed[i] {
			bad = renamed[i+1]
			break
		}
	}
	return v.render(problem.status, name, view{Title: v.say(title), Data: data, Problem: problem.say(v.speech), Bad: bad})
}

func (v *visit) render(status int, name string, page view) error {
	page.speech, page.Next = v.speech, v.next()
	page.setLook(v.own, v.info)
	if v.heading != "" {
		page.Title = v.heading
	}
	if page.Path == "" {
		page.Path = v.r.URL.Path
	}
	if strings.HasPrefix(page.Path, "/account") {
		page.Person = v.user()
	}
	return v.handlers.write(v.w, status, name, page)
}

func (h *Handlers) write(w http.ResponseWriter, status int, name string, page view) error {
	var b bytes.Buffer
	if err := h.templates[name].Execute(&b, page); err != nil {
		return err
	}
	w.Header().Set("Content-Type", "text/html; charset=utf-8")
	w.WriteHeader(status)
	_, _ = w.Write(b.Bytes()) // an error means that the client has disconnected
	return nil
}

// redirect redirects to another page with the method GET.
func (v *visit) redirect(to string) error {
	v.w.Header().Set("Location", to)
	v.w.WriteHeader(http.StatusSeeOther)
	return nil
}

// home is the default destination.
const home = "/account"

// next returns the destination of the user: a path of this host, or home.
func (v *visit) next() string {
	if to := v.form("next"); web.IsLocalPath(to) {
		return to
	}
	return home
}

// onward returns next for the link in a mail; empty for the default destination.
func (v *visit) onward() string {
	if next := v.next(); next != home {
		return next
	}
	return ""
}

// onTo returns the path of a page with a destination.
func onTo(page, next string) string {
	if next == home {
		return page
	}
	separator := "?"
	if strings.Contains(page, "?") {
		separator = "&"
	}
	return page + separator + "next=" + url.QueryEscape(next)
}

// fail responds with an error: with a redirect if another page can resolve it.
func (v *visit) fail(err error) {
	if p := new(problem); errors.As(err, &p) {
		switch {
		case p.code == "unauthenticated", p.code == "invalid_token":
			_ = v.redirect("/auth/sign-in?next=" + url.QueryEscape(v.back()))
			return
		case p.code == "insufficient_user_authentication":
			to := "/account/step-up"
			switch {
			case p.details["sign_in_required"] == true: // to add a first factor
				to = "/auth/sign-in?done=again"
			case p.details["enrolment_required"] == true:
				to = enrolPage
			}
			_ = v.redirect(onTo(to, v.back()))
			return
		}
		err = &web.Error{Status: p.status, Code: p.code, Message: p.say(v.speech)}
	} else if e := new(web.Error); !errors.As(err, &e) && v.r.Context().Err() == nil {
		v.handlers.Internal(v.r, err)
	}
	v.handlers.fail(v.w, err, v.info, v.speech, v.own)
}

// back returns the path of the page that a form came from, with the values that are not secret. The
// user returns to it after signing in or proving a second factor.
func (v *visit) back() string {
	if v.r.Method == http.MethodGet {
		return v.r.URL.RequestURI()
	}
	kept := url.Values{}
	for _, name := range []string{"new_email", "phone_number", "factor_id", "connection_id", "session_id", "application_id", "slug", "flow", "user_code", "next"} {
		if value := v.form(name); value != "" {
			kept.Set(name, value)
		}
	}
	if len(kept) == 0 {
		return v.r.URL.Path
	}
	return v.r.URL.Path + "?" + kept.Encode()
}

// fail renders an error on a page of its own.
func (h *Handlers) fail(w http.ResponseWriter, err error, info *web.RequestInfo, in speech, own *branding.Branding) {
	var e *web.Error
	if !errors.As(err, &e) {
		e = &web.Error{Status: http.StatusInternalServerError, Code: "internal_error", Message: "Something went wrong on our side."}
	}
	h.renderError(w, e, info, in, own)
}

// RenderError renders an error on a page of its own; see [web.ErrorFormat].
func (h *Handlers) RenderError(w http.ResponseWriter, e *web.Error, info *web.RequestInfo) {
	own := h.brandingOfError(info)
	h.renderError(w, e, info, speechOf(info, own), own)
}

// renderError shows the message of an operation as it is, in English, unless the error is one that
// users meet without an application that is faulty.
func (h *Handlers) renderError(w http.ResponseWriter, e *web.Error, info *web.RequestInfo, in speech, own *branding.Branding) {
	secure(w.Header())
	title, text := in.say("Something went wrong"), web.Sentence(e.Message)
	switch e.Code {
	case "not_found":
		title, text = in.say("Page not found"), in.say("There is no page at this address.")
	case "tenant_not_found":
		title, text = in.say("Page not found"), in.say("There is no site at this address.")
	case "internal_error":
		text = in.say("Something went wrong on our side.")
	}
	data := struct{ Message, RequestID string }{text, info.RequestID}
	page := view{speech: in, Title: title, Data: data}
	page.setLook(own, info)
	_ = h.write(w, e.Status, "error.html", page)
}

// RenderSignInError is RenderError for a sign-in that has failed to start at a federation connection.
// The page leads to the other ways to sign in, and then to the user's destination.
func (h *Handlers) RenderSignInError(w http.ResponseWriter, e *web.Error, info *web.RequestInfo) {
	switch e.Code {
	case "federation_failed", "connection_disabled", "connection_not_found":
	default:
		h.RenderError(w, e, info)
		return
	}
	secure(w.Header())
	next, _ := e.Details["redirect_to"].(string)
	if next == "" {
		next = home
	}
	p := &problem{status: e.Status, code: e.Code, details: object(e.Details)}
	own := h.brandingOfError(info)
	in := speechOf(info, own)
	data := struct{ Message, RequestID string }{p.say(in), info.RequestID}
	page := view{speech: in, Title: in.say("You are not signed in"), Next: next, Data: data}
	page.setLook(own, info)
	_ = h.write(w, e.Status, "sign-in-failed.html", page)
}

// notices are the messages about the last action, by the parameter done.
var notices = map[string]message{
	"profile":     "Profile saved.",
	"password":    "Password changed. Your other devices are signed out.",
	"email":       "We have sent an e-mail to the new address. Follow the link in it to finish.",
	"factor":      "Second factor added. You can use it the next time you sign in.",
	"passkey":     "Passkey added. You can use it the next time you sign in.",
	"removed":     "Removed.",
	"linked":      "Account linked. You can use it the next time you sign in.",
	"session":     "That device is signed out.",
	"sessions":    "All other devices are signed out.",
	"enrol":       "To continue, add a second factor or a passkey to your account.",
	"again":       "To continue, please sign in again. Your last sign-in was too long ago.",
	"sent":        "If this address has an account here, we have sent an e-mail to it. We send at most one per minute.",
	"application": "Access removed.",
	"out":         "You are signed out.",
	"reset":       "Password changed.",
}

var links = regexp.MustCompile(`https?://\S+`)

// functions are the functions of the templates.
var functions = template.FuncMap{
	"strong": func(text any) template.HTML { return element("strong", text) },
	"code":   func(text any) template.HTML { return element("code", text) },
	// ltr isolates a number, whose sign would move to its end in a text from right to left.
	"ltr": func(text any) template.HTML {
		return template.HTML(`<bdi dir="ltr">` + template.HTMLEscapeString(fmt.Sprint(text)) + `</bdi>`)
	},
	// link returns the first link in a mail.
	"link": func(text string) string { return links.FindString(text) },
	// picture accepts only data: URLs of PNG pictures, which the server creates.
	"picture": func(text string) template.URL {
		if !strings.HasPrefix(text, "data:image/png;base64,") {
			return ""
		}
		return template.URL(text)
	},
}

// element returns an HTML element with a text.
func element(name string, text any) template.HTML {
	return template.HTML("<" + name + ">" + template.HTMLEscapeString(fmt.Sprint(text)) + "</" + name + ">")
}
