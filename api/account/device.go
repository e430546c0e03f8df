package account

import (
	"context"

	"stonetown/api/web"
	"stonetown/identity/session"
	"stonetown/internal/document"
	"stonetown/oauth/access"
)

// AnswerDevice returns the request of a device, or answers it.
func (h *Handlers) AnswerDevice(ctx context.Context, request AnswerDeviceRequestObject) (AnswerDeviceResponseObject, error) {
	info, form := web.InfoOf(ctx), request.Body
	current, err := h.owner(ctx, info)
	if err == nil {
		err = need("user_code", form.UserCode)
	}
	if err != nil {
		return nil, err
	}
	status, ok := map[string]string{"": "pending", "allow": "allowed", "deny": "denied"}[form.Decision]
	if !ok {
		return nil, web.ValidationFailed(web.FieldError{Field: "decision", Code: "unknown_value", Message: "decision must be allow or deny"})
	}
	d, err := h.Requests.Device(ctx, oauthTenant(info), form.UserCode)
	if err != nil {
		return nil, err
	}
	body := DeviceRead{Meta: meta(info)}
	wants := &body.Data
	wants.Client.Name, wants.Client.LogoURI = d.Application.Name, document.OrNull(d.Application.LogoURI)
	wants.Scopes, wants.IP, wants.Status = append([]string{}, d.Scopes...), d.ClientIP, status
	if wants.GroupScopes, err = h.groupScopes(ctx, info, d.Application, d.Scopes); err == nil {
		wants.ScopeDescriptions, err = h.Scopes.Descriptions(ctx, info.Tenant.ID, append(wants.Scopes, wants.GroupScopes...))
	}
	if err == nil && form.Decision != "" {
		err = h.Requests.AnswerDevice(ctx, oauthTenant(info), form.UserCode, proved(current), form.Decision == "allow")
	}
	return AnswerDevice200JSONResponse{Body: body}, err
}

// proved returns the authentication of a session.
func proved(s session.Session) access.Authentication {
	return access.Authentication{UserID: s.UserID, SessionID: s.ID, Methods: s.Methods, AuthTime: s.AuthTime, SecondFactor: s.SecondFactor, Claims: s.Claims}
}
