package account

import (
	"context"
	"errors"
	"net/http"
	"net/url"
	"time"

	"stonetown/api/web"
	"stonetown/identity/authn"
	"stonetown/identity/external"
	"stonetown/identity/federation"
	"stonetown/identity/federation/signin"
	"stonetown/identity/session"
	"stonetown/oauth/authorization"
	"stonetown/oauth/protocol"
)

// Federation is the part of [signin.Service] that the operations use.
type Federation interface {
	Choices(ctx context.Context, tenantID string) ([]federation.Summary, error)
	HomeRealm(ctx context.Context, tenantID, email string) (slug string, err error)
	Begin(ctx context.Context, t federation.Tenant, r signin.Request) (signin.Begun, error)
	BeginTest(ctx context.Context, t federation.Tenant, slug, secret string) (signin.Begun, error)
	Complete(ctx context.Context, t authn.Tenant, a signin.Answer, d authn.Device) (signin.Outcome, error)
	CompleteLink(ctx context.Context, t federation.Tenant, a signin.Answer, current session.Session) error
	BeginLogout(ctx context.Context, t federation.Tenant, sessionID, next string) (signin.Begun, error)
	FinishLogout(ctx context.Context, tenantID, slug, state, secret string) (next string, err error)
	SingleLogout(ctx context.Context, t federation.Tenant, slug string, m signin.LogoutMessage) (signin.Begun, error)
	EndByToken(ctx context.Context, tenantID, slug, token string) error
}

func federationTenant(info *web.RequestInfo) federation.Tenant {
	return federation.Tenant{ID: info.Tenant.ID, BaseURL: info.Tenant.BaseURL}
}

// connections lists the connections at which users can sign in.
func (h *Handlers) connections(ctx context.Context, info *web.RequestInfo) ([]ConnectionChoice, error) {
	found, err := h.Federation.Choices(ctx, info.Tenant.ID)
	list := make([]ConnectionChoice, len(found))
	for i, c := range found {
		list[i] = ConnectionChoice{Slug: c.Slug, Kind: string(c.Kind), Name: c.Name}
	}
	return list, err
}

// toProvider is a browser that is sent to an identity provider.
type toProvider signin.Begun

// VisitStartFederationResponse implements [StartFederationResponseObject].
func (to toProvider) VisitStartFederationResponse(w http.ResponseWriter) error {
	if to.Form != nil {
		return web.PostForm(w, to.URL, to.Form)
	}
	w.Header().Set("Location", to.URL)
	w.Header().Set("Cache-Control", "no-store")
	w.WriteHeader(http.StatusSeeOther)
	return nil
}

// StartFederation sends the browser to an identity provider.
func (h *Handlers) StartFederation(ctx context.Context, request StartFederationRequestObject) (StartFederationResponseObject, error) {
	info, params := web.InfoOf(ctx), request.Params
	var begun signin.Begun
	var err error
	next := params.Next
	if params.Test != "" {
		begun, err = h.Federation.BeginTest(ctx, federationTenant(info), request.Slug, params.Test)
		next = ""
	} else {
		if params.Flow != "" {
			next = protocol.ResumePath + "?flow=" + url.QueryEscape(params.Flow)
		}
		if len(next) > maxInput || next != "" && !web.IsLocalPath(next) {
			return nil, web.ValidationFailed(web.FieldError{Field: "next", Code: "invalid", Message: "next must be a path on this host, of at most 2,048 bytes"})
		}
		if len(params.LoginHint) > maxInput {
			return nil, web.ValidationFailed(web.FieldError{Field: "login_hint", Code: "too_long", Message: "login_hint must have at most 2,048 bytes"})
		}
		r := signin.Request{Slug: request.Slug, Next: next, LoginHint: params.LoginHint}
		if r.Demands, err = h.demands(ctx, info, next); err != nil {
			return nil, err
		}
		begun, err = h.Federation.Begin(ctx, federationTenant(info), r)
	}
	if err != nil {
		return nil, returning(err, next)
	}
	info.SetFederationCookie(begun.State, begun.Secret, false, signin.For)
	return toProvider(begun), nil
}

// demands returns what the authorization request that a path continues demands of the
// authentication; nothing if the path continues none.
func (h *Handlers) demands(ctx context.Context, info *web.RequestInfo, next string) (d signin.Demands, err error) {
	to, err := url.Parse(next)
	if err != nil || to.Path != protocol.ResumePath {
		return d, nil
	}
	pending, err := h.Requests.Pending(ctx, oauthTenant(info), to.Query().Get("flow"))
	if errors.Is(err, authorization.ErrRequestNotFound) || errors.Is(err, authorization.ErrRequestExpired) {
		return d, nil // the path responds with the error
	}
	r := pending.Request
	d.Fresh, d.SecondFactor = r.Prompts("login") || r.Prompts("create"), r.AAL2 || r.RequiresAAL2()
	if r.MaxAge >= 0 && err == nil {
		d.MaxAge = new(time.Duration(r.MaxAge) * time.Second)
	}
	return d, err
}

// answerOf reads the answer of a provider to a request.
func answerOf(form FederationAnswer) (signin.Answer, error) {
	if err := need("slug", form.Slug, "secret", form.Secret); err != nil {
		return signin.Answer{}, err
	}
	return readAnswer(form), nil
}

func readAnswer(form FederationAnswer) signin.Answer {
	a := signin.Answer{Slug: form.Slug, Secret: form.Secret, Parameters: url.Values{}}
	for name, value := range form.Parameters {
		a.Parameters.Set(name, value)
	}
	return a
}

// CompleteFederation completes a sign-in at a connection, or the test of one.
func (h *Handlers) CompleteFederation(ctx context.Context, request CompleteFederationRequestObject) (CompleteFederationResponseObject, error) {
	info := web.InfoOf(ctx)
	a, err := answerOf(*request.Body)
	if _, saml := request.Body.Parameters["SAMLResponse"]; saml && request.Body.Secret == "" { // perhaps to no request
		a, err = readAnswer(*request.Body), need("slug", request.Body.Slug)
	}
	if err != nil {
		return nil, err
	}
	out, err := h.Federation.Complete(ctx, tenant(info), a, deviceOf(info))
	if err != nil {
		return nil, returning(err, out.Next)
	}
	if out.Test != nil {
		d := out.Test.Document()
		return CompleteFederation200JSONResponse{Body: AuthResult{Data: AuthStep{Status: "tested", Test: &d}, Meta: meta(info)}}, nil
	}
	body, err := h.result(ctx, info, *out.Result)
	body.Data.RedirectTo = out.Next
	return CompleteFederation200JSONResponse{Body: body}, err
}

// returningError is the error of a sign-in that can be tried again, and then leads to a path.
type returningError struct {
	error
	next string
}

func (e *returningError) Unwrap() error { return e.error }

func returning(err error, next string) error {
	if next == "" {
		return err
	}
	return &returningError{err, next}
}

// LinkFederation continues a sign-in at a connection with a proof of the account.
func (h *Handlers) LinkFederation(ctx context.Context, request LinkFederationRequestObject) (LinkFederationResponseObject, error) {
	info, form := web.InfoOf(ctx), request.Body
	if err := need("link_token", form.LinkToken); err != nil {
		return nil, err
	}
	var r authn.Result
	var err error
	if form.CeremonyID != "" {
		r, err = h.Service.LinkWithPasskey(ctx, tenant(info), form.LinkToken, form.CeremonyID, form.Credential, deviceOf(info))
	} else if err = need("password", form.Password); err == nil {
		r, err = h.Service.LinkWithPassword(ctx, tenant(info), form.LinkToken, form.Password, deviceOf(info))
	}
	if err != nil {
		return nil, err
	}
	body, err := h.result(ctx, info, r)
	return LinkFederation200JSONResponse{Body: body}, err
}

// BeginMyIdentity begins to link an identity with the user of the session.
func (h *Handlers) BeginMyIdentity(ctx context.Context, request BeginMyIdentityRequestObject) (BeginMyIdentityResponseObject, error) {
	info := web.InfoOf(ctx)
	current, err := h.owner(ctx, info)
	if err == nil {
		err = need("slug", request.Body.Slug)
	}
	if err != nil {
		return nil, err
	}
	if err := h.Service.MayAddFactor(ctx, current); err != nil { // an identity is another way to sign in
		return nil, h.adding(ctx, info, current, err)
	}
	begun, err := h.Federation.Begin(ctx, federationTenant(info), signin.Request{Slug: request.Body.Slug, SessionID: current.ID})
	if err != nil {
		return nil, err
	}
	info.SetFederationCookie(begun.State, begun.Secret, true, signin.For)
	body := IdentityBegun{Meta: meta(info)}
	body.Data.RedirectTo = begun.URL
	body.Data.Form = fields(begun.Form)
	return BeginMyIdentity200JSONResponse{Body: body}, nil
}

// fields returns the fields of a form; nil if there is no form.
func fields(form url.Values) *map[string]string {
	if form == nil {
		return nil
	}
	all := map[string]string{}
	for name := range form {
		all[name] = form.Get(name)
	}
	return &all
}

// CompleteMyIdentity links an identity with the user of the session.
func (h *Handlers) CompleteMyIdentity(ctx context.Context, request CompleteMyIdentityRequestObject) (CompleteMyIdentityResponseObject, error) {
	info := web.InfoOf(ctx)
	current, err := h.owner(ctx, info)
	if err != nil {
		return nil, err
	}
	a, err := answerOf(*request.Body)
	if err == nil {
		err = h.Federation.CompleteLink(ctx, federationTenant(info), a, current)
	}
	return CompleteMyIdentity204Response{}, err
}

// federationError returns the response to an error of a sign-in at a connection, or nil.
func federationError(err error) *web.Error {
	conflict := func(code string) *web.Error {
		return &web.Error{Status: http.StatusConflict, Code: code, Message: err.Error()}
	}
	if failed, ok := errors.AsType[*signin.Failure](err); ok {
		return &web.Error{
			Status: http.StatusBadRequest, Code: "federation_failed", Message: failed.Error(), Details: web.Details{"reason": failed.Reason},
		}
	}
	switch {
	case errors.Is(err, federation.ErrNotFound):
		return &web.Error{Status: http.StatusNotFound, Code: "connection_not_found", Message: federation.ErrNotFound.Error()}
	case errors.Is(err, signin.ErrDisabled):
		return &web.Error{Status: http.StatusForbidden, Code: "connection_disabled", Message: signin.ErrDisabled.Error()}
	case errors.Is(err, signin.ErrTestExpired):
		return &web.Error{Status: http.StatusBadRequest, Code: "ceremony_invalid", Message: signin.ErrTestExpired.Error()}
	case errors.Is(err, signin.ErrExpired):
		return &web.Error{Status: http.StatusBadRequest, Code: "ceremony_invalid", Message: signin.ErrExpired.Error()}
	case errors.Is(err, authn.ErrNotProvisioned):
		return &web.Error{Status: http.StatusForbidden, Code: "permission_denied", Message: authn.ErrNotProvisioned.Error(), Details: web.Details{"required_scope": nil}}
	case errors.Is(err, authn.ErrNoEmail):
		return &web.Error{Status: http.StatusBadRequest, Code: "federation_failed", Message: authn.ErrNoEmail.Error(), Details: web.Details{"reason": "email_missing"}}
	case errors.Is(err, authn.ErrAccountExists):
		return conflict("user_exists")
	case errors.Is(err, external.ErrTaken), errors.Is(err, external.ErrOther), errors.Is(err, external.ErrLimit):
		return conflict("identity_conflict")
	}
	return nil
}
