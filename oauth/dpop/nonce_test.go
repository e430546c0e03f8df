package dpop

import (
	"bytes"
	"testing"
	"time"
)

func TestNonces(t *testing.T) {
	key := bytes.Repeat([]byte{1}, 32)
	n, elsewhere, stranger := NewNonces(key), NewNonces(bytes.Clone(key)), NewNonces(bytes.Repeat([]byte{2}, 32))
	start := time.Unix(1_800_000_000, 0) // an interval begins
	nonce := n.At(start)
	if len(nonce) != 22 || n.At(start.Add(NonceInterval-time.Second)) != nonce || n.At(start.Add(NonceInterval)) == nonce {
		t.Errorf("nonce %q does not change with the interval", nonce)
	}
	for after, want := range map[time.Duration]bool{
		-NonceInterval - time.Second: false, -time.Second: true, 0: true, 2*NonceInterval - time.Second: true, 2 * NonceInterval: false, 24 * time.Hour: false,
	} {
		if got := elsewhere.Valid(nonce, start.Add(after)); got != want {
			t.Errorf("after %s: %v", after, got)
		}
	}
	for _, bad := range []string{"", nonce[1:], nonce + "A", stranger.At(start)} {
		if n.Valid(bad, start) {
			t.Errorf("%q is valid", bad)
		}
	}
}
