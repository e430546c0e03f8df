package identity

import (
	"slices"
	"strconv"
	"sync"
	"testing"

	"stonetown/internal/eventlog"
)

func TestAdmit(t *testing.T) {
	onEach(t, func(t *testing.T, w *world) {
		ctx := t.Context()
		scopes := []string{"users:read", "users:write"}
		person := func(n int) Person {
			id := "usr_person" + strconv.Itoa(n)
			return Person{ID: id, Name: "Person " + strconv.Itoa(n), Email: id + "@control.test"}
		}
		// Several requests of three persons at once make one user of each, and one group.
		var mu sync.Mutex
		var all sync.WaitGroup
		admitted := map[string][]string{}
		for i := range 12 {
			all.Go(func() {
				p := person(i % 3)
				u, err := w.Admit(ctx, tenant, p, scopes)
				mu.Lock()
				defer mu.Unlock()
				if err != nil {
					t.Error(err)
				}
				admitted[p.ID] = append(admitted[p.ID], u.ID)
			})
		}
		all.Wait()
		for id, users := range admitted {
			if slices.Sort(users); len(slices.Compact(users)) != 1 {
				t.Errorf("%s is the users %q", id, users)
			}
		}
		groups, err := w.Groups(ctx, tenant, "", "", nil, 10)
		w.must(err)
		if len(groups) != 1 || groups[0].Slug != OrganizationMembersSlug || groups[0].MemberCount != 3 || !slices.Equal(groups[0].Scopes, scopes) {
			t.Fatalf("the groups are %+v", groups)
		}
		group := groups[0]
		members := func() (ids []string) {
			list, err := w.Members(ctx, tenant, group.ID, nil, 10)
			w.must(err)
			for _, m := range list {
				ids = append(ids, m.ManagedBy)
			}
			slices.Sort(ids)
			return ids
		}
		if got := members(); !slices.Equal(got, []string{"usr_person0", "usr_person1", "usr_person2"}) {
			t.Errorf("the members are %q", got)
		}
		w.wantEvents(map[eventlog.Type]int{eventlog.UserCreated: 3, eventlog.GroupCreated: 1, eventlog.GroupMemberAdded: 3})

		// It is found by no address, and its address is free.
		u, err := w.Admit(ctx, tenant, person(0), scopes)
		w.must(err)
		if u.State != Active || u.EmailVerified || u.ManagedBy != "usr_person0" {
			t.Errorf("admitted: %+v", u)
		}
		_, err = w.UserByEmail(ctx, tenant, u.Email)
		w.wantErr("by its address", err, ErrUserNotFound)
		if other := w.user(u.Email); other.ID == u.ID {
			t.Error("an account with its address is the managed user")
		}
		again, err := w.Admit(ctx, tenant, person(0), scopes)
		w.must(err)
		if again.ID != u.ID {
			t.Error("an account with its address takes its place")
		}

		// A new name of the person is that of the user.
		renamed := person(0)
		renamed.Name = "Renamed"
		u, err = w.Admit(ctx, tenant, renamed, scopes)
		w.must(err)
		if u.Name != "Renamed" {
			t.Errorf("renamed: %+v", u)
		}
		w.wantEvents(map[eventlog.Type]int{eventlog.UserCreated: 4, eventlog.GroupCreated: 1, eventlog.GroupMemberAdded: 3, eventlog.UserUpdated: 1})

		// What administrators took is not given back.
		_, err = w.UpdateGroup(ctx, tenant, group.ID, func(g *Group) { g.Scopes = nil }, "")
		w.must(err)
		_, err = w.RemoveMembers(ctx, tenant, group.ID, []string{u.ID}, "")
		w.must(err)
		_, err = w.Admit(ctx, tenant, renamed, scopes)
		w.must(err)
		fourth, err := w.Admit(ctx, tenant, person(3), scopes)
		w.must(err)
		if got, _ := w.Group(ctx, tenant, group.ID); len(got.Scopes) != 0 || got.MemberCount != 3 {
			t.Errorf("the group is %+v", got)
		}
		if got := members(); !slices.Equal(got, []string{"usr_person1", "usr_person2", "usr_person3"}) {
			t.Errorf("the members are %q", got)
		}
		w.wantErr("delete the group", w.DeleteGroup(ctx, tenant, group.ID, ""), ErrOrganizationMembers)
		_, err = w.CreateGroup(ctx, tenant, NewGroup{Slug: OrganizationMembersSlug, Name: "x"}, "")
		w.wantErr("its slug", err, ErrSlugInvalid)

		_, err = w.Disable(ctx, tenant, fourth.ID, "")
		w.must(err)
		_, err = w.Admit(ctx, tenant, person(3), scopes)
		w.wantErr("disabled", err, ErrManagedDisabled)
		// A user that was deleted is another one the next time.
		w.must(w.Delete(ctx, tenant, fourth.ID, ""))
		fifth, err := w.Admit(ctx, tenant, person(3), scopes)
		w.must(err)
		if fifth.ID == fourth.ID || !slices.Contains(members(), "usr_person3") {
			t.Errorf("%s was deleted, and is %s", fourth.ID, fifth.ID)
		}
	})
}

// A managed user is not the administrator that a tenant keeps, and not the first user of a tenant.
func TestManagedUsersDoNotCount(t *testing.T) {
	onEach(t, func(t *testing.T, w *world) {
		ctx := t.Context()
		managed, err := w.Admit(ctx, tenant, Person{ID: "usr_boss", Name: "Boss", Email: "boss@control.test"}, nil)
		w.must(err)
		_, err = w.FirstUser(ctx, tenant)
		w.wantErr("the first user", err, ErrUserNotFound)
		ann := w.user("ann@example.com")
		w.must(w.Administrators(ctx, tenant, []string{"users:write"}))
		groups, err := w.Groups(ctx, tenant, "administrators", "", nil, 1)
		w.must(err)
		admins := groups[0].ID
		if first, err := w.Members(ctx, tenant, admins, nil, 10); err != nil || len(first) != 1 || first[0].ID != ann.ID {
			t.Fatalf("the administrators are %+v, %v", first, err)
		}
		_, err = w.AddMembers(ctx, tenant, admins, []string{managed.ID}, "")
		w.must(err)
		_, err = w.RemoveMembers(ctx, tenant, admins, []string{ann.ID}, "")
		w.wantErr("remove the administrator", err, ErrLastAdministrator)
		_, err = w.RemoveMembers(ctx, tenant, admins, []string{ann.ID, managed.ID}, "")
		w.wantErr("remove both", err, ErrLastAdministrator)
		_, err = w.Disable(ctx, tenant, ann.ID, "")
		w.wantErr("disable the administrator", err, ErrLastAdministrator)
		w.wantErr("delete the administrator", w.Delete(ctx, tenant, ann.ID, ""), ErrLastAdministrator)
		_, err = w.Disable(ctx, tenant, managed.ID, "")
		w.must(err)
		if got, err := w.RemoveMembers(ctx, tenant, admins, []string{managed.ID}, ""); err != nil || got[managed.ID] != Succeeded {
			t.Errorf("remove the managed user: %v, %v", got, err)
		}
	})
}
