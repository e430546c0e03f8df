package bench

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"path/filepath"
	"runtime"
	"strings"
	"time"
)

// ManyTenants measures whether the cost of a tenant depends on the number of tenants in the
// deployment. Two servers run side by side, each a process of its own: one has one tenant and the
// other has many. Requests to both are measured in turn. Tenants of the second are drawn in
// proportion to 1/n^1.1.
type ManyTenants struct {
	Binary string // the product's
	Dir    string // the folder for data
	// PostgresURL names a server whose user may create databases. Empty: only SQLite is measured.
	PostgresURL string
	Tenants     int
	Duration    time.Duration // of each latency
	Progress    func(format string, args ...any)
}

// ManyTenantsRow is one figure.
type ManyTenantsRow struct {
	Database string `json:"database"`
	Measure  string `json:"measure"`
	One      string `json:"one"`  // with one tenant
	Many     string `json:"many"` // with many
	Ratio    string `json:"ratio,omitempty"`
	Bar      string `json:"bar,omitempty"` // empty: there is none
	Met      bool   `json:"met"`
}

const (
	maxCreation      = 150 * time.Millisecond
	maxIdleBytes     = 20 << 10
	maxRatio         = 1.5 // of figures that must not depend on the number of tenants
	starts           = 3
	idleAfter        = 10 * time.Second // instead of the default, so that the run does not wait for it
	requestsAtOnce   = 4
	zipfExponent     = 1.1
	maxRatioBar      = "at most 1.5 times"
	maxIdleBytesBar  = "under 20 KiB"
	maxCreationBar   = "p99 under 150 ms"
	manyTenantsTable = "| measure | database | 1 tenant | %d tenants | ratio | bar | |\n|---|---|---|---|---|---|---|\n"
)

// Run takes the measurements.
func (m ManyTenants) Run(ctx context.Context) (rows []ManyTenantsRow, err error) {
	on := []database{{name: "SQLite", isSQLite: true}}
	if m.PostgresURL != "" {
		on = append(on, database{name: "PostgreSQL"})
	}
	for _, db := range on {
		found, err := m.measure(ctx, db)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", db.name, err)
		}
		for _, r := range found {
			r.Database = db.name
			m.Progress("%s, %s: %s, %s", r.Database, r.Measure, r.One, r.Many)
			rows = append(rows, r)
		}
	}
	return rows, nil
}

// measure takes the measurements on one database system.
func (m ManyTenants) measure(ctx context.Context, on database) (rows []ManyTenantsRow, err error) {
	var both [2]*deployment // with one tenant, and with many
	defer func() {
		for _, d := range both {
			if d != nil {
				err = errors.Join(err, d.close())
			}
		}
	}()
	for i, n := range []int{1, m.Tenants} {
		db, drop := on, func() error { return nil }
		name := fmt.Sprintf("%s-%d", strings.ToLower(on.name), n)
		if db.isSQLite {
			db.url = "sqlite://" + filepath.Join(m.Dir, name+".db")
		} else if db.url, drop, err = createDatabase(ctx, m.PostgresURL); err != nil {
			return nil, fmt.Errorf("create a database: %w", err)
		}
		m.Progress("%s: create tenants: %d", on.name, n)
		both[i] = &deployment{binary: m.Binary, dir: filepath.Join(m.Dir, name), db: db, drop: drop}
		if err := both[i].fill(ctx, n); err != nil {
			return nil, fmt.Errorf("create tenants: %w", err)
		}
	}
	one, many := both[0], both[1]
	rows = append(rows, ManyTenantsRow{
		Measure: "creation of a tenant with an application", One: "", Many: many.creation.String(),
		Bar: maxCreationBar, Met: many.creation.at(99) < maxCreation,
	})

	var ready [2]time.Duration
	for range starts { // the servers of the last round stay
		for i, d := range both {
			took, err := d.restart(ctx)
			if err != nil {
				return nil, err
			}
			if ready[i] == 0 || took < ready[i] {
				ready[i] = took
			}
		}
	}
	rows = append(rows, ratio("time to ready, the best of 3 starts", float64(ready[0]), float64(ready[1]), ms(ready[0]), ms(ready[1])))

	memory := func(when, bar string) error {
		var bytes [2]float64
		for i, d := range both {
			if bytes[i], err = d.heap(ctx); err != nil {
				return fmt.Errorf("read the size of the heap: %w", err)
			}
		}
		each := (bytes[1] - bytes[0]) / float64(m.Tenants-1)
		rows = append(rows, ManyTenantsRow{
			Measure: "memory, " + when, One: mib(bytes[0]), Many: fmt.Sprintf("%s, %.1f KiB a tenant", mib(bytes[1]), each/1024),
			Bar: bar, Met: each < maxIdleBytes,
		})
		return nil
	}
	if err := memory("after the start", maxIdleBytesBar); err != nil {
		return nil, err
	}
	visit := func() error {
		m.Progress("%s: a token and a check of each tenant", on.name)
		return errors.Join(one.visit(ctx), many.visit(ctx))
	}
	if err := visit(); err != nil {
		return nil, err
	}
	if err := memory("after a token and a check of each", ""); err != nil {
		return nil, err
	}
	for _, r := range []struct {
		name string
		call func(d *deployment, t *hosted) func(context.Context) error
	}{{"token request", (*deployment).token}, {"check", (*deployment).check}} {
		m.Progress("%s: %s", on.name, r.name)
		meters := []*meter{
			newMeter(Figure{Measure: r.name, Workers: requestsAtOnce, PerCall: 1}, func(int) func(context.Context) error { return r.call(one, one.tenants[0]) }),
			newMeter(Figure{Measure: r.name, Workers: requestsAtOnce, PerCall: 1}, func(worker int) func(context.Context) error {
				return many.drawn(worker, r.call)
			}),
		}
		runtime.GC()
		if err := errors.Join(interleave(ctx, m.Duration, meters...)...); err != nil {
			return nil, err
		}
		a, b := meters[0].result(), meters[1].result()
		text := func(f Figure) string { return fmt.Sprintf("p50 %.2f ms, p99 %.2f ms", f.P50/1000, f.P99/1000) }
		rows = append(rows, ratio(r.name, a.P50, b.P50, text(a), text(b)))
	}

	for _, d := range both {
		if _, err := d.restart(ctx, "--idle-after", idleAfter.String()); err != nil {
			return nil, err
		}
	}
	if err := visit(); err != nil {
		return nil, err
	}
	if err := errors.Join(one.awaitIdle(ctx), many.awaitIdle(ctx)); err != nil {
		return nil, err
	}
	err = memory("the same, and then idle", maxIdleBytesBar)
	return rows, err
}

// ratio is the row of a figure that must not depend on the number of tenants.
func ratio(measure string, one, many float64, oneText, manyText string) ManyTenantsRow {
	return ManyTenantsRow{
		Measure: measure, One: oneText, Many: manyText, Ratio: fmt.Sprintf("%.2f", many/one), Bar: maxRatioBar, Met: many <= maxRatio*one,
	}
}

func mib(bytes float64) string { return fmt.Sprintf("%.1f MiB", bytes/(1<<20)) }

// drawn returns the calls of a worker to tenants that are drawn by Zipf's law.
func (d *deployment) drawn(worker int, call func(*deployment, *hosted) func(context.Context) error) func(context.Context) error {
	draw := rand.NewZipf(rand.New(rand.NewPCG(1, uint64(worker))), zipfExponent, 1, uint64(len(d.tenants)-1))
	return func(ctx context.Context) error { return call(d, d.tenants[draw.Uint64()])(ctx) }
}

// WriteTable writes the rows as a table.
func (m ManyTenants) WriteTable(w io.Writer, rows []ManyTenantsRow) error {
	var b strings.Builder
	fmt.Fprintf(&b, manyTenantsTable, m.Tenants)
	for _, r := range rows {
		met := map[bool]string{true: "met", false: "missed"}[r.Met]
		if r.Bar == "" {
			met = ""
		}
		fmt.Fprintf(&b, "| %s | %s | %s | %s | %s | %s | %s |\n", r.Measure, r.Database, r.One, r.Many, r.Ratio, r.Bar, met)
	}
	_, err := io.WriteString(w, b.String())
	return err
}
