package control

import (
	"context"

	"stonetown/api/web"
	"stonetown/controlplane/management"
)

func member(info *web.RequestInfo, m management.Member) MemberRead {
	return MemberRead{Data: m.Document(), Meta: meta(info)}
}

// ListMembers lists the members of an organisation.
func (h *Handlers) ListMembers(ctx context.Context, request ListMembersRequestObject) (ListMembersResponseObject, error) {
	info, by := caller(ctx)
	list := []string{"listMembers", request.OrgID}
	found, meta, err := page(h, info, list, request.Params.Limit, request.Params.Cursor, func(after *management.Position, limit int) ([]management.Member, error) {
		return h.Service.Members(ctx, by, request.OrgID, after, limit)
	}, func(m management.Member) management.Position {
		return management.Position{At: m.JoinedAt, ID: m.ID}
	})
	return ListMembers200JSONResponse{Body: MemberList{Data: documents(found, management.Member.Document), Meta: meta}}, err
}

// GetMember reads a member.
func (h *Handlers) GetMember(ctx context.Context, request GetMemberRequestObject) (GetMemberResponseObject, error) {
	info, by := caller(ctx)
	m, err := h.Service.Member(ctx, by, request.OrgID, request.MemberID)
	return GetMember200JSONResponse{Body: member(info, m)}, err
}

// PatchMember gives a member another role.
func (h *Handlers) PatchMember(ctx context.Context, request PatchMemberRequestObject) (PatchMemberResponseObject, error) {
	info, by := caller(ctx)
	in := request.Body
	if err := web.RefuseImmutable(
		web.Member{Name: "id", Value: in.ID}, web.Member{Name: "org_id", Value: in.OrgID}, web.Member{Name: "user_id", Value: in.UserID},
		web.Member{Name: "email", Value: in.Email}, web.Member{Name: "name", Value: in.Name}, web.Member{Name: "mfa_enrolled", Value: in.MfaEnrolled},
		web.Member{Name: "joined_at", Value: in.JoinedAt}, web.Member{Name: "invited_by", Value: in.InvitedBy}, web.Member{Name: "last_active_at", Value: in.LastActiveAt},
	); err != nil {
		return nil, err
	}
	var v web.Validation
	v.Text("", "role", string(in.Role))
	if err := v.Err(); err != nil {
		return nil, err
	}
	m, err := h.Service.ChangeRole(ctx, by, request.OrgID, request.MemberID, in.Role)
	return PatchMember200JSONResponse{Body: member(info, m)}, err
}

// DeleteMember removes a member.
func (h *Handlers) DeleteMember(ctx context.Context, request DeleteMemberRequestObject) (DeleteMemberResponseObject, error) {
	_, by := caller(ctx)
	return DeleteMember204Response{}, h.Service.RemoveMember(ctx, by, request.OrgID, request.MemberID)
}
