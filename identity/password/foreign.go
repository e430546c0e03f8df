package password

import (
	"crypto/pbkdf2"
	"crypto/sha256"
	"crypto/sha512"
	"encoding/base64"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"golang.org/x/crypto/bcrypt"
	"golang.org/x/crypto/scrypt"
)

// ErrUnsupported is wrapped by the errors of [ImportHash], which state the form and the limits of
// the algorithm, and do not quote the hash.
var ErrUnsupported = errors.New("not a supported password hash")

// errForeign is returned for a stored hash that cannot be read.
var errForeign = errors.New("password: foreign hash cannot be read")

// The algorithms of hashes that can be imported.
const (
	Argon2id     = "argon2id"
	Bcrypt       = "bcrypt"        // modular crypt format: $2b$12$…
	Scrypt       = "scrypt"        // PHC: $scrypt$ln=15,r=8,p=1$salt$hash
	PBKDF2SHA256 = "pbkdf2_sha256" // Django: pbkdf2_sha256$600000$salt$hash; or PHC: $pbkdf2-sha256$i=600000$salt$hash
	PBKDF2SHA512 = "pbkdf2_sha512" // PHC: $pbkdf2-sha512$i=210000$salt$hash
)

// The limits of parameters: verifying one password takes little more than a second and
// 256 MiB with every algorithm.
const (
	maxArgonMemory  = 256 << 10 // KiB
	maxArgonWork    = 1 << 20   // KiB times passes
	maxArgonLanes   = 16
	maxBcryptCost   = 14
	maxScryptMemory = 256 << 20 // bytes times lanes; x/crypto computes the lanes one after another
	maxPBKDF2Work   = 5_000_000 // rounds of HMAC-SHA-256; each block of output takes all of them (RFC 8018 §5.2)
	maxHashSize     = 128       // bytes

	// sha512Rounds is the cost of a round of HMAC-SHA-512 in rounds of HMAC-SHA-256, on processors
	// with instructions for SHA-256.
	sha512Rounds = 4
)

// supported are the algorithms of hashes that can be imported, with their forms and limits for
// error messages.
var supported = map[string]string{
	Argon2id: fmt.Sprintf("a PHC string $argon2id$v=19$… with a salt of at least 8 bytes, a hash of 16 to %d bytes, at most %d KiB, at most %d KiB times passes, and at most %d lanes",
		maxHashSize, maxArgonMemory, maxArgonWork, maxArgonLanes),
	Bcrypt: fmt.Sprintf("60 characters such as $2b$12$…, with a cost of at most %d", maxBcryptCost),
	Scrypt: fmt.Sprintf("a PHC string $scrypt$ln=15,r=8,p=1$… with a hash of 16 to %d bytes, and at most %d bytes of memory times lanes",
		maxHashSize, maxScryptMemory),
	PBKDF2SHA256: fmt.Sprintf("pbkdf2_sha256$… or a PHC string $pbkdf2-sha256$i=…$… with a hash of 16 to %d bytes, and at most %d iterations times blocks of 32 bytes of the hash",
		maxHashSize, maxPBKDF2Work),
	PBKDF2SHA512: fmt.Sprintf("a PHC string $pbkdf2-sha512$i=…$… with a hash of 16 to %d bytes, and at most %d iterations times blocks of 64 bytes of the hash",
		maxHashSize, maxPBKDF2Work/sha512Rounds),
}

// ImportHash validates a hash that another system made. Its errors wrap [ErrUnsupported].
func ImportHash(algorithm, value string) (Hash, error) {
	form, known := supported[algorithm]
	if !known {
		return "", fmt.Errorf("%w: the algorithm must be one of %s", ErrUnsupported, strings.Join(slices.Sorted(maps.Keys(supported)), ", "))
	}
	var err error
	switch actual := algorithmOf(value); {
	case actual != "" && actual != algorithm:
		return "", fmt.Errorf("%w: the algorithm is %s, but the value is a hash of %s", ErrUnsupported, algorithm, actual)
	case actual == "":
		err = errForeign
	case actual == Argon2id:
		_, err = parsePHC(value)
	case actual == Bcrypt:
		var cost int
		if cost, err = bcrypt.Cost([]byte(value)); err == nil && (cost > maxBcryptCost || len(value) != 60) {
			err = errForeign
		}
	default:
		// Only here, so that hashes from imports with other limits still verify.
		var d derived
		if d, err = parseForeign(value); err == nil && d.work > maxPBKDF2Work {
			err = errForeign
		}
	}
	if err != nil {
		return "", fmt.Errorf("%w: a value of %s must be %s", ErrUnsupported, algorithm, form)
	}
	return Hash(value), nil
}

// algorithmOf returns the algorithm that the beginning of a hash names, or an empty string.
func algorithmOf(value string) string {
	for _, known := range []struct{ prefix, algorithm string }{
		{"$argon2id$", Argon2id},
		{"$2", Bcrypt},
		{"$scrypt$", Scrypt},
		{"pbkdf2_sha256$", PBKDF2SHA256},
		{"$pbkdf2-sha256$", PBKDF2SHA256},
		{"$pbkdf2-sha512$", PBKDF2SHA512},
	} {
		if strings.HasPrefix(value, known.prefix) {
			return known.algorithm
		}
	}
	return ""
}

// derived is a parsed hash and the function that derives it from a password.
type derived struct {
	hash   []byte
	work   int // of PBKDF2, at most maxPBKDF2Work in an import
	derive func(password string, size int) ([]byte, error)
}

// parseForeign parses a hash of scrypt or PBKDF2.
func parseForeign(text string) (d derived, err error) {
	parts := strings.Split(text, "$")
	decode := func(s string) []byte {
		b, decodeErr := base64.RawStdEncoding.DecodeString(strings.ReplaceAll(strings.TrimRight(s, "="), ".", "+"))
		if decodeErr != nil {
			err = errForeign
		}
		return b
	}
	switch {
	case len(parts) == 5 && parts[0] == "" && parts[1] == "scrypt":
		var ln, r, p int
		if n, _ := fmt.Sscanf(parts[2], "ln=%d,r=%d,p=%d", &ln, &r, &p); n != 3 || ln < 1 || ln > 30 || r < 1 || p < 1 || p > 16 || r > 64 ||
			128*int64(r)*int64(p)<<ln > maxScryptMemory {
			return d, errForeign
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
		if convErr != nil || iterations < 1 || iterations > maxPBKDF2Work {
			return d, errForeign
		}
		d.hash = decode(parts[len(parts)-1])
		digest, block, cost := sha256.New, sha256.Size, 1
		if parts[1] == "pbkdf2-sha512" {
			digest, block, cost = sha512.New, sha512.Size, sha512Rounds
		}
		blocks := (len(d.hash) + block - 1) / block
		d.work = iterations * blocks * cost
		d.derive = func(password string, size int) ([]byte, error) {
			return pbkdf2.Key(digest, password, salt, iterations, size)
		}
	default:
		return d, errForeign
	}
	if len(d.hash) < 16 || len(d.hash) > maxHashSize {
		err = errForeign
	}
	return d, err
}
