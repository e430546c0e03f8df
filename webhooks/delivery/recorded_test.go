package delivery

import (
	"encoding/json"
	"net/http"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"stonetown/internal/outbound"
	"stonetown/internal/sqldb"
	"stonetown/webhooks/signature"
)

// Whatever a receiver answers is stored within limits, as valid text, and without secrets.
func FuzzRecorded(f *testing.F) {
	f.Add(500, "X-A", "b", []byte("body"), "120")
	f.Add(503, "Set-Cookie", "sid=1", []byte{0, 0xff, 0xfe}, "Wed, 21 Oct 2026 07:28:00 GMT")
	f.Add(429, "\xff", strings.Repeat("v", 9000), []byte("<script>"), "-1")
	secret := signature.NewSecret()
	_, bare, _ := strings.Cut(secret.Text(), "_")
	f.Fuzz(func(t *testing.T, status int, name, value string, body []byte, after string) {
		h := http.Header{name: {value, value + bare}, "Set-Cookie": {value}, "Retry-After": {after}}
		r := recorded(outbound.Answer{Status: status, Header: h, Body: append(body, bare...)}, []signature.Secret{secret, {}})
		text := responseText(r)
		if strings.Contains(text, bare) || len(r.Headers["Set-Cookie"]) > 0 {
			t.Errorf("has a secret: %q", text)
		}
		if !utf8.ValidString(text) || !sqldb.IsText(text) {
			t.Errorf("cannot be stored: %q", text)
		}
		var read Response
		if err := json.Unmarshal([]byte(text), &read); err != nil || read.Body != r.Body {
			t.Errorf("read as %q, %v", read.Body, err)
		}
		size := 0
		for name, values := range r.Headers {
			for _, value := range values {
				size += len(name) + len(value)
			}
		}
		if size > 4*maxHeaderBytes { // bytes that are not UTF-8 become three
			t.Errorf("headers of %d bytes", size)
		}
		if asked := retryAfter(status, h, time.Now()); asked < 0 || asked > maxRetryAfter || asked > 0 && status != 503 && status != 429 {
			t.Errorf("Retry-After %q: %v", after, asked)
		}
	})
}

func TestPause(t *testing.T) {
	for n, base := range delays {
		low, high := base, base
		for range 10_000 {
			d := pause(n+1, 0)
			if d < base*9/10 || d > base*11/10 {
				t.Fatalf("pause %d: %v", n+1, d)
			}
			low, high = min(low, d), max(high, d)
		}
		if low > base*92/100 || high < base*108/100 {
			t.Errorf("pause %d is between %v and %v", n+1, low, high)
		}
	}
	if d := pause(1, time.Hour); d != time.Hour {
		t.Errorf("%v", d)
	}
	if d := pause(5, time.Hour); d < 10*time.Hour {
		t.Errorf("%v", d)
	}
	if d := pause(1, 48*time.Hour); d != maxRetryAfter {
		t.Errorf("%v", d)
	}
}
