package client

import (
	"context"
	"errors"
	"net/http"
)

// Checker answers checks: a [*Client] or a [*Batcher].
type Checker interface {
	Allowed(ctx context.Context, s Subject, action string, resource Ref) (bool, error)
}

// Guard protects handlers of net/http: requests that a check does not allow do not reach them. Its
// middleware also fits gorilla/mux and routers like it. A Guard is safe for concurrent use if its
// functions are.
type Guard struct {
	Checker Checker

	// Subject returns the subject of a request, such as the user whose token the service has
	// verified. The request is answered with 401 if there is none.
	Subject func(*http.Request) (s Subject, ok bool)

	// Denied answers a request that is not allowed. Default: 403.
	Denied http.Handler

	// Failed, if not nil, is called with the error of a check that has no answer. The request is then
	// answered with 503.
	Failed func(*http.Request, error)
}

// Require returns middleware that requires an action on the resource of a request. Checks of a
// request are under one [WithConsistency], as are those of its handler.
func (g *Guard) Require(action string, resource func(*http.Request) Ref) func(http.Handler) http.Handler {
	return func(next http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			subject, ok := g.Subject(r)
			if !ok {
				http.Error(w, "sign in first", http.StatusUnauthorized)
				return
			}
			if of(r.Context()) == nil {
				r = r.WithContext(WithConsistency(r.Context()))
			}
			allowed, err := g.Checker.Allowed(r.Context(), subject, action, resource(r))
			switch {
			case err != nil && !isAbsent(err):
				if g.Failed != nil {
					g.Failed(r, err)
				}
				http.Error(w, "access could not be checked, try again later", http.StatusServiceUnavailable)
			case allowed:
				next.ServeHTTP(w, r)
			case g.Denied != nil:
				g.Denied.ServeHTTP(w, r)
			default:
				http.Error(w, "you are not allowed to do this", http.StatusForbidden)
			}
		})
	}
}

// isAbsent reports whether the resource of a check does not exist, so that nobody is allowed
// anything.
func isAbsent(err error) bool {
	e, ok := errors.AsType[*Error](err)
	return ok && e.Code == "resource_not_found"
}

// Path returns the resource of a type whose ID is in a wildcard of the pattern of net/http's ServeMux.
func Path(typ, wildcard string) func(*http.Request) Ref {
	return func(r *http.Request) Ref { return Ref{typ, r.PathValue(wildcard)} }
}
