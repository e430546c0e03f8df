package password

import (
	"crypto/pbkdf2"
	"crypto/sha256"
	"crypto/sha512"
	"encoding/base64"
	"errors"
	"fmt"
	"strconv"
	"strings"

	"golang.org/x/crypto/bcrypt"
	"golang.org/x/crypto/scrypt"
)

// ErrUnsupported is returned for a hash of an unknown algorithm, for a malformed one, and for
// one with parameters beyond the limits.
var ErrUnsupported = errors.New("not a password hash of a supported algorithm, or its parameters exceed the limits")

// The algorithms of hashes that can be imported.
const (
	Argon2id     = "argon2id"
	Bcrypt       = "bcrypt"        // modular crypt format: $2b$12$…
	Scrypt       = "scrypt"        // PHC: $scrypt$ln=15,r=8,p=1$salt$hash
	PBKDF2SHA256 = "pbkdf2_sha256" // Django: pbkdf2_sha256$600000$salt$hash; or PHC: $pbkdf2-sha256$i=600000$salt$hash
	PBKDF2SHA512 = "pbkdf2_sha512" // PHC: $pbkdf2-sha512$i=210000$salt$hash
)

// The limits of parameters: verifying one password takes at most about a second and
// 256 MiB with every algorithm.
const (
	maxArgonMemory      = 256 << 10 // KiB
	maxArgonWork        = 1 << 20   // KiB times passes
	maxArgonLanes       = 16
	maxBcryptCost       = 14
	maxScryptMemory     = 256 << 20 // bytes times lanes; x/crypto computes the lanes one after another
	maxPBKDF2Iterations = 5_000_000
	maxHashSize         = 128 // bytes
)

// ImportHash validates a hash that another system made. It fails with [ErrUnsupported].
func ImportHash(algorithm, value string) (Hash, error) {
	var err error
	switch algorithm {
	case Argon2id:
		_, err = parsePHC(value)
	case Bcrypt:
		var cost int
		if cost, err = bcrypt.Cost([]byte(value)); err == nil && (cost > maxBcryptCost || len(value) != 60) {
			err = ErrUnsupported
		}
	case Scrypt, PBKDF2SHA256, PBKDF2SHA512:
		_, err = parseForeign(value)
	default:
		err = ErrUnsupported
	}
	if err != nil {
		return "", ErrUnsupported
	}
	return Hash(value), nil
}

// derived is a parsed hash and the function that derives it from a password.
type derived struct {
	hash   []byte
	derive func(password string, size int) ([]byte, error)
}

// parseForeign parses a hash of scrypt or PBKDF2.
func parseForeign(text string) (d derived, err error) {
	parts := strings.Split(text, "$")
	decode := func(s string) []byte {
		b, decodeErr := base64.RawStdEncoding.DecodeString(strings.ReplaceAll(strings.TrimRight(s, "="), ".", "+"))
		if decodeErr != nil {
			err = ErrUnsupported
		}
		return b
	}
	switch {
	case len(parts) == 5 && parts[0] == "" && parts[1] == "scrypt":
		var ln, r, p int
		if n, _ := fmt.Sscanf(parts[2], "ln=%d,r=%d,p=%d", &ln, &r, &p); n != 3 || ln < 1 || ln > 30 || r < 1 || p < 1 || p > 16 || r > 64 ||
			128*int64(r)*int64(p)<<ln > maxScryptMemory {
			return d, ErrUnsupported
		}
		salt := decode(parts[3])
		d.hash = decode(parts[4])
		d.derive = func(password string, size int) ([]byte, error) {
			return scrypt.Key([]byte(password), salt, 1<<ln, r, p, size)
		}
	case len(parts) == 4 && parts[0] == PBKDF2SHA256, len(parts) == 5 && parts[0] == "" && (parts[1] == "pbkdf2-sha256" || parts[1] == "pbkdf2-sha512"):
		rounds, salt := parts[len(parts)-3], []byte(parts[len(parts)-2]) // Django uses the salt as text, not its decoded form
		if parts[0] == "" {
			rounds, salt = strings.TrimPrefix(rounds, "i="), decode(string(salt))
		}
		iterations, convErr := strconv.Atoi(rounds)
		if convErr != nil || iterations < 1 || iterations > maxPBKDF2Iterations {
			return d, ErrUnsupported
		}
		d.hash = decode(parts[len(parts)-1])
		digest := sha256.New
		if parts[1] == "pbkdf2-sha512" {
			digest = sha512.New
		}
		d.derive = func(password string, size int) ([]byte, error) {
			return pbkdf2.Key(digest, password, salt, iterations, size)
		}
	default:
		return d, ErrUnsupported
	}
	if len(d.hash) < 16 || len(d.hash) > maxHashSize {
		err = ErrUnsupported
	}
	return d, err
}
