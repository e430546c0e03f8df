package bench

import (
	"context"
	"fmt"
	"iter"
	"sync/atomic"
	"time"

	"golang.org/x/sync/errgroup"

	"stonetown/tuplestore"
)

// Load is the tuples of [Docs], which are loaded; nothing is asked.
type Load struct{ *Docs }

// Name implements [Workload].
func (Load) Name() string { return "load" }

func (l Load) measure(ctx context.Context, r *run, targets ...Target) {
	for _, t := range targets {
		r.load(ctx, t, l)
	}
}

// loaders is the number of concurrent writes during loading.
const loaders = 4

// bulkLoad is the measure of [load].
const bulkLoad = "bulk load"

// Loader is a target that takes all tuples of a workload in one stream.
type Loader interface {
	// Load writes tuples. progress is called with the number that is written.
	Load(ctx context.Context, tuples iter.Seq[tuplestore.Tuple], progress func(written int)) error
}

// stream loads all tuples in one stream and measures the rate.
func stream(ctx context.Context, t Target, l Loader, w Workload, progress func(written int)) (Figure, error) {
	f := Figure{Target: t.Name(), Workload: w.Name(), Measure: bulkLoad, Workers: 1, Calls: 1}
	began := time.Now()
	if err := l.Load(ctx, w.Tuples, func(written int) { f.PerCall = written; progress(written) }); err != nil {
		return f, fmt.Errorf("load: %w", err)
	}
	f.PerSecond = float64(f.PerCall) / time.Since(began).Seconds()
	return f, nil
}

// load writes all tuples and measures the rate. progress may be called concurrently.
func load(ctx context.Context, t Target, w Workload, progress func(written int)) (Figure, error) {
	if l, ok := t.(Loader); ok {
		return stream(ctx, t, l, w, progress)
	}
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(loaders)
	limit := t.WriteLimit()
	var written, calls atomic.Int64
	write := func(batch []tuplestore.Tuple) {
		group.Go(func() error {
			if err := t.Write(ctx, batch); err != nil {
				return fmt.Errorf("write: %w", err)
			}
			calls.Add(1)
			progress(int(written.Add(int64(len(batch)))))
			return nil
		})
	}
	began := time.Now()
	var batch []tuplestore.Tuple
	for tuple := range w.Tuples {
		if batch = append(batch, tuple); len(batch) == limit {
			write(batch)
			batch = nil
		}
	}
	if len(batch) > 0 {
		write(batch)
	}
	err := group.Wait()
	return Figure{
		Target: t.Name(), Workload: w.Name(), Measure: bulkLoad, Workers: loaders, PerCall: limit, Calls: calls.Load(),
		PerSecond: float64(written.Load()) / time.Since(began).Seconds(),
	}, err
}
