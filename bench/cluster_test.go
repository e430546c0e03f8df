package bench

import (
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"stonetown/internal/pgtest"
)

// A cluster answers rightly in each deployment, and with read leases from memory.
func TestCluster(t *testing.T) {
	binary := filepath.Join(t.TempDir(), "stonetown")
	if out, err := exec.CommandContext(t.Context(), "go", "build", "-o", binary, "stonetown/cmd/stonetown").CombinedOutput(); err != nil {
		t.Fatalf("build: %v: %s", err, out)
	}
	c := Cluster{
		Binary: binary, Dir: t.TempDir(), PostgresURL: pgtest.URL(t), Processes: []int{2}, Latencies: []time.Duration{2 * time.Millisecond},
		Tenants: 4, Writes: 50, Duration: 300 * time.Millisecond, Progress: t.Logf, // about 30 writes to each deployment
	}
	rows, err := c.Run(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	var table strings.Builder
	if err := c.WriteTable(&table, rows); err != nil {
		t.Fatal(err)
	}
	t.Log(table.String())
	if len(rows) != 4 || ClusterWrong(rows) > 0 {
		t.Errorf("%d rows with %d wrong answers", len(rows), ClusterWrong(rows))
	}
	for _, r := range rows {
		if r.Alone.Calls == 0 || r.Many.Calls == 0 || r.Failed > 0 || r.Write == 0 || r.Processor == 0 {
			t.Errorf("%+v", r)
		}
	}
	if without, with := rows[1].RoundTrips, rows[2].RoundTrips; with >= without {
		t.Errorf("%.0f round trips for 1,000 checks, and %.0f with leases", without, with)
	}
	if lines := strings.Count(table.String(), "\n"); lines != 2+len(rows) {
		t.Errorf("%d lines", lines)
	}
	for name, c := range map[string]Cluster{
		"no server":  {Tenants: 2},
		"one tenant": {PostgresURL: "postgres:///", Tenants: 1},
		"no fault":   {PostgresURL: "postgres:///", Tenants: 2, Faults: []string{"flood"}},
	} {
		if _, err := c.Run(t.Context()); err == nil {
			t.Errorf("%s: no error", name)
		}
	}
}

// Few hosts move when a process is added, and all processes get some.
func TestRendezvous(t *testing.T) {
	moved, at := 0, map[int]int{}
	for i := range 1000 {
		host := strings.Repeat("t", i)
		before, after := rendezvous(host, 3), rendezvous(host, 4)
		at[before]++
		if before != after {
			moved++
			if after != 3 {
				t.Errorf("a host moved from %d to %d", before, after)
			}
		}
	}
	if moved < 150 || moved > 350 || min(at[0], at[1], at[2]) < 230 {
		t.Errorf("%d of 1000 hosts moved, %v", moved, at)
	}
}
