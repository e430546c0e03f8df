package oauth2

import (
	"net/http"
	"net/url"

	"stonetown/api/account"
	"stonetown/api/web"
	"stonetown/oauth/protocol"
)

// EndSession signs the user of the browser out at the request of an application (OIDC
// RP-Initiated Logout).
func (h *Handlers) EndSession(w http.ResponseWriter, r *http.Request, _ EndSessionParams) {
	h.endSession(w, r)
}

// EndSessionByForm is EndSession for POST. It redirects to GET, because browsers do not send
// the session cookie with a POST from another site.
func (h *Handlers) EndSessionByForm(w http.ResponseWriter, r *http.Request) {
	params, err := parseForm(w, r, maxForm)
	if err != nil {
		h.Server.Fail(w, r, err)
		return
	}
	redirect(w, r, protocol.EndSessionPath, params)
}

func (h *Handlers) endSession(w http.ResponseWriter, r *http.Request) {
	info, params := web.InfoOf(r.Context()), r.URL.Query()
	request, err := h.Authorization.Logout(r.Context(), tenantOf(r), params)
	if err != nil {
		h.refuse(w, r, err)
		return
	}
	current, signedIn, err := h.current(r)
	switch {
	case err != nil:
		h.Server.Fail(w, r, err)
		return
	case signedIn && request.SessionID != current.ID: // the session of another user requires confirmation
		redirect(w, r, "/auth/sign-out", url.Values{"next": {protocol.EndSessionPath + "?" + params.Encode()}})
		return
	case signedIn:
		if err := h.Sessions.SignOut(r.Context(), current, false); err != nil {
			h.Server.Fail(w, r, err)
			return
		}
	}
	account.ForgetSession(info)
	switch {
	case request.Redirect == "":
		redirect(w, r, "/auth/sign-in", url.Values{"done": {"out"}})
	case request.State == "":
		redirect(w, r, request.Redirect, nil)
	default:
		redirect(w, r, request.Redirect, url.Values{"state": {request.State}})
	}
}
