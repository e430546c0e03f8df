package enginetest

import (
	"context"
	"encoding/base64"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"stonetown/engine"
	"stonetown/tuplestore"
	"stonetown/tuplestore/storetest"
)

// revisionOf returns the revision of a token.
func revisionOf(t *testing.T, token string) int64 {
	t.Helper()
	text, err := base64.RawURLEncoding.DecodeString(token)
	if err != nil {
		t.Fatal(err)
	}
	revision, err := strconv.ParseInt(string(text[strings.LastIndexByte(string(text), '|')+1:]), 10, 64)
	if err != nil {
		t.Fatal(err)
	}
	return revision
}

// A question that will never have an answer is answered with no, and not with an error, after
// which it would be asked again and again. This must not depend on the backend, or on whether
// the tenant is resident.
func TestAllowedAtHasNoPermanentErrors(t *testing.T) {
	residentAndCold(t, func(t *testing.T, e *engine.Engine, s tuplestore.Store) {
		ctx := t.Context()
		const tenant = "tnt_a"
		define := func(text string) int64 {
			t.Helper()
			types, err := ParseSchema(text)
			if err != nil {
				t.Fatal(err)
			}
			var last int64
			for _, typ := range types {
				_, _, token, err := e.PutType(ctx, tenant, typ, by)
				if err != nil {
					t.Fatal(err)
				}
				last = revisionOf(t, token)
			}
			return last
		}
		write := func(relations ...string) int64 {
			t.Helper()
			req := engine.WriteRequest{Origin: by}
			for _, text := range relations {
				text, remove := strings.CutPrefix(text, "-")
				op, err := ParseRelation(text)
				if err != nil {
					t.Fatal(err)
				}
				op.Delete = remove
				req.Ops = append(req.Ops, op)
			}
			response, err := e.Write(ctx, tenant, req)
			if err != nil {
				t.Fatal(err)
			}
			return revisionOf(t, response.Token)
		}
		// ask also asks about document:plain, which the question must not prevent from its answer.
		ask := func(tenant string, revision int64, s tuplestore.Subject, action string, o tuplestore.Object) (answer, plain bool) {
			t.Helper()
			questions := []tuplestore.Object{o, {Type: "document", ID: "plain"}}
			var all []bool
			for len(all) < len(questions) {
				got, err := e.AllowedAt(ctx, tenant, revision, s, action, questions[len(all):])
				if err != nil || len(got) == 0 {
					t.Errorf("%s %s %s at %d: %d answers, %v", s, action, o, revision, len(got), err)
					return false, false
				}
				all = append(all, got...)
			}
			return all[0], all[1]
		}
		document := func(id string) tuplestore.Object { return tuplestore.Object{Type: "document", ID: id} }
		ann := tuplestore.Subject{Type: "user", ID: "ann"}

		define("other\n  viewer [user]")
		noSchema := write("other:1#viewer@user:ann") // no type document yet
		define("document\n  parent [document]\n  viewer [user]\n  odd: viewer - parent->odd\n  when near(distance int, limit int): distance < limit")
		plain := write("document:plain#viewer@user:ann")
		revoked := write("-document:plain#viewer@user:ann")
		newest := write(
			"document:plain#viewer@user:ann",
			`document:conditional#viewer@user:ann when near with {"limit": 5}`,
			"document:cycle#viewer@user:ann", "document:cycle#parent@document:cycle")

		for _, c := range []struct {
			name     string
			revision int64
			plain    bool
		}{
			{"the revision of the write", plain, true},
			{"a later revision", revoked, false},
			{"before the type was defined", noSchema, false},
			{"after the end of the history: as of the newest", newest + 1000, true},
		} {
			if _, got := ask(tenant, c.revision, ann, "viewer", document("plain")); got != c.plain {
				t.Errorf("%s: %t", c.name, got)
			}
		}
		long, nul, broken := strings.Repeat("x", engine.MaxID+1), "a\x00b", "a\xffb"
		for _, c := range []struct {
			name    string
			subject tuplestore.Subject
			action  string
			object  tuplestore.Object
			plain   bool
		}{
			{"a condition without its context", ann, "viewer", document("conditional"), true},
			{"a cycle through an exclusion", ann, "odd", document("cycle"), true},
			{"a resource without relations", ann, "viewer", document("nothing"), true},
			{"an unknown type", ann, "viewer", tuplestore.Object{Type: "ghost", ID: "1"}, true},
			{"no type", ann, "viewer", tuplestore.Object{ID: "1"}, true},
			{"no id", ann, "viewer", document(""), true},
			{"a long id", ann, "viewer", document(long), true},
			{"the wildcard", ann, "viewer", document("*"), true},
			{"an id with NUL", ann, "viewer", document(nul), true},
			{"an id that is not UTF-8", ann, "viewer", document(broken), true},
			{"an unknown action", ann, "fly", document("plain"), false},
			{"no action", ann, "", document("plain"), false},
			{"an action with NUL", ann, nul, document("plain"), false},
			{"an unknown type of subject", tuplestore.Subject{Type: "robot", ID: "1"}, "viewer", document("plain"), false},
			{"no subject", tuplestore.Subject{}, "viewer", document("plain"), false},
			{"a subject without an id", tuplestore.Subject{Type: "user"}, "viewer", document("plain"), false},
			{"a subject with a long id", tuplestore.Subject{Type: "user", ID: long}, "viewer", document("plain"), false},
			{"a subject with NUL", tuplestore.Subject{Type: "user", ID: nul}, "viewer", document("plain"), false},
			{"a subject that is not UTF-8", tuplestore.Subject{Type: "user", ID: broken}, "viewer", document("plain"), false},
			{"an unknown relation of the subject", tuplestore.Subject{Type: "group", ID: "1", Relation: "boss"}, "viewer", document("plain"), false},
			{"relations of a wildcard", tuplestore.Subject{Type: "group", ID: "*", Relation: "member"}, "viewer", document("plain"), false},
		} {
			for _, revision := range []int64{newest, newest - 1} {
				got, plain := ask(tenant, revision, c.subject, c.action, c.object)
				if got {
					t.Errorf("%s, at %d of %d: allowed", c.name, revision, newest)
				}
				if want := c.plain && revision == newest; plain != want {
					t.Errorf("%s, at %d of %d: another question got %t", c.name, revision, newest, plain)
				}
			}
		}

		// A type that is deleted later is visible at the earlier revision.
		write("-other:1#viewer@user:ann")
		if _, err := e.Forget(ctx, tenant, tuplestore.Object{Type: "other", ID: "1"}, by); err != nil {
			t.Fatal(err)
		}
		if _, err := e.DeleteType(ctx, tenant, "other", by); err != nil {
			t.Fatal(err)
		}
		other := tuplestore.Object{Type: "other", ID: "1"}
		if got, _ := ask(tenant, noSchema, ann, "viewer", other); !got {
			t.Error("not visible at the revision before its type was deleted")
		}
		if got, _ := ask(tenant, newest+3, ann, "viewer", other); got {
			t.Error("visible after its type was deleted")
		}

		// A tenant without any data: it was never used, or was deleted.
		if got, plain := ask("tnt_gone", 7, ann, "viewer", document("plain")); got || plain {
			t.Error("a tenant without data allows something")
		}

		collector, ok := s.(storetest.Collector)
		if !ok {
			return // the store in memory collects nothing
		}
		if err := collector.Collect(ctx, time.Now().Add(time.Hour), time.Now().Add(time.Hour)); err != nil {
			t.Fatal(err)
		}
		if _, got := ask(tenant, revoked, ann, "viewer", document("plain")); !got {
			t.Error("the answer at a collected revision is not that of the newest one")
		}
		if got, _ := ask(tenant, noSchema, ann, "viewer", other); got {
			t.Error("the answer at a collected schema is not that of the newest one")
		}
	})
}

// oldSchema is a store whose earlier schemas cannot be read.
type oldSchema struct{ tuplestore.Store }

type oldSnapshot struct{ tuplestore.Snapshot }

func (s oldSchema) Snapshot(tenant string, rev tuplestore.Revision) tuplestore.Snapshot {
	return oldSnapshot{s.Store.Snapshot(tenant, rev)}
}

func (oldSnapshot) Schema(context.Context) ([]byte, tuplestore.Revision, error) {
	return []byte(`{"format": "of another version"`), 1, nil
}

// Where the schema of an earlier revision cannot be read, the answers are those of the newest one.
func TestAllowedAtUnreadableSchema(t *testing.T) {
	residentAndCold(t, func(t *testing.T, _ *engine.Engine, s tuplestore.Store) {
		e := newEngine(t, engine.Config{}, oldSchema{s})
		var last string
		for i := range 2 {
			types, err := ParseSchema(fmt.Sprintf("document\n  viewer [user]\n  more%d [user]", i))
			if err != nil {
				t.Fatal(err)
			}
			if _, _, _, err := e.PutType(t.Context(), "tnt_a", types[0], by); err != nil {
				t.Fatal(err)
			}
			op, err := ParseRelation("document:1#viewer@user:ann")
			if err != nil {
				t.Fatal(err)
			}
			op.Delete = i == 1
			response, err := e.Write(t.Context(), "tnt_a", engine.WriteRequest{Origin: by, Ops: []engine.WriteOp{op}})
			if err != nil {
				t.Fatal(err)
			}
			last = response.Token
		}
		got, err := e.AllowedAt(t.Context(), "tnt_a", revisionOf(t, last)-2, tuplestore.Subject{Type: "user", ID: "ann"}, "viewer", []tuplestore.Object{{Type: "document", ID: "1"}})
		if err != nil || !slices.Equal(got, []bool{false}) {
			t.Errorf("%v, %v", got, err)
		}
	})
}
