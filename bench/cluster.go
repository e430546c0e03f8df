package bench

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"time"
)

// Cluster measures several processes on one PostgreSQL, which is some time away, with read leases
// and without, and one process on SQLite beside them. Callers send checks to all processes; tenants
// are drawn in proportion to 1/n^1.1. Relations are written at a rate, each followed by a check at
// another process, which must reflect the write. The deployments are measured in turn.
type Cluster struct {
	Binary      string // the product's
	Dir         string // the folder for data
	PostgresURL string // of a server whose user may create databases
	Processes   []int
	Latencies   []time.Duration // of the database
	Tenants     int
	Writes      float64 // per second
	// Faults are injected during measurements of their own: "kill", "stop".
	Faults   []string
	Duration time.Duration // of each figure
	Progress func(format string, args ...any)
}

// ClusterRow has the figures of one deployment.
type ClusterRow struct {
	Database  string        `json:"database"`
	Latency   time.Duration `json:"latency"`
	Processes int           `json:"processes"`
	Leases    bool          `json:"leases"`
	// Affine: each tenant is served by one process.
	Affine bool   `json:"affine"`
	Faults string `json:"faults,omitempty"`
	// Alone are checks one after the other, and Many those of several callers.
	Alone  Figure        `json:"alone"`
	Many   Figure        `json:"many"`
	Writes int64         `json:"writes"` // acknowledged
	Write  time.Duration `json:"write_p50"`
	// SlowestWrite took longest.
	SlowestWrite time.Duration `json:"slowest_write"`
	// RoundTrips to the database for 1,000 checks, and what else the processes did meanwhile.
	RoundTrips float64 `json:"round_trips"`
	// Processor is the time that all processes used for a check, also for what else they did
	// meanwhile. It does not have the database or the callers.
	Processor time.Duration `json:"processor"`
	Failed    int64         `json:"failed"` // requests
	Wrong     int64         `json:"wrong"`  // answers
}

const (
	callersAtOnce = 16
	faultEvery    = 2 * time.Second
	stopTime      = 2 * time.Second // of a process; its lease takes one
)

// Run takes the measurements.
func (c Cluster) Run(ctx context.Context) (rows []ClusterRow, err error) {
	if c.PostgresURL == "" {
		return nil, errors.New("a cluster needs a PostgreSQL server")
	}
	if c.Tenants < 2 {
		return nil, errors.New("a cluster needs two tenants at least")
	}
	for _, f := range c.Faults {
		if f != "kill" && f != "stop" {
			return nil, fmt.Errorf("no fault %q; there are kill and stop", f)
		}
	}
	for _, latency := range c.Latencies {
		for _, n := range c.Processes {
			found, err := c.measure(ctx, latency, n)
			if err != nil {
				return nil, fmt.Errorf("%d processes, a database %v away: %w", n, latency, err)
			}
			rows = append(rows, found...)
		}
	}
	return rows, nil
}

// measure measures one number of processes.
func (c Cluster) measure(ctx context.Context, latency time.Duration, n int) (rows []ClusterRow, err error) {
	dir := filepath.Join(c.Dir, fmt.Sprintf("%v-%d", latency, n))
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	all := []*nodes{
		{ClusterRow: ClusterRow{Database: "SQLite", Processes: 1}},
		{ClusterRow: ClusterRow{Database: "PostgreSQL", Latency: latency, Processes: n}},
		{ClusterRow: ClusterRow{Database: "PostgreSQL", Latency: latency, Processes: n, Leases: true}},
	}
	if n > 1 {
		all = append(all, &nodes{ClusterRow: ClusterRow{Database: "PostgreSQL", Latency: latency, Processes: n, Leases: true, Affine: true}})
	}
	defer func() {
		for _, d := range all {
			err = errors.Join(err, d.close())
		}
	}()
	for i, d := range all {
		c.Progress("start %s", d)
		if err := d.open(ctx, c, filepath.Join(dir, fmt.Sprint(i))); err != nil {
			return nil, err
		}
	}
	for _, callers := range []int{1, callersAtOnce} {
		c.Progress("checks, %d at once", callers)
		var meters []*meter
		for _, d := range all {
			meters = append(meters, d.meter(callers, c.Writes))
		}
		runtime.GC()
		before := make([]use, len(all))
		for i, d := range all {
			if before[i], err = d.use(ctx); err != nil {
				return nil, err
			}
		}
		if err := errors.Join(interleave(ctx, c.Duration, meters...)...); err != nil {
			return nil, err
		}
		for i, d := range all {
			if d.Many = meters[i].result(); callers == 1 {
				d.Alone = d.Many
			}
			if err := d.divide(ctx, before[i]); err != nil { // the others idle meanwhile, and have little to do
				return nil, err
			}
		}
	}
	for _, d := range all {
		rows = append(rows, d.row())
	}
	if n == 1 {
		return rows, nil
	}
	if c.PostgresURL == "" {
		return nil, errors.New("a cluster needs a PostgreSQL server")
	}
	if c.Tenants < 2 {
		return nil, errors.New("a cluster needs two tenants at least")
	}
	for _, f := range c.Faults {
		for _, d := range all[1:] {
			d.Faults = f
			c.Progress("%s", d)
			row, err := d.underFaults(ctx, c, f)
			if err != nil {
				return nil, err
			}
			rows = append(rows, row)
		}
	}
	return rows, nil
}

// row returns the figures so far.
func (d *nodes) row() ClusterRow {
	row := d.ClusterRow
	row.Writes, row.Write, row.SlowestWrite = d.written.h.TotalCount(), d.written.at(50), d.written.at(100)
	row.Failed, row.Wrong = d.failed.Load(), d.wrong.Load()
	return row
}

// underFaults measures while a process, another one each time, is killed and started again, or
// stopped for two leases.
func (d *nodes) underFaults(ctx context.Context, c Cluster, fault string) (ClusterRow, error) {
	d.written, d.tolerant = newLatencies(), true
	m := d.meter(callersAtOnce, c.Writes)
	during, end := context.WithCancel(ctx)
	faults := make(chan error, 1)
	go func() { faults <- d.inject(during, fault) }()
	err := m.run(ctx, max(c.Duration, 2*faultEvery*time.Duration(len(d.list))))
	end()
	if err := errors.Join(err, <-faults); err != nil {
		return ClusterRow{}, err
	}
	d.Alone, d.Many, d.RoundTrips, d.Processor = Figure{}, m.result(), 0, 0 // processes that have ended take their counters along
	row := d.row()
	d.failed.Store(0)
	return row, nil
}

// WriteTable writes the rows as a table. Ratios are to SQLite, measured in turn with the row.
func (c Cluster) WriteTable(w io.Writer, rows []ClusterRow) error {
	var b strings.Builder
	b.WriteString("| deployment | database | check, p50 | to SQLite | checks/s by 16 | to SQLite | p50 and p99 | writes, p50 and longest | processors for a check | round trips for 1,000 checks | failed | wrong |\n|---|---|---|---|---|---|---|---|---|---|---|---|\n")
	var sqlite ClusterRow
	for _, r := range rows {
		if r.Database == "SQLite" {
			sqlite = r
		}
		alone, times, away, used := "", "", "", " | "
		if r.Alone.Calls > 0 {
			alone, times = us(r.Alone.P50), fmt.Sprintf("%.1f x", r.Alone.P50/sqlite.Alone.P50)
		}
		if r.Processor > 0 {
			used = fmt.Sprintf("%d µs | %.0f", r.Processor.Microseconds(), r.RoundTrips)
		}
		if r.Database != "SQLite" {
			away = fmt.Sprintf(", %v away", r.Latency)
		}
		fmt.Fprintf(&b, "| %s | %s%s | %s | %s | %.0f | %.2f x | %s, %s | %d, %s, %s | %s | %d | %d |\n",
			r.name(), r.Database, away, alone, times, r.Many.PerSecond, r.Many.PerSecond/sqlite.Many.PerSecond, us(r.Many.P50), us(r.Many.P99),
			r.Writes, ms(r.Write), ms(r.SlowestWrite), used, r.Failed, r.Wrong)
	}
	_, err := io.WriteString(w, b.String())
	return err
}

func us(v float64) string { return ms(time.Duration(v) * time.Microsecond) }

// name names the deployment of a row.
func (r *ClusterRow) name() string {
	parts := []string{"1 process"}
	if r.Processes > 1 {
		parts[0] = fmt.Sprintf("%d processes", r.Processes)
	}
	if r.Leases {
		parts = append(parts, "leases")
	}
	if r.Affine {
		parts = append(parts, "a tenant at one")
	}
	if r.Faults != "" {
		parts = append(parts, map[string]string{"kill": "one is killed", "stop": "one is stopped"}[r.Faults]+fmt.Sprintf(" every %v", faultEvery))
	}
	return strings.Join(parts, ", ")
}

// ClusterWrong returns the number of wrong answers.
func ClusterWrong(rows []ClusterRow) (n int64) {
	for _, r := range rows {
		n += r.Wrong
	}
	return n
}
