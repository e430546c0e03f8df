package delivery_test

import (
	"errors"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"stonetown/internal/eventlog"
	"stonetown/internal/outbound"
	"stonetown/internal/sqldb"
	"stonetown/webhooks/delivery"
	"stonetown/webhooks/subscription"
)

// disable disables a subscription.
func (w *world) disable(subscriptionID string) {
	w.t.Helper()
	_, err := w.registry.Update(w.t.Context(), tenantID, subscriptionID, func(s *subscription.Subscription) error {
		s.State, s.DisabledReason = subscription.Disabled, subscription.Manual
		return nil
	})
	if err != nil {
		w.t.Fatal(err)
	}
}

func (w *world) enable(subscriptionID string) {
	w.t.Helper()
	_, err := w.registry.Update(w.t.Context(), tenantID, subscriptionID, func(s *subscription.Subscription) error {
		s.State = subscription.Enabled
		return nil
	})
	if err != nil {
		w.t.Fatal(err)
	}
}

func (w *world) dead(subscriptionID string, state delivery.DeadState) []delivery.DeadLetter {
	w.t.Helper()
	found, err := w.queue.DeadLetters(w.t.Context(), tenantID, subscriptionID, state, "", 1000)
	if err != nil {
		w.t.Fatal(err)
	}
	return found
}

// The pending deliveries of a disabled subscription become dead letters; events of that time are
// not delivered later.
func TestDisable(t *testing.T) {
	databases(t, func(t *testing.T, url string) {
		w := open(t, url, new(receivers), nil)
		w.run()
		s := w.subscribe("https://a.example.com/", "user.*")
		w.receivers.set(status(500))
		const events = 250
		for range events {
			w.emit(eventlog.UserCreated, map[string]any{})
		}
		w.until("an attempt", func() bool { return len(w.receivers.all()) > 0 })
		w.disable(s.ID)
		w.until("all are dead letters", func() bool { return len(w.dead(s.ID, delivery.Queued)) == events })
		for _, e := range w.dead(s.ID, delivery.Queued) {
			if e.Reason != delivery.SubscriptionDisabled || !strings.Contains(string(e.Event), e.EventID) {
				t.Fatalf("%+v", e)
			}
		}
		for _, d := range w.deliveries(s.ID) {
			if d.Status != delivery.DeadLettered || !d.NextAttemptAt.IsZero() {
				t.Fatalf("%+v", d)
			}
		}
		if types := w.types(); types[eventlog.WebhookDeliveryDeadLettered] != 0 {
			t.Errorf("%d events", types[eventlog.WebhookDeliveryDeadLettered])
		}
		if _, err := w.queue.Replay(t.Context(), tenantID, w.dead(s.ID, delivery.Queued)[0].ID); !errors.Is(err, delivery.ErrDisabled) {
			t.Errorf("replay: %v", err)
		}
		if _, err := w.queue.Test(t.Context(), tenantID, s.ID); !errors.Is(err, delivery.ErrDisabled) {
			t.Errorf("test: %v", err)
		}
		missed := w.emit(eventlog.UserUpdated, map[string]any{})
		w.receivers.set(nil)
		w.enable(s.ID)
		e := w.emit(eventlog.UserUpdated, map[string]any{})
		w.until("an event after the enabling", func() bool { return len(w.receivers.of(e.ID, s.URL)) == 1 })
		if got := w.receivers.of(missed.ID, s.URL); len(got) > 0 {
			t.Error("an event of the disabled time was delivered")
		}
		n, err := w.queue.ReplayMany(t.Context(), tenantID, s.ID, delivery.Selection{})
		if err != nil || n != events {
			t.Errorf("%d replayed, %v", n, err)
		}
		w.until("the replayed deliveries", func() bool {
			delivered := 0
			for _, d := range w.deliveries(s.ID) {
				if d.Status == delivery.Delivered {
					delivered++
				}
			}
			return delivered == events+1
		})
	})
}

// Of concurrent replays and drops of a dead letter one succeeds.
func TestReplayRace(t *testing.T) {
	databases(t, func(t *testing.T, url string) {
		w := open(t, url, new(receivers), nil)
		w.run()
		s := w.subscribe("https://a.example.com/", "user.*")
		w.receivers.set(status(500))
		const entries, racers = 10, 6
		for range entries {
			w.emit(eventlog.UserCreated, map[string]any{})
		}
		w.until("attempts", func() bool { return len(w.receivers.all()) == entries })
		w.disable(s.ID)
		w.until("dead letters", func() bool { return len(w.dead(s.ID, delivery.Queued)) == entries })
		w.receivers.set(nil)
		w.enable(s.ID)
		before := len(w.receivers.all())
		all := w.dead(s.ID, delivery.Queued)
		var mu sync.Mutex
		replayed, dropped := 0, 0
		var racing sync.WaitGroup
		for _, e := range all {
			for i := range racers {
				racing.Go(func() {
					var err error
					if i%3 == 2 {
						_, err = w.queue.Drop(t.Context(), tenantID, e.ID)
					} else {
						_, err = w.queue.Replay(t.Context(), tenantID, e.ID)
					}
					var taken *delivery.NotQueuedError
					mu.Lock()
					defer mu.Unlock()
					switch {
					case err == nil && i%3 == 2:
						dropped++
					case err == nil:
						replayed++
					case !errors.As(err, &taken):
						t.Errorf("racer %d: %v", i, err)
					}
				})
			}
		}
		racing.Wait()
		if replayed+dropped != entries || len(w.dead(s.ID, delivery.Replayed)) != replayed || len(w.dead(s.ID, delivery.Dropped)) != dropped || len(w.dead(s.ID, delivery.Queued)) != 0 {
			t.Errorf("%d replayed and %d dropped of %d", replayed, dropped, entries)
		}
		w.until("replays", func() bool { return len(w.receivers.all())-before == replayed })
		types := w.types()
		if types[eventlog.WebhookDeadLetterReplayed] != replayed || types[eventlog.WebhookDeadLetterDropped] != dropped {
			t.Errorf("%v", types)
		}
	})
}

func TestReplayMany(t *testing.T) {
	databases(t, func(t *testing.T, url string) {
		w := open(t, url, new(receivers), nil)
		w.run()
		s, other := w.subscribe("https://a.example.com/", "user.*"), w.subscribe("https://b.example.com/", "user.*")
		w.receivers.set(status(500))
		for range 10 {
			w.emit(eventlog.UserCreated, map[string]any{})
		}
		w.until("attempts", func() bool { return len(w.receivers.all()) == 20 })
		for _, of := range []subscription.Subscription{s, other} {
			w.disable(of.ID)
			w.until("dead letters", func() bool { return len(w.dead(of.ID, delivery.Queued)) == 10 })
			w.enable(of.ID)
		}
		w.receivers.set(nil)
		all := w.dead(s.ID, delivery.Queued)
		if _, err := w.queue.ReplayMany(t.Context(), tenantID, s.ID, delivery.Selection{IDs: []string{all[0].ID, w.dead(other.ID, delivery.Queued)[0].ID}}); !errors.Is(err, delivery.ErrDeadLetterNotFound) {
			t.Errorf("with an entry of another subscription: %v", err)
		}
		for _, c := range []struct {
			sel  delivery.Selection
			want int
		}{
			{delivery.Selection{IDs: []string{all[3].ID, all[4].ID}}, 2},
			{delivery.Selection{IDs: []string{all[3].ID, all[5].ID}}, 1},
			{delivery.Selection{Since: time.Now().Add(time.Hour)}, 0},
			{delivery.Selection{Until: time.Now().Add(-time.Hour)}, 0},
			{delivery.Selection{Since: time.Now().Add(-time.Hour), Until: time.Now().Add(time.Hour)}, 7},
			{delivery.Selection{}, 0},
		} {
			if n, err := w.queue.ReplayMany(t.Context(), tenantID, s.ID, c.sel); n != c.want || err != nil {
				t.Errorf("%+v: %d, %v", c.sel, n, err)
			}
		}
		if len(w.dead(other.ID, delivery.Queued)) != 10 {
			t.Error("entries of the other subscription were replayed")
		}
	})
}

// Nothing of a deleted subscription is left, and its pending deliveries are not sent.
func TestDelete(t *testing.T) {
	databases(t, func(t *testing.T, url string) {
		w := open(t, url, new(receivers), nil)
		w.run()
		s := w.subscribe("https://a.example.com/", "user.*")
		w.receivers.set(func(request) (outbound.Answer, error) {
			time.Sleep(5 * time.Millisecond)
			return outbound.Answer{Status: http.StatusInternalServerError}, &outbound.Error{Class: outbound.Status, Status: 500}
		})
		for range 1200 {
			w.emit(eventlog.UserCreated, map[string]any{})
		}
		w.until("an attempt", func() bool { return len(w.receivers.all()) > 0 })
		if err := w.registry.Delete(t.Context(), tenantID, s.ID); err != nil {
			t.Fatal(err)
		}
		w.runJobs()
		w.until("the rows are deleted", func() bool {
			for _, table := range []string{"webhook_subscriptions", "webhook_lanes", "webhook_deliveries", "webhook_dead_letters", "event_readers"} {
				var n int64
				if err := w.db.QueryRow(t.Context(), `SELECT COUNT(*) FROM `+table).Scan(&n); err != nil {
					t.Fatal(err)
				}
				if n > 0 {
					return false
				}
			}
			return true
		})
		time.Sleep(20 * time.Millisecond)
		n := len(w.receivers.all())
		time.Sleep(50 * time.Millisecond)
		if later := len(w.receivers.all()); later != n {
			t.Errorf("%d attempts after the deletion", later-n)
		}
		// A later subscription starts the reader again, with the events of its time.
		w.emit(eventlog.UserCreated, map[string]any{})
		w.receivers.set(nil)
		s = w.subscribe("https://b.example.com/", "user.*")
		e := w.emit(eventlog.UserCreated, map[string]any{})
		w.until("an event of a later subscription", func() bool { return len(w.receivers.of(e.ID, s.URL)) == 1 })
		if found := w.deliveries(s.ID); len(found) != 1 {
			t.Errorf("%d deliveries", len(found))
		}
	})
}

// The response of a receiver is stored within limits, and without secrets.
func TestRecordedResponse(t *testing.T) {
	databases(t, func(t *testing.T, url string) {
		w := open(t, url, new(receivers), nil)
		w.run()
		s, secret, err := w.registry.Create(t.Context(), tenantID, subscription.Subscription{Name: "s", URL: "https://a.example.com/", Events: []string{"user.*"}})
		if err != nil {
			t.Fatal(err)
		}
		bare := strings.TrimPrefix(secret.Text(), "whsec_")
		h := http.Header{"Set-Cookie": {"sid=1"}, "Authorization": {"Bearer 1"}, "X-Echo": {secret.Text()}, "X-Ok": {"fine"}, "X-Bytes": {"\xff\x00"}}
		for i := range 100 {
			h.Set(fmt.Sprintf("X-Many-%d", i), strings.Repeat("v", 500))
		}
		w.receivers.set(func(request) (outbound.Answer, error) {
			body := []byte("your secret " + bare + " or " + secret.Text() + " \x00\xff<script>")
			return outbound.Answer{Status: 500, Header: h, Body: body, Truncated: true}, nil
		})
		w.emit(eventlog.UserCreated, map[string]any{})
		w.until("an attempt", func() bool { return len(w.receivers.all()) > 0 })
		w.disable(s.ID)
		w.until("a dead letter", func() bool { return len(w.dead(s.ID, delivery.Queued)) == 1 })
		e := w.dead(s.ID, delivery.Queued)[0]
		if e.LastResponse == nil {
			t.Fatalf("%+v", e)
		}
		r := *e.LastResponse
		if r.Status != 500 || !r.Truncated || len(r.Headers) > 50 || len(r.Headers["Set-Cookie"]) > 0 || len(r.Headers["Authorization"]) > 0 {
			t.Errorf("%+v", r)
		}
		if all := fmt.Sprint(r); strings.Contains(all, bare) {
			t.Errorf("has the secret: %s", all)
		}
		if want := "your secret [secret] or whsec_[secret] \x00\ufffd<script>"; r.Body != want {
			t.Errorf("body %q", r.Body)
		}
	})
}

// A delivery whose event was deleted at the end of its retention is cancelled.
func TestEventGone(t *testing.T) {
	databases(t, func(t *testing.T, url string) {
		w := open(t, url, new(receivers), nil)
		s := w.subscribe("https://a.example.com/", "user.*")
		w.run()
		w.receivers.set(status(500))
		e := w.emit(eventlog.UserCreated, map[string]any{})
		w.until("an attempt", func() bool { return len(w.receivers.of(e.ID, s.URL)) == 1 })
		w.until("its result", func() bool { return w.newest(s.ID).Status == delivery.Retrying })
		w.stop()
		err := w.db.Tx(t.Context(), func(tx *sqldb.Tx) error {
			_, err := tx.Exec(t.Context(), `DELETE FROM events`)
			if err == nil {
				_, err = tx.Exec(t.Context(), `UPDATE webhook_deliveries SET due_at = 1`)
			}
			if err == nil {
				_, err = tx.Exec(t.Context(), `UPDATE webhook_lanes SET due_at = 1`)
			}
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
		if _, err := w.queue.Redeliver(t.Context(), tenantID, w.newest(s.ID).ID); !errors.Is(err, delivery.ErrEventGone) {
			t.Errorf("redeliver: %v", err)
		}
		w.run()
		w.until("the delivery is cancelled", func() bool { return w.newest(s.ID).Status == delivery.Cancelled })
	})
}

// runJobs runs the jobs of the world until the test ends.
func (w *world) runJobs() {
	ctx := w.t.Context()
	var running sync.WaitGroup
	running.Go(func() { w.jobs.Run(ctx) })
	w.t.Cleanup(running.Wait)
}
