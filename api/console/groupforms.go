package console

import (
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"

	"stonetown/api/inprocess"
	"stonetown/identity"
)

// groupErrors are the fields that errors of operations on groups are about.
var groupErrors = map[string]string{"slug_invalid": "slug", "slug_unavailable": "slug", "scope_unknown": "scopes", "permission_denied": "scopes"}

const newGroupTitle = "New group"

// groupFields returns the fields of a group. scopes are those that it can be given; nil: its scopes
// stay as they are.
func groupFields(scopes []string) []section {
	fields := []field{
		{Name: "name", Label: "Name", Kind: asText, Required: true, Hint: "At most 500 bytes."},
		{Name: "description", Label: "Description", Kind: asArea, Blank: true, Hint: "At most 500 bytes."},
	}
	if scopes != nil {
		fields = append(fields, field{
			Name: "scopes", Label: "Scopes", Kind: asChoices, Options: scopes, Own: true,
			Hint: "Members get them with their next token. Of the built-in scopes, you can give those that you have.",
		})
	}
	return []section{{"", fields}}
}

// givable returns the scopes that the person can give to a group, and those that it has, sorted. Of the
// built-in scopes, people can give those that they have; of those that every user has, there is no need.
func (v *visit) givable(group object) ([]string, error) {
	had, _ := group["scopes"].([]any)
	all := texts(had)
	if v.may("applications:read") {
		found, err := v.allScopes()
		if err != nil {
			return nil, err
		}
		for _, s := range found {
			if name := fmt.Sprint(s["name"]); s["built_in"] != true || s["entitlement"] != "self" && v.may(name) {
				all = append(all, name)
			}
		}
	} else {
		for _, name := range v.scopes {
			if !strings.HasPrefix(name, "me:") {
				all = append(all, name)
			}
		}
	}
	slices.Sort(all)
	return slices.Compact(all), nil
}

// newGroup returns the form for a new group.
func (v *visit) newGroup() (*form, error) {
	if err := v.require("groups:write"); err != nil {
		return nil, err
	}
	scopes, err := v.givable(nil)
	if err != nil {
		return nil, err
	}
	sections := groupFields(scopes)
	slug := field{Name: "slug", Label: "Slug", Kind: asText, Required: true, Hint: "For programs: 1 to 63 lower-case letters, digits and single hyphens. It cannot be changed."}
	sections[0].Fields = slices.Insert(sections[0].Fields, 1, slug)
	return &form{Sections: sections, Action: groupsPage + "/new", Button: "Create", Cancel: groupsPage}, nil
}

func newGroupForm(v *visit) error {
	f, err := v.newGroup()
	if err != nil {
		return err
	}
	f.show(object{})
	v.calls = append(v.calls, call{http.MethodPost, "/api/v1/groups", object{"slug": "editors", "name": "Editors", "scopes": []string{"resources:read"}}})
	return v.show("form.html", newGroupTitle, object{"Form": f})
}

func createGroup(v *visit) error {
	f, err := v.newGroup()
	if err != nil {
		return err
	}
	created, done, err := v.submit(f, newGroupTitle, "", "/api/v1/groups", groupErrors)
	if !done {
		return err
	}
	id, _ := created["id"].(string)
	v.redirect(groupsPage + "/" + url.PathEscape(id) + "?done=group-created")
	return nil
}

// groupForm returns the form for the group of the page. That of the administrators does not offer
// scopes; if they are sent all the same, the operation refuses.
func (v *visit) groupForm() (f *form, g object, err error) {
	if err := v.require("groups:write"); err != nil {
		return nil, nil, err
	}
	if g, err = v.one(v.groupPath()); err != nil {
		return nil, nil, err
	}
	var scopes []string
	if g["slug"] != identity.AdministratorsSlug || v.r.PostForm.Has("scopes") {
		if scopes, err = v.givable(g); err != nil {
			return nil, nil, err
		}
	}
	fields := groupFields(scopes)
	return &form{Sections: fields, Action: v.groupPage() + "/edit", Button: "Save", Cancel: v.groupPage()}, versioned(g, fields[0].Fields), nil
}

func editGroupForm(v *visit) error {
	f, g, err := v.groupForm()
	if err != nil {
		return err
	}
	f.show(g)
	v.calls = append(v.calls, call{http.MethodPatch, v.groupPath(), object{"name": g["name"]}})
	return v.show("form.html", titleOf("Edit ", g), object{"Form": f})
}

func editGroup(v *visit) error {
	f, g, err := v.groupForm()
	if err != nil {
		return err
	}
	return v.change(f, titleOf("Edit ", g), v.groupPath(), g, groupErrors, v.groupPage())
}

// deleteGroupForm asks for a confirmation, and leads to the page of a group that cannot be deleted.
func deleteGroupForm(v *visit) error {
	if err := v.require("groups:write"); err != nil {
		return err
	}
	a, err := v.call(http.MethodGet, v.groupPath(), nil)
	if err != nil {
		return err
	}
	g, _ := a.Data.(object)
	if g["can_delete"] != true {
		v.redirect(v.groupPage())
		return nil
	}
	v.calls = append(v.calls, call{http.MethodDelete, v.groupPath(), nil})
	return v.confirm(titleOf("Delete ", g)+"?", object{
		"Text": lossOf(g), "Button": "Delete", "Action": v.groupPage() + "/delete", "Cancel": v.groupPage(), "Fields": object{},
	}, nil)
}

// lossOf describes what is lost with a group.
func lossOf(group object) string {
	loss := "It has no members."
	switch n, _ := group["member_count"].(float64); {
	case n == 1:
		loss = "Its member loses"
	case n > 1:
		loss = fmt.Sprintf("Its %.0f members lose", n)
	}
	list, _ := group["scopes"].([]any)
	switch scopes := texts(list); {
	case group["member_count"] == 0.0:
	case len(scopes) > 0:
		loss += " the scopes " + strings.Join(scopes, ", ") + ", unless another group gives them. Tokens that were issued before keep them until they expire."
	default:
		loss += " the membership. The group gives no scopes."
	}
	return loss + " All relations that name the group are deleted, so what members may do to resources by them ends at once. This cannot be undone."
}

func deleteGroup(v *visit) error {
	_, err := v.once(http.MethodDelete, v.groupPath(), nil)
	if e, ok := errors.AsType[*inprocess.Error](err); ok && e.Code == "permission_denied" {
		return v.groupWith(faultOf(e))
	}
	if err != nil {
		return err
	}
	v.redirect(groupsPage + "?done=group-deleted")
	return nil
}
