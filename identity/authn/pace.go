package authn

import (
	"context"
	"time"

	lru "github.com/hashicorp/golang-lru/v2"

	"stonetown/internal/fair"
)

// Password hashes that were imported from another system take another time to verify than
// ours, until they are replaced at a sign-in. A wrong password is therefore answered at a
// step: a whole number of paces after verification began, the same number for all
// addresses of a tenant. Otherwise the time would tell which addresses have an imported
// account.
const (
	// defaultPace is longer than verifying any usual hash takes.
	defaultPace = 500 * time.Millisecond
	// maxPaces bounds the wait of a tenant whose hashes are very slow.
	maxPaces = 4
	// pacedTenants is how many tenants' paces a process remembers.
	pacedTenants = 10_000
)

// paces remembers how many paces the slowest verification of each tenant took.
type paces struct {
	pace    time.Duration
	slowest *lru.Cache[string, int]
}

func newPaces(pace time.Duration) (*paces, error) {
	slowest, err := lru.New[string, int](pacedTenants)
	return &paces{pace, slowest}, err
}

// wait is for how long to put an answer off after a verification that took so long.
func (p *paces) wait(tenantID string, took time.Duration) time.Duration {
	n := min(maxPaces, int((took+p.pace-1)/p.pace))
	known, _ := p.slowest.Get(tenantID)
	if n > known {
		p.slowest.Add(tenantID, n)
	}
	return time.Duration(max(n, known))*p.pace - took
}

// putOff waits until an answer is due whose verification took so long. The request keeps
// no other one from being worked on meanwhile.
func (p *paces) putOff(ctx context.Context, tenantID string, took time.Duration) error {
	return fair.Aside(ctx, func() error {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(p.wait(tenantID, took)):
			return nil
		}
	})
}
