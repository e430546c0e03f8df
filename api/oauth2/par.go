package oauth2

import (
	"net/http"
	"net/url"
	"time"

	"stonetown/api/web"
	"stonetown/internal/ratelimit"
	"stonetown/oauth/client"
)

// PushRequest is the pushed authorization request endpoint (RFC 9126).
func (h *Handlers) PushRequest(w http.ResponseWriter, r *http.Request) {
	var requestURI string
	var good time.Duration
	err := h.asClient(w, r, ratelimit.Token, func(by client.Credentials, form url.Values) (err error) {
		for _, proof := range []string{"client_secret", "client_assertion", "client_assertion_type"} {
			form.Del(proof)
		}
		requestURI, good, err = h.Authorization.Push(r.Context(), tenantOf(r), by, form)
		return err
	})
	if err == nil {
		err = web.WriteJSON(w, http.StatusCreated, struct {
			RequestURI string `json:"request_uri"`
			ExpiresIn  int    `json:"expires_in"`
		}{requestURI, int(good.Seconds())})
	}
	if err != nil {
		h.Server.Fail(w, r, refusal(r, err))
	}
}
