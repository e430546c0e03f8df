package password

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"strings"
	"testing"

	"stonetown/internal/fair"
)

func TestHash(t *testing.T) {
	ctx := t.Context()
	a, err := NewHash(ctx, "é")
	if err != nil {
		t.Fatal(err)
	}
	if !strings.HasPrefix(string(a), "$argon2id$v=19$m=19456,t=2,p=1$") {
		t.Errorf("hash is %q", string(a))
	}
	if b, _ := NewHash(ctx, "é"); a == b {
		t.Error("two hashes of one password are equal: no salt")
	}
	if ok, err := a.Verify(ctx, "e\u0301"); !ok || err != nil {
		t.Errorf("decomposed form: %v, %v, want true", ok, err)
	}
	if _, err := NewHash(ctx, strings.Repeat("x", maxLength+1)); !errors.Is(err, ErrTooLong) {
		t.Errorf("long password: %v", err)
	}
	if got := fmt.Sprintf("%v %s", a, struct{ Hash Hash }{a}); strings.Contains(got, "argon2") {
		t.Errorf("a hash prints as %q", got)
	}
}

// The reference implementation's test vector, with version 0x13:
// https://github.com/P-H-C/phc-winner-argon2/blob/master/src/test.c
func TestHashVector(t *testing.T) {
	h := Hash("$argon2id$v=19$m=65536,t=2,p=1$c29tZXNhbHQ$CTFhFdXPJO1aFaMaO6Mm5c8y7cJHAph8ArZWb2GRPPc")
	if ok, err := h.Verify(t.Context(), "password"); !ok || err != nil {
		t.Errorf("Verify = %v, %v, want true", ok, err)
	}
}

func TestHashDamaged(t *testing.T) {
	for _, h := range []Hash{
		"x", "$argon2i$v=19$m=19456,t=2,p=1$c29tZXNhbHQ$CTFhFdXPJO1aFaMaO6Mm5c8y7cJHAph8ArZWb2GRPPc",
		"$argon2id$v=19$m=4000000000,t=2,p=1$c29tZXNhbHQ$CTFhFdXPJO1aFaMaO6Mm5c8y7cJHAph8ArZWb2GRPPc",
		"$argon2id$v=19$m=262145,t=1,p=1$c29tZXNhbHQ$CTFhFdXPJO1aFaMaO6Mm5c8y7cJHAph8ArZWb2GRPPc",
		"$argon2id$v=19$m=262144,t=5,p=1$c29tZXNhbHQ$CTFhFdXPJO1aFaMaO6Mm5c8y7cJHAph8ArZWb2GRPPc",
		"$argon2id$v=19$m=19456,t=2,p=17$c29tZXNhbHQ$CTFhFdXPJO1aFaMaO6Mm5c8y7cJHAph8ArZWb2GRPPc",
		"$argon2id$v=19$m=19456,t=0,p=1$c29tZXNhbHQ$CTFhFdXPJO1aFaMaO6Mm5c8y7cJHAph8ArZWb2GRPPc",
		"$argon2id$v=19$m=19456,t=2,p=0$c29tZXNhbHQ$CTFhFdXPJO1aFaMaO6Mm5c8y7cJHAph8ArZWb2GRPPc",
		"$argon2id$v=19$m=19456,t=2,p=1$c29tZXNhbHQ$", "$argon2id$v=19$m=19456,t=2,p=1$c29tZXNhbHQ",
	} {
		ok, err := h.Verify(t.Context(), "password")
		if ok || err == nil || strings.Contains(err.Error(), "c29t") {
			t.Errorf("%q: %v, %v, want an error that does not quote it", string(h), ok, err)
		}
	}
}

// A hash waits for capacity, until its context ends.
func TestNewHashWaits(t *testing.T) {
	var places []fair.Place
	for range max(1, runtime.GOMAXPROCS(0)/2) {
		place, err := capacity.Enter(t.Context(), fair.Caller{})
		if err != nil {
			t.Fatal(err)
		}
		places = append(places, place)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, err := NewHash(ctx, "x")
	for _, place := range places {
		place.Leave()
	}
	if !errors.Is(err, context.Canceled) {
		t.Errorf("NewHash = %v, want context.Canceled", err)
	}
}
