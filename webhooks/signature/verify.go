package signature

import (
	"crypto/subtle"
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"time"
)

// Tolerance is the usual tolerance of a receiver: how much the timestamp of a delivery may
// differ from the receiver's clock. Every attempt has a fresh timestamp.
const Tolerance = 5 * time.Minute

// The errors of verification. They are wrapped with the name of the header where that helps.
var (
	ErrMissingHeader = errors.New("a header is missing")
	ErrInvalidHeader = errors.New("a header is repeated or malformed")
	ErrTooOld        = errors.New("the timestamp is too old")
	ErrTooNew        = errors.New("the timestamp is in the future")
	ErrNoMatch       = errors.New("no signature matches")
)

// Verify verifies the Standard Webhooks form: that one of the signatures in webhook-signature
// was made with the secret over the id, the timestamp and the body, and that the timestamp
// differs from now by at most the tolerance. body is the body as it was received. Signatures
// are compared in constant time; those of unknown versions are ignored.
func Verify(h http.Header, body []byte, secret Secret, now time.Time, tolerance time.Duration) error {
	id, err := header(h, HeaderID)
	if err != nil {
		return err
	}
	// With a dot in the id, two different deliveries would have the same signed content.
	if strings.Contains(id, ".") {
		return fmt.Errorf("%w: %s", ErrInvalidHeader, HeaderID)
	}
	timestamp, err := header(h, HeaderTimestamp)
	if err != nil {
		return err
	}
	list, err := header(h, HeaderSignature)
	if err != nil {
		return err
	}
	if err := checkTimestamp(HeaderTimestamp, timestamp, now, tolerance); err != nil {
		return err
	}
	if secret.IsZero() {
		return ErrNoMatch
	}
	want, matches := standard(id, timestamp, body, secret), 0
	for entry := range strings.SplitSeq(list, " ") {
		matches |= subtle.ConstantTimeCompare([]byte(entry), []byte(want))
	}
	if matches == 0 {
		return ErrNoMatch
	}
	return nil
}

// VerifyService verifies the X-Service form: that X-Service-Signature, or during a rotation
// X-Service-Signature-Previous, was made with the secret over the body, and that
// X-Service-Timestamp differs from now by at most the tolerance. That timestamp is not signed:
// it shows a delay, and does not prevent a replay. [Verify] does.
func VerifyService(h http.Header, body []byte, secret Secret, now time.Time, tolerance time.Duration) error {
	signature, err := header(h, HeaderServiceSignature)
	if err != nil {
		return err
	}
	timestamp, err := header(h, HeaderServiceTimestamp)
	if err != nil {
		return err
	}
	previous, err := header(h, HeaderServiceSignaturePrevious)
	if err != nil && !errors.Is(err, ErrMissingHeader) {
		return err
	}
	if err := checkTimestamp(HeaderServiceTimestamp, timestamp, now, tolerance); err != nil {
		return err
	}
	if secret.IsZero() {
		return ErrNoMatch
	}
	want := []byte(service(body, secret))
	if subtle.ConstantTimeCompare([]byte(signature), want)|subtle.ConstantTimeCompare([]byte(previous), want) == 0 {
		return ErrNoMatch
	}
	return nil
}

// header returns the value of a header that must occur once.
func header(h http.Header, name string) (string, error) {
	values := h[name]
	switch {
	case len(values) == 0 || len(values) == 1 && values[0] == "":
		return "", fmt.Errorf("%w: %s", ErrMissingHeader, name)
	case len(values) > 1:
		return "", fmt.Errorf("%w: %s", ErrInvalidHeader, name)
	}
	return values[0], nil
}

func checkTimestamp(name, text string, now time.Time, tolerance time.Duration) error {
	// 40 bits reach the year 36812, far from the limits of package time.
	seconds, err := strconv.ParseUint(text, 10, 40)
	if err != nil {
		return fmt.Errorf("%w: %s", ErrInvalidHeader, name)
	}
	switch age := now.Sub(time.Unix(int64(seconds), 0)); {
	case age > tolerance:
		return ErrTooOld
	case age < -tolerance:
		return ErrTooNew
	}
	return nil
}
