// Package console serves the console, in which administrators of a tenant work in a browser.
//
// The console has no privileges and no state. Each page is rendered on the server, works without
// scripts, and gets what it shows from the public operations under /api/v1, as any client could
// ([stonetown/api/inprocess]); it prints these requests as curl commands. Some pages have an island
// (islands.go), a script that makes more of what the page has.
//
// A person signs in on the hosted pages. The browser has nothing but the cookie of that session,
// which no administrative operation accepts. For each page, an access token is issued to the
// person of the session (visit.go), with the scopes that the person has at this moment through
// groups. It is not stored and does not leave the process, so that neither a script in the
// browser nor a stolen page can use it, and a right that is withdrawn is gone with the next page.
// A sign-out ends the session, and nothing else is there to end.
//
// The scopes decide what a page offers (rights.go). They protect nothing: the operations do. A delicate
// form needs a recent second factor besides (delicate.go).
//
// The console of the control plane, in which members of organisations work, has the same frame
// (control.go). Its operations accept the session, and permissions have the place of scopes.
package console

import (
	"context"
	"embed"
	"fmt"
	"html/template"
	"io/fs"
	"net/http"
	"strings"
	"time"

	"stonetown/api/web"
	"stonetown/controlplane"
	"stonetown/identity/authn"
	"stonetown/identity/branding"
	"stonetown/identity/session"
	"stonetown/internal/ratelimit"
	"stonetown/oauth/protocol"
	"stonetown/oauth/token"
)

//go:embed templates assets dist
var files embed.FS

// contentPolicy is the content security policy of every page, scriptPolicy what it has besides on a
// page with the script of the shortcut, which all pages in the console have, and islandPolicy what it
// has besides on a page with an island.
const (
	contentPolicy = "default-src 'none'; style-src 'self'; img-src 'self'; form-action 'self'; frame-ancestors 'none'; base-uri 'none'"
	scriptPolicy  = "; script-src 'self'"
	islandPolicy  = "; worker-src 'self'; connect-src 'self'"
)

// Sessions finds the sessions of browsers.
type Sessions interface {
	// ByToken fails with [session.ErrEnded].
	ByToken(ctx context.Context, tenantID, token string) (session.Session, error)
	// SteppedUp reports whether a second factor was proved recently.
	SteppedUp(secondFactor time.Time) bool
	// WayToAAL2 returns the way in which a user can prove one.
	WayToAAL2(ctx context.Context, tenantID, userID string) (authn.Way, error)
	// ReadEntry describes the token of a link from the control plane, and Enter begins a session with
	// it. They fail with [authn.ErrToken], Enter also with [authn.ErrDisabled] or [authn.ErrThreat].
	ReadEntry(ctx context.Context, t authn.Tenant, token string) (authn.Entry, error)
	Enter(ctx context.Context, t authn.Tenant, token string, d authn.Device) (authn.Result, error)
}

// Organizations has the organisations of tenants.
type Organizations interface {
	OrganizationByID(ctx context.Context, orgID string) (controlplane.Organization, error)
}

// Brandings has the brandings of tenants.
type Brandings interface {
	Of(ctx context.Context, tenantID, mark string) (*branding.Branding, error)
}

// Tokens issues access tokens.
type Tokens interface {
	IssueToUser(ctx context.Context, tenant protocol.Tenant, t token.UserToken) (token.Response, error)
}

// Handlers serves the console. It is safe for concurrent use.
type Handlers struct {
	// API serves the operations.
	API      http.Handler
	Sessions Sessions
	Tokens   Tokens
	// Brandings has the brandings of tenants.
	Brandings Brandings
	// Organizations has the names of organisations, and ControlURL is the address of their pages;
	// empty: there is no control plane.
	Organizations Organizations
	ControlURL    string
	// Internal logs an error of a page that is no error of the request.
	Internal func(r *http.Request, err error)

	templates map[string]*template.Template
	scripts   string // the path of the folder of the islands
}

// page handles one method of a path.
type page func(*visit) error

// home is the path of the first page.
const home = "/console"

// progressScript is the path of the script that follows the progress of a job.
const progressScript = home + "/assets/progress.js"

// wrap adds the pipeline of all requests to a page.
type wrap func(web.Operation, web.ErrorFormat, http.Handler) http.Handler

// site is what the console of a tenant and that of the control plane do not share.
type site struct {
	// enter finds what the person of the session may do.
	enter func(*visit) error
	// areas are those that the person may read, in the order of the navigation.
	areas func(*visit) []area
	// control reports whether it is the console of the control plane, which has no search.
	control bool
}

// Routes returns the pages of the console of a tenant by path and method.
func (h *Handlers) Routes(wrap wrap) (map[string]map[string]http.Handler, error) {
	routes, err := h.routes(wrap, &site{enter: (*visit).enter, areas: (*visit).areas}, map[string]map[string]page{
		home:                                    {"GET": overview},
		confirmedPage:                           {"GET": confirmedInTab},
		searchPage:                              {"GET": search},
		usersPage:                               {"GET": users},
		importsPage:                             {"GET": imports},
		importAction:                            {"GET": imports, "POST": upload},
		importsPage + "/{job_id}":               {"GET": oneImport},
		importsPage + "/{job_id}/cancel":        {"GET": cancelImportForm, "POST": cancelImport},
		importsPage + "/{job_id}/errors.csv":    {"GET": importErrors},
		usersPage + "/new":                      {"GET": newUserForm, "POST": createUser},
		usersPage + "/{user_id}":                {"GET": user},
		usersPage + "/{user_id}/edit":           {"GET": editUserForm, "POST": editUser},
		usersPage + "/{user_id}/delete":         {"GET": deleteUserForm, "POST": deleteUser},
		usersPage + "/{user_id}/reset-password": {"GET": user, "POST": sendReset},
		usersPage + "/{user_id}/sign-out":       {"GET": endSessionsForm, "POST": endSessions},
		usersPage + "/{user_id}/sessions/{session_id}/end":            {"GET": user, "POST": endSession},
		usersPage + "/{user_id}/reset-factors":                        {"GET": resetFactorsForm, "POST": resetFactors},
		usersPage + "/{user_id}/factors/{factor_id}/remove":           {"GET": removeFactorForm, "POST": removeFactor},
		usersPage + "/{user_id}/disable":                              {"GET": disableForm, "POST": disable},
		usersPage + "/{user_id}/enable":                               {"GET": user, "POST": enable},
		usersPage + "/{user_id}/applications/{application_id}/revoke": {"GET": revokeAccessForm, "POST": revokeAccess},
		groupsPage:                        {"GET": groups},
		groupsPage + "/{group_id}":        {"GET": group, "POST": addMember},
		groupsPage + "/{group_id}/remove": {"GET": removeMemberForm, "POST": removeMember},
		groupsPage + "/new":               {"GET": newGroupForm, "POST": createGroup},
		groupsPage + "/{group_id}/edit":   {"GET": editGroupForm, "POST": editGroup},
		groupsPage + "/{group_id}/delete": {"GET": deleteGroupForm, "POST": deleteGroup},
		accessPage:                        {"GET": ask},
		subjectsPage:                      {"GET": listSubjects},
		resourcesPage:                     {"GET": listResources},
		simulatorPage:                     {"GET": simulator},
		modelPage:                         {"GET": model, "POST": planModel},
		applyPage:                         {"GET": model, "POST": applyModel},
		relationsPage:                     {"GET": findRelations},
		addPage:                           {"GET": addForm, "POST": add},
		removePage:                        {"GET": removeForm, "POST": remove},
		registeredPage:                    {"GET": listRegistered},
		registeredPage + "/new":           {"GET": newRegisteredForm, "POST": register},
		registeredPage + "/edit":          {"GET": editRegisteredForm, "POST": editRegistered},
		registeredPage + "/delete":        {"GET": deleteRegisteredForm, "POST": deleteRegistered},

		flowPage:                                     {"GET": signInFlow},
		flowPage + "/steps/{list}/new":               {"GET": itemForm, "POST": saveItem},
		flowPage + "/steps/{list}/{position}":        {"GET": itemForm, "POST": saveItem},
		flowPage + "/steps/{list}/{position}/move":   {"GET": signInFlow, "POST": moveStep},
		flowPage + "/steps/{list}/{position}/remove": {"GET": signInFlow, "POST": removeItem},
		flowPage + "/new-action":                     {"GET": itemForm, "POST": saveItem},
		flowPage + "/actions/{action_name}":          {"GET": itemForm, "POST": saveItem},
		flowPage + "/actions/{action_name}/remove":   {"GET": signInFlow, "POST": removeItem},
		flowPage + "/actions/{action_name}/secret":   {"GET": newSecretForm, "POST": newSecret},
		flowPage + "/preview":                        {"GET": previewFlowForm, "POST": previewFlow},
		flowPage + "/publish":                        {"GET": publishFlowForm, "POST": publishFlow},
		flowPage + "/discard":                        {"GET": discardFlowForm, "POST": discardFlow},
		flowPage + "/versions":                       {"GET": flowVersions},
		flowPage + "/versions/{version}":             {"GET": flowVersion},
		flowPage + "/versions/{version}/rollback":    {"GET": rollbackFlowForm, "POST": rollbackFlow},

		applicationsPage:                                     {"GET": applications},
		applicationsPage + "/{application_id}":               {"GET": application},
		applicationsPage + "/{application_id}/disable":       {"GET": disableApplicationForm, "POST": disableApplication},
		applicationsPage + "/{application_id}/enable":        {"GET": application, "POST": enableApplication},
		applicationsPage + "/new":                            {"GET": newApplicationForm, "POST": createApplication},
		applicationsPage + "/{application_id}/edit":          {"GET": editApplicationForm, "POST": editApplication},
		applicationsPage + "/{application_id}/rotate-secret": {"GET": rotateApplicationSecretForm, "POST": rotateApplicationSecret},
		applicationsPage + "/{application_id}/delete":        {"GET": deleteApplicationForm, "POST": deleteApplication},
		applicationsPage + "/{application_id}/claims":        {"GET": claimsPage, "POST": previewClaims},
		applicationsPage + "/{application_id}/claims/save":   {"GET": claimsPage, "POST": saveClaims},
		webhooksPage:                                      {"GET": subscriptions},
		webhooksPage + "/{subscription_id}":               {"GET": subscription},
		webhooksPage + "/{subscription_id}/test":          {"GET": subscription, "POST": testSubscription},
		webhooksPage + "/{subscription_id}/replay":        {"GET": subscription, "POST": replayDeadLetters},
		webhooksPage + "/{subscription_id}/drop":          {"GET": dropDeadLettersForm, "POST": dropDeadLetters},
		webhooksPage + "/new":                             {"GET": newSubscriptionForm, "POST": createSubscription},
		webhooksPage + "/event-types":                     {"GET": eventTypes},
		webhooksPage + "/{subscription_id}/edit":          {"GET": editSubscriptionForm, "POST": editSubscription},
		webhooksPage + "/{subscription_id}/disable":       {"GET": disableSubscriptionForm, "POST": disableSubscription},
		webhooksPage + "/{subscription_id}/enable":        {"GET": subscription, "POST": enableSubscription},
		webhooksPage + "/{subscription_id}/rotate-secret": {"GET": rotateSubscriptionSecretForm, "POST": rotateSubscriptionSecret},
		webhooksPage + "/{subscription_id}/delete":        {"GET": deleteSubscriptionForm, "POST": deleteSubscription},
		webhooksPage + "/{subscription_id}/redeliver":     {"GET": subscription, "POST": redeliver},
		incidentsPage:                                         {"GET": incidents},
		incidentsPage + "/new":                                {"GET": newIncidentForm, "POST": openIncident},
		incidentsPage + "/{incident_id}":                      {"GET": incident, "POST": addAffected},
		incidentsPage + "/{incident_id}/edit":                 {"GET": editIncidentForm, "POST": editIncident},
		incidentsPage + "/{incident_id}/close":                {"GET": closeIncidentForm, "POST": closeIncident},
		incidentsPage + "/{incident_id}/notify":               {"GET": notifyIncidentForm, "POST": notifyIncident},
		incidentsPage + "/{incident_id}/remove":               {"GET": incident, "POST": removeAffected},
		reportsPage:                                           {"GET": reports},
		reportsPage + "/new":                                  {"GET": newReportForm, "POST": createReport},
		reportsPage + "/{report_id}":                          {"GET": report},
		reportsPage + "/{report_id}/run":                      {"GET": report, "POST": runReport},
		reportsPage + "/{report_id}/edit":                     {"GET": editReportForm, "POST": editReport},
		reportsPage + "/{report_id}/delete":                   {"GET": deleteReportForm, "POST": deleteReport},
		reportsPage + "/{report_id}/runs/{run_id}":            {"GET": reportRun},
		reportsPage + "/{report_id}/runs/{run_id}/rows.csv":   {"GET": reportFile("csv")},
		reportsPage + "/{report_id}/runs/{run_id}/rows.jsonl": {"GET": reportFile("jsonl")},
		auditPage:                                            {"GET": events},
		auditPage + "/events.csv":                            {"GET": exportCSV},
		auditPage + "/events.jsonl":                          {"GET": exportLines},
		auditPage + "/{sequence}":                            {"GET": oneEvent},
		testsPage:                                            {"GET": assertionSets, "POST": runAllSets},
		testsPage + "/new":                                   {"GET": newSetForm, "POST": runSet},
		testsPage + "/new/save":                              {"GET": newSetForm, "POST": saveSet},
		testsPage + "/sets/{name}":                           {"GET": set, "POST": runSet},
		testsPage + "/sets/{name}/save":                      {"GET": set, "POST": saveSet},
		testsPage + "/sets/{name}/delete":                    {"GET": deleteSetForm, "POST": deleteSet},
		connectionsPage:                                      {"GET": connections},
		connectionsPage + "/new":                             {"GET": newConnectionForm, "POST": createConnection},
		connectionsPage + "/{connection_id}":                 {"GET": connection},
		connectionsPage + "/{connection_id}/edit":            {"GET": editConnectionForm, "POST": editConnection},
		connectionsPage + "/{connection_id}/disable":         {"GET": disableConnectionForm, "POST": disableConnection},
		connectionsPage + "/{connection_id}/enable":          {"GET": connection, "POST": enableConnection},
		connectionsPage + "/{connection_id}/delete":          {"GET": deleteConnectionForm, "POST": deleteConnection},
		connectionsPage + "/{connection_id}/test":            {"GET": connection, "POST": beginConnectionTest},
		connectionsPage + "/{connection_id}/tests/{test_id}": {"GET": connectionTest},
		connectionsPage + "/{connection_id}/mapping":         {"GET": mapping, "POST": previewMapping},
		connectionsPage + "/{connection_id}/mapping/save":    {"GET": mapping, "POST": saveMapping},

		brandingPage:                             {"GET": brandingForms},
		brandingPage + "/{part}":                 {"GET": brandingForms, "POST": saveBranding},
		logoAction:                               {"GET": brandingForms, "POST": uploadLogo},
		logoAction + "/remove":                   {"GET": brandingForms, "POST": removeLogo},
		mailsPage:                                {"GET": mailTemplates},
		mailsPage + "/{mail}/{language}":         {"GET": mailTemplate, "POST": saveMailTemplate},
		mailsPage + "/{mail}/{language}/preview": {"GET": previewMail, "POST": previewMail},
		mailsPage + "/{mail}/{language}/test":    {"GET": mailTemplate, "POST": testMail},
		mailsPage + "/{mail}/{language}/reset":   {"GET": resetMailForm, "POST": resetMail},

		securityPage:                         {"GET": security},
		policiesPage:                         {"GET": readPolicies},
		policiesPage + "/{policy}":           {"GET": readPolicies, "POST": savePolicy},
		keysPage:                             {"GET": signingKeys},
		keysPage + "/rotate":                 {"GET": rotateKeysForm, "POST": rotateSigningKeys},
		keysPage + "/replace":                {"GET": replaceKeysForm, "POST": replaceSigningKeys},
		certificatesPage:                     {"GET": certificates},
		certificatesPage + "/{use}/rotate":   {"GET": rotateCertificateForm, "POST": rotateCertificate},
		certificatesPage + "/{use}/replace":  {"GET": replaceCertificateForm, "POST": replaceCertificateNow},
		threatsPage:                          {"GET": threats},
		threatsPage + "/new":                 {"GET": newThreatForm, "POST": createThreat},
		threatsPage + "/{feed_id}":           {"GET": threat},
		threatsPage + "/{feed_id}/edit":      {"GET": editThreatForm, "POST": editThreat},
		threatsPage + "/{feed_id}/refresh":   {"GET": threat, "POST": refreshThreat},
		threatUpload:                         {"GET": threat, "POST": uploadThreat},
		threatsPage + "/{feed_id}/delete":    {"GET": deleteThreatForm, "POST": deleteThreat},
		issuersPage:                          {"GET": issuers},
		issuersPage + "/new":                 {"GET": newIssuerForm, "POST": createIssuer},
		issuersPage + "/{issuer_id}":         {"GET": issuer},
		issuersPage + "/{issuer_id}/edit":    {"GET": editIssuerForm, "POST": editIssuer},
		issuersPage + "/{issuer_id}/disable": {"GET": disableIssuerForm, "POST": disableIssuer},
		issuersPage + "/{issuer_id}/enable":  {"GET": issuer, "POST": enableIssuer},
		issuersPage + "/{issuer_id}/delete":  {"GET": deleteIssuerForm, "POST": deleteIssuer},
		scopesPage:                           {"GET": listScopes},
		scopesPage + "/new":                  {"GET": newScopeForm, "POST": createScope},
		scopesPage + "/{name}/edit":          {"GET": editScopeForm, "POST": editScope},
		scopesPage + "/{name}/delete":        {"GET": deleteScopeForm, "POST": deleteScope},
	})
	if err == nil {
		err = h.add(routes, wrap, anyone, map[string]map[string]page{EnterPage: {"GET": enterForm, "POST": enterConsole}})
	}
	return routes, err
}

// routes returns the pages of a site, and their assets, in the pipeline of all requests.
func (h *Handlers) routes(wrap wrap, of *site, pages map[string]map[string]page) (map[string]map[string]http.Handler, error) {
	var err error
	if h.templates == nil {
		if h.templates, err = web.ParseTemplates(files, functions); err != nil {
			return nil, fmt.Errorf("console: %w", err)
		}
	}
	routes := map[string]map[string]http.Handler{}
	if err := h.add(routes, wrap, of, pages); err != nil {
		return nil, err
	}
	return routes, h.addAssets(routes, wrap)
}

// add adds the pages of a site.
func (h *Handlers) add(routes map[string]map[string]http.Handler, wrap wrap, of *site, pages map[string]map[string]page) error {
	for path, methods := range pages {
		routes[path] = map[string]http.Handler{}
		for method, p := range methods {
			op := web.Operation{ID: "console " + path, Method: method, Path: path, Page: true, Effects: true, RateLimit: ratelimit.None}
			if path == EnterPage { // others call an operation, which counts
				op.RateLimit = ratelimit.Page
			}
			if method == http.MethodPost {
				if delicate[path] == 0 && !ordinary[path] {
					return fmt.Errorf("console: the form of %s is neither delicate nor ordinary", path)
				}
				op.MediaType = "application/x-www-form-urlencoded"
			}
			limit := maxForm
			if isUpload(path) && method == http.MethodPost {
				op.MediaType, limit = "multipart/form-data", 0
			}
			if isPage(path, modelPage) || isPage(path, testsPage) || isPage(path, connectionsPage) {
				limit = maxModel
			}
			routes[path][method] = wrap(op, web.ErrorFormat{Render: h.renderError}, h.handler(of, path, p, int64(limit)))
		}
	}
	return nil
}

// addAssets adds the styles and scripts.
func (h *Handlers) addAssets(routes map[string]map[string]http.Handler, wrap wrap) error {
	style, err := fs.ReadFile(files, "assets/console.css")
	if err != nil {
		return err
	}
	document := web.Document{Body: append(style, IslandStyle...), MediaType: "text/css; charset=utf-8", CacheControl: "public, max-age=300"}
	asset := func(path string, serve http.HandlerFunc) {
		op := web.Operation{ID: "asset", Method: http.MethodGet, Path: path, Page: true, RateLimit: ratelimit.None}
		routes[path] = map[string]http.Handler{http.MethodGet: wrap(op, web.ErrorFormat{Render: h.renderError}, serve)}
	}
	asset(home+"/assets/console.css", document.Serve)
	shortcut, err := fs.ReadFile(files, "assets/shortcut.js")
	if err != nil {
		return err
	}
	script := web.Document{Body: shortcut, MediaType: "text/javascript; charset=utf-8", CacheControl: document.CacheControl}
	asset(home+"/assets/shortcut.js", script.Serve)
	progress, err := fs.ReadFile(files, "assets/progress.js")
	if err != nil {
		return err
	}
	follow := web.Document{Body: progress, MediaType: script.MediaType, CacheControl: document.CacheControl}
	asset(progressScript, follow.Serve)
	all, folder, err := islands()
	if err != nil {
		return err
	}
	h.scripts = folder
	for path, file := range all {
		asset(path, file.Serve)
	}
	return nil
}

// The largest body of a form, in bytes. In those of a model, of assertions and of the metadata of
// connections, a character of the text may have three.
const (
	maxForm  = 64 << 10
	maxModel = 3 * web.MaxBody
)

// handler serves the page of a path to a person who has signed in and has any right. The page reads
// its form itself if the limit of the form is 0. A delicate form needs a second factor.
func (h *Handlers) handler(of *site, path string, p page, limit int64) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		v := &visit{handlers: h, site: of, w: w, r: r, info: web.InfoOf(r.Context())}
		var err error
		if limit > 0 {
			err = web.ReadForm(w, r, limit)
		}
		if err == nil {
			err = of.enter(v)
		}
		asked := false
		if err == nil {
			asked, err = v.stepUp(path)
		}
		if err == nil && !asked {
			err = p(v)
		}
		if err != nil {
			v.fail(err)
		}
	})
}

// secure sets the security headers of a page, which may have scripts and an island.
func secure(h http.Header, scripts, island bool) {
	policy := contentPolicy
	if scripts {
		policy += scriptPolicy
	}
	if island {
		policy += islandPolicy
	}
	h.Set("Content-Security-Policy", policy)
	h.Set("X-Frame-Options", "DENY")
}

// isPage reports whether a path is that of a page, or below it.
func isPage(path, page string) bool {
	return path == page || strings.HasPrefix(path, page+"/")
}
