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
	// free is how many failures cost nothing.
	free = 5
	// longestWait is what a failure costs in the end; the wait doubles until then.
	longestWait = time.Minute
	// forgetAfter is when failures are forgotten.
	forgetAfter = 24 * time.Hour
	// alarmAt is how many failures in a row are no longer those of a forgetful person.
	alarmAt = 10
)

// takeAttempt counts an attempt as a failure before it is judged. Success takes it back
// ([Service.forgive]). It is one statement, so that of many attempts at the same time no
// more get through than would one after the other.
var takeAttempt = fmt.Sprintf(`
	INSERT INTO sign_in_attempts (tenant_id, account, failures, next_at, updated_at) VALUES ($1, $2, 1, $3, $3)
	ON CONFLICT (tenant_id, account) DO UPDATE SET
		failures = CASE WHEN sign_in_attempts.updated_at < $4 THEN 1 ELSE sign_in_attempts.failures + 1 END,
		next_at = $3 + CASE WHEN sign_in_attempts.updated_at < $4 THEN 0 %s ELSE %d END,
		updated_at = $3
	WHERE sign_in_attempts.next_at <= $3
	RETURNING failures`, waits(), longestWait.Microseconds())

// waits says for each number of earlier failures how long the next attempt has to wait.
func waits() string {
	var cases strings.Builder
	wait := time.Second
	for earlier := 0; wait < longestWait; earlier++ {
		var after int64
		if earlier+1 >= free {
			after = wait.Microseconds()
			wait *= 2
		}
		fmt.Fprintf(&cases, "WHEN sign_in_attempts.failures = %d THEN %d ", earlier, after)
	}
	return cases.String()
}

// attempt counts an attempt at an account, by whatever it is called, and returns how many
// have failed in a row if this one does too. It fails with [*SlowDownError].
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

// forgive queues that an attempt succeeded.
func (s *Service) forgive(b *sqldb.Batch, tenantID, account string) {
	b.Queue(`DELETE FROM sign_in_attempts WHERE tenant_id = $1 AND account = $2`, []any{tenantID, s.accountKey(account)}, nil)
}

// accountKey hides which addresses were tried: people type passwords there.
func (s *Service) accountKey(account string) string {
	mac := hmac.New(sha256.New, s.account)
	mac.Write([]byte(account))
	return base64.RawURLEncoding.EncodeToString(mac.Sum(nil))
}

// secondAccount is what the attempts at a user's second factors count against. A right
// password does not take them back.
func secondAccount(userID string) string { return "second factor of " + userID }
