package oauth2

import (
	"net/http"

	"stonetown/api/web"
	"stonetown/internal/ratelimit"
)

// PushRequest takes an authorization request from the application itself (RFC 9126).
func (s *Surface) PushRequest(w http.ResponseWriter, r *http.Request) {
	if err := s.pushRequest(w, r); err != nil {
		s.Kit.Fail(w, r, refusal(r, err))
	}
}

func (s *Surface) pushRequest(w http.ResponseWriter, r *http.Request) error {
	form, err := readForm(w, r)
	if err != nil {
		return err
	}
	by, err := s.client(w, r, form)
	if err != nil {
		return err
	}
	for _, proof := range []string{"client_secret", "client_assertion", "client_assertion_type"} {
		form.Del(proof)
	}
	requestURI, good, err := s.Service.Push(r.Context(), tenantOf(r), by, form)
	if err != nil {
		return err
	}
	if err := s.Kit.LimitClient(r.Context(), w, ratelimit.Token, by.ClientID); err != nil {
		return err
	}
	return web.WriteJSON(w, http.StatusCreated, struct {
		RequestURI string `json:"request_uri"`
		ExpiresIn  int    `json:"expires_in"`
	}{requestURI, int(good.Seconds())})
}
