package bench

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/url"
	"os"
	"strings"
	"sync"
	"time"

	"github.com/jackc/pgx/v5"

	"stonetown/controlplane"
	"stonetown/identity/password/breached"
	"stonetown/internal/eventlog"
	"stonetown/internal/geo"
	"stonetown/internal/id"
	"stonetown/internal/notify"
	"stonetown/internal/outbound"
	"stonetown/internal/seal"
	"stonetown/internal/sqldb"
	"stonetown/server"
	"stonetown/webhooks"
	"stonetown/webhooks/subscription"
)

// createDatabase creates a database on a PostgreSQL server.
func createDatabase(ctx context.Context, server string) (databaseURL string, drop func() error, err error) {
	u, err := url.Parse(server)
	if err != nil {
		return "", nil, err
	}
	exec := func(ctx context.Context, sql string) error {
		conn, err := pgx.Connect(ctx, server)
		if err != nil {
			return err
		}
		_, err = conn.Exec(ctx, sql)
		return errors.Join(err, conn.Close(ctx))
	}
	name := strings.ToLower(id.New("bench"))
	if err := exec(ctx, "CREATE DATABASE "+name+" TEMPLATE template0 ENCODING 'UTF8' LC_COLLATE 'C' LC_CTYPE 'C'"); err != nil {
		return "", nil, err
	}
	u.Path = "/" + name
	return u.String(), func() error { return exec(context.WithoutCancel(ctx), "DROP DATABASE "+name+" WITH (FORCE)") }, nil
}

// hooks is the product in this process, with a tenant of its own for a measure.
type hooks struct {
	*server.Server
	Tenant   string
	outbound *outbound.Client
	recorder *eventlog.Recorder
}

// openHooks opens the product on a database. It creates the tenant unless there is one.
func openHooks(ctx context.Context, db database) (_ *hooks, err error) {
	key, err := seal.NewKey(make([]byte, seal.KeySize))
	if err != nil {
		return nil, err
	}
	h := &hooks{outbound: outbound.New(outbound.Config{AllowInsecure: true, KeepAlive: true})}
	h.Server, err = server.Open(ctx, server.Config{
		Database: sqldb.Config{URL: db.url}, MasterKey: key, Mail: notify.None{}, Texts: notify.None{},
		BreachedPasswords: breached.None{}, GeoIP: geo.None{}, Outbound: h.outbound,
		Logger: slog.New(slog.NewTextHandler(os.Stderr, &slog.HandlerOptions{Level: slog.LevelWarn})),
	})
	if err != nil {
		return nil, err
	}
	h.recorder = eventlog.NewRecorder(h.DB)
	if first, err := h.Organizations.FirstTenant(ctx); err == nil {
		h.Tenant = first.ID
		return h, nil
	}
	err = h.DB.Tx(ctx, func(tx *sqldb.Tx) error {
		org, err := h.Organizations.CreateOrganization(ctx, tx, "bench", "Bench")
		if err != nil {
			return err
		}
		t, err := h.Organizations.CreateTenant(ctx, tx, controlplane.NewTenant{OrgID: org.ID, Slug: "bench", Name: "Bench", BaseURL: "https://bench.example.com"})
		h.Tenant = t.ID
		return err
	})
	if err != nil {
		return nil, errors.Join(err, h.Close())
	}
	return h, nil
}

// Close closes the product and its connections to receivers.
func (h *hooks) Close() error {
	h.outbound.Close()
	return h.Server.Close()
}

// background runs a loop until stop, which returns when the loop has.
func background(loop func(context.Context)) (stop func()) {
	ctx, cancel := context.WithCancel(context.Background())
	var running sync.WaitGroup
	running.Go(func() { loop(ctx) })
	return func() {
		cancel()
		running.Wait()
	}
}

// subscribe creates a subscription to events of a type.
func (h *hooks) subscribe(ctx context.Context, url string, of eventlog.Type) error {
	_, _, err := h.Webhooks.Create(ctx, h.Tenant, webhooks.Caller{Reads: true, Writes: true}, subscription.Subscription{
		Name: "bench", URL: url, Events: []string{string(of)},
	})
	if err != nil {
		return fmt.Errorf("subscribe: %w", err)
	}
	return nil
}

// receiveAll starts receivers, each of one subscription, and returns the last one.
func (h *hooks) receiveAll(ctx context.Context, into *arrivals, n int) (last *receiver, stop func(), err error) {
	var all []*receiver
	stop = func() {
		for _, v := range all {
			_ = v.Close()
		}
	}
	for range n {
		v, err := receive(into.add)
		if err == nil {
			all = append(all, v)
			err = h.subscribe(ctx, v.URL, eventlog.UserUpdated)
		}
		if err != nil {
			stop()
			return nil, nil, err
		}
	}
	return all[n-1], stop, nil
}

// newEvent returns an event of the size of one about a user.
func newEvent() eventlog.Event {
	now := time.Now().UTC().Format(time.RFC3339Nano)
	return eventlog.New(eventlog.UserUpdated, eventlog.Origin{Actor: eventlog.Actor{Type: "application", ID: "app_bench"}, ClientID: "client_bench"}, map[string]any{
		"user": map[string]any{
			"id": id.New(id.User), "username": "ann", "email": "ann@example.com", "email_verified": true, "name": "Ann Example",
			"state": "active", "created_at": now, "updated_at": now, "metadata": map[string]any{"department": "research"},
		},
		"changed": []string{"name"},
	})
}
