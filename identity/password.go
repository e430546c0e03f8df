package identity

import (
	"context"
	"crypto/rand"
	"crypto/subtle"
	"encoding/base64"
	"errors"
	"fmt"
	"strings"

	"golang.org/x/crypto/argon2"
	"golang.org/x/crypto/bcrypt"
	"golang.org/x/text/unicode/norm"
)

// PasswordHash is the PHC string of a hashed password. The zero value is the
// absence of a password: nothing verifies against it.
type PasswordHash string

// String keeps hashes out of logs and error messages.
func (PasswordHash) String() string { return "redacted" }

// The parameters that new hashes get: the OWASP Password Storage Cheat Sheet's
// minimum for argon2id with one lane.
const (
	argonMemory = 19456 // KiB
	argonTime   = 2
	argonLanes  = 1
	saltSize    = 16 // bytes
	hashSize    = 32 // bytes
)

// maxPassword bounds what is hashed, in bytes.
const maxPassword = 1024

// ErrPasswordTooLong is returned for a password of more than 1,024 bytes.
var ErrPasswordTooLong = errors.New("password is longer than 1,024 bytes")

// HashPassword hashes a password with fresh salt. It waits for its turn, and fails as
// [Hashing] does, or with [ErrPasswordTooLong].
func HashPassword(ctx context.Context, password string) (PasswordHash, error) {
	p := phc{memory: argonMemory, time: argonTime, lanes: argonLanes, salt: make([]byte, saltSize)}
	rand.Read(p.salt)
	var err error
	if p.hash, err = p.derive(ctx, password, hashSize); err != nil {
		return "", err
	}
	return p.encode(), nil
}

// Verify reports whether the password is the one that was hashed. It waits for its
// turn like [HashPassword], and takes as long without a hash as with one. The
// error tells of a stored hash that cannot be read, or of ctx.
func (h PasswordHash) Verify(ctx context.Context, password string) (bool, error) {
	if h == "" {
		_, err := HashPassword(ctx, password[:min(len(password), maxPassword)])
		return false, err
	}
	if len(password) > maxPassword {
		return false, nil
	}
	if !strings.HasPrefix(string(h), "$argon2id$") {
		return h.verifyForeign(ctx, password)
	}
	p, err := parsePHC(string(h))
	if err != nil {
		return false, err
	}
	got, err := p.derive(ctx, password, len(p.hash))
	return err == nil && subtle.ConstantTimeCompare(got, p.hash) == 1, err
}

// Current reports whether the hash is what [HashPassword] makes today: of the same
// algorithm, with the same parameters.
func (h PasswordHash) Current() bool {
	p, err := parsePHC(string(h))
	return err == nil && p.memory == argonMemory && p.time == argonTime && p.lanes == argonLanes && len(p.hash) == hashSize
}

// verifyForeign verifies against a hash that another system made. The password is
// taken as it was typed, as those do.
func (h PasswordHash) verifyForeign(ctx context.Context, password string) (bool, error) {
	var got, want []byte
	err := Hashing(ctx, func(context.Context) (err error) {
		got, want, err = h.deriveForeign(password)
		return err
	})
	return err == nil && subtle.ConstantTimeCompare(got, want) == 1, err
}

// deriveForeign hashes a password as h was, and returns both hashes.
func (h PasswordHash) deriveForeign(password string) (got, want []byte, err error) {
	if strings.HasPrefix(string(h), "$2") {
		// bcrypt itself looks at no more than 72 bytes.
		err := bcrypt.CompareHashAndPassword([]byte(h), []byte(password[:min(len(password), 72)]))
		if errors.Is(err, bcrypt.ErrMismatchedHashAndPassword) {
			return nil, []byte(h), nil
		}
		return []byte(h), []byte(h), err // it has compared them
	}
	d, err := parseForeign(string(h))
	if err != nil {
		return nil, nil, errHash
	}
	got, err = d.derive(password, len(d.hash))
	return got, d.hash, err
}

// phc is a PHC string taken apart.
// https://github.com/P-H-C/phc-string-format/blob/master/phc-sf-spec.md
type phc struct {
	memory, time uint32
	lanes        uint8
	salt, hash   []byte
}

// derive hashes the NFC form, so that a password typed on a system that
// composes accents verifies on one that does not.
func (p phc) derive(ctx context.Context, password string, size int) (hash []byte, err error) {
	if len(password) > maxPassword {
		return nil, ErrPasswordTooLong
	}
	err = Hashing(ctx, func(context.Context) error {
		hash = argon2.IDKey(norm.NFC.Bytes([]byte(password)), p.salt, p.time, p.memory, p.lanes, uint32(size))
		return nil
	})
	return hash, err
}

func (p phc) encode() PasswordHash {
	b64 := base64.RawStdEncoding
	return PasswordHash(fmt.Sprintf("$argon2id$v=%d$m=%d,t=%d,p=%d$%s$%s", argon2.Version,
		p.memory, p.time, p.lanes, b64.EncodeToString(p.salt), b64.EncodeToString(p.hash)))
}

// errHash does not quote the string that it is about.
var errHash = errors.New("identity: stored password hash cannot be read")

func parsePHC(s string) (phc, error) {
	var p phc
	parts := strings.Split(s, "$") // "", argon2id, version, parameters, salt, hash
	if len(parts) != 6 || parts[0] != "" || parts[1] != "argon2id" || parts[2] != fmt.Sprintf("v=%d", argon2.Version) {
		return phc{}, errHash
	}
	if _, err := fmt.Sscanf(parts[3], "m=%d,t=%d,p=%d", &p.memory, &p.time, &p.lanes); err != nil {
		return phc{}, errHash
	}
	var err1, err2 error
	p.salt, err1 = base64.RawStdEncoding.DecodeString(parts[4])
	p.hash, err2 = base64.RawStdEncoding.DecodeString(parts[5])
	if err1 != nil || err2 != nil || len(p.salt) < 8 || len(p.hash) < 16 || len(p.hash) > maxForeignHash ||
		p.time < 1 || p.lanes < 1 || p.lanes > maxArgonLanes ||
		p.memory > maxArgonMemory || uint64(p.memory)*uint64(p.time) > maxArgonWork {
		return phc{}, errHash
	}
	return p, nil
}
