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
	// BackupCodes is the number of codes of a set.
	BackupCodes = 10
	// codeLen is the number of characters of a code, which has 50 bits.
	codeLen = 10
	// crockford is the alphabet of Crockford's base 32, without characters that are easily
	// confused.
	crockford = "0123456789abcdefghjkmnpqrstvwxyz"
)

// NewBackupCodes queues that the backup codes of a user are replaced, and returns the new ones.
func (s *Store) NewBackupCodes(b *sqldb.Batch, tenantID, userID string) ([]string, error) {
	pepper, err := s.pepper(tenantID)
	if err != nil {
		return nil, err
	}
	b.Queue(`DELETE FROM backup_codes WHERE tenant_id = $1 AND user_id = $2`, []any{tenantID, userID}, nil)
	codes := make([]string, BackupCodes)
	for i := range codes {
		random := make([]byte, codeLen)
		rand.Read(random)
		for n := range random {
			random[n] = crockford[random[n]&31]
		}
		code := string(random)
		b.Queue(`INSERT INTO backup_codes (tenant_id, user_id, hash) VALUES ($1, $2, $3)`, []any{tenantID, userID, codeHash(pepper, tenantID, userID, code)}, nil)
		codes[i] = code[:codeLen/2] + "-" + code[codeLen/2:]
	}
	return codes, nil
}

// BackupCodesLeft returns the number of unused codes of a user.
func (s *Store) BackupCodesLeft(ctx context.Context, tenantID, userID string) (n int, err error) {
	var left int64
	err = s.db.QueryRow(ctx, `SELECT COUNT(*) FROM backup_codes WHERE tenant_id = $1 AND user_id = $2`, tenantID, userID).Scan(&left)
	if err != nil {
		return 0, fmt.Errorf("count backup codes: %w", err)
	}
	return int(left), nil
}

// UseBackupCode accepts a code once, without regard to case and grouping. It fails with
// [ErrWrong].
func (s *Store) UseBackupCode(ctx context.Context, tx *sqldb.Tx, tenantID, userID, code string) error {
	pepper, err := s.pepper(tenantID)
	if err != nil {
		return err
	}
	n, err := tx.Exec(ctx, `DELETE FROM backup_codes WHERE tenant_id = $1 AND user_id = $2 AND hash = $3`,
		tenantID, userID, codeHash(pepper, tenantID, userID, code))
	if err == nil && n == 0 {
		err = ErrWrong
	}
	return err
}

// normalize removes grouping and replaces letters by the digits that look like them.
var normalize = strings.NewReplacer("-", "", " ", "", "o", "0", "i", "1", "l", "1")

// pepper returns the key of the hashes of a tenant's codes.
func (s *Store) pepper(tenantID string) ([]byte, error) {
	return s.seal.DeriveFor(tenantID, "backup codes")
}

// codeHash returns the stored hash of a code. It is keyed, because the 50 bits of a code could be
// found from an unkeyed hash.
func codeHash(pepper []byte, tenantID, userID, code string) string {
	return base64.RawURLEncoding.EncodeToString(keyed(pepper, tenantID, userID, normalize.Replace(strings.ToLower(code))))
}
