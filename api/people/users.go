package people

import (
	"context"
	"time"

	"stonetown/api/profile"

	"stonetown/api/web"
	"stonetown/identity"
	"stonetown/oauth"
)

// inlineGroups is how many groups the answer about a user shows.
const inlineGroups = 50

// position is where a page of the list ended.
type position struct {
	At int64  `json:"a"` // microseconds since 1970
	ID string `json:"i"`
}

// ListUsers lists users.
func (s *Surface) ListUsers(ctx context.Context, request ListUsersRequestObject) (ListUsersResponseObject, error) {
	call, params := web.CallOf(ctx), request.Params
	limit, err := web.Limit(params.Limit)
	if err != nil {
		return nil, err
	}
	filter, err := filterOf(params)
	if err != nil {
		return nil, err
	}
	list := []string{"listUsers", params.Email, string(params.State), params.CreatedAfter, params.Q}
	after, err := s.resume(call, list, params.Cursor)
	if err != nil {
		return nil, err
	}
	found, err := s.Directory.Users(ctx, call.Tenant.ID, filter, after, limit+1)
	if err != nil {
		return nil, err
	}
	body := UserList{Data: []UserListItem{}, Meta: ListMeta{RequestID: call.RequestID, Limit: limit}}
	for _, u := range found[:min(limit, len(found))] {
		body.Data = append(body.Data, listItem(u))
	}
	if len(found) > limit {
		last := found[limit-1]
		body.Meta.NextCursor, err = s.next(call, list, position{last.CreatedAt.UnixMicro(), last.ID})
	}
	return ListUsers200JSONResponse{Body: body}, err
}

// resume reads where a list goes on; nil at its start.
func (s *Surface) resume(call *web.Call, list []string, cursor string) (*identity.Position, error) {
	if cursor == "" {
		return nil, nil
	}
	var p position
	if err := s.Cursors.Resume(call.Tenant.ID, list, cursor, &p); err != nil {
		return nil, err
	}
	return &identity.Position{CreatedAt: time.UnixMicro(p.At), ID: p.ID}, nil
}

// next is the cursor that leads to what follows a position.
func (s *Surface) next(call *web.Call, list []string, position any) (*string, error) {
	cursor, err := s.Cursors.Next(call.Tenant.ID, list, position)
	return &cursor, err
}

// CreateUser adds a user.
func (s *Surface) CreateUser(ctx context.Context, request CreateUserRequestObject) (CreateUserResponseObject, error) {
	call := web.CallOf(ctx)
	n, err := s.newUser(ctx, call, request.Body)
	if err != nil {
		return nil, err
	}
	u, err := s.Directory.Create(ctx, call.Tenant.ID, n)
	if err != nil {
		return nil, err
	}
	// A new user is in no group and has no factors, identities or applications.
	body := UserRead{Data: detail(u, nil, nil, nil, nil), Meta: Meta{RequestID: call.RequestID}}
	return CreateUser201JSONResponse{Body: body, Headers: CreateUser201ResponseHeaders{Location: "/api/v1/users/" + u.ID}}, nil
}

// GetUser reads a user.
func (s *Surface) GetUser(ctx context.Context, request GetUserRequestObject) (GetUserResponseObject, error) {
	call := web.CallOf(ctx)
	u, err := s.Directory.User(ctx, call.Tenant.ID, request.UserID)
	if err != nil {
		return nil, err
	}
	body, err := s.read(ctx, call, u)
	return GetUser200JSONResponse{Body: body}, err
}

// PatchUser changes a user.
func (s *Surface) PatchUser(ctx context.Context, request PatchUserRequestObject) (PatchUserResponseObject, error) {
	call := web.CallOf(ctx)
	change, password, given, err := patch(request.Body)
	if err != nil {
		return nil, err
	}
	if given {
		u, err := s.Directory.User(ctx, call.Tenant.ID, request.UserID)
		if err != nil {
			return nil, err
		}
		change(&u)
		hash, err := s.newPassword(ctx, call, password, u)
		if err != nil {
			return nil, err
		}
		rest := change
		change = func(u *identity.User) {
			u.SetPassword(hash)
			rest(u)
		}
	}
	u, err := s.Directory.Update(ctx, call.Tenant.ID, request.UserID, change)
	if err != nil {
		return nil, err
	}
	body, err := s.read(ctx, call, u)
	return PatchUser200JSONResponse{Body: body}, err
}

// DisableUser keeps a user from signing in.
func (s *Surface) DisableUser(ctx context.Context, request DisableUserRequestObject) (DisableUserResponseObject, error) {
	call := web.CallOf(ctx)
	u, err := s.Directory.Disable(ctx, call.Tenant.ID, request.UserID, call.CommitID)
	if err != nil {
		return nil, err
	}
	body, err := s.read(ctx, call, u)
	return DisableUser200JSONResponse{Body: body}, err
}

// EnableUser lets a disabled user sign in again.
func (s *Surface) EnableUser(ctx context.Context, request EnableUserRequestObject) (EnableUserResponseObject, error) {
	call := web.CallOf(ctx)
	u, err := s.Directory.Update(ctx, call.Tenant.ID, request.UserID, (*identity.User).Enable)
	if err != nil {
		return nil, err
	}
	body, err := s.read(ctx, call, u)
	return EnableUser200JSONResponse{Body: body}, err
}

// DeleteUser deletes a user for good.
func (s *Surface) DeleteUser(ctx context.Context, request DeleteUserRequestObject) (DeleteUserResponseObject, error) {
	call := web.CallOf(ctx)
	if err := s.Directory.Delete(ctx, call.Tenant.ID, request.UserID, call.CommitID); err != nil {
		return nil, err
	}
	return DeleteUser204Response{}, nil
}

// read is the answer about a user.
func (s *Surface) read(ctx context.Context, call *web.Call, u identity.User) (UserRead, error) {
	groups, err := s.Directory.Groups(ctx, call.Tenant.ID, "", u.ID, nil, inlineGroups)
	if err != nil {
		return UserRead{}, err
	}
	factors, err := s.Access.Factors(ctx, call.Tenant.ID, u.ID)
	if err != nil {
		return UserRead{}, err
	}
	identities, err := s.Access.Identities(ctx, call.Tenant.ID, u.ID)
	if err != nil {
		return UserRead{}, err
	}
	used, err := s.Authorizations.Authorizations(ctx, call.Tenant.ID, u.ID)
	return UserRead{Data: detail(u, groups, factors, identities, used), Meta: Meta{RequestID: call.RequestID}}, err
}

// ListUserApplications lists the applications that a user has signed in to.
func (s *Surface) ListUserApplications(ctx context.Context, request ListUserApplicationsRequestObject) (ListUserApplicationsResponseObject, error) {
	call := web.CallOf(ctx)
	if _, err := s.Directory.User(ctx, call.Tenant.ID, request.UserID); err != nil {
		return nil, err
	}
	all, err := s.Authorizations.Authorizations(ctx, call.Tenant.ID, request.UserID)
	if err != nil {
		return nil, err
	}
	page, limit, next, err := web.Page(s.Cursors, call.Tenant.ID, []string{"listUserApplications", request.UserID}, request.Params.Limit, request.Params.Cursor, all, func(z oauth.Authorization) string { return z.Application.ID })
	if err != nil {
		return nil, err
	}
	return ListUserApplications200JSONResponse{Body: AuthorizationList{Data: profile.Authorizations(page), Meta: ListMeta{RequestID: call.RequestID, Limit: limit, NextCursor: next}}}, nil
}

// ListUserGroups lists the groups of a user.
func (s *Surface) ListUserGroups(ctx context.Context, request ListUserGroupsRequestObject) (ListUserGroupsResponseObject, error) {
	call := web.CallOf(ctx)
	if _, err := s.Directory.User(ctx, call.Tenant.ID, request.UserID); err != nil {
		return nil, err
	}
	body, err := s.groups(ctx, call, []string{"listUserGroups", request.UserID}, request.Params.Limit, request.Params.Cursor, "", request.UserID)
	return ListUserGroups200JSONResponse{Body: body}, err
}
