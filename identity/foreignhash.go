package identity

import (
	"crypto/pbkdf2"
	"crypto/sha256"
	"encoding/base64"
	"errors"
	"fmt"
	"strconv"
	"strings"

	"golang.org/x/crypto/bcrypt"
	"golang.org/x/crypto/scrypt"
)

// ErrHashUnknown is returned for a hash that cannot be verified against: of an unknown
// algorithm, malformed, or with parameters that would cost too much.
var ErrHashUnknown = errors.New("not a password hash of a supported algorithm, or its parameters exceed the limits")

// Algorithms that other systems' hashes may be of, beside argon2id.
const (
	Argon2id     = "argon2id"
	Bcrypt       = "bcrypt"        // modular crypt format: $2b$12$…
	Scrypt       = "scrypt"        // PHC: $scrypt$ln=15,r=8,p=1$salt$hash
	PBKDF2SHA256 = "pbkdf2_sha256" // Django: pbkdf2_sha256$600000$salt$hash; or PHC: $pbkdf2-sha256$i=600000$salt$hash
)

// Bounds of what verifying one password may cost: about a second and 256 MiB, whatever
// the algorithm.
const (
	maxArgonMemory      = 256 << 10 // KiB
	maxArgonWork        = 1 << 20   // KiB times passes
	maxArgonLanes       = 16
	maxBcryptCost       = 14
	maxScryptMemory     = 256 << 20 // bytes, times lanes, which x/crypto computes one by one
	maxPBKDF2Iterations = 5_000_000
	maxForeignHash      = 128 // bytes
)

// ForeignHash takes over a hash that another system made. It fails with
// [ErrHashUnknown].
func ForeignHash(algorithm, value string) (PasswordHash, error) {
	var err error
	switch algorithm {
	case Argon2id:
		_, err = parsePHC(value)
	case Bcrypt:
		var cost int
		if cost, err = bcrypt.Cost([]byte(value)); err == nil && (cost > maxBcryptCost || len(value) != 60) {
			err = ErrHashUnknown
		}
	case Scrypt, PBKDF2SHA256:
		_, err = parseForeign(value)
	default:
		err = ErrHashUnknown
	}
	if err != nil {
		return "", ErrHashUnknown
	}
	return PasswordHash(value), nil
}

// derived is a hash that is verified by deriving it again.
type derived struct {
	hash   []byte
	derive func(password string, size int) ([]byte, error)
}

// parseForeign reads a hash by scrypt or PBKDF2.
func parseForeign(text string) (d derived, err error) {
	parts := strings.Split(text, "$")
	decode := func(s string) []byte {
		b, decodeErr := base64.RawStdEncoding.DecodeString(strings.ReplaceAll(strings.TrimRight(s, "="), ".", "+"))
		if decodeErr != nil {
			err = ErrHashUnknown
		}
		return b
	}
	switch {
	case len(parts) == 5 && parts[0] == "" && parts[1] == "scrypt":
		var ln, r, p int
		if n, _ := fmt.Sscanf(parts[2], "ln=%d,r=%d,p=%d", &ln, &r, &p); n != 3 || ln < 1 || ln > 30 || r < 1 || p < 1 || p > 16 || r > 64 ||
			128*int64(r)*int64(p)<<ln > maxScryptMemory {
			return d, ErrHashUnknown
		}
		salt := decode(parts[3])
		d.hash = decode(parts[4])
		d.derive = func(password string, size int) ([]byte, error) {
			return scrypt.Key([]byte(password), salt, 1<<ln, r, p, size)
		}
	case len(parts) == 4 && parts[0] == PBKDF2SHA256, len(parts) == 5 && parts[0] == "" && parts[1] == "pbkdf2-sha256":
		rounds, salt := parts[len(parts)-3], []byte(parts[len(parts)-2]) // Django takes the salt as it is written
		if parts[0] == "" {
			rounds, salt = strings.TrimPrefix(rounds, "i="), decode(string(salt))
		}
		iterations, convErr := strconv.Atoi(rounds)
		if convErr != nil || iterations < 1 || iterations > maxPBKDF2Iterations {
			return d, ErrHashUnknown
		}
		d.hash = decode(parts[len(parts)-1])
		d.derive = func(password string, size int) ([]byte, error) {
			return pbkdf2.Key(sha256.New, password, salt, iterations, size)
		}
	default:
		return d, ErrHashUnknown
	}
	if len(d.hash) < 16 || len(d.hash) > maxForeignHash {
		err = ErrHashUnknown
	}
	return d, err
}
