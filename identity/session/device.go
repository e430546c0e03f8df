package session

import (
	"crypto/sha256"
	"encoding/hex"
	"regexp"
	"strings"
)

// Device describes the client of a request.
type Device struct {
	IP        string
	UserAgent string
}

// Kind guesses the kind of the device from the user agent: desktop, phone, tablet or other.
func (d Device) Kind() string {
	switch name := d.UserAgent; {
	case strings.Contains(name, "iPad"), strings.Contains(name, "Tablet"), strings.Contains(name, "Android") && !strings.Contains(name, "Mobile"):
		return "tablet"
	case strings.Contains(name, "Mobile"), strings.Contains(name, "iPhone"):
		return "phone"
	case strings.HasPrefix(name, "Mozilla/"):
		return "desktop"
	}
	return "other"
}

// versions matches version numbers, as in Chrome/148.0.0.0, OS 18_0 and rv:148.0.
var versions = regexp.MustCompile(`/[0-9][0-9.]*|[0-9]+(?:[._][0-9]+)+`)

// Fingerprint identifies the user agent without its versions.
func (d Device) Fingerprint() string {
	sum := sha256.Sum256(versions.ReplaceAll([]byte(d.UserAgent), nil))
	return hex.EncodeToString(sum[:8])
}
