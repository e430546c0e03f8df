package pages

import (
	"context"
	"errors"
	"net/http"
	"time"

	"stonetown/api/web"
	"stonetown/identity/branding"
)

// Brandings has the brandings of tenants; [branding.Registry] implements it.
type Brandings interface {
	Of(ctx context.Context, tenantID, mark string) (*branding.Branding, error)
	Picture(ctx context.Context, tenantID string, v branding.Variant) (branding.Picture, error)
}

// maxBrandingTime bounds the time in which the branding of a page of an error is read.
const maxBrandingTime = time.Second

// brandingOf returns the branding of a tenant, which is not nil. A page is shown without one rather than
// not at all.
func (h *Handlers) brandingOf(ctx context.Context, info *web.RequestInfo) (*branding.Branding, error) {
	b, err := h.Brandings.Of(ctx, info.Tenant.ID, info.Tenant.Branding)
	if err != nil {
		return new(branding.Branding), err
	}
	return b, nil
}

// brandingOfError is brandingOf for the page of an error of an operation, which has no request.
func (h *Handlers) brandingOfError(info *web.RequestInfo) *branding.Branding {
	ctx, cancel := context.WithTimeout(context.Background(), maxBrandingTime)
	defer cancel()
	b, _ := h.brandingOf(ctx, info)
	return b
}

// brandingFiles returns the style sheet and the pictures of the branding, which are public.
func (h *Handlers) brandingFiles() map[string]http.HandlerFunc {
	return map[string]http.HandlerFunc{
		branding.StylePath: func(w http.ResponseWriter, r *http.Request) {
			info := web.InfoOf(r.Context())
			b, err := h.brandingOf(r.Context(), info)
			if err != nil && r.Context().Err() == nil {
				h.Internal(r, err)
			}
			web.Document{Body: []byte(b.Style()), MediaType: mediaTypes[".css"], CacheControl: "public, max-age=60"}.Serve(w, r)
		},
		branding.LogoPath: func(w http.ResponseWriter, r *http.Request) {
			v := branding.LightLogo
			if r.URL.Query().Get("variant") == string(branding.DarkLogo) {
				v = branding.DarkLogo
			}
			h.picture(w, r, v)
		},
		branding.IconPath: func(w http.ResponseWriter, r *http.Request) { h.picture(w, r, branding.Icon) },
	}
}

// picture serves a picture. One with the hash of the address never changes; at another address, as in
// an old mail, is the present one.
func (h *Handlers) picture(w http.ResponseWriter, r *http.Request, v branding.Variant) {
	info := web.InfoOf(r.Context())
	found, err := branding.Picture{}, branding.ErrNoLogo
	if info.Tenant.Branding != "" {
		found, err = h.Brandings.Picture(r.Context(), info.Tenant.ID, v)
	}
	if err != nil {
		if errors.Is(err, branding.ErrNoLogo) {
			err = web.NotFound()
		} else if r.Context().Err() == nil {
			h.Internal(r, err)
		}
		own := h.brandingOfError(info)
		h.fail(w, err, info, speechOf(info, own), own)
		return
	}
	served := web.Document{Body: found.Data, MediaType: "image/png", CacheControl: "public, max-age=60"}
	if r.URL.Query().Get("v") == found.Hash {
		served.CacheControl = "public, max-age=31536000, immutable"
	}
	w.Header().Set("Content-Security-Policy", "default-src 'none'; sandbox")
	served.Serve(w, r)
}
