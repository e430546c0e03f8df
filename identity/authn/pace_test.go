package authn

import (
	"testing"
	"testing/synctest"
	"time"
)

func TestPaces(t *testing.T) {
	const ms = time.Millisecond
	p, err := newPaces(500 * ms)
	if err != nil {
		t.Fatal(err)
	}
	for _, step := range []struct {
		tenant           string
		took, responseAt time.Duration
	}{
		{"a", 20 * ms, 500 * ms},
		{"a", 250 * ms, 500 * ms},
		{"a", 600 * ms, 1000 * ms},
		{"a", 20 * ms, 1000 * ms}, // like the slowest verification
		{"b", 20 * ms, 500 * ms},
		{"b", 9000 * ms, 2000 * ms}, // the maximum delay has passed
		{"b", 20 * ms, 2000 * ms},
	} {
		if got := step.took + p.delay(step.tenant, step.took); got != step.responseAt {
			t.Errorf("%s, %v: response at %v, want %v", step.tenant, step.took, got, step.responseAt)
		}
	}
	synctest.Test(t, func(t *testing.T) {
		began := time.Now()
		if err := p.wait(t.Context(), "c", 100*ms); err != nil || time.Since(began) != 400*ms {
			t.Errorf("delayed by %v, %v", time.Since(began), err)
		}
	})
}
