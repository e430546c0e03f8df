package delivery_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"stonetown/internal/eventlog"
	"stonetown/internal/sqldb"
	"stonetown/tuplestore"
	"stonetown/webhooks/delivery"
	"stonetown/webhooks/subscription"
)

// checker is a [delivery.Checker] that is a function.
type checker func(ctx context.Context, tenantID string, s tuplestore.Subject, resources []tuplestore.Object) ([]bool, error)

func (c checker) AllowedAt(ctx context.Context, tenantID string, _ int64, s tuplestore.Subject, _ string, resources []tuplestore.Object) ([]bool, error) {
	return c(ctx, tenantID, s, resources)
}

// all allows everything.
func all(resources []tuplestore.Object) []bool {
	answers := make([]bool, len(resources))
	for i := range answers {
		answers[i] = true
	}
	return answers
}

// limit creates a subscription of a tenant to the events that a team may see.
func (w *world) limit(tenantID, url, team string) subscription.Subscription {
	w.t.Helper()
	s, _, err := w.registry.Create(w.t.Context(), tenantID, subscription.Subscription{
		Name: team, URL: url, Events: []string{"relation.*", "resource.*"},
		VisibleTo: &subscription.Visibility{Subject: subscription.Subject{Type: "team", ID: team, Relation: "member"}, Action: "view"},
	})
	if err != nil {
		w.t.Fatal(err)
	}
	return s
}

// emitTo commits an event of a tenant at a revision.
func (w *world) emitTo(tenantID string, revision int64, t eventlog.Type, data any) eventlog.Event {
	w.t.Helper()
	e := eventlog.New(t, eventlog.Origin{}, data)
	err := w.db.Tx(w.t.Context(), func(tx *sqldb.Tx) error {
		var b sqldb.Batch
		eventlog.AppendAt(&b, tenantID, revision, e)
		return tx.Send(w.t.Context(), &b)
	})
	if err != nil {
		w.t.Fatal(err)
	}
	return e
}

func resource(name string) map[string]any {
	return map[string]any{"type": "document", "external_id": name}
}

// bulkOf returns the data of a bulk write of some resources, each of which it names twice.
func bulkOf(resources int) map[string]any {
	var operations []map[string]any
	for i := range 2 * resources {
		operations = append(operations, map[string]any{"op": "create", "result": "created", "resource": resource(fmt.Sprint(i / 2))})
	}
	return map[string]any{"created": len(operations), "updated": 0, "deleted": 0, "operations": operations}
}

const (
	heavyTenants = 6  // more than there are workers
	teams        = 10 // with a visibility each, in each of these tenants
	documents    = 250
	answered     = 10 // questions in one call
	callTime     = 10 * time.Millisecond
	// A light turn ends after lightCalls calls and a heavy one after heavyCalls, which is earlier
	// than that of an event.
	lightCalls = 2
	heavyCalls = 25
	eventCalls = teams * documents / answered
)

// heavy is a world with tenants whose events take many questions. Each call of the checker takes
// callTime by a clock of the test.
type heavy struct {
	*world
	mu     sync.Mutex
	calls  map[string]int // by tenant
	asked  map[string]int // questions
	spread int            // the most calls that a tenant was ahead of another
}

// openHeavy returns a world whose work runs. called is called in each call of the checker, with the
// number of the call of the tenant.
func openHeavy(t *testing.T, url string, called func(ctx context.Context, h *heavy, tenantID string, calls int)) *heavy {
	h := &heavy{calls: map[string]int{}, asked: map[string]int{}}
	var clock atomic.Int64
	check := func(ctx context.Context, tenantID string, s tuplestore.Subject, objects []tuplestore.Object) ([]bool, error) {
		objects = objects[:min(len(objects), answered)]
		clock.Add(int64(callTime))
		h.mu.Lock()
		h.calls[tenantID]++
		h.asked[tenantID] += len(objects)
		calls := h.calls[tenantID]
		if strings.HasPrefix(tenantID, "tnt_heavy") && calls < eventCalls {
			for n := range heavyTenants {
				h.spread = max(h.spread, calls-h.calls[heavyTenant(n)])
			}
		}
		h.mu.Unlock()
		called(ctx, h, tenantID, calls)
		answers := make([]bool, len(objects))
		for i, o := range objects {
			answers[i] = (len(o.ID)+len(s.ID))%2 == 0
		}
		return answers, nil
	}
	h.world = open(t, url, new(receivers), nil, func(c *delivery.Config) {
		c.Checker = checker(check)
		c.Clock = func() time.Time { return time.Now().Add(time.Duration(clock.Load())) }
	})
	for n := range heavyTenants {
		for team := range teams {
			h.limit(heavyTenant(n), fmt.Sprintf("https://heavy%d.example.com/%d", n, team), fmt.Sprint("team", team))
		}
		// The same questions as of another subscription, which are not asked again.
		h.limit(heavyTenant(n), fmt.Sprintf("https://heavy%d.example.com/same", n), "team0")
	}
	h.run()
	h.until("the events of the subscriptions are fanned out", func() bool {
		behind, err := h.log.Reader("webhooks").Behind(t.Context(), "", 1)
		return err == nil && len(behind) == 0
	})
	for n := range heavyTenants {
		h.emitTo(heavyTenant(n), 1, eventlog.RelationBulkApplied, bulkOf(documents))
	}
	return h
}

// await waits until a channel is closed or ctx ends.
func await(ctx context.Context, c <-chan struct{}) {
	select {
	case <-c:
	case <-ctx.Done():
	}
}

// allCalled reports whether each heavy tenant had a turn.
func (h *heavy) allCalled() bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	for n := range heavyTenants {
		if h.calls[heavyTenant(n)] == 0 {
			return false
		}
	}
	return true
}

func heavyTenant(n int) string { return fmt.Sprintf("tnt_heavy%d", n) }

// expectAll waits for the events of the heavy tenants.
func (h *heavy) expectAll() {
	h.t.Helper()
	delivered := func() (n int) {
		for _, r := range h.receivers.all() {
			if strings.HasPrefix(r.url, "https://heavy") {
				n++
			}
		}
		return n
	}
	h.until("all events of the heavy tenants", func() bool { return delivered() == heavyTenants*(teams+1) })
	for _, r := range h.receivers.all() {
		if !strings.HasPrefix(r.url, "https://heavy") {
			continue
		}
		var data struct {
			Created    int
			Operations []struct{ Resource struct{ External_ID string } }
		}
		if err := json.Unmarshal(r.event.Data, &data); err != nil {
			h.t.Fatal(err)
		}
		want := 0
		for i := range documents {
			if (len(fmt.Sprint(i))+len("team0"))%2 == 0 {
				want += 2
			}
		}
		if data.Created != want || len(data.Operations) != want {
			h.t.Errorf("%s: %d operations, and a count of %d, want %d", r.url, len(data.Operations), data.Created, want)
		}
		for _, o := range data.Operations {
			if (len(o.Resource.External_ID)+len("team0"))%2 != 0 {
				h.t.Errorf("%s was sent resource %s", r.url, o.Resource.External_ID)
			}
		}
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	for n := range heavyTenants {
		if got := h.asked[heavyTenant(n)]; got != teams*documents {
			h.t.Errorf("%s: %d questions, want %d: each once", heavyTenant(n), got, teams*documents)
		}
	}
}

// However long the questions of some tenants take, the events of others are fanned out.
func TestHeavyTenantsLeaveWorkers(t *testing.T) {
	databases(t, func(t *testing.T, url string) {
		stuck := make(chan struct{})
		h := openHeavy(t, url, func(ctx context.Context, _ *heavy, tenantID string, calls int) {
			if strings.HasPrefix(tenantID, "tnt_heavy") && calls > lightCalls {
				await(ctx, stuck)
			}
		})
		for round := range 5 {
			light := fmt.Sprintf("https://light.example.com/%d", round)
			s := h.limit("tnt_light", light, "x")
			e := h.emitTo("tnt_light", int64(round+1), eventlog.ResourceCreated, map[string]any{"resource": resource("1")})
			h.until("an event of another tenant", func() bool { return len(h.receivers.of(e.ID, s.URL)) == 1 })
		}
		h.until("every heavy tenant had a light turn", h.allCalled)
		close(stuck)
		h.expectAll()
	})
}

// Heavy tenants take turns of bounded work: none is fanned out completely before another one.
func TestHeavyTenantsTakeTurns(t *testing.T) {
	databases(t, func(t *testing.T, url string) {
		started := make(chan struct{})
		start := sync.OnceFunc(func() { close(started) })
		h := openHeavy(t, url, func(ctx context.Context, h *heavy, _ string, calls int) {
			if h.allCalled() {
				start()
			}
			if calls > lightCalls {
				await(ctx, started)
			}
		})
		h.expectAll()
		if most := 4 * heavyCalls; h.spread > most || h.spread == 0 {
			t.Errorf("a tenant was ahead of another by %d calls, want at most %d", h.spread, most)
		}
	})
}

// recorded is a log that is read by a test.
type recorded struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (r *recorded) Write(text []byte) (int, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.text.Write(text)
}

// lines returns the lines with a text.
func (r *recorded) lines(with string) (found []string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for line := range strings.Lines(r.text.String()) {
		if strings.Contains(line, with) {
			found = append(found, line)
		}
	}
	return found
}

// An event whose data cannot be read is not visible to any subject, is delivered without its data
// to subscriptions without a visibility, and stops nothing.
func TestUnreadableData(t *testing.T) {
	databases(t, func(t *testing.T, url string) {
		log := new(recorded)
		w := open(t, url, new(receivers), nil, func(c *delivery.Config) {
			c.Logger = slog.New(slog.NewTextHandler(log, nil))
			c.Checker = checker(func(_ context.Context, _ string, _ tuplestore.Subject, resources []tuplestore.Object) ([]bool, error) {
				return all(resources), nil
			})
		})
		limited := w.limit(tenantID, "https://a.example.com/limited", "x")
		unlimited := w.subscribe("https://a.example.com/unlimited", "relation.*", "resource.*")
		var broken []eventlog.Event
		for _, c := range []struct {
			typ        eventlog.Type
			data, want string // as stored, and as delivered
		}{
			{eventlog.RelationCreated, `{"relation": {"resource": "secret`, `{"truncated":true}`},
			{eventlog.RelationBulkApplied, `secret`, `{"truncated":true}`},
			{eventlog.ResourceCreated, `{"resource":"secret"}`, `{"resource":"secret"}`},
			{eventlog.RelationBulkApplied, `{"operations":[{"resource":1}]}`, `{"operations":[{"resource":1}]}`},
		} {
			e := w.emitTo(tenantID, 1, c.typ, map[string]any{})
			e.Data = []byte(c.want)
			err := w.db.Tx(t.Context(), func(tx *sqldb.Tx) error {
				_, err := tx.Exec(t.Context(), `UPDATE events SET data = $2 WHERE tenant_id = $1 AND id = $3`, tenantID, c.data, e.ID)
				return err
			})
			if err != nil {
				t.Fatal(err)
			}
			broken = append(broken, e)
		}
		good := w.emitTo(tenantID, 1, eventlog.ResourceUpdated, map[string]any{"resource": resource("1")})
		w.run()
		w.until("the event after the broken ones", func() bool { return len(w.receivers.of(good.ID, limited.URL)) == 1 })
		w.until("all events without a visibility", func() bool { return len(w.receivers.all()) == len(broken)+2 })
		for _, e := range broken {
			got := w.receivers.of(e.ID, unlimited.URL)
			if len(got) != 1 || string(got[0].event.Data) != string(e.Data) {
				t.Errorf("%s: delivered %d times", e.Data, len(got))
			}
			if lines := log.lines(e.ID); len(lines) != 1 || !strings.Contains(lines[0], "level=ERROR") {
				t.Errorf("%s was logged %d times: %s", e.ID, len(lines), lines)
			}
		}
		if lines := log.lines("secret"); len(lines) > 0 {
			t.Errorf("data was logged: %s", lines)
		}
	})
}

// A check that fails is repeated after longer and longer times, and neither holds up the events
// before it nor other tenants.
func TestFailingChecks(t *testing.T) {
	databases(t, func(t *testing.T, url string) {
		var failures atomic.Int64
		var healed atomic.Bool
		w := open(t, url, new(receivers), nil, func(c *delivery.Config) {
			c.Poll = 20 * time.Millisecond
			c.Checker = checker(func(_ context.Context, _ string, _ tuplestore.Subject, resources []tuplestore.Object) ([]bool, error) {
				if resources[0].ID == "fails" && !healed.Load() {
					failures.Add(1)
					return nil, errors.New("connection refused")
				}
				return all(resources), nil
			})
		})
		s, other := w.limit(tenantID, "https://a.example.com/", "x"), w.limit("tnt_other", "https://other.example.com/", "x")
		var events []eventlog.Event
		for n, name := range []string{"before", "fails", "after"} {
			events = append(events, w.emitTo(tenantID, int64(n+1), eventlog.ResourceCreated, map[string]any{"resource": resource(name)}))
		}
		w.run()
		w.until("the event before the failure", func() bool { return len(w.receivers.of(events[0].ID, s.URL)) == 1 })
		const more = 60
		for n := range more {
			events = append(events, w.emitTo(tenantID, int64(n+4), eventlog.ResourceCreated, map[string]any{"resource": resource("more")}))
			e := w.emitTo("tnt_other", int64(n+1), eventlog.ResourceCreated, map[string]any{"resource": resource("1")})
			w.until("an event of another tenant", func() bool { return len(w.receivers.of(e.ID, other.URL)) == 1 })
		}
		if n := failures.Load(); n == 0 || n > more/4 {
			t.Errorf("%d failed checks while %d events were appended", n, more)
		}
		healed.Store(true)
		for _, e := range events {
			w.until("the events after the failure", func() bool { return len(w.receivers.of(e.ID, s.URL)) == 1 })
		}
	})
}
