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
		took, answeredAt time.Duration
	}{
		{"a", 20 * ms, 500 * ms},
		{"a", 250 * ms, 500 * ms},
		{"a", 600 * ms, 1000 * ms},
		{"a", 20 * ms, 1000 * ms}, // as the slowest one
		{"b", 20 * ms, 500 * ms},
		{"b", 9000 * ms, 2000 * ms}, // at once
		{"b", 20 * ms, 2000 * ms},
	} {
		if got := step.took + p.wait(step.tenant, step.took); got != step.answeredAt {
			t.Errorf("%s, %v: answered at %v, want %v", step.tenant, step.took, got, step.answeredAt)
		}
	}
	synctest.Test(t, func(t *testing.T) {
		began := time.Now()
		if err := p.putOff(t.Context(), "c", 100*ms); err != nil || time.Since(began) != 400*ms {
			t.Errorf("put off by %v, %v", time.Since(began), err)
		}
	})
}
