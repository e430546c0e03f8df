package delivery_test

import (
	"fmt"
	"slices"
	"testing"

	"stonetown/internal/eventlog"
	"stonetown/internal/sqldb"
	"stonetown/webhooks/signature"
)

// No delivery is sent twice by a lane that is read again and again while results are stored.
func TestBacklogIsSentOnce(t *testing.T) {
	databases(t, func(t *testing.T, url string) {
		w := open(t, url, new(receivers), nil)
		w.run()
		w.subscribe("https://a.example.com/", "user.created")
		const transactions, each = 40, 50
		for range transactions {
			var events []eventlog.Event
			for range each {
				events = append(events, eventlog.New(eventlog.UserCreated, eventlog.Origin{}, map[string]any{}))
			}
			err := w.db.Tx(t.Context(), func(tx *sqldb.Tx) error {
				var b sqldb.Batch
				eventlog.Append(&b, tenantID, events...)
				return tx.Send(t.Context(), &b)
			})
			if err != nil {
				t.Fatal(err)
			}
		}
		count := func() (deliveries map[string]int) {
			deliveries = map[string]int{}
			for _, r := range w.receivers.all() {
				deliveries[r.header.Get(signature.HeaderDelivery)]++
			}
			return deliveries
		}
		w.until("all deliveries", func() bool { return len(count()) == transactions*each })
		for id, n := range count() {
			if n != 1 {
				t.Errorf("%s was sent %d times", id, n)
			}
		}
	})
}

// An event that is committed right after the creation of a subscription is delivered to it, also
// while earlier events are fanned out.
func TestNewSubscriptionMissesNothing(t *testing.T) {
	databases(t, func(t *testing.T, url string) {
		w := open(t, url, new(receivers), nil)
		w.run()
		for n := range 100 {
			s := w.subscribe(fmt.Sprintf("https://a.example.com/%d", n), "user.created")
			e := w.emit(eventlog.UserCreated, map[string]any{})
			w.until("a delivery to a new subscription", func() bool {
				return slices.ContainsFunc(w.receivers.all(), func(r request) bool { return r.url == s.URL && r.event.EventID == e.ID })
			})
			if err := w.registry.Delete(t.Context(), tenantID, s.ID); err != nil {
				t.Fatal(err)
			}
		}
	})
}
