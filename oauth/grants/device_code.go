package grants

import (
	"context"
	"errors"
	"fmt"
	"time"

	"stonetown/internal/sqldb"
	"stonetown/oauth/access"
	"stonetown/oauth/client"
	"stonetown/oauth/internal/storage"
	"stonetown/oauth/protocol"
	"stonetown/oauth/token"
)

// deviceToken answers the device grant (RFC 8628 §3.4): how far the user is, and in the end
// the tokens, once.
func (s *Service) deviceToken(ctx context.Context, tenant protocol.Tenant, app client.Application, req Request) (token.Response, error) {
	d, err := access.SelectDevice(ctx, s.db, tenant, "hash", protocol.Hash(req.DeviceCode))
	if errors.Is(err, access.ErrUserCode) || err == nil && (d.ClientID != app.ClientID || !d.UsedAt.IsZero()) {
		return token.Response{}, access.ErrInvalidGrant
	}
	if err != nil {
		return token.Response{}, err
	}
	now := storage.Now(s.clock)
	switch {
	case !now.Before(d.ExpiresAt):
		return token.Response{}, protocol.NewError(protocol.ExpiredToken, "the device code has expired")
	case d.Denied:
		return token.Response{}, protocol.NewError(protocol.AccessDenied, "the user denied the request")
	case d.GrantID == "":
		return token.Response{}, s.wait(ctx, tenant, d, now)
	}
	g, err := access.SelectGrant(ctx, s.db, tenant, d.GrantID)
	if err != nil {
		return token.Response{}, err
	}
	issued, err := s.issue(ctx, tenant, app, g, issuance{req: req, first: true, uses: func(b *sqldb.Batch) {
		useOnce(b, `UPDATE device_codes SET used_at = $3 WHERE tenant_id = $1 AND hash = $2 AND used_at = 0`, tenant.ID, d.Hash, now.UnixMicro())
	}})
	if errors.Is(err, errReused) {
		err = access.ErrInvalidGrant
	}
	return issued, err
}

// wait notes that a device has asked, and tells it to go on or to ask less often.
func (s *Service) wait(ctx context.Context, tenant protocol.Tenant, d access.Device, now time.Time) error {
	refused := protocol.NewError(protocol.AuthorizationPending, "the user has not answered yet")
	if now.Sub(d.PolledAt) < d.Interval {
		d.Interval += access.PollInterval
		refused = protocol.NewError(protocol.SlowDown, fmt.Sprintf("wait %d seconds between requests", int(d.Interval.Seconds())))
	}
	_, err := s.db.Exec(ctx, `UPDATE device_codes SET polled_at = $3, interval_s = $4 WHERE tenant_id = $1 AND hash = $2`,
		tenant.ID, d.Hash, now.UnixMicro(), int64(d.Interval/time.Second))
	if err != nil {
		return fmt.Errorf("note that the device asked: %w", err)
	}
	return refused
}
