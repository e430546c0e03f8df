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
	"stonetown/oauth/audience"
	"stonetown/oauth/client"
	"stonetown/oauth/internal/storage"
	"stonetown/oauth/protocol"
)

const (
	// deviceCodeTTL is the lifetime of a device code.
	deviceCodeTTL = 10 * time.Minute

	// userCodeLetters are the letters of user codes: no vowels, so that no words result (RFC 8628
	// §6.1). Eight of them are 34 bits, against a limit of guesses and ten minutes.
	userCodeLetters = "BCDFGHJKLMNPQRSTVWXZ"
	userCodeLength  = 8
)

// DeviceAuthorization is the response to a device (RFC 8628 §3.2).
type DeviceAuthorization struct {
	DeviceCode string
	UserCode   string // XXXX-XXXX
	ExpiresIn  time.Duration
	Interval   time.Duration
}

// DeviceAuthorizationRequest is a device authorization request (RFC 8628 §3.1).
type DeviceAuthorizationRequest struct {
	client.Credentials
	Scope    string   // the scope parameter; empty: the default
	Audience []string // the values of the parameters resource (RFC 8707) and audience
}

// AuthorizeDevice stores a device authorization, which its user answers on another device (RFC
// 8628 §3.1). Refusals are [*protocol.Error].
func (s *Service) AuthorizeDevice(ctx context.Context, tenant protocol.Tenant, req DeviceAuthorizationRequest) (DeviceAuthorization, error) {
	app, err := s.authn.Client(ctx, tenant, req.Credentials)
	if err != nil {
		return DeviceAuthorization{}, err
	}
	if !app.Uses(protocol.GrantDeviceCode) {
		return DeviceAuthorization{}, protocol.NewError(protocol.UnauthorizedClient, "the application cannot use "+protocol.GrantDeviceCode)
	}
	scopes, err := client.GrantedScopes(app, req.Scope)
	if err != nil {
		return DeviceAuthorization{}, err
	}
	resources, err := client.Resources(req.Audience)
	if err != nil {
		return DeviceAuthorization{}, err
	}
	if _, err := s.audiences.Check(ctx, tenant, app, resources, audience.Application(app)); err != nil {
		return DeviceAuthorization{}, err
	}
	d := DeviceAuthorization{DeviceCode: protocol.NewToken("dc_"), ExpiresIn: deviceCodeTTL, Interval: access.PollInterval}
	expires := storage.Now(s.clock).Add(deviceCodeTTL)
	for {
		d.UserCode = newUserCode()
		err := s.access.AddDevice(ctx, tenant, d.DeviceCode, d.UserCode, access.Device{
			ClientID: app.ClientID, Scopes: scopes, Audience: strings.Join(resources, " "), ClientIP: eventlog.OriginOf(ctx).ClientIP, ExpiresAt: expires,
		})
		if sqldb.IsUniqueViolation(err) { // another pending device has the same code
			continue
		}
		if err != nil {
			return DeviceAuthorization{}, fmt.Errorf("store device code: %w", err)
		}
		return d, nil
	}
}

// newUserCode returns a code that users can read to each other.
func newUserCode() string {
	var code strings.Builder
	for code.Len() < userCodeLength+1 {
		if code.Len() == userCodeLength/2 {
			code.WriteByte('-')
		}
		var b [1]byte
		rand.Read(b[:])
		if int(b[0]) < 256/len(userCodeLetters)*len(userCodeLetters) { // all letters are equally likely
			code.WriteByte(userCodeLetters[int(b[0])%len(userCodeLetters)])
		}
	}
	return code.String()
}

// readUserCode returns the code that a user typed, in its canonical form.
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

// DeviceRequest is a pending device authorization.
type DeviceRequest struct {
	Application client.Application
	Scopes      []string
	ClientIP    string // of the device
}

// Device finds a pending device authorization by its user code. It fails with
// [access.ErrUserCode].
func (s *Service) Device(ctx context.Context, tenant protocol.Tenant, userCode string) (DeviceRequest, error) {
	d, app, err := s.waiting(ctx, s.db, tenant, userCode)
	return DeviceRequest{app, d.Scopes, d.ClientIP}, err
}

// waiting finds a pending device authorization and its application. It fails with
// [access.ErrUserCode].
func (s *Service) waiting(ctx context.Context, from storage.Querier, tenant protocol.Tenant, userCode string) (d access.Device, app client.Application, err error) {
	code, ok := readUserCode(userCode)
	if !ok {
		return d, app, access.ErrUserCode
	}
	if d, err = access.DeviceByUserCode(ctx, from, tenant, code); err != nil {
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

// AnswerDevice stores the answer of a user to a device authorization. It fails with
// [access.ErrUserCode].
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
		if err := access.AnswerDevice(ctx, tx, tenant, d, grantID); err != nil || !allow {
			return err
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
