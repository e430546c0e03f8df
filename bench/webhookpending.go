package bench

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"runtime"
	"runtime/debug"
	"time"

	"stonetown/internal/eventlog"
	"stonetown/internal/id"
	"stonetown/internal/sqldb"
	"stonetown/webhooks/delivery"
)

const (
	pendingEvents = 10_000 // of 100 subscriptions each: a million deliveries
	fewEvents     = 1000   // of the comparison, which must last as long as its measurement
	insertEvents  = 100    // whose deliveries one statement adds
	memorySamples = 5
)

// insertPending adds a delivery of each of some events to a subscription, half of them due at
// one time and half at another.
const insertPending = `
	INSERT INTO webhook_deliveries (tenant_id, subscription_id, id, position, event_id, event_type, event, operations, size, status,
		attempts, history, last_response, due_at, created_at)
	SELECT s.tenant_id, s.id, $4 || s.id || e.id, e.position, e.id, e.type, '', '', 400, 'pending', 0, '[]', '',
		CASE WHEN e.position % 2 = 0 THEN $5 + e.position ELSE $6 + e.position END, $5
	FROM events AS e CROSS JOIN webhook_subscriptions AS s
	WHERE e.tenant_id = $1 AND e.position > $2 AND e.position <= $3 AND s.tenant_id = $1`

// pending measures the memory of a queue with a million pending deliveries, to receivers that
// refuse connections, and the time of the statements that find due work.
func (w Webhooks) pending(ctx context.Context, db database) (rows []WebhooksRow, err error) {
	from, err := w.fillPending(ctx, db)
	if err != nil {
		return nil, err
	}
	few, _, err := w.runPending(ctx, db, from, from+fewEvents)
	if err != nil {
		return nil, err
	}
	many, picks, err := w.runPending(ctx, db, from+fewEvents, from+pendingEvents)
	if err != nil {
		return nil, err
	}
	grown, bar := float64(many.resident-few.resident)/(1<<20), 64.0
	rows = append(rows, WebhooksRow{
		Measure: "a million pending deliveries: resident memory, over that with a hundred thousand",
		Figure: fmt.Sprintf("%+.0f MiB (%d, with %d of Go's heap; and %d, with %d)", grown,
			many.resident>>20, many.heap>>20, few.resident>>20, few.heap>>20),
		Bar: fmt.Sprintf("%.0f MiB", bar), Met: grown < bar,
	})
	for _, p := range picks {
		row := WebhooksRow{Measure: p.of, Figure: p.took.String()}
		if p.alone {
			const bar = 5 * time.Millisecond
			row.Bar, row.Met = "p99 "+ms(bar), p.took.at(99) < bar
		}
		rows = append(rows, row)
	}
	return rows, nil
}

// fillPending creates subscriptions whose receivers refuse connections, and events that the queue
// has passed; the first one is after a position.
func (w Webhooks) fillPending(ctx context.Context, db database) (after int64, err error) {
	h, err := openHooks(ctx, db)
	if err != nil {
		return 0, err
	}
	defer func() { err = errors.Join(err, h.Close()) }()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return 0, err
	}
	refusing := l.Addr().String()
	if err := l.Close(); err != nil {
		return 0, err
	}
	for i := range receivers {
		if err := h.subscribe(ctx, fmt.Sprintf("http://%s/%d", refusing, i), eventlog.UserUpdated); err != nil {
			return 0, err
		}
	}
	const head = `SELECT position FROM event_heads WHERE tenant_id = $1`
	if err := h.DB.QueryRow(ctx, head, h.Tenant).Scan(&after); err != nil {
		return 0, err
	}
	for n := 0; n < pendingEvents; {
		var events []eventlog.Event
		for ; len(events) < 500 && n < pendingEvents; n++ {
			events = append(events, newEvent())
		}
		if err := h.recorder.Record(ctx, h.Tenant, events...); err != nil {
			return 0, err
		}
	}
	_, err = h.DB.Exec(ctx, `UPDATE event_readers SET position = (`+head+`) WHERE tenant_id = $1`, h.Tenant)
	return after, err
}

// addPending adds the deliveries of the events between two positions.
func (w Webhooks) addPending(ctx context.Context, db database, from, to int64) (err error) {
	h, err := openHooks(ctx, db)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, h.Close()) }()
	now := time.Now()
	for at := from; at < to; at += insertEvents {
		err := h.DB.Tx(ctx, func(tx *sqldb.Tx) error {
			_, err := tx.Exec(ctx, insertPending, h.Tenant, at, min(at+insertEvents, to), id.WebhookDelivery+"_",
				now.Add(-time.Hour).UnixMicro(), now.Add(time.Hour).UnixMicro())
			return err
		})
		if err != nil {
			return err
		}
		if (at-from)%1000 == 0 {
			w.Progress("  %d pending deliveries added", (at-from+insertEvents)*receivers)
		}
	}
	_, err = h.DB.Exec(ctx, `UPDATE webhook_lanes SET due_at = $2 WHERE tenant_id = $1`, h.Tenant, now.UnixMicro())
	return err
}

// memory is the memory of this process, in bytes.
type memory struct{ resident, heap int64 }

// pick is the time of the statements that find some due work.
type pick struct {
	of    string
	alone bool // no attempts ran
	took  latencies
}

// runPending adds pending deliveries and runs the queue. It returns the most memory that this
// process had after garbage collections, and the times of the statements that find due work meanwhile.
func (w Webhooks) runPending(ctx context.Context, db database, from, to int64) (most memory, picks []pick, err error) {
	if err := w.addPending(ctx, db, from, to); err != nil {
		return most, nil, err
	}
	h, err := openHooks(ctx, db)
	if err != nil {
		return most, nil, err
	}
	defer func() { err = errors.Join(err, h.Close()) }()
	debug.FreeOSMemory()
	statements, err := h.pickStatements(ctx)
	if err != nil {
		return most, nil, err
	}
	stop := background(h.Run)
	defer func() { stop() }()
	measure := func(alone bool, duration time.Duration) error {
		var found []pick
		for _, s := range statements {
			of := s.of + map[bool]string{true: ", alone", false: ", while attempts use all processors"}[alone]
			found = append(found, pick{of, alone, newLatencies()})
		}
		began := time.Now()
		for time.Since(began) < duration {
			for i, s := range statements {
				start := time.Now()
				if err := s.run(ctx); err != nil {
					return err
				}
				found[i].took.add(time.Since(start))
			}
			time.Sleep(10 * time.Millisecond)
		}
		picks = append(picks, found...)
		return nil
	}
	if err := measure(false, 2*w.Duration); err != nil {
		return most, nil, err
	}
	for range memorySamples {
		time.Sleep(w.Duration / memorySamples)
		debug.FreeOSMemory() // garbage does not count: how much there is depends on the collector only
		now, err := memoryNow()
		if err != nil {
			return most, nil, err
		}
		most.resident, most.heap = max(most.resident, now.resident), max(most.heap, now.heap)
	}
	for class, n := range h.Webhooks.Stats().Attempts {
		w.Progress("  %d attempts ended with %s (failing: %t)", n, class.Result, class.Failing)
	}
	stop()
	stop = func() {}
	return most, picks, measure(true, w.Duration)
}

// pickStatement is a statement that finds due work.
type pickStatement struct {
	of  string
	run func(context.Context) error
}

// pickStatements returns the statements that find due lanes and due deliveries.
func (h *hooks) pickStatements(ctx context.Context) ([]pickStatement, error) {
	var subscriptionID string
	if err := h.DB.QueryRow(ctx, `SELECT MIN(id) FROM webhook_subscriptions WHERE tenant_id = $1`, h.Tenant).Scan(&subscriptionID); err != nil {
		return nil, err
	}
	read := func(sql string, args func() []any) func(context.Context) error {
		return func(ctx context.Context) error {
			rows, err := h.DB.Query(ctx, sql, args()...)
			if err != nil {
				return err
			}
			defer rows.Close()
			for rows.Next() {
			}
			return rows.Err()
		}
	}
	return []pickStatement{
		{"find due lanes", read(delivery.SelectDueLanes, func() []any { return []any{time.Now().UnixMicro(), int64(1024)} })},
		{"read due deliveries of a lane", read(delivery.SelectDueDeliveries, func() []any {
			return []any{h.Tenant, subscriptionID, time.Now().UnixMicro(), int64(32)}
		})},
	}, nil
}

// memoryNow reads the memory of this process from Linux.
func memoryNow() (memory, error) {
	text, err := os.ReadFile("/proc/self/statm")
	if err != nil {
		return memory{}, err
	}
	var size, resident int64
	if _, err := fmt.Sscan(string(text), &size, &resident); err != nil {
		return memory{}, err
	}
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return memory{resident * int64(os.Getpagesize()), int64(m.HeapInuse)}, nil
}
