package applications

import (
	"context"
	"encoding/json"

	"stonetown/api/web"
	"stonetown/oauth/client"
)

// previewedClaims are the claims that a token would have.
type previewedClaims struct {
	IDToken     map[string]json.RawMessage `json:"id_token"`
	AccessToken map[string]json.RawMessage `json:"access_token"`
	UserInfo    map[string]json.RawMessage `json:"userinfo"`
	Omitted     []omittedClaim             `json:"omitted"`
}

type omittedClaim struct {
	Name   string `json:"name"`
	Reason string `json:"reason"`
}

// PreviewApplicationClaims finds the claims of a token that is not issued.
func (h *Handlers) PreviewApplicationClaims(ctx context.Context, request PreviewApplicationClaimsRequestObject) (PreviewApplicationClaimsResponseObject, error) {
	info, in := web.InfoOf(ctx), *request.Body
	for _, scope := range []string{"users:read", "resources:read"} {
		if !info.Principal.Scopes.Has(scope) {
			return nil, web.InsufficientScope(info, scope)
		}
	}
	a, err := h.Clients.ByID(ctx, info.Tenant.ID, request.ApplicationID)
	if err != nil {
		return nil, err
	}
	if in.Claims != nil {
		if a, err = a.WithClaims(*in.Claims); err != nil {
			return nil, err
		}
	}
	scopes := a.AllowedScopes
	if in.Scopes != nil {
		scopes = *in.Scopes
	}
	if in.UserID == "" && !a.ActsForItself() {
		return nil, web.ValidationFailed(web.FieldError{Field: "user_id", Code: "required", Message: "user_id is required, because the application gets no tokens without a user"})
	}
	found, err := h.Claims.Preview(ctx, info.Tenant.ID, a, in.UserID, scopes)
	if err != nil {
		return nil, err
	}
	d := previewedClaims{found.In[client.InIDToken], found.In[client.InAccessToken], found.In[client.InUserInfo], []omittedClaim{}}
	for _, o := range found.Omitted {
		d.Omitted = append(d.Omitted, omittedClaim{o.Name, string(o.Reason)})
	}
	return PreviewApplicationClaims200JSONResponse{Body: ClaimsPreview{Data: d, Meta: meta(info)}}, nil
}
