// Package applications is the surface on which administrators keep the OAuth clients of a
// tenant.
package applications

import (
	"context"
	"net/http"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/gorilla/mux"

	"stonetown/api/web"
	"stonetown/internal/document"
	"stonetown/oauth"
)

// Service is what the surface needs of [oauth.Service].
type Service interface {
	Applications(ctx context.Context, tenantID string, f oauth.ApplicationFilter, after *oauth.ApplicationPosition, limit int) ([]oauth.Application, error)
	Application(ctx context.Context, tenantID, applicationID string) (oauth.Application, error)
	Register(ctx context.Context, tenantID string, a oauth.Application) (app oauth.Application, secret string, err error)
	UpdateApplication(ctx context.Context, tenantID, applicationID, by string, change func(*oauth.Application)) (oauth.Application, error)
	DeleteApplication(ctx context.Context, tenantID, applicationID, by string) error
	Settle(ctx context.Context)
	InUse(ctx context.Context, a oauth.Application) (bool, error)
	RotateSecret(ctx context.Context, tenantID, applicationID, by string, previousTTL *time.Duration) (oauth.Rotated, error)
}

// Surface implements the operations. It is safe for concurrent use.
type Surface struct {
	Service Service
	Cursors *web.Cursors
}

var _ StrictServerInterface = (*Surface)(nil)

// Mount adds the operations to a router. fail answers requests that end in an
// error.
func (s *Surface) Mount(router *mux.Router, fail func(w http.ResponseWriter, r *http.Request, err error)) {
	HandlerWithOptions(NewStrictHandler(s, fail), GorillaServerOptions{BaseRouter: router, ErrorHandlerFunc: web.Parameters(fail)})
}

// position is where a page of the list ended.
type position struct {
	At int64  `json:"a"` // microseconds since 1970
	ID string `json:"i"`
}

// ListApplications lists applications.
func (s *Surface) ListApplications(ctx context.Context, request ListApplicationsRequestObject) (ListApplicationsResponseObject, error) {
	call, params := web.CallOf(ctx), request.Params
	limit, err := web.Limit(params.Limit)
	if err != nil {
		return nil, err
	}
	filter, err := filterOf(params)
	if err != nil {
		return nil, err
	}
	list := []string{"listApplications", string(params.Type), string(params.State), params.Q}
	var after *oauth.ApplicationPosition
	if params.Cursor != "" {
		var p position
		if err := s.Cursors.Resume(call.Tenant.ID, list, params.Cursor, &p); err != nil {
			return nil, err
		}
		after = &oauth.ApplicationPosition{CreatedAt: time.UnixMicro(p.At), ID: p.ID}
	}
	found, err := s.Service.Applications(ctx, call.Tenant.ID, filter, after, limit+1)
	if err != nil {
		return nil, err
	}
	body := ApplicationList{Data: []ApplicationListItem{}, Meta: ListMeta{RequestID: call.RequestID, Limit: limit}}
	for _, a := range found[:min(limit, len(found))] {
		body.Data = append(body.Data, ApplicationListItem{
			ID: a.ID, ClientID: a.ClientID, Name: a.Name, Type: string(a.Type), State: string(a.State),
			DynamicallyRegistered: a.Registration != nil, CreatedAt: document.Timestamp(a.CreatedAt),
		})
	}
	if len(found) > limit {
		last := found[limit-1]
		cursor, err := s.Cursors.Next(call.Tenant.ID, list, position{last.CreatedAt.UnixMicro(), last.ID})
		if err != nil {
			return nil, err
		}
		body.Meta.NextCursor = &cursor
	}
	return ListApplications200JSONResponse{Body: body}, nil
}

// CreateApplication adds an application.
func (s *Surface) CreateApplication(ctx context.Context, request CreateApplicationRequestObject) (CreateApplicationResponseObject, error) {
	call := web.CallOf(ctx)
	change, err := form(*request.Body).read()
	if err != nil {
		return nil, err
	}
	var kind string
	_ = json.Unmarshal((*request.Body)["type"], &kind) // what is no type is refused as one
	a := *oauth.ApplicationType(kind).Defaults()
	a.ChangedBy = call.Principal.Subject
	change(&a)
	a, secret, err := s.Service.Register(ctx, call.Tenant.ID, a)
	if err != nil {
		return nil, err
	}
	d, err := s.document(ctx, call, a)
	if err != nil {
		return nil, err
	}
	body := ApplicationCreated{Data: createdApplication{d, secret}, Meta: meta(call)}
	return CreateApplication201JSONResponse{Body: body, Headers: CreateApplication201ResponseHeaders{Location: "/api/v1/applications/" + a.ID}}, nil
}

// GetApplication reads an application.
func (s *Surface) GetApplication(ctx context.Context, request GetApplicationRequestObject) (GetApplicationResponseObject, error) {
	call := web.CallOf(ctx)
	a, err := s.Service.Application(ctx, call.Tenant.ID, request.ApplicationID)
	if err != nil {
		return nil, err
	}
	body, err := s.answer(ctx, call, a)
	return GetApplication200JSONResponse{Body: body}, err
}

// PatchApplication changes an application.
func (s *Surface) PatchApplication(ctx context.Context, request PatchApplicationRequestObject) (PatchApplicationResponseObject, error) {
	call, members := web.CallOf(ctx), *request.Body
	if err := web.RefuseImmutable(
		web.Member{Name: "id", Value: members["id"]}, web.Member{Name: "client_id", Value: members["client_id"]},
		web.Member{Name: "type", Value: members["type"]}, web.Member{Name: "created_at", Value: members["created_at"]},
	); err != nil {
		return nil, err
	}
	change, err := form(members).read()
	if err != nil {
		return nil, err
	}
	a, err := s.Service.UpdateApplication(ctx, call.Tenant.ID, request.ApplicationID, call.Principal.Subject, change)
	if err != nil {
		return nil, err
	}
	body, err := s.answer(ctx, call, a)
	return PatchApplication200JSONResponse{Body: body}, err
}

// DeleteApplication removes an application.
func (s *Surface) DeleteApplication(ctx context.Context, request DeleteApplicationRequestObject) (DeleteApplicationResponseObject, error) {
	call := web.CallOf(ctx)
	if err := s.delete(ctx, call, request.ApplicationID); err != nil {
		return nil, err
	}
	s.Service.Settle(ctx)
	return DeleteApplication204Response{}, nil
}

func (s *Surface) delete(ctx context.Context, call *web.Call, applicationID string) error {
	return s.Service.DeleteApplication(ctx, call.Tenant.ID, applicationID, call.Principal.Subject)
}

// RotateSecret gives an application a new secret.
func (s *Surface) RotateSecret(ctx context.Context, request RotateSecretRequestObject) (RotateSecretResponseObject, error) {
	call := web.CallOf(ctx)
	var ttl *time.Duration
	if given := request.Body.PreviousTTLS; given != nil {
		ttl = new(time.Duration(*given) * time.Second)
		if *given < 0 || *ttl > oauth.MostPreviousSecretTTL {
			return nil, web.ValidationFailed(web.FieldError{Field: "previous_ttl_s", Code: "out_of_range", Message: "previous_ttl_s must be between 0 and 604800"})
		}
	}
	r, err := s.Service.RotateSecret(ctx, call.Tenant.ID, request.ApplicationID, call.Principal.Subject, ttl)
	body := SecretRotated{Meta: meta(call)}
	body.Data.ClientSecret, body.Data.PreviousExpiresAt = r.Secret, document.Timestamp(r.PreviousExpiresAt)
	return RotateSecret200JSONResponse{Body: body}, err
}

// setState enables or disables an application.
func (s *Surface) setState(ctx context.Context, call *web.Call, applicationID string, state oauth.ApplicationState) (oauth.Application, error) {
	return s.Service.UpdateApplication(ctx, call.Tenant.ID, applicationID, call.Principal.Subject, func(a *oauth.Application) { a.State = state })
}

// DisableApplication keeps an application from getting tokens. Those it has are good until
// they expire.
func (s *Surface) DisableApplication(ctx context.Context, request DisableApplicationRequestObject) (DisableApplicationResponseObject, error) {
	call := web.CallOf(ctx)
	a, err := s.setState(ctx, call, request.ApplicationID, oauth.Disabled)
	if err != nil {
		return nil, err
	}
	body, err := s.answer(ctx, call, a)
	return DisableApplication200JSONResponse{Body: body}, err
}

// EnableApplication lets a disabled application get tokens again.
func (s *Surface) EnableApplication(ctx context.Context, request EnableApplicationRequestObject) (EnableApplicationResponseObject, error) {
	call := web.CallOf(ctx)
	a, err := s.setState(ctx, call, request.ApplicationID, oauth.Enabled)
	if err != nil {
		return nil, err
	}
	body, err := s.answer(ctx, call, a)
	return EnableApplication200JSONResponse{Body: body}, err
}
