package authn

import (
	"errors"
	"testing"

	"stonetown/identity"
	"stonetown/identity/threat"
	"stonetown/internal/sqldb"
)

// The feeds of a tenant without any are not asked for, so a sign-in costs no statement. Those of others
// are asked for with their revision, and a refused sign-in begins no session.
func TestScreen(t *testing.T) {
	w := open(t)
	w.user("ann@bad.example")
	w.domain, w.mode = "bad.example", threat.Refuse
	signIn := func() error {
		_, err := w.SignIn(t.Context(), tenantA, "ann@bad.example", plain, device("test"))
		return err
	}
	w.must(signIn())
	w.must(w.SignUp(t.Context(), tenantA, NewAccount{Email: "bob@bad.example", Password: plain}))
	if len(w.revisions) > 0 {
		t.Fatalf("asked for the feeds of a tenant without any: %v", w.revisions)
	}
	w.must(w.db.Tx(t.Context(), func(tx *sqldb.Tx) error {
		var b sqldb.Batch
		w.users.ThreatFeedsChanged(&b, tenantA.ID)
		w.users.ThreatFeedsChanged(&b, tenantA.ID)
		return tx.Send(t.Context(), &b)
	}))
	if err := signIn(); !errors.Is(err, ErrThreat) || len(w.revisions) != 1 || w.revisions[0] != 2 {
		t.Errorf("%v, revisions %v", err, w.revisions)
	}
	if err := w.SignUp(t.Context(), tenantA, NewAccount{Email: "eve@bad.example", Password: plain}); !errors.Is(err, ErrThreat) {
		t.Errorf("sign-up: %v", err)
	}
	// A change of the settings leaves the revision as it is.
	w.settings(func(s *identity.Settings) { s.RequireVerifiedEmail = false })
	w.mode = threat.Log
	w.must(signIn())
	if last := w.revisions[len(w.revisions)-1]; last != 2 {
		t.Errorf("the revision is %d, want 2", last)
	}
}
