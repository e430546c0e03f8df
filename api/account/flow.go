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

func oauthTenant(call *web.Call) oauth.Tenant {
	return oauth.Tenant{ID: call.Tenant.ID, BaseURL: call.Tenant.BaseURL}
}

// owner is the session of the user who makes a request, and not an application for them: it
// could let itself do whatever it wants.
func (s *Surface) owner(ctx context.Context, call *web.Call) (session.Session, error) {
	if call.Principal.GrantID != "" {
		return session.Session{}, notSignedIn()
	}
	return s.person(ctx, call)
}

// GetFlow says what an application wants, and of whom.
func (s *Surface) GetFlow(ctx context.Context, request GetFlowRequestObject) (GetFlowResponseObject, error) {
	call := web.CallOf(ctx)
	flow, err := s.Flows.Flow(ctx, oauthTenant(call), request.FlowID)
	if err != nil {
		return nil, err
	}
	app, err := s.Flows.ApplicationByClientID(ctx, call.Tenant.ID, flow.Request.ClientID)
	if errors.Is(err, oauth.ErrApplicationNotFound) { // deleted meanwhile, and what it wanted with it
		err = oauth.ErrFlowNotFound
	}
	if err != nil {
		return nil, err
	}
	body := FlowRead{Meta: meta(call)}
	d := &body.Data
	d.Client.Name, d.Client.LogoURI = app.Name, document.OrNull(app.LogoURI)
	d.Scopes, d.GroupScopes, d.Prompt = append([]string{}, flow.Request.Scopes...), []string{}, append([]string{}, flow.Request.Prompt...)
	d.LoginHint, d.Status, d.ExpiresAt = document.OrNull(flow.Request.LoginHint), "sign_in_required", document.Timestamp(flow.ExpiresAt)
	d.Methods = s.Service.Identify(ctx, tenant(call), "")
	if call.Principal != nil && call.Principal.Subject != call.Principal.ClientID {
		d.Status = "ready"
		var refused *oauth.RedirectError
		_, err := s.Flows.Consented(ctx, oauthTenant(call), flow.Request, flow.Answer, call.Principal.Subject)
		if errors.As(err, &refused) {
			if refused.Code == oauth.ConsentRequired {
				d.Status = refused.Code
			}
			err = nil
		}
		if err == nil {
			d.GroupScopes, err = s.groupScopes(ctx, call, app, flow.Request.Scopes)
		}
		if err != nil {
			return nil, err
		}
	}
	d.ScopeDescriptions, err = s.Flows.ScopeDescriptions(ctx, call.Tenant.ID, append(d.Scopes, d.GroupScopes...))
	return GetFlow200JSONResponse{Body: body}, err
}

// groupScopes are those that the groups of the caller bring besides.
func (s *Surface) groupScopes(ctx context.Context, call *web.Call, app oauth.Application, asked []string) ([]string, error) {
	more, err := s.Flows.GroupScopesOf(ctx, oauthTenant(call), app, asked, call.Principal.Subject)
	return append([]string{}, more...), err
}

// AnswerConsent lets an application have what it asks for, or not.
func (s *Surface) AnswerConsent(ctx context.Context, request AnswerConsentRequestObject) (AnswerConsentResponseObject, error) {
	call, form := web.CallOf(ctx), request.Body
	current, err := s.owner(ctx, call)
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
	err = s.Flows.Consent(ctx, oauthTenant(call), form.FlowID, current.UserID, scopes)
	return AnswerConsent200JSONResponse{Body: answered(call, form.FlowID)}, err
}

// SelectAccount goes on with the account that is signed in.
func (s *Surface) SelectAccount(ctx context.Context, request SelectAccountRequestObject) (SelectAccountResponseObject, error) {
	call, form := web.CallOf(ctx), request.Body
	current, err := s.owner(ctx, call)
	if err == nil {
		err = need("flow_id", form.FlowID)
	}
	if err == nil {
		err = s.Flows.Choose(ctx, oauthTenant(call), form.FlowID, current.ID)
	}
	return SelectAccount200JSONResponse{Body: answered(call, form.FlowID)}, err
}

func answered(call *web.Call, flowID string) FlowAnswered {
	body := FlowAnswered{Meta: meta(call)}
	body.Data.RedirectTo = oauth.ResumePath + "?flow=" + url.QueryEscape(flowID)
	return body
}

// ListMyAuthorizations lists the applications that the caller has signed in to.
func (s *Surface) ListMyAuthorizations(ctx context.Context, request ListMyAuthorizationsRequestObject) (ListMyAuthorizationsResponseObject, error) {
	call := web.CallOf(ctx)
	userID, err := self(call)
	if err != nil {
		return nil, err
	}
	all, err := s.Flows.Authorizations(ctx, call.Tenant.ID, userID)
	if err != nil {
		return nil, err
	}
	page, limit, next, err := web.Page(s.Cursors, call.Tenant.ID, []string{"listMyAuthorizations", userID}, request.Params.Limit, request.Params.Cursor, all, func(z oauth.Authorization) string { return z.Application.ID })
	if err != nil {
		return nil, err
	}
	return ListMyAuthorizations200JSONResponse{Body: AuthorizationList{Data: profile.Authorizations(page), Meta: ListMeta{RequestID: call.RequestID, Limit: limit, NextCursor: next}}}, nil
}

// EndMyAuthorization takes back what the caller has let an application do.
func (s *Surface) EndMyAuthorization(ctx context.Context, request EndMyAuthorizationRequestObject) (EndMyAuthorizationResponseObject, error) {
	call := web.CallOf(ctx)
	current, err := s.person(ctx, call)
	if err == nil {
		err = s.Flows.EndAuthorization(ctx, oauthTenant(call), current.UserID, request.ApplicationID)
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
