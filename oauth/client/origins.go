package client

import (
	"context"
	"fmt"
	"net/url"
	"slices"
	"strings"
	"time"
)

// originsFor is how long the origins of a tenant are cached.
const originsFor = 5 * time.Second

// originsCacheSize is the number of tenants whose origins are cached.
const originsCacheSize = 4096

// origins are the web origins that the enabled applications of a tenant name.
type origins struct {
	byClient map[string][]string
	trusted  []string // of the tenant itself
	until    time.Time
}

// OriginAllowed reports whether the tenant, or an enabled application of it, names a web
// origin; with a clientID, whether that application does.
func (s *Registry) OriginAllowed(ctx context.Context, tenantID, clientID, origin string) (bool, error) {
	known, ok := s.origins.Get(tenantID)
	if now := s.clock(); !ok || now.After(known.until) {
		byClient, err := selectOrigins(ctx, s.db, tenantID)
		if err != nil {
			return false, fmt.Errorf("read allowed origins: %w", err)
		}
		settings, err := SelectSettings(ctx, s.db, tenantID)
		if err != nil {
			return false, err
		}
		known = origins{byClient, settings.TrustedOrigins, now.Add(originsFor)}
		s.origins.Add(tenantID, known)
	}
	if clientID != "" {
		return slices.Contains(known.byClient[clientID], origin), nil
	}
	if slices.Contains(known.trusted, origin) {
		return true, nil
	}
	for _, named := range known.byClient {
		if slices.Contains(named, origin) {
			return true, nil
		}
	}
	return false, nil
}

// maxOrigins bounds the origins of an application, and of a tenant.
const maxOrigins = 50

// ValidateOrigins requires origins as browsers send them (RFC 6454 §6.1): without wildcards
// and paths, and plain http only for loopback addresses.
func ValidateOrigins(list []string) error {
	if len(list) > maxOrigins {
		return fmt.Errorf("%d allowed origins, at most %d are allowed", len(list), maxOrigins)
	}
	for _, origin := range list {
		u, err := url.Parse(origin)
		if err != nil || u.Host == "" || origin != u.Scheme+"://"+u.Host || origin != strings.ToLower(origin) || strings.ContainsAny(origin, "* ") {
			return fmt.Errorf("allowed origin %q is not scheme://host[:port] in lower case", origin)
		}
		local := u.Hostname() == "localhost" || strings.HasSuffix(u.Hostname(), ".localhost") || u.Hostname() == "127.0.0.1" || u.Hostname() == "::1"
		if u.Scheme != "https" && (u.Scheme != "http" || !local) {
			return fmt.Errorf("allowed origin %q must use https, or http with a loopback host", origin)
		}
	}
	return nil
}
