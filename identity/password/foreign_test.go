package password

import (
	"encoding/base64"
	"errors"
	"fmt"
	"strings"
	"testing"
)

func TestImportHash(t *testing.T) {
	for name, c := range map[string]struct {
		algorithm, value, password string
	}{
		// The vectors of RFC 7914 §11 and §12, in PHC form, and one of crypt_blowfish.
		"scrypt":              {Scrypt, "$scrypt$ln=14,r=8,p=1$U29kaXVtQ2hsb3JpZGU$cCO9yzr9c0hGHAbNgf046/2o+7qQT44+qbVD9lRdofLVQylVYT8Pz2LUlwUkKpr55h6F3A1lHkDfzwF7RVdYhw", "pleaseletmein"},
		"pbkdf2":              {PBKDF2SHA256, "$pbkdf2-sha256$i=1$c2FsdA$VawEblbjCJ/sFpHCJUS2BflBhSFt3gRl5oudV8INrLxJypzM8Xm2RZkWZLOdd+8xfHG4RbHjC9UJESBB06GXgw", "passwd"},
		"pbkdf2 with SHA-512": {PBKDF2SHA512, "$pbkdf2-sha512$i=1$c2FsdA$hn9wzxreAs/zdSWZo6U9xK80x6ZpgVrl1RNVThyM8lLALUcKKFoFAbrZmb/pQ8CPBQI119aLHaVeY/c7YKV/zg", "password"},
		"bcrypt":              {Bcrypt, "$2a$05$XXXXXXXXXXXXXXXXXXXXXOAcXxm9kjPGEMsLznoKqmqw7tc8WCx4a", "U*U*U"},
	} {
		h, err := ImportHash(c.algorithm, c.value)
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		if ok, err := h.Verify(t.Context(), c.password); !ok || err != nil {
			t.Errorf("%s: %v, %v", name, ok, err)
		}
		for _, wrong := range []string{"", c.password + "x", strings.Repeat("x", maxLength+1)} {
			if ok, err := h.Verify(t.Context(), wrong); ok || err != nil {
				t.Errorf("%s, wrong password: %v, %v", name, ok, err)
			}
		}
	}
	for _, bad := range [][2]string{
		{"md5", "x"},
		{Bcrypt, "$2a$31$XXXXXXXXXXXXXXXXXXXXXOAcXxm9kjPGEMsLznoKqmqw7tc8WCx4a"},
		{Bcrypt, "$2a$05$short"},
		{Argon2id, "x"},
		{Scrypt, "$scrypt$ln=30,r=8,p=1$c2FsdA$cCO9yzr9c0hGHAbNgf045w"},
		{Scrypt, "$scrypt$ln=14,r=8,p=1$c2FsdA$"},
		{Scrypt, "$scrypt$ln=17,r=8,p=3$c2FsdA$cCO9yzr9c0hGHAbNgf045w"},
		{Bcrypt, "$2a$15$XXXXXXXXXXXXXXXXXXXXXOAcXxm9kjPGEMsLznoKqmqw7tc8WCx4a"},
		{Argon2id, "$argon2id$v=19$m=1048576,t=64,p=1$c29tZXNhbHQ$CTFhFdXPJO1aFaMaO6Mm5c8y7cJHAph8ArZWb2GRPPc"},
		{Scrypt, "$scrypt$ln=-1,r=8,p=1$c2FsdA$cCO9yzr9c0hGHAbNgf045w"},
		{PBKDF2SHA256, "pbkdf2_sha256$99999999$salt$cCO9yzr9c0hGHAbNgf045w"},
		{PBKDF2SHA512, "$pbkdf2-sha512$i=1250001$c2FsdA$cCO9yzr9c0hGHAbNgf045w"},
		{PBKDF2SHA256, "pbkdf2_sha256$x$salt$cCO9yzr9c0hGHAbNgf045w"},
		{PBKDF2SHA256, "$$$$"},
	} {
		if h, err := ImportHash(bad[0], bad[1]); err == nil {
			t.Errorf("%v was accepted: %q", bad, string(h))
		}
	}
}

// A limit bounds the work of a sign-in, which depends on the digest and on the size of the hash.
func TestImportHashLimits(t *testing.T) {
	hash := func(bytes int) string { return base64.RawStdEncoding.EncodeToString(make([]byte, bytes)) }
	for _, test := range []struct {
		algorithm, prefix string
		iterations, size  int
		ok                bool
	}{
		{PBKDF2SHA256, "$pbkdf2-sha256$i=", 5_000_000, 32, true},
		{PBKDF2SHA256, "$pbkdf2-sha256$i=", 5_000_001, 32, false},
		{PBKDF2SHA256, "$pbkdf2-sha256$i=", 2_500_000, 64, true},
		{PBKDF2SHA256, "$pbkdf2-sha256$i=", 2_500_001, 33, false},
		{PBKDF2SHA256, "$pbkdf2-sha256$i=", 1_250_001, 128, false},
		{PBKDF2SHA256, "pbkdf2_sha256$", 5_000_000, 32, true},
		{PBKDF2SHA256, "pbkdf2_sha256$", 5_000_001, 32, false},
		{PBKDF2SHA512, "$pbkdf2-sha512$i=", 1_250_000, 64, true},
		{PBKDF2SHA512, "$pbkdf2-sha512$i=", 1_250_001, 64, false},
		{PBKDF2SHA512, "$pbkdf2-sha512$i=", 625_000, 128, true},
		{PBKDF2SHA512, "$pbkdf2-sha512$i=", 625_001, 65, false},
	} {
		_, err := ImportHash(test.algorithm, fmt.Sprintf("%s%d$c2FsdA$%s", test.prefix, test.iterations, hash(test.size)))
		if (err == nil) != test.ok {
			t.Errorf("%+v: %v", test, err)
		}
		// A hash that was imported before the limit still verifies.
		if _, err := parseForeign(fmt.Sprintf("%s%d$c2FsdA$%s", test.prefix, min(test.iterations, 5_000_000), hash(test.size))); err != nil {
			t.Errorf("%+v, stored: %v", test, err)
		}
		if err != nil && (!errors.Is(err, ErrUnsupported) || !strings.Contains(err.Error(), "0000 iterations")) {
			t.Errorf("%+v: the error does not state the limit: %v", test, err)
		}
	}
	if _, err := ImportHash(Bcrypt, "$2a$15$XXXXXXXXXXXXXXXXXXXXXOAcXxm9kjPGEMsLznoKqmqw7tc8WCx4a"); err == nil || !strings.Contains(err.Error(), "at most 14") {
		t.Errorf("bcrypt: %v", err)
	}
	if _, err := ImportHash("md5", "x"); err == nil || !strings.Contains(err.Error(), "argon2id, bcrypt, pbkdf2_sha256") {
		t.Errorf("md5: %v", err)
	}
}

// The algorithm of a row must be that of its hash.
func TestImportHashLabel(t *testing.T) {
	values := map[string]string{
		Argon2id:     "$argon2id$v=19$m=65536,t=2,p=1$c29tZXNhbHQ$CTFhFdXPJO1aFaMaO6Mm5c8y7cJHAph8ArZWb2GRPPc",
		Bcrypt:       "$2a$05$XXXXXXXXXXXXXXXXXXXXXOAcXxm9kjPGEMsLznoKqmqw7tc8WCx4a",
		Scrypt:       "$scrypt$ln=14,r=8,p=1$c2FsdA$cCO9yzr9c0hGHAbNgf045w",
		PBKDF2SHA256: "pbkdf2_sha256$1000$salt$cCO9yzr9c0hGHAbNgf045w",
		PBKDF2SHA512: "$pbkdf2-sha512$i=1000$c2FsdA$cCO9yzr9c0hGHAbNgf045w",
	}
	for label := range values {
		for actual, value := range values {
			h, err := ImportHash(label, value)
			if label == actual {
				if err != nil || string(h) != value {
					t.Errorf("%s: %v", label, err)
				}
				continue
			}
			if !errors.Is(err, ErrUnsupported) || !strings.Contains(err.Error(), "the algorithm is "+label+", but the value is a hash of "+actual) {
				t.Errorf("%s with a value of %s: %v", label, actual, err)
			}
		}
	}
}
