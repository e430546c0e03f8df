package web

import (
	"crypto/sha256"
	"encoding/base64"
	"net/http"
	"strings"
	"time"
)

// federationCookie begins the names of cookies with the secrets of sign-ins and links at federation
// connections. The rest is made of the state parameter, so several can be in progress.
const federationCookie = "__Host-fed-"

// linkMark begins the value of the cookie of a link.
const linkMark = "link."

// SetFederationCookie gives the browser the secret of a sign-in, or of a link, for its lifetime.
func (info *RequestInfo) SetFederationCookie(state, secret string, link bool, lifetime time.Duration) {
	if link {
		secret = linkMark + secret
	}
	info.SetCookie(&http.Cookie{
		Name: federationCookieName(state), Value: secret, Path: "/", Secure: true, HttpOnly: true, SameSite: http.SameSiteLaxMode, MaxAge: int(lifetime.Seconds()),
	})
}

// TakeFederationCookie returns the secret of the sign-in with a state, which is empty if this browser
// has none, and whether it is a link. The browser forgets it.
func (info *RequestInfo) TakeFederationCookie(state string) (secret string, link bool) {
	name := federationCookieName(state)
	secret = info.Cookie(name)
	if secret != "" {
		info.SetCookie(&http.Cookie{Name: name, Path: "/", Secure: true, HttpOnly: true, SameSite: http.SameSiteLaxMode, MaxAge: -1})
	}
	if rest, ok := strings.CutPrefix(secret, linkMark); ok {
		return rest, true
	}
	return secret, false
}

func federationCookieName(state string) string {
	sum := sha256.Sum256([]byte(state))
	return federationCookie + base64.RawURLEncoding.EncodeToString(sum[:9])
}
