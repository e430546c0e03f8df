package grants

import (
	"context"
	"errors"
	"fmt"

	"stonetown/oauth/access"
	"stonetown/oauth/internal/storage"
	"stonetown/oauth/protocol"
)

// deviceCode answers the polls of a device (RFC 8628 §3.4), with tokens once its user has
// agreed.
type deviceCode struct {
	sources
	ofUsers
}

func (g deviceCode) decide(ctx context.Context, r *request) (*issuance, error) {
	device, err := g.access.DeviceByCode(ctx, r.tenant, r.DeviceCode)
	if errors.Is(err, access.ErrUserCode) || err == nil && (device.ClientID != r.app.ClientID || !device.UsedAt.IsZero()) {
		return nil, access.ErrInvalidGrant
	}
	if err != nil {
		return nil, err
	}
	switch {
	case !storage.Now(g.clock).Before(device.ExpiresAt):
		return nil, protocol.NewError(protocol.ExpiredToken, "the device code has expired")
	case device.Denied:
		return nil, protocol.NewError(protocol.AccessDenied, "the user denied the request")
	case device.GrantID == "":
		return nil, g.pending(ctx, r.tenant, device)
	}
	granted, err := g.access.Grant(ctx, r.tenant, device.GrantID)
	if err != nil {
		return nil, err
	}
	described, err := g.ofGrant(ctx, r, granted, nil, true)
	if err != nil {
		return nil, err
	}
	described.consumes = g.access.UseOfDevice(r.tenant, device)
	return described, nil
}

// pending notes the poll of a device whose user has not answered, and refuses it: the device
// polls again, with a longer interval if it came too soon (RFC 8628 §3.5).
func (g deviceCode) pending(ctx context.Context, tenant protocol.Tenant, device access.Device) error {
	refusal, interval := protocol.NewError(protocol.AuthorizationPending, "the user has not answered yet"), device.Interval
	if storage.Now(g.clock).Sub(device.PolledAt) < interval {
		interval += access.PollInterval
		refusal = protocol.NewError(protocol.SlowDown, fmt.Sprintf("wait %d seconds between requests", int(interval.Seconds())))
	}
	if err := g.access.NotePoll(ctx, tenant, device, interval); err != nil {
		return err
	}
	return refusal
}
