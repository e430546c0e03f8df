package web

import (
	"context"
	"errors"
	"net/http"
	"strings"

	"github.com/rs/cors"

	"stonetown/controlplane"
)

// Origins knows which web origins may read the responses of a tenant.
type Origins interface {
	// OriginAllowed reports whether an enabled application of the tenant names
	// the origin; with a clientID, whether that application does.
	OriginAllowed(ctx context.Context, tenantID, clientID, origin string) (bool, error)
}

// newCORS states the policy of everything that a script elsewhere may call with a
// token (Fetch, CORS protocol). Cookies never count, so credentials are not
// allowed. What is public says so itself; see [Document].
func newCORS(s *Server) *cors.Cors {
	return cors.New(cors.Options{
		AllowOriginVaryRequestFunc: func(r *http.Request, origin string) (bool, []string) {
			return s.originAllowed(r, origin), []string{"Origin"}
		},
		AllowedMethods: []string{http.MethodGet, http.MethodHead, http.MethodPost, http.MethodPut, http.MethodPatch, http.MethodDelete},
		AllowedHeaders: []string{"Authorization", "Content-Type", "Idempotency-Key", "DPoP"},
		ExposedHeaders: []string{
			"X-Request-Id", "Retry-After", "RateLimit", "RateLimit-Policy", "Idempotent-Replayed", "X-Consistency-Token", "Location", "ETag",
		},
		MaxAge: 600,
	})
}

func (s *Server) originAllowed(r *http.Request, origin string) bool {
	if s.origins == nil {
		return false
	}
	tenant, err := s.tenant(r)
	if err != nil || tenant.State != controlplane.TenantActive {
		return false
	}
	allowed, err := s.origins.OriginAllowed(r.Context(), tenant.ID, "", origin)
	if err != nil && !errors.Is(err, context.Canceled) {
		s.log.WarnContext(r.Context(), "look up origin", "tenant", tenant.ID, "error", err)
	}
	return allowed && err == nil
}

// Paths says whether the router has a path at all.
type Paths interface {
	// Has reports whether some method leads somewhere.
	Has(r *http.Request) bool
}

// allowOrigin states in the response's head who may read it. It reports whether
// that was all the request asked for (a preflight).
func (s *Server) allowOrigin(w http.ResponseWriter, r *http.Request, paths Paths) bool {
	if r.Header.Get("Origin") == "" || strings.HasPrefix(r.URL.Path, "/.well-known/") {
		return false
	}
	preflight := r.Method == http.MethodOptions && r.Header.Get("Access-Control-Request-Method") != ""
	if preflight && !paths.Has(r) {
		return false
	}
	s.cors.HandlerFunc(w, r) // which answers a preflight
	return preflight
}

// RestrictOrigin takes back that a script may read the response, where its origin
// is another application's than the one that the request is about.
func (s *Server) RestrictOrigin(w http.ResponseWriter, r *http.Request, clientID string) {
	origin := r.Header.Get("Origin")
	if origin == "" || s.origins == nil || w.Header().Get("Access-Control-Allow-Origin") == "" {
		return
	}
	allowed, err := s.origins.OriginAllowed(r.Context(), w.(*response).Tenant.ID, clientID, origin)
	if err != nil || !allowed {
		w.Header().Del("Access-Control-Allow-Origin")
		w.Header().Del("Access-Control-Expose-Headers")
	}
}
