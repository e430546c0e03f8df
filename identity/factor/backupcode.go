package factor

import (
	"context"
	"crypto/rand"
	"encoding/base64"
	"fmt"
	"strings"

	"stonetown/internal/sqldb"
)

const (
	// BackupCodes is how many codes a set has.
	BackupCodes = 10
	// codeLen is how many characters a code has: 50 bits.
	codeLen = 10
	// crockford is the alphabet of Crockford's base 32, which leaves out what is easily
	// mistaken.
	crockford = "0123456789abcdefghjkmnpqrstvwxyz"
)

// NewBackupCodes replaces the backup codes of a user.
func (s *Store) NewBackupCodes(b *sqldb.Batch, tenantID, userID string) []string {
	b.Queue(`DELETE FROM backup_codes WHERE tenant_id = $1 AND user_id = $2`, []any{tenantID, userID}, nil)
	codes := make([]string, BackupCodes)
	for i := range codes {
		random := make([]byte, codeLen)
		rand.Read(random)
		for n := range random {
			random[n] = crockford[random[n]&31]
		}
		code := string(random)
		b.Queue(`INSERT INTO backup_codes (tenant_id, user_id, hash) VALUES ($1, $2, $3)`, []any{tenantID, userID, s.codeHash(tenantID, userID, code)}, nil)
		codes[i] = code[:codeLen/2] + "-" + code[codeLen/2:]
	}
	return codes
}

// BackupCodesLeft is how many codes a user has.
func (s *Store) BackupCodesLeft(ctx context.Context, tenantID, userID string) (n int, err error) {
	var left int64
	err = s.db.QueryRow(ctx, `SELECT COUNT(*) FROM backup_codes WHERE tenant_id = $1 AND user_id = $2`, tenantID, userID).Scan(&left)
	if err != nil {
		return 0, fmt.Errorf("count backup codes: %w", err)
	}
	return int(left), nil
}

// UseBackupCode accepts a code, once, in either case and however it is grouped. It
// fails with [ErrWrong].
func (s *Store) UseBackupCode(ctx context.Context, tx *sqldb.Tx, tenantID, userID, code string) error {
	n, err := tx.Exec(ctx, `DELETE FROM backup_codes WHERE tenant_id = $1 AND user_id = $2 AND hash = $3`,
		tenantID, userID, s.codeHash(tenantID, userID, code))
	if err == nil && n == 0 {
		err = ErrWrong
	}
	return err
}

// asWritten undoes what people do to codes: other case, groups, and letters for the
// digits that look like them.
var asWritten = strings.NewReplacer("-", "", " ", "", "o", "0", "i", "1", "l", "1")

// codeHash is what is kept of a code. Its 50 bits could be guessed from a plain hash.
func (s *Store) codeHash(tenantID, userID, code string) string {
	return base64.RawURLEncoding.EncodeToString(keyed(s.pepper, tenantID, userID, asWritten.Replace(strings.ToLower(code))))
}
