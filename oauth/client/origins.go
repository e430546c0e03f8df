package client

import (
	"context"
	"fmt"
	"net/url"
	"slices"
	"strings"
	"sync"
	"time"

	lru "github.com/hashicorp/golang-lru/v2"
)

// originsFor is how long the origins of a tenant are cached, unless this process changes them.
const originsFor = 5 * time.Second

// originsCacheSize is the number of tenants whose origins are cached.
const originsCacheSize = 4096

// origins are the web origins that the enabled applications of a tenant name.
type origins struct {
	byClient map[string][]string
	trusted  []string // of the tenant itself
	until    time.Time
}

// originCache caches the origins of tenants.
type originCache struct {
	tenants *lru.Cache[string, origins]

	mu      sync.Mutex // between the changes and the addition of what was read before
	changes int        // made by this process, to all tenants
}

func newOriginCache() *originCache {
	tenants, err := lru.New[string, origins](originsCacheSize)
	if err != nil {
		panic(err) // the size is positive
	}
	return &originCache{tenants: tenants}
}

// changed removes the origins of a tenant, which were changed.
func (c *originCache) changed(tenantID string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.changes++
	c.tenants.Remove(tenantID)
}

// begin begins to read the origins of a tenant, for add.
func (c *originCache) begin() (changes int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.changes
}

// add caches what was read, unless something has changed since the read began.
func (c *originCache) add(tenantID string, read origins, since int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.changes == since {
		c.tenants.Add(tenantID, read)
	}
}

// OriginsChanged makes changes of [Registry.UpdateSettings] effective at once on this process,
// when they are committed.
func (s *Registry) OriginsChanged(tenantID string) { s.origins.changed(tenantID) }

// OriginAllowed reports whether the tenant, or an enabled application of it, names a web
// origin; with a clientID, whether that application does. Changes of this process are effective
// at once, those of others within seconds.
func (s *Registry) OriginAllowed(ctx context.Context, tenantID, clientID, origin string) (bool, error) {
	known, ok := s.origins.tenants.Get(tenantID)
	if now := s.clock(); !ok || now.After(known.until) {
		since := s.origins.begin()
		byClient, err := selectOrigins(ctx, s.db, tenantID)
		if err != nil {
			return false, fmt.Errorf("read allowed origins: %w", err)
		}
		settings, err := SelectSettings(ctx, s.db, tenantID)
		if err != nil {
			return false, err
		}
		known = origins{byClient, settings.TrustedOrigins, now.Add(originsFor)}
		s.origins.add(tenantID, known, since)
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
