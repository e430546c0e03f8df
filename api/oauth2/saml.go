package oauth2

import (
	"context"
	"errors"
	"net/http"

	"stonetown/api/web"
	"stonetown/identity/session"
	"stonetown/internal/samlprotocol"
	"stonetown/oauth/access"
	"stonetown/oauth/authorization"
	"stonetown/oauth/protocol"
	"stonetown/oauth/saml"
)

// SAML is the part of [saml.Service] that the operations use.
type SAML interface {
	Metadata(ctx context.Context, t protocol.Tenant) ([]byte, error)
	Read(ctx context.Context, t protocol.Tenant, m samlprotocol.Received) (authorization.Request, error)
	Launch(ctx context.Context, t protocol.Tenant, applicationID, relayState string, confirmed bool) (authorization.Request, error)
	Respond(ctx context.Context, t protocol.Tenant, r authorization.Request, by access.Authentication) (samlprotocol.Message, error)
	Refuse(ctx context.Context, t protocol.Tenant, refused *authorization.RedirectError) (samlprotocol.Message, error)
	ReadLogout(ctx context.Context, t protocol.Tenant, m samlprotocol.Received) (saml.Logout, error)
	ContinueLogout(ctx context.Context, t protocol.Tenant, l saml.Logout) (samlprotocol.Message, error)
	BeginLogout(ctx context.Context, t protocol.Tenant, sessionID string, end samlprotocol.Message) (first samlprotocol.Message, err error)
}

// GetSAMLMetadata serves the metadata of the identity provider (SAML Metadata §4.1.1).
func (h *Handlers) GetSAMLMetadata(w http.ResponseWriter, r *http.Request) {
	document, err := h.SAML.Metadata(r.Context(), tenantOf(r))
	if err != nil {
		h.Server.Fail(w, r, err)
		return
	}
	web.Document{Body: document, MediaType: "application/samlmetadata+xml", CacheControl: "public, max-age=300"}.Serve(w, r)
}

// StartSAMLSignOn is the single sign-on service (SAML Profiles §4.1.3.3), with the redirect binding.
func (h *Handlers) StartSAMLSignOn(w http.ResponseWriter, r *http.Request, _ StartSAMLSignOnParams) {
	m, err := samlprotocol.ReadQuery(r.URL.RawQuery)
	h.signOn(w, r, m, err)
}

// StartSAMLSignOnByForm is the single sign-on service with the POST binding.
func (h *Handlers) StartSAMLSignOnByForm(w http.ResponseWriter, r *http.Request) {
	m, err := readMessage(w, r)
	h.signOn(w, r, m, err)
}

// maxMessage bounds a form with a SAML message, in bytes: the longest message in base64, of which
// some characters are escaped.
const maxMessage = 2 * samlprotocol.MaxDocument

// readMessage reads the message of the POST binding.
func readMessage(w http.ResponseWriter, r *http.Request) (m samlprotocol.Received, err error) {
	form, err := parseForm(w, r, maxMessage)
	if err != nil {
		return m, err
	}
	return samlprotocol.ReadForm(form)
}

func (h *Handlers) signOn(w http.ResponseWriter, r *http.Request, m samlprotocol.Received, err error) {
	var request authorization.Request
	if err == nil {
		request, err = h.SAML.Read(r.Context(), tenantOf(r), m)
	}
	if err != nil {
		h.refuse(w, r, err)
		return
	}
	h.begin(w, r, request)
}

// LaunchSAMLSignOn signs the user in to an application that did not request it (SAML Profiles
// §4.1.5). A link of another site needs a confirmation: otherwise it could sign a user in without
// their knowledge.
func (h *Handlers) LaunchSAMLSignOn(w http.ResponseWriter, r *http.Request, applicationID ApplicationInPath, params LaunchSAMLSignOnParams) {
	confirmed := r.Header.Get("Sec-Fetch-Site") == "same-origin"
	request, err := h.SAML.Launch(r.Context(), tenantOf(r), applicationID, params.RelayState, confirmed)
	if err != nil {
		h.refuse(w, r, err)
		return
	}
	h.begin(w, r, request)
}

// assert sends the assertion for a request to the application.
func (h *Handlers) assert(w http.ResponseWriter, r *http.Request, request authorization.Request, by access.Authentication) {
	message, err := h.SAML.Respond(r.Context(), tenantOf(r), request, by)
	if err != nil {
		h.refuse(w, r, err)
		return
	}
	h.carry(w, r, message)
}

// carry sends a message by the browser.
func (h *Handlers) carry(w http.ResponseWriter, r *http.Request, m samlprotocol.Message) {
	if m.Form == nil {
		redirect(w, r, m.URL, nil)
		return
	}
	if err := web.PostForm(w, m.URL, m.Form); err != nil {
		h.Server.Fail(w, r, err)
	}
}

// EndSAMLSession is the single logout service (SAML Profiles §4.4.3), with the redirect binding.
func (h *Handlers) EndSAMLSession(w http.ResponseWriter, r *http.Request, _ EndSAMLSessionParams) {
	m, err := samlprotocol.ReadQuery(r.URL.RawQuery)
	h.endSessions(w, r, m, err)
}

// EndSAMLSessionByForm is the single logout service with the POST binding.
func (h *Handlers) EndSAMLSessionByForm(w http.ResponseWriter, r *http.Request) {
	m, err := readMessage(w, r)
	h.endSessions(w, r, m, err)
}

// endSessions ends the sessions that a request names, which need not be that of the browser, and leads
// the browser to the next application of these sessions. The response of an application leads it on.
func (h *Handlers) endSessions(w http.ResponseWriter, r *http.Request, m samlprotocol.Received, err error) {
	ctx, info := r.Context(), web.InfoOf(r.Context())
	var logout saml.Logout
	if err == nil {
		logout, err = h.SAML.ReadLogout(ctx, tenantOf(r), m)
	}
	if err != nil {
		h.refuse(w, r, err)
		return
	}
	current, signedIn, err := h.current(r)
	var frames []string
	for _, id := range logout.Sessions {
		if err != nil {
			break
		}
		var ending session.Session
		if ending, err = h.Sessions.ByID(ctx, info.Tenant.ID, id); err == nil && signedIn && current.ID == id {
			frames, err = h.Authorization.LogoutFrames(ctx, tenantOf(r), id)
		}
		if err == nil {
			err = h.Sessions.SignOut(ctx, ending, false)
		}
		if errors.Is(err, session.ErrEnded) {
			err = nil
		}
		if err == nil && signedIn && current.ID == id {
			info.ForgetSession()
		}
	}
	var message samlprotocol.Message
	if err == nil {
		message, err = h.SAML.ContinueLogout(ctx, tenantOf(r), logout)
	}
	if err != nil {
		h.refuse(w, r, err)
		return
	}
	h.leave(w, r, frames, message)
}
