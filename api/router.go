package api

import (
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"

	"github.com/gorilla/mux"

	"stonetown/api/web"
)

// methods are the handlers of a path.
type methods map[string]http.Handler

// allowed lists the methods of the path, for the header Allow.
func (m methods) allowed() []string {
	names := slices.Collect(maps.Keys(m))
	if m[http.MethodGet] != nil {
		names = append(names, http.MethodHead)
	}
	slices.Sort(names)
	return names
}

// router finds the handler of a request: by a lookup if the path has no variables, which is the
// most frequent case, and otherwise by trying the templates in order. A literal path takes
// precedence over a template that matches it, for every method, as the OpenAPI document
// requires.
type router struct {
	exact     map[string]methods
	templates *mux.Router
	fail      func(http.ResponseWriter, *http.Request, error)
	// notFoundPage answers requests of browsers for an unknown path.
	notFoundPage func(http.ResponseWriter, *http.Request) bool
}

// newRouter returns the router of operations and pages.
func newRouter(operations []route, hosted map[string]map[string]http.Handler, notFoundPage func(http.ResponseWriter, *http.Request) bool, fail func(http.ResponseWriter, *http.Request, error)) *router {
	r := &router{exact: map[string]methods{}, templates: mux.NewRouter().UseEncodedPath().SkipClean(true), fail: fail, notFoundPage: notFoundPage}
	paths := map[string]methods{}
	for _, op := range operations {
		if paths[op.Path] == nil {
			paths[op.Path] = methods{}
		}
		paths[op.Path][op.Method] = op.handler
	}
	for path, methods := range hosted {
		paths[path] = methods
	}
	var templates []string
	for path, methods := range paths {
		if strings.Contains(path, "{") {
			templates = append(templates, path)
		} else {
			r.exact[path] = methods
		}
	}
	slices.SortFunc(templates, literalFirst)
	for _, path := range templates {
		r.templates.NewRoute().Path(path).Handler(dispatcher{r, paths[path]})
	}
	r.templates.NotFoundHandler = http.HandlerFunc(r.notFound)
	return r
}

// literalFirst orders templates so that in each segment a literal precedes a variable.
func literalFirst(a, b string) int {
	key := func(path string) []string {
		segments := strings.Split(path, "/")
		for i, s := range segments {
			if strings.HasPrefix(s, "{") {
				segments[i] = "\xff"
			}
		}
		return segments
	}
	return slices.Compare(key(a), key(b))
}

// dispatcher is a path in the router of templates.
type dispatcher struct {
	router  *router
	methods methods
}

func (d dispatcher) ServeHTTP(w http.ResponseWriter, req *http.Request) {
	if h := d.methods[req.Method]; h != nil {
		h.ServeHTTP(w, req)
		return
	}
	// The methods of the path (RFC 9110 §15.5.6).
	d.router.fail(w, req, &web.Error{
		Status: http.StatusMethodNotAllowed, Code: "method_not_allowed", Message: "the path does not support this method",
		Header: http.Header{"Allow": {strings.Join(d.methods.allowed(), ", ")}},
	})
}

func (r *router) ServeHTTP(w http.ResponseWriter, req *http.Request) {
	if req.Method == http.MethodHead { // net/http drops the body of the response
		get := *req
		get.Method = http.MethodGet
		req = &get
	}
	if methods, ok := r.exact[req.URL.Path]; ok && req.URL.RawPath == "" { // an escaped character may be part of an id
		dispatcher{r, methods}.ServeHTTP(w, req)
		return
	}
	r.templates.ServeHTTP(w, req)
}

// Has implements [web.Paths].
func (r *router) Has(req *http.Request) bool {
	if _, ok := r.exact[req.URL.Path]; ok && req.URL.RawPath == "" {
		return true
	}
	var match mux.RouteMatch
	return r.templates.Match(req, &match) && match.Route != nil
}

func (r *router) notFound(w http.ResponseWriter, req *http.Request) {
	if !r.notFoundPage(w, req) {
		r.fail(w, req, web.NotFound())
	}
}

// route is an operation with its handler in the pipeline.
type route struct {
	web.Operation
	handler http.Handler
}

// follow requires that routes and the operations of a document are the same, and returns the
// operations with their handlers, each wrapped in the requirements of its operation.
func follow(routes *mux.Router, list []web.Operation, wrap func(web.Operation, http.Handler) http.Handler) (found []route, err error) {
	operations := map[string]web.Operation{}
	for _, op := range list {
		operations[op.Method+" "+op.Path] = op
	}
	err = routes.Walk(func(r *mux.Route, _ *mux.Router, _ []*mux.Route) error {
		path, err := r.GetPathTemplate()
		if err != nil {
			return err
		}
		names, err := r.GetMethods()
		if err != nil || len(names) != 1 {
			return fmt.Errorf("route %s must have one method", path)
		}
		key := names[0] + " " + path
		op, ok := operations[key]
		if !ok {
			return fmt.Errorf("route %s is not in the document", key)
		}
		delete(operations, key)
		found = append(found, route{op, wrap(op, r.GetHandler())})
		return nil
	})
	if err != nil {
		return nil, err
	}
	for key := range operations {
		return nil, fmt.Errorf("operation %s has no route", key)
	}
	return found, nil
}
