package bench

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"runtime"
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

// Options say what to measure.
type Options struct {
	// InProcess returns an engine that knows nothing yet. nil: not measured.
	InProcess func() *InProcess
	Shapes    []Workload // measured in process, after the docs
	HTTP      *HTTP      // nil: not measured
	EchoURL   string     // empty: not measured; it is with what HTTP sends
	Others    []Target   // other engines, measured like HTTP
	// Duration is how long each figure is measured. Default 3 s.
	Duration time.Duration
	// Progress is told what is going on.
	Progress func(format string, args ...any)
}

// Run measures the docs workload, and the shapes in process.
func Run(ctx context.Context, o Options) (*Report, error) {
	if o.Duration == 0 {
		o.Duration = 3 * time.Second
	}
	r := &run{Options: o, docs: NewDocs(), report: &Report{
		Started: time.Now().UTC().Truncate(time.Second), Go: runtime.Version(), CPUs: runtime.NumCPU(),
	}}
	if o.InProcess != nil {
		r.target(ctx, o.InProcess(), r.docs, []int{1, runtime.GOMAXPROCS(0)})
		for _, shape := range o.Shapes {
			r.target(ctx, o.InProcess(), shape, []int{1})
		}
	}
	if o.EchoURL != "" {
		for _, workers := range []int{1, 16} {
			r.figure(func() (Figure, error) { return echo(ctx, o.EchoURL, o.HTTP.token, r.docs, workers, o.Duration) })
		}
	}
	if o.HTTP != nil {
		r.target(ctx, o.HTTP, r.docs, []int{1, 16})
	}
	for _, other := range o.Others {
		r.target(ctx, other, r.docs, []int{1, 16})
	}
	return r.report, r.err
}

// run collects figures until the first error.
type run struct {
	Options
	docs   Workload
	report *Report
	err    error
}

func (r *run) figure(take func() (Figure, error)) {
	if r.err != nil {
		return
	}
	f, err := take()
	if err != nil {
		r.err = err
		return
	}
	r.report.Figures = append(r.report.Figures, f)
	r.Progress("%s, %s, %s, %d at once: %.0f/s", f.Target, f.Workload, f.Measure, f.Workers, f.PerSecond)
}

func (r *run) newest() Figure {
	if r.err != nil {
		return Figure{}
	}
	return r.report.Figures[len(r.report.Figures)-1]
}

func (r *run) target(ctx context.Context, t Target, w Workload, workers []int) {
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
	if r.err == nil {
		r.err = t.Warm(ctx, w)
	}
	for _, n := range workers {
		r.figure(func() (Figure, error) { return checks(ctx, t, w, n, r.Duration, nil) })
	}
	if _, here := t.(*InProcess); !here { // where it takes less time than to sleep until it is due
		most := r.newest()
		r.figure(func() (Figure, error) {
			return checks(ctx, t, w, most.Workers, r.Duration, func(f *Figure) {
				f.Measure, f.Rate = "check, at half of that rate", most.PerSecond/2
			})
		})
	}
	for _, n := range workers {
		r.figure(func() (Figure, error) { return batches(ctx, t, w, 500, n, r.Duration) })
	}
}

// WriteTable prints the report for people.
func (r *Report) WriteTable(w io.Writer) error {
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintln(t, "target\tworkload\tmeasure\tat once\tper call\tper second\tp50 µs\tp90 µs\tp99 µs\tp99.9 µs\t")
	for _, f := range r.Figures {
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
