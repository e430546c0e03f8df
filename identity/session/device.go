package session

import (
	"crypto/sha256"
	"encoding/hex"
	"regexp"
	"strings"
)

// Device is what a request tells of where it comes from.
type Device struct {
	IP        string
	UserAgent string
}

// Kind guesses from what a client calls itself on what it runs: desktop, phone, tablet
// or other.
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

// versions are those of programs and systems, as in Chrome/148.0.0.0, OS 18_0 and rv:148.0.
var versions = regexp.MustCompile(`/[0-9][0-9.]*|[0-9]+(?:[._][0-9]+)+`)

// Fingerprint is a short name for a kind of client, the same for all its versions.
func (d Device) Fingerprint() string {
	sum := sha256.Sum256(versions.ReplaceAll([]byte(d.UserAgent), nil))
	return hex.EncodeToString(sum[:8])
}
