package session

import (
	"crypto/sha256"
	"encoding/hex"
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

// Fingerprint is a short name for a kind of client.
func (d Device) Fingerprint() string {
	sum := sha256.Sum256([]byte(d.UserAgent))
	return hex.EncodeToString(sum[:8])
}
