package delivery_test

import (
	"math/rand/v2"
	"net/http"
	"testing"
	"time"

	"stonetown/internal/eventlog"
	"stonetown/internal/outbound"
	"stonetown/internal/pgtest"
	"stonetown/webhooks/delivery"
)

// Every event arrives although the connections to the database break.
func TestDatabaseFaults(t *testing.T) {
	url := pgtest.URL(t)
	proxy := pgtest.NewFaulty(t, url)
	healthy := open(t, url, new(receivers), nil)
	w := open(t, proxy.URL, healthy.receivers, nil, func(c *delivery.Config) { c.Poll = 50 * time.Millisecond })
	s := healthy.subscribe("https://a.example.com/", "user.*")
	w.receivers.set(func(request) (outbound.Answer, error) {
		return outbound.Answer{Status: http.StatusOK}, nil
	})
	w.run()
	proxy.Randomly(rand.New(rand.NewPCG(1, 2)), 0.1, pgtest.CommitFaults, pgtest.AnyFaults)
	const events = 150
	ids := map[string]bool{}
	for range events {
		ids[healthy.emit(eventlog.UserCreated, map[string]any{}).ID] = true
		time.Sleep(time.Millisecond)
	}
	time.Sleep(time.Second)
	proxy.Heal()
	deadline := time.Now().Add(90 * time.Second) // a lane whose holder could not note it waits for the end of its lease
	for len(ids) > 0 {
		for _, r := range w.receivers.all() {
			delete(ids, r.event.EventID)
		}
		if time.Now().After(deadline) {
			t.Fatalf("%d of %d events did not arrive", len(ids), events)
		}
		time.Sleep(20 * time.Millisecond)
	}
	injected := 0
	for _, n := range proxy.Injected() {
		injected += n
	}
	t.Logf("%d faults, %d requests for %d events", injected, len(w.receivers.all()), events)
	if injected == 0 {
		t.Error("no fault was injected")
	}
	w.until("all results are stored", func() bool {
		stored := 0
		for _, d := range healthy.deliveries(s.ID) {
			if d.Status == delivery.Delivered {
				stored++
			}
		}
		return stored == events
	})
}
