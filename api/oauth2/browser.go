package oauth2

import (
	"crypto/rand"
	"net/http"
	"strings"

	"stonetown/api/web"
	"stonetown/oauth/authorization"
)

// browserCookie begins the names of cookies with a browser's secret, to which pending requests
// are bound. The rest of a name is random: several tabs that start at the same time, or a form
// of another site, with which Lax cookies are not sent, add a secret instead of replacing one
// that other requests use.
const browserCookie = "__Host-oauth-"

// browsers returns the secrets of the browser that sent a request.
func browsers(r *http.Request) (secrets []string) {
	for _, cookie := range r.Cookies() {
		if strings.HasPrefix(cookie.Name, browserCookie) {
			secrets = append(secrets, cookie.Value)
		}
	}
	return secrets
}

// wait stores a request while its user signs in. The browser keeps its secret as long as the
// newest request is pending.
func (h *Handlers) wait(r *http.Request, request authorization.Request) (requestID string, err error) {
	cookie := &http.Cookie{Name: browserCookie + rand.Text()[:8], Value: authorization.NewBrowser()}
	for _, old := range r.Cookies() {
		if strings.HasPrefix(old.Name, browserCookie) && len(old.Value) == len(cookie.Value) {
			cookie = &http.Cookie{Name: old.Name, Value: old.Value}
			break
		}
	}
	if requestID, err = h.Authorization.Suspend(r.Context(), tenantOf(r), request, cookie.Value); err != nil {
		return "", err
	}
	cookie.Path, cookie.Secure, cookie.HttpOnly, cookie.SameSite, cookie.MaxAge = "/", true, true, http.SameSiteLaxMode, int(authorization.SignInTimeout.Seconds())
	web.InfoOf(r.Context()).SetCookie(cookie)
	return requestID, nil
}
