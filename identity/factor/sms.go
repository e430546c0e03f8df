package factor

import (
	"context"
	"crypto/rand"
	"crypto/subtle"
	"fmt"
	"math/big"
	"regexp"
	"strings"

	"stonetown/internal/sqldb"
)

// numberPattern matches E.164 numbers: a country code and at most 15 digits in total.
var numberPattern = regexp.MustCompile(`^\+[1-9][0-9]{6,14}$`)

// ValidNumber reports whether a text is a phone number in international form.
func ValidNumber(number string) bool { return numberPattern.MatchString(number) }

// Masked returns a number as it is shown before its owner is authenticated.
func Masked(number string) string {
	if len(number) < 6 {
		return "…"
	}
	return number[:3] + strings.Repeat("•", len(number)-5) + number[len(number)-2:]
}

// NewCode makes a code of six digits.
func NewCode() string {
	n, err := rand.Int(rand.Reader, big.NewInt(1_000_000))
	if err != nil {
		panic(err) // crypto/rand does not fail
	}
	return fmt.Sprintf("%06d", n)
}

// SameCode compares codes in constant time.
func SameCode(want, got string) bool {
	return subtle.ConstantTimeCompare([]byte(want), []byte(got)) == 1
}

// AddNumber adds a phone as a factor. The caller has verified that it belongs to the user.
// AddNumber fails with [ErrLimit].
func (s *Store) AddNumber(ctx context.Context, tx *sqldb.Tx, tenantID, userID, label, number string) (Factor, error) {
	return s.add(ctx, tx, Factor{TenantID: tenantID, UserID: userID, Kind: SMS, Label: label}, []byte(number))
}

// Number returns the phone number of a factor.
func (s *Store) Number(f Factor) (string, error) {
	number, err := s.open(f)
	return string(number), err
}
