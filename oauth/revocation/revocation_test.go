package revocation_test

import (
	"path/filepath"
	"testing"
	"time"

	"stonetown/internal/sqldb"
	"stonetown/oauth"
	"stonetown/oauth/revocation"
)

// A revocation is known to every process after Settle, and forgotten when it expires.
func TestFeed(t *testing.T) {
	ctx := t.Context()
	db, err := sqldb.Open(ctx, sqldb.Config{URL: "sqlite:" + filepath.Join(t.TempDir(), "test.db")})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { db.Close() })
	if err := db.Migrate(ctx, oauth.Migrations()); err != nil {
		t.Fatal(err)
	}
	now := time.Date(2026, 11, 20, 9, 0, 0, 0, time.UTC)
	clock := func() time.Time { return now }
	processes := []*revocation.Feed{revocation.New(db, clock), revocation.New(db, clock)}
	revoked := revocation.Item{TenantID: "tnt_a", Kind: revocation.Token, ID: "tok_1"}
	others := []revocation.Item{{TenantID: "tnt_b", Kind: revocation.Token, ID: "tok_1"}, {TenantID: "tnt_a", Kind: revocation.Client, ID: "tok_1"}, {TenantID: "tnt_a", Kind: revocation.Token}}
	has := func(what string, want bool, items ...revocation.Item) {
		t.Helper()
		for i, p := range processes {
			if got, err := p.Has(ctx, items...); err != nil || got != want {
				t.Errorf("%s, process %d: %v, %v, want %v", what, i, got, err, want)
			}
		}
	}
	has("before", false, revoked)
	var b sqldb.Batch
	processes[0].Set(&b, revoked, now.Add(time.Hour))
	if err := db.Tx(ctx, func(tx *sqldb.Tx) error { return tx.Send(ctx, &b) }); err != nil {
		t.Fatal(err)
	}
	processes[0].Settle(ctx)
	has("revoked", true, revoked)
	has("among others", true, append(others, revoked)...)
	has("others", false, others...)

	now = now.Add(time.Hour)
	for i, p := range processes {
		p.Settle(ctx)
		if _, err := p.Has(ctx, others...); err != nil || p.Known() != 0 {
			t.Errorf("process %d knows %d expired revocations, %v", i, p.Known(), err)
		}
	}
}
