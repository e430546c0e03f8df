package oauth

import (
	"context"
	"crypto/sha256"
	"encoding/base64"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"stonetown/internal/sqldb"
)

// ErrFlowNotFound is returned for an id that no flow has, and ErrFlowExpired for one
// whose time is over.
var (
	ErrFlowNotFound = errors.New("the authorization request was not found")
	ErrFlowExpired  = errors.New("the authorization request has expired")
)

// FlowFor is how long people may take to sign in.
const FlowFor = 30 * time.Minute

// Flow is an authorization request whose user is signing in. It belongs to the browser that
// it came from: that browser holds a secret, on which any number of flows can hang, and only
// it can resume them ([Service.ResumeFlow]).
type Flow struct {
	Request   AuthorizationRequest
	Answer    Answer    // of the user, so far
	CreatedAt time.Time // UTC, as is the other
	ExpiresAt time.Time
	browser   string // hash of its secret
}

const (
	flowPrefix    = "flw_" // begins the ids of flows
	browserPrefix = "bs_"  // begins the secrets of browsers
)

// NewBrowser returns a secret for a browser: bs_ and 256 random bits.
func NewBrowser() string { return newToken(browserPrefix) }

// BeginFlow stores an authorization request that came from a browser and returns the id of
// the flow: flw_ and 256 random bits.
func (s *Service) BeginFlow(ctx context.Context, tenant Tenant, r AuthorizationRequest, browser string) (id string, err error) {
	id = newToken(flowPrefix)
	return id, s.keepRequest(ctx, tenant, id, r, tokenHash(browser), FlowFor)
}

// ResumeFlow is [Service.Flow] for a browser that holds some secrets. The flow of another
// browser is not found: an attacker who has the victim finish the attacker's flow, or who
// finishes the victim's, gains nothing (RFC 9700 §4.7).
func (s *Service) ResumeFlow(ctx context.Context, tenant Tenant, id string, browsers []string) (Flow, error) {
	f, err := s.Flow(ctx, tenant, id)
	if err == nil && !slices.ContainsFunc(browsers, func(secret string) bool { return tokenHash(secret) == f.browser }) {
		return Flow{}, ErrFlowNotFound
	}
	return f, err
}

// Flow finds a flow. It fails with [ErrFlowNotFound] or [ErrFlowExpired].
func (s *Service) Flow(ctx context.Context, tenant Tenant, id string) (Flow, error) {
	if !strings.HasPrefix(id, flowPrefix) {
		return Flow{}, ErrFlowNotFound
	}
	return s.readRequest(ctx, tenant, id)
}

// keepRequest stores a request under a secret, for a browser unless its hash is empty.
func (s *Service) keepRequest(ctx context.Context, tenant Tenant, secret string, r AuthorizationRequest, browser string, good time.Duration) error {
	now := moment(s.clock)
	_, err := s.db.Exec(ctx, `INSERT INTO flows (tenant_id, id, request, browser, created_at, expires_at) VALUES ($1, $2, $3, $4, $5, $6)`,
		tenant.ID, tokenHash(secret), stored(r), browser, now.UnixMicro(), now.Add(good).UnixMicro())
	if err != nil {
		return fmt.Errorf("keep authorization request: %w", err)
	}
	return nil
}

func (s *Service) readRequest(ctx context.Context, tenant Tenant, secret string) (f Flow, err error) {
	var text, said string
	var created, expires int64
	err = s.db.QueryRow(ctx, `SELECT request, answer, browser, created_at, expires_at FROM flows WHERE tenant_id = $1 AND id = $2`, tenant.ID, tokenHash(secret)).
		Scan(&text, &said, &f.browser, &created, &expires)
	if errors.Is(err, sqldb.ErrNoRows) {
		return f, ErrFlowNotFound
	}
	if err == nil {
		err = errors.Join(unstore(text, &f.Request), unstore(said, &f.Answer))
	}
	if err != nil {
		return f, fmt.Errorf("read authorization request: %w", err)
	}
	f.CreatedAt, f.ExpiresAt = instant(created), instant(expires)
	if !moment(s.clock).Before(f.ExpiresAt) {
		return f, ErrFlowExpired
	}
	return f, nil
}

// tokenHash is what is kept of a secret.
func tokenHash(secret string) string {
	sum := sha256.Sum256([]byte(secret))
	return base64.RawURLEncoding.EncodeToString(sum[:])
}
