package federation

import (
	"context"
	"errors"
	"slices"
	"testing"
	"time"

	"stonetown/engine/authority"
	"stonetown/identity/external"
	"stonetown/internal/sqldb"
)

// holder is a caller with some scopes.
type holder []string

func (h holder) MayGive(_ context.Context, _ string, scopes []string) error {
	for _, scope := range scopes {
		if !slices.Contains(h, scope) {
			return &authority.DeniedError{Scope: scope}
		}
	}
	return nil
}

// A provider whose statements replace proofs of users is for administrators.
func TestRights(t *testing.T) {
	everywhere(t, func(f *fixture) {
		f.scopes = []string{"federation:write", "users:write"}
		administrator, limited := holder(f.scopes), holder{"federation:write"}
		denied := func(err error) bool {
			var e *authority.DeniedError
			return errors.As(err, &e) && e.Scope == "users:write"
		}
		with := func(link LinkPolicy, second SecondFactor) func(*Connection) error {
			return func(c *Connection) error {
				c.LinkPolicy, c.SecondFactor = link, second
				return nil
			}
		}
		for _, test := range []struct {
			link   LinkPolicy
			second SecondFactor
			free   bool // for every caller
			want   LinkPolicy
		}{
			{"", AskSecondFactor, true, LinkPrompt},
			{LinkPrompt, AskSecondFactor, true, LinkPrompt},
			{LinkNever, AskSecondFactor, true, LinkNever},
			{LinkVerified, AskSecondFactor, false, LinkVerified},
			{"", AcceptSecondFactor, false, LinkVerified},
			{LinkPrompt, AcceptSecondFactor, false, LinkPrompt},
			{LinkNever, AcceptSecondFactor, false, LinkNever},
			{LinkVerified, AcceptSecondFactor, false, LinkVerified},
		} {
			f.authority = limited
			c := connection("created")
			_ = with(test.link, test.second)(&c)
			created, err := f.Create(f.Context(), acme, c)
			if denied(err) == test.free || test.free && (err != nil || created.LinkPolicy != test.want) {
				f.Errorf("create with %q, %q: %q, %v", test.link, test.second, created.LinkPolicy, err)
			}
			own := connection("own")
			own.LinkPolicy, own.Name = LinkNever, "Own"
			own = f.create(own)
			updated, err := f.Update(f.Context(), acme, own.ID, Change{Apply: with(test.link, test.second)})
			if denied(err) == test.free || test.free && (err != nil || updated.LinkPolicy != test.want) {
				f.Errorf("update to %q, %q: %q, %v", test.link, test.second, updated.LinkPolicy, err)
			}

			f.authority = administrator
			if !test.free {
				if created, err = f.Create(f.Context(), acme, c); err != nil || created.LinkPolicy != test.want || created.SecondFactor != test.second {
					f.Errorf("an administrator creates %q, %q: %q, %v", test.link, test.second, created.LinkPolicy, err)
				}
			}
			if _, err := f.Update(f.Context(), acme, own.ID, Change{Apply: with(test.link, test.second)}); err != nil {
				f.Errorf("an administrator updates to %q, %q: %v", test.link, test.second, err)
			}

			// The provider of the connection of an administrator stays as it is.
			f.authority = limited
			_, err = f.Update(f.Context(), acme, created.ID, Change{Apply: func(c *Connection) error {
				c.ClientID = "another"
				return nil
			}})
			if denied(err) == test.free || test.free && err != nil {
				f.Errorf("another client with %q, %q: %v", test.link, test.second, err)
			}
			if _, err := f.Update(f.Context(), acme, created.ID, Change{Apply: func(c *Connection) error {
				c.Name = "Renamed"
				return nil
			}}); err != nil {
				f.Errorf("another name with %q, %q: %v", test.link, test.second, err)
			}
			for _, id := range []string{created.ID, own.ID} {
				if err := f.Delete(f.Context(), acme, id); err != nil {
					f.Fatal(err)
				}
			}
		}

		// A link that a user has proved does not make the caller an administrator.
		c := f.create(connection("linked"))
		links := external.NewStore(f.db, f.seal, time.Now)
		err := f.db.Tx(f.Context(), func(tx *sqldb.Tx) error {
			_, err := links.Link(f.Context(), tx, external.Identity{TenantID: acme.ID, UserID: "usr_a", ConnectionID: c.ID, Slug: c.Slug, Kind: string(c.Kind), Subject: "1"})
			return err
		})
		if err != nil {
			f.Fatal(err)
		}
		for name, change := range map[string]func(*Connection) error{
			"accepts second factors": with(LinkPrompt, AcceptSecondFactor),
			"another client":         func(c *Connection) error { c.ClientID = "another"; return nil },
		} {
			if _, err := f.Update(f.Context(), acme, c.ID, Change{Apply: change}); !denied(err) {
				f.Errorf("linked, %s: %v", name, err)
			}
		}
	})
}
