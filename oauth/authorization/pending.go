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

// ErrRequestNotFound is returned for an id that no pending request has, and ErrRequestExpired
// for a request that has expired.
var (
	ErrRequestNotFound = errors.New("the authorization request was not found")
	ErrRequestExpired  = errors.New("the authorization request has expired")
)

// SignInTimeout is how long a request waits for its user to sign in.
const SignInTimeout = 30 * time.Minute

// PendingRequest is an authorization request whose user is signing in. It is bound to the
// browser from which it came: the browser has a secret, which any number of requests may
// share, and only it can resume them ([Service.Resume]).
type PendingRequest struct {
	Request   Request
	Answer    Answer    // of the user, as far as it was given
	CreatedAt time.Time // UTC, as the other time
	ExpiresAt time.Time
	browser   string // hash of its secret
}

const (
	requestPrefix = "flw_" // begins the ids of pending requests
	browserPrefix = "bs_"  // begins the secrets of browsers
)

// NewBrowser returns a secret for a browser: bs_ and 256 random bits.
func NewBrowser() string { return protocol.NewToken(browserPrefix) }

// Suspend stores an authorization request that came from a browser, and returns its id: flw_
// and 256 random bits.
func (s *Service) Suspend(ctx context.Context, tenant protocol.Tenant, r Request, browser string) (id string, err error) {
	id = protocol.NewToken(requestPrefix)
	return id, s.storeRequest(ctx, tenant, id, r, protocol.Hash(browser), SignInTimeout)
}

// Resume is [Service.Pending] for a browser that has some secrets. The request of another
// browser is not found: an attacker gains nothing by making a victim complete the attacker's
// request, or by completing the victim's (RFC 9700 §4.7).
func (s *Service) Resume(ctx context.Context, tenant protocol.Tenant, id string, browsers []string) (PendingRequest, error) {
	f, err := s.Pending(ctx, tenant, id)
	if err == nil && !slices.ContainsFunc(browsers, func(secret string) bool { return protocol.Hash(secret) == f.browser }) {
		return PendingRequest{}, ErrRequestNotFound
	}
	return f, err
}

// Pending finds a pending request. It fails with [ErrRequestNotFound] or [ErrRequestExpired].
func (s *Service) Pending(ctx context.Context, tenant protocol.Tenant, id string) (PendingRequest, error) {
	if !strings.HasPrefix(id, requestPrefix) {
		return PendingRequest{}, ErrRequestNotFound
	}
	return s.readRequest(ctx, tenant, id)
}

// storeRequest stores a request under a secret. browser is the hash of a browser's secret;
// empty: the request is not bound to one.
func (s *Service) storeRequest(ctx context.Context, tenant protocol.Tenant, secret string, r Request, browser string, good time.Duration) error {
	now := storage.Now(s.clock)
	_, err := s.db.Exec(ctx, `INSERT INTO authorization_requests (tenant_id, id, request, browser, created_at, expires_at) VALUES ($1, $2, $3, $4, $5, $6)`,
		tenant.ID, protocol.Hash(secret), storage.JSON(r), browser, now.UnixMicro(), now.Add(good).UnixMicro())
	if err != nil {
		return fmt.Errorf("keep authorization request: %w", err)
	}
	return nil
}

// readRequest reads the request of a secret. It fails with [ErrRequestNotFound] or
// [ErrRequestExpired].
func (s *Service) readRequest(ctx context.Context, tenant protocol.Tenant, secret string) (f PendingRequest, err error) {
	var text, said string
	var created, expires int64
	err = s.db.QueryRow(ctx, `SELECT request, answer, browser, created_at, expires_at FROM authorization_requests WHERE tenant_id = $1 AND id = $2`, tenant.ID, protocol.Hash(secret)).
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
	f.CreatedAt, f.ExpiresAt = sqldb.Instant(created), sqldb.Instant(expires)
	if !storage.Now(s.clock).Before(f.ExpiresAt) {
		return f, ErrRequestExpired
	}
	return f, nil
}
