package factor

import (
	"bytes"
	"context"
	"crypto/subtle"
	"encoding/base64"
	"fmt"
	"image/png"
	"time"

	"github.com/pquerna/otp"
	"github.com/pquerna/otp/totp"

	"stonetown/internal/sqldb"
)

// The parameters that every authenticator app supports.
const (
	totpPeriod = 30 // seconds
	totpSkew   = 1  // accepted steps before and after the current one
	totpSecret = 20 // bytes, as long as the hash (RFC 4226 §4)
)

var totpOptions = totp.ValidateOpts{Period: totpPeriod, Digits: otp.DigitsSix, Algorithm: otp.AlgorithmSHA1}

// Key is a new TOTP key.
type Key struct {
	Secret string // base32
	URI    string // otpauth://totp/…
	QR     string // the URI as a QR code, a data: URL of image/png
}

// NewKey creates a key. The app shows issuer and account.
func NewKey(issuer, account string) (Key, error) {
	key, err := totp.Generate(totp.GenerateOpts{
		Issuer: issuer, AccountName: account, Period: totpPeriod, SecretSize: totpSecret, Digits: otp.DigitsSix, Algorithm: otp.AlgorithmSHA1,
	})
	if err != nil {
		return Key{}, fmt.Errorf("make TOTP key: %w", err)
	}
	picture, err := key.Image(240, 240)
	if err != nil {
		return Key{}, fmt.Errorf("draw TOTP key: %w", err)
	}
	var b bytes.Buffer
	if err := png.Encode(&b, picture); err != nil {
		return Key{}, fmt.Errorf("draw TOTP key: %w", err)
	}
	return Key{key.Secret(), key.URL(), "data:image/png;base64," + base64.StdEncoding.EncodeToString(b.Bytes())}, nil
}

// step returns the time step of a code. It fails with [ErrWrong] unless the step is accepted and
// later than after.
func step(secret, code string, now time.Time, after int64) (int64, error) {
	current := now.Unix() / totpPeriod
	var found int64
	for n := current - totpSkew; n <= current+totpSkew; n++ {
		want, err := totp.GenerateCodeCustom(secret, time.Unix(n*totpPeriod, 0), totpOptions)
		if err != nil {
			return 0, fmt.Errorf("compute code: %w", err)
		}
		if subtle.ConstantTimeCompare([]byte(want), []byte(code)) == 1 {
			found = n
		}
	}
	if found <= after {
		return 0, ErrWrong
	}
	return found, nil
}

// AddTOTP adds a key as a factor if the code is correct. It fails with [ErrWrong] or [ErrLimit].
func (s *Store) AddTOTP(ctx context.Context, tx *sqldb.Tx, tenantID, userID, label, secret, code string) (Factor, error) {
	n, err := step(secret, code, s.now(), 0)
	if err != nil {
		return Factor{}, err
	}
	return s.add(ctx, tx, Factor{TenantID: tenantID, UserID: userID, Kind: TOTP, Label: label, lastStep: n}, []byte(secret))
}

// VerifyTOTP accepts a code once. It fails with [ErrWrong].
func (s *Store) VerifyTOTP(ctx context.Context, tx *sqldb.Tx, f Factor, code string) error {
	secret, err := s.open(f)
	if err != nil {
		return err
	}
	now := s.now()
	n, err := step(string(secret), code, now, f.lastStep)
	if err != nil {
		return err
	}
	accepted, err := tx.Exec(ctx, `
		UPDATE factors SET last_step = $4, last_used_at = $5 WHERE tenant_id = $1 AND user_id = $2 AND id = $3 AND last_step < $4`,
		f.TenantID, f.UserID, f.ID, n, now.UnixMicro())
	if err == nil && accepted == 0 {
		err = ErrWrong
	}
	return err
}
