package resources_test

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"

	"stonetown/engine"
	"stonetown/engine/resources"
	"stonetown/internal/eventlog"
	"stonetown/internal/pgtest"
	"stonetown/internal/sqldb"
	"stonetown/schema"
	"stonetown/tuplestore"
	"stonetown/tuplestore/sqlstore"
)

func TestMain(m *testing.M) { pgtest.Main(m) }

// by is the origin of the tests' changes.
var by = engine.Origin{Actor: "test"}

const tenant = "tnt_a"

// onEach runs a test on every database, with a type doc defined.
func onEach(t *testing.T, test func(t *testing.T, s *resources.Store, e *engine.Engine)) {
	for name, url := range map[string]func(*testing.T) string{
		"sqlite":   func(t *testing.T) string { return "sqlite://" + filepath.Join(t.TempDir(), "test.db") },
		"postgres": func(t *testing.T) string { return pgtest.URL(t) },
	} {
		t.Run(name, func(t *testing.T) {
			ctx := context.Background()
			db, err := sqldb.Open(ctx, sqldb.Config{URL: url(t)})
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { db.Close() })
			if err := db.Migrate(ctx, sqlstore.Migrations(), resources.Migrations(), eventlog.Migrations()); err != nil {
				t.Fatal(err)
			}
			store, err := sqlstore.New(sqlstore.Config{DB: db})
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { store.Close() })
			e, err := engine.New(engine.Config{Store: store})
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(e.Close)
			doc := schema.Type{Name: "doc", Relations: []schema.Relation{{Name: "viewer"}}}
			if _, _, _, err := e.PutType(ctx, tenant, doc, by); err != nil {
				t.Fatal(err)
			}
			test(t, resources.New(e, db), e)
		})
	}
}

func TestAttributes(t *testing.T) {
	onEach(t, func(t *testing.T, s *resources.Store, e *engine.Engine) {
		ctx := context.Background()
		put := func(attributes string) (resources.Resource, bool) {
			t.Helper()
			r := resources.Resource{Type: "doc", ExternalID: "a/b c%2F"}
			if attributes != "" {
				r.Attributes = []byte(attributes)
			}
			stored, created, _, err := s.Put(ctx, tenant, r, by)
			if err != nil {
				t.Fatal(err)
			}
			return stored, created
		}
		expect := func(got resources.Resource, attributes string) {
			t.Helper()
			if string(got.Attributes) != attributes {
				t.Errorf("attributes %q, want %q", got.Attributes, attributes)
			}
			read, err := s.Get(ctx, tenant, got.Type, got.ExternalID)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(got, read); diff != "" {
				t.Errorf("read again (-was +is):\n%s", diff)
			}
		}
		stored, created := put(`{"size":1}`)
		if !created || stored.CreatedAt.IsZero() {
			t.Errorf("created %v at %v", created, stored.CreatedAt)
		}
		expect(stored, `{"size":1}`)
		stored, created = put("") // absent: the attributes are kept
		if created {
			t.Error("created twice")
		}
		expect(stored, `{"size":1}`)
		stored, _ = put(`{"size":2}`)
		expect(stored, `{"size":2}`)
		stored, _, err := s.Patch(ctx, tenant, "doc", "a/b c%2F", nil, by)
		if err != nil {
			t.Fatal(err)
		}
		expect(stored, "")
		if !stored.UpdatedAt.After(stored.CreatedAt) {
			t.Errorf("updated at %v, created at %v", stored.UpdatedAt, stored.CreatedAt)
		}

		if _, err := s.Delete(ctx, tenant, "doc", "a/b c%2F", by); err != nil {
			t.Fatal(err)
		}
		stored, created = put("")
		if !created {
			t.Error("a deleted resource is still registered")
		}
		expect(stored, "") // the attributes of the old resource are deleted with it
	})
}

func TestMissingResources(t *testing.T) {
	onEach(t, func(t *testing.T, s *resources.Store, e *engine.Engine) {
		ctx := context.Background()
		var missing *engine.ResourceNotFoundError
		var unknown *engine.UnknownTypeError
		if _, err := s.Get(ctx, tenant, "doc", "x"); !errors.As(err, &missing) {
			t.Errorf("Get: %v", err)
		}
		if _, _, err := s.Patch(ctx, tenant, "doc", "x", []byte("{}"), by); !errors.As(err, &missing) {
			t.Errorf("Patch: %v", err)
		}
		if _, err := s.Delete(ctx, tenant, "doc", "x", by); !errors.As(err, &missing) {
			t.Errorf("Delete: %v", err)
		}
		if _, err := s.Get(ctx, tenant, "ghost", "x"); !errors.As(err, &unknown) {
			t.Errorf("Get of an undefined type: %v", err)
		}
		if _, _, _, err := s.Put(ctx, tenant, resources.Resource{Type: "ghost", ExternalID: "x"}, by); !errors.As(err, &unknown) {
			t.Errorf("Put of an undefined type: %v", err)
		}
		// A request that fails stores no attributes that a later resource would have.
		stored, _, _, err := s.Put(ctx, tenant, resources.Resource{Type: "doc", ExternalID: "x"}, by)
		if err != nil || stored.Attributes != nil {
			t.Errorf("%q %v", stored.Attributes, err)
		}
	})
}

// Resources registered by a relation are listed too, newest first, in pages
// that together are complete.
func TestList(t *testing.T) {
	onEach(t, func(t *testing.T, s *resources.Store, e *engine.Engine) {
		ctx := context.Background()
		const n = 25
		for i := range n {
			id := fmt.Sprintf("d%02d", i)
			if i%2 == 0 {
				_, err := e.Write(ctx, tenant, engine.WriteRequest{Ops: []engine.WriteOp{{
					Resource: tuplestore.Object{Type: "doc", ID: id}, Relation: "viewer",
					Subject: tuplestore.Subject{Type: "user", ID: "ann"},
				}}})
				if err != nil {
					t.Fatal(err)
				}
				continue
			}
			r := resources.Resource{Type: "doc", ExternalID: id, Attributes: fmt.Appendf(nil, `{"n":%d}`, i)}
			if _, _, _, err := s.Put(ctx, tenant, r, by); err != nil {
				t.Fatal(err)
			}
		}
		var after *tuplestore.Record
		next := n - 1
		for {
			page, last, err := s.List(ctx, tenant, "doc", after, 4)
			if err != nil {
				t.Fatal(err)
			}
			if last == nil {
				break
			}
			for _, r := range page {
				want := ""
				if next%2 == 1 {
					want = fmt.Sprintf(`{"n":%d}`, next)
				}
				if r.ExternalID != fmt.Sprintf("d%02d", next) || string(r.Attributes) != want {
					t.Fatalf("got %s with %q, want d%02d with %q", r.ExternalID, r.Attributes, next, want)
				}
				next--
			}
			after = last
		}
		if next != -1 {
			t.Errorf("%d resources are missing from the pages", next+1)
		}
	})
}
