// Package api assembles the HTTP interface of a tenant from its surfaces, one
// subpackage each:
//
//	openapi    the document that everything else follows, and serves it
//	web        what every request passes, and what surfaces share
//	resources  resource types, resources, relations, checks
//	users      the people of the tenant
//	settings   what a tenant decides for itself
//	authzen    the same engine by OpenID AuthZEN
//	oauth2     the token endpoint and discovery
//
// A surface mounts its generated routes on one router; every route is then
// wrapped in what the document demands of its operation. A route without an
// operation, or an operation without a route, is an error at start: nothing can
// be served that the document does not know.
package api

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"net/http"
	"net/netip"
	"slices"
	"strings"
	"time"

	"github.com/gorilla/mux"
	"github.com/prometheus/client_golang/prometheus"

	"stonetown/api/authzen"
	"stonetown/api/oauth2"
	"stonetown/api/openapi"
	"stonetown/api/resources"
	"stonetown/api/settings"
	"stonetown/api/users"
	"stonetown/api/web"
	"stonetown/internal/idempotency"
	"stonetown/internal/ratelimit"
)

// OAuth issues and verifies tokens; [oauth.Service] is one.
type OAuth interface {
	oauth2.Service
	web.Verifier
}

// Engine answers and takes writes; [engine.Engine] is one.
type Engine interface {
	resources.Engine
	authzen.Engine
}

// Tenants finds tenants and keeps their settings; [controlplane.Directory] does.
type Tenants interface {
	web.Tenants
	settings.Tenants
}

// Config is what the interface works with. Engine, Resources, Tenants, Users, OAuth
// and CursorKey are required.
type Config struct {
	Engine    Engine
	Resources resources.Store
	Tenants   Tenants
	Users     users.Directory
	OAuth     OAuth

	// CursorKey encrypts the positions between pages: 32 random bytes, the same
	// in all processes of a deployment. A new key makes clients start their
	// lists anew and harms nothing else.
	CursorKey []byte

	// Logger gets one line for each request that fails through a fault of the
	// service and, at debug level, one for each request. Default: discarded.
	Logger *slog.Logger
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
	// Stopping ends when the service is going to stop; streams end with it.
	// Default: never.
	Stopping context.Context
	// Dev serves the first tenant on localhost and loopback addresses. Never in
	// production: the issuer of tokens would not be the address they came from.
	Dev bool
}

// New returns the handler of all tenants' hosts.
func New(c Config) (http.Handler, error) {
	if c.Engine == nil || c.Resources == nil || c.Users == nil || c.OAuth == nil {
		return nil, errors.New("api: Config.Engine, Resources, Users and OAuth are required")
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
		Tenants: c.Tenants, Verifier: c.OAuth, Logger: c.Logger, Metrics: c.Metrics,
		Timeout: c.Timeout, MaxWorking: c.MaxWorking, MaxReceiving: c.MaxReceiving, MaxStreams: c.MaxStreams, TrustedProxies: c.TrustedProxies, Dev: c.Dev,
		Idempotency: c.Idempotency, Limits: c.Limits, Origins: c.Origins, Stopping: c.Stopping,
	})
	if err != nil {
		return nil, fmt.Errorf("api: %w", err)
	}
	document, err := openapi.NewSurface()
	if err != nil {
		return nil, fmt.Errorf("api: %w", err)
	}

	r := &router{
		mux:   mux.NewRouter().UseEncodedPath().SkipClean(true),
		exact: map[string]map[string]http.Handler{},
		fail:  kit.Fail,
	}
	(&resources.Surface{Engine: c.Engine, Store: c.Resources, Cursors: cursors}).Mount(r.mux, kit.Fail)
	(&authzen.Surface{Engine: c.Engine, Cursors: cursors}).Mount(r.mux, kit.Fail)
	(&users.Surface{Directory: c.Users, Cursors: cursors}).Mount(r.mux, kit.Fail)
	(&settings.Surface{Tenants: c.Tenants}).Mount(r.mux, kit.Fail)
	(&oauth2.Surface{Service: c.OAuth, Kit: kit}).Mount(r.mux)
	document.Mount(r.mux)

	surfaces := map[string]web.Surface{"resources": resources.Errors, "users": users.Errors, "authzen": authzen.Errors, "oauth2": oauth2.TokenErrors}
	err = r.follow(func(op web.Operation, next http.Handler) http.Handler {
		return kit.Handle(op, surfaces[op.Tag], next)
	})
	if err != nil {
		return nil, fmt.Errorf("api: %w", err)
	}
	r.mux.NotFoundHandler = http.HandlerFunc(r.notFound)
	r.mux.MethodNotAllowedHandler = http.HandlerFunc(r.methodNotAllowed)
	return kit.Serve(r), nil
}

// router finds the handler of a request: by looking up the path if the path has
// no variables, which are the busy ones, and else by trying routes in turn. As
// the OpenAPI document has it, a path without variables hides one with variables
// that would fit, whatever the method.
type router struct {
	mux   *mux.Router
	exact map[string]map[string]http.Handler // path -> method -> handler
	fail  func(http.ResponseWriter, *http.Request, error)
}

func (r *router) ServeHTTP(w http.ResponseWriter, req *http.Request) {
	if req.Method == http.MethodHead { // net/http drops the body of the answer
		get := *req
		get.Method = http.MethodGet
		req = &get
	}
	methods, ok := r.exact[req.URL.Path]
	switch {
	case !ok || req.URL.RawPath != "": // an escaped character may be part of an id
		r.mux.ServeHTTP(w, req)
	case methods[req.Method] == nil:
		r.methodNotAllowed(w, req)
	default:
		methods[req.Method].ServeHTTP(w, req)
	}
}

// Has implements [web.Paths].
func (r *router) Has(req *http.Request) bool { return len(r.methods(req)) > 0 }

func (r *router) notFound(w http.ResponseWriter, req *http.Request) {
	r.fail(w, req, &web.Error{Status: http.StatusNotFound, Code: "not_found", Message: "there is nothing at this path"})
}

// methodNotAllowed says what may be done instead (RFC 9110 §15.5.6).
func (r *router) methodNotAllowed(w http.ResponseWriter, req *http.Request) {
	r.fail(w, req, &web.Error{
		Status: http.StatusMethodNotAllowed, Code: "method_not_allowed", Message: "the path does not have this method",
		Header: http.Header{"Allow": {strings.Join(r.methods(req), ", ")}},
	})
}

// methods lists what may be done with the path of a request.
func (r *router) methods(req *http.Request) []string {
	var found []string
	if exact, ok := r.exact[req.URL.Path]; ok && req.URL.RawPath == "" {
		found = slices.Collect(maps.Keys(exact))
	} else {
		for _, method := range []string{http.MethodDelete, http.MethodGet, http.MethodPatch, http.MethodPost, http.MethodPut} {
			try := *req
			try.Method = method
			var match mux.RouteMatch
			if r.mux.Match(&try, &match) && match.MatchErr == nil {
				found = append(found, method)
			}
		}
	}
	if slices.Contains(found, http.MethodGet) {
		found = append(found, http.MethodHead)
	}
	slices.Sort(found)
	return found
}

// follow wraps every route in what its operation demands and makes sure that
// routes and operations are the same.
func (r *router) follow(wrap func(web.Operation, http.Handler) http.Handler) error {
	list, err := openapi.Operations()
	if err != nil {
		return err
	}
	operations := map[string]web.Operation{}
	for _, op := range list {
		operations[op.Method+" "+op.Path] = op
	}
	err = r.mux.Walk(func(route *mux.Route, _ *mux.Router, _ []*mux.Route) error {
		path, err := route.GetPathTemplate()
		if err != nil {
			return err
		}
		methods, err := route.GetMethods()
		if err != nil || len(methods) != 1 {
			return fmt.Errorf("route %s must have one method", path)
		}
		key := methods[0] + " " + path
		op, ok := operations[key]
		if !ok {
			return fmt.Errorf("route %s is not in the document", key)
		}
		delete(operations, key)
		route.Handler(wrap(op, route.GetHandler()))
		if !strings.Contains(path, "{") {
			if r.exact[path] == nil {
				r.exact[path] = map[string]http.Handler{}
			}
			r.exact[path][op.Method] = route.GetHandler()
		}
		return nil
	})
	if err != nil {
		return err
	}
	for key := range operations {
		return fmt.Errorf("operation %s has no route", key)
	}
	return nil
}
