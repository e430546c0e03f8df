package bench

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"runtime"
	"slices"
	"sync"
	"text/tabwriter"
	"time"
)

// Report is the outcome of a run.
type Report struct {
	Started time.Time `json:"started"`
	Go      string    `json:"go"`
	CPUs    int       `json:"cpus"`
	Figures []Figure  `json:"figures"`
}

// Options are the targets and workloads of a run.
type Options struct {
	Workloads []Workload // required
	// InProcess returns an engine without data for a workload. nil: not measured.
	InProcess func() *InProcess
	EchoURL   string   // empty: not measured; otherwise interleaved with HTTP, with the same requests
	HTTP      *HTTP    // nil: not measured
	Others    []Target // other engines, measured as HTTP is
	// Duration is the time for each figure. Default 3 s.
	Duration time.Duration
	// Progress gets messages about the progress.
	Progress func(format string, args ...any)
}

// remote returns the targets outside of this process.
func (o *Options) remote() (targets []Target) {
	if o.HTTP != nil {
		targets = append(targets, o.HTTP)
	}
	return append(targets, o.Others...)
}

// Run measures the targets under each workload, remote targets alternately.
func Run(ctx context.Context, o Options) (*Report, error) {
	if o.Duration == 0 {
		o.Duration = 3 * time.Second
	}
	r := &run{Options: o, report: &Report{
		Started: time.Now().UTC().Truncate(time.Second), Go: runtime.Version(), CPUs: runtime.NumCPU(),
	}}
	for _, w := range o.Workloads {
		if o.InProcess != nil {
			var t Target = o.InProcess()
			if n, ok := w.(tenants); ok {
				t = &tenanted{t.(*InProcess), n}
			}
			if s, ok := w.(special); ok {
				s.measure(ctx, r, t)
			} else {
				r.workload(ctx, w, []int{1, runtime.GOMAXPROCS(0)}, t)
			}
		}
		if remote := o.remote(); len(remote) > 0 {
			if s, ok := w.(special); ok {
				s.measure(ctx, r, remote...)
				continue
			}
			r.workload(ctx, w, []int{1, remoteWorkers}, remote...)
			r.atRate(ctx, w, remote)
			r.writes(ctx, w, remote)
		}
	}
	isDocs := func(w Workload) bool { _, ok := w.(*Docs); return ok }
	if o.HTTP != nil && o.HTTP.email != "" && slices.ContainsFunc(o.Workloads, isDocs) {
		r.tokens(ctx, o.HTTP)
	}
	return r.report, r.err
}

// remoteWorkers is the number of concurrent calls of remote targets.
const remoteWorkers = 16

// run collects figures until the first error.
type run struct {
	Options
	report *Report
	err    error
}

// has reports whether a workload was loaded into a target that has all of them.
func (r *run) has(t Target, workload string) bool {
	switch t.(type) {
	case *InProcess, *tenanted:
		return false // each in a tenant of its own
	}
	return slices.ContainsFunc(r.report.Figures, func(f Figure) bool {
		return f.Target == t.Name() && f.Workload == workload && f.Measure == bulkLoad
	})
}

// isOther reports whether a target is another engine, whose failures and wrong answers are
// results.
func (r *run) isOther(target string) bool {
	return slices.ContainsFunc(r.Others, func(t Target) bool { return t.Name() == target })
}

// figure adds a figure. The error of another engine is a result.
func (r *run) figure(f Figure, err error) {
	if err != nil && r.isOther(f.Target) {
		f.Failed, err = err.Error(), nil
	}
	if err != nil {
		r.err = err
		return
	}
	r.report.Figures = append(r.report.Figures, f)
	if f.Failed != "" {
		r.Progress("%s, %s, %s: %s", f.Target, f.Workload, f.Measure, f.Failed)
		return
	}
	r.Progress("%s, %s, %s, %d at once: %.0f/s", f.Target, f.Workload, f.Measure, f.Workers, f.PerSecond)
}

// measure runs meters alternately and adds their figures.
func (r *run) measure(ctx context.Context, meters ...*meter) {
	if r.err != nil {
		return
	}
	failed := interleave(ctx, r.Duration, meters...)
	for i, m := range meters {
		for _, m := range append([]*meter{m}, m.beside...) {
			if r.err == nil {
				r.figure(m.result(), failed[i])
			}
		}
	}
}

// workload loads a workload and measures checks and batches.
func (r *run) workload(ctx context.Context, w Workload, workers []int, targets ...Target) {
	r.prepare(ctx, w, targets)
	// each returns the meters of a measure.
	each := func(of func(Target) *meter) (meters []*meter) {
		for _, t := range targets {
			meters = append(meters, of(t))
		}
		return meters
	}
	for _, n := range workers {
		meters := each(func(t Target) *meter { return checking(t, w, n, nil) })
		if r.HTTP != nil && r.EchoURL != "" && slices.Contains(targets, Target(r.HTTP)) {
			meters = append(meters, echoing(r.EchoURL, r.HTTP, w, n))
		}
		r.measure(ctx, meters...)
	}
	for _, n := range workers {
		r.measure(ctx, each(func(t Target) *meter { return batches(t, w, false, n) })...)
		if _, apart := w.(tenants); !apart { // each batch is of one tenant
			r.measure(ctx, each(func(t Target) *meter { return batches(t, w, true, n) })...)
		}
	}
}

// prepare loads a workload and warms the targets.
func (r *run) prepare(ctx context.Context, w Workload, targets []Target) {
	for _, t := range targets {
		r.load(ctx, t, w)
	}
	for _, t := range targets {
		if r.err == nil {
			r.err = t.Warm(ctx, w)
		}
	}
}

// load writes the tuples, unless another workload with the same tuples was loaded.
func (r *run) load(ctx context.Context, t Target, w Workload) {
	if on, ok := w.(onDocs); ok {
		w = on.docs()
	}
	if r.err != nil || r.has(t, w.Name()) {
		return
	}
	if err := t.Define(ctx, w.Types()); err != nil {
		r.err = fmt.Errorf("%s: define types: %w", t.Name(), err)
		return
	}
	var mu sync.Mutex
	last := time.Now()
	r.figure(load(ctx, t, w, func(written int) {
		mu.Lock()
		defer mu.Unlock()
		if time.Since(last) > time.Second {
			last = time.Now()
			r.Progress("%s, %s: %d tuples", t.Name(), w.Name(), written)
		}
	}))
}

// atRate measures checks that are due at half of the rate of a target's closed loop, which
// take longer than the sleep between them.
func (r *run) atRate(ctx context.Context, w Workload, targets []Target) {
	var meters []*meter
	for _, t := range targets {
		most := 0.0
		for _, f := range r.report.Figures {
			if f.Target == t.Name() && f.Workload == w.Name() && f.Measure == "check" && f.Failed == "" {
				most = f.PerSecond
			}
		}
		if most > 0 {
			meters = append(meters, checking(t, w, remoteWorkers, func(f *Figure) {
				f.Measure, f.Rate = "check, at half of that rate", most/2
			}))
		}
	}
	r.measure(ctx, meters...)
}

// writes measures durable writes, if the workload has any.
func (r *run) writes(ctx context.Context, w Workload, targets []Target) {
	growing, ok := w.(Growing)
	if !ok {
		return
	}
	for _, c := range []struct{ every, workers int }{{1, 1}, {1, remoteWorkers}, {10, remoteWorkers}} {
		var meters []*meter
		for _, t := range targets {
			meters = append(meters, writing(t, growing, c.every, c.workers))
		}
		r.measure(ctx, meters...)
	}
}

// WriteTable writes the report as a table.
func (r *Report) WriteTable(w io.Writer) error {
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintln(t, "target\tworkload\tmeasure\tat once\tper call\tper second\tp50 µs\tp90 µs\tp99 µs\tp99.9 µs\treads/1,000\t")
	for _, f := range r.Figures {
		if f.Failed != "" {
			fmt.Fprintf(t, "%s\t%s\t%s\t%d\t%d\tfailed\t\t\t\t\t\t\n", f.Target, f.Workload, f.Measure, f.Workers, f.PerCall)
			continue
		}
		fmt.Fprintf(t, "%s\t%s\t%s\t%d\t%d\t%.0f\t%.1f\t%.1f\t%.1f\t%.1f\t%s\t\n",
			f.Target, f.Workload, f.Measure, f.Workers, f.PerCall, f.PerSecond, f.P50, f.P90, f.P99, f.P999, reads(f.Reads))
	}
	return t.Flush()
}

// reads writes a number of reads; empty for zero.
func reads(n float64) string {
	if n == 0 {
		return ""
	}
	return number(n)
}

// WriteJSON writes the report to a file.
func (r *Report) WriteJSON(path string) error {
	b, err := json.MarshalIndent(r, "", "  ")
	if err != nil {
		return err
	}
	return os.WriteFile(path, append(b, '\n'), 0o644)
}
