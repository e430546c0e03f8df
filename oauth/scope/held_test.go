package scope_test

import (
	"path/filepath"
	"slices"
	"testing"

	"stonetown/engine"
	"stonetown/internal/eventlog"
	"stonetown/internal/pgtest"
	"stonetown/internal/sqldb"
	"stonetown/oauth"
	"stonetown/oauth/oauthtest"
	"stonetown/oauth/scope"
	"stonetown/schema"
	"stonetown/tuplestore"
	"stonetown/tuplestore/sqlstore"
)

func TestMain(m *testing.M) { pgtest.Main(m) }

// The scopes of a user are those of the groups that have the user as a member, as of the last
// change: no other scope of the tenant, and none of another tenant.
func TestHeldBy(t *testing.T) {
	for name, at := range map[string]func(testing.TB) string{
		"SQLite":     func(t testing.TB) string { return "sqlite:" + filepath.Join(t.TempDir(), "test.db") },
		"PostgreSQL": pgtest.URL,
	} {
		t.Run(name, func(t *testing.T) {
			ctx := t.Context()
			db, err := sqldb.Open(ctx, sqldb.Config{URL: at(t)})
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { db.Close() })
			if err := db.Migrate(ctx, oauth.Migrations(), sqlstore.Migrations(), eventlog.Migrations()); err != nil {
				t.Fatal(err)
			}
			e := oauthtest.Engine(t, oauth.Config{DB: db})
			r := scope.NewRegistry(db, e)
			write := func(remove bool, typ, id, relation string, subject tuplestore.Subject) {
				t.Helper()
				op := engine.WriteOp{Delete: remove, Resource: tuplestore.Object{Type: typ, ID: id}, Relation: relation, Subject: subject}
				if _, err := e.Write(ctx, "tnt_a", engine.WriteRequest{Ops: []engine.WriteOp{op}}); err != nil {
					t.Fatal(err)
				}
			}
			held := func(tenantID string) []string {
				t.Helper()
				var b sqldb.Batch
				names := r.QueueNames(&b, tenantID)
				if err := db.Send(ctx, &b); err != nil {
					t.Fatal(err)
				}
				held, err := r.HeldBy(ctx, tenantID, "usr_ann", names())
				if err != nil {
					t.Fatal(err)
				}
				return held
			}
			for _, name := range []string{"print", "scan"} {
				if _, err := r.Create(ctx, "tnt_a", scope.Scope{Name: name, Entitlement: scope.ByGroup}); err != nil {
					t.Fatal(err)
				}
			}
			members := func(group string) tuplestore.Subject {
				return tuplestore.Subject{Type: schema.GroupType, ID: group, Relation: schema.GroupMember}
			}
			ann := tuplestore.Subject{Type: schema.UserType, ID: "usr_ann"}
			write(false, schema.ScopeType, "print", schema.ScopeHolder, members("staff"))
			write(false, schema.ScopeType, "users:read", schema.ScopeHolder, members("staff"))
			write(false, schema.ScopeType, "scan", schema.ScopeHolder, members("others"))
			for _, want := range [][]string{nil, {"print", "users:read"}, nil} {
				if got := held("tnt_a"); !slices.Equal(got, want) {
					t.Errorf("held: %v, want %v", got, want)
				}
				if got := held("tnt_b"); got != nil {
					t.Errorf("held in another tenant: %v", got)
				}
				write(want != nil, schema.GroupType, "staff", schema.GroupMember, ann)
			}
		})
	}
}
