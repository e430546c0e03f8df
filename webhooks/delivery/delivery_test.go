package delivery_test

import (
	"context"
	"encoding/json"
	"log/slog"
	"net/http"
	"path/filepath"
	"slices"
	"sync"
	"testing"
	"time"

	"stonetown/engine"
	"stonetown/internal/eventlog"
	"stonetown/internal/jobs"
	"stonetown/internal/outbound"
	"stonetown/internal/pgtest"
	"stonetown/internal/seal"
	"stonetown/internal/sqldb"
	"stonetown/tuplestore"
	"stonetown/tuplestore/sqlstore"
	"stonetown/webhooks"
	"stonetown/webhooks/delivery"
	"stonetown/webhooks/subscription"
)

const tenantID = "tnt_a"

func TestMain(m *testing.M) { pgtest.Main(m) }

// databases runs a test on every kind of database.
func databases(t *testing.T, test func(t *testing.T, url string)) {
	t.Run("sqlite", func(t *testing.T) { test(t, "sqlite:"+filepath.Join(t.TempDir(), "test.db")) })
	t.Run("postgres", func(t *testing.T) { test(t, pgtest.URL(t)) })
}

// world is a process of the product with the parts that webhooks need, and its receivers.
type world struct {
	t         testing.TB
	db        *sqldb.DB
	log       *eventlog.Log
	jobs      *jobs.Queue
	queue     *delivery.Queue
	registry  *subscription.Registry
	receivers *receivers
	tenants   *tenants
	config    delivery.Config
	key       *seal.Key
	stop      func()
}

// receivers answer the requests of deliveries.
type receivers struct {
	mu       sync.Mutex
	received []request
	answer   func(r request) (outbound.Answer, error) // nil: 204
}

// request is a request that a receiver got.
type request struct {
	url    string
	header http.Header
	body   []byte
	at     time.Time
	event  envelope
}

type envelope struct {
	EventID   string          `json:"event_id"`
	EventType string          `json:"event_type"`
	Sequence  int64           `json:"sequence"`
	Data      json.RawMessage `json:"data"`
	Actor     *struct{ Type, ID string }
	Tenant    struct{ ID, Slug string }
}

func (r *receivers) Post(ctx context.Context, url string, header http.Header, body []byte, _ int64) (outbound.Answer, error) {
	got := request{url: url, header: header.Clone(), body: slices.Clone(body), at: time.Now()}
	if err := json.Unmarshal(body, &got.event); err != nil {
		panic(err)
	}
	r.mu.Lock()
	r.received = append(r.received, got)
	answer := r.answer
	r.mu.Unlock()
	if answer == nil {
		return outbound.Answer{Status: http.StatusNoContent}, nil
	}
	a, err := answer(got)
	if err == nil && (a.Status < 200 || a.Status > 299) {
		err = &outbound.Error{Class: outbound.Status, Status: a.Status}
	}
	return a, err
}

func (r *receivers) set(answer func(r request) (outbound.Answer, error)) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.answer = answer
}

func (r *receivers) all() []request {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Clone(r.received)
}

// tenants are active unless they are listed.
type tenants struct {
	mu       sync.Mutex
	inactive []string
}

func (*tenants) WebhookTenant(_ context.Context, id string) (delivery.Tenant, error) {
	return delivery.Tenant{ID: id, Slug: "slug-of-" + id}, nil
}

func (t *tenants) InactiveTenants(context.Context) ([]string, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	return slices.Clone(t.inactive), nil
}

func (t *tenants) set(inactive ...string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.inactive = inactive
}

// relations is an engine without one: nothing has owners, and what is allowed is a function.
type relations struct {
	allowed func(revision int64, o tuplestore.Object) bool
}

func (relations) Write(context.Context, string, engine.WriteRequest) (engine.WriteResponse, error) {
	panic("no owners in these tests")
}

func (relations) Forget(ctx context.Context, _ string, _ tuplestore.Object, origin engine.Origin) (string, error) {
	panic("replaced by the world")
}

func (r relations) AllowedAt(_ context.Context, _ string, revision int64, _ tuplestore.Subject, _ string, resources []tuplestore.Object) (answers []bool, _ error) {
	for _, o := range resources {
		answers = append(answers, r.allowed(revision, o))
	}
	return answers, nil
}

// forgetting runs what commits with the deletion of relations.
type forgetting struct {
	relations
	db *sqldb.DB
}

func (f forgetting) Forget(ctx context.Context, _ string, _ tuplestore.Object, origin engine.Origin) (string, error) {
	return "", f.db.Tx(ctx, func(tx *sqldb.Tx) error { return origin.Also(ctx, tx) })
}

// open returns a process on a database, whose work does not run yet.
func open(t testing.TB, url string, r *receivers, allowed func(int64, tuplestore.Object) bool, configure ...func(*delivery.Config)) *world {
	t.Helper()
	db, err := sqldb.Open(t.Context(), sqldb.Config{URL: url})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { db.Close() })
	if err := db.Migrate(t.Context(), eventlog.Migrations(), sqlstore.Migrations(), jobs.Migrations(), webhooks.Migrations()); err != nil {
		t.Fatal(err)
	}
	key, err := seal.NewKey(make([]byte, seal.KeySize))
	if err != nil {
		t.Fatal(err)
	}
	logger := slog.New(slog.NewTextHandler(t.Output(), nil))
	log, err := eventlog.Open(eventlog.Config{DB: db, Logger: logger})
	if err != nil {
		t.Fatal(err)
	}
	w := &world{t: t, db: db, log: log, key: key, receivers: r, tenants: new(tenants)}
	if w.jobs, err = w.newJobs(); err != nil {
		t.Fatal(err)
	}
	rel := forgetting{relations{allowed}, db}
	config := delivery.Config{
		DB: db, Seal: key, Log: log, Checker: rel, Tenants: w.tenants, Jobs: w.jobs, Sender: r, Logger: logger,
		Disable: func(ctx context.Context, tenantID, id string) error {
			_, err := w.registry.Update(ctx, tenantID, id, func(s *subscription.Subscription) error {
				s.State, s.DisabledReason = subscription.Disabled, subscription.Gone
				return nil
			})
			return err
		},
	}
	for _, change := range configure {
		change(&config)
	}
	w.config = config
	if w.queue, err = delivery.New(config); err != nil {
		t.Fatal(err)
	}
	w.registry = subscription.NewRegistry(subscription.Config{
		DB: db, Seal: key, Relations: rel, Deliveries: w.queue, Outbound: outbound.New(outbound.Config{}), Clock: time.Now,
	})
	return w
}

func (w *world) newJobs() (*jobs.Queue, error) {
	return jobs.New(jobs.Config{DB: w.db, Seal: w.key, Logger: slog.New(slog.DiscardHandler)})
}

// run runs the background work until the test, or stop, ends it.
func (w *world) run() {
	ctx, cancel := context.WithCancel(context.Background())
	var running sync.WaitGroup
	running.Go(func() { w.queue.Run(ctx) })
	w.stop = sync.OnceFunc(func() { cancel(); running.Wait() })
	w.t.Cleanup(w.stop)
}

// subscribe creates a subscription to patterns.
func (w *world) subscribe(url string, patterns ...string) subscription.Subscription {
	w.t.Helper()
	s, _, err := w.registry.Create(w.t.Context(), tenantID, subscription.Subscription{Name: "s", URL: url, Events: patterns})
	if err != nil {
		w.t.Fatal(err)
	}
	return s
}

// emit commits an event.
func (w *world) emit(t eventlog.Type, data any) eventlog.Event {
	w.t.Helper()
	e := eventlog.New(t, eventlog.Origin{Actor: eventlog.Actor{Type: "user", ID: "usr_ann"}}, data)
	err := w.db.Tx(w.t.Context(), func(tx *sqldb.Tx) error {
		var b sqldb.Batch
		eventlog.Append(&b, tenantID, e)
		return tx.Send(w.t.Context(), &b)
	})
	if err != nil {
		w.t.Fatal(err)
	}
	return e
}

// until waits for a condition.
func (w *world) until(what string, done func() bool) {
	w.t.Helper()
	for deadline := time.Now().Add(20 * time.Second); ; time.Sleep(2 * time.Millisecond) {
		if done() {
			return
		}
		if time.Now().After(deadline) {
			w.t.Fatalf("%s: not in time", what)
		}
	}
}

func TestDeliver(t *testing.T) {
	databases(t, func(t *testing.T, url string) {
		w := open(t, url, new(receivers), nil)
		w.run()
		w.emit(eventlog.UserCreated, map[string]any{"n": 0}) // before the subscription
		all := w.subscribe("https://a.example.com/all", "*")
		some := w.subscribe("https://a.example.com/some", "group.*", "user.deleted")
		start := time.Now()
		e := w.emit(eventlog.UserCreated, map[string]any{"n": 1})
		w.until("a delivery", func() bool { return len(w.receivers.all()) >= 2 })
		t.Logf("after %v", time.Since(start))
		for _, r := range w.receivers.all() {
			switch {
			case r.url != all.URL:
				t.Errorf("delivered to %s: %s", r.url, r.body)
			case r.event.EventID == e.ID:
				if string(r.event.Data) != `{"n":1}` || r.event.Tenant.Slug != "slug-of-tnt_a" || r.event.Actor.ID != "usr_ann" {
					t.Errorf("%s", r.body)
				}
			case r.event.EventType != "webhook.subscription_created": // of the other subscription
				t.Errorf("%s", r.body)
			}
		}
		var d *delivery.Delivery
		w.until("the result is stored", func() bool {
			found, err := w.queue.List(t.Context(), tenantID, all.ID, delivery.Filter{EventType: string(e.Type)}, "", 10)
			if err != nil || len(found) != 1 {
				t.Fatalf("%d deliveries, %v", len(found), err)
			}
			d = found[0]
			return d.Status == delivery.Delivered
		})
		if len(d.Attempts) != 1 || *d.Attempts[0].Status != 204 || !d.NextAttemptAt.IsZero() || d.EventID != e.ID {
			t.Errorf("%+v", d)
		}
		for _, typ := range []eventlog.Type{eventlog.GroupCreated, eventlog.UserDeleted, eventlog.UserUpdated} {
			w.emit(typ, map[string]any{})
		}
		w.until("deliveries of two subscriptions", func() bool { return len(w.receivers.all()) == 2+3+2 })
		for _, r := range w.receivers.all() {
			if r.url == some.URL && r.event.EventType != "group.created" && r.event.EventType != "user.deleted" {
				t.Errorf("%s was delivered", r.event.EventType)
			}
		}
	})
}

// newest returns the newest delivery of a subscription.
func (w *world) newest(subscriptionID string) *delivery.Delivery {
	w.t.Helper()
	found, err := w.queue.List(w.t.Context(), tenantID, subscriptionID, delivery.Filter{}, "", 1)
	if err != nil || len(found) == 0 {
		w.t.Fatalf("no delivery, %v", err)
	}
	return found[0]
}

// types counts the events of the tenant by type.
func (w *world) types() map[eventlog.Type]int {
	w.t.Helper()
	found := map[eventlog.Type]int{}
	err := w.log.All(w.t.Context(), tenantID, func(e eventlog.Event) error {
		found[e.Type]++
		return nil
	})
	if err != nil {
		w.t.Fatal(err)
	}
	return found
}

// deliveries returns the deliveries of a subscription, newest first.
func (w *world) deliveries(subscriptionID string) []*delivery.Delivery {
	w.t.Helper()
	found, err := w.queue.List(w.t.Context(), tenantID, subscriptionID, delivery.Filter{}, "", 1000)
	if err != nil {
		w.t.Fatal(err)
	}
	return found
}
