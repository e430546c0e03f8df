package text

import "net/url"

// MaxURL bounds a URL, in bytes.
const MaxURL = 2048

// IsSecureURL reports whether a text is an https URL that can be shown or fetched.
func IsSecureURL(s string) bool {
	u, err := url.Parse(s)
	return err == nil && u.Scheme == "https" && u.Hostname() != "" && u.User == nil && u.Fragment == "" && len(s) <= MaxURL && IsVisible(s)
}

// IsVisible reports whether a text has visible ASCII characters only.
func IsVisible(s string) bool {
	for i := range len(s) {
		if s[i] <= ' ' || s[i] > '~' {
			return false
		}
	}
	return true
}
