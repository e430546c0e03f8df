package api_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"stonetown/internal/eventlog"
)

// events are those of a client's tenant after a position.
func (w *world) events(t testing.TB, c *client, after int) []eventlog.Event {
	t.Helper()
	log, err := eventlog.Open(eventlog.Config{DB: w.db})
	if err != nil {
		t.Fatal(err)
	}
	tenant, err := w.tenants.TenantByHost(t.Context(), c.host)
	if err != nil {
		t.Fatal(err)
	}
	found, err := log.Read(t.Context(), tenant.ID, int64(after), eventlog.MaxPage)
	if err != nil {
		t.Fatal(err)
	}
	return found
}

// events compares the events with the changes that were made: one for each, in their order.
func events(t *testing.T, w *world, c *client) {
	const soon = "2126-01-02T03:04:05.000Z"
	seen := len(w.events(t, c, 0))
	happened := func(a answer, want ...object) {
		t.Helper()
		found := w.events(t, c, seen)
		seen += len(found)
		var got []object
		for _, e := range found {
			got = append(got, object{"type": string(e.Type), "data": parse(t, string(e.Data))})
			if e.Origin.RequestID != a.header.Get("X-Request-Id") || e.Origin.ClientIP != "127.0.0.1" ||
				e.Origin.Actor.Type != "application" || e.Origin.Actor.ID == "" || e.Origin.Actor.ID != e.Origin.ClientID {
				t.Errorf("%s: origin %+v", e.Type, e.Origin)
			}
			if !strings.HasPrefix(e.ID, "evt_") || time.Since(e.At) > time.Minute {
				t.Errorf("%s: id %s, at %v", e.Type, e.ID, e.At)
			}
		}
		equal(t, "events", got, want)
	}
	event := func(typ string, data object) object { return object{"type": typ, "data": data} }
	ann, bob := user("ann"), user("bob")
	fact := func(subject object) object {
		return object{"resource": resource("document", "d"), "relation": "viewer", "subject": subject}
	}
	const target = "/api/v1/resources/document/d/relations"

	document := object{
		"name": "document", "relations": []any{object{"name": "viewer", "rewrites": []any{object{"kind": "this"}}}},
		"conditions": []any{object{"name": "office", "expression": "open", "parameters": object{"open": "bool"}}},
	}
	defined := c.want(t, 201, "", "POST", "/api/v1/resource-types", document)
	happened(defined, event("resource_type.created", object{"resource_type": defined.data()}))
	happened(c.want(t, 200, "", "POST", "/api/v1/resource-types", document))
	document["description"] = "A document"
	defined = c.want(t, 200, "", "POST", "/api/v1/resource-types", document)
	happened(defined, event("resource_type.updated", object{"resource_type": defined.data()}))
	happened(c.want(t, 400, "rewrite_invalid", "POST", "/api/v1/resource-types", object{"name": "x", "relations": []any{object{"name": "y", "rewrites": []any{object{"kind": "computed", "relation": "z"}}}}}))

	happened(c.want(t, 201, "", "POST", target, relation(ann, "viewer")), event("relation.created", object{"relation": fact(ann)}))
	happened(c.want(t, 200, "", "POST", target, relation(ann, "viewer")))
	on := object{"expires_at": soon, "condition": object{"name": "office", "context": object{"open": true}}}
	happened(c.want(t, 200, "", "POST", target, with(relation(ann, "viewer"), on)), event("relation.created", object{"relation": with(fact(ann), on), "replaced": true}))
	happened(c.want(t, 404, "resource_type_not_found", "POST", "/api/v1/resources/nothing/d/relations", relation(ann, "viewer")))
	happened(c.want(t, 204, "", "DELETE", target, relation(ann, "viewer")), event("relation.deleted", object{"relation": fact(ann)}))
	happened(c.want(t, 404, "relation_not_found", "DELETE", target, relation(ann, "viewer")))

	bulk := func(ops ...object) object { return object{"operations": ops} }
	op := func(name string, fact object) object { return with(object{"op": name}, fact) }
	happened(c.want(t, 200, "", "POST", bulkPath, bulk(op("create", fact(ann)), op("create", fact(bob)), op("create", fact(ann)), op("delete", fact(bob)))),
		event("relation.bulk_applied", object{
			"created": 2.0, "updated": 0.0, "deleted": 1.0,
			"operations": []any{
				with(op("create", fact(ann)), object{"result": "created"}), with(op("create", fact(bob)), object{"result": "created"}),
				with(op("delete", fact(bob)), object{"result": "deleted"}),
			},
		}))
	happened(c.want(t, 200, "", "POST", bulkPath, bulk(op("create", fact(ann)))))
	happened(c.want(t, 404, "relation_not_found", "POST", bulkPath, bulk(op("create", fact(bob)), op("delete", fact(user("eve"))))))

	const path = "/api/v1/resources/document/e"
	happened(c.want(t, 201, "", "POST", "/api/v1/resources", with(resource("document", "e"), object{"attributes": object{"a": 1.0}})),
		event("resource.created", object{"resource": with(resource("document", "e"), object{"attributes": object{"a": 1.0}})}))
	happened(c.want(t, 200, "", "POST", "/api/v1/resources", resource("document", "e")))
	happened(c.want(t, 200, "", "POST", "/api/v1/resources", with(resource("document", "e"), object{"attributes": object{"a": 2.0}})),
		event("resource.updated", object{"resource": with(resource("document", "e"), object{"attributes": object{"a": 2.0}})}))
	happened(c.want(t, 200, "", "PATCH", path, object{"attributes": object{"a": 3.0}}),
		event("resource.updated", object{"resource": with(resource("document", "e"), object{"attributes": object{"a": 3.0}})}))
	happened(c.want(t, 200, "", "PATCH", path, object{}))
	happened(c.want(t, 204, "", "DELETE", path, nil), event("resource.deleted", object{"resource": resource("document", "e")}))
	happened(c.want(t, 204, "", "DELETE", "/api/v1/resources/document/d", nil),
		event("resource.deleted", object{"resource": resource("document", "d"), "relations_deleted": 1.0}))
	happened(c.want(t, 204, "", "DELETE", "/api/v1/resource-types/document", nil),
		event("resource_type.deleted", object{"resource_type": object{"name": "document"}}))

	// A replayed response has no event.
	define(t, c)
	seen = len(w.events(t, c, 0))
	first := c.under(t, "key", "POST", target, relation(ann, "viewer"))
	c.under(t, "key", "POST", target, relation(ann, "viewer"))
	happened(first, event("relation.created", object{"relation": fact(ann)}))
}

// eventOrder commits writes together. Their events are in the order in which they took effect.
func eventOrder(t *testing.T, w *world, c *client) {
	define(t, c)
	before := len(w.events(t, c, 0))
	const target = "/api/v1/resources/document/d/relations"
	const writers, each = 8, 10
	var wg sync.WaitGroup
	for i := range writers {
		wg.Go(func() {
			for n := range each {
				if n%2 == 0 {
					relate(t, c, "document", "d", "viewer", user("ann"))
				} else if a := c.do(t, "DELETE", target, relation(user("ann"), "viewer")); a.status != 204 && a.status != 404 {
					t.Errorf("writer %d: %s", i, a.text)
				}
			}
		})
	}
	wg.Wait()
	found := w.events(t, c, before)
	exists := false
	for i, e := range found {
		if e.Position != int64(before+i+1) {
			t.Fatalf("position %d follows %d", e.Position, before+i)
		}
		var data struct{ Relation struct{ Relation string } }
		if err := json.Unmarshal(e.Data, &data); err != nil || data.Relation.Relation != "viewer" {
			t.Fatalf("%s: %v", e.Data, err)
		}
		if want := map[bool]eventlog.Type{true: eventlog.RelationDeleted, false: eventlog.RelationCreated}[exists]; e.Type != want {
			t.Fatalf("event %d is %s, want %s", i, e.Type, want)
		}
		exists = !exists
	}
	if len(found) == 0 || exists != allowed(t, c, user("ann"), "view", "document", "d") {
		t.Errorf("after %d events the relation exists: %t", len(found), exists)
	}
}

// BenchmarkWrites measures the write of a relation over HTTP, alone by one of many clients or
// in a bulk of 500.
func BenchmarkWrites(b *testing.B) {
	for name, url := range databases {
		w := newWorld(b, url(b), nil)
		c := w.tenant(b, "writes")
		define(b, c)
		var n atomic.Int64
		write := func(b *testing.B, target string, body any) {
			text, err := json.Marshal(body)
			if err != nil {
				b.Fatal(err)
			}
			r := httptest.NewRequest("POST", "http://"+c.host+target, bytes.NewReader(text))
			r.Header.Set("Authorization", "Bearer "+c.token)
			r.Header.Set("Content-Type", "application/json")
			rec := httptest.NewRecorder()
			c.server.Config.Handler.ServeHTTP(rec, r)
			if rec.Code >= 300 {
				b.Fatal(rec.Body)
			}
		}
		b.Run(name+"/alone", func(b *testing.B) {
			b.SetParallelism(32)
			b.RunParallel(func(p *testing.PB) {
				for p.Next() {
					id := fmt.Sprintf("d%d", n.Add(1))
					write(b, "/api/v1/resources/document/"+id+"/relations", relation(user("ann"), "viewer"))
				}
			})
		})
		b.Run(name+"/bulk", func(b *testing.B) {
			for b.Loop() {
				var ops []object
				for range 500 {
					ops = append(ops, object{"op": "create", "resource": resource("document", fmt.Sprintf("d%d", n.Add(1))), "relation": "viewer", "subject": user("ann")})
				}
				write(b, "/api/v1/resources/relations/bulk", object{"operations": ops})
			}
			b.ReportMetric(float64(b.Elapsed().Microseconds())/float64(500*b.N), "µs/relation")
		})
	}
}
