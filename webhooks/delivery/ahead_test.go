package delivery

import (
	"context"
	"fmt"
	"testing"
	"time"

	"stonetown/internal/eventlog"
	"stonetown/tuplestore"
	"stonetown/webhooks/subscription"
)

// fakeAhead is an ahead with a clock that the test moves.
func fakeAhead() (a *ahead, now *time.Time) {
	now = new(time.Unix(1e9, 0))
	return newAhead(func() time.Time { return *now }), now
}

// nextOf returns the tenant that has the next turn; nil: there is none.
func nextOf(t *testing.T, a *ahead, q *turns) *reading {
	t.Helper()
	if len(q.queue) == 0 {
		return nil
	}
	return a.next(t.Context(), q)
}

func TestTurnsOfTenants(t *testing.T) {
	a, _ := fakeAhead()
	for _, id := range []string{"a", "b", "a", "c"} {
		a.add(id)
	}
	var order string
	for range 7 {
		r := nextOf(t, a, &a.light)
		order += r.tenantID
		a.add(r.tenantID) // an event during its turn: one more turn
		a.done(r, allEvents)
	}
	if order != "abcabca" {
		t.Error(order)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if r := a.next(ctx, &a.light); r != nil {
		t.Errorf("a turn of %s after the end", r.tenantID)
	}
}

// A tenant whose turn takes long continues in the queue of heavy turns until it has no more events.
func TestHeavyTenant(t *testing.T) {
	a, _ := fakeAhead()
	a.add("heavy")
	a.add("light")
	a.done(nextOf(t, a, &a.light), longTurn)
	if r := nextOf(t, a, &a.light); r.tenantID != "light" {
		t.Fatal(r.tenantID)
	}
	if r := nextOf(t, a, &a.light); r != nil {
		t.Errorf("%s has a light turn", r.tenantID)
	}
	for _, o := range []outcome{longTurn, moreEvents, failed, allEvents} {
		if o == allEvents { // after its failure
			a.clock = func() time.Time { return time.Unix(2e9, 0) }
			a.add("heavy")
		}
		r := nextOf(t, a, &a.heavy)
		if r == nil || r.tenantID != "heavy" || !r.heavy {
			t.Fatalf("before the outcome %d: %+v", o, r)
		}
		a.done(r, o)
	}
	a.add("heavy")
	if r := nextOf(t, a, &a.light); r == nil || r.heavy {
		t.Errorf("after its last event: %+v", r)
	}
}

// A tenant whose turns fail waits longer and longer, however many events are appended, and takes
// no worker meanwhile.
func TestDelaysAfterFailures(t *testing.T) {
	a, now := fakeAhead()
	var delays string
	for range 10 {
		a.add("a")
		r := nextOf(t, a, &a.light)
		if r == nil {
			t.Fatalf("no turn after %s", delays)
		}
		a.add("a") // does not end the delay
		a.done(r, failed)
		start := *now
		for a.appended("a"); len(a.light.queue) == 0; a.appended("a") {
			*now = now.Add(50 * time.Millisecond)
		}
		delays += fmt.Sprint(now.Sub(start), " ")
	}
	if delays != "250ms 500ms 1s 2s 4s 8s 16s 30s 30s 30s " {
		t.Error(delays)
	}
	a.done(nextOf(t, a, &a.light), moreEvents) // ends the row of failures
	a.done(nextOf(t, a, &a.light), failed)
	*now = now.Add(firstDelay)
	a.appended("a")
	if nextOf(t, a, &a.light) == nil {
		t.Error("the first failure after a success has a longer delay")
	}
	if d := delayAfter(1 << 20); d != maxDelay {
		t.Errorf("after very many failures: %v", d)
	}
}

// slowChecker allows everything. Each call takes some time of a clock.
type slowChecker struct {
	now  *time.Time
	call time.Duration
}

func (c slowChecker) AllowedAt(_ context.Context, _ string, _ int64, _ tuplestore.Subject, _ string, resources []tuplestore.Object) ([]bool, error) {
	*c.now = c.now.Add(c.call)
	return make([]bool, len(resources)), nil
}

// A turn asks for a bounded time. A heavy tenant is a light one again when a page takes a light turn.
func TestTurnOfQuestions(t *testing.T) {
	var events []eventlog.Event
	for i := range 10 {
		events = append(events, eventlog.Event{
			Position: int64(i + 1), Revision: int64(i + 1), Type: eventlog.ResourceCreated,
			Data: []byte(`{"resource":{"type":"document","external_id":"1"}}`),
		})
	}
	limited := []subscription.Subscription{{Events: []string{"*"}, Until: 1 << 60, VisibleTo: &subscription.Visibility{Action: "view"}}}
	for _, c := range []struct {
		heavy, resumed bool
		call           time.Duration // of each of the ten
		end            int
		stays          bool // heavy
	}{
		{false, false, time.Millisecond, 10, false},
		{false, false, 10 * time.Millisecond, 2, false},
		{false, false, time.Hour, 1, false},
		{true, false, time.Millisecond, 10, false},
		{true, true, time.Millisecond, 10, true},
		{true, false, 10 * time.Millisecond, 10, true},
		{true, false, 50 * time.Millisecond, 5, true},
		{true, false, time.Hour, 1, true},
	} {
		now := time.Unix(1e9, 0)
		q := &Queue{clock: func() time.Time { return now }, checker: slowChecker{&now, c.call}}
		r := &reading{heavy: c.heavy}
		if c.resumed {
			r.asked = momentOf(events)
		}
		end, err := q.ask(t.Context(), r, match(limited, events))
		if err != nil || end != c.end || r.heavy != c.stays || r.asked != nil {
			t.Errorf("%+v: %d events, heavy %t, %v", c, end, r.heavy, err)
		}
	}
}

func TestTenantWithoutReader(t *testing.T) {
	a, _ := fakeAhead()
	a.appended("a")
	a.done(nextOf(t, a, &a.light), noReader)
	if a.appended("a"); len(a.light.queue) > 0 || len(a.tenants) > 0 {
		t.Error("events of a tenant without a reader cost a turn")
	}
	a.started("a")
	r := nextOf(t, a, &a.light)
	if r == nil {
		t.Fatal("no turn after the reader was started")
	}
	a.appended("a") // after the turn has read, perhaps
	a.done(r, noReader)
	if nextOf(t, a, &a.light) == nil {
		t.Error("an event that was appended during the turn is not noted")
	}
}
