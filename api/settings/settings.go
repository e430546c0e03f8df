// Package settings is the surface on which a tenant decides for itself what the
// deployment decides otherwise.
package settings

import (
	"context"
	"maps"
	"net/http"
	"reflect"
	"slices"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
	"github.com/gorilla/mux"

	"stonetown/api/web"
	"stonetown/controlplane"
	"stonetown/identity"
	"stonetown/internal/eventlog"
	"stonetown/internal/ratelimit"
	"stonetown/internal/sqldb"
	"stonetown/oauth"
)

// Tenants is what the surface needs of [controlplane.Directory].
type Tenants interface {
	TenantByID(ctx context.Context, tenantID string) (controlplane.Tenant, error)
	UpdateRateLimits(ctx context.Context, tenantID string, set ratelimit.Limits, clear []ratelimit.Counted,
		with func(ctx context.Context, tx *sqldb.Tx, before, after ratelimit.Limits) error) (after ratelimit.Limits, err error)
}

// Users is what the surface needs of [identity.Directory].
type Users interface {
	Settings(ctx context.Context, tenantID string) (identity.Settings, error)
	UpdateSettings(ctx context.Context, tx *sqldb.Tx, tenantID string, change func(*identity.Settings)) (before, after identity.Settings, err error)
}

// Applications is what the surface needs of [oauth.Service].
type Applications interface {
	Settings(ctx context.Context, tenantID string) (oauth.Settings, error)
	UpdateSettings(ctx context.Context, tx *sqldb.Tx, tenantID string, change func(*oauth.Settings)) (before, after oauth.Settings, err error)
}

// Surface implements the operations. It is safe for concurrent use.
type Surface struct {
	Tenants      Tenants
	Users        Users
	Applications Applications
	Keys         Keys
	Cursors      *web.Cursors
}

var _ StrictServerInterface = (*Surface)(nil)

// Mount adds the operations to a router. fail answers requests that end in an
// error.
func (s *Surface) Mount(router *mux.Router, fail func(w http.ResponseWriter, r *http.Request, err error)) {
	HandlerWithOptions(NewStrictHandler(s, fail), GorillaServerOptions{BaseRouter: router, ErrorHandlerFunc: web.Parameters(fail)})
}

// GetSettings reads the settings.
func (s *Surface) GetSettings(ctx context.Context, _ GetSettingsRequestObject) (GetSettingsResponseObject, error) {
	call := web.CallOf(ctx)
	t, err := s.Tenants.TenantByID(ctx, call.Tenant.ID) // the call's may be a moment old
	if err != nil {
		return nil, err
	}
	users, err := s.Users.Settings(ctx, call.Tenant.ID)
	if err != nil {
		return nil, err
	}
	applications, err := s.Applications.Settings(ctx, call.Tenant.ID)
	if err != nil {
		return nil, err
	}
	return GetSettings200JSONResponse{Body: read(call, settings(t.RateLimits, users, applications))}, nil
}

// PatchSettings changes settings.
func (s *Surface) PatchSettings(ctx context.Context, request PatchSettingsRequestObject) (PatchSettingsResponseObject, error) {
	call := web.CallOf(ctx)
	set, clear, err := limitsOf(request.Body.RateLimits)
	if err != nil {
		return nil, err
	}
	changeUsers, err := usersOf(request.Body)
	if err != nil {
		return nil, err
	}
	changeApplications, err := applicationsOf(request.Body)
	if err != nil {
		return nil, err
	}
	var now Settings
	_, err = s.Tenants.UpdateRateLimits(ctx, call.Tenant.ID, set, clear, func(ctx context.Context, tx *sqldb.Tx, limitsBefore, limits ratelimit.Limits) error {
		usersBefore, users, err := s.Users.UpdateSettings(ctx, tx, call.Tenant.ID, changeUsers)
		if err != nil {
			return err
		}
		applicationsBefore, applications, err := s.Applications.UpdateSettings(ctx, tx, call.Tenant.ID, changeApplications)
		if err != nil {
			return err
		}
		before := settings(limitsBefore, usersBefore, applicationsBefore)
		now = settings(limits, users, applications)
		changes := difference(before, now)
		if len(changes) == 0 {
			return nil
		}
		var b sqldb.Batch
		eventlog.Append(&b, call.Tenant.ID, call.Event(eventlog.TenantSettingsUpdated, updated{now, changes}))
		return tx.Send(ctx, &b)
	})
	if err != nil {
		return nil, err
	}
	return PatchSettings200JSONResponse{Body: read(call, now)}, nil
}

// updated is the data of an event.
type updated struct {
	Settings Settings          `json:"settings"`
	Changes  map[string][2]any `json:"changes"` // from, to
}

func settings(limits ratelimit.Limits, users identity.Settings, applications oauth.Settings) Settings {
	s := Settings{RateLimits: limits.Text()}
	wireUsers(&s, users)
	wireApplications(&s, applications)
	return s
}

// difference is the members of two settings that differ.
func difference(before, after Settings) map[string][2]any {
	changes := map[string][2]any{}
	from, to := reflect.ValueOf(before), reflect.ValueOf(after)
	for i := range from.NumField() {
		if a, b := from.Field(i).Interface(), to.Field(i).Interface(); !reflect.DeepEqual(a, b) {
			changes[from.Type().Field(i).Tag.Get("json")] = [2]any{a, b}
		}
	}
	return changes
}

func read(call *web.Call, s Settings) SettingsRead {
	return SettingsRead{Data: s, Meta: Meta{RequestID: call.RequestID}}
}

// limitsOf reads a merge patch: limits to set and, as null, to take back.
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
