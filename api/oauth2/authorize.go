package oauth2

import (
	"context"
	"errors"
	"io"
	"net/http"
	"net/url"
	"strings"
	"time"

	"stonetown/api/web"
	"stonetown/identity/authn"
	"stonetown/identity/session"
	"stonetown/internal/samlprotocol"
	"stonetown/oauth/access"
	"stonetown/oauth/authorization"
	"stonetown/oauth/protocol"
	"stonetown/oauth/token"
)

// Sessions has the sessions of users.
type Sessions interface {
	ByToken(ctx context.Context, tenantID, token string) (session.Session, error)
	SteppedUp(secondFactor time.Time) bool
	WayToAAL2(ctx context.Context, tenantID, userID string) (authn.Way, error)
	ByID(ctx context.Context, tenantID, sessionID string) (session.Session, error)
	SignOut(ctx context.Context, current session.Session, all bool) error
}

// Authorize is the authorization endpoint (RFC 6749 §3.1).
func (h *Handlers) Authorize(w http.ResponseWriter, r *http.Request, _ AuthorizeParams) {
	h.authorize(w, r, r.URL.Query())
}

// AuthorizeByForm is the authorization endpoint for POST (OIDC Core §3.1.2.1).
func (h *Handlers) AuthorizeByForm(w http.ResponseWriter, r *http.Request) {
	params, err := parseForm(w, r, maxForm)
	if err != nil {
		h.Server.Fail(w, r, err)
		return
	}
	h.authorize(w, r, params)
}

// parseForm reads a form that a browser posted, of at most limit bytes.
func parseForm(w http.ResponseWriter, r *http.Request, limit int64) (url.Values, error) {
	r.Body = http.MaxBytesReader(w, r.Body, limit)
	if err := r.ParseForm(); err != nil {
		return nil, &web.Error{Status: http.StatusBadRequest, Code: string(protocol.InvalidRequest), Message: "the body is not a valid form"}
	}
	return r.PostForm, nil
}

func (h *Handlers) authorize(w http.ResponseWriter, r *http.Request, params url.Values) {
	request, _, err := h.Authorization.Authorize(r.Context(), tenantOf(r), params)
	if err != nil {
		h.refuse(w, r, err)
		return
	}
	h.begin(w, r, request)
}

// begin responds to a valid request that is not pending.
func (h *Handlers) begin(w http.ResponseWriter, r *http.Request, request authorization.Request) {
	if r.Method == http.MethodPost && web.InfoOf(r.Context()).Cookie(web.SessionCookie) == "" {
		// A POST from another site has no cookies; the GET to which it is redirected has them.
		if id, err := h.wait(r, request); err != nil {
			h.Server.Fail(w, r, err)
		} else {
			redirect(w, r, protocol.ResumePath, url.Values{"flow": {id}})
		}
		return
	}
	h.proceed(w, r, "", authorization.PendingRequest{Request: request})
}

// Resume continues a pending request after its user has signed in.
func (h *Handlers) Resume(w http.ResponseWriter, r *http.Request, params ResumeParams) {
	pending, err := h.Authorization.Resume(r.Context(), tenantOf(r), params.Flow, browsers(r))
	if err != nil {
		h.refuse(w, r, err)
		return
	}
	if params.Cancel == "true" {
		h.refuse(w, r, pending.Request.Refusal(protocol.AccessDenied, "the user did not sign in"))
		return
	}
	h.proceed(w, r, params.Flow, pending)
}

// proceed responds to a request if the session of the browser suffices, and otherwise
// redirects to the page of the next step. The request has an id only if it is pending.
func (h *Handlers) proceed(w http.ResponseWriter, r *http.Request, requestID string, pending authorization.PendingRequest) {
	current, signedIn, err := h.current(r)
	if err != nil {
		h.Server.Fail(w, r, err)
		return
	}
	request := pending.Request
	if signedIn && current.Opened() {
		if request.Prompts("none") {
			h.refuse(w, r, request.Refusal(protocol.LoginRequired, "the session of the browser is for the console only"))
		} else {
			h.Server.Fail(w, r, web.OpenedOnly())
		}
		return
	}
	var todo step
	if todo, err = h.authenticate(r.Context(), requestID, pending, current, signedIn); err == nil && todo.page == "" {
		request, todo, err = h.consented(r, pending, current)
	}
	switch {
	case err != nil:
		h.refuse(w, r, err)
	case todo.page == "":
		by := access.Authentication{
			UserID: current.UserID, SessionID: current.ID, Methods: current.Methods, AuthTime: current.AuthTime, SecondFactor: current.SecondFactor, Claims: current.Claims,
		}
		if request.SAML != nil {
			h.assert(w, r, request, by)
			return
		}
		code, err := h.Authorization.IssueCode(r.Context(), tenantOf(r), request, by)
		if err != nil {
			h.refuse(w, r, err)
			return
		}
		h.answer(w, r, request, url.Values{"code": {code}, "iss": {web.InfoOf(r.Context()).Tenant.BaseURL}})
	case request.Prompts("none"):
		h.refuse(w, r, request.Refusal(todo.refusal, "the request requires user interaction"))
	default:
		if requestID == "" {
			if requestID, err = h.wait(r, request); err != nil {
				h.Server.Fail(w, r, err)
				return
			}
		}
		query, hint := url.Values{"next": {protocol.ResumePath + "?flow=" + url.QueryEscape(requestID)}}, "email"
		switch {
		case todo.storesAnswer:
			query = url.Values{"flow": {requestID}}
		case todo.atConnection:
			todo.page, hint = "/api/v1/auth/federation/"+url.PathEscape(request.Connection)+"/start", "login_hint"
		}
		if request.LoginHint != "" {
			query.Set(hint, request.LoginHint)
		}
		if request.UILocales != "" && !todo.atConnection {
			query.Set("ui_locales", request.UILocales)
		}
		redirect(w, r, todo.page, query)
	}
}

// step is what the user has to do before the application gets its response.
type step struct {
	page         string // of the step; empty: there is none
	refusal      string // the error if the user must not be asked (prompt=none)
	storesAnswer bool   // the page stores an answer, instead of only redirecting back
	atConnection bool   // the user signs in at the connection of the request, instead of on the page
}

// authenticate returns the step that the authentication of a request requires.
func (h *Handlers) authenticate(ctx context.Context, requestID string, pending authorization.PendingRequest, current session.Session, signedIn bool) (step, error) {
	request := pending.Request
	// A factor that was proved after the request came is recent enough. A session that began since
	// is that of the user's choice, although the user may have authenticated at another provider
	// before.
	fresh := signedIn && requestID != "" && !current.AuthTime.Before(pending.CreatedAt)
	chosen := fresh || signedIn && requestID != "" && !current.CreatedAt.Before(pending.CreatedAt)
	again := (request.Prompts("login") || request.Prompts("create")) && !fresh
	another := signedIn && !request.IsFor(current.UserID)
	lacksFactor := request.RequiresAAL2() && current.SecondFactor.IsZero()
	again = again || another && !chosen || signedIn && request.MaxAge >= 0 && !fresh && time.Since(current.AuthTime) > time.Duration(request.MaxAge)*time.Second
	switch {
	case !signedIn || again:
		todo := step{page: "/auth/sign-in", refusal: protocol.LoginRequired}
		if request.Prompts("create") {
			todo.page = "/auth/sign-up"
		} else {
			// A provider whose answer does not suffice must not be asked again and again.
			todo.atConnection = request.Connection != "" && !chosen
		}
		return todo, nil
	case another:
		return step{}, request.Refusal(protocol.LoginRequired, "the signed-in user is not the user that id_token_hint or the claim sub names")
	case request.Prompts("select_account") && !chosen && pending.Answer.SessionID != current.ID:
		return step{page: "/auth/select-account", refusal: protocol.InteractionRequired, storesAnswer: true}, nil
	case current.MustEnrol:
		return step{page: enrolPage, refusal: protocol.InteractionRequired}, nil
	case lacksFactor || request.AAL2 && !h.Sessions.SteppedUp(current.SecondFactor):
		return h.stepUp(ctx, request, current, lacksFactor || request.StepUp)
	}
	return step{}, nil
}

// enrolPage is the page on which a user adds a first second factor.
const enrolPage = "/account/security?done=enrol"

// stepUp returns the step to AAL2: by a factor that the user has or, if the request requires
// it (RFC 9470, or an essential claim acr), by one that the user adds. A request that only prefers
// AAL2 gets the level that is possible.
func (h *Handlers) stepUp(ctx context.Context, request authorization.Request, current session.Session, required bool) (step, error) {
	way, err := h.Sessions.WayToAAL2(ctx, current.TenantID, current.UserID)
	switch {
	case err != nil:
		return step{}, err
	case !required && (way != authn.Prove || request.Prompts("none")):
		return step{}, nil
	case way == authn.Prove:
		return step{page: "/account/step-up", refusal: protocol.UnmetRequirements}, nil
	case way == authn.Enrol:
		return step{page: enrolPage, refusal: protocol.UnmetRequirements}, nil
	}
	return step{}, request.Refusal(protocol.UnmetRequirements, "the user has no second factor that can be used here")
}

// consented returns the request with the scopes to which the user agreed, or the step that
// asks for consent.
func (h *Handlers) consented(r *http.Request, pending authorization.PendingRequest, current session.Session) (authorization.Request, step, error) {
	request, err := h.Authorization.Consented(r.Context(), tenantOf(r), pending.Request, pending.Answer, current.UserID)
	var refused *authorization.RedirectError
	if errors.As(err, &refused) && refused.Code == protocol.ConsentRequired {
		return pending.Request, step{page: "/auth/consent", refusal: refused.Code, storesAnswer: true}, nil
	}
	return request, step{}, err
}

// current returns the session of the browser.
func (h *Handlers) current(r *http.Request) (current session.Session, signedIn bool, err error) {
	info := web.InfoOf(r.Context())
	token := info.Cookie(web.SessionCookie)
	if token == "" {
		return current, false, nil
	}
	current, err = h.Sessions.ByToken(r.Context(), info.Tenant.ID, token)
	if errors.Is(err, session.ErrEnded) {
		return current, false, nil
	}
	return current, err == nil, err
}

// refuse reports a refusal to the application, at its redirect URI, or to the user if the
// redirect URI is not known to be the application's.
func (h *Handlers) refuse(w http.ResponseWriter, r *http.Request, err error) {
	var page *authorization.PageError
	var at *authorization.RedirectError
	var refused *samlprotocol.Error
	switch {
	case errors.As(err, &at) && at.SAML != nil:
		message, err := h.SAML.Refuse(r.Context(), tenantOf(r), at)
		if err != nil {
			h.refuse(w, r, err)
			return
		}
		h.carry(w, r, message)
		return
	case errors.As(err, &refused):
		err = &web.Error{Status: http.StatusBadRequest, Code: string(protocol.InvalidRequest), Message: "the application sent a message that is not valid"}
	case errors.As(err, &at):
		params := url.Values{"error": {at.Code}, "error_description": {at.Description}, "iss": {web.InfoOf(r.Context()).Tenant.BaseURL}}
		h.answer(w, r, authorization.Request{ClientID: at.ClientID, RedirectURI: at.RedirectURI, ResponseMode: at.ResponseMode, State: at.State}, params)
		return
	case errors.As(err, &page):
		err = &web.Error{Status: http.StatusBadRequest, Code: string(protocol.InvalidRequest), Message: page.Description}
	case errors.Is(err, authorization.ErrRequestNotFound), errors.Is(err, authorization.ErrRequestExpired):
		err = &web.Error{
			Status: http.StatusBadRequest, Code: string(protocol.InvalidRequest),
			Message: "This sign-in was started in another browser, or more than 30 minutes ago. Please go back to the application and start again.",
		}
	}
	h.Server.Fail(w, r, err)
}

// answer sends the response or refusal to the application, in the response mode of the
// request, with its state if it has one.
func (h *Handlers) answer(w http.ResponseWriter, r *http.Request, to authorization.Request, params url.Values) {
	if to.State != "" {
		params.Set("state", to.State)
	}
	params, err := h.Authorization.Respond(r.Context(), tenantOf(r), to.ClientID, to.ResponseMode, params)
	switch {
	case err != nil:
		h.refuse(w, r, err)
		return
	case !authorization.Posted(to.ResponseMode):
		redirect(w, r, to.RedirectURI, params)
		return
	}
	if err := web.PostForm(w, to.RedirectURI, params); err != nil {
		h.Server.Fail(w, r, err)
	}
}

// with returns a URI with more parameters, and keeps its query (RFC 6749 §3.1.2).
func with(to string, query url.Values) string {
	separator := "?"
	switch {
	case len(query) == 0:
		return to
	case strings.Contains(to, "?"):
		separator = "&"
	}
	return to + separator + query.Encode()
}

// redirect redirects to a URI with more parameters. The status never repeats a POST (RFC 9700
// §4.12).
func redirect(w http.ResponseWriter, r *http.Request, to string, query url.Values) {
	w.Header().Set("Location", with(to, query))
	status := http.StatusFound
	if r.Method == http.MethodPost {
		status = http.StatusSeeOther
	}
	w.WriteHeader(status)
}

// GetUserInfo is the UserInfo endpoint (OIDC Core §5.3). The response is JSON or, if the application
// has registered an algorithm for it, a JWT.
func (h *Handlers) GetUserInfo(w http.ResponseWriter, r *http.Request) {
	info := web.InfoOf(r.Context())
	claims, app, err := h.Tokens.UserInfo(r.Context(), tenantOf(r), info.Principal)
	switch {
	case errors.Is(err, access.ErrUserGone):
		err = web.InvalidToken(info, token.Revoked)
	case err == nil && app.UserInfoAlg != "":
		var signed string
		if signed, err = h.Tokens.SignUserInfo(r.Context(), tenantOf(r), app, claims); err == nil {
			err = writeJWT(w, "application/jwt", signed)
		}
	case err == nil:
		err = web.WriteJSON(w, http.StatusOK, claims)
	}
	if err != nil {
		h.Server.Fail(w, r, err)
	}
}

// writeJWT writes a response that is a JWT.
func writeJWT(w http.ResponseWriter, mediaType, token string) error {
	w.Header().Set("Content-Type", mediaType)
	_, err := io.WriteString(w, token)
	return err
}

// GetUserInfoByForm is the UserInfo endpoint for POST.
func (h *Handlers) GetUserInfoByForm(w http.ResponseWriter, r *http.Request) { h.GetUserInfo(w, r) }
