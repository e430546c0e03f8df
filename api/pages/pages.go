// Package pages serves the hosted pages: sign-in, sign-up and the account of the user.
//
// Pages are rendered on the server and work without scripts, except passkeys, which browsers
// offer to scripts only. A page has no privileges: it calls the public operations under /api/v1
// as a client in the same process (client.go), with the session of the browser's cookie. The
// state of a sign-in between two pages is in a cookie of its own (pending.go).
//
// The field next of each page contains the path of the user's destination, through sign-up,
// mails, second factors and back.
//
// Scripts and styles are never inline, so that the content security policy can refuse all except
// those of the tenant's own host.
package pages

import (
	"embed"
	"fmt"
	"html/template"
	"io/fs"
	"net/http"
	"path"
	"strings"

	"stonetown/api/web"
	"stonetown/internal/notify"
	"stonetown/internal/ratelimit"
)

//go:embed templates assets
var files embed.FS

// Colors is the style sheet with the colours of the pages, for pages that are served elsewhere.
//
//go:embed assets/tokens.css
var Colors string

// contentPolicy is the content security policy of every page. The picture of a TOTP key is a
// data: URL.
const contentPolicy = "default-src 'self'; " + images + "; frame-ancestors 'none'; base-uri 'none'; object-src 'none'"

// images are the sources of pictures.
const images = "img-src 'self' data:"

// Mailbox contains the sent messages, on a development server.
type Mailbox interface {
	Items(limit int) ([]notify.Item, error)
}

// Handlers serves the pages. It is safe for concurrent use.
type Handlers struct {
	// API serves the operations.
	API http.Handler
	// Mailbox is shown without authentication. Default: there is no such page.
	Mailbox Mailbox
	// Welcome is the page at / of tenants. Default: / redirects to the account.
	Welcome *Welcome
	// SecurityContact is the URI for reports of vulnerabilities (RFC 9116 §2.5.3). Default:
	// none is published.
	SecurityContact string
	// Brandings has the brandings of tenants.
	Brandings Brandings
	// Internal logs an error of a page that is no error of the request.
	Internal func(r *http.Request, err error)

	templates map[string]*template.Template
	notFound  http.Handler
}

// page handles one method of a path.
type page func(*visit) error

// mediaTypes are those of assets. Package mime would read those of the system, which takes a
// millisecond and differs between systems.
var mediaTypes = map[string]string{".css": "text/css; charset=utf-8", ".ico": "image/x-icon", ".js": "text/javascript; charset=utf-8"}

// Routes returns the pages by path and method. wrap adds the pipeline of all requests to a page.
func (h *Handlers) Routes(wrap func(web.Operation, web.ErrorFormat, http.Handler) http.Handler) (map[string]map[string]http.Handler, error) {
	var err error
	if h.templates, err = web.ParseTemplates(files, functions); err != nil {
		return nil, fmt.Errorf("pages: %w", err)
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
		"/auth/organization":         {"GET": organizationForm, "POST": organization},
		linkPage:                     {"GET": linkForm, "POST": linkAccount},
		callbackPage:                 {"GET": callback, "POST": callbackForm},
		acsPage:                      {"POST": acs},
		responsePage:                 {"POST": samlResponse},
		"/account/link-identity":     {"GET": linkIdentityForm, "POST": linkIdentity},
		InvitationPage:               {"GET": invitationForm, "POST": acceptInvitation},
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
			op.CrossSite = path == callbackPage || path == acsPage
			if method == http.MethodPost {
				op.MediaType = "application/x-www-form-urlencoded"
			}
			limit := int64(maxForm)
			if path == acsPage || path == responsePage {
				limit = maxResponse
			}
			routes[path][method] = wrap(op, format, h.handler(p, limit))
		}
	}
	h.notFound = wrap(web.Operation{ID: "page not found", Method: http.MethodGet, Page: true, RateLimit: ratelimit.None}, format,
		h.handler(func(*visit) error { return web.NotFound() }, maxForm))
	assets, err := fs.ReadDir(files, "assets")
	if err != nil {
		return nil, err
	}
	for _, entry := range assets {
		text, err := fs.ReadFile(files, "assets/"+entry.Name())
		if err != nil {
			return nil, err
		}
		document := web.Document{Body: text, MediaType: mediaTypes[path.Ext(entry.Name())], CacheControl: "public, max-age=300"}
		if document.MediaType == "" {
			return nil, fmt.Errorf("pages: the asset %s has no media type", entry.Name())
		}
		op := web.Operation{ID: "asset", Method: http.MethodGet, Path: "/auth/assets/" + entry.Name(), Page: true, RateLimit: ratelimit.None}
		if entry.Name() == "favicon.ico" { // the default path of browsers
			op.Path = "/favicon.ico"
			document.CacheControl = "public, max-age=86400"
		}
		routes[op.Path] = map[string]http.Handler{http.MethodGet: wrap(op, format, http.HandlerFunc(document.Serve))}
	}
	for path, serve := range h.brandingFiles() {
		op := web.Operation{ID: "asset", Method: http.MethodGet, Path: path, Page: true, RateLimit: ratelimit.None}
		routes[path] = map[string]http.Handler{http.MethodGet: wrap(op, format, serve)}
	}
	return routes, nil
}

// NotFound serves a page for an unknown path, if the request is that of a browser for a page. It
// reports whether it did.
func (h *Handlers) NotFound(w http.ResponseWriter, r *http.Request) bool {
	api := strings.HasPrefix(r.URL.Path, "/api/") || strings.HasPrefix(r.URL.Path, "/.well-known/")
	if api || r.Method != http.MethodGet || !strings.Contains(r.Header.Get("Accept"), "text/html") {
		return false
	}
	h.notFound.ServeHTTP(w, r)
	return true
}

// maxForm bounds the body of most forms, in bytes.
const maxForm = 64 << 10

// handler serves a page whose forms have at most limit bytes.
func (h *Handlers) handler(p page, limit int64) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		v := &visit{handlers: h, w: w, r: r, info: web.InfoOf(r.Context())}
		secure(w.Header())
		err := web.ReadForm(w, r, limit)
		own, unread := h.brandingOf(r.Context(), v.info)
		if unread != nil && r.Context().Err() == nil {
			h.Internal(r, unread)
		}
		v.own = own
		v.speak()
		if err == nil {
			err = p(v)
		}
		if err != nil {
			v.fail(err)
		}
	})
}

// secure sets the security headers of a page.
func secure(h http.Header) {
	h.Set("Content-Security-Policy", contentPolicy)
	h.Set("X-Frame-Options", "DENY")
}
