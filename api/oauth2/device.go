package oauth2

import (
	"net/http"
	"net/url"
	"slices"

	"stonetown/api/web"
	"stonetown/internal/ratelimit"
	"stonetown/oauth/authorization"
	"stonetown/oauth/client"
	"stonetown/oauth/detail"
	"stonetown/oauth/protocol"
)

// AuthorizeDevice is the device authorization endpoint (RFC 8628 §3.1).
func (h *Handlers) AuthorizeDevice(w http.ResponseWriter, r *http.Request) {
	info := web.InfoOf(r.Context())
	var d authorization.DeviceAuthorization
	err := h.asClient(w, r, ratelimit.Token, func(by client.Credentials, form url.Values) (err error) {
		if form.Has(detail.Parameter) { // not dropped in silence
			return protocol.NewError(protocol.InvalidAuthorizationDetails, "devices cannot ask for authorization_details")
		}
		d, err = h.Authorization.AuthorizeDevice(r.Context(), tenantOf(r), authorization.DeviceAuthorizationRequest{
			Credentials: by, Scope: form.Get("scope"), Audience: slices.Concat(form["audience"], form["resource"]),
		})
		return err
	})
	if err == nil {
		page := info.Tenant.BaseURL + protocol.DevicePagePath
		err = web.WriteJSON(w, http.StatusOK, struct {
			DeviceCode string `json:"device_code"`
			UserCode   string `json:"user_code"`
			Page       string `json:"verification_uri"`
			Complete   string `json:"verification_uri_complete"`
			ExpiresIn  int    `json:"expires_in"`
			Interval   int    `json:"interval"`
		}{d.DeviceCode, d.UserCode, page, page + "?user_code=" + url.QueryEscape(d.UserCode), int(d.ExpiresIn.Seconds()), int(d.Interval.Seconds())})
	}
	if err != nil {
		h.Server.Fail(w, r, refusal(r, err))
	}
}
