package people

import (
	"context"

	"stonetown/api/profile"
	"stonetown/api/web"
	"stonetown/internal/document"
	"stonetown/oauth/access"
	"stonetown/oauth/protocol"
)

// ListUserApplications lists the applications that a user has signed in to.
func (h *Handlers) ListUserApplications(ctx context.Context, request ListUserApplicationsRequestObject) (ListUserApplicationsResponseObject, error) {
	info := web.InfoOf(ctx)
	if _, err := h.Directory.User(ctx, info.Tenant.ID, request.UserID); err != nil {
		return nil, err
	}
	all, err := h.Authorizations.Authorizations(ctx, info.Tenant.ID, request.UserID)
	if err != nil {
		return nil, err
	}
	page, limit, next, err := web.Page(h.Cursors, info.Tenant.ID, []string{"listUserApplications", request.UserID}, request.Params.Limit, request.Params.Cursor, all, func(z access.Authorization) string { return z.Application.ID })
	if err != nil {
		return nil, err
	}
	return ListUserApplications200JSONResponse{Body: AuthorizationList{Data: profile.Authorizations(page), Meta: ListMeta{RequestID: info.RequestID, Limit: limit, NextCursor: next}}}, nil
}

// authorizedPosition is the last user of a page.
type authorizedPosition struct {
	ID string `json:"i"`
}

// ListApplicationUsers lists the users who have signed in to an application.
func (h *Handlers) ListApplicationUsers(ctx context.Context, request ListApplicationUsersRequestObject) (ListApplicationUsersResponseObject, error) {
	info := web.InfoOf(ctx)
	limit, err := web.Limit(request.Params.Limit)
	if err != nil {
		return nil, err
	}
	list := []string{"listApplicationUsers", request.ApplicationID}
	var after authorizedPosition
	if request.Params.Cursor != "" {
		if err := h.Cursors.Resume(info.Tenant.ID, list, request.Params.Cursor, &after); err != nil {
			return nil, err
		}
	}
	found, err := h.Authorizations.Users(ctx, info.Tenant.ID, request.ApplicationID, after.ID, limit+1)
	if err != nil {
		return nil, err
	}
	body := ApplicationUserList{Data: []ApplicationUser{}, Meta: ListMeta{RequestID: info.RequestID, Limit: limit}}
	if len(found) > limit {
		found = found[:limit]
		cursor, err := h.Cursors.Next(info.Tenant.ID, list, authorizedPosition{found[limit-1].UserID})
		if err != nil {
			return nil, err
		}
		body.Meta.NextCursor = &cursor
	}
	ids := make([]string, len(found))
	for i, u := range found {
		ids[i] = u.UserID
	}
	users, err := h.Directory.UsersByID(ctx, info.Tenant.ID, ids)
	if err != nil {
		return nil, err
	}
	for _, z := range found {
		u, ok := users[z.UserID]
		if !ok { // deleted since
			continue
		}
		body.Data = append(body.Data, ApplicationUser{
			UserID: u.ID, Email: u.Email, Name: document.OrNull(u.Name),
			Scopes: append([]string{}, z.Scopes...), Claims: append([]string{}, z.Claims...),
			CreatedAt: document.Timestamp(z.CreatedAt), LastAuthorizedAt: document.Timestamp(z.UsedAt),
		})
	}
	return ListApplicationUsers200JSONResponse{Body: body}, nil
}

// EndUserAuthorization revokes the access of an application to a user.
func (h *Handlers) EndUserAuthorization(ctx context.Context, request EndUserAuthorizationRequestObject) (EndUserAuthorizationResponseObject, error) {
	info := web.InfoOf(ctx)
	_, err := h.Directory.User(ctx, info.Tenant.ID, request.UserID)
	if err == nil {
		err = h.Authorizations.EndAuthorization(ctx, protocol.Tenant{ID: info.Tenant.ID, BaseURL: info.Tenant.BaseURL}, request.UserID, request.ApplicationID)
	}
	return EndUserAuthorization204Response{}, err
}
