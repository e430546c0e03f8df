package sqldb

import (
	"testing"
	"time"
)

func TestInstant(t *testing.T) {
	for micros, at := range map[int64]time.Time{
		0:                     {},
		1:                     time.Date(1970, 1, 1, 0, 0, 0, 1000, time.UTC),
		-1:                    time.Date(1969, 12, 31, 23, 59, 59, 999_999_000, time.UTC),
		1_795_000_000_123_456: time.Date(2026, 11, 18, 11, 6, 40, 123_456_000, time.UTC),
	} {
		if got := Micros(at); got != micros {
			t.Errorf("Micros(%v) = %d, want %d", at, got, micros)
		}
		if got := Instant(micros); got != at {
			t.Errorf("Instant(%d) = %v, want %v", micros, got, at)
		}
	}
	in := time.Date(2026, 1, 1, 2, 0, 0, 1, time.FixedZone("", 3600))
	if got := Instant(Micros(in)); got != in.UTC().Truncate(time.Microsecond) {
		t.Errorf("%v is read as %v", in, got)
	}
}
