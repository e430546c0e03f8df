package console

import (
	"errors"
	"net/http"

	"stonetown/api/inprocess"
)

func invitations(v *visit) error {
	const title = "Invitations"
	state := v.form("state")
	data := object{"State": state, "States": []string{"pending", "accepted", "revoked", "expired"}, "Invite": v.may(manageMembers)}
	a, err := v.read(http.MethodGet, query(v.organizationPath()+"/invitations", "state", state, "cursor", v.form("cursor")), nil)
	v.paged(data, a.Meta, v.organizationPage()+"/invitations", "state", state)
	if e, ok := errors.AsType[*inprocess.Error](err); ok && e.Status == http.StatusBadRequest {
		return v.again("invitations.html", title, data, faultOf(e, "state", "state"))
	}
	if err != nil {
		return err
	}
	data["Invitations"] = a.Data
	return v.show("invitations.html", title, data)
}

const (
	newInvitationTitle = "Invite a person"
	aboutInvitations   = "The person gets a mail with a link, which is valid for 7 days, and signs in or signs up with this address to accept."
)

func (v *visit) newInvitation() *form {
	return &form{Sections: []section{{"", []field{
		{Name: "email", Label: "E-mail address", Kind: asText, Required: true},
		{Name: "role", Label: "Role", Kind: asChoice, Required: true, Options: v.manageable(nil), Hint: aboutRoles},
	}}}, Action: v.organizationPage() + "/invitations/new", Button: "Send the invitation", Cancel: v.organizationPage() + "/invitations"}
}

func newInvitationForm(v *visit) error {
	if err := v.require(manageMembers); err != nil {
		return err
	}
	v.calls = append(v.calls, call{http.MethodPost, v.organizationPath() + "/invitations", object{"email": "ann@example.com", "role": "viewer"}})
	return v.show("form.html", newInvitationTitle, object{"Form": v.newInvitation(), "Text": aboutInvitations})
}

func createInvitation(v *visit) error {
	if err := v.require(manageMembers); err != nil {
		return err
	}
	_, done, err := v.submit(v.newInvitation(), newInvitationTitle, aboutInvitations, v.organizationPath()+"/invitations", nil)
	if done {
		v.redirect(v.organizationPage() + "/invitations?done=invited")
	}
	return err
}

// invitationPath returns the path of the operations on the invitation of a page.
func (v *visit) invitationPath() string {
	return v.below(v.organizationPath(), "invitations", "invitation_id")
}

// invitationPage returns the path of the page of the invitation.
func (v *visit) invitationPage() string {
	return v.below(v.organizationPage(), "invitations", "invitation_id")
}

func invitation(v *visit) error { return v.invitationWith(nil) }

func (v *visit) invitationWith(wrong *fault) error {
	i, err := v.one(v.invitationPath())
	if err != nil {
		return err
	}
	title, _ := i["email"].(string)
	data := object{"Invitation": i, "Manage": v.mayManage(i["role"])}
	if wrong != nil {
		return v.again("invitation.html", title, data, wrong)
	}
	return v.show("invitation.html", title, data)
}

func resendInvitation(v *visit) error {
	err := v.act(v.invitationPath()+"/resend", nil, v.invitationPage(), "resent")
	if e, ok := refused(err); ok && e.Status == http.StatusConflict {
		return v.invitationWith(faultOf(e))
	}
	return err
}

// revokeInvitationForm asks for a confirmation.
func revokeInvitationForm(v *visit) error { return v.revokeInvitationWith(nil) }

func (v *visit) revokeInvitationWith(wrong *fault) error {
	if err := v.require(manageMembers); err != nil {
		return err
	}
	a, err := v.call(http.MethodGet, v.invitationPath(), nil)
	if err != nil {
		return err
	}
	i, _ := a.Data.(object)
	address, _ := i["email"].(string)
	v.calls = append(v.calls, call{http.MethodDelete, v.invitationPath(), nil})
	return v.confirm("Withdraw the invitation of "+address+"?", object{
		"Text":   "The link in the mail becomes invalid. The invitation stays in the list.",
		"Button": "Withdraw", "Action": v.invitationPage() + "/revoke", "Cancel": v.invitationPage(), "Fields": object{},
	}, wrong)
}

func revokeInvitation(v *visit) error {
	return v.delete(v.invitationPath(), v.invitationPage(), "withdrawn", v.revokeInvitationWith)
}
