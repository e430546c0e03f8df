package console

import (
	"errors"
	"net/http"
	"net/url"
	"strings"

	"stonetown/api/inprocess"
)

const groupsPage = "/console/groups"

func groups(v *visit) error {
	const title = "Groups"
	q := v.form("q")
	data := object{"Q": q, "Write": v.may("groups:write")}
	a, err := v.read(http.MethodGet, query("/api/v1/groups", "q", q, "cursor", v.form("cursor")), nil)
	v.paged(data, a.Meta, groupsPage, "q", q)
	if e, ok := errors.AsType[*inprocess.Error](err); ok && e.Status == http.StatusBadRequest {
		return v.again("groups.html", title, data, faultOf(e, "q", "q"))
	}
	if err != nil {
		return err
	}
	data["Groups"] = a.Data
	return v.show("groups.html", title, data)
}

// groupPath returns the path of the operations on the group of a page.
func (v *visit) groupPath() string { return "/api/v1/groups/" + url.PathEscape(v.variable("group_id")) }

// groupPage returns the path of the page of the group.
func (v *visit) groupPage() string { return groupsPage + "/" + url.PathEscape(v.variable("group_id")) }

func group(v *visit) error { return v.groupWith(nil) }

func (v *visit) groupWith(f *fault) error {
	g, err := v.one(v.groupPath())
	if err != nil {
		return err
	}
	a, err := v.read(http.MethodGet, query(v.groupPath()+"/members", "cursor", v.form("cursor")), nil)
	if err != nil {
		return err
	}
	name, _ := g["name"].(string)
	data := object{"Group": g, "Members": a.Data, "User": v.form("user"), "Write": v.may("groups:write"), "Users": v.may("users:read")}
	v.paged(data, a.Meta, v.groupPage())
	if f != nil {
		return v.again("group.html", name, data, f)
	}
	return v.show("group.html", name, data)
}

// addMember adds a user, given by the id or by the address.
func addMember(v *visit) error {
	id := strings.TrimSpace(v.form("user"))
	if id == "" {
		return v.groupWith(invalid("user", "Enter the address or the id of a user."))
	}
	id, wrong, err := v.userID(id)
	if err != nil {
		return err
	}
	if wrong != nil {
		return v.groupWith(wrong)
	}
	a, err := v.call(http.MethodPost, v.groupPath()+"/members", object{"user_id": id})
	if e, ok := errors.AsType[*inprocess.Error](err); ok && (e.Status == http.StatusBadRequest || e.Code == "user_not_found") {
		f := faultOf(e)
		f.field = "user" // the only one
		return v.groupWith(f)
	}
	if err != nil {
		return err
	}
	done := "added"
	if a.Meta.Code == "user_already_member" {
		done = "existed"
	}
	v.redirect(v.groupPage() + "?done=" + done)
	return nil
}

// removeMemberForm asks for a confirmation.
func removeMemberForm(v *visit) error {
	if err := v.require("groups:write"); err != nil {
		return err
	}
	a, err := v.call(http.MethodGet, v.groupPath(), nil)
	if err != nil {
		return err
	}
	g, _ := a.Data.(object)
	name, _ := g["name"].(string)
	who := v.form("user")
	if v.may("users:read") {
		a, err := v.call(http.MethodGet, "/api/v1/users/"+url.PathEscape(who), nil)
		if err != nil {
			return err
		}
		u, _ := a.Data.(object)
		who, _ = u["email"].(string)
	}
	v.calls = append(v.calls, call{http.MethodDelete, v.memberPath(), nil})
	return v.show("confirm.html", "Remove "+who+" from "+name+"?", object{
		"Text": "The next access token lacks the scopes of the group. Tokens that were issued before keep them until they expire.", "Button": "Remove", "Action": v.groupPage() + "/remove", "Cancel": v.groupPage(), "Fields": object{"user": v.form("user")},
	})
}

// memberPath returns the path of the operation on a member.
func (v *visit) memberPath() string {
	return v.groupPath() + "/members/" + url.PathEscape(v.form("user"))
}

func removeMember(v *visit) error {
	if _, err := v.call(http.MethodDelete, v.memberPath(), nil); err != nil {
		return err
	}
	v.redirect(v.groupPage() + "?done=removed")
	return nil
}
