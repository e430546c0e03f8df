package authn

import (
	"context"
	"testing"
	"time"

	"stonetown/identity"
	"stonetown/identity/external"
	"stonetown/identity/session"
	"stonetown/internal/eventlog"
	"stonetown/internal/sqldb"
)

// A user always keeps one way to sign in: a password, a passkey, or an external identity.
func TestUnlinkKeepsLastMethod(t *testing.T) {
	for name, c := range map[string]struct {
		password, passkey, other bool
		err                      error
	}{
		"password":         {password: true},
		"passkey":          {passkey: true},
		"another identity": {other: true},
		"no other way":     {err: ErrLastMethod},
	} {
		t.Run(name, func(t *testing.T) {
			w := open(t)
			u := w.user("ann@example.com")
			if !c.password {
				w.change(u, func(u *identity.User) { u.SetPassword("") })
			}
			if c.passkey {
				w.addPasskey(u)
			}
			link := func(connection string) {
				i := external.Identity{TenantID: tenantA.ID, UserID: u.ID, ConnectionID: connection, Slug: connection, Kind: "oidc", Subject: "ann"}
				w.must(w.Link(t.Context(), i))
				w.mail("ann@example.com", "was linked")
				w.must(w.Link(t.Context(), i))
				w.silence("linking again")
			}
			link("con_a")
			if c.other {
				link("con_b")
			}
			w.wantErr("an unknown connection", w.Unlink(t.Context(), tenantA.ID, u.ID, "con_x"), external.ErrNotFound)
			err := w.Unlink(t.Context(), tenantA.ID, u.ID, "con_a")
			w.wantErr("the identity", err, c.err)
			left, listErr := w.Identities(t.Context(), tenantA.ID, u.ID)
			want := 0
			if c.other || err != nil {
				want = 1
			}
			if len(left) != want || listErr != nil {
				t.Errorf("%d identities are left, %v", len(left), listErr)
			}
			if err == nil {
				w.mail("ann@example.com", "was unlinked")
				w.wantEvents(map[eventlog.Type]int{eventlog.UserIdentityUnlinked: 1})
			}
		})
	}
}

func TestLinkRequiresUser(t *testing.T) {
	w := open(t)
	err := w.Link(t.Context(), external.Identity{TenantID: tenantA.ID, UserID: "usr_deleted", ConnectionID: "con_a", Subject: "x"})
	w.wantErr("a deleted user", err, identity.ErrUserNotFound)
}

// Each session that is ended is reported once, and an expired one is not.
func TestSessionEndsAreReported(t *testing.T) {
	reports := make(chan session.Ended, 10)
	w := open(t, func(w *world) {
		w.OnSessionEnd(func(_ context.Context, _ *sqldb.Tx, e session.Ended) error {
			reports <- e
			return nil
		})
	})
	w.user("ann@example.com")
	a, b := w.signIn("ann@example.com").Session, w.signIn("ann@example.com").Session
	w.must(w.SignOut(t.Context(), b, true))
	got := map[string]int{}
	for range 2 {
		select {
		case e := <-reports:
			got[e.ID]++
		case <-time.After(30 * time.Second):
			t.Fatalf("reported: %v", got)
		}
	}
	if got[a.ID] != 1 || got[b.ID] != 1 {
		t.Errorf("reported: %v", got)
	}
	var rows int64
	w.must(w.db.QueryRow(t.Context(), `SELECT COUNT(*) FROM ended_sessions`).Scan(&rows))
	if rows > 1 { // the transaction of the last report may not have committed yet
		t.Errorf("%d sessions are still to be reported", rows)
	}
}
