package pages

import (
	"bytes"
	"errors"
	"html/template"
	"net/http"
	"net/url"
	"regexp"
	"strings"
	"time"

	"stonetown/api/web"
)

// visit is a request for a page.
type visit struct {
	surface *Surface
	w       http.ResponseWriter
	r       *http.Request
	call    *web.Call
}

// view is what every template gets.
type view struct {
	Tenant  string
	Title   string
	Path    string // of the page
	Next    string // where to go after signing in
	Problem string // what went wrong with the form
	Notice  string // what has been done
	Person  string // the address of who is signed in, on their account's pages
	Data    any
}

// form is a value of the form, or of the query.
func (v *visit) form(name string) string { return v.r.Form.Get(name) }

// show renders a template.
func (v *visit) show(name, title string, data any) error {
	return v.render(http.StatusOK, name, view{Title: title, Data: data, Notice: notices[v.r.URL.Query().Get("done")]})
}

// again shows a form again that could not be accepted.
func (v *visit) again(name, title string, data any, problem *problem) error {
	return v.render(problem.status, name, view{Title: title, Data: data, Problem: problem.text()})
}

func (v *visit) render(status int, name string, page view) error {
	page.Tenant, page.Path, page.Next = v.call.Tenant.Name, v.r.URL.Path, v.next()
	if strings.HasPrefix(page.Path, "/account") {
		page.Person = v.person()
	}
	return v.surface.write(v.w, status, name, page)
}

func (s *Surface) write(w http.ResponseWriter, status int, name string, page view) error {
	var b bytes.Buffer
	if err := s.templates[name].Execute(&b, page); err != nil {
		return err
	}
	w.Header().Set("Content-Type", "text/html; charset=utf-8")
	w.WriteHeader(status)
	_, _ = w.Write(b.Bytes()) // who went away needs no page
	return nil
}

// redirect leads to another page of the host, with a method of its own.
func (v *visit) redirect(to string) error {
	v.w.Header().Set("Location", to)
	v.w.WriteHeader(http.StatusSeeOther)
	return nil
}

// next is where to go in the end: a page of this host, whatever the query says.
func (v *visit) next() string {
	const otherwise = "/account"
	to := v.form("next")
	u, err := url.Parse(to)
	if err != nil || u.IsAbs() || u.Host != "" || !strings.HasPrefix(u.Path, "/") || strings.HasPrefix(to, "//") || strings.ContainsAny(to, "\\\t\r\n") {
		return otherwise
	}
	return to
}

// fail ends a request that cannot be answered otherwise.
func (v *visit) fail(err error) {
	if p := new(problem); errors.As(err, &p) {
		switch {
		case p.code == "unauthenticated", p.code == "invalid_token":
			_ = v.redirect("/auth/sign-in?next=" + url.QueryEscape(v.r.URL.RequestURI()))
			return
		case p.code == "insufficient_user_authentication":
			to := "/account/step-up?next=" + url.QueryEscape(v.back())
			if p.details["enrolment_required"] == true {
				if to = "/account/security?done=enrol"; p.details["max_age"] != nil { // the session is too old to add a first factor
					to = "/auth/sign-in?next=" + url.QueryEscape("/account/security")
				}
			}
			_ = v.redirect(to)
			return
		}
		err = &web.Error{Status: p.status, Code: p.code, Message: p.text()}
	}
	v.surface.fail(v.w, err, v.call)
}

// back is the page that a form came from, where a second factor is proved in between.
func (v *visit) back() string {
	if v.r.Method == http.MethodGet {
		return v.r.URL.RequestURI()
	}
	if v.r.URL.Path == "/account/email" {
		return v.r.URL.Path
	}
	return "/account/security"
}

// fail shows an error on a page of its own.
func (s *Surface) fail(w http.ResponseWriter, err error, call *web.Call) {
	var e *web.Error
	if !errors.As(err, &e) {
		e = &web.Error{Status: http.StatusInternalServerError, Code: "internal_error", Message: "Something went wrong on our side."}
	}
	s.RenderError(w, e, call)
}

// RenderError shows an error on a page of its own; it is what [web.Surface] wants.
func (s *Surface) RenderError(w http.ResponseWriter, e *web.Error, call *web.Call) {
	secure(w.Header())
	data := struct{ Message, RequestID string }{e.Message, call.RequestID}
	_ = s.write(w, e.Status, "error.html", view{Tenant: call.Tenant.Name, Title: "That did not work", Data: data})
}

// notices are what pages say after something was done, by the name in their address.
var notices = map[string]string{
	"profile":     "Your profile is saved.",
	"password":    "Your password is changed. Other devices are signed out.",
	"email":       "A letter is on its way to the new address. Follow its link to finish.",
	"factor":      "It is added. You can use it at your next sign-in.",
	"removed":     "It is removed.",
	"session":     "That device is signed out.",
	"sessions":    "All other devices are signed out.",
	"enrol":       "Add a second factor or a passkey to go on.",
	"sent":        "If the address has an account here, a letter is on its way to it.",
	"application": "The application is removed.",
	"out":         "You are signed out.",
	"reset":       "Your password is changed.",
}

var links = regexp.MustCompile(`https?://\S+`)

// functions are what templates can call.
var functions = template.FuncMap{
	"date": func(text any) string {
		s, _ := text.(string)
		at, err := time.Parse(time.RFC3339, s)
		if err != nil {
			return ""
		}
		return at.UTC().Format("2 January 2006, 15:04 UTC")
	},
	// link is the first link in a letter.
	"link": func(text string) string { return links.FindString(text) },
	// picture lets a data: URL through that the server itself made.
	"picture": func(text string) template.URL {
		if !strings.HasPrefix(text, "data:image/png;base64,") {
			return ""
		}
		return template.URL(text)
	},
}
