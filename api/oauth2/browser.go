package oauth2

import (
	"crypto/rand"
	"net/http"
	"strings"

	"stonetown/api/web"
	"stonetown/oauth/authorization"
)

// browserCookie begins the name of the cookie that holds a browser's secret, on which its
// pending flows hang. The rest of the name is random: several tabs that begin at the same
// time, or a form that another site posts, with which Lax cookies are not sent, add a secret
// instead of replacing the one that other flows hang on.
const browserCookie = "__Host-oauth-"

// browsers are the secrets of the browser that made a request.
func browsers(r *http.Request) (secrets []string) {
	for _, cookie := range r.Cookies() {
		if strings.HasPrefix(cookie.Name, browserCookie) {
			secrets = append(secrets, cookie.Value)
		}
	}
	return secrets
}

// wait stores a request while its user signs in. The browser keeps its secret for as long as
// the newest flow lives.
func (h *Handlers) wait(r *http.Request, request authorization.Request) (flowID string, err error) {
	cookie := &http.Cookie{Name: browserCookie + rand.Text()[:8], Value: authorization.NewBrowser()}
	for _, old := range r.Cookies() {
		if strings.HasPrefix(old.Name, browserCookie) && len(old.Value) == len(cookie.Value) {
			cookie = &http.Cookie{Name: old.Name, Value: old.Value}
			break
		}
	}
	if flowID, err = h.Authorization.Suspend(r.Context(), tenantOf(r), request, cookie.Value); err != nil {
		return "", err
	}
	cookie.Path, cookie.Secure, cookie.HttpOnly, cookie.SameSite, cookie.MaxAge = "/", true, true, http.SameSiteLaxMode, int(authorization.SignInTimeout.Seconds())
	web.InfoOf(r.Context()).SetCookie(cookie)
	return flowID, nil
}
