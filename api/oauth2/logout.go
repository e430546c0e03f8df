package oauth2

import (
	"net/http"
	"net/url"

	"stonetown/api/account"
	"stonetown/api/web"
	"stonetown/oauth"
)

// EndSession signs the person out whom an application sends for that (OIDC RP-Initiated
// Logout).
func (s *Surface) EndSession(w http.ResponseWriter, r *http.Request, _ EndSessionParams) {
	s.endSession(w, r)
}

// EndSessionByForm is the same, by POST. It becomes a GET: along with a POST from another
// site a browser does not send the cookie that says who is signed in.
func (s *Surface) EndSessionByForm(w http.ResponseWriter, r *http.Request) {
	params, err := parseForm(w, r)
	if err != nil {
		s.Kit.Fail(w, r, err)
		return
	}
	redirect(w, r, oauth.EndSessionPath, params)
}

func (s *Surface) endSession(w http.ResponseWriter, r *http.Request) {
	call, params := web.CallOf(r.Context()), r.URL.Query()
	request, err := s.Service.Logout(r.Context(), tenantOf(r), params)
	if err != nil {
		s.refuse(w, r, err)
		return
	}
	current, signedIn, err := s.current(r)
	switch {
	case err != nil:
		s.Kit.Fail(w, r, err)
		return
	case signedIn && request.SessionID != current.ID: // nobody else may sign people out unasked
		redirect(w, r, "/auth/sign-out", url.Values{"next": {oauth.EndSessionPath + "?" + params.Encode()}})
		return
	case signedIn:
		if err := s.Sessions.SignOut(r.Context(), current, false); err != nil {
			s.Kit.Fail(w, r, err)
			return
		}
	}
	account.ForgetSession(call)
	switch {
	case request.Redirect == "":
		redirect(w, r, "/auth/sign-in", url.Values{"done": {"out"}})
	case request.State == "":
		redirect(w, r, request.Redirect, nil)
	default:
		redirect(w, r, request.Redirect, url.Values{"state": {request.State}})
	}
}
