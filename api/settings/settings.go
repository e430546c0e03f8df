// Package settings has the operations on the settings of a tenant, which override those of
// the deployment, and on its signing keys and certificates.
package settings

import (
	"context"
	"maps"
	"net/http"
	"slices"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
	"github.com/gorilla/mux"

	"stonetown/api/web"
	"stonetown/internal/ratelimit"
	"stonetown/settings"
)

// Service is the part of [settings.Service] that the operations use.
type Service interface {
	Settings(ctx context.Context, tenantID string) (settings.Settings, error)
	UpdateSettings(ctx context.Context, tenantID string, change settings.Change) (after settings.Settings, err error)
}

// Handlers implements the operations. It is safe for concurrent use.
type Handlers struct {
	Service  Service
	Keys     Keys
	SAMLKeys SAMLKeys
	Cursors  *web.Cursors
}

var _ StrictServerInterface = (*Handlers)(nil)

// Mount adds the operations to a router. fail answers requests that end in an
// error.
func (h *Handlers) Mount(router *mux.Router, fail func(w http.ResponseWriter, r *http.Request, err error)) {
	HandlerWithOptions(NewStrictHandler(h, fail), GorillaServerOptions{BaseRouter: router, ErrorHandlerFunc: web.Parameters(fail)})
}

// GetSettings reads the settings.
func (h *Handlers) GetSettings(ctx context.Context, _ GetSettingsRequestObject) (GetSettingsResponseObject, error) {
	info := web.InfoOf(ctx)
	found, err := h.Service.Settings(ctx, info.Tenant.ID)
	return GetSettings200JSONResponse{Body: read(info, found)}, err
}

// PatchSettings changes settings.
func (h *Handlers) PatchSettings(ctx context.Context, request PatchSettingsRequestObject) (PatchSettingsResponseObject, error) {
	info := web.InfoOf(ctx)
	var change settings.Change
	var err error
	if change.SetLimits, change.ClearLimits, err = limitsOf(request.Body.RateLimits); err != nil {
		return nil, err
	}
	if change.Users, err = usersOf(request.Body); err != nil {
		return nil, err
	}
	if change.Applications, err = applicationsOf(request.Body); err != nil {
		return nil, err
	}
	now, err := h.Service.UpdateSettings(ctx, info.Tenant.ID, change)
	return PatchSettings200JSONResponse{Body: read(info, now)}, err
}

func read(info *web.RequestInfo, s settings.Settings) SettingsRead {
	return SettingsRead{Data: s.Document(), Meta: Meta{RequestID: info.RequestID}}
}

// limitsOf reads a merge patch: limits to set and, as null, to remove.
func limitsOf(patch jsontext.Value) (set ratelimit.Limits, clear []ratelimit.Counted, err error) {
	var v web.Validation
	switch patch.Kind() {
	case 0:
		return nil, nil, nil
	case 'n':
		return nil, ratelimit.All(), nil
	case '{':
	default:
		v.Add("rate_limits", "type_invalid", "must be an object or null")
		return nil, nil, v.Err()
	}
	var texts map[string]jsontext.Value
	if err := json.Unmarshal(patch, &texts); err != nil {
		return nil, nil, err
	}
	set = ratelimit.Limits{}
	for _, name := range slices.Sorted(maps.Keys(texts)) {
		field := "rate_limits/" + name
		counted, err := ratelimit.ParseCounted(name)
		if err != nil {
			v.Add(field, "unknown_value", err.Error())
			continue
		}
		if texts[name].Kind() == 'n' {
			clear = append(clear, counted)
			continue
		}
		var text string
		if json.Unmarshal(texts[name], &text) != nil {
			v.Add(field, "type_invalid", "must be a string or null")
			continue
		}
		if set[counted], err = ratelimit.ParseLimit(text); err != nil {
			v.Add(field, "limit_invalid", err.Error())
		}
	}
	return set, clear, v.Err()
}
