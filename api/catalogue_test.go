package api_test

import (
	"context"
	"encoding/json"
	"errors"
	"slices"
	"testing"

	"stonetown/api/openapi/eventtest"
	"stonetown/internal/eventlog"
)

// catalogued validates all events of a world by the document, and returns their types.
func catalogued(t testing.TB, w *world) (seen map[eventlog.Type]bool) {
	t.Helper()
	seen = map[eventlog.Type]bool{}
	rows, err := w.db.Query(context.Background(), `SELECT type, origin, data FROM events WHERE tenant_id LIKE 'tnt_%'`)
	if err != nil {
		t.Fatal(err)
	}
	for rows.Next() {
		var name, text, data string
		if err := rows.Scan(&name, &text, &data); err != nil {
			t.Fatal(err)
		}
		var origin eventlog.Origin
		if err := json.Unmarshal([]byte(text), &origin); err != nil {
			t.Fatal(err)
		}
		actor := origin.Actor
		seen[eventlog.Type(name)] = true
		eventtest.Data(t, name, []byte(data))
		if actor != (eventlog.Actor{}) && (!slices.Contains([]string{"user", "application"}, actor.Type) || actor.ID == "") {
			t.Errorf("%s: the actor is %+v", name, actor)
		}
	}
	if err := errors.Join(rows.Err(), rows.Close()); err != nil {
		t.Fatal(err)
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
