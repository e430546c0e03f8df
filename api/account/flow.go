package account

import (
	"context"
	"errors"
	"net/http"
	"net/url"

	"stonetown/api/profile"
	"stonetown/api/web"
	"stonetown/identity/session"
	"stonetown/internal/document"
	"stonetown/oauth"
)

// Flows knows what applications want that people are signing in for, and what people let
// them have; [oauth.Service] does.
type Flows interface {
	Flow(ctx context.Context, t oauth.Tenant, id string) (oauth.Flow, error)
	ApplicationByClientID(ctx context.Context, tenantID, clientID string) (oauth.Application, error)
	Consented(ctx context.Context, t oauth.Tenant, r oauth.AuthorizationRequest, said oauth.Answer, userID string) (oauth.AuthorizationRequest, error)
	ScopeDescriptions(ctx context.Context, tenantID string, scopes []string) (map[string]string, error)
	GroupScopesOf(ctx context.Context, t oauth.Tenant, app oauth.Application, asked []string, userID string) ([]string, error)
	Consent(ctx context.Context, t oauth.Tenant, flowID, userID string, scopes []string) error
	Device(ctx context.Context, t oauth.Tenant, userCode string) (oauth.DeviceRequest, error)
	AnswerDevice(ctx context.Context, t oauth.Tenant, userCode string, by oauth.Authentication, allow bool) error
	Choose(ctx context.Context, t oauth.Tenant, flowID, sessionID string) error
	Authorizations(ctx context.Context, tenantID, userID string) ([]oauth.Authorization, error)
	EndAuthorization(ctx context.Context, t oauth.Tenant, userID, applicationID string) error
}

func oauthTenant(info *web.RequestInfo) oauth.Tenant {
	return oauth.Tenant{ID: info.Tenant.ID, BaseURL: info.Tenant.BaseURL}
}

// owner is the session of the user who makes a request, and not an application for them: it
// could let itself do whatever it wants.
func (h *Handlers) owner(ctx context.Context, info *web.RequestInfo) (session.Session, error) {
	if info.Principal.GrantID != "" {
		return session.Session{}, notSignedIn()
	}
	return h.person(ctx, info)
}

// GetFlow says what an application wants, and of whom.
func (h *Handlers) GetFlow(ctx context.Context, request GetFlowRequestObject) (GetFlowResponseObject, error) {
	info := web.InfoOf(ctx)
	flow, err := h.Flows.Flow(ctx, oauthTenant(info), request.FlowID)
	if err != nil {
		return nil, err
	}
	app, err := h.Flows.ApplicationByClientID(ctx, info.Tenant.ID, flow.Request.ClientID)
	if errors.Is(err, oauth.ErrApplicationNotFound) { // deleted meanwhile, and what it wanted with it
		err = oauth.ErrFlowNotFound
	}
	if err != nil {
		return nil, err
	}
	body := FlowRead{Meta: meta(info)}
	d := &body.Data
	d.Client.Name, d.Client.LogoURI = app.Name, document.OrNull(app.LogoURI)
	d.Scopes, d.GroupScopes, d.Prompt = append([]string{}, flow.Request.Scopes...), []string{}, append([]string{}, flow.Request.Prompt...)
	d.LoginHint, d.Status, d.ExpiresAt = document.OrNull(flow.Request.LoginHint), "sign_in_required", document.Timestamp(flow.ExpiresAt)
	d.Methods = h.Service.Identify(ctx, tenant(info), "")
	if info.Principal != nil && info.Principal.Subject != info.Principal.ClientID {
		d.Status = "ready"
		var refused *oauth.RedirectError
		_, err := h.Flows.Consented(ctx, oauthTenant(info), flow.Request, flow.Answer, info.Principal.Subject)
		if errors.As(err, &refused) {
			if refused.Code == oauth.ConsentRequired {
				d.Status = refused.Code
			}
			err = nil
		}
		if err == nil {
			d.GroupScopes, err = h.groupScopes(ctx, info, app, flow.Request.Scopes)
		}
		if err != nil {
			return nil, err
		}
	}
	d.ScopeDescriptions, err = h.Flows.ScopeDescriptions(ctx, info.Tenant.ID, append(d.Scopes, d.GroupScopes...))
	return GetFlow200JSONResponse{Body: body}, err
}

// groupScopes are those that the groups of the caller bring besides.
func (h *Handlers) groupScopes(ctx context.Context, info *web.RequestInfo, app oauth.Application, asked []string) ([]string, error) {
	more, err := h.Flows.GroupScopesOf(ctx, oauthTenant(info), app, asked, info.Principal.Subject)
	return append([]string{}, more...), err
}

// AnswerConsent lets an application have what it asks for, or not.
func (h *Handlers) AnswerConsent(ctx context.Context, request AnswerConsentRequestObject) (AnswerConsentResponseObject, error) {
	info, form := web.InfoOf(ctx), request.Body
	current, err := h.owner(ctx, info)
	if err == nil {
		err = need("flow_id", form.FlowID, "decision", form.Decision)
	}
	if err != nil {
		return nil, err
	}
	var scopes []string // nil: all
	switch {
	case form.Decision == "deny":
		scopes = []string{}
	case form.Decision == "allow" && form.Scopes == nil:
	case form.Decision == "allow":
		if scopes = *form.Scopes; len(scopes) == 0 {
			return nil, web.ValidationFailed(web.FieldError{Field: "scopes", Code: "required", Message: "scopes must not be empty; to allow no scope, send the decision deny"})
		}
	default:
		return nil, web.ValidationFailed(web.FieldError{Field: "decision", Code: "unknown_value", Message: "decision must be allow or deny"})
	}
	err = h.Flows.Consent(ctx, oauthTenant(info), form.FlowID, current.UserID, scopes)
	return AnswerConsent200JSONResponse{Body: answered(info, form.FlowID)}, err
}

// SelectAccount goes on with the account that is signed in.
func (h *Handlers) SelectAccount(ctx context.Context, request SelectAccountRequestObject) (SelectAccountResponseObject, error) {
	info, form := web.InfoOf(ctx), request.Body
	current, err := h.owner(ctx, info)
	if err == nil {
		err = need("flow_id", form.FlowID)
	}
	if err == nil {
		err = h.Flows.Choose(ctx, oauthTenant(info), form.FlowID, current.ID)
	}
	return SelectAccount200JSONResponse{Body: answered(info, form.FlowID)}, err
}

func answered(info *web.RequestInfo, flowID string) FlowAnswered {
	body := FlowAnswered{Meta: meta(info)}
	body.Data.RedirectTo = oauth.ResumePath + "?flow=" + url.QueryEscape(flowID)
	return body
}

// ListMyAuthorizations lists the applications that the caller has signed in to.
func (h *Handlers) ListMyAuthorizations(ctx context.Context, request ListMyAuthorizationsRequestObject) (ListMyAuthorizationsResponseObject, error) {
	info := web.InfoOf(ctx)
	userID, err := self(info)
	if err != nil {
		return nil, err
	}
	all, err := h.Flows.Authorizations(ctx, info.Tenant.ID, userID)
	if err != nil {
		return nil, err
	}
	page, limit, next, err := web.Page(h.Cursors, info.Tenant.ID, []string{"listMyAuthorizations", userID}, request.Params.Limit, request.Params.Cursor, all, func(z oauth.Authorization) string { return z.Application.ID })
	if err != nil {
		return nil, err
	}
	return ListMyAuthorizations200JSONResponse{Body: AuthorizationList{Data: profile.Authorizations(page), Meta: ListMeta{RequestID: info.RequestID, Limit: limit, NextCursor: next}}}, nil
}

// EndMyAuthorization takes back what the caller has let an application do.
func (h *Handlers) EndMyAuthorization(ctx context.Context, request EndMyAuthorizationRequestObject) (EndMyAuthorizationResponseObject, error) {
	info := web.InfoOf(ctx)
	current, err := h.person(ctx, info)
	if err == nil {
		err = h.Flows.EndAuthorization(ctx, oauthTenant(info), current.UserID, request.ApplicationID)
	}
	return EndMyAuthorization204Response{}, err
}

// flowError states what is wrong with a flow, or returns nil.
func flowError(err error) *web.Error {
	switch {
	case errors.Is(err, oauth.ErrFlowNotFound):
		return &web.Error{Status: http.StatusNotFound, Code: "flow_not_found", Message: oauth.ErrFlowNotFound.Error()}
	case errors.Is(err, oauth.ErrUserCode):
		return &web.Error{Status: http.StatusBadRequest, Code: "code_invalid", Message: oauth.ErrUserCode.Error()}
	case errors.Is(err, oauth.ErrFlowExpired):
		return &web.Error{Status: http.StatusGone, Code: "flow_expired", Message: oauth.ErrFlowExpired.Error()}
	case errors.Is(err, oauth.ErrScopesNotAsked):
		return web.ValidationFailed(web.FieldError{Field: "scopes", Code: "unknown_value", Message: oauth.ErrScopesNotAsked.Error()})
	case errors.Is(err, oauth.ErrNoAuthorization), errors.Is(err, oauth.ErrApplicationNotFound):
		return &web.Error{Status: http.StatusNotFound, Code: "application_not_found", Message: oauth.ErrNoAuthorization.Error()}
	}
	return nil
}
