package bench

import (
	"slices"
	"testing"
	"time"

	"stonetown/engine"
	"stonetown/tuplestore/memstore"
)

// All measurements of a workload are taken, and all answers are correct.
func TestRun(t *testing.T) {
	d := NewDocs()
	const inPart = "larger-than-memory, in part"
	for _, c := range []struct {
		name     string
		measures []string
	}{
		{inPart, []string{bulkLoad, "check", "check", "batch"}},
		{"exclusions", []string{bulkLoad, "check", "check", "batch", "batch of many subjects", "batch", "batch of many subjects"}},
		{"load", []string{bulkLoad}},
		{"writes", []string{bulkLoad, "write", "write", "write", writeExisting}},
		{"stalls", []string{
			bulkLoad, bulkLoad, "check, alone", "check, beside writes", "write, beside checks",
			"check, beside heavy requests", "list of 150,000, beside checks", "check of costly conditions, beside checks",
			"check, beside writes and heavy requests", "list of 150,000, beside checks and writes",
			"check of costly conditions, beside checks and writes", "write, beside checks and heavy requests",
		}},
		{"larger-than-memory", []string{bulkLoad, "check", "check", "batch"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			workloads := []Workload{&LargerThanMemory{d, d, 4, false}}
			if c.name != inPart {
				var err error
				if workloads, err = Choose(c.name); err != nil {
					t.Fatal(err)
				}
			}
			store := memstore.New(memstore.Config{})
			t.Cleanup(func() { store.Close() })
			p := newInProcess(t, store, engine.Config{})
			report, err := Run(t.Context(), Options{
				Workloads: workloads, InProcess: func() *InProcess { return p }, Duration: 200 * time.Millisecond, Progress: t.Logf,
			})
			if err != nil {
				t.Fatal(err)
			}
			var measures []string
			for _, f := range report.Figures {
				measures = append(measures, f.Measure)
				if f.Calls == 0 {
					t.Errorf("%s: no calls", f.Measure)
				}
				if part := c.name == inPart && f.Measure != bulkLoad; part != (f.Reads > 0) {
					t.Errorf("%s: %.0f reads for 1,000 checks", f.Measure, f.Reads)
				}
			}
			if !slices.Equal(measures, c.measures) {
				t.Errorf("measures %q, want %q", measures, c.measures)
			}
		})
	}

	if args, err := ServerArgs([]Workload{NewLargerThanMemory(d)}); err != nil || len(args) == 0 {
		t.Errorf("the server of larger-than-memory gets arguments %q, %v", args, err)
	}
	if _, err := ServerArgs([]Workload{d, NewLargerThanMemory(d)}); err == nil {
		t.Error("the server of docs gets little memory")
	}
}
