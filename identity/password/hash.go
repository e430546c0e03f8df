package password

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

// Hash is the PHC string of a hashed password. The zero value represents an account without
// a password: no password verifies against it.
type Hash string

// String keeps hashes out of logs and error messages.
func (Hash) String() string { return "redacted" }

// The parameters of new hashes: the minimum of the OWASP Password Storage Cheat Sheet for
// argon2id with one lane.
const (
	argonMemory = 19456 // KiB
	argonTime   = 2
	argonLanes  = 1
	saltSize    = 16 // bytes
	hashSize    = 32 // bytes
)

// maxLength is the longest password that is hashed, in bytes.
const maxLength = 1024

// ErrTooLong is returned for a password of more than 1,024 bytes.
var ErrTooLong = errors.New("password is longer than 1,024 bytes")

// NewHash hashes a password with a new salt. It fails as [Reserve] does, or with
// [ErrTooLong].
func NewHash(ctx context.Context, password string) (Hash, error) {
	p := phc{memory: argonMemory, time: argonTime, lanes: argonLanes, salt: make([]byte, saltSize)}
	rand.Read(p.salt)
	var err error
	if p.hash, err = p.derive(ctx, password, hashSize); err != nil {
		return "", err
	}
	return p.encode(), nil
}

// Verify reports whether h is the hash of the password. It takes the same time for the zero
// value as for a hash. It fails if the stored hash is malformed, or as [Reserve] does.
func (h Hash) Verify(ctx context.Context, password string) (bool, error) {
	if h == "" {
		_, err := NewHash(ctx, password[:min(len(password), maxLength)])
		return false, err
	}
	if len(password) > maxLength {
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

// Current reports whether the hash has the algorithm and the parameters of new hashes.
func (h Hash) Current() bool {
	p, err := parsePHC(string(h))
	return err == nil && p.memory == argonMemory && p.time == argonTime && p.lanes == argonLanes && len(p.hash) == hashSize
}

// verifyForeign verifies against a hash of another system. It does not normalize the
// password, because those systems do not.
func (h Hash) verifyForeign(ctx context.Context, password string) (bool, error) {
	var got, want []byte
	err := Reserve(ctx, func(context.Context) (err error) {
		got, want, err = h.deriveForeign(password)
		return err
	})
	return err == nil && subtle.ConstantTimeCompare(got, want) == 1, err
}

// deriveForeign hashes a password with the algorithm and the parameters of h and returns
// both hashes.
func (h Hash) deriveForeign(password string) (got, want []byte, err error) {
	if strings.HasPrefix(string(h), "$2") {
		// bcrypt uses the first 72 bytes only; the library refuses longer input.
		err := bcrypt.CompareHashAndPassword([]byte(h), []byte(password[:min(len(password), 72)]))
		if errors.Is(err, bcrypt.ErrMismatchedHashAndPassword) {
			return nil, []byte(h), nil
		}
		return []byte(h), []byte(h), err // already compared
	}
	d, err := parseForeign(string(h))
	if err != nil {
		return nil, nil, errHash
	}
	got, err = d.derive(password, len(d.hash))
	return got, d.hash, err
}

// phc is a parsed PHC string.
// https://github.com/P-H-C/phc-string-format/blob/master/phc-sf-spec.md
type phc struct {
	memory, time uint32
	lanes        uint8
	salt, hash   []byte
}

// derive hashes the NFC form, so that a password verifies whether or not the keyboard
// composes accents.
func (p phc) derive(ctx context.Context, password string, size int) (hash []byte, err error) {
	if len(password) > maxLength {
		return nil, ErrTooLong
	}
	err = Reserve(ctx, func(context.Context) error {
		hash = argon2.IDKey(norm.NFC.Bytes([]byte(password)), p.salt, p.time, p.memory, p.lanes, uint32(size))
		return nil
	})
	return hash, err
}

func (p phc) encode() Hash {
	b64 := base64.RawStdEncoding
	return Hash(fmt.Sprintf("$argon2id$v=%d$m=%d,t=%d,p=%d$%s$%s", argon2.Version,
		p.memory, p.time, p.lanes, b64.EncodeToString(p.salt), b64.EncodeToString(p.hash)))
}

// errHash does not quote the hash.
var errHash = errors.New("password: stored hash cannot be read")

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
	if err1 != nil || err2 != nil || len(p.salt) < 8 || len(p.hash) < 16 || len(p.hash) > maxHashSize ||
		p.time < 1 || p.lanes < 1 || p.lanes > maxArgonLanes ||
		p.memory > maxArgonMemory || uint64(p.memory)*uint64(p.time) > maxArgonWork {
		return phc{}, errHash
	}
	return p, nil
}
