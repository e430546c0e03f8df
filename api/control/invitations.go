package control

import (
	"context"

	"stonetown/api/web"
	"stonetown/controlplane/management"
)

func invitation(info *web.RequestInfo, i management.Invitation) InvitationRead {
	return InvitationRead{Data: i.Document(), Meta: meta(info)}
}

// ListInvitations lists the invitations of an organisation.
func (h *Handlers) ListInvitations(ctx context.Context, request ListInvitationsRequestObject) (ListInvitationsResponseObject, error) {
	info, by := caller(ctx)
	state := management.InvitationState(request.Params.State)
	var v web.Validation
	web.OneOf(&v, "state", state, management.InvitationPending, management.InvitationAccepted, management.InvitationRevoked, management.InvitationExpired)
	if err := v.Err(); err != nil {
		return nil, err
	}
	list := []string{"listInvitations", request.OrgID, string(state)}
	found, meta, err := page(h, info, list, request.Params.Limit, request.Params.Cursor, func(after *management.Position, limit int) ([]management.Invitation, error) {
		return h.Service.Invitations(ctx, by, request.OrgID, state, after, limit)
	}, func(i management.Invitation) management.Position {
		return management.Position{At: i.CreatedAt, ID: i.ID}
	})
	return ListInvitations200JSONResponse{Body: InvitationList{Data: documents(found, management.Invitation.Document), Meta: meta}}, err
}

// CreateInvitation invites the owner of an e-mail address.
func (h *Handlers) CreateInvitation(ctx context.Context, request CreateInvitationRequestObject) (CreateInvitationResponseObject, error) {
	info, by := caller(ctx)
	var v web.Validation
	v.Text("", "email", request.Body.Email)
	v.Text("", "role", string(request.Body.Role))
	if err := v.Err(); err != nil {
		return nil, err
	}
	i, err := h.Service.Invite(ctx, by, request.OrgID, request.Body.Email, request.Body.Role)
	return CreateInvitation201JSONResponse{
		Body:    invitation(info, i),
		Headers: CreateInvitation201ResponseHeaders{Location: organizationsPath + request.OrgID + "/invitations/" + i.ID},
	}, err
}

// GetInvitation reads an invitation.
func (h *Handlers) GetInvitation(ctx context.Context, request GetInvitationRequestObject) (GetInvitationResponseObject, error) {
	info, by := caller(ctx)
	i, err := h.Service.Invitation(ctx, by, request.OrgID, request.InvitationID)
	return GetInvitation200JSONResponse{Body: invitation(info, i)}, err
}

// DeleteInvitation revokes an invitation.
func (h *Handlers) DeleteInvitation(ctx context.Context, request DeleteInvitationRequestObject) (DeleteInvitationResponseObject, error) {
	_, by := caller(ctx)
	return DeleteInvitation204Response{}, h.Service.RevokeInvitation(ctx, by, request.OrgID, request.InvitationID)
}

// ResendInvitation sends the message of an invitation again.
func (h *Handlers) ResendInvitation(ctx context.Context, request ResendInvitationRequestObject) (ResendInvitationResponseObject, error) {
	info, by := caller(ctx)
	i, err := h.Service.ResendInvitation(ctx, by, request.OrgID, request.InvitationID)
	return ResendInvitation200JSONResponse{Body: invitation(info, i)}, err
}

// AcceptInvitation makes the caller a member.
func (h *Handlers) AcceptInvitation(ctx context.Context, request AcceptInvitationRequestObject) (AcceptInvitationResponseObject, error) {
	info, by := caller(ctx)
	var v web.Validation
	v.Text("", "token", request.Body.Token)
	if err := v.Err(); err != nil {
		return nil, err
	}
	m, err := h.Service.AcceptInvitation(ctx, by, request.Body.Token)
	return AcceptInvitation200JSONResponse{Body: member(info, m)}, err
}
