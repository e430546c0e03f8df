package api_test

import (
	"context"
	"slices"
	"testing"

	"stonetown/api/openapi/eventtest"
	"stonetown/internal/eventlog"
	"stonetown/internal/sqldb"
)

// catalogued validates all events of a world by the document, and returns their types.
func catalogued(t testing.TB, w *world) (seen map[eventlog.Type]bool) {
	t.Helper()
	seen = map[eventlog.Type]bool{}
	ctx := context.Background()
	tenants, err := sqldb.Texts(w.db.Query(ctx, `SELECT tenant_id FROM event_heads WHERE tenant_id LIKE 'tnt_%' UNION SELECT tenant_id FROM tenant_heads WHERE tenant_id LIKE 'tnt_%'`))
	if err != nil {
		t.Fatal(err)
	}
	log, err := eventlog.Open(eventlog.Config{DB: w.db})
	if err != nil {
		t.Fatal(err)
	}
	for _, tenantID := range tenants {
		for after, last := int64(0), false; !last; {
			events, err := log.Read(ctx, tenantID, after, eventlog.MaxPage)
			if err != nil {
				t.Fatal(err)
			}
			for _, e := range events {
				seen[e.Type] = true
				eventtest.Data(t, string(e.Type), e.Data)
				if actor := e.Origin.Actor; actor != (eventlog.Actor{}) && (!slices.Contains([]string{"user", "application"}, actor.Type) || actor.ID == "") {
					t.Errorf("%s: the actor is %+v", e.Type, actor)
				}
				after = e.Position
			}
			last = len(events) == 0
		}
	}
	return seen
}

// emitted fails if no scenario has emitted a type of the list.
func emitted(t *testing.T, seen map[eventlog.Type]bool) {
	t.Helper()
	for _, name := range eventlog.Types() {
		if !seen[name] {
			t.Errorf("no scenario has emitted %s", name)
		}
	}
}
