package fair

import (
	"runtime"
	"testing"
)

// Threads for heavy work must not make more heavy work run at the same time.
func TestAddProcessors(t *testing.T) {
	defer runtime.GOMAXPROCS(processors)
	places := HeavyPlaces()
	AddProcessors(2)
	if got, want := runtime.GOMAXPROCS(0), processors+2*places+more; got != want {
		t.Errorf("GOMAXPROCS is %d, want %d", got, want)
	}
	if HeavyPlaces() != places {
		t.Errorf("%d places after, %d before", HeavyPlaces(), places)
	}
}
