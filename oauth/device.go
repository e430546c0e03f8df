package oauth

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"stonetown/internal/eventlog"
	"stonetown/internal/id"
	"stonetown/internal/sqldb"
)

// GrantDeviceCode is the grant of RFC 8628.
const GrantDeviceCode = "urn:ietf:params:oauth:grant-type:device_code"

// Codes of the device grant (RFC 8628 §3.5).
const (
	AuthorizationPending Code = "authorization_pending"
	SlowDown             Code = "slow_down"
	ExpiredToken         Code = "expired_token"
)

const (
	// deviceCodeFor is how long a device waits for its user.
	deviceCodeFor = 10 * time.Minute

	// userCodeLetters are those of user codes: no vowels, so that no words come up (RFC 8628
	// §6.1). Eight of them are 34 bits, guessed at against a limit and ten minutes.
	userCodeLetters = "BCDFGHJKLMNPQRSTVWXZ"
	userCodeLength  = 8
)

// pollEvery is the interval at which a device may poll, and the increment of the interval
// after a request that came too soon (RFC 8628 §3.5).
const pollEvery = 5 * time.Second

// ErrUserCode is returned for a code that no waiting device has.
var ErrUserCode = errors.New("the code is unknown or expired")

// Device is what a device gets that waits for its user.
type Device struct {
	DeviceCode string
	UserCode   string // XXXX-XXXX
	ExpiresIn  time.Duration
	Interval   time.Duration
}

// DeviceAuthorizationRequest is a request of a device to act for a user (RFC 8628 §3.1).
type DeviceAuthorizationRequest struct {
	Credentials
	Scope    string   // the scope parameter; empty: the default
	Audience []string // the values of the audience or resource (RFC 8707) parameter
}

// AuthorizeDevice begins to wait for the user of a device (RFC 8628 §3.1). Refusals are
// [*Error].
func (s *Service) AuthorizeDevice(ctx context.Context, tenant Tenant, req DeviceAuthorizationRequest) (Device, error) {
	app, err := s.client(ctx, tenant, req.Credentials)
	if err != nil {
		return Device{}, err
	}
	if !app.Type.hasDevices() || s.people == nil {
		return Device{}, &Error{UnauthorizedClient, "applications of this type cannot use " + GrantDeviceCode}
	}
	scopes, err := grantedScopes(app, req.Scope)
	if err != nil {
		return Device{}, err
	}
	if _, err := tokenAudience(tenant, app, req.Audience, nil); err != nil {
		return Device{}, err
	}
	d := Device{DeviceCode: newToken("dc_"), ExpiresIn: deviceCodeFor, Interval: pollEvery}
	expires := moment(s.clock).Add(deviceCodeFor).UnixMicro()
	for {
		d.UserCode = newUserCode()
		_, err := s.db.Exec(ctx, `
			INSERT INTO device_codes (tenant_id, hash, user_hash, client_id, scope, audience, client_ip, grant_id, denied, interval_s, polled_at, used_at, expires_at)
			VALUES ($1, $2, $3, $4, $5, $6, $7, '', FALSE, $8, 0, 0, $9)`,
			tenant.ID, tokenHash(d.DeviceCode), tokenHash(d.UserCode), app.ClientID, strings.Join(scopes, " "), strings.Join(req.Audience, ""),
			eventlog.OriginOf(ctx).ClientIP, int64(pollEvery/time.Second), expires)
		if sqldb.IsUniqueViolation(err) { // another device waits with the same
			continue
		}
		if err != nil {
			return Device{}, fmt.Errorf("keep device code: %w", err)
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

// device is what is kept of one that waits.
type device struct {
	hash, clientID, audience, clientIP, grantID string
	scopes                                      []string
	denied                                      bool
	interval                                    time.Duration
	polledAt, usedAt, expiresAt                 time.Time
}

// selectDevice finds a device by the hash of one of its codes, waiting or not. It fails
// with [ErrUserCode].
func selectDevice(ctx context.Context, from querier, tenant Tenant, column, hash string) (d device, err error) {
	var scope string
	var interval, polled, used, expires int64
	err = from.QueryRow(ctx, `
		SELECT hash, client_id, scope, audience, client_ip, grant_id, denied, interval_s, polled_at, used_at, expires_at
		FROM device_codes WHERE tenant_id = $1 AND `+column+` = $2`, tenant.ID, hash).
		Scan(&d.hash, &d.clientID, &scope, &d.audience, &d.clientIP, &d.grantID, &d.denied, &interval, &polled, &used, &expires)
	if errors.Is(err, sqldb.ErrNoRows) {
		return d, ErrUserCode
	}
	if err != nil {
		return d, fmt.Errorf("read device code: %w", err)
	}
	d.scopes, d.interval = strings.Fields(scope), time.Duration(interval)*time.Second
	d.polledAt, d.usedAt, d.expiresAt = instant(polled), instant(used), instant(expires)
	return d, nil
}

// DeviceRequest is what a waiting device wants.
type DeviceRequest struct {
	Application Application
	Scopes      []string
	ClientIP    string // from where it was asked
}

// Device finds out what the device wants that shows a code. It fails with [ErrUserCode].
func (s *Service) Device(ctx context.Context, tenant Tenant, userCode string) (DeviceRequest, error) {
	d, app, err := s.waiting(ctx, s.db, tenant, userCode)
	return DeviceRequest{app, d.scopes, d.clientIP}, err
}

func (s *Service) waiting(ctx context.Context, from querier, tenant Tenant, userCode string) (d device, app Application, err error) {
	code, ok := readUserCode(userCode)
	if !ok {
		return d, app, ErrUserCode
	}
	if d, err = selectDevice(ctx, from, tenant, "user_hash", tokenHash(code)); err != nil {
		return d, app, err
	}
	if d.grantID != "" || d.denied || !moment(s.clock).Before(d.expiresAt) {
		return d, app, ErrUserCode
	}
	app, err = selectApplication(ctx, from, tenant.ID, d.clientID)
	if notFound(err) || err == nil && app.State != Enabled {
		err = ErrUserCode
	}
	return d, app, err
}

// AnswerDevice lets the device that shows a code act for a user, or not. It fails with
// [ErrUserCode].
func (s *Service) AnswerDevice(ctx context.Context, tenant Tenant, userCode string, by Authentication, allow bool) error {
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
			tenant.ID, d.hash, grantID, !allow)
		switch {
		case err != nil:
			return fmt.Errorf("answer device: %w", err)
		case n == 0: // somebody else was faster
			return ErrUserCode
		case !allow:
			return nil
		}
		settings, err := selectSettings(ctx, tx, tenant.ID)
		if err != nil {
			return err
		}
		var b sqldb.Batch
		s.begin(&b, tenant, settings, grant{id: grantID, clientID: app.ClientID, auth: by, scopes: d.scopes, audience: d.audience})
		return tx.Send(ctx, &b)
	})
}

// deviceToken answers the device grant (RFC 8628 §3.4): how far the user is, and in the end
// the tokens, once.
func (s *Service) deviceToken(ctx context.Context, tenant Tenant, app Application, req TokenRequest) (TokenResponse, error) {
	d, err := selectDevice(ctx, s.db, tenant, "hash", tokenHash(req.DeviceCode))
	if errors.Is(err, ErrUserCode) || err == nil && (d.clientID != app.ClientID || !d.usedAt.IsZero()) {
		return TokenResponse{}, invalidGrant
	}
	if err != nil {
		return TokenResponse{}, err
	}
	now := moment(s.clock)
	switch {
	case !now.Before(d.expiresAt):
		return TokenResponse{}, &Error{ExpiredToken, "the device code has expired"}
	case d.denied:
		return TokenResponse{}, &Error{AccessDenied, "the user denied the request"}
	case d.grantID == "":
		return TokenResponse{}, s.wait(ctx, tenant, d, now)
	}
	g, err := selectGrant(ctx, s.db, tenant, d.grantID)
	if err != nil {
		return TokenResponse{}, err
	}
	issued, err := s.issue(ctx, tenant, app, g, issuance{req: req, first: true, uses: func(b *sqldb.Batch) {
		useOnce(b, `UPDATE device_codes SET used_at = $3 WHERE tenant_id = $1 AND hash = $2 AND used_at = 0`, tenant.ID, d.hash, now.UnixMicro())
	}})
	if errors.Is(err, errReused) {
		err = invalidGrant
	}
	return issued, err
}

// wait notes that a device has asked, and tells it to go on or to ask less often.
func (s *Service) wait(ctx context.Context, tenant Tenant, d device, now time.Time) error {
	refused := &Error{AuthorizationPending, "the user has not answered yet"}
	if now.Sub(d.polledAt) < d.interval {
		d.interval += pollEvery
		refused = &Error{SlowDown, fmt.Sprintf("wait %d seconds between requests", int(d.interval.Seconds()))}
	}
	_, err := s.db.Exec(ctx, `UPDATE device_codes SET polled_at = $3, interval_s = $4 WHERE tenant_id = $1 AND hash = $2`,
		tenant.ID, d.hash, now.UnixMicro(), int64(d.interval/time.Second))
	if err != nil {
		return fmt.Errorf("note that the device asked: %w", err)
	}
	return refused
}

// hasDevices reports whether applications of the type can run where nobody can sign in.
func (t ApplicationType) hasDevices() bool {
	return slices.Contains([]ApplicationType{Native, Server}, t)
}
