package console

import (
	"bytes"
	"crypto/rand"
	"errors"
	"fmt"
	"html/template"
	"maps"
	"math"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/gorilla/mux"

	"stonetown/api/inprocess"
	"stonetown/api/web"
	"stonetown/identity/branding"
	"stonetown/identity/session"
	"stonetown/oauth/access"
	"stonetown/oauth/protocol"
	"stonetown/oauth/token"
)

// object is a JSON object.
type object = inprocess.Object

// visit is a request for a page.
type visit struct {
	handlers *Handlers
	site     *site
	w        http.ResponseWriter
	r        *http.Request
	info     *web.RequestInfo

	person  string // the address
	session string // its id
	user    string // the id of the person
	token   string // of the person, for operations
	// secondFactor is when the person proved one in this session; zero: never.
	secondFactor time.Time
	scopes       []string // in the token; in the control plane, what the person may do in the organisation
	calls        []call   // for what the page shows
	island       string   // the name of the script; empty: the page has none
	follow       bool     // the page has the script that follows the progress of a job
	org          object   // the organisation of the page; nil: it has none
	// opened and origin are set in a session that was opened from the control plane.
	opened *opened
	origin session.Origin
	formTo string // the origin of another host, to which the form of the page leads; empty: none
}

// The errors of a visit that has to go somewhere else first.
var (
	errSignIn  = errors.New("console: nobody is signed in")
	errEnrol   = errors.New("console: the person must add a second factor first")
	errNoRight = errors.New("console: the person has no administrative right")
)

// signedIn finds the session of the browser at this host. The operation that returns the session
// counts the request against the limits of the person first.
func (v *visit) signedIn() (s session.Session, err error) {
	cookie := v.info.Cookie(web.SessionCookie)
	a, err := inprocess.Call(v.handlers.API, v.r, cookie, http.MethodGet, "/api/v1/auth/session", nil)
	if err != nil {
		return s, err
	}
	status, _ := a.Data.(object)
	user, _ := status["user"].(object)
	v.person, _ = user["email"].(string)
	s, err = v.handlers.Sessions.ByToken(v.r.Context(), v.info.Tenant.ID, cookie)
	switch {
	case errors.Is(err, session.ErrEnded):
		return s, errSignIn
	case err != nil:
		return s, err
	case s.MustEnrol:
		return s, errEnrol
	}
	v.session, v.user, v.secondFactor = s.ID, s.UserID, s.SecondFactor
	if s.Opened() {
		err = v.openedBy(s)
	}
	return s, err
}

// enter issues an access token to the person of the session.
func (v *visit) enter() error {
	s, err := v.signedIn()
	if err != nil {
		return err
	}
	ctx, tenant := v.r.Context(), protocol.Tenant{ID: v.info.Tenant.ID, BaseURL: v.info.Tenant.BaseURL}
	issued, err := v.handlers.Tokens.IssueToUser(ctx, tenant, token.UserToken{
		UserID: s.UserID, SessionID: s.ID, Methods: s.Methods, AuthTime: s.AuthTime, AAL2: !s.SecondFactor.IsZero(),
	})
	if errors.Is(err, access.ErrUserGone) {
		return errSignIn
	}
	if err != nil {
		return err
	}
	v.token, v.scopes = issued.AccessToken, strings.Fields(issued.Scope)
	if len(v.navigation()) == 0 {
		return errNoRight
	}
	return nil
}

// call calls an operation as the person. The error is an [*inprocess.Error] or an internal one.
func (v *visit) call(method, path string, body any) (inprocess.Answer, error) {
	return inprocess.Call(v.handlers.API, v.r, v.token, method, path, body)
}

// read is call for what the page shows, which the page prints as a command, too.
func (v *visit) read(method, path string, body any) (inprocess.Answer, error) {
	v.calls = append(v.calls, call{method, path, body})
	return v.call(method, path, body)
}

// one is read of an object.
func (v *visit) one(path string) (object, error) {
	a, err := v.read(http.MethodGet, path, nil)
	o, _ := a.Data.(object)
	return o, err
}

// many is read of the first page of a list.
func (v *visit) many(path string) ([]any, error) {
	a, err := v.read(http.MethodGet, path, nil)
	list, _ := a.Data.([]any)
	return list, err
}

// act calls an operation that changes something, and leads to a page that says what was done.
func (v *visit) act(path string, body any, page, done string) error {
	if _, err := v.once(http.MethodPost, path, body); err != nil {
		return err
	}
	v.redirect(page + "?done=" + done)
	return nil
}

// variable returns a part of the path.
func (v *visit) variable(name string) string { return mux.Vars(v.r)[name] }

// form returns a value of the form or of the query.
func (v *visit) form(name string) string { return v.r.Form.Get(name) }

// view is the data of every template.
type view struct {
	Tenant  string
	Look    branding.Look
	Title   string
	Person  string // the address of the person
	Start   string // the path of the overview
	Home    bool   // this is the overview
	Areas   []link
	Control bool   // this is the console of the control plane
	Problem string // the error of the form
	Bad     string // the field of the error; empty: none
	Notice  string // the result of the last action
	Calls   []string
	Once    string // see [visit.once]
	Frame   bool   // the page has a frame of this host
	FormTo  string // see [visit]
	Opened  *opened
	Script  string // the path of the script of the island; empty: the page has none
	Search  string // the words of a search
	Data    any
}

// Mark returns the attributes of a field that has an error, and the id of the element that describes
// it; empty: none.
func (v view) Mark(field, hint string) template.HTMLAttr {
	described := hint
	attributes := ""
	if v.Bad == field {
		attributes, described = ` aria-invalid="true" autofocus`, strings.TrimSpace("problem "+hint)
	}
	if described != "" {
		attributes += ` aria-describedby="` + described + `"`
	}
	return template.HTMLAttr(attributes) // field and hint are constants of templates
}

// With returns the data of a template that shows one of the forms of a page.
func (v view) With(f *form) view {
	v.Data = object{"Form": f}
	return v
}

// selection is a field with options.
type selection struct {
	Name, Label, Value string
	Options            []string
	Mark               template.HTMLAttr
}

// Select returns a field with options for the template select.
func (v view) Select(name, label, value string, options []string) selection {
	return selection{name, label, value, options, v.Mark(name, "")}
}

// show renders a template.
func (v *visit) show(name, title string, data any) error {
	return v.render(http.StatusOK, name, view{Title: title, Data: data, Notice: notices[v.form("done")]})
}

// again renders a form with an error.
func (v *visit) again(name, title string, data any, e *fault) error {
	return v.render(e.status, name, view{Title: title, Data: data, Problem: e.text, Bad: e.field})
}

func (v *visit) render(status int, name string, page view) error {
	own := new(branding.Branding)
	if mark := v.info.Tenant.Branding; mark != "" {
		found, err := v.handlers.Brandings.Of(v.r.Context(), v.info.Tenant.ID, mark)
		if err != nil { // the page is shown without it
			v.internal(err)
		} else {
			own = found
		}
	}
	page.Look = own.Look(v.info.Tenant.Name, v.info.Tenant.Branding)
	page.Tenant, page.Start, page.Areas, page.Person, page.Control = page.Look.Name, home, v.navigation(), v.person, v.site.control
	if v.org != nil {
		name, _ := v.org["name"].(string)
		page.Tenant, page.Start = name+" · "+v.info.Tenant.Name, v.organizationPage()
	}
	page.Home = v.r.URL.Path == page.Start
	page.Search, page.Once = v.form("search"), rand.Text()
	page.Opened, page.FormTo = v.opened, v.formTo
	if v.island != "" {
		page.Script = v.handlers.scripts + v.island + ".js"
	}
	if v.follow {
		page.Script = progressScript
	}
	for _, c := range v.calls {
		page.Calls = append(page.Calls, c.curl(v.info.Tenant.BaseURL))
	}
	return v.handlers.write(v.w, status, name, page)
}

func (h *Handlers) write(w http.ResponseWriter, status int, name string, page view) error {
	var b bytes.Buffer
	if err := h.templates[name].Execute(&b, page); err != nil {
		return err
	}
	secure(w.Header(), page.Areas != nil && !page.Control, page.Script != "")
	if page.FormTo != "" { // browsers apply the policy to redirects, too
		w.Header().Set("Content-Security-Policy", strings.Replace(w.Header().Get("Content-Security-Policy"), "form-action 'self'", "form-action 'self' "+page.FormTo, 1))
	}
	if page.Frame {
		w.Header().Set("Content-Security-Policy", w.Header().Get("Content-Security-Policy")+"; frame-src 'self'")
	}
	w.Header().Set("Content-Type", "text/html; charset=utf-8")
	w.WriteHeader(status)
	_, _ = w.Write(b.Bytes()) // an error means that the client has disconnected
	return nil
}

// redirect redirects to another page with the method GET.
func (v *visit) redirect(to string) {
	v.w.Header().Set("Location", to)
	v.w.WriteHeader(http.StatusSeeOther)
}

// maxBack bounds what a path back to a form has of it. Longer ones are refused by servers on the way.
const maxBack = 4 << 10

// back returns the path of the page that a form came from, with what was typed unless it is long. A
// secret is left out: addresses are stored in histories and logs.
func (v *visit) back() string {
	if v.r.Method == http.MethodGet || len(v.r.PostForm) == 0 {
		return v.r.URL.RequestURI()
	}
	typing := maps.Clone(v.r.Form)
	maps.DeleteFunc(typing, func(name string, _ []string) bool { return slices.Contains(secretFields, name) })
	if typed := typing.Encode(); len(typed) <= maxBack {
		return v.r.URL.EscapedPath() + "?" + typed
	}
	return v.r.URL.EscapedPath()
}

// fail responds with an error: with a redirect if another page can resolve it.
func (v *visit) fail(err error) {
	e, refused := errors.AsType[*inprocess.Error](err)
	next := "next=" + url.QueryEscape(v.back())
	switch {
	case errors.Is(err, errSignIn), refused && (e.Code == "unauthenticated" || e.Code == "invalid_token" || e.Code == "UNAUTHENTICATED"):
		v.redirect("/auth/sign-in?" + next)
		return
	case errors.Is(err, errEnrol), refused && e.Details["enrolment_required"] == true:
		v.redirect("/account/security?done=enrol&" + next)
		return
	case refused && e.Details["sign_in_required"] == true:
		v.redirect("/auth/sign-in?done=again&" + next)
		return
	case refused && e.Code == "insufficient_user_authentication":
		v.redirect("/account/step-up?" + next)
		return
	}
	page, status := view{Title: "Something went wrong"}, http.StatusInternalServerError
	message := "Something went wrong on our side."
	shown, other := errors.AsType[*web.Error](err)
	switch {
	case errors.Is(err, errNoRight):
		status, page.Title = http.StatusForbidden, "You have no administrative rights"
		message = "The console is for administrators, and your account has no right to see anything in it. Rights come from groups: ask an administrator to make you a member of one."
	case refused:
		f := faultOf(e)
		status, message = f.status, f.text
		switch e.Status {
		case http.StatusForbidden:
			page.Title = "You may not do this"
		case http.StatusNotFound:
			page.Title = "Not found"
		}
	case other:
		status, message = shown.Status, web.Sentence(shown.Message)
	default:
		v.internal(err)
	}
	page.Data, v.island = object{"Message": message, "RequestID": v.info.RequestID}, ""
	v.follow = false
	if err := v.render(status, "error.html", page); err != nil {
		v.internal(err)
		v.handlers.renderError(v.w, &web.Error{Status: http.StatusInternalServerError, Message: "something went wrong on our side"}, v.info)
	}
}

// internal logs an error, unless the browser has gone.
func (v *visit) internal(err error) {
	if v.r.Context().Err() == nil {
		v.handlers.Internal(v.r, err)
	}
}

// renderError renders an error of the pipeline on a page of its own; see [web.ErrorFormat].
func (h *Handlers) renderError(w http.ResponseWriter, e *web.Error, info *web.RequestInfo) {
	data := object{"Message": web.Sentence(e.Message), "RequestID": info.RequestID}
	_ = h.write(w, e.Status, "error.html", view{Tenant: info.Tenant.Name, Title: "Something went wrong", Data: data})
}

// fault is an error in the words of a page.
type fault struct {
	status int
	text   string
	field  string // of the form; empty: none
}

// invalid is the fault of a value that no operation was asked about.
func invalid(field, text string) *fault { return &fault{http.StatusBadRequest, text, field} }

// faultOf returns the error of an operation in the words of a page. renamed are pairs of the name of
// a member in the operation, or of its beginning, and of the field in the form.
func faultOf(e *inprocess.Error, renamed ...string) *fault {
	f := &fault{status: e.Status, text: web.Sentence(e.Message)}
	switch {
	case e.Code == "insufficient_scope" || e.Code == "permission_denied" && e.Details["required_scope"] != nil:
		f.text = fmt.Sprintf("This requires the scope %v, which you do not have. Groups give scopes: ask an administrator.", e.Details["required_scope"])
	case e.Code == "idempotency_key_reused", e.Code == "CONFLICT" && e.Status == http.StatusUnprocessableEntity:
		f.text = "This form was sent before, with other values. See what came of that before you send it again."
	case e.Code == "rate_limited", e.Code == "RATE_LIMITED":
		f.text = fmt.Sprintf("Too many requests. Please wait %d seconds and try again.", max(1, e.After))
	case e.Status >= http.StatusInternalServerError:
		f.text = "Something went wrong on our side. Please try again later."
	case e.Code == "validation_failed", e.Code == "BAD_REQUEST":
		var parts []string
		faults, _ := e.Details["field_errors"].([]any)
		for _, item := range faults {
			one, _ := item.(object)
			name, _ := one["field"].(string)
			message, _ := one["message"].(string)
			if !strings.HasPrefix(message, name) {
				message = name + " " + message
			}
			parts = append(parts, message)
			for i := 0; f.field == "" && i+1 < len(renamed); i += 2 {
				if strings.HasPrefix(name, renamed[i]) {
					f.field = renamed[i+1]
				}
			}
		}
		if parts != nil {
			f.text = "Please check: " + strings.Join(parts, "; ") + "."
		}
	}
	return f
}

// notices are the messages about the last action, by the parameter done.
var notices = map[string]string{
	"disabled":       "User disabled, and signed out everywhere.",
	"enabled":        "User enabled.",
	"user-created":   "User created.",
	"user-deleted":   "User deleted.",
	"reset-sent":     "A link to a new password is on its way to the user.",
	"signed-out":     "Signed out everywhere.",
	"session-ended":  "Session ended.",
	"factors-reset":  "Factors removed, and signed out everywhere.",
	"factor-removed": "Factor removed.",
	"access-revoked": "Access revoked.",
	"added":          "Added.",
	"existed":        "The user was a member before.",
	"removed":        "Removed.",
	"model":          "Model changed.",

	"group-created": "Group created.",
	"group-deleted": "Group deleted.",
	"scope-created": "Scope created.",
	"registered":    "Resource registered.",
	"unregistered":  "Resource deleted, with its relations.",
	"scope-deleted": "Scope deleted.",

	"app-disabled": "Application disabled.",
	"app-enabled":  "Application enabled.",
	"app-created":  "Application created.",
	"app-deleted":  "Application deleted.",
	"saved":        "Saved.",
	"deleted":      "Deleted.",
	"tested":       "Test event queued.",
	"redelivered":  "Delivery queued.",
	"replayed":     "Dead letters queued.",
	"dropped":      "Dropped.",
	"none":         "No dead letters were chosen.",

	"connection-created":  "Connection created.",
	"connection-disabled": "Connection disabled.",
	"connection-enabled":  "Connection enabled.",
	"connection-deleted":  "Connection deleted.",

	"keys-rotated":         "New keys published.",
	"keys-replaced":        "All keys replaced.",
	"certificate-rotated":  "New certificate published.",
	"certificate-replaced": "Certificate replaced.",

	"issuer-created":  "Issuer trusted.",
	"issuer-enabled":  "Trusted issuer enabled.",
	"issuer-disabled": "Trusted issuer disabled.",
	"issuer-deleted":  "Trusted issuer deleted.",

	"import-cancelled": "Import stopped.",

	"hook-disabled": "Subscription disabled.",
	"hook-enabled":  "Subscription enabled.",
	"hook-deleted":  "Subscription deleted.",

	"flow-saved":     "Draft saved.",
	"flow-published": "Published.",
	"flow-discarded": "Draft discarded.",

	"threat-created":   "Threat feed created.",
	"threat-uploaded":  "List replaced.",
	"threat-refreshed": "The list will be fetched in a moment.",
	"threat-deleted":   "Threat feed deleted.",

	"logo-set":     "Logo saved.",
	"logo-removed": "Logo removed.",
	"mail-reset":   "The mail has the built-in text again.",
	"mail-sent":    "A test mail is on its way to your address.",

	"incident-opened":   "Incident opened.",
	"incident-closed":   "Incident closed.",
	"incident-notified": "The users are being notified.",

	"report-saved":   "Report saved.",
	"report-deleted": "Report deleted.",

	"organization-created": "Organisation created.",
	"suspended":            "Tenant suspended.",
	"resumed":              "Tenant resumed.",
	"decommissioned":       "Tenant decommissioned.",
	"left":                 "You have left the organisation.",
	"member-removed":       "Member removed.",
	"account-deleted":      "Service account deleted.",
	"invited":              "Invitation sent.",
	"resent":               "Invitation sent again. The link that was sent before is no longer valid.",
	"withdrawn":            "Invitation withdrawn.",
}

// functions are the functions of the templates.
var functions = template.FuncMap{
	"date": web.Date,
	"json": indented,
	// instant is date to the second.
	"instant": func(text string) string {
		at, err := time.Parse(time.RFC3339, text)
		if err != nil {
			return ""
		}
		return at.UTC().Format("2006-01-02 15:04:05 UTC")
	},
	"duration": func(seconds float64) string {
		for _, unit := range []struct {
			name    string
			seconds float64
		}{{"day", 86400}, {"hour", 3600}, {"minute", 60}} {
			switch n := seconds / unit.seconds; {
			case n == 1:
				return "1 " + unit.name
			case n > 1 && n == math.Trunc(n):
				return fmt.Sprintf("%.0f %ss", n, unit.name)
			}
		}
		return fmt.Sprintf("%.0f seconds", seconds)
	},
	// name returns the name of a value for people.
	"name": displayName,
	// segment escapes an id for a path.
	"segment": url.PathEscape,
}
