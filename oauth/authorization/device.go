package authorization

import (
	"context"
	"crypto/rand"
	"fmt"
	"strings"
	"time"

	"stonetown/internal/eventlog"
	"stonetown/internal/id"
	"stonetown/internal/sqldb"
	"stonetown/oauth/access"
	"stonetown/oauth/client"
	"stonetown/oauth/internal/storage"
	"stonetown/oauth/protocol"
)

const (
	// deviceCodeFor is how long a device waits for its user.
	deviceCodeFor = 10 * time.Minute

	// userCodeLetters are those of user codes: no vowels, so that no words come up (RFC 8628
	// §6.1). Eight of them are 34 bits, guessed at against a limit and ten minutes.
	userCodeLetters = "BCDFGHJKLMNPQRSTVWXZ"
	userCodeLength  = 8
)

// DeviceAuthorization is what a device gets that waits for its user.
type DeviceAuthorization struct {
	DeviceCode string
	UserCode   string // XXXX-XXXX
	ExpiresIn  time.Duration
	Interval   time.Duration
}

// DeviceAuthorizationRequest is a request of a device to act for a user (RFC 8628 §3.1).
type DeviceAuthorizationRequest struct {
	client.Credentials
	Scope    string   // the scope parameter; empty: the default
	Audience []string // the values of the audience or resource (RFC 8707) parameter
}

// AuthorizeDevice begins to wait for the user of a device (RFC 8628 §3.1). Refusals are
// [*Error].
func (s *Service) AuthorizeDevice(ctx context.Context, tenant protocol.Tenant, req DeviceAuthorizationRequest) (DeviceAuthorization, error) {
	app, err := s.authn.Client(ctx, tenant, req.Credentials)
	if err != nil {
		return DeviceAuthorization{}, err
	}
	if !app.Type.HasDevices() {
		return DeviceAuthorization{}, protocol.NewError(protocol.UnauthorizedClient, "applications of this type cannot use "+protocol.GrantDeviceCode)
	}
	scopes, err := client.GrantedScopes(app, req.Scope)
	if err != nil {
		return DeviceAuthorization{}, err
	}
	if _, err := client.Audience(tenant, app, req.Audience, nil); err != nil {
		return DeviceAuthorization{}, err
	}
	d := DeviceAuthorization{DeviceCode: protocol.NewToken("dc_"), ExpiresIn: deviceCodeFor, Interval: access.PollInterval}
	expires := storage.Now(s.clock).Add(deviceCodeFor).UnixMicro()
	for {
		d.UserCode = newUserCode()
		_, err := s.db.Exec(ctx, `
			INSERT INTO device_codes (tenant_id, hash, user_hash, client_id, scope, audience, client_ip, grant_id, denied, interval_s, polled_at, used_at, expires_at)
			VALUES ($1, $2, $3, $4, $5, $6, $7, '', FALSE, $8, 0, 0, $9)`,
			tenant.ID, protocol.Hash(d.DeviceCode), protocol.Hash(d.UserCode), app.ClientID, strings.Join(scopes, " "), strings.Join(req.Audience, ""),
			eventlog.OriginOf(ctx).ClientIP, int64(access.PollInterval/time.Second), expires)
		if sqldb.IsUniqueViolation(err) { // another device waits with the same
			continue
		}
		if err != nil {
			return DeviceAuthorization{}, fmt.Errorf("keep device code: %w", err)
		}
		return d, nil
	}
}

// newUserCode is a code that people can read to each other.
func newUserCode() string {
	var code strings.Builder
	for code.Len() < userCodeLength+1 {
		if code.Len() == userCodeLength/2 {
			code.WriteByte('-')
		}
		var b [1]byte
		rand.Read(b[:])
		if int(b[0]) < 256/len(userCodeLetters)*len(userCodeLetters) { // each as likely as the others
			code.WriteByte(userCodeLetters[int(b[0])%len(userCodeLetters)])
		}
	}
	return code.String()
}

// readUserCode is a code as it was made, however it was typed.
func readUserCode(typed string) (code string, ok bool) {
	code = strings.Map(func(r rune) rune {
		if r == '-' || r == ' ' {
			return -1
		}
		return r
	}, strings.ToUpper(typed))
	if len(code) != userCodeLength || strings.Trim(code, userCodeLetters) != "" {
		return "", false
	}
	return code[:userCodeLength/2] + "-" + code[userCodeLength/2:], true
}

// DeviceRequest is what a waiting device wants.
type DeviceRequest struct {
	Application client.Application
	Scopes      []string
	ClientIP    string // from where it was asked
}

// Device finds out what the device wants that shows a code. It fails with [ErrUserCode].
func (s *Service) Device(ctx context.Context, tenant protocol.Tenant, userCode string) (DeviceRequest, error) {
	d, app, err := s.waiting(ctx, s.db, tenant, userCode)
	return DeviceRequest{app, d.Scopes, d.ClientIP}, err
}

func (s *Service) waiting(ctx context.Context, from storage.Querier, tenant protocol.Tenant, userCode string) (d access.Device, app client.Application, err error) {
	code, ok := readUserCode(userCode)
	if !ok {
		return d, app, access.ErrUserCode
	}
	if d, err = access.SelectDevice(ctx, from, tenant, "user_hash", protocol.Hash(code)); err != nil {
		return d, app, err
	}
	if d.GrantID != "" || d.Denied || !storage.Now(s.clock).Before(d.ExpiresAt) {
		return d, app, access.ErrUserCode
	}
	app, err = client.Select(ctx, from, tenant.ID, d.ClientID)
	if client.IsNotFound(err) || err == nil && app.State != client.Enabled {
		err = access.ErrUserCode
	}
	return d, app, err
}

// AnswerDevice lets the device that shows a code act for a user, or not. It fails with
// [ErrUserCode].
func (s *Service) AnswerDevice(ctx context.Context, tenant protocol.Tenant, userCode string, by access.Authentication, allow bool) error {
	return s.db.Tx(ctx, func(tx *sqldb.Tx) error {
		d, app, err := s.waiting(ctx, tx, tenant, userCode)
		if err != nil {
			return err
		}
		grantID := ""
		if allow {
			grantID = id.New(id.Grant)
		}
		n, err := tx.Exec(ctx, `
			UPDATE device_codes SET grant_id = $3, denied = $4 WHERE tenant_id = $1 AND hash = $2 AND grant_id = '' AND NOT denied`,
			tenant.ID, d.Hash, grantID, !allow)
		switch {
		case err != nil:
			return fmt.Errorf("answer device: %w", err)
		case n == 0: // somebody else was faster
			return access.ErrUserCode
		case !allow:
			return nil
		}
		settings, err := client.SelectSettings(ctx, tx, tenant.ID)
		if err != nil {
			return err
		}
		var b sqldb.Batch
		s.access.Begin(&b, tenant, settings, access.Grant{ID: grantID, ClientID: app.ClientID, Authentication: by, Scopes: d.Scopes, Audience: d.Audience})
		return tx.Send(ctx, &b)
	})
}
