// Package pages is what people see: signing in and up, and their accounts.
//
// A page is made on the server and works without a script, but for passkeys, which a
// browser has by script only. A page knows nothing that a client could not: all it does
// it asks of the public operations under /api/v1, as a client in the same process
// (client.go), with the session of the browser's cookie. What a sign-in needs to remember
// from one page to the next is in a cookie of its own (flow.go).
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

	"stonetown/api/web"
	"stonetown/internal/post"
	"stonetown/internal/ratelimit"
)

//go:embed templates assets
var files embed.FS

// policy is the content security policy of every page. The picture of a TOTP key is a
// data: URL.
const policy = "default-src 'self'; " + images + "; frame-ancestors 'none'; base-uri 'none'; object-src 'none'"

// images is where pictures may come from.
const images = "img-src 'self' data:"

// Mailbox has what was sent to people, on a development server.
type Mailbox interface {
	Items(limit int) ([]post.Item, error)
}

// Surface makes the pages. It is safe for concurrent use.
type Surface struct {
	// API answers the operations of the tenant's host.
	API http.Handler
	// Mailbox is shown to everybody. Default: there is none.
	Mailbox Mailbox
	// SecurityContact is whom to tell of weaknesses, as a URI (RFC 9116 §2.5.3). Default: that
	// is not said.
	SecurityContact string

	templates map[string]*template.Template
}

// page answers one method of a path.
type page func(*visit) error

// Routes returns the pages by path and method. wrap puts around each what every request
// passes.
func (s *Surface) Routes(wrap func(web.Operation, web.Surface, http.Handler) http.Handler) (map[string]map[string]http.Handler, error) {
	if err := s.parse(); err != nil {
		return nil, err
	}
	pages := map[string]map[string]page{
		"/auth/sign-in":            {"GET": signInForm, "POST": signIn},
		"/auth/sign-up":            {"GET": signUpForm, "POST": signUp},
		"/auth/mfa":                {"GET": secondFactor, "POST": proveFactor},
		"/auth/reset-password":     {"GET": resetForm, "POST": reset},
		"/auth/verify-email":       {"GET": verifyEmail, "POST": resendEmail},
		"/auth/revert-email":       {"GET": revertForm, "POST": revertEmail},
		"/auth/consent":            {"GET": consentForm, "POST": consent},
		"/auth/select-account":     {"GET": accountForm, "POST": selectAccount},
		"/device":                  {"GET": deviceForm, "POST": device},
		"/auth/error":              {"GET": errorPage},
		"/auth/sign-out":           {"GET": signOutForm, "POST": signOut},
		"/account":                 {"GET": account, "POST": saveProfile},
		"/account/security":        {"GET": security},
		"/account/sessions":        {"GET": sessions, "POST": endSession},
		"/account/applications":    {"GET": applications, "POST": endAuthorization},
		"/account/password":        {"GET": passwordForm, "POST": changePassword},
		"/account/email":           {"GET": emailForm, "POST": changeEmail},
		"/account/totp":            {"GET": totpForm, "POST": addTOTP},
		"/account/sms":             {"GET": smsForm, "POST": addSMS},
		"/account/passkey":         {"GET": passkeyForm},
		"/account/remove-factor":   {"POST": removeFactor},
		"/account/remove-identity": {"POST": removeIdentity},
		"/account/backup-codes":    {"POST": backupCodes},
		"/account/step-up":         {"GET": stepUpForm, "POST": stepUp},
	}
	for path, p := range s.wellKnown() {
		pages[path] = map[string]page{"GET": p}
	}
	if s.Mailbox != nil {
		pages["/dev/mailbox"] = map[string]page{"GET": mailbox}
	}
	surface := web.Surface{Render: s.RenderError}
	routes := map[string]map[string]http.Handler{}
	for path, methods := range pages {
		routes[path] = map[string]http.Handler{}
		for method, p := range methods {
			op := web.Operation{ID: "page " + path, Method: method, Path: path, Page: true, RateLimit: ratelimit.None}
			if method == http.MethodPost {
				op.MediaType = "application/x-www-form-urlencoded"
			}
			routes[path][method] = wrap(op, surface, s.handler(p))
		}
	}
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
		routes[op.Path] = map[string]http.Handler{http.MethodGet: wrap(op, surface, http.HandlerFunc(document.Serve))}
	}
	return routes, nil
}

// parse reads the templates, each together with the layout.
func (s *Surface) parse() error {
	s.templates = map[string]*template.Template{}
	layout, err := template.New("layout.html").Funcs(functions).ParseFS(files, "templates/layout.html")
	if err != nil {
		return fmt.Errorf("pages: %w", err)
	}
	names, err := fs.Glob(files, "templates/*.html")
	if err != nil {
		return fmt.Errorf("pages: %w", err)
	}
	for _, name := range names {
		if s.templates[path.Base(name)], err = layout.Clone(); err == nil {
			_, err = s.templates[path.Base(name)].ParseFS(files, name)
		}
		if err != nil {
			return fmt.Errorf("pages: %w", err)
		}
	}
	return nil
}

// maxForm bounds the body of a form, in bytes.
const maxForm = 64 << 10

func (s *Surface) handler(p page) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		v := &visit{surface: s, w: w, r: r, call: web.CallOf(r.Context())}
		secure(w.Header())
		r.Body = http.MaxBytesReader(w, r.Body, maxForm)
		err := r.ParseForm()
		if err != nil {
			err = &web.Error{Status: http.StatusBadRequest, Code: "validation_failed", Message: "the form cannot be read"}
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
	h.Set("Content-Security-Policy", policy)
	h.Set("X-Frame-Options", "DENY")
}
