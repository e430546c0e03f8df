package identity

import (
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"

	"github.com/go-json-experiment/json"

	"stonetown/engine"
	"stonetown/engine/audit"
	"stonetown/engine/resources"
	"stonetown/internal/eventlog"
	"stonetown/internal/sqldb"
	"stonetown/schema"
	"stonetown/tuplestore"
)

// The revision of an event is exactly that of its change: a check at that revision reflects the
// change, and a check at the revision before does not. Events of other changes have the revision
// of the newest change before them.
func TestRevisionsOfEvents(t *testing.T) {
	onEach(t, func(t *testing.T, w *world) {
		ctx := t.Context()
		w.must(w.db.Migrate(ctx, resources.Migrations()))
		e := w.relations.(*engine.Engine)
		log, err := eventlog.Open(eventlog.Config{DB: w.db})
		w.must(err)
		appended := make(chan string, 1000)
		log.OnAppend(func(tenantID string) { appended <- tenantID })
		audited, store, by := audit.Engine{Engine: e}, resources.New(e, w.db), engine.Origin{Actor: "test"}

		doc := schema.Type{Name: "doc", Relations: []schema.Relation{{Name: "viewer"}}}
		_, _, newest, err := audited.PutType(ctx, tenant, doc, by)
		w.must(err)
		// at is the token of a revision.
		at := func(revision int64) engine.Consistency {
			text, err := base64.RawURLEncoding.DecodeString(newest)
			w.must(err)
			end := strings.LastIndexByte(string(text), '|') + 1
			return engine.Consistency{Mode: engine.Exactly, Token: base64.RawURLEncoding.EncodeToString(fmt.Appendf(text[:end], "%d", revision))}
		}
		// answer is whether a user has a relation to an object at a revision.
		answer := func(revision int64, o tuplestore.Object, relation, userID string) string {
			t.Helper()
			got, err := e.Check(ctx, tenant, engine.CheckRequest{
				Subject: tuplestore.Subject{Type: schema.UserType, ID: userID}, Queries: []engine.Query{{Resource: o, Action: relation}}, Consistency: at(revision),
			})
			w.must(err)
			var unknown *engine.ResourceNotFoundError
			var undefined *engine.UndefinedRelationError
			switch d := got.Decisions[0]; {
			case errors.As(d.Err, &unknown):
				return "no resource"
			case errors.As(d.Err, &undefined):
				return "no relation"
			case d.Err != nil:
				t.Fatal(d.Err)
			case d.Allowed:
				return "allowed"
			}
			return "denied"
		}
		position := int64(0)
		// last returns the newest event, and fails unless it is the only new one, of a type.
		last := func(want eventlog.Type) eventlog.Event {
			t.Helper()
			events, err := log.Read(ctx, tenant, position, 100)
			w.must(err)
			if len(events) != 1 || events[0].Type != want {
				t.Fatalf("%d new events, want one %s: %v", len(events), want, events)
			}
			position = events[0].Position
			if tenantID := <-appended; tenantID != tenant || len(appended) != 0 {
				t.Errorf("%s: notices of %s and %d more", want, tenantID, len(appended))
			}
			return events[0]
		}
		ann := w.user("ann@example.com")
		<-appended // resource_type.created
		position++
		last(eventlog.UserCreated)
		// changes fails unless the newest event has the revision at which an answer changes, and
		// an event of another change after it has that one, too.
		changes := func(typ eventlog.Type, o tuplestore.Object, relation, before, after string) {
			t.Helper()
			r := last(typ).Revision
			if got := answer(r-1, o, relation, ann.ID) + ", " + answer(r, o, relation, ann.ID); got != before+", "+after {
				t.Errorf("%s at revision %d: %s", typ, r, got)
			}
			_, err := w.Update(ctx, tenant, ann.ID, func(u *User) { u.Profile.GivenName += "x" })
			w.must(err)
			if next := last(eventlog.UserUpdated).Revision; next != r {
				t.Errorf("user.updated after %s: revision %d, want %d", typ, next, r)
			}
			// A change without an event separates the revisions.
			_, err = e.Write(ctx, tenant, engine.WriteRequest{Origin: by, Ops: []engine.WriteOp{view("noise", fmt.Sprint(typ))}})
			w.must(err)
		}

		document := tuplestore.Object{Type: "doc", ID: "1"}
		_, _, _, err = store.Put(ctx, tenant, resources.Resource{Type: "doc", ExternalID: "1"}, by)
		w.must(err)
		changes(eventlog.ResourceCreated, document, "viewer", "no resource", "denied")

		_, err = audited.WriteRelation(ctx, tenant, view("1", ann.ID), by)
		w.must(err)
		changes(eventlog.RelationCreated, document, "viewer", "denied", "allowed")

		_, err = audited.Write(ctx, tenant, engine.WriteRequest{Origin: by, Ops: []engine.WriteOp{view("2", ann.ID)}})
		w.must(err)
		changes(eventlog.RelationBulkApplied, tuplestore.Object{Type: "doc", ID: "2"}, "viewer", "no resource", "allowed")

		doc.Relations = append(doc.Relations, schema.Relation{Name: "editor"})
		_, _, _, err = audited.PutType(ctx, tenant, doc, by)
		w.must(err)
		changes(eventlog.ResourceTypeUpdated, document, "editor", "no relation", "denied")

		g, err := w.CreateGroup(ctx, tenant, NewGroup{Slug: "team", Name: "team"}, "")
		w.must(err)
		changes(eventlog.GroupCreated, groupObject(g.ID), schema.GroupMember, "no resource", "denied")

		_, err = w.AddMembers(ctx, tenant, g.ID, []string{ann.ID}, "")
		w.must(err)
		changes(eventlog.GroupMemberAdded, groupObject(g.ID), schema.GroupMember, "denied", "allowed")

		_, err = w.RemoveMembers(ctx, tenant, g.ID, []string{ann.ID}, "")
		w.must(err)
		changes(eventlog.GroupMemberRemoved, groupObject(g.ID), schema.GroupMember, "allowed", "denied")

		_, err = store.Delete(ctx, tenant, "doc", "1", by)
		w.must(err)
		changes(eventlog.ResourceDeleted, document, "viewer", "allowed", "no resource")

		// An imported user becomes a member in the transaction of the creation.
		w.must(w.CreateMany(ctx, tenant, Bulk{
			Users:  []BulkUser{{NewUser: NewUser{Email: "bob@example.com", EmailVerified: true}, Groups: []string{"team"}}},
			Commit: func(context.Context, *sqldb.Tx, *sqldb.Batch, []error) error { return nil },
		}))
		bob, err := w.UserByEmail(ctx, tenant, "bob@example.com")
		w.must(err)
		imported, err := log.Read(ctx, tenant, position, 100)
		w.must(err)
		if len(imported) != 2 || imported[0].Revision != imported[1].Revision {
			t.Fatalf("%v", imported)
		}
		r := imported[0].Revision
		if got := answer(r-1, groupObject(g.ID), schema.GroupMember, bob.ID) + ", " + answer(r, groupObject(g.ID), schema.GroupMember, bob.ID); got != "denied, allowed" {
			t.Errorf("an import at revision %d: %s", r, got)
		}
		position = imported[1].Position

		// Writes that share a transaction have a revision each.
		const writers = 40
		var writing sync.WaitGroup
		for n := range writers {
			writing.Go(func() {
				if _, err := audited.WriteRelation(ctx, tenant, view(fmt.Sprint("many", n), ann.ID), by); err != nil {
					t.Error(err)
				}
			})
		}
		writing.Wait()
		events, err := log.Read(ctx, tenant, position, 100)
		w.must(err)
		if len(events) != writers {
			t.Fatalf("%d events", len(events))
		}
		for _, event := range events {
			var data struct{ Relation engine.RelationDocument }
			w.must(json.Unmarshal(event.Data, &data, json.MatchCaseInsensitiveNames(true)))
			o := tuplestore.Object{Type: "doc", ID: data.Relation.Resource.ExternalID}
			if got := answer(event.Revision-1, o, "viewer", ann.ID) + ", " + answer(event.Revision, o, "viewer", ann.ID); got != "no resource, allowed" {
				t.Errorf("%s at revision %d: %s", o.ID, event.Revision, got)
			}
		}
	})
}

// view relates a user to a document as a viewer.
func view(documentID, userID string) engine.WriteOp {
	return engine.WriteOp{
		Resource: tuplestore.Object{Type: "doc", ID: documentID}, Relation: "viewer", Subject: tuplestore.Subject{Type: schema.UserType, ID: userID},
	}
}
