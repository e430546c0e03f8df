package pages

import (
	"errors"
	"net/http"
	"net/url"
)

// InvitationPage is the path of the page that the mail of an invitation to an organisation leads
// to. It exists at the address of the control plane only.
const InvitationPage = "/invitation"

// acceptPath is the path of the operation that accepts an invitation.
const acceptPath = "/api/v1/invitations/accept"

// invitationForm asks the user to accept an invitation. It accepts nothing itself, because programs
// follow links, too.
func invitationForm(v *visit) error {
	if v.user() == "" {
		return v.redirect("/auth/sign-in?next=" + url.QueryEscape(v.r.URL.RequestURI()))
	}
	return v.showInvitation(nil)
}

func (v *visit) showInvitation(p *problem) error {
	page := struct{ Token, Person, Other string }{v.form("token"), v.user(), "/auth/sign-out?next=" + url.QueryEscape(InvitationPage+"?token="+url.QueryEscape(v.form("token")))}
	if p != nil {
		return v.again("invitation.html", "Join an organisation", page, p)
	}
	return v.show("invitation.html", "Join an organisation", page)
}

// acceptInvitation accepts an invitation.
func acceptInvitation(v *visit) error {
	member, err := v.one(http.MethodPost, acceptPath, object{"token": v.form("token")})
	if p := new(problem); errors.As(err, &p) && p.status < http.StatusInternalServerError && p.status != http.StatusUnauthorized {
		return v.showInvitation(p)
	}
	if err != nil {
		return err
	}
	return v.show("invitation-done.html", "You have joined the organisation", member["role"])
}
