package main

import (
	"os"
	"runtime"
	"testing"
)

// The garbage collector of a server starts when the size of the ballast has been allocated,
// unless the environment sets another value.
func TestTune(t *testing.T) {
	const before = 1 // other tests of this process may have raised it
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(before))
	for _, name := range []string{"GOGC", "GOMEMLIMIT", "GOMAXPROCS"} {
		if value, set := os.LookupEnv(name); set {
			os.Unsetenv(name)
			defer os.Setenv(name, value)
		}
	}
	ballast := tune()
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	runtime.KeepAlive(ballast)
	if m.NextGC < 2*ballastSize {
		t.Errorf("the next collection starts at a heap of %d MiB", m.NextGC>>20)
	}
	if runtime.GOMAXPROCS(0) <= before {
		t.Errorf("GOMAXPROCS is %d, and was %d", runtime.GOMAXPROCS(0), before)
	}

	runtime.GOMAXPROCS(before)
	t.Setenv("GOGC", "100")
	t.Setenv("GOMAXPROCS", "1")
	if ballast := tune(); ballast != nil || runtime.GOMAXPROCS(0) != before {
		t.Errorf("with GOGC and GOMAXPROCS set: %d bytes of ballast, GOMAXPROCS %d", len(ballast), runtime.GOMAXPROCS(0))
	}
}
