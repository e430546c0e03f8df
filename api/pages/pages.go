// Package pages is what people see: signing in and up, and their accounts.
//
// A page is made on the server and works without a script, but for passkeys, which a
// browser has by script only. A page knows nothing that a client could not: all it does
// it asks of the public operations under /api/v1, as a client in the same process
// (client.go), with the session of the browser's cookie. What a sign-in needs to remember
// from one page to the next is in a cookie of its own (flow.go).
//
// Each page carries the path that its user is going to in the field next, through signing up,
// letters, second factors and back, and leads to it in the end.
//
// Nothing on a page is inline, so that its policy (CSP) can refuse all scripts and styles
// but those of the tenant's own host.
package pages

import (
	"embed"
	"fmt"
	"html/template"
	"io/fs"
	"mime"
	"net/http"
	"path"
	"strings"

	"stonetown/api/web"
	"stonetown/internal/notify"
	"stonetown/internal/ratelimit"
)

//go:embed templates assets
var files embed.FS

// contentPolicy is the content security policy of every page. The picture of a TOTP key is a
// data: URL.
const contentPolicy = "default-src 'self'; " + images + "; frame-ancestors 'none'; base-uri 'none'; object-src 'none'"

// images is where pictures may come from.
const images = "img-src 'self' data:"

// Mailbox has what was sent to people, on a development server.
type Mailbox interface {
	Items(limit int) ([]notify.Item, error)
}

// Handlers serves the pages. It is safe for concurrent use.
type Handlers struct {
	// API answers the operations of the tenant's host.
	API http.Handler
	// Mailbox is shown to everybody. Default: there is none.
	Mailbox Mailbox
	// SecurityContact is whom to tell of weaknesses, as a URI (RFC 9116 §2.5.3). Default: that
	// is not said.
	SecurityContact string

	templates map[string]*template.Template
	notFound  http.Handler
}

// page answers one method of a path.
type page func(*visit) error

// Routes returns the pages by path and method. wrap puts around each what every request
// passes.
func (h *Handlers) Routes(wrap func(web.Operation, web.ErrorFormat, http.Handler) http.Handler) (map[string]map[string]http.Handler, error) {
	if err := h.parse(); err != nil {
		return nil, err
	}
	pages := map[string]map[string]page{
		"/auth/sign-in":              {"GET": signInForm, "POST": signIn},
		"/auth/sign-up":              {"GET": signUpForm, "POST": signUp},
		"/auth/mfa":                  {"GET": secondFactor, "POST": proveFactor},
		"/auth/reset-password":       {"GET": resetForm, "POST": reset},
		"/":                          {"GET": front},
		"/auth/verify-email":         {"GET": verifyEmail, "POST": confirmEmail},
		"/auth/revert-email":         {"GET": revertForm, "POST": revertEmail},
		"/auth/consent":              {"GET": consentForm, "POST": consent},
		"/auth/select-account":       {"GET": accountForm, "POST": selectAccount},
		"/device":                    {"GET": deviceForm, "POST": device},
		"/auth/error":                {"GET": errorPage},
		"/auth/sign-out":             {"GET": signOutForm, "POST": signOut},
		"/account":                   {"GET": account, "POST": saveProfile},
		"/account/security":          {"GET": security},
		"/account/sessions":          {"GET": sessions},
		"/account/end-session":       {"GET": endSessionForm, "POST": endSession},
		"/account/applications":      {"GET": applications},
		"/account/end-authorization": {"GET": endAuthorizationForm, "POST": endAuthorization},
		"/account/password":          {"GET": passwordForm, "POST": changePassword},
		"/account/email":             {"GET": emailForm, "POST": changeEmail},
		"/account/totp":              {"GET": totpForm, "POST": addTOTP},
		"/account/sms":               {"GET": smsForm, "POST": addSMS},
		"/account/passkey":           {"GET": passkeyForm, "POST": addPasskey},
		"/account/remove-factor":     {"GET": removeFactorForm, "POST": removeFactor},
		"/account/remove-identity":   {"GET": removeIdentityForm, "POST": removeIdentity},
		"/account/backup-codes":      {"GET": backupCodesForm, "POST": backupCodes},
		"/account/step-up":           {"GET": stepUpForm, "POST": stepUp},
	}
	for path, p := range h.wellKnown() {
		pages[path] = map[string]page{"GET": p}
	}
	if h.Mailbox != nil {
		pages["/dev/mailbox"] = map[string]page{"GET": mailbox}
	}
	format := web.ErrorFormat{Render: h.RenderError}
	routes := map[string]map[string]http.Handler{}
	for path, methods := range pages {
		routes[path] = map[string]http.Handler{}
		for method, p := range methods {
			op := web.Operation{ID: "page " + path, Method: method, Path: path, Page: true, Effects: !strings.HasPrefix(path, "/.well-known/"), RateLimit: ratelimit.None}
			if method == http.MethodPost {
				op.MediaType = "application/x-www-form-urlencoded"
			}
			routes[path][method] = wrap(op, format, h.handler(p))
		}
	}
	h.notFound = wrap(web.Operation{ID: "page not found", Method: http.MethodGet, Page: true, RateLimit: ratelimit.None}, format,
		h.handler(func(*visit) error { return web.NotFound() }))
	assets, err := fs.ReadDir(files, "assets")
	if err != nil {
		return nil, err
	}
	for _, entry := range assets {
		text, err := fs.ReadFile(files, "assets/"+entry.Name())
		if err != nil {
			return nil, err
		}
		document := web.Document{Body: text, MediaType: mime.TypeByExtension(path.Ext(entry.Name())), CacheControl: "public, max-age=300"}
		op := web.Operation{ID: "asset", Method: http.MethodGet, Path: "/auth/assets/" + entry.Name(), Page: true, RateLimit: ratelimit.None}
		if entry.Name() == "favicon.ico" { // where browsers look for it that were not told
			op.Path = "/favicon.ico"
			document.MediaType, document.CacheControl = "image/x-icon", "public, max-age=86400"
		}
		routes[op.Path] = map[string]http.Handler{http.MethodGet: wrap(op, format, http.HandlerFunc(document.Serve))}
	}
	return routes, nil
}

// front leads to the account or, on from there, to the page of sign-in.
func front(v *visit) error { return v.redirect(home) }

// NotFound answers for paths that lead nowhere, if it is a browser that asks for a page there.
func (h *Handlers) NotFound(w http.ResponseWriter, r *http.Request) bool {
	api := strings.HasPrefix(r.URL.Path, "/api/") || strings.HasPrefix(r.URL.Path, "/.well-known/")
	if api || r.Method != http.MethodGet || !strings.Contains(r.Header.Get("Accept"), "text/html") {
		return false
	}
	h.notFound.ServeHTTP(w, r)
	return true
}

// parse reads the templates, each together with the layout.
func (h *Handlers) parse() error {
	h.templates = map[string]*template.Template{}
	layout, err := template.New("layout.html").Funcs(functions).ParseFS(files, "templates/layout.html")
	if err != nil {
		return fmt.Errorf("pages: %w", err)
	}
	names, err := fs.Glob(files, "templates/*.html")
	if err != nil {
		return fmt.Errorf("pages: %w", err)
	}
	for _, name := range names {
		if h.templates[path.Base(name)], err = layout.Clone(); err == nil {
			_, err = h.templates[path.Base(name)].ParseFS(files, name)
		}
		if err != nil {
			return fmt.Errorf("pages: %w", err)
		}
	}
	return nil
}

// maxForm bounds the body of a form, in bytes.
const maxForm = 64 << 10

func (h *Handlers) handler(p page) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		v := &visit{handlers: h, w: w, r: r, info: web.InfoOf(r.Context())}
		secure(w.Header())
		r.Body = http.MaxBytesReader(w, r.Body, maxForm)
		err := r.ParseForm()
		if err != nil {
			err = &web.Error{Status: http.StatusBadRequest, Code: "validation_failed", Message: "the form is not valid"}
		} else {
			err = p(v)
		}
		if err != nil {
			v.fail(err)
		}
	})
}

// secure tells browsers what a page may do.
func secure(h http.Header) {
	h.Set("Content-Security-Policy", contentPolicy)
	h.Set("X-Frame-Options", "DENY")
}
