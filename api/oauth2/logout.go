package oauth2

import (
	"context"
	"net/http"
	"net/url"

	"stonetown/api/web"
	"stonetown/identity/federation"
	"stonetown/identity/federation/signin"
	"stonetown/internal/samlprotocol"
	"stonetown/oauth/protocol"
)

// SignIns is the part of [signin.Service] that the operations use.
type SignIns interface {
	BeginLogout(ctx context.Context, t federation.Tenant, sessionID, next string) (signin.Begun, error)
}

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
		query := url.Values{"next": {protocol.EndSessionPath + "?" + params.Encode()}}
		if locales := params.Get("ui_locales"); locales != "" {
			query.Set("ui_locales", locales)
		}
		redirect(w, r, "/auth/sign-out", query)
		return
	}
	to, query := "/auth/sign-in", url.Values{"done": {"out"}}
	if request.Redirect != "" {
		to, query = request.Redirect, url.Values{}
		if request.State != "" {
			query.Set("state", request.State)
		}
	}
	end := samlprotocol.Message{URL: with(to, query)}
	var frames []string
	if signedIn {
		// First the applications in frames, then the SAML applications, then the provider, then the destination.
		begun, err := h.SignIns.BeginLogout(r.Context(), federation.Tenant{ID: info.Tenant.ID, BaseURL: info.Tenant.BaseURL}, current.ID, end.URL)
		if begun.URL != "" {
			end = samlprotocol.Message{URL: begun.URL, Form: begun.Form}
		}
		var first samlprotocol.Message
		if err == nil {
			first, err = h.SAML.BeginLogout(r.Context(), tenantOf(r), current.ID, end)
		}
		if err == nil {
			frames, err = h.Authorization.LogoutFrames(r.Context(), tenantOf(r), current.ID)
		}
		if err == nil {
			err = h.Sessions.SignOut(r.Context(), current, false)
		}
		if err != nil {
			h.Server.Fail(w, r, err)
			return
		}
		if begun.URL != "" {
			info.SetFederationCookie(begun.State, begun.Secret, false, signin.For)
		}
		if first.URL != "" {
			end = first
		}
	}
	info.ForgetSession()
	h.leave(w, r, frames, end)
}

// leave sends a message by the browser, after it has loaded the addresses of applications in frames.
func (h *Handlers) leave(w http.ResponseWriter, r *http.Request, frames []string, end samlprotocol.Message) {
	if len(frames) == 0 {
		h.carry(w, r, end)
		return
	}
	if err := web.LogoutFrames(w, frames, end.URL, end.Form); err != nil {
		h.Server.Fail(w, r, err)
	}
}
