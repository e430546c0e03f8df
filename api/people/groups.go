package people

import (
	"context"
	"fmt"
	"net/http"
	"strconv"

	"stonetown/api/profile"
	"stonetown/api/web"
	"stonetown/identity"
	"stonetown/internal/document"
)

// inlineMembers is the number of members in the representation of a group.
const inlineMembers = 50

// ListGroups lists groups.
func (h *Handlers) ListGroups(ctx context.Context, request ListGroupsRequestObject) (ListGroupsResponseObject, error) {
	info, params := web.InfoOf(ctx), request.Params
	var v web.Validation
	words(&v, "q", params.Q)
	words(&v, "has_user", params.HasUser)
	if err := v.Err(); err != nil {
		return nil, err
	}
	body, err := h.groups(ctx, info, []string{"listGroups", params.Q, params.HasUser}, params.Limit, params.Cursor, params.Q, params.HasUser)
	return ListGroups200JSONResponse{Body: body}, err
}

// groups returns a page of a list of groups.
func (h *Handlers) groups(ctx context.Context, info *web.RequestInfo, list []string, asked *int, cursor, query, userID string) (GroupList, error) {
	limit, err := web.Limit(asked)
	if err != nil {
		return GroupList{}, err
	}
	after, err := h.resume(info, list, cursor)
	if err != nil {
		return GroupList{}, err
	}
	found, err := h.Directory.Groups(ctx, info.Tenant.ID, query, userID, after, limit+1)
	if err != nil {
		return GroupList{}, err
	}
	body := GroupList{Data: []GroupListItem{}, Meta: ListMeta{RequestID: info.RequestID, Limit: limit}}
	for _, g := range found[:min(limit, len(found))] {
		body.Data = append(body.Data, g.Document())
	}
	if len(found) > limit {
		last := found[limit-1]
		body.Meta.NextCursor, err = h.next(info, list, position{last.CreatedAt.UnixMicro(), last.ID})
	}
	return body, err
}

// CreateGroup adds a group.
func (h *Handlers) CreateGroup(ctx context.Context, request CreateGroupRequestObject) (CreateGroupResponseObject, error) {
	info, in := web.InfoOf(ctx), request.Body
	var v validation
	v.Text("", "slug", in.Slug)
	v.Line("", "name", in.Name, profile.MaxText)
	v.Paragraphs("", "description", in.Description, profile.MaxText)
	if err := v.Err(); err != nil {
		return nil, err
	}
	n := identity.NewGroup{Slug: in.Slug, Name: in.Name, Description: in.Description, Scopes: in.Scopes}
	g, err := h.Directory.CreateGroup(ctx, info.Tenant.ID, n, info.CommitID)
	if err != nil {
		return nil, err
	}
	body, err := h.readGroup(ctx, info, g)
	if err != nil {
		return nil, err
	}
	return CreateGroup201JSONResponse{Body: body, Headers: CreateGroup201ResponseHeaders{Location: "/api/v1/groups/" + g.ID}}, nil
}

// GetGroup reads a group.
func (h *Handlers) GetGroup(ctx context.Context, request GetGroupRequestObject) (GetGroupResponseObject, error) {
	info := web.InfoOf(ctx)
	g, err := h.Directory.Group(ctx, info.Tenant.ID, request.GroupID)
	if err != nil {
		return nil, err
	}
	body, err := h.readGroup(ctx, info, g)
	return GetGroup200JSONResponse{Body: body}, err
}

// PatchGroup changes a group.
func (h *Handlers) PatchGroup(ctx context.Context, request PatchGroupRequestObject) (PatchGroupResponseObject, error) {
	info, in := web.InfoOf(ctx), request.Body
	if err := web.RefuseImmutable(
		web.Member{Name: "id", Value: in.ID}, web.Member{Name: "slug", Value: in.Slug}, web.Member{Name: "created_at", Value: in.CreatedAt},
	); err != nil {
		return nil, err
	}
	var v validation
	if in.Name != nil {
		v.Line("", "name", *in.Name, profile.MaxText)
	}
	if in.Description != nil {
		v.Paragraphs("", "description", *in.Description, profile.MaxText)
	}
	if err := v.Err(); err != nil {
		return nil, err
	}
	change := func(g *identity.Group) {
		if in.Name != nil {
			g.Name = *in.Name
		}
		if in.Description != nil {
			g.Description = *in.Description
		}
		if in.Scopes != nil {
			g.Scopes = in.Scopes
		}
	}
	g, err := h.Directory.UpdateGroup(ctx, info.Tenant.ID, request.GroupID, change, info.CommitID)
	if err != nil {
		return nil, err
	}
	body, err := h.readGroup(ctx, info, g)
	return PatchGroup200JSONResponse{Body: body}, err
}

// DeleteGroup deletes a group.
func (h *Handlers) DeleteGroup(ctx context.Context, request DeleteGroupRequestObject) (DeleteGroupResponseObject, error) {
	info := web.InfoOf(ctx)
	if err := h.Directory.DeleteGroup(ctx, info.Tenant.ID, request.GroupID, info.CommitID); err != nil {
		return nil, err
	}
	return DeleteGroup204Response{}, nil
}

// memberPosition is the last member of a page.
type memberPosition struct {
	ID string `json:"i"`
}

// ListMembers lists the members of a group.
func (h *Handlers) ListMembers(ctx context.Context, request ListMembersRequestObject) (ListMembersResponseObject, error) {
	info, params := web.InfoOf(ctx), request.Params
	limit, err := web.Limit(params.Limit)
	if err != nil {
		return nil, err
	}
	list := []string{"listMembers", request.GroupID}
	var after *identity.MemberPosition
	if params.Cursor != "" {
		var p memberPosition
		if err := h.Cursors.Resume(info.Tenant.ID, list, params.Cursor, &p); err != nil {
			return nil, err
		}
		after = &identity.MemberPosition{UserID: p.ID}
	}
	found, err := h.Directory.Members(ctx, info.Tenant.ID, request.GroupID, after, limit+1)
	if err != nil {
		return nil, err
	}
	body := MemberList{Data: []Member{}, Meta: ListMeta{RequestID: info.RequestID, Limit: limit}}
	for _, m := range found[:min(limit, len(found))] {
		body.Data = append(body.Data, wireMember(m))
	}
	if len(found) > limit {
		body.Meta.NextCursor, err = h.next(info, list, memberPosition{found[limit-1].ID})
	}
	return ListMembers200JSONResponse{Body: body}, err
}

// AddMember adds a user to a group.
func (h *Handlers) AddMember(ctx context.Context, request AddMemberRequestObject) (AddMemberResponseObject, error) {
	info, userID := web.InfoOf(ctx), request.Body.UserID
	var v web.Validation
	if v.Text("", "user_id", userID); v.Err() != nil {
		return nil, v.Err()
	}
	outcomes, err := h.Directory.AddMembers(ctx, info.Tenant.ID, request.GroupID, []string{userID}, info.CommitID)
	if err != nil {
		return nil, err
	}
	if outcomes[userID] == identity.UnknownUser {
		return nil, identity.ErrUserNotFound
	}
	m, err := h.Directory.Member(ctx, info.Tenant.ID, request.GroupID, userID)
	if err != nil {
		return nil, err
	}
	if outcomes[userID] == identity.AlreadyMember {
		body := MemberExisted{Data: wireMember(m)}
		body.Meta.RequestID, body.Meta.Code = info.RequestID, "user_already_member"
		return AddMember200JSONResponse{Body: body}, nil
	}
	return AddMember201JSONResponse{Body: MemberAdded{Data: wireMember(m), Meta: Meta{RequestID: info.RequestID}}}, nil
}

// RemoveMember removes a user from a group.
func (h *Handlers) RemoveMember(ctx context.Context, request RemoveMemberRequestObject) (RemoveMemberResponseObject, error) {
	info := web.InfoOf(ctx)
	outcomes, err := h.Directory.RemoveMembers(ctx, info.Tenant.ID, request.GroupID, []string{request.UserID}, info.CommitID)
	if err != nil {
		return nil, err
	}
	if outcomes[request.UserID] == identity.NotMember {
		return nil, &web.Error{Status: http.StatusNotFound, Code: "member_not_found", Message: "the user is not a member of the group"}
	}
	return RemoveMember204Response{}, nil
}

// AddMembers adds users to a group.
func (h *Handlers) AddMembers(ctx context.Context, request AddMembersRequestObject) (AddMembersResponseObject, error) {
	info := web.InfoOf(ctx)
	if err := checkMembers(request.Body.UserIds); err != nil {
		return nil, err
	}
	outcomes, err := h.Directory.AddMembers(ctx, info.Tenant.ID, request.GroupID, request.Body.UserIds, info.CommitID)
	return AddMembers200JSONResponse{Body: membersChanged(info, request.Body.UserIds, outcomes)}, err
}

// RemoveMembers removes users from a group.
func (h *Handlers) RemoveMembers(ctx context.Context, request RemoveMembersRequestObject) (RemoveMembersResponseObject, error) {
	info := web.InfoOf(ctx)
	if err := checkMembers(request.Body.UserIds); err != nil {
		return nil, err
	}
	outcomes, err := h.Directory.RemoveMembers(ctx, info.Tenant.ID, request.GroupID, request.Body.UserIds, info.CommitID)
	return RemoveMembers200JSONResponse{Body: membersChanged(info, request.Body.UserIds, outcomes)}, err
}

func checkMembers(userIDs []string) error {
	var v web.Validation
	switch {
	case len(userIDs) == 0:
		v.Add("user_ids", "required", "must have at least one item")
	case len(userIDs) > identity.MaxMembers:
		return &web.Error{
			Status: http.StatusBadRequest, Code: "bulk_too_large", Message: fmt.Sprintf("user_ids must have at most %d items", identity.MaxMembers),
			Details: web.Details{"max": identity.MaxMembers},
		}
	}
	for i, userID := range userIDs {
		v.Text("user_ids/", strconv.Itoa(i), userID)
	}
	return v.Err()
}

// memberError is the error of one user.
type memberError struct {
	Code    string `json:"code"`
	Message string `json:"message"`
}

func membersChanged(info *web.RequestInfo, userIDs []string, outcomes map[string]identity.Outcome) MembersChanged {
	body := MembersChanged{Data: []MemberResult{}}
	body.Meta.RequestID = info.RequestID
	summary := &body.Meta.Summary
	told := map[string]bool{}
	for _, userID := range userIDs {
		if told[userID] {
			continue
		}
		told[userID] = true
		result := MemberResult{UserID: userID, Status: string(outcomes[userID])}
		switch outcomes[userID] {
		case identity.Succeeded:
			summary.Succeeded++
		case identity.AlreadyMember:
			summary.AlreadyMember++
		case identity.NotMember:
			summary.NotMember++
		case identity.UnknownUser:
			result.Status, result.Error = "error", &memberError{"user_not_found", "user not found"}
			summary.Error++
		}
		body.Data = append(body.Data, result)
	}
	return body
}

func wireMember(m identity.Member) Member {
	return Member{ID: m.ID, Email: m.Email, Name: document.OrNull(m.Name), AddedAt: document.Timestamp(m.AddedAt), AddedBy: m.AddedBy}
}

// groupDetail is the representation of one group.
type groupDetail struct {
	identity.GroupDocument `json:",inline"`
	Members                []memberSummary `json:"members"`
	CanDelete              bool            `json:"can_delete"`
	AuditSummary           struct {
		LastChangeAt document.Timestamp `json:"last_change_at"`
	} `json:"audit_summary"`
}

type memberSummary struct {
	ID    string  `json:"id"`
	Email string  `json:"email"`
	Name  *string `json:"name"`
}

// readGroup returns the representation of a group.
func (h *Handlers) readGroup(ctx context.Context, info *web.RequestInfo, g identity.Group) (GroupRead, error) {
	members, err := h.Directory.Members(ctx, info.Tenant.ID, g.ID, nil, inlineMembers)
	if err != nil {
		return GroupRead{}, err
	}
	data := groupDetail{
		GroupDocument: g.Document(), CanDelete: info.Principal.Scopes.Has("groups:write") && g.Deletable() == nil, Members: []memberSummary{},
	}
	data.AuditSummary.LastChangeAt = document.Timestamp(g.UpdatedAt)
	for _, m := range members {
		data.Members = append(data.Members, memberSummary{ID: m.ID, Email: m.Email, Name: document.OrNull(m.Name)})
	}
	return GroupRead{Data: data, Meta: Meta{RequestID: info.RequestID}}, nil
}
