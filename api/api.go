// Package api assembles the HTTP interface of a tenant from its surfaces, one
// subpackage each:
//
//	openapi    the document that everything else follows, and serves it
//	web        what every request passes, and what surfaces share
//	resources  resource types, resources, relations, checks
//	account    proving who one is, and one's own account
//	people     users and groups
//	applications  OAuth clients
//	scopes     what tokens can carry
//	settings   what a tenant decides for itself
//	pages      what people see of account
//	authzen    the same engine by OpenID AuthZEN
//	oauth2     the token endpoint and discovery
//
// A surface mounts its generated routes on one router; every route is then
// wrapped in what the document demands of its operation. A route without an
// operation, or an operation without a route, is an error at start: nothing can
// be served that the document does not know. Pages, which are for people, are beside it.
package api

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/netip"
	"time"

	"github.com/gorilla/mux"
	"github.com/prometheus/client_golang/prometheus"

	"stonetown/api/account"
	"stonetown/api/applications"
	"stonetown/api/authzen"
	"stonetown/api/oauth2"
	"stonetown/api/openapi"
	"stonetown/api/pages"
	"stonetown/api/people"
	"stonetown/api/resources"
	"stonetown/api/scopes"
	"stonetown/api/settings"
	"stonetown/api/web"
	"stonetown/internal/geo"
	"stonetown/internal/idempotency"
	"stonetown/internal/ratelimit"
	"stonetown/internal/tracing"
)

// OAuth issues and verifies tokens; [oauth.Service] is one.
type OAuth interface {
	oauth2.Service
	account.Issuer
	account.Flows
	people.Authorizations
	applications.Service
	settings.Keys
	web.Verifier
}

// Authn knows how people prove who they are; [authn.Service] does.
type Authn interface {
	account.Service
	people.Access
}

// Engine answers and takes writes; [audit.Engine] is one.
type Engine interface {
	resources.Engine
	authzen.Engine
}

// Users knows the people of tenants; [identity.Directory] does.
type Users interface {
	account.Users
	people.Directory
}

// Scopes knows what tokens can carry; [oauth.Registry] does.
type Scopes interface {
	scopes.Registry
}

// Config is what the interface works with. Engine, Resources, Tenants, Users,
// Authn, Importer, Scopes, OAuth, Settings and CursorKey are required.
type Config struct {
	Engine    Engine
	Resources resources.Store
	Tenants   web.Tenants
	Users     Users
	Authn     Authn
	Importer  people.Importer
	Scopes    Scopes
	OAuth     OAuth
	Settings  settings.Service

	// CursorKey encrypts the positions between pages: 32 random bytes, the same
	// in all processes of a deployment. A new key makes clients start their
	// lists anew and harms nothing else.
	CursorKey []byte

	// Logger gets one line for each request that fails through a fault of the
	// service and, at debug level, one for each request. Default: discarded.
	Logger *slog.Logger
	// AccessLog logs each request at info level instead of debug.
	AccessLog bool
	// Tracer records a span for each request. Default: none.
	Tracer *tracing.Tracer
	// Metrics gets the duration of requests. Default: not collected.
	Metrics prometheus.Registerer
	// Timeout bounds the work on one request. Default: 30 seconds.
	Timeout time.Duration
	// MaxWorking is how many requests are worked on at the same time; others wait
	// for as long as Timeout. Default: 256.
	MaxWorking int
	// MaxReceiving is how many bytes of bodies may have arrived that wait for their
	// rest or to be worked on; those who send more are refused. Default: 256 MiB.
	MaxReceiving int64
	// MaxStreams is how many streams may be open; more are refused. Default: 1,000.
	MaxStreams int
	// TenantShare and CallerShare are how much of these three one tenant and one of its
	// callers may hold, in percent. Default: 50 and 25.
	TenantShare, CallerShare int
	// TrustedProxies may say in X-Forwarded-For whom they speak for, to whom the
	// limits of addresses then apply. Default: none.
	TrustedProxies []netip.Prefix
	// Idempotency keeps what was answered under idempotency keys. Default: keys
	// are ignored.
	Idempotency *idempotency.Store
	// Limits counts requests. Default: there are no limits.
	Limits *ratelimit.Limiter
	// Origins knows which web origins may read responses. Default: none.
	Origins web.Origins
	// Places says where addresses are. Default: that is not known.
	Places *geo.Database
	// Mailbox has what was sent to people and is shown to everybody. Never in
	// production. Default: there is none.
	Mailbox pages.Mailbox
	// SecurityContact is whom to tell of weaknesses, as a URI. Default: that is not said.
	SecurityContact string
	// Stopping ends when the service is going to stop; streams end with it.
	// Default: never.
	Stopping context.Context
	// Dev serves the first tenant on localhost and loopback addresses. Never in
	// production: the issuer of tokens would not be the address they came from.
	Dev bool
}

// New returns the handler of all tenants' hosts.
func New(c Config) (http.Handler, error) {
	if c.Engine == nil || c.Resources == nil || c.Users == nil || c.Authn == nil || c.Importer == nil || c.Scopes == nil || c.OAuth == nil || c.Settings == nil {
		return nil, errors.New("api: Config.Engine, Resources, Users, Authn, Importer, Scopes, OAuth and Settings are required")
	}
	if c.Logger == nil {
		c.Logger = slog.New(slog.DiscardHandler)
	}
	if c.Metrics == nil {
		c.Metrics = prometheus.NewRegistry()
	}
	cursors, err := web.NewCursors(c.CursorKey)
	if err != nil {
		return nil, fmt.Errorf("api: %w", err)
	}
	kit, err := web.New(web.Config{
		Tenants: c.Tenants, Verifier: &account.Verifier{Tokens: c.OAuth, Sessions: c.Authn}, Logger: c.Logger, AccessLog: c.AccessLog, Tracer: c.Tracer, Metrics: c.Metrics,
		Timeout: c.Timeout, MaxWorking: c.MaxWorking, MaxReceiving: c.MaxReceiving, MaxStreams: c.MaxStreams, TenantShare: c.TenantShare, CallerShare: c.CallerShare, TrustedProxies: c.TrustedProxies, Dev: c.Dev,
		Idempotency: c.Idempotency, Limits: c.Limits, Origins: c.Origins, Stopping: c.Stopping,
	})
	if err != nil {
		return nil, fmt.Errorf("api: %w", err)
	}
	document, err := openapi.NewSurface()
	if err != nil {
		return nil, fmt.Errorf("api: %w", err)
	}

	routes := mux.NewRouter()
	(&resources.Surface{Engine: c.Engine, Store: c.Resources, Cursors: cursors}).Mount(routes, kit.Fail)
	(&authzen.Surface{Engine: c.Engine, Cursors: cursors}).Mount(routes, kit.Fail)
	(&account.Surface{Service: c.Authn, Users: c.Users, Issuer: c.OAuth, Flows: c.OAuth, Cursors: cursors, Places: c.Places}).Mount(routes, kit.Fail)
	(&people.Surface{Directory: c.Users, Access: c.Authn, Places: c.Places, Importer: c.Importer, Authorizations: c.OAuth, Cursors: cursors}).Mount(routes, kit.Fail)
	(&applications.Surface{Service: c.OAuth, Cursors: cursors}).Mount(routes, kit.Fail)
	(&scopes.Surface{Registry: c.Scopes, Cursors: cursors}).Mount(routes, kit.Fail)
	(&settings.Surface{Service: c.Settings, Keys: c.OAuth, Cursors: cursors}).Mount(routes, kit.Fail)
	(&oauth2.Surface{Service: c.OAuth, Sessions: c.Authn, Kit: kit}).Mount(routes)
	document.Mount(routes)

	surfaces := map[string]web.Surface{"resources": resources.Errors, "auth": account.Errors, "me": account.Errors, "users": people.Errors, "groups": people.Errors, "applications": applications.Errors, "scopes": scopes.Errors, "authzen": authzen.Errors, "oauth2": oauth2.TokenErrors, "registration": oauth2.TokenErrors}
	shown := &pages.Surface{Mailbox: c.Mailbox, SecurityContact: c.SecurityContact}
	surfaces["authorization"] = web.Surface{Render: shown.RenderError}
	paths, err := follow(routes, func(op web.Operation, next http.Handler) http.Handler {
		return kit.Handle(op, surfaces[op.Tag], next)
	})
	if err != nil {
		return nil, fmt.Errorf("api: %w", err)
	}
	routed, err := shown.Routes(kit.Handle)
	if err != nil {
		return nil, fmt.Errorf("api: %w", err)
	}
	for path, methods := range routed {
		paths[path] = methods
	}
	handler := kit.Serve(newRouter(paths, shown.NotFound, kit.Fail))
	shown.API = handler
	return handler, nil
}
