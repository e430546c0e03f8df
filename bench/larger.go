package bench

import (
	"context"
	"fmt"
	"os"
	"slices"

	"stonetown/engine"
)

// LargerThanMemory is checks of [Docs] by an engine whose memory takes a part of the tuples. No
// question is asked twice by plan. Other targets get the same questions; see [ServerArgs].
type LargerThanMemory struct {
	*Docs
	draw  Workload
	part  int64 // one of so many parts of the tuples fits; 0: none
	files bool  // there is a folder for mapped files
}

// NewLargerThanMemory returns the workload with memory for a quarter of the tuples, and a folder for
// mapped files, which the server with the embedded database has by default.
func NewLargerThanMemory(d *Docs) *LargerThanMemory { return &LargerThanMemory{d, d, 4, true} }

// Name implements [Workload].
func (*LargerThanMemory) Name() string { return "larger-than-memory" }

// ServerArgs returns the arguments of a server that workloads are measured on. The server of
// larger-than-memory has memory for about a quarter of its tuples.
func ServerArgs(workloads []Workload) ([]string, error) {
	for _, w := range workloads {
		if _, ok := w.(*LargerThanMemory); ok {
			if len(workloads) > 1 {
				return nil, fmt.Errorf("%s limits the memory of its server: measure it over HTTP by itself", w.Name())
			}
			return []string{"--resident-memory-mib", "2"}, nil
		}
	}
	return nil, nil
}

func (l *LargerThanMemory) measure(ctx context.Context, r *run, targets ...Target) {
	targets = slices.Clone(targets)
	for i, t := range targets {
		p, ok := t.(*InProcess)
		if !ok {
			r.load(ctx, t, l)
			continue
		}
		before := p.Engine.Stats().ResidentBytes
		if r.prepare(ctx, l, targets[i:i+1]); r.err != nil {
			return
		}
		memory := int64(-1)
		if l.part > 0 {
			memory = (p.Engine.Stats().ResidentBytes - before) / l.part
		}
		if memory == 0 {
			r.err = fmt.Errorf("%s: the tuples are not in memory", l.Name())
			return
		}
		c := engine.Config{Store: p.Store, ResidentBytes: memory}
		if l.files {
			if c.GraphFolder, r.err = os.MkdirTemp("", "stonetown-mapped-"); r.err != nil {
				return
			}
			defer os.RemoveAll(c.GraphFolder)
		}
		e, err := engine.New(c)
		if err != nil {
			r.err = err
			return
		}
		defer e.Close()
		of := &InProcess{Engine: e, Store: p.Store, Tenant: p.Tenant}
		if targets[i] = of; l.files {
			if r.err = of.Warm(ctx, l); r.err != nil {
				return
			}
		}
	}
	for _, m := range []struct{ workers, size int }{{1, 1}, {remoteWorkers, 1}, {1, batchSize}} {
		var meters []*meter
		for _, t := range targets {
			meters = append(meters, l.asking(t, m.workers, m.size))
		}
		for _, m := range meters { // what an engine keeps is decided meanwhile
			if r.err == nil && m.run(ctx, r.Duration) == nil { // an error comes again
				m.reset()
			}
		}
		r.measure(ctx, meters...)
	}
}

// asking returns the meter of calls with new questions.
func (l *LargerThanMemory) asking(t Target, workers, size int) *meter {
	f := Figure{Target: t.Name(), Workload: l.Name(), Measure: "check", Workers: workers, PerCall: size}
	if size > 1 {
		f.Measure = "batch"
	}
	m := newMeter(f, func(worker int) func(context.Context) error {
		draw := l.draw.Questioner(7, uint64(worker))
		return func(ctx context.Context) error {
			questions := []Question{draw.Next()}
			if size > 1 {
				questions = draw.Batch(size)
			}
			return ask(ctx, t.Prepare(questions), questions)
		}
	})
	if p, ok := t.(*InProcess); ok {
		m.reads = func() int64 { return p.Engine.Stats().ColdReads }
	}
	return m
}
