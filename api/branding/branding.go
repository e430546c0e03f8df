// Package branding has the operations on the look of a tenant and the texts of its mails.
package branding

import (
	"context"
	"errors"
	"net/http"

	"github.com/gorilla/mux"

	"stonetown/api/web"
	"stonetown/identity"
	"stonetown/identity/authn"
	"stonetown/identity/branding"
	"stonetown/identity/mails"
)

// Registry is the part of [branding.Registry] that the operations use.
type Registry interface {
	Get(ctx context.Context, tenantID string) (branding.Branding, error)
	Update(ctx context.Context, tenantID string, change func(*branding.Branding)) (branding.Branding, error)
	SetLogo(ctx context.Context, tenantID string, v branding.Variant, logo, icon branding.Picture) (branding.Branding, error)
	RemoveLogo(ctx context.Context, tenantID string, v branding.Variant) error
}

// Handlers implements the operations. It is safe for concurrent use.
type Handlers struct {
	Registry Registry
	Mails    Mails
	Sender   Sender
	Cursors  *web.Cursors
}

var _ StrictServerInterface = (*Handlers)(nil)

// Mount adds the operations to a router. fail answers requests that end in an error.
func (h *Handlers) Mount(router *mux.Router, fail func(w http.ResponseWriter, r *http.Request, err error)) {
	HandlerWithOptions(NewStrictHandler(h, fail), GorillaServerOptions{BaseRouter: router, ErrorHandlerFunc: web.Parameters(fail)})
}

// Errors is the error format of the operations.
var Errors = web.ErrorFormat{Translate: translate}

func translate(err error) *web.Error {
	var invalid *branding.InvalidError
	if errors.As(err, &invalid) {
		var v web.Validation
		for _, f := range invalid.Faults {
			v.Add(f.Field, f.Code, f.Message)
		}
		return web.ValidationFailed(v.Faults...)
	}
	var text *mails.InvalidError
	if errors.As(err, &text) {
		var v web.Validation
		for _, f := range text.Faults {
			v.Add(f.Field, f.Code, f.Message)
		}
		return web.ValidationFailed(v.Faults...)
	}
	var slow *authn.SlowDownError
	switch {
	case errors.As(err, &slow):
		return web.SlowDown(slow.RetryAfter)
	case errors.Is(err, authn.ErrUnverified):
		return &web.Error{Status: http.StatusConflict, Code: "email_not_verified", Message: "test mails are sent to verified addresses only"}
	case errors.Is(err, errNoMail):
		return &web.Error{Status: http.StatusNotFound, Code: "mail_template_not_found", Message: errNoMail.Error()}
	case errors.Is(err, errNoUser), errors.Is(err, identity.ErrUserNotFound):
		return &web.Error{Status: http.StatusForbidden, Code: "user_required", Message: errNoUser.Error()}
	}
	var picture *branding.PictureError
	if errors.As(err, &picture) {
		return &web.Error{Status: http.StatusBadRequest, Code: picture.Code, Message: picture.Message}
	}
	return nil
}

// GetBranding reads the branding.
func (h *Handlers) GetBranding(ctx context.Context, _ GetBrandingRequestObject) (GetBrandingResponseObject, error) {
	info := web.InfoOf(ctx)
	b, err := h.Registry.Get(ctx, info.Tenant.ID)
	return GetBranding200JSONResponse{Body: read(info, b)}, err
}

// PatchBranding changes the branding.
func (h *Handlers) PatchBranding(ctx context.Context, request PatchBrandingRequestObject) (PatchBrandingResponseObject, error) {
	info, members := web.InfoOf(ctx), *request.Body
	if err := web.RefuseImmutable(web.Member{Name: "logo", Value: members["logo"]}); err != nil {
		return nil, err
	}
	change, err := changes(members)
	if err != nil {
		return nil, err
	}
	b, err := h.Registry.Update(ctx, info.Tenant.ID, change)
	return PatchBranding200JSONResponse{Body: read(info, b)}, err
}

// PutBrandingLogo sets the logo.
func (h *Handlers) PutBrandingLogo(ctx context.Context, request PutBrandingLogoRequestObject) (PutBrandingLogoResponseObject, error) {
	info := web.InfoOf(ctx)
	v, err := variant(string(request.Params.Variant))
	if err != nil {
		return nil, err
	}
	logo, icon, err := branding.Decode(request.Body)
	if err != nil {
		return nil, err
	}
	b, err := h.Registry.SetLogo(ctx, info.Tenant.ID, v, logo, icon)
	return PutBrandingLogo200JSONResponse{Body: read(info, b)}, err
}

// DeleteBrandingLogo removes the logo.
func (h *Handlers) DeleteBrandingLogo(ctx context.Context, request DeleteBrandingLogoRequestObject) (DeleteBrandingLogoResponseObject, error) {
	v, err := variant(string(request.Params.Variant))
	if err != nil {
		return nil, err
	}
	return DeleteBrandingLogo204Response{}, h.Registry.RemoveLogo(ctx, web.InfoOf(ctx).Tenant.ID, v)
}

// variant reads the variant of a logo; light if it is absent.
func variant(value string) (branding.Variant, error) {
	var v web.Validation
	web.OneOf(&v, "variant", branding.Variant(value), branding.LightLogo, branding.DarkLogo)
	if value == "" {
		return branding.LightLogo, nil
	}
	return branding.Variant(value), v.Err()
}

func read(info *web.RequestInfo, b branding.Branding) BrandingRead {
	return BrandingRead{Data: b.Document(), Meta: Meta{RequestID: info.RequestID}}
}
