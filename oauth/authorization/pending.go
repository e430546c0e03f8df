package authorization

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"stonetown/internal/sqldb"
	"stonetown/oauth/internal/storage"
	"stonetown/oauth/protocol"
)

// ErrFlowNotFound is returned for an id that no flow has, and ErrFlowExpired for one
// whose time is over.
var (
	ErrRequestNotFound = errors.New("the authorization request was not found")
	ErrRequestExpired  = errors.New("the authorization request has expired")
)

// SignInTimeout is how long people may take to sign in.
const SignInTimeout = 30 * time.Minute

// Flow is an authorization request whose user is signing in. It belongs to the browser that
// it came from: that browser holds a secret, on which any number of flows can hang, and only
// it can resume them ([Service.ResumeFlow]).
type PendingRequest struct {
	Request   Request
	Answer    Answer    // of the user, so far
	CreatedAt time.Time // UTC, as is the other
	ExpiresAt time.Time
	browser   string // hash of its secret
}

const (
	requestPrefix = "flw_" // begins the ids of flows
	browserPrefix = "bs_"  // begins the secrets of browsers
)

// NewBrowser returns a secret for a browser: bs_ and 256 random bits.
func NewBrowser() string { return protocol.NewToken(browserPrefix) }

// Suspend stores an authorization request that came from a browser and returns the id of
// the flow: flw_ and 256 random bits.
func (s *Service) Suspend(ctx context.Context, tenant protocol.Tenant, r Request, browser string) (id string, err error) {
	id = protocol.NewToken(requestPrefix)
	return id, s.storeRequest(ctx, tenant, id, r, protocol.Hash(browser), SignInTimeout)
}

// Resume is [Service.Flow] for a browser that holds some secrets. The flow of another
// browser is not found: an attacker who has the victim finish the attacker's flow, or who
// finishes the victim's, gains nothing (RFC 9700 §4.7).
func (s *Service) Resume(ctx context.Context, tenant protocol.Tenant, id string, browsers []string) (PendingRequest, error) {
	f, err := s.Pending(ctx, tenant, id)
	if err == nil && !slices.ContainsFunc(browsers, func(secret string) bool { return protocol.Hash(secret) == f.browser }) {
		return PendingRequest{}, ErrRequestNotFound
	}
	return f, err
}

// Pending finds a flow. It fails with [ErrFlowNotFound] or [ErrFlowExpired].
func (s *Service) Pending(ctx context.Context, tenant protocol.Tenant, id string) (PendingRequest, error) {
	if !strings.HasPrefix(id, requestPrefix) {
		return PendingRequest{}, ErrRequestNotFound
	}
	return s.readRequest(ctx, tenant, id)
}

// storeRequest stores a request under a secret, for a browser unless its hash is empty.
func (s *Service) storeRequest(ctx context.Context, tenant protocol.Tenant, secret string, r Request, browser string, good time.Duration) error {
	now := storage.Now(s.clock)
	_, err := s.db.Exec(ctx, `INSERT INTO flows (tenant_id, id, request, browser, created_at, expires_at) VALUES ($1, $2, $3, $4, $5, $6)`,
		tenant.ID, protocol.Hash(secret), storage.JSON(r), browser, now.UnixMicro(), now.Add(good).UnixMicro())
	if err != nil {
		return fmt.Errorf("keep authorization request: %w", err)
	}
	return nil
}

func (s *Service) readRequest(ctx context.Context, tenant protocol.Tenant, secret string) (f PendingRequest, err error) {
	var text, said string
	var created, expires int64
	err = s.db.QueryRow(ctx, `SELECT request, answer, browser, created_at, expires_at FROM flows WHERE tenant_id = $1 AND id = $2`, tenant.ID, protocol.Hash(secret)).
		Scan(&text, &said, &f.browser, &created, &expires)
	if errors.Is(err, sqldb.ErrNoRows) {
		return f, ErrRequestNotFound
	}
	if err == nil {
		err = errors.Join(storage.ReadJSON(text, &f.Request), storage.ReadJSON(said, &f.Answer))
	}
	if err != nil {
		return f, fmt.Errorf("read authorization request: %w", err)
	}
	f.CreatedAt, f.ExpiresAt = storage.Time(created), storage.Time(expires)
	if !storage.Now(s.clock).Before(f.ExpiresAt) {
		return f, ErrRequestExpired
	}
	return f, nil
}
