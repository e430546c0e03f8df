package authn

import (
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"errors"
	"fmt"
	"strings"
	"time"

	"stonetown/internal/sqldb"
)

const (
	// freeFailures is the number of consecutive failures after which attempts must wait.
	freeFailures = 5
	// maxWait bounds the wait, which doubles with each failure.
	maxWait = time.Minute
	// forgetAfter is the time after which failures no longer count.
	forgetAfter = 24 * time.Hour
	// alarmAt is the number of consecutive failures that is reported as an attack.
	alarmAt = 10
)

// takeAttempt counts an attempt as a failure before the password is verified. Success reverts
// the count ([Service.forgive]). It is one statement, so that parallel attempts are limited
// like consecutive ones.
var takeAttempt = fmt.Sprintf(`
	INSERT INTO sign_in_attempts (tenant_id, account, failures, next_at, updated_at) VALUES ($1, $2, 1, $3, $3)
	ON CONFLICT (tenant_id, account) DO UPDATE SET
		failures = CASE WHEN sign_in_attempts.updated_at < $4 THEN 1 ELSE sign_in_attempts.failures + 1 END,
		next_at = $3 + CASE WHEN sign_in_attempts.updated_at < $4 THEN 0 %s ELSE %d END,
		updated_at = $3
	WHERE sign_in_attempts.next_at <= $3
	RETURNING failures`, waits(), maxWait.Microseconds())

// waits returns the cases of takeAttempt: the wait after each number of failures.
func waits() string {
	var cases strings.Builder
	wait := time.Second
	for earlier := 0; wait < maxWait; earlier++ {
		var after int64
		if earlier+1 >= freeFailures {
			after = wait.Microseconds()
			wait *= 2
		}
		fmt.Fprintf(&cases, "WHEN sign_in_attempts.failures = %d THEN %d ", earlier, after)
	}
	return cases.String()
}

// attempt counts an attempt at an account, which need not exist, and returns the number of
// consecutive failures including this attempt. It fails with [*SlowDownError].
func (s *Service) attempt(ctx context.Context, tenantID, account string) (failures int, err error) {
	now := s.now()
	key := s.accountKey(account)
	err = s.db.Tx(ctx, func(tx *sqldb.Tx) error {
		var n int64
		err := tx.QueryRow(ctx, takeAttempt, tenantID, key, now.UnixMicro(), now.Add(-forgetAfter).UnixMicro()).Scan(&n)
		if !errors.Is(err, sqldb.ErrNoRows) {
			failures = int(n)
			return err
		}
		var next int64
		err = tx.QueryRow(ctx, `SELECT next_at FROM sign_in_attempts WHERE tenant_id = $1 AND account = $2`, tenantID, key).Scan(&next)
		if err != nil {
			return err
		}
		return &SlowDownError{time.UnixMicro(next).Sub(now)}
	})
	if err != nil {
		return 0, fmt.Errorf("count attempt: %w", err)
	}
	return failures, nil
}

// forgive queues the deletion of the failures of an account.
func (s *Service) forgive(b *sqldb.Batch, tenantID, account string) {
	b.Queue(`DELETE FROM sign_in_attempts WHERE tenant_id = $1 AND account = $2`, []any{tenantID, s.accountKey(account)}, nil)
}

// accountKey returns a keyed hash of an account. The names of accounts are not stored, because
// users enter passwords by mistake.
func (s *Service) accountKey(account string) string {
	mac := hmac.New(sha256.New, s.account)
	mac.Write([]byte(account))
	return base64.RawURLEncoding.EncodeToString(mac.Sum(nil))
}

// secondAccount is the account of attempts at the second factors of a user. A correct password
// does not revert them.
func secondAccount(userID string) string { return "second factor of " + userID }
