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
	"stonetown/oauth/access"
	"stonetown/oauth/authorization"
	"stonetown/oauth/client"
	"stonetown/oauth/detail"
	"stonetown/oauth/protocol"
)

func oauthTenant(info *web.RequestInfo) protocol.Tenant {
	return protocol.Tenant{ID: info.Tenant.ID, BaseURL: info.Tenant.BaseURL}
}

// owner is person, but refuses tokens of applications: an application must not answer its own
// request for consent.
func (h *Handlers) owner(ctx context.Context, info *web.RequestInfo) (session.Session, error) {
	if info.Principal.GrantID != "" {
		return session.Session{}, notSignedIn()
	}
	return h.person(ctx, info)
}

// GetFlow returns the authorization request that a user is signing in for.
func (h *Handlers) GetFlow(ctx context.Context, request GetFlowRequestObject) (GetFlowResponseObject, error) {
	info := web.InfoOf(ctx)
	pending, err := h.Requests.Pending(ctx, oauthTenant(info), request.FlowID)
	if err != nil {
		return nil, err
	}
	app, err := h.Clients.ByClientID(ctx, info.Tenant.ID, pending.Request.ClientID)
	if errors.Is(err, client.ErrNotFound) { // deleted meanwhile, with its requests
		err = authorization.ErrRequestNotFound
	}
	if err != nil {
		return nil, err
	}
	body := FlowRead{Meta: meta(info)}
	d := &body.Data
	d.Client.Name, d.Client.LogoURI, d.ClientHost = app.Name, document.OrNull(app.LogoURI), document.OrNull(app.HostOfDocument())
	d.Scopes, d.GroupScopes, d.Prompt = append([]string{}, pending.Request.Scopes...), []string{}, append([]string{}, pending.Request.Prompt...)
	d.Claims = append([]string{}, pending.Request.Claims.Names()...)
	d.AuthorizationDetails = append([]detail.Detail{}, pending.Request.Details...)
	d.LoginHint, d.Status, d.ExpiresAt = document.OrNull(pending.Request.LoginHint), "sign_in_required", document.Timestamp(pending.ExpiresAt)
	d.Methods = h.Service.Identify(ctx, tenant(info), "")
	if d.Connections, err = h.connections(ctx, info); err != nil {
		return nil, err
	}
	if info.Principal != nil && info.Principal.Subject != info.Principal.ClientID {
		d.Status = "ready"
		var refused *authorization.RedirectError
		_, err := h.Requests.Consented(ctx, oauthTenant(info), pending.Request, pending.Answer, info.Principal.Subject)
		if errors.As(err, &refused) {
			if refused.Code == protocol.ConsentRequired {
				d.Status = refused.Code
			}
			err = nil
		}
		if err == nil {
			d.GroupScopes, err = h.groupScopes(ctx, info, app, pending.Request.Scopes)
		}
		if err != nil {
			return nil, err
		}
	}
	d.ScopeDescriptions, err = h.Scopes.Descriptions(ctx, info.Tenant.ID, append(d.Scopes, d.GroupScopes...))
	return GetFlow200JSONResponse{Body: body}, err
}

// groupScopes returns the additional scopes of the groups of the caller.
func (h *Handlers) groupScopes(ctx context.Context, info *web.RequestInfo, app client.Application, asked []string) ([]string, error) {
	more, err := h.Tokens.GroupScopesOf(ctx, oauthTenant(info), app, asked, info.Principal.Subject)
	return append([]string{}, more...), err
}

// AnswerConsent allows or denies an authorization request.
func (h *Handlers) AnswerConsent(ctx context.Context, request AnswerConsentRequestObject) (AnswerConsentResponseObject, error) {
	info, form := web.InfoOf(ctx), request.Body
	current, err := h.owner(ctx, info)
	if err == nil {
		err = need("flow_id", form.FlowID, "decision", form.Decision)
	}
	if err != nil {
		return nil, err
	}
	var scopes, claims []string // nil: all
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
	if form.Claims != nil {
		claims = append([]string{}, *form.Claims...)
	} else if scopes != nil { // a caller that lists scopes may not have shown the claims
		claims = []string{}
	}
	err = h.Requests.Consent(ctx, oauthTenant(info), form.FlowID, current.UserID, scopes, claims)
	return AnswerConsent200JSONResponse{Body: answered(info, form.FlowID)}, err
}

// SelectAccount continues an authorization request with the account of the session.
func (h *Handlers) SelectAccount(ctx context.Context, request SelectAccountRequestObject) (SelectAccountResponseObject, error) {
	info, form := web.InfoOf(ctx), request.Body
	current, err := h.owner(ctx, info)
	if err == nil {
		err = need("flow_id", form.FlowID)
	}
	if err == nil {
		err = h.Requests.Choose(ctx, oauthTenant(info), form.FlowID, current.ID)
	}
	return SelectAccount200JSONResponse{Body: answered(info, form.FlowID)}, err
}

func answered(info *web.RequestInfo, flowID string) FlowAnswered {
	body := FlowAnswered{Meta: meta(info)}
	body.Data.RedirectTo = protocol.ResumePath + "?flow=" + url.QueryEscape(flowID)
	return body
}

// ListMyAuthorizations lists the applications that the caller has signed in to.
func (h *Handlers) ListMyAuthorizations(ctx context.Context, request ListMyAuthorizationsRequestObject) (ListMyAuthorizationsResponseObject, error) {
	info := web.InfoOf(ctx)
	userID, err := self(info)
	if err != nil {
		return nil, err
	}
	all, err := h.Access.Authorizations(ctx, info.Tenant.ID, userID)
	if err != nil {
		return nil, err
	}
	page, limit, next, err := web.Page(h.Cursors, info.Tenant.ID, []string{"listMyAuthorizations", userID}, request.Params.Limit, request.Params.Cursor, all, func(z access.Authorization) string { return z.Application.ID })
	if err != nil {
		return nil, err
	}
	return ListMyAuthorizations200JSONResponse{Body: AuthorizationList{Data: profile.Authorizations(page), Meta: ListMeta{RequestID: info.RequestID, Limit: limit, NextCursor: next}}}, nil
}

// EndMyAuthorization revokes the access that the caller has given to an application.
func (h *Handlers) EndMyAuthorization(ctx context.Context, request EndMyAuthorizationRequestObject) (EndMyAuthorizationResponseObject, error) {
	info := web.InfoOf(ctx)
	current, err := h.person(ctx, info)
	if err == nil {
		err = h.Access.EndAuthorization(ctx, oauthTenant(info), current.UserID, request.ApplicationID)
	}
	return EndMyAuthorization204Response{}, err
}

// requestError returns the response to an error of an authorization request, or nil.
func requestError(err error) *web.Error {
	switch {
	case errors.Is(err, authorization.ErrRequestNotFound):
		return &web.Error{Status: http.StatusNotFound, Code: "flow_not_found", Message: authorization.ErrRequestNotFound.Error()}
	case errors.Is(err, access.ErrUserCode):
		return &web.Error{Status: http.StatusBadRequest, Code: "code_invalid", Message: access.ErrUserCode.Error()}
	case errors.Is(err, authorization.ErrRequestExpired):
		return &web.Error{Status: http.StatusGone, Code: "flow_expired", Message: authorization.ErrRequestExpired.Error()}
	case errors.Is(err, authorization.ErrScopesNotAsked):
		return web.ValidationFailed(web.FieldError{Field: "scopes", Code: "unknown_value", Message: authorization.ErrScopesNotAsked.Error()})
	case errors.Is(err, authorization.ErrClaimsNotAsked):
		return web.ValidationFailed(web.FieldError{Field: "claims", Code: "unknown_value", Message: authorization.ErrClaimsNotAsked.Error()})
	case errors.Is(err, access.ErrNoAuthorization), errors.Is(err, client.ErrNotFound):
		return &web.Error{Status: http.StatusNotFound, Code: "application_not_found", Message: access.ErrNoAuthorization.Error()}
	}
	return nil
}
