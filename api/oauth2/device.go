package oauth2

import (
	"net/http"
	"net/url"
	"slices"

	"stonetown/api/web"
	"stonetown/internal/ratelimit"
	"stonetown/oauth"
)

// AuthorizeDevice begins to wait for the user of a device (RFC 8628 §3.1).
func (s *Surface) AuthorizeDevice(w http.ResponseWriter, r *http.Request) {
	if err := s.authorizeDevice(w, r); err != nil {
		s.Kit.Fail(w, r, refusal(r, err))
	}
}

func (s *Surface) authorizeDevice(w http.ResponseWriter, r *http.Request) error {
	form, err := readForm(w, r)
	if err != nil {
		return err
	}
	call := web.CallOf(r.Context())
	req := oauth.TokenRequest{Scope: form.Get("scope"), Audience: slices.Concat(form["audience"], form["resource"]), Origin: call.Origin()}
	if req.Credentials, err = s.client(w, r, form); err != nil {
		return err
	}
	d, err := s.Service.AuthorizeDevice(r.Context(), tenantOf(r), req)
	if err != nil {
		return err
	}
	if err := s.Kit.LimitClient(r.Context(), w, ratelimit.Token, req.ClientID); err != nil {
		return err
	}
	page := call.Tenant.BaseURL + oauth.DevicePagePath
	return web.WriteJSON(w, http.StatusOK, struct {
		DeviceCode string `json:"device_code"`
		UserCode   string `json:"user_code"`
		Page       string `json:"verification_uri"`
		Complete   string `json:"verification_uri_complete"`
		ExpiresIn  int    `json:"expires_in"`
		Interval   int    `json:"interval"`
	}{d.DeviceCode, d.UserCode, page, page + "?user_code=" + url.QueryEscape(d.UserCode), int(d.ExpiresIn.Seconds()), int(d.Interval.Seconds())})
}
