package account

import (
	"context"
	"errors"
	"net/http"

	"stonetown/api/profile"
	"stonetown/api/web"
	"stonetown/oauth"
)

// Flows knows what applications want that people are signing in for; [oauth.Service] does.
type Flows interface {
	Flow(ctx context.Context, t oauth.Tenant, id string) (oauth.Flow, error)
	ApplicationByClientID(ctx context.Context, tenantID, clientID string) (oauth.Application, error)
}

// GetFlow says what an application wants.
func (s *Surface) GetFlow(ctx context.Context, request GetFlowRequestObject) (GetFlowResponseObject, error) {
	call := web.CallOf(ctx)
	flow, err := s.Flows.Flow(ctx, oauth.Tenant{ID: call.Tenant.ID, BaseURL: call.Tenant.BaseURL}, request.FlowID)
	if err == nil {
		var app oauth.Application
		if app, err = s.Flows.ApplicationByClientID(ctx, call.Tenant.ID, flow.Request.ClientID); err == nil {
			body := FlowRead{Meta: meta(call)}
			d := &body.Data
			d.Client.Name, d.Scopes, d.Prompt = app.Name, append([]string{}, flow.Request.Scopes...), append([]string{}, flow.Request.Prompt...)
			d.LoginHint, d.Status, d.ExpiresAt = profile.OrNull(flow.Request.LoginHint), "sign_in_required", web.Timestamp(flow.ExpiresAt)
			d.Methods = s.Service.Identify(ctx, tenant(call), "")
			return GetFlow200JSONResponse{Body: body}, nil
		}
	}
	switch {
	case errors.Is(err, oauth.ErrFlowNotFound), errors.Is(err, oauth.ErrApplicationNotFound):
		err = &web.Error{Status: http.StatusNotFound, Code: "flow_not_found", Message: oauth.ErrFlowNotFound.Error()}
	case errors.Is(err, oauth.ErrFlowExpired):
		err = &web.Error{Status: http.StatusGone, Code: "flow_expired", Message: oauth.ErrFlowExpired.Error()}
	}
	return nil, err
}
