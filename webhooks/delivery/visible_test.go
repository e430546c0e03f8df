package delivery_test

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"stonetown/engine"
	"stonetown/engine/audit"
	"stonetown/engine/enginetest"
	"stonetown/engine/resources"
	"stonetown/internal/eventlog"
	"stonetown/tuplestore/sqlstore"
	"stonetown/webhooks/delivery"
	"stonetown/webhooks/subscription"
)

// permissions is a world with an engine, whose changes have the events of the product.
type permissions struct {
	*world
	audit     audit.Engine
	resources *resources.Store
	by        engine.Origin
}

func openPermissions(t *testing.T, url string, c engine.Config) *permissions {
	p := &permissions{by: engine.Origin{Actor: "test"}}
	p.world = open(t, url, new(receivers), nil, func(config *delivery.Config) {
		if err := config.DB.Migrate(t.Context(), sqlstore.Migrations(), resources.Migrations()); err != nil {
			t.Fatal(err)
		}
		store, err := sqlstore.New(sqlstore.Config{DB: config.DB})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { store.Close() })
		c.Store = store
		e, err := engine.New(c)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(e.Close)
		p.audit, p.resources = audit.Engine{Engine: e}, resources.New(e, config.DB)
		config.Checker = e
	})
	types, err := enginetest.ParseSchema("document\n  parent [document]\n  viewer [user, group#member]: this | parent->viewer\n  act view = viewer\n  when near(distance int, limit int): distance < limit")
	if err != nil {
		t.Fatal(err)
	}
	if _, _, _, err := p.audit.PutType(t.Context(), tenantID, types[0], p.by); err != nil {
		t.Fatal(err)
	}
	return p
}

// ops reads relations; those after a minus are deleted.
func (p *permissions) ops(relations ...string) (ops []engine.WriteOp) {
	p.t.Helper()
	for _, text := range relations {
		text, remove := strings.CutPrefix(text, "-")
		op, err := enginetest.ParseRelation(text)
		if err != nil {
			p.t.Fatal(err)
		}
		if len(op.Context) == 0 {
			op.Context = nil
		}
		op.Delete = remove
		ops = append(ops, op)
	}
	return ops
}

// relate writes or deletes one relation and returns its event.
func (p *permissions) relate(relation string) eventlog.Event {
	p.t.Helper()
	if _, err := p.audit.WriteRelation(p.t.Context(), tenantID, p.ops(relation)[0], p.by); err != nil {
		p.t.Fatal(err)
	}
	return p.last()
}

// bulk writes relations together and returns their event.
func (p *permissions) bulk(relations ...string) eventlog.Event {
	p.t.Helper()
	if _, err := p.audit.Write(p.t.Context(), tenantID, engine.WriteRequest{Origin: p.by, Ops: p.ops(relations...)}); err != nil {
		p.t.Fatal(err)
	}
	return p.last()
}

// put changes the attributes of a document and returns its event.
func (p *permissions) put(id string) eventlog.Event {
	p.t.Helper()
	r := resources.Resource{Type: "document", ExternalID: id, Attributes: []byte(`{"title":"x"}`)}
	if _, _, _, err := p.resources.Put(p.t.Context(), tenantID, r, p.by); err != nil {
		p.t.Fatal(err)
	}
	return p.last()
}

// remove deletes a document and returns its event.
func (p *permissions) remove(id string) eventlog.Event {
	p.t.Helper()
	if _, err := p.resources.Delete(p.t.Context(), tenantID, "document", id, p.by); err != nil {
		p.t.Fatal(err)
	}
	return p.last()
}

// last returns the newest event.
func (p *permissions) last() (e eventlog.Event) {
	p.t.Helper()
	if err := p.log.All(p.t.Context(), tenantID, func(next eventlog.Event) error { e = next; return nil }); err != nil {
		p.t.Fatal(err)
	}
	return e
}

// A subscription with a visibility gets the events that its subject may see by the relations at
// the revision of each event, whether they are compared at once or long after.
func TestVisibleByTheEngine(t *testing.T) {
	for temperature, c := range map[string]engine.Config{"resident": {}, "cold": {ResidentBytes: -1}} {
		for _, late := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s, late %t", temperature, late), func(t *testing.T) {
				databases(t, func(t *testing.T, url string) { testVisibleByTheEngine(t, openPermissions(t, url, c), late) })
			})
		}
	}
}

func testVisibleByTheEngine(t *testing.T, p *permissions, late bool) {
	see := func(name string, s subscription.Subject) subscription.Subscription {
		t.Helper()
		s2, _, err := p.registry.Create(t.Context(), tenantID, subscription.Subscription{
			Name: name, URL: "https://a.example.com/" + name, Events: []string{"*"},
			VisibleTo: &subscription.Visibility{Subject: s, Action: "view"},
		})
		if err != nil {
			t.Fatal(err)
		}
		return s2
	}
	subscriptions := map[string]subscription.Subscription{
		"ann":   see("ann", subscription.Subject{Type: "user", ID: "ann"}),
		"bob":   see("bob", subscription.Subject{Type: "user", ID: "bob"}),
		"eng":   see("eng", subscription.Subject{Type: "group", ID: "eng"}),
		"robot": see("robot", subscription.Subject{Type: "robot", ID: "1"}), // a type that is not defined
	}
	if !late {
		p.run()
	}
	want := map[string]map[string]string{} // by event and subscription: the documents
	expect := func(e eventlog.Event, documents map[string]string) { want[e.ID] = documents }
	none := map[string]string{}

	expect(p.relate("document:direct#viewer@user:ann"), map[string]string{"ann": "direct"})
	expect(p.relate("document:team#viewer@group:eng"), map[string]string{"eng": "team"})
	// Membership itself is no event about a resource.
	if _, err := p.audit.Engine.Write(t.Context(), tenantID, engine.WriteRequest{Origin: p.by, Ops: p.ops("group:eng#member@user:bob")}); err != nil {
		t.Fatal(err)
	}
	expect(p.put("team"), map[string]string{"eng": "team", "bob": "team"})
	expect(p.relate("document:child#parent@document:team"), map[string]string{"eng": "child", "bob": "child"})
	expect(p.put("denied"), none)

	// Bob leaves the group: what happened before stays visible to him, also if it is compared later.
	if _, err := p.audit.Engine.Write(t.Context(), tenantID, engine.WriteRequest{Origin: p.by, Ops: p.ops("-group:eng#member@user:bob")}); err != nil {
		t.Fatal(err)
	}
	expect(p.put("team"), map[string]string{"eng": "team"})
	expect(p.put("direct"), map[string]string{"ann": "direct"})
	expect(p.relate("-document:direct#viewer@user:ann"), none)
	expect(p.put("direct"), none)

	// A deleted resource is compared at the revision before.
	expect(p.relate("document:deleted#viewer@user:ann"), map[string]string{"ann": "deleted"})
	expect(p.remove("deleted"), map[string]string{"ann": "deleted"})
	expect(p.put("deleted"), none)

	// A bulk write is reduced to the visible operations.
	reduced := p.bulk("document:b1#viewer@user:ann", "document:b2#viewer@user:bob", "document:b1#parent@document:b2", "document:b3#viewer@group:eng")
	expect(reduced, map[string]string{"ann": "b1 b1", "bob": "b1 b2 b1", "eng": "b3"}) // bob sees b1 by its parent
	expect(p.bulk("document:b4#viewer@user:ann", "document:b5#viewer@user:ann"), map[string]string{"ann": "b4 b5"})
	expect(p.bulk("document:b6#viewer@user:eve", "document:b7#viewer@user:eve"), none)

	// A condition whose context is not stored is not met; with stored values it is decided.
	expect(p.relate(`document:near#viewer@user:ann when near with {"limit": 5}`), none)
	expect(p.relate(`document:met#viewer@user:ann when near with {"limit": 5, "distance": 1}`), map[string]string{"ann": "met"})
	expect(p.relate(`document:unmet#viewer@user:ann when near with {"limit": 5, "distance": 9}`), none)
	expect(p.bulk("document:near#viewer@user:bob", "document:met#viewer@user:bob"), map[string]string{"ann": "met", "bob": "near met"})

	// Other events are about no resource.
	for typ, data := range map[eventlog.Type]map[string]any{
		eventlog.UserCreated:          {"user": map[string]any{"id": "ann"}},
		eventlog.GroupMemberAdded:     {"group": map[string]any{"id": "eng"}},
		eventlog.WebhookSecretRotated: {"subscription": map[string]any{"id": "whs_other"}},
	} {
		expect(p.emit(typ, data), none)
	}

	end := p.bulk("document:end#viewer@user:ann", "document:end#viewer@user:bob", "document:end#viewer@group:eng")
	expect(end, map[string]string{"ann": "end end end", "bob": "end end end", "eng": "end end end"})
	if late {
		p.run()
	}
	total := 0
	for _, documents := range want {
		total += len(documents)
	}
	p.until("the last event", func() bool { return len(p.receivers.of(end.ID, subscriptions["eng"].URL)) == 1 })
	for deadline := time.Now().Add(10 * time.Second); len(p.receivers.all()) < total && time.Now().Before(deadline); { // what is missing is reported below
		time.Sleep(5 * time.Millisecond)
	}
	for name, s := range subscriptions {
		for _, r := range p.receivers.all() {
			if r.url != s.URL {
				continue
			}
			documents, known := want[r.event.EventID][name]
			if !known {
				t.Errorf("%s was sent %s: %s", name, r.event.EventType, r.event.Data)
				continue
			}
			if got := documentsOf(t, r); got != documents {
				t.Errorf("%s was sent %s of %q, want %q", name, r.event.EventType, got, documents)
			}
			delete(want[r.event.EventID], name)
		}
	}
	for id, documents := range want {
		if len(documents) > 0 {
			t.Errorf("%s was not sent: %v", id, documents)
		}
	}

	// What was visible stays the content when the delivery is repeated.
	s := subscriptions["eng"]
	for _, d := range p.deliveries(s.ID) {
		if d.EventID != reduced.ID {
			continue
		}
		if _, err := p.queue.Redeliver(t.Context(), tenantID, d.ID); err != nil {
			t.Fatal(err)
		}
	}
	p.until("the repeated delivery", func() bool { return len(p.receivers.of(reduced.ID, s.URL)) == 2 })
	if got := p.receivers.of(reduced.ID, s.URL); string(got[0].body) != string(got[1].body) {
		t.Errorf("first %s, then %s", got[0].body, got[1].body)
	}
}

// documentsOf returns the documents that the data of an event names, of the operations of a bulk
// write in order.
func documentsOf(t *testing.T, r request) string {
	t.Helper()
	type named struct{ Resource struct{ External_ID string } }
	var data struct {
		named
		Relation                  named
		Operations                []named
		Created, Updated, Deleted int
	}
	if err := json.Unmarshal(r.event.Data, &data); err != nil {
		t.Fatal(err)
	}
	if data.Created+data.Updated+data.Deleted != len(data.Operations) {
		t.Errorf("the counts are not those of the operations: %s", r.event.Data)
	}
	ids := []string{data.Resource.External_ID, data.Relation.Resource.External_ID}
	for _, o := range data.Operations {
		ids = append(ids, o.Resource.External_ID)
	}
	return strings.Join(slices.DeleteFunc(ids, func(id string) bool { return id == "" }), " ")
}

// Questions that exceed the budget of the engine are answered with no, and do not hold up the
// other events of the tenant.
func TestVisibleBeyondTheBudget(t *testing.T) {
	databases(t, func(t *testing.T, url string) {
		p := openPermissions(t, url, engine.Config{MaxVisits: 300})
		s, _, err := p.registry.Create(t.Context(), tenantID, subscription.Subscription{
			Name: "s", URL: "https://a.example.com/", Events: []string{"relation.*"},
			VisibleTo: &subscription.Visibility{Subject: subscription.Subject{Type: "user", ID: "ann"}, Action: "view"},
		})
		if err != nil {
			t.Fatal(err)
		}
		p.run()
		var chain []string
		for i := range 400 {
			chain = append(chain, fmt.Sprintf("document:%d#parent@document:%d", i, i+1))
		}
		deep := p.bulk(append(chain, "document:easy#viewer@user:ann")...)
		p.until("the operation that can be decided", func() bool { return len(p.receivers.of(deep.ID, s.URL)) == 1 })
		if got := documentsOf(t, p.receivers.all()[0]); got != "easy" {
			t.Errorf("sent %.100q", got)
		}
		after := p.relate("document:after#viewer@user:ann")
		p.until("the event after it", func() bool { return len(p.receivers.of(after.ID, s.URL)) == 1 })
	})
}

func TestLargeEvents(t *testing.T) {
	databases(t, func(t *testing.T, url string) {
		w := open(t, url, new(receivers), nil)
		w.run()
		s := w.subscribe("https://a.example.com/", "resource.*", "relation.*")
		big := strings.Repeat("a", 200<<10)
		fits := w.emit(eventlog.ResourceCreated, map[string]any{"resource": map[string]any{"type": "document", "external_id": "1", "attributes": map[string]any{"a": big}}})
		cut := w.emit(eventlog.ResourceUpdated, map[string]any{"resource": map[string]any{"type": "document", "external_id": "1", "attributes": map[string]any{"a": big, "b": big}}})
		bulk := w.emit(eventlog.RelationBulkApplied, map[string]any{"created": 2, "updated": 0, "deleted": 0, "operations": []any{big, big}})
		w.until("three deliveries", func() bool { return len(w.receivers.all()) == 3 })
		for _, c := range []struct {
			e    eventlog.Event
			want string
		}{
			{fits, string(fits.Data)},
			{cut, `{"resource":{"external_id":"1","type":"document"},"truncated":true}`},
			{bulk, `{"created":2,"deleted":0,"truncated":true,"updated":0}`},
		} {
			got := w.receivers.of(c.e.ID, s.URL)
			if len(got) != 1 || string(got[0].event.Data) != c.want || len(got[0].body) > 256<<10 {
				t.Errorf("%s: %.200s", c.e.Type, got[0].event.Data)
			}
		}
	})
}
