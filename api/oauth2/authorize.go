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
	"stonetown/oauth"
)

// Sessions knows who is signed in.
type Sessions interface {
	ByToken(ctx context.Context, tenantID, token string) (session.Session, error)
	SteppedUp(secondFactor time.Time) bool
	SignOut(ctx context.Context, current session.Session, all bool, by authn.By) error
}

// flowCookie binds a flow to the browser that began it: nobody else can be made to finish
// it, or finish it for somebody else (OIDC Core §3.1.2.1; session fixation, RFC 9700 §4.7).
const flowCookie = "__Host-oauth"

// Authorize is the authorization endpoint (RFC 6749 §3.1).
func (s *Surface) Authorize(w http.ResponseWriter, r *http.Request, _ AuthorizeParams) {
	s.authorize(w, r, r.URL.Query())
}

// AuthorizeByForm is the same, by POST (OIDC Core §3.1.2.1).
func (s *Surface) AuthorizeByForm(w http.ResponseWriter, r *http.Request) {
	params, err := parseForm(w, r)
	if err != nil {
		s.Kit.Fail(w, r, err)
		return
	}
	s.authorize(w, r, params)
}

// parseForm reads a form that a browser posted.
func parseForm(w http.ResponseWriter, r *http.Request) (url.Values, error) {
	r.Body = http.MaxBytesReader(w, r.Body, maxForm)
	if err := r.ParseForm(); err != nil {
		return nil, &web.Error{Status: http.StatusBadRequest, Code: string(oauth.InvalidRequest), Message: "the form cannot be read"}
	}
	return r.PostForm, nil
}

func (s *Surface) authorize(w http.ResponseWriter, r *http.Request, params url.Values) {
	request, _, err := s.Service.Authorize(r.Context(), tenantOf(r), params)
	if err != nil {
		s.refuse(w, r, err)
		return
	}
	if r.Method == http.MethodPost && web.CallOf(r.Context()).Cookie(web.SessionCookie) == "" {
		// A POST from another site comes without the cookie; the GET it becomes has it.
		if id, err := s.wait(r, request); err != nil {
			s.Kit.Fail(w, r, err)
		} else {
			redirect(w, r, oauth.ResumePath, url.Values{"flow": {id}})
		}
		return
	}
	s.proceed(w, r, "", oauth.Flow{Request: request})
}

// Resume goes on with a request whose person has signed in meanwhile.
func (s *Surface) Resume(w http.ResponseWriter, r *http.Request, params ResumeParams) {
	id := params.Flow
	cookie, err := r.Cookie(flowCookie)
	if err != nil || id == "" || cookie.Value != id {
		s.refuse(w, r, &oauth.PageError{Description: "this sign-in was begun in another browser, or long ago"})
		return
	}
	flow, err := s.Service.Flow(r.Context(), tenantOf(r), id)
	if err != nil {
		s.refuse(w, r, err)
		return
	}
	s.proceed(w, r, id, flow)
}

// proceed answers a request if who is signed in is enough for it, and else leads to
// where that can be mended. The flow has no id unless the request has waited before.
func (s *Surface) proceed(w http.ResponseWriter, r *http.Request, flowID string, flow oauth.Flow) {
	call, request := web.CallOf(r.Context()), flow.Request
	current, signedIn, err := s.current(r)
	if err != nil {
		s.Kit.Fail(w, r, err)
		return
	}
	// What must be fresh is, if it was proved after the request came.
	fresh := signedIn && flowID != "" && !current.AuthTime.Before(flow.CreatedAt)
	again := (request.Prompts("login") || request.Prompts("create")) && !fresh
	another := signedIn && request.UserID != "" && current.UserID != request.UserID
	again = again || another && !fresh || signedIn && request.MaxAge >= 0 && !fresh && time.Since(current.AuthTime) > time.Duration(request.MaxAge)*time.Second
	to, code := "", ""
	switch {
	case !signedIn || again:
		to, code = "/auth/sign-in", oauth.LoginRequired
		if request.Prompts("create") {
			to = "/auth/sign-up"
		}
	case another:
		s.refuse(w, r, request.Refusal(oauth.LoginRequired, "another user has signed in than the one that id_token_hint names"))
		return
	case request.Prompts("select_account") && !fresh && flow.Answer.SessionID != current.ID:
		to, code = "/auth/select-account", oauth.InteractionRequired
	case current.MustEnrol:
		to, code = "/account/security?done=enrol", oauth.InteractionRequired
	case request.AAL2 && !s.Sessions.SteppedUp(current.SecondFactor):
		to, code = "/account/step-up", oauth.UnmetRequirements
	default:
		request, err = s.Service.Consented(r.Context(), tenantOf(r), request, flow.Answer, current.UserID)
		var refused *oauth.RedirectError
		switch {
		case errors.As(err, &refused) && refused.Code == oauth.ConsentRequired:
			to, code = "/auth/consent", refused.Code
		case err != nil:
			s.refuse(w, r, err)
			return
		}
	}
	switch {
	case to == "":
		issued, err := s.Service.IssueCode(r.Context(), tenantOf(r), request, oauth.Authentication{
			UserID: current.UserID, SessionID: current.ID, Methods: current.Methods, AuthTime: current.AuthTime, SecondFactor: current.SecondFactor,
		})
		if err != nil {
			s.Kit.Fail(w, r, err)
			return
		}
		if flowID != "" {
			bindFlow(call, "", -1)
		}
		s.answer(w, r, request.RedirectURI, request.ResponseMode, request.State, url.Values{"code": {issued}, "iss": {call.Tenant.BaseURL}})
	case request.Prompts("none"):
		s.refuse(w, r, request.Refusal(code, "the user has to be asked"))
	default:
		if flowID == "" {
			if flowID, err = s.wait(r, request); err != nil {
				s.Kit.Fail(w, r, err)
				return
			}
		}
		query := url.Values{"next": {oauth.ResumePath + "?flow=" + url.QueryEscape(flowID)}}
		if to == "/auth/consent" || to == "/auth/select-account" {
			query = url.Values{"flow": {flowID}}
		}
		if request.LoginHint != "" {
			query.Set("email", request.LoginHint)
		}
		redirect(w, r, to, query)
	}
}

// wait remembers a request, for this browser.
func (s *Surface) wait(r *http.Request, request oauth.AuthorizationRequest) (flowID string, err error) {
	if flowID, err = s.Service.BeginFlow(r.Context(), tenantOf(r), request); err == nil {
		bindFlow(web.CallOf(r.Context()), flowID, int(oauth.FlowFor.Seconds()))
	}
	return flowID, err
}

func bindFlow(call *web.Call, flowID string, maxAge int) {
	call.SetCookie(&http.Cookie{Name: flowCookie, Value: flowID, Path: "/", Secure: true, HttpOnly: true, SameSite: http.SameSiteLaxMode, MaxAge: maxAge})
}

// current is the session of the browser.
func (s *Surface) current(r *http.Request) (current session.Session, signedIn bool, err error) {
	call := web.CallOf(r.Context())
	token := call.Cookie(web.SessionCookie)
	if token == "" {
		return current, false, nil
	}
	current, err = s.Sessions.ByToken(r.Context(), call.Tenant.ID, token)
	if errors.Is(err, session.ErrEnded) {
		return current, false, nil
	}
	return current, err == nil, err
}

// refuse tells whoever may be told: the application at its redirect URI, once that is
// proven to be its own, and else the person.
func (s *Surface) refuse(w http.ResponseWriter, r *http.Request, err error) {
	var page *oauth.PageError
	var at *oauth.RedirectError
	switch {
	case errors.As(err, &at):
		params := url.Values{"error": {at.Code}, "error_description": {at.Description}, "iss": {web.CallOf(r.Context()).Tenant.BaseURL}}
		s.answer(w, r, at.RedirectURI, at.ResponseMode, at.State, params)
		return
	case errors.As(err, &page):
		err = &web.Error{Status: http.StatusBadRequest, Code: string(oauth.InvalidRequest), Message: page.Description}
	case errors.Is(err, oauth.ErrFlowNotFound), errors.Is(err, oauth.ErrFlowExpired):
		err = &web.Error{Status: http.StatusBadRequest, Code: string(oauth.InvalidRequest), Message: err.Error()}
	}
	s.Kit.Fail(w, r, err)
}

// answer gives the application what it asked for, or a refusal, the way it wants that and
// with the state that it sent, if it did.
func (s *Surface) answer(w http.ResponseWriter, r *http.Request, to, mode, state string, params url.Values) {
	if state != "" {
		params.Set("state", state)
	}
	if mode != oauth.FormPost {
		redirect(w, r, to, params)
		return
	}
	if err := postForm(w, to, params); err != nil {
		s.Kit.Fail(w, r, err)
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
func (s *Surface) GetUserInfo(w http.ResponseWriter, r *http.Request) {
	call := web.CallOf(r.Context())
	claims, err := s.Service.UserInfo(r.Context(), tenantOf(r), call.Principal)
	if errors.Is(err, oauth.ErrPersonGone) {
		err = web.InvalidToken(call, oauth.Revoked)
	}
	if err == nil {
		err = web.WriteJSON(w, http.StatusOK, claims)
	}
	if err != nil {
		s.Kit.Fail(w, r, err)
	}
}

// GetUserInfoByForm is the same, by POST.
func (s *Surface) GetUserInfoByForm(w http.ResponseWriter, r *http.Request) { s.GetUserInfo(w, r) }
