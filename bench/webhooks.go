package bench

import (
	"context"
	"errors"
	"fmt"
	"io"
	"path"
	"path/filepath"
	"strings"
	"time"

	"github.com/HdrHistogram/hdrhistogram-go"
)

// Webhooks measures the delivery of events to webhook subscriptions. The product, its receivers
// and the clients of the floor are one process, and requests use plain HTTP on loopback. The
// floor is the same requests by a client of package net/http that stores nothing.
type Webhooks struct {
	Dir string // the folder for data
	// PostgresURL names a server whose user may create databases. Empty: only SQLite is measured.
	PostgresURL string
	// Measures are patterns of names of measures, separated by commas. Empty: all.
	Measures string
	Duration time.Duration // of each part of a measure
	Progress func(format string, args ...any)
}

// WebhooksRow is one figure.
type WebhooksRow struct {
	Database string `json:"database"`
	Measure  string `json:"measure"`
	Figure   string `json:"figure"`
	Floor    string `json:"floor,omitempty"`
	Bar      string `json:"bar,omitempty"` // empty: there is none
	Met      bool   `json:"met"`
}

// webhookMeasures are the measures in the order in which they are taken. pending is the first,
// because it measures memory.
var webhookMeasures = []struct {
	name string
	take func(Webhooks, context.Context, database) ([]WebhooksRow, error)
}{
	{"pending", Webhooks.pending},
	{"idle", Webhooks.idle},
	{"rate", Webhooks.rate},
	{"throughput", Webhooks.throughput},
	{"hanging", Webhooks.hanging},
	{"writes", Webhooks.writes},
}

// database is a database to measure on.
type database struct {
	name     string
	url      string
	isSQLite bool
}

// Run takes the measurements.
func (w Webhooks) Run(ctx context.Context) (rows []WebhooksRow, err error) {
	patterns := strings.Split(w.Measures, ",")
	chosen := func(name string) bool {
		for _, p := range patterns {
			if ok, err := path.Match(p, name); err == nil && ok {
				return true
			}
		}
		return w.Measures == ""
	}
	for _, m := range webhookMeasures {
		if !chosen(m.name) {
			continue
		}
		on := []database{{"SQLite", "sqlite://" + filepath.Join(w.Dir, m.name+".db"), true}}
		if w.PostgresURL != "" {
			url, drop, err := createDatabase(ctx, w.PostgresURL)
			if err != nil {
				return nil, fmt.Errorf("create a database: %w", err)
			}
			defer func() { err = errors.Join(err, drop()) }()
			on = append(on, database{"PostgreSQL", url, false})
		}
		for _, db := range on {
			w.Progress("%s, %s", m.name, db.name)
			found, err := m.take(w, ctx, db)
			if err != nil {
				return nil, fmt.Errorf("%s, %s: %w", m.name, db.name, err)
			}
			for _, r := range found {
				r.Database = db.name
				w.Progress("  %s: %s", r.Measure, r.Figure)
				rows = append(rows, r)
			}
		}
	}
	if len(rows) == 0 {
		return nil, fmt.Errorf("no measure %q", w.Measures)
	}
	return rows, nil
}

// WriteWebhooks writes the rows as a table.
func WriteWebhooks(w io.Writer, rows []WebhooksRow) error {
	var b strings.Builder
	fmt.Fprintf(&b, "| measure | database | figure | floor | bar | |\n|---|---|---|---|---|---|\n")
	for _, r := range rows {
		met := map[bool]string{true: "met", false: "missed"}[r.Met]
		if r.Bar == "" {
			met = ""
		}
		fmt.Fprintf(&b, "| %s | %s | %s | %s | %s | %s |\n", r.Measure, r.Database, r.Figure, r.Floor, r.Bar, met)
	}
	_, err := io.WriteString(w, b.String())
	return err
}

// latencies collects latencies. It is not safe for concurrent use.
type latencies struct{ h *hdrhistogram.Histogram }

func newLatencies() latencies { return latencies{hdrhistogram.New(1, time.Minute.Nanoseconds(), 3)} }

func (l latencies) add(d time.Duration) {
	_ = l.h.RecordValue(max(1, min(d, time.Minute).Nanoseconds())) // it is in range
}

func (l latencies) at(quantile float64) time.Duration {
	return time.Duration(l.h.ValueAtQuantile(quantile))
}

func (l latencies) String() string {
	return fmt.Sprintf("p50 %s, p99 %s", ms(l.at(50)), ms(l.at(99)))
}

func ms(d time.Duration) string {
	switch v := float64(d.Microseconds()) / 1000; {
	case v < 1:
		return fmt.Sprintf("%.2f ms", v)
	case v < 100:
		return fmt.Sprintf("%.1f ms", v)
	default:
		return fmt.Sprintf("%.0f ms", v)
	}
}
