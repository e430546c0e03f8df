package authn

import (
	"context"
	"time"

	lru "github.com/hashicorp/golang-lru/v2"

	"stonetown/internal/fair"
)

// An imported password hash takes a different time to verify than a new one, until it is
// replaced at a sign-in. The response to a wrong password is therefore delayed to a whole number
// of paces after the verification began, the same number for all addresses of a tenant.
// Otherwise response timing would reveal which addresses have an imported account.
const (
	// defaultPace is longer than the verification of common hashes.
	defaultPace = 500 * time.Millisecond
	// maxPaces bounds the delay for a tenant with very slow hashes.
	maxPaces = 4
	// pacedTenants is the number of tenants whose paces are stored.
	pacedTenants = 10_000
)

// paces stores the number of paces of the slowest verification of each tenant.
type paces struct {
	pace    time.Duration
	slowest *lru.Cache[string, int]
}

func newPaces(pace time.Duration) (*paces, error) {
	slowest, err := lru.New[string, int](pacedTenants)
	return &paces{pace, slowest}, err
}

// delay returns the delay of the response after a verification of the given duration.
func (p *paces) delay(tenantID string, took time.Duration) time.Duration {
	n := min(maxPaces, int((took+p.pace-1)/p.pace))
	known, _ := p.slowest.Get(tenantID)
	if n > known {
		p.slowest.Add(tenantID, n)
	}
	return time.Duration(max(n, known))*p.pace - took
}

// wait waits for the delay. The place of the request among the requests in progress is free
// meanwhile.
func (p *paces) wait(ctx context.Context, tenantID string, took time.Duration) error {
	return fair.Aside(ctx, func() error {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(p.delay(tenantID, took)):
			return nil
		}
	})
}
