package oauth2

import (
	"context"
	"errors"
	"net/http"
	"net/url"
	"strings"
	"time"

	"stonetown/api/web"
	"stonetown/identity/authn"
	"stonetown/identity/session"
	"stonetown/oauth/access"
	"stonetown/oauth/authorization"
	"stonetown/oauth/protocol"
	"stonetown/oauth/token"
)

// Sessions knows who is signed in.
type Sessions interface {
	ByToken(ctx context.Context, tenantID, token string) (session.Session, error)
	SteppedUp(secondFactor time.Time) bool
	WayToAAL2(ctx context.Context, tenantID, userID string) (authn.Way, error)
	SignOut(ctx context.Context, current session.Session, all bool) error
}

// Authorize is the authorization endpoint (RFC 6749 §3.1).
func (h *Handlers) Authorize(w http.ResponseWriter, r *http.Request, _ AuthorizeParams) {
	h.authorize(w, r, r.URL.Query())
}

// AuthorizeByForm is the same, by POST (OIDC Core §3.1.2.1).
func (h *Handlers) AuthorizeByForm(w http.ResponseWriter, r *http.Request) {
	params, err := parseForm(w, r)
	if err != nil {
		h.Server.Fail(w, r, err)
		return
	}
	h.authorize(w, r, params)
}

// parseForm reads a form that a browser posted.
func parseForm(w http.ResponseWriter, r *http.Request) (url.Values, error) {
	r.Body = http.MaxBytesReader(w, r.Body, maxForm)
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
	if r.Method == http.MethodPost && web.InfoOf(r.Context()).Cookie(web.SessionCookie) == "" {
		// A POST from another site comes without the cookie; the GET it becomes has it.
		if id, err := h.wait(r, request); err != nil {
			h.Server.Fail(w, r, err)
		} else {
			redirect(w, r, protocol.ResumePath, url.Values{"flow": {id}})
		}
		return
	}
	h.proceed(w, r, "", authorization.PendingRequest{Request: request})
}

// Resume goes on with a request whose person has signed in meanwhile.
func (h *Handlers) Resume(w http.ResponseWriter, r *http.Request, params ResumeParams) {
	flow, err := h.Authorization.Resume(r.Context(), tenantOf(r), params.Flow, browsers(r))
	if err != nil {
		h.refuse(w, r, err)
		return
	}
	h.proceed(w, r, params.Flow, flow)
}

// proceed answers a request if the session of the browser is enough for it, and else leads
// to the page where the user can do something about that. The flow has no id unless the
// request has waited before.
func (h *Handlers) proceed(w http.ResponseWriter, r *http.Request, flowID string, flow authorization.PendingRequest) {
	current, signedIn, err := h.current(r)
	if err != nil {
		h.Server.Fail(w, r, err)
		return
	}
	var todo step
	request := flow.Request
	if todo, err = h.authenticate(r.Context(), flowID, flow, current, signedIn); err == nil && todo.page == "" {
		request, todo, err = h.consented(r, flow, current)
	}
	switch {
	case err != nil:
		h.refuse(w, r, err)
	case todo.page == "":
		code, err := h.Authorization.IssueCode(r.Context(), tenantOf(r), request, access.Authentication{
			UserID: current.UserID, SessionID: current.ID, Methods: current.Methods, AuthTime: current.AuthTime, SecondFactor: current.SecondFactor,
		})
		if err != nil {
			h.Server.Fail(w, r, err)
			return
		}
		h.answer(w, r, request.RedirectURI, request.ResponseMode, request.State, url.Values{"code": {code}, "iss": {web.InfoOf(r.Context()).Tenant.BaseURL}})
	case request.Prompts("none"):
		h.refuse(w, r, request.Refusal(todo.refusal, "the request requires user interaction"))
	default:
		if flowID == "" {
			if flowID, err = h.wait(r, request); err != nil {
				h.Server.Fail(w, r, err)
				return
			}
		}
		query := url.Values{"next": {protocol.ResumePath + "?flow=" + url.QueryEscape(flowID)}}
		if todo.answersFlow {
			query = url.Values{"flow": {flowID}}
		}
		if request.LoginHint != "" {
			query.Set("email", request.LoginHint)
		}
		redirect(w, r, todo.page, query)
	}
}

// step is what a user has to do before an application gets its answer.
type step struct {
	page        string // where they do it; empty: nothing
	refusal     string // the error where nobody may be asked
	answersFlow bool   // the page answers the flow, and does not only lead back to it
}

// authenticate says what a user has to do to be authenticated as a request wants it.
func (h *Handlers) authenticate(ctx context.Context, flowID string, flow authorization.PendingRequest, current session.Session, signedIn bool) (step, error) {
	request := flow.Request
	// What must be fresh is, if it was proved after the request came.
	fresh := signedIn && flowID != "" && !current.AuthTime.Before(flow.CreatedAt)
	again := (request.Prompts("login") || request.Prompts("create")) && !fresh
	another := signedIn && request.UserID != "" && current.UserID != request.UserID
	again = again || another && !fresh || signedIn && request.MaxAge >= 0 && !fresh && time.Since(current.AuthTime) > time.Duration(request.MaxAge)*time.Second
	switch {
	case !signedIn || again:
		page := "/auth/sign-in"
		if request.Prompts("create") {
			page = "/auth/sign-up"
		}
		return step{page: page, refusal: protocol.LoginRequired}, nil
	case another:
		return step{}, request.Refusal(protocol.LoginRequired, "the signed-in user is not the user that id_token_hint names")
	case request.Prompts("select_account") && !fresh && flow.Answer.SessionID != current.ID:
		return step{page: "/auth/select-account", refusal: protocol.InteractionRequired, answersFlow: true}, nil
	case current.MustEnrol:
		return step{page: enrolPage, refusal: protocol.InteractionRequired}, nil
	case request.AAL2 && !h.Sessions.SteppedUp(current.SecondFactor):
		return h.stepUp(ctx, request, current)
	}
	return step{}, nil
}

// enrolPage is where a user adds a first second factor.
const enrolPage = "/account/security?done=enrol"

// stepUp says how a user gets to AAL 2: with a factor they have or, where a request demands it
// (RFC 9470), one that they add. A request that only prefers it gets what there is.
func (h *Handlers) stepUp(ctx context.Context, request authorization.Request, current session.Session) (step, error) {
	way, err := h.Sessions.WayToAAL2(ctx, current.TenantID, current.UserID)
	switch {
	case err != nil:
		return step{}, err
	case !request.StepUp && (way != authn.Prove || request.Prompts("none")):
		return step{}, nil
	case way == authn.Prove:
		return step{page: "/account/step-up", refusal: protocol.UnmetRequirements}, nil
	case way == authn.Enrol:
		return step{page: enrolPage, refusal: protocol.UnmetRequirements}, nil
	}
	return step{}, request.Refusal(protocol.UnmetRequirements, "the user has no second factor that can be used here")
}

// consented is the request of a flow as its user has consented to it, or says that they have
// to be asked.
func (h *Handlers) consented(r *http.Request, flow authorization.PendingRequest, current session.Session) (authorization.Request, step, error) {
	request, err := h.Authorization.Consented(r.Context(), tenantOf(r), flow.Request, flow.Answer, current.UserID)
	var refused *authorization.RedirectError
	if errors.As(err, &refused) && refused.Code == protocol.ConsentRequired {
		return flow.Request, step{page: "/auth/consent", refusal: refused.Code, answersFlow: true}, nil
	}
	return request, step{}, err
}

// current is the session of the browser.
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

// refuse tells whoever may be told: the application at its redirect URI, once that is
// proven to be its own, and else the person.
func (h *Handlers) refuse(w http.ResponseWriter, r *http.Request, err error) {
	var page *authorization.PageError
	var at *authorization.RedirectError
	switch {
	case errors.As(err, &at):
		params := url.Values{"error": {at.Code}, "error_description": {at.Description}, "iss": {web.InfoOf(r.Context()).Tenant.BaseURL}}
		h.answer(w, r, at.RedirectURI, at.ResponseMode, at.State, params)
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

// answer gives the application what it asked for, or a refusal, the way it wants that and
// with the state that it sent, if it did.
func (h *Handlers) answer(w http.ResponseWriter, r *http.Request, to, mode, state string, params url.Values) {
	if state != "" {
		params.Set("state", state)
	}
	if mode != authorization.FormPost {
		redirect(w, r, to, params)
		return
	}
	if err := postForm(w, to, params); err != nil {
		h.Server.Fail(w, r, err)
	}
}

// redirect leads elsewhere, keeping a query that is there (RFC 6749 §3.1.2), with a
// status that never repeats a POST (RFC 9700 §4.12).
func redirect(w http.ResponseWriter, r *http.Request, to string, query url.Values) {
	separator := "?"
	switch {
	case len(query) == 0:
		separator = ""
	case strings.Contains(to, "?"):
		separator = "&"
	}
	w.Header().Set("Location", to+separator+query.Encode())
	status := http.StatusFound
	if r.Method == http.MethodPost {
		status = http.StatusSeeOther
	}
	w.WriteHeader(status)
}

// GetUserInfo says who the user of an access token is (OIDC Core §5.3).
func (h *Handlers) GetUserInfo(w http.ResponseWriter, r *http.Request) {
	info := web.InfoOf(r.Context())
	claims, err := h.Tokens.UserInfo(r.Context(), tenantOf(r), info.Principal)
	if errors.Is(err, access.ErrUserGone) {
		err = web.InvalidToken(info, token.Revoked)
	}
	if err == nil {
		err = web.WriteJSON(w, http.StatusOK, claims)
	}
	if err != nil {
		h.Server.Fail(w, r, err)
	}
}

// GetUserInfoByForm is the same, by POST.
func (h *Handlers) GetUserInfoByForm(w http.ResponseWriter, r *http.Request) { h.GetUserInfo(w, r) }
