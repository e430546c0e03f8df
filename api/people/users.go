package people

import (
	"context"
	"time"

	"stonetown/api/web"
	"stonetown/identity"
)

// inlineGroups is the number of groups in the representation of a user.
const inlineGroups = 50

// position is the last item of a page.
type position struct {
	At int64  `json:"a"` // microseconds since 1970
	ID string `json:"i"`
}

// ListUsers lists users.
func (h *Handlers) ListUsers(ctx context.Context, request ListUsersRequestObject) (ListUsersResponseObject, error) {
	info, params := web.InfoOf(ctx), request.Params
	limit, err := web.Limit(params.Limit)
	if err != nil {
		return nil, err
	}
	filter, err := filterOf(params)
	if err != nil {
		return nil, err
	}
	list := []string{"listUsers", params.Email, string(params.State), params.CreatedAfter, params.Q}
	after, err := h.resume(info, list, params.Cursor)
	if err != nil {
		return nil, err
	}
	found, err := h.Directory.Users(ctx, info.Tenant.ID, filter, after, limit+1)
	if err != nil {
		return nil, err
	}
	body := UserList{Data: []UserListItem{}, Meta: ListMeta{RequestID: info.RequestID, Limit: limit}}
	for _, u := range found[:min(limit, len(found))] {
		body.Data = append(body.Data, listItem(u))
	}
	if len(found) > limit {
		last := found[limit-1]
		body.Meta.NextCursor, err = h.next(info, list, position{last.CreatedAt.UnixMicro(), last.ID})
	}
	return ListUsers200JSONResponse{Body: body}, err
}

// resume reads the position of a cursor; nil without one.
func (h *Handlers) resume(info *web.RequestInfo, list []string, cursor string) (*identity.Position, error) {
	if cursor == "" {
		return nil, nil
	}
	var p position
	if err := h.Cursors.Resume(info.Tenant.ID, list, cursor, &p); err != nil {
		return nil, err
	}
	return &identity.Position{CreatedAt: time.UnixMicro(p.At), ID: p.ID}, nil
}

// next returns the cursor of a position.
func (h *Handlers) next(info *web.RequestInfo, list []string, position any) (*string, error) {
	cursor, err := h.Cursors.Next(info.Tenant.ID, list, position)
	return &cursor, err
}

// CreateUser adds a user.
func (h *Handlers) CreateUser(ctx context.Context, request CreateUserRequestObject) (CreateUserResponseObject, error) {
	info := web.InfoOf(ctx)
	n, err := h.newUser(ctx, info, request.Body)
	if err != nil {
		return nil, err
	}
	u, err := h.Directory.Create(ctx, info.Tenant.ID, n)
	if err != nil {
		return nil, err
	}
	// A new user is in no group and has no factors, identities or applications.
	body := UserRead{Data: detail(u, nil, nil, nil, nil), Meta: Meta{RequestID: info.RequestID}}
	return CreateUser201JSONResponse{Body: body, Headers: CreateUser201ResponseHeaders{Location: "/api/v1/users/" + u.ID}}, nil
}

// GetUser reads a user.
func (h *Handlers) GetUser(ctx context.Context, request GetUserRequestObject) (GetUserResponseObject, error) {
	info := web.InfoOf(ctx)
	u, err := h.Directory.User(ctx, info.Tenant.ID, request.UserID)
	if err != nil {
		return nil, err
	}
	body, err := h.read(ctx, info, u)
	return GetUser200JSONResponse{Body: body}, err
}

// PatchUser changes a user.
func (h *Handlers) PatchUser(ctx context.Context, request PatchUserRequestObject) (PatchUserResponseObject, error) {
	info := web.InfoOf(ctx)
	change, password, given, err := patch(request.Body)
	if err != nil {
		return nil, err
	}
	if given {
		u, err := h.Directory.User(ctx, info.Tenant.ID, request.UserID)
		if err != nil {
			return nil, err
		}
		change(&u)
		hash, err := h.newPassword(ctx, info, password, u)
		if err != nil {
			return nil, err
		}
		rest := change
		change = func(u *identity.User) {
			u.SetPassword(hash)
			rest(u)
		}
	}
	u, err := h.Directory.Update(ctx, info.Tenant.ID, request.UserID, change)
	if err != nil {
		return nil, err
	}
	body, err := h.read(ctx, info, u)
	return PatchUser200JSONResponse{Body: body}, err
}

// DisableUser disables a user.
func (h *Handlers) DisableUser(ctx context.Context, request DisableUserRequestObject) (DisableUserResponseObject, error) {
	info := web.InfoOf(ctx)
	u, err := h.Directory.Disable(ctx, info.Tenant.ID, request.UserID, info.CommitID)
	if err != nil {
		return nil, err
	}
	body, err := h.read(ctx, info, u)
	return DisableUser200JSONResponse{Body: body}, err
}

// EnableUser enables a disabled user.
func (h *Handlers) EnableUser(ctx context.Context, request EnableUserRequestObject) (EnableUserResponseObject, error) {
	info := web.InfoOf(ctx)
	u, err := h.Directory.Update(ctx, info.Tenant.ID, request.UserID, (*identity.User).Enable)
	if err != nil {
		return nil, err
	}
	body, err := h.read(ctx, info, u)
	return EnableUser200JSONResponse{Body: body}, err
}

// DeleteUser deletes a user.
func (h *Handlers) DeleteUser(ctx context.Context, request DeleteUserRequestObject) (DeleteUserResponseObject, error) {
	info := web.InfoOf(ctx)
	if err := h.Directory.Delete(ctx, info.Tenant.ID, request.UserID, info.CommitID); err != nil {
		return nil, err
	}
	return DeleteUser204Response{}, nil
}

// read returns the representation of a user.
func (h *Handlers) read(ctx context.Context, info *web.RequestInfo, u identity.User) (UserRead, error) {
	groups, err := h.Directory.Groups(ctx, info.Tenant.ID, "", u.ID, nil, inlineGroups)
	if err != nil {
		return UserRead{}, err
	}
	factors, err := h.Access.Factors(ctx, info.Tenant.ID, u.ID)
	if err != nil {
		return UserRead{}, err
	}
	identities, err := h.Access.Identities(ctx, info.Tenant.ID, u.ID)
	if err != nil {
		return UserRead{}, err
	}
	used, err := h.Authorizations.Authorizations(ctx, info.Tenant.ID, u.ID)
	return UserRead{Data: detail(u, groups, factors, identities, used), Meta: Meta{RequestID: info.RequestID}}, err
}

// ListUserGroups lists the groups of a user.
func (h *Handlers) ListUserGroups(ctx context.Context, request ListUserGroupsRequestObject) (ListUserGroupsResponseObject, error) {
	info := web.InfoOf(ctx)
	if _, err := h.Directory.User(ctx, info.Tenant.ID, request.UserID); err != nil {
		return nil, err
	}
	body, err := h.groups(ctx, info, []string{"listUserGroups", request.UserID}, request.Params.Limit, request.Params.Cursor, "", request.UserID)
	return ListUserGroups200JSONResponse{Body: body}, err
}
