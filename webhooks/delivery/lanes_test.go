package delivery_test

import (
	"fmt"
	"math/rand/v2"
	"net/http"
	"sync"
	"testing"
	"time"

	"stonetown/internal/eventlog"
	"stonetown/internal/outbound"
	"stonetown/internal/sqldb"
	"stonetown/webhooks/delivery"
)

// reread is how late a retry can be while other events are delivered.
const reread = 6 * time.Second

// key identifies an attempt.
func (r request) key() string {
	return r.header.Get("X-Service-Delivery") + " " + r.header.Get("X-Service-Attempt")
}

// twice returns the attempts that were made more than once.
func (r *receivers) twice() (keys []string) {
	seen := map[string]int{}
	for _, one := range r.all() {
		if seen[one.key()]++; seen[one.key()] == 2 {
			keys = append(keys, one.key())
		}
	}
	return keys
}

// Two processes deliver the events of one database: each event arrives, and while both live no
// attempt is made twice.
func TestTwoProcesses(t *testing.T) {
	databases(t, func(t *testing.T, url string) {
		r := new(receivers)
		a := open(t, url, r, nil)
		b := a
		if a.db.Dialect() == sqldb.SQLite { // which has one process: two queues on one database
			b = beside(a)
		} else {
			b = open(t, url, r, nil)
		}
		a.run()
		b.run()
		const subscriptions, events = 5, 200
		for i := range subscriptions {
			a.subscribe(fmt.Sprintf("https://a.example.com/%d", i), "user.*")
		}
		r.set(func(got request) (outbound.Answer, error) {
			time.Sleep(rand.N(3 * time.Millisecond))
			return outbound.Answer{Status: http.StatusOK}, nil
		})
		var emitting sync.WaitGroup
		for _, w := range []*world{a, b} {
			emitting.Go(func() {
				for range events / 2 {
					w.emit(eventlog.UserCreated, map[string]any{})
				}
			})
		}
		emitting.Wait()
		a.until("all deliveries", func() bool { return len(r.all()) >= subscriptions*events })
		time.Sleep(100 * time.Millisecond)
		if n, twice := len(r.all()), r.twice(); n != subscriptions*events || len(twice) > 0 {
			t.Errorf("%d requests, %d attempts were made twice", n, len(twice))
		}
	})
}

// beside returns a second process on the database of another one.
func beside(w *world) *world {
	w.t.Helper()
	config := w.config
	var err error
	other := *w
	if config.Jobs, err = w.newJobs(); err != nil {
		w.t.Fatal(err)
	}
	if config.Log, err = eventlog.Open(eventlog.Config{DB: w.db}); err != nil {
		w.t.Fatal(err)
	}
	if other.queue, err = delivery.New(config); err != nil {
		w.t.Fatal(err)
	}
	return &other
}

// A process that dies leaves its lanes to others when its leases end.
func TestDeadProcess(t *testing.T) {
	bubble(t, time.Second, func(t *testing.T, w *world) {
		s := w.subscribe("https://a.example.com/", "user.*")
		time.Sleep(10 * time.Second)
		_, err := w.db.Exec(t.Context(), `UPDATE webhook_lanes SET holder = 'dead', lease_until = $1, due_at = 0`, time.Now().Add(40*time.Second).UnixMicro())
		if err != nil {
			t.Fatal(err)
		}
		e := w.emit(eventlog.UserCreated, map[string]any{})
		time.Sleep(38 * time.Second)
		if got := w.receivers.of(e.ID, s.URL); len(got) > 0 {
			t.Errorf("delivered while another process may deliver")
		}
		time.Sleep(4 * time.Second)
		if got := w.receivers.of(e.ID, s.URL); len(got) != 1 {
			t.Errorf("%d deliveries after the end of the lease", len(got))
		}
	})
}

// A receiver that gets events all the time gets retries, and the deliveries of an earlier holder,
// in time.
func TestRetryOfBusyLane(t *testing.T) {
	bubble(t, time.Second, func(t *testing.T, w *world) {
		s := w.subscribe("https://a.example.com/", "user.*")
		w.receivers.set(status(500))
		e := w.emit(eventlog.UserCreated, map[string]any{})
		time.Sleep(100 * time.Millisecond)
		w.receivers.set(nil)
		for range 80 {
			w.emit(eventlog.UserUpdated, map[string]any{})
			time.Sleep(time.Second)
		}
		if got := w.receivers.of(e.ID, s.URL); len(got) != 2 {
			t.Fatalf("%d attempts in 80 s, want 2", len(got))
		} else if pause := got[1].at.Sub(got[0].at); pause < 54*time.Second || pause > 66*time.Second+reread {
			t.Errorf("the second attempt follows after %v", pause)
		}
	})
}

// OldestDue is the age of a due delivery, and not that of the lane that is held.
func TestOldestDue(t *testing.T) {
	databases(t, func(t *testing.T, url string) {
		w := open(t, url, new(receivers), nil)
		oldest := func() time.Duration {
			t.Helper()
			age, err := w.queue.OldestDue(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			return age
		}
		respond := make(chan struct{})
		stop := sync.OnceFunc(func() { close(respond) })
		defer stop()
		hangs := w.subscribe("https://a.example.com/hangs", "group.*")
		w.subscribe("https://a.example.com/busy", "user.*")
		w.receivers.set(func(r request) (outbound.Answer, error) {
			if r.url == hangs.URL {
				<-respond
			}
			return outbound.Answer{Status: http.StatusOK}, nil
		})
		w.run()
		for i := range 8 { // the lane of users is held all the time
			w.emit(eventlog.UserCreated, map[string]any{})
			w.until("a delivery", func() bool { return len(w.receivers.all()) == i+1 })
			time.Sleep(50 * time.Millisecond)
		}
		w.until("all results", func() bool { return oldest() == 0 })
		w.emit(eventlog.GroupCreated, map[string]any{})
		w.until("an attempt", func() bool { return len(w.receivers.all()) == 9 })
		time.Sleep(100 * time.Millisecond)
		if age := oldest(); age < 100*time.Millisecond || age > 5*time.Second {
			t.Errorf("a delivery that is not answered is due for %v", age)
		}
		stop()
		w.until("the result", func() bool { return oldest() == 0 })
	})
}

// The lanes of a process that died are free at once on SQLite, which has one process, and at the
// end of their leases elsewhere. Those of another queue of this process are not taken.
func TestAbandonedLanes(t *testing.T) {
	databases(t, func(t *testing.T, url string) {
		w := open(t, url, new(receivers), nil)
		respond := make(chan struct{})
		defer close(respond)
		live := w.subscribe("https://a.example.com/live", "user.*")
		dead := w.subscribe("https://a.example.com/dead", "group.*")
		w.receivers.set(func(r request) (outbound.Answer, error) {
			if r.url == live.URL {
				<-respond
			}
			return outbound.Answer{Status: http.StatusOK}, nil
		})
		w.run()
		sent := w.emit(eventlog.UserCreated, map[string]any{})
		w.until("an attempt", func() bool { return len(w.receivers.all()) == 1 })
		_, err := w.db.Exec(t.Context(), `UPDATE webhook_lanes SET holder = 'dead', lease_until = $1 WHERE subscription_id = $2`, time.Now().Add(time.Hour).UnixMicro(), dead.ID)
		if err != nil {
			t.Fatal(err)
		}
		other := beside(w)
		other.run()
		e := w.emit(eventlog.GroupCreated, map[string]any{})
		if w.db.Dialect() == sqldb.SQLite {
			w.until("the lane of the dead process", func() bool { return len(w.receivers.of(e.ID, dead.URL)) == 1 })
		} else {
			time.Sleep(2 * time.Second)
			if n := len(w.receivers.of(e.ID, dead.URL)); n != 0 {
				t.Errorf("%d deliveries by another process than the holder", n)
			}
		}
		if n := len(w.receivers.of(sent.ID, live.URL)); n != 1 {
			t.Errorf("%d attempts of a delivery that another queue sends", n)
		}
	})
}

// A process that cannot renew its leases begins no attempt that could last longer than they do.
func TestLostLease(t *testing.T) {
	bubble(t, time.Second, func(t *testing.T, w *world) {
		w.subscribe("https://a.example.com/", "user.*")
		w.receivers.set(func(request) (outbound.Answer, error) {
			time.Sleep(9 * time.Second)
			return outbound.Answer{Status: 200}, nil
		})
		for range 50 {
			w.emit(eventlog.UserCreated, map[string]any{})
		}
		time.Sleep(5 * time.Second)
		// Another process takes the lane, as if this one had not reached the database for long.
		_, err := w.db.Exec(t.Context(), `UPDATE webhook_lanes SET holder = 'other', lease_until = $1`, time.Now().Add(time.Hour).UnixMicro())
		if err != nil {
			t.Fatal(err)
		}
		taken := time.Now()
		time.Sleep(30 * time.Minute)
		for _, r := range w.receivers.all() {
			if r.at.After(taken.Add(40 * time.Second)) {
				t.Fatalf("an attempt %v after the lane was taken", r.at.Sub(taken))
			}
		}
		if n := len(w.receivers.all()); n == 50 || n == 0 {
			t.Errorf("%d attempts", n)
		}
	})
}

// A receiver that hangs takes its eight places, later one, and delays no other.
func TestHangingReceiver(t *testing.T) {
	bubble(t, time.Second, func(t *testing.T, w *world) {
		hanging := w.subscribe("https://hangs.example.com/", "user.*")
		healthy := w.subscribe("https://a.example.com/", "user.*")
		var mu sync.Mutex
		now, most, mostLater := 0, 0, 0
		start := time.Now()
		w.receivers.set(func(r request) (outbound.Answer, error) {
			if r.url == healthy.URL {
				return outbound.Answer{Status: 200}, nil
			}
			mu.Lock()
			now++
			most = max(most, now)
			if time.Since(start) > 30*time.Second {
				mostLater = max(mostLater, now)
			}
			mu.Unlock()
			time.Sleep(10 * time.Second)
			mu.Lock()
			now--
			mu.Unlock()
			return outbound.Answer{}, &outbound.Error{Class: outbound.Timeout}
		})
		for i := range 300 {
			e := w.emit(eventlog.UserCreated, map[string]any{"n": i})
			emitted := time.Now()
			time.Sleep(500 * time.Millisecond)
			if got := w.receivers.of(e.ID, healthy.URL); len(got) != 1 || got[0].at.Sub(emitted) > 0 {
				t.Fatalf("event %d: %d deliveries to the healthy receiver", i, len(got))
			}
		}
		if most != delivery.Concurrency || mostLater != 1 {
			t.Errorf("%d attempts at once, later %d", most, mostLater)
		}
		failed, err := w.registry.Get(t.Context(), tenantID, hanging.ID)
		if err != nil || failed.FailingSince.IsZero() || !failed.LastSuccessAt.IsZero() {
			t.Errorf("%+v, %v", failed, err)
		}
		// It recovers, and catches up.
		w.receivers.set(nil)
		time.Sleep(2 * time.Hour)
		failed, err = w.registry.Get(t.Context(), tenantID, hanging.ID)
		if err != nil || !failed.FailingSince.IsZero() || failed.LastSuccessAt.IsZero() {
			t.Errorf("%+v, %v", failed, err)
		}
		delivered, err := w.queue.List(t.Context(), tenantID, hanging.ID, delivery.Filter{Status: delivery.Delivered}, "", 1000)
		if err != nil || len(delivered) != 300 {
			t.Errorf("%d of 300 events were delivered, %v", len(delivered), err)
		}
		if twice := w.receivers.twice(); len(twice) > 0 {
			t.Errorf("%d attempts were made twice", len(twice))
		}
	})
}
