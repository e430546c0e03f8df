package console

import (
	"net/http"
	"net/url"
)

func members(v *visit) error {
	a, err := v.read(http.MethodGet, query(v.organizationPath()+"/members", "cursor", v.form("cursor")), nil)
	if err != nil {
		return err
	}
	data := object{"Members": a.Data, "Me": v.user, "Invite": v.may(manageMembers)}
	v.paged(data, a.Meta, v.organizationPage()+"/members")
	return v.show("members.html", "Members", data)
}

// memberOfPath returns the path of the operations on the member of a page.
func (v *visit) memberOfPath() string { return v.below(v.organizationPath(), "members", "member_id") }

// memberOfPage returns the path of the page of the member.
func (v *visit) memberOfPage() string { return v.below(v.organizationPage(), "members", "member_id") }

func memberDetails(v *visit) error {
	m, err := v.one(v.memberOfPath())
	if err != nil {
		return err
	}
	address, _ := m["email"].(string)
	userID, _ := m["user_id"].(string)
	return v.show("member.html", address, object{
		"Member": m, "Self": userID == v.user, "Manage": v.mayManage(m["role"]), "Events": query(v.organizationPage()+"/events", "actor", userID),
	})
}

// roleForm returns the form for the role of the member of the page.
func (v *visit) roleForm() (f *form, title string, m object, err error) {
	if err := v.require(manageMembers); err != nil {
		return nil, "", nil, err
	}
	if m, err = v.one(v.memberOfPath()); err != nil {
		return nil, "", nil, err
	}
	address, _ := m["email"].(string)
	m["updated_at"] = m["role"] // only the role changes, so it is the version
	return &form{Sections: []section{{"", []field{
		{Name: "role", Label: "Role", Kind: asChoice, Required: true, Options: v.manageable(m["role"]), Hint: aboutRoles + " The invitations that the member has sent end."},
	}}}, Action: v.memberOfPage() + "/edit", Button: "Save", Cancel: v.memberOfPage()}, "Role of " + address, m, nil
}

func changeRoleForm(v *visit) error {
	f, title, m, err := v.roleForm()
	if err != nil {
		return err
	}
	f.show(m)
	v.calls = append(v.calls, call{http.MethodPatch, v.memberOfPath(), object{"role": m["role"]}})
	return v.show("form.html", title, object{"Form": f})
}

func changeRole(v *visit) error {
	f, title, m, err := v.roleForm()
	if err != nil {
		return err
	}
	return v.change(f, title, v.memberOfPath(), m, nil, v.memberOfPage())
}

// removeFromOrganizationForm asks for a confirmation.
func removeFromOrganizationForm(v *visit) error { return v.removeFromOrganizationWith(nil) }

func (v *visit) removeFromOrganizationWith(wrong *fault) error {
	a, err := v.call(http.MethodGet, v.memberOfPath(), nil)
	if err != nil {
		return err
	}
	m, _ := a.Data.(object)
	address, _ := m["email"].(string)
	v.calls = append(v.calls, call{http.MethodDelete, v.memberOfPath(), nil})
	if m["user_id"] == v.user {
		return v.leaveWith(wrong)
	}
	if err := v.require(manageMembers); err != nil {
		return err
	}
	return v.confirm("Remove "+address+"?", object{
		"Text":   "The person loses the role in the organisation at once, and the pending invitations that the person has sent end. The account stays.",
		"Button": "Remove", "Action": v.memberOfPage() + "/remove", "Cancel": v.memberOfPage(), "Fields": object{},
	}, wrong)
}

func removeFromOrganization(v *visit) error {
	return v.delete(v.memberOfPath(), v.organizationPage()+"/members", "member-removed", v.removeFromOrganizationWith)
}

func (v *visit) leaveWith(wrong *fault) error {
	return v.confirm(titleOf("Leave ", v.org)+"?", object{
		"Text":   "You lose your role in the organisation at once, and the pending invitations that you have sent end. Your account stays. To come back, you need an invitation.",
		"Button": "Leave", "Action": organizationsPage + "/left", "Cancel": v.organizationPage() + "/members",
		"Fields": object{"organization": v.org["id"], "member": v.variable("member_id")},
	}, wrong)
}

// leave removes the person from an organisation. It is no page of that organisation, because the form
// that is sent again comes from a person who has left.
func leave(v *visit) error {
	org := "/" + url.PathEscape(v.form("organization"))
	path := org + "/members/" + url.PathEscape(v.form("member"))
	_, err := v.once(http.MethodDelete, "/api/v1/organizations"+path, nil)
	if e, ok := refused(err); ok && e.Status == http.StatusConflict {
		return v.confirm("You can't leave", object{
			"Text":   "An organisation keeps at least one owner. Make another member an owner first.",
			"Button": "Try again", "Action": organizationsPage + "/left", "Cancel": organizationsPage + org + "/members",
			"Fields": object{"organization": v.form("organization"), "member": v.form("member")},
		}, faultOf(e))
	}
	if err != nil {
		return err
	}
	v.redirect(organizationsPage + "?done=left")
	return nil
}
