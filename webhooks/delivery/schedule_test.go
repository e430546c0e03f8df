package delivery_test

import (
	"bytes"
	"log/slog"
	"net/http"
	"path/filepath"
	"strconv"
	"testing"
	"testing/synctest"
	"time"

	"stonetown/internal/eventlog"
	"stonetown/internal/id"
	"stonetown/internal/outbound"
	"stonetown/webhooks/delivery"
	"stonetown/webhooks/subscription"
)

// bubble runs a test on a fake clock: time passes when everything waits. Each poll of the
// database takes real time.
func bubble(t *testing.T, poll time.Duration, test func(t *testing.T, w *world)) {
	t.Helper()
	path := "sqlite:" + filepath.Join(t.TempDir(), "test.db")
	synctest.Test(t, func(t *testing.T) {
		w := open(t, path, new(receivers), nil, func(c *delivery.Config) { c.Poll = poll })
		w.run()
		test(t, w)
		w.stop()
	})
}

// poll is how often the tests of this file read the database.
const poll = 5 * time.Second

// of returns the requests of an event to a URL.
func (r *receivers) of(eventID, url string) (found []request) {
	for _, one := range r.all() {
		if one.event.EventID == eventID && one.url == url {
			found = append(found, one)
		}
	}
	return found
}

func status(code int, header ...string) func(request) (outbound.Answer, error) {
	h := http.Header{}
	for i := 0; i < len(header); i += 2 {
		h.Set(header[i], header[i+1])
	}
	return func(request) (outbound.Answer, error) {
		return outbound.Answer{Status: code, Header: h, Body: []byte("no")}, nil
	}
}

func TestSchedule(t *testing.T) {
	bubble(t, poll, func(t *testing.T, w *world) {
		s := w.subscribe("https://a.example.com/", "user.*")
		w.receivers.set(status(500))
		e := w.emit(eventlog.UserCreated, map[string]any{"n": 1})
		time.Sleep(24 * time.Hour)
		got := w.receivers.of(e.ID, s.URL)
		if len(got) != 6 {
			t.Fatalf("%d attempts", len(got))
		}
		for i, want := range []time.Duration{time.Minute, 5 * time.Minute, 30 * time.Minute, 2 * time.Hour, 12 * time.Hour} {
			gap := got[i+1].at.Sub(got[i].at)
			if gap < want*9/10 || gap > want*11/10+2*poll {
				t.Errorf("pause %d: %v, want %v", i+1, gap, want)
			}
			if first, next := got[0].header, got[i+1].header; next.Get("Webhook-Id") != first.Get("Webhook-Id") || next.Get("Webhook-Timestamp") == first.Get("Webhook-Timestamp") {
				t.Errorf("attempt %d: id %s, timestamp %s", i+2, next.Get("Webhook-Id"), next.Get("Webhook-Timestamp"))
			}
		}
		for i, r := range got {
			if r.header.Get("X-Service-Attempt") != string(rune('1'+i)) || string(r.body) != string(got[0].body) {
				t.Errorf("attempt %d is number %s", i+1, r.header.Get("X-Service-Attempt"))
			}
		}
		d := w.newest(s.ID)
		if d.Status != delivery.DeadLettered || len(d.Attempts) != 6 || !d.NextAttemptAt.IsZero() {
			t.Errorf("%+v", d)
		}
		dead, err := w.queue.DeadLetters(t.Context(), tenantID, s.ID, delivery.Queued, "", 10)
		if err != nil || len(dead) != 1 {
			t.Fatalf("%+v, %v", dead, err)
		}
		entry := dead[0]
		if entry.Reason != delivery.AttemptsExhausted || string(entry.Event) != string(got[0].body) || len(entry.Attempts) != 6 || entry.LastResponse == nil || entry.LastResponse.Body != "no" || *entry.Attempts[5].Error != "status" {
			t.Errorf("%+v", entry)
		}
		if kept := entry.ExpiresAt.Sub(entry.DeadLetteredAt); kept != 7*24*time.Hour {
			t.Errorf("kept for %v", kept)
		}
		if types := w.types(); types[eventlog.WebhookDeliveryDeadLettered] != 1 || types[eventlog.WebhookSubscriptionFailing] != 1 {
			t.Errorf("events: %v", types)
		}
	})
}

// Without an action a dead letter is deleted after seven days, and a finished delivery as well.
func TestCollect(t *testing.T) {
	bubble(t, 10*time.Minute, func(t *testing.T, w *world) {
		s := w.subscribe("https://a.example.com/", "user.*")
		e := w.emit(eventlog.UserCreated, map[string]any{})
		time.Sleep(time.Hour)
		w.receivers.set(status(500))
		w.emit(eventlog.UserUpdated, map[string]any{})
		time.Sleep(18 * time.Hour) // it is a dead letter
		count := func() (deliveries, dead int) {
			all, err1 := w.queue.List(t.Context(), tenantID, s.ID, delivery.Filter{}, "", 10)
			queued, err2 := w.queue.DeadLetters(t.Context(), tenantID, s.ID, delivery.Queued, "", 10)
			if err1 != nil || err2 != nil {
				t.Fatal(err1, err2)
			}
			return len(all), len(queued)
		}
		if n, dead := count(); n != 2 || dead != 1 {
			t.Fatalf("%d deliveries, %d dead letters", n, dead)
		}
		time.Sleep(6*24*time.Hour + 4*time.Hour)
		if n, dead := count(); n != 2 || dead != 1 {
			t.Errorf("before their time: %d deliveries, %d dead letters", n, dead)
		}
		time.Sleep(20 * time.Hour)
		if n, dead := count(); n != 0 || dead != 0 {
			t.Errorf("after seven days: %d deliveries, %d dead letters", n, dead)
		}
		if got := w.receivers.of(e.ID, s.URL); len(got) != 1 {
			t.Errorf("%d attempts", len(got))
		}
	})
}

// A collection costs one statement while there is nothing to delete, however many lanes there are.
func TestCollectReadsOnlyWhatIsOver(t *testing.T) {
	databases(t, func(t *testing.T, url string) {
		w := open(t, url, new(receivers), nil)
		var s subscription.Subscription
		for range 5 {
			s = w.subscribe("https://a.example.com/", "user.*")
		}
		collect := func() int64 {
			t.Helper()
			before := w.db.Stats().Statements
			if err := w.queue.Collect(t.Context()); err != nil {
				t.Fatal(err)
			}
			return w.db.Stats().Statements - before
		}
		add := func(created time.Time) {
			t.Helper()
			_, err := w.db.Exec(t.Context(), `
				INSERT INTO webhook_deliveries (tenant_id, subscription_id, id, position, event_id, event_type, event, operations, size, status, attempts, history, last_response, due_at, created_at)
				VALUES ($1, $2, $3, 1, 'evt', 'user.created', '', '', 1, 'succeeded', 1, '', '', 0, 0)`, tenantID, s.ID, id.Earliest(id.WebhookDelivery, created))
			if err != nil {
				t.Fatal(err)
			}
		}
		add(time.Now().Add(-time.Hour))
		if n := collect(); n != 1 {
			t.Errorf("%d statements while nothing is over, want 1", n)
		}
		add(time.Now().Add(-30 * 24 * time.Hour))
		if n := collect(); n == 1 {
			t.Error("an old delivery was not found")
		}
		var left int
		if err := w.db.QueryRow(t.Context(), `SELECT COUNT(*) FROM webhook_deliveries`).Scan(&left); err != nil || left != 1 {
			t.Errorf("%d deliveries are left, want 1; %v", left, err)
		}
	})
}

func TestReplayStartsAnew(t *testing.T) {
	bubble(t, poll, func(t *testing.T, w *world) {
		s := w.subscribe("https://a.example.com/", "user.*")
		w.receivers.set(status(503))
		e := w.emit(eventlog.UserCreated, map[string]any{})
		time.Sleep(20 * time.Hour)
		dead, err := w.queue.DeadLetters(t.Context(), tenantID, s.ID, delivery.Queued, "", 10)
		if err != nil || len(dead) != 1 {
			t.Fatalf("%+v, %v", dead, err)
		}
		deliveryID, err := w.queue.Replay(t.Context(), tenantID, dead[0].ID)
		if err != nil {
			t.Fatal(err)
		}
		time.Sleep(20 * time.Hour)
		got := w.receivers.of(e.ID, s.URL)
		if len(got) != 12 || got[6].header.Get("X-Service-Attempt") != "1" || got[6].header.Get("X-Service-Delivery") != deliveryID || string(got[6].body) != string(got[0].body) {
			t.Errorf("%d attempts", len(got))
		}
		// The second dead letter is another one.
		if again, _ := w.queue.DeadLetters(t.Context(), tenantID, s.ID, delivery.Queued, "", 10); len(again) != 1 || again[0].ID == dead[0].ID {
			t.Errorf("%+v", again)
		}
		if old, err := w.queue.DeadLetter(t.Context(), tenantID, dead[0].ID); err != nil || old.State != delivery.Replayed || old.ReplayedDeliveryID != deliveryID {
			t.Errorf("%+v, %v", old, err)
		}
	})
}

func TestRetryAfter(t *testing.T) {
	for name, c := range map[string]struct {
		answer   func(request) (outbound.Answer, error)
		from, to time.Duration // the pause after the first attempt
	}{
		"503, longer":           {status(503, "Retry-After", "600"), 10 * time.Minute, 10 * time.Minute},
		"429, longer":           {status(429, "Retry-After", "600"), 10 * time.Minute, 10 * time.Minute},
		"503, shorter":          {status(503, "Retry-After", "5"), 54 * time.Second, 66 * time.Second},
		"503, beyond the bound": {status(503, "Retry-After", "8640000"), 24 * time.Hour, 24 * time.Hour},
		"503, far too long":     {status(503, "Retry-After", "99999999999999999999"), 24 * time.Hour, 24 * time.Hour},
		"503, negative":         {status(503, "Retry-After", "-600"), 54 * time.Second, 66 * time.Second},
		"503, not a time":       {status(503, "Retry-After", "soon"), 54 * time.Second, 66 * time.Second},
		"500":                   {status(500, "Retry-After", "600"), 54 * time.Second, 66 * time.Second},
		"301":                   {status(301, "Retry-After", "600"), 54 * time.Second, 66 * time.Second},
		"503, a date": {func(request) (outbound.Answer, error) {
			at := time.Now().Add(2 * time.Hour).UTC().Format(http.TimeFormat)
			return status(503, "Retry-After", at)(request{})
		}, 2*time.Hour - time.Second, 2 * time.Hour},
		"503, a date in the past": {func(request) (outbound.Answer, error) {
			at := time.Now().Add(-2 * time.Hour).UTC().Format(http.TimeFormat)
			return status(503, "Retry-After", at)(request{})
		}, 54 * time.Second, 66 * time.Second},
	} {
		t.Run(name, func(t *testing.T) {
			bubble(t, poll, func(t *testing.T, w *world) {
				s := w.subscribe("https://a.example.com/", "user.*")
				w.receivers.set(c.answer)
				e := w.emit(eventlog.UserCreated, map[string]any{})
				time.Sleep(25 * time.Hour)
				got := w.receivers.of(e.ID, s.URL)
				if len(got) < 2 {
					t.Fatalf("%d attempts", len(got))
				}
				if gap := got[1].at.Sub(got[0].at); gap < c.from || gap > c.to+2*poll {
					t.Errorf("pause of %v, want %v to %v", gap, c.from, c.to)
				}
			})
		})
	}
}

// While a tenant is suspended, the clock of its deliveries stops: what remained of a pause, and
// of the time of a dead letter, remains.
func TestSuspended(t *testing.T) {
	bubble(t, poll, func(t *testing.T, w *world) {
		s := w.subscribe("https://a.example.com/", "user.*")
		w.receivers.set(status(500))
		first := w.emit(eventlog.UserCreated, map[string]any{})
		time.Sleep(10 * time.Minute) // three attempts; the fourth follows 30 minutes after the third
		w.tenants.set(tenantID)
		time.Sleep(2 * poll)
		second := w.emit(eventlog.UserUpdated, map[string]any{})
		time.Sleep(10 * time.Hour)
		if got := w.receivers.of(first.ID, s.URL); len(got) != 3 {
			t.Errorf("%d attempts", len(got))
		}
		if got := w.receivers.of(second.ID, s.URL); len(got) != 0 {
			t.Errorf("%d attempts for a suspended tenant", len(got))
		}
		w.tenants.set()
		resumed := time.Now()
		time.Sleep(time.Hour)
		got := w.receivers.of(first.ID, s.URL)
		if len(got) < 4 {
			t.Fatalf("%d attempts", len(got))
		}
		if gap := got[3].at.Sub(resumed); gap < 20*time.Minute || gap > 31*time.Minute {
			t.Errorf("the fourth attempt came %v after the end of the suspension", gap)
		}
		if got := w.receivers.of(second.ID, s.URL); len(got) == 0 || got[0].at.Sub(resumed) > 2*poll {
			t.Errorf("the event of the suspension was not delivered at once")
		}
	})
}

// A receiver that is gone gets all attempts, as the schedule promises; then its subscription is
// disabled.
func TestGone(t *testing.T) {
	bubble(t, poll, func(t *testing.T, w *world) {
		s := w.subscribe("https://a.example.com/", "user.*")
		other := w.subscribe("https://b.example.com/", "webhook.subscription_disabled")
		w.receivers.set(func(r request) (outbound.Answer, error) {
			if r.url == s.URL {
				return status(410)(r)
			}
			return outbound.Answer{Status: 200}, nil
		})
		e := w.emit(eventlog.UserCreated, map[string]any{})
		time.Sleep(10 * time.Hour)
		pending := w.emit(eventlog.UserUpdated, map[string]any{})
		time.Sleep(10 * time.Hour)
		if got := w.receivers.of(e.ID, s.URL); len(got) != 6 {
			t.Errorf("%d attempts", len(got))
		}
		now, err := w.registry.Get(t.Context(), tenantID, s.ID)
		if err != nil || now.State != "disabled" || now.DisabledReason != "gone" {
			t.Errorf("%+v, %v", now, err)
		}
		dead, err := w.queue.DeadLetters(t.Context(), tenantID, s.ID, delivery.Queued, "", 10)
		if err != nil || len(dead) != 2 || dead[0].EventID != pending.ID || dead[0].Reason != delivery.SubscriptionDisabled || len(dead[0].Attempts) == 0 || dead[0].LastResponse == nil {
			t.Errorf("%+v, %v", dead, err)
		}
		w.until("an event of the disabled subscription", func() bool {
			for _, r := range w.receivers.all() {
				if r.url == other.URL {
					return true
				}
			}
			return false
		})
	})
}

// A subscription that is deleted during an attempt has no results to store, and that is no error.
func TestDeletedDuringAttempt(t *testing.T) {
	for name, during := range map[string]int{"the attempt after which it would be failing": 5, "the last attempt": delivery.MaxAttempts} {
		t.Run(name, func(t *testing.T) {
			path := "sqlite:" + filepath.Join(t.TempDir(), "test.db")
			synctest.Test(t, func(t *testing.T) {
				var errs bytes.Buffer // the handler writes one entry at a time
				w := open(t, path, new(receivers), nil, func(c *delivery.Config) {
					c.Poll = poll
					c.Logger = slog.New(slog.NewTextHandler(&errs, &slog.HandlerOptions{Level: slog.LevelError}))
				})
				w.run()
				s := w.subscribe("https://a.example.com/", "user.*")
				w.receivers.set(func(r request) (outbound.Answer, error) {
					if r.header.Get("X-Service-Attempt") == strconv.Itoa(during) {
						if err := w.registry.Delete(t.Context(), tenantID, s.ID); err != nil {
							t.Error(err)
						}
					}
					return outbound.Answer{Status: 500}, nil
				})
				e := w.emit(eventlog.UserCreated, map[string]any{"n": 1})
				time.Sleep(24 * time.Hour)
				w.stop()
				if got := w.receivers.of(e.ID, s.URL); len(got) != during {
					t.Errorf("%d attempts", len(got))
				}
				if errs.Len() > 0 {
					t.Error(errs.String())
				}
			})
		})
	}
}
