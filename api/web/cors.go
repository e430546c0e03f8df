package web

import (
	"context"
	"errors"
	"net/http"
	"strings"

	"github.com/rs/cors"

	"stonetown/controlplane"
)

// Origins decides which web origins may read the responses of a tenant.
type Origins interface {
	// OriginAllowed reports whether an enabled application of the tenant names
	// the origin; with a clientID, whether that application does.
	OriginAllowed(ctx context.Context, tenantID, clientID, origin string) (bool, error)
}

// newCORS returns the policy for scripts of other origins, which send a token (Fetch, CORS
// protocol). Cookies are not accepted from them, so credentials are not allowed. Public
// documents have their own policy; see [Document].
func newCORS(s *Server) *cors.Cors {
	return cors.New(cors.Options{
		AllowOriginVaryRequestFunc: func(r *http.Request, origin string) (bool, []string) {
			return s.originAllowed(r, origin), []string{"Origin"}
		},
		AllowedMethods: []string{http.MethodGet, http.MethodHead, http.MethodPost, http.MethodPut, http.MethodPatch, http.MethodDelete},
		AllowedHeaders: []string{"Authorization", "Content-Type", "Idempotency-Key", "DPoP"},
		ExposedHeaders: []string{
			"X-Request-Id", "Retry-After", "RateLimit", "RateLimit-Policy", "Idempotent-Replayed", "X-Consistency-Token", "Location", "ETag", "Warning",
			"DPoP-Nonce",       // RFC 9449 §8
			"WWW-Authenticate", // what a client has to do: RFC 6750 §3, RFC 9470 §3, RFC 9449 §7.1
		},
		MaxAge: 600,
	})
}

func (s *Server) originAllowed(r *http.Request, origin string) bool {
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

// Paths reports whether the router has a path.
type Paths interface {
	// Has reports whether the path has an operation of any method.
	Has(r *http.Request) bool
}

// allowOrigin sets the CORS fields of the response. It reports whether the request was a
// preflight, which is then answered.
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

// RestrictOrigin removes the CORS fields of the response if the origin does not belong to the
// application of the request.
func (s *Server) RestrictOrigin(w http.ResponseWriter, r *http.Request, clientID string) {
	origin := r.Header.Get("Origin")
	if origin == "" || w.Header().Get("Access-Control-Allow-Origin") == "" {
		return
	}
	allowed, err := s.origins.OriginAllowed(r.Context(), w.(*response).Tenant.ID, clientID, origin)
	if err != nil || !allowed {
		w.Header().Del("Access-Control-Allow-Origin")
		w.Header().Del("Access-Control-Expose-Headers")
	}
}
