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

// Run measures each target under each workload.
func Run(ctx context.Context, o Options) (*Report, error) {
	if o.Duration == 0 {
		o.Duration = 3 * time.Second
	}
	r := &run{Options: o, report: &Report{
		Started: time.Now().UTC().Truncate(time.Second), Go: runtime.Version(), CPUs: runtime.NumCPU(),
	}}
	for _, w := range o.Workloads {
		if o.InProcess != nil {
			p := o.InProcess()
			if n, ok := w.(tenants); ok {
				r.target(ctx, &tenanted{p, n}, w, 1, runtime.GOMAXPROCS(0))
			} else {
				r.target(ctx, p, w, 1, runtime.GOMAXPROCS(0))
			}
		}
		if o.HTTP != nil {
			r.remote(ctx, o.HTTP, w)
		}
		for _, other := range o.Others {
			r.remote(ctx, other, w)
		}
	}
	if o.HTTP != nil && o.HTTP.email != "" {
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
	if _, apart := t.(*InProcess); apart {
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

func (r *run) figure(take func() (Figure, error)) {
	if r.err != nil {
		return
	}
	f, err := take()
	if err != nil && r.isOther(f.Target) {
		f.Failed, err = err.Error(), nil
	}
	if err != nil {
		r.err = err
		return
	}
	r.report.Figures = append(r.report.Figures, f)
	if f.Failed != "" {
		r.Progress("%s", f.Failed)
		return
	}
	r.Progress("%s, %s, %s, %d at once: %.0f/s", f.Target, f.Workload, f.Measure, f.Workers, f.PerSecond)
}

// target loads a workload and measures checks and batches.
func (r *run) target(ctx context.Context, t Target, w Workload, workers ...int) {
	r.load(ctx, t, w)
	if r.err == nil {
		r.err = t.Warm(ctx, w)
	}
	for _, n := range workers {
		meters := []*meter{checking(t, w, n, nil)}
		if h, ok := t.(*HTTP); ok && r.EchoURL != "" {
			meters = append(meters, echoing(r.EchoURL, h, w, n))
		}
		if r.err == nil {
			r.err = interleave(ctx, r.Duration, meters...)
		}
		for _, m := range meters {
			r.figure(func() (Figure, error) { return m.result(), nil })
		}
	}
	for _, n := range workers {
		r.figure(func() (Figure, error) { return batches(ctx, t, w, 500, n, r.Duration) })
	}
}

// load writes the tuples, unless another workload with the same tuples was loaded.
func (r *run) load(ctx context.Context, t Target, w Workload) {
	if _, same := w.(docsZipf); same && r.has(t, (*Docs)(nil).Name()) {
		return
	}
	r.figure(func() (Figure, error) {
		if err := t.Define(ctx, w.Types()); err != nil {
			return Figure{}, fmt.Errorf("define types: %w", err)
		}
		var mu sync.Mutex
		last := time.Now()
		return load(ctx, t, w, func(written int) {
			mu.Lock()
			defer mu.Unlock()
			if time.Since(last) > time.Second {
				last = time.Now()
				r.Progress("%s, %s: %d tuples", t.Name(), w.Name(), written)
			}
		})
	})
}

// remote also measures calls at a rate, which take longer than the sleep between them, and
// durable writes.
func (r *run) remote(ctx context.Context, t Target, w Workload) {
	r.target(ctx, t, w, 1, remoteWorkers)
	most := 0.0
	for _, f := range r.report.Figures {
		if f.Target == t.Name() && f.Workload == w.Name() && f.Measure == "check" {
			most = f.PerSecond
		}
	}
	r.figure(func() (Figure, error) {
		return checking(t, w, remoteWorkers, func(f *Figure) {
			f.Measure, f.Rate = "check, at half of that rate", most/2
		}).take(ctx, r.Duration)
	})
	if w, ok := w.(Growing); ok {
		for _, n := range []int{1, remoteWorkers} {
			r.figure(func() (Figure, error) { return writes(ctx, t, w, 1, n, r.Duration) })
		}
		r.figure(func() (Figure, error) { return writes(ctx, t, w, 10, remoteWorkers, r.Duration) })
	}
}

// WriteTable writes the report as a table.
func (r *Report) WriteTable(w io.Writer) error {
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintln(t, "target\tworkload\tmeasure\tat once\tper call\tper second\tp50 µs\tp90 µs\tp99 µs\tp99.9 µs\t")
	for _, f := range r.Figures {
		if f.Failed != "" {
			fmt.Fprintf(t, "%s\t%s\t%s\t%d\t%d\tfailed\t\t\t\t\t\n", f.Target, f.Workload, f.Measure, f.Workers, f.PerCall)
			continue
		}
		fmt.Fprintf(t, "%s\t%s\t%s\t%d\t%d\t%.0f\t%.1f\t%.1f\t%.1f\t%.1f\t\n",
			f.Target, f.Workload, f.Measure, f.Workers, f.PerCall, f.PerSecond, f.P50, f.P90, f.P99, f.P999)
	}
	return t.Flush()
}

// WriteJSON writes the report to a file.
func (r *Report) WriteJSON(path string) error {
	b, err := json.MarshalIndent(r, "", "  ")
	if err != nil {
		return err
	}
	return os.WriteFile(path, append(b, '\n'), 0o644)
}
