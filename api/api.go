// Package api assembles the HTTP interface from groups of operations, one package each:
//
//	openapi    the document that everything else follows, and serves it
//	web        the steps that every request passes, and shared helpers
//	resources  resource types, resources, relations, checks
//	account    sign-in, and the user's own account
//	people     users and groups
//	applications  OAuth clients
//	scopes     the registry of scopes
//	settings   the settings of a tenant
//	federation connections to identity providers
//	branding   the look of a tenant
//	incidents  breach incidents
//	flows      the sign-in flow of a tenant
//	threatfeeds lists of addresses and domains
//	reports    saved reports and their runs
//	webhooks   webhook subscriptions and their deliveries
//	inprocess  calls operations from pages
//	pages      the hosted pages of sign-in and account
//	console    the console of administrators
//	docs       the documentation
//	authzen    the engine as OpenID AuthZEN
//	oauth2     the token endpoint and discovery
//	scim       SCIM 2.0, outside of the document
//	control    organisations and their tenants, with a document of its own
//
// Each package mounts its generated routes on one router; [New] then wraps every route in
// the steps that the document requires of its operation. A route without an operation, or an
// operation without a route, is an error at start, so only documented operations are served.
// The hosted pages, the console, the documentation and SCIM are not part of the document.
//
// At the address of the control plane are the operations of package control and, of the others,
// those of sign-in and the own account; on the hosts of tenants are all others.
package api

import (
	"errors"
	"fmt"
	"maps"
	"net/http"
	"strings"

	"github.com/gorilla/mux"

	"stonetown/api/account"
	"stonetown/api/applications"
	"stonetown/api/audit"
	"stonetown/api/authzen"
	"stonetown/api/branding"
	"stonetown/api/console"
	"stonetown/api/control"
	"stonetown/api/docs"
	"stonetown/api/federation"
	"stonetown/api/flows"
	"stonetown/api/incidents"
	"stonetown/api/oauth2"
	"stonetown/api/openapi"
	"stonetown/api/pages"
	"stonetown/api/people"
	"stonetown/api/reports"
	"stonetown/api/resources"
	apiscim "stonetown/api/scim"
	"stonetown/api/scopes"
	"stonetown/api/settings"
	"stonetown/api/threatfeeds"
	"stonetown/api/trustedissuers"
	"stonetown/api/web"
	"stonetown/api/webhooks"
	"stonetown/internal/geo"
	"stonetown/oauth"
)

// OAuth has the parts of the OAuth module that the operations use.
type OAuth struct {
	Grants        oauth2.Grants
	Authorization interface {
		oauth2.Authorization
		account.Requests
	}
	Tokens interface {
		oauth2.Tokens
		account.Tokens
	}
	Keys interface {
		oauth2.Keys
		settings.Keys
	}
	Clients interface {
		oauth2.Clients
		account.Clients
		applications.Clients
	}
	Access interface {
		account.Access
		people.Authorizations
		applications.Access
	}
	Claims    applications.Claims
	Workloads trustedissuers.Registry
	Describer oauth2.Describer
}

// OAuthOf returns the parts of a module.
func OAuthOf(s *oauth.Service) OAuth {
	return OAuth{s.Grants, s.Authorization, s.Tokens, s.Keys, s.Clients, s.Access, s.Claims, s.Workloads, s}
}

// Authn signs users in; [authn.Service] implements it.
type Authn interface {
	account.Service
	people.Access
	flows.Accounts
	oauth2.Sessions
	branding.Sender
	console.Sessions
}

// Engine answers checks and lists, and writes; [audit.Engine] implements it.
type Engine interface {
	resources.Engine
	authzen.Engine
}

// Users stores users and groups; [identity.Directory] implements it.
type Users interface {
	account.Users
	people.Directory
}

// Scopes stores the scopes of tenants; [stonetown/oauth/scope.Registry] implements it.
type Scopes interface {
	account.Scopes
	scopes.Registry
}

// SignIns is the part of [signin.Service] that the operations use.
type SignIns interface {
	account.Federation
	federation.SignIns
	oauth2.SignIns
}

// Branding has the brandings of tenants; [stonetown/identity/branding.Registry] implements it.
type Branding interface {
	branding.Registry
	pages.Brandings
}

// Config configures the interface. Engine, Resources, Tenants, Users,
// Authn, Importer, Scopes, OAuth, Settings, Connections, SignIns, Webhooks,
// SAMLKeys, SAML, SCIM, Audit, Incidents, Flows, Threats, Reports, Branding, Mails and CursorKey are required.
type Config struct {
	Engine      Engine
	Resources   resources.Store
	Assertions  resources.Assertions
	Users       Users
	Authn       Authn
	Importer    people.Importer
	Scopes      Scopes
	OAuth       OAuth
	Settings    settings.Service
	Connections federation.Registry
	SignIns     SignIns // at connections
	Webhooks    webhooks.Service
	SAMLKeys    settings.SAMLKeys
	SAML        oauth2.SAML // the identity provider of applications
	SCIM        apiscim.Service
	Audit       audit.Log
	Incidents   incidents.Registry
	Flows       flows.Registry
	Threats     threatfeeds.Feeds
	Reports     reports.Registry
	Branding    Branding
	Mails       branding.Mails

	// ControlURL is the address of the control plane, as [controlplane.Config] has it. Default:
	// there is none.
	ControlURL string
	// Organizations are managed by the operations of the control plane. Required if there is one.
	Organizations control.Service

	// OrganizationNames has the organisations of tenants. Required if there is a control plane.
	OrganizationNames console.Organizations

	// CursorKey encrypts the cursors of lists: 32 random bytes, the same in all processes
	// of a deployment. A new key invalidates the cursors of lists in progress.
	CursorKey []byte

	// The pipeline of all requests.
	web.Config

	// GeoIP locates the addresses of sessions; [geo.None] knows no location.
	GeoIP geo.Locator
	// Mailbox has the messages sent to users, and is public. Never in production.
	// Default: there is none.
	Mailbox pages.Mailbox
	// Welcome is the page at / of tenants, for a development server. Default: there is none.
	Welcome *pages.Welcome
	// SecurityContact is the URI for reports of vulnerabilities (RFC 9116 §2.5.3).
	// Default: none is published.
	SecurityContact string
	// Docs serves the documentation on all hosts.
	Docs bool
}

// New returns the handler of all hosts.
func New(c Config) (http.Handler, error) {
	if c.Engine == nil || c.Resources == nil || c.Assertions == nil || c.Users == nil || c.Authn == nil || c.Importer == nil || c.Scopes == nil || c.OAuth == (OAuth{}) || c.Settings == nil || c.Connections == nil || c.SignIns == nil || c.Webhooks == nil || c.SAMLKeys == nil || c.SAML == nil || c.SCIM == nil || c.Audit == nil || c.Incidents == nil || c.Flows == nil || c.Threats == nil || c.Reports == nil || c.Branding == nil || c.Mails == nil || c.GeoIP == nil {
		return nil, errors.New("api: Config.Engine, Resources, Users, Authn, Importer, Scopes, OAuth, Settings, Connections, SignIns, Webhooks, SAMLKeys, SAML, SCIM, Audit, Incidents, Flows, Threats, Reports, Branding, Mails and GeoIP are required")
	}
	if c.ControlURL != "" && (c.Organizations == nil || c.OrganizationNames == nil) {
		return nil, errors.New("api: Config.Organizations and OrganizationNames are required with a ControlURL")
	}
	cursors, err := web.NewCursors(c.CursorKey)
	if err != nil {
		return nil, fmt.Errorf("api: %w", err)
	}
	server, err := web.New(c.Config)
	if err != nil {
		return nil, fmt.Errorf("api: %w", err)
	}
	document, err := openapi.NewHandlers(openapi.DataPlane)
	if err != nil {
		return nil, fmt.Errorf("api: %w", err)
	}

	routes := mux.NewRouter()
	(&resources.Handlers{Engine: c.Engine, Store: c.Resources, Assertions: c.Assertions, Cursors: cursors}).Mount(routes, server.Fail)
	(&authzen.Handlers{Engine: c.Engine, Cursors: cursors}).Mount(routes, server.Fail)
	(&account.Handlers{Service: c.Authn, Federation: c.SignIns, SAML: c.SAML, Users: c.Users, Tokens: c.OAuth.Tokens, Requests: c.OAuth.Authorization, Clients: c.OAuth.Clients, Access: c.OAuth.Access, Scopes: c.Scopes, Cursors: cursors, GeoIP: c.GeoIP}).Mount(routes, server.Fail)
	(&people.Handlers{Directory: c.Users, Access: c.Authn, GeoIP: c.GeoIP, Importer: c.Importer, Authorizations: c.OAuth.Access, Cursors: cursors}).Mount(routes, server.Fail)
	(&applications.Handlers{Clients: c.OAuth.Clients, Access: c.OAuth.Access, Claims: c.OAuth.Claims, Cursors: cursors}).Mount(routes, server.Fail)
	(&scopes.Handlers{Registry: c.Scopes, Cursors: cursors}).Mount(routes, server.Fail)
	(&trustedissuers.Handlers{Registry: c.OAuth.Workloads, Cursors: cursors}).Mount(routes, server.Fail)
	(&settings.Handlers{Service: c.Settings, Keys: c.OAuth.Keys, SAMLKeys: c.SAMLKeys, Cursors: cursors}).Mount(routes, server.Fail)
	(&federation.Handlers{Registry: c.Connections, SignIns: c.SignIns, Cursors: cursors}).Mount(routes, server.Fail)
	(&webhooks.Handlers{Service: c.Webhooks, Cursors: cursors}).Mount(routes, server.Fail)
	(&audit.Handlers{Log: c.Audit, Cursors: cursors}).Mount(routes, server.Fail)
	(&incidents.Handlers{Registry: c.Incidents, Cursors: cursors}).Mount(routes, server.Fail)
	(&flows.Handlers{Registry: c.Flows, Accounts: c.Authn, Cursors: cursors}).Mount(routes, server.Fail)
	(&threatfeeds.Handlers{Feeds: c.Threats, Cursors: cursors}).Mount(routes, server.Fail)
	(&reports.Handlers{Registry: c.Reports, Cursors: cursors}).Mount(routes, server.Fail)
	(&branding.Handlers{Registry: c.Branding, Mails: c.Mails, Sender: c.Authn, Cursors: cursors}).Mount(routes, server.Fail)
	(&oauth2.Handlers{
		Grants: c.OAuth.Grants, Authorization: c.OAuth.Authorization, Tokens: c.OAuth.Tokens, Keys: c.OAuth.Keys, Clients: c.OAuth.Clients,
		Describer: c.OAuth.Describer, Sessions: c.Authn, SAML: c.SAML, SignIns: c.SignIns, Brandings: c.Branding, Server: server,
	}).Mount(routes)
	document.Mount(routes)

	formats := map[string]web.ErrorFormat{"resources": resources.Errors, "auth": account.Errors, "me": account.Errors, "users": people.Errors, "groups": people.Errors, "applications": applications.Errors, "scopes": scopes.Errors, "trusted-issuers": trustedissuers.Errors, "authzen": authzen.Errors, "federation": federation.Errors, "webhooks": webhooks.Errors, "audit": audit.Errors, "breach-incidents": incidents.Errors, "sign-in-flow": flows.Errors, "threat-feeds": threatfeeds.Errors, "reports": reports.Errors, "branding": branding.Errors, "oauth2": oauth2.TokenErrors, "provider-logout": oauth2.TokenErrors, "registration": oauth2.TokenErrors}
	hosted := &pages.Handlers{Brandings: c.Branding, Mailbox: c.Mailbox, Welcome: c.Welcome, SecurityContact: c.SecurityContact, Internal: server.LogInternal}
	formats["authorization"] = web.ErrorFormat{Render: hosted.RenderError}
	formats["federated-sign-in"] = web.ErrorFormat{Translate: account.Errors.Translate, Render: hosted.RenderSignInError}
	operations, err := follow(routes, openapi.DataPlane.Operations, func(op web.Operation, next http.Handler) http.Handler {
		return server.Handle(op, formats[op.Tag], next)
	})
	if err != nil {
		return nil, fmt.Errorf("api: %w", err)
	}
	routed, err := hosted.Routes(server.Handle)
	if err != nil {
		return nil, fmt.Errorf("api: %w", err)
	}
	if c.Docs {
		documentation, err := (&docs.Handlers{RenderError: hosted.RenderError}).Routes(server.Handle)
		if err != nil {
			return nil, fmt.Errorf("api: %w", err)
		}
		maps.Copy(routed, documentation)
	}
	administration := &console.Handlers{Brandings: c.Branding, Sessions: c.Authn, Tokens: c.OAuth.Tokens, Organizations: c.OrganizationNames, ControlURL: c.ControlURL, Internal: server.LogInternal}
	ofTenants, err := administration.Routes(server.Handle)
	if err != nil {
		return nil, fmt.Errorf("api: %w", err)
	}
	maps.Copy(ofTenants, routed)
	maps.Copy(ofTenants, (&apiscim.Handlers{Service: c.SCIM, Cursors: cursors, Fail: server.Fail, Internal: server.LogInternal}).Routes(server.Handle))
	delete(ofTenants, pages.InvitationPage)
	all := &hosts{tenants: newRouter(operations, ofTenants, hosted.NotFound, func(w http.ResponseWriter, r *http.Request, err error) {
		if strings.HasPrefix(r.URL.Path, apiscim.Root+"/") {
			server.FailAs(w, r, err, apiscim.Errors)
		} else {
			server.Fail(w, r, err)
		}
	})}
	if c.ControlURL != "" {
		managed, err := controlOperations(c, cursors, server)
		if err != nil {
			return nil, fmt.Errorf("api: %w", err)
		}
		for _, op := range operations {
			if servedByControl(op.Operation) {
				managed = append(managed, op)
			}
		}
		if all.control, err = hostOf(c.ControlURL); err != nil {
			return nil, fmt.Errorf("api: Config.ControlURL: %w", err)
		}
		ofControl, err := administration.ControlRoutes(server.Handle)
		if err != nil {
			return nil, fmt.Errorf("api: %w", err)
		}
		maps.Copy(ofControl, routed)
		all.managed = newRouter(managed, ofControl, hosted.NotFound, func(w http.ResponseWriter, r *http.Request, err error) {
			if isProtocol(r.URL.Path) {
				server.Fail(w, r, err)
			} else {
				server.FailAs(w, r, err, control.Errors)
			}
		})
	}
	handler := server.Serve(all)
	hosted.API, administration.API = handler, handler
	return handler, nil
}

// controlOperations returns the operations of the control plane.
func controlOperations(c Config, cursors *web.Cursors, server *web.Server) ([]route, error) {
	document, err := openapi.NewHandlers(control.Document)
	if err != nil {
		return nil, err
	}
	routes := mux.NewRouter()
	(&control.Handlers{Service: c.Organizations, Cursors: cursors}).Mount(routes, server.Fail)
	document.Mount(routes)
	return follow(routes, control.Document.Operations, func(op web.Operation, next http.Handler) http.Handler {
		return server.Handle(op, control.Errors, next)
	})
}
