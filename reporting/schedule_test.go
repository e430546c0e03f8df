package reporting

import (
	"testing"
	"time"
)

func TestNext(t *testing.T) {
	at := func(text string) time.Time {
		parsed, err := time.Parse(time.RFC3339, text)
		if err != nil {
			t.Fatal(err)
		}
		return parsed
	}
	for _, test := range []struct {
		interval    Interval
		hour        int
		after, want string
	}{
		{Daily, 6, "2026-11-25T05:59:59Z", "2026-11-25T06:00:00Z"},
		{Daily, 6, "2026-11-25T06:00:00Z", "2026-11-26T06:00:00Z"},
		{Daily, 0, "2026-12-31T23:00:00Z", "2027-01-01T00:00:00Z"},
		{Daily, 23, "2026-11-25T23:30:00-05:00", "2026-11-26T23:00:00Z"}, // a zone changes nothing
		{Weekly, 6, "2026-11-25T12:00:00Z", "2026-11-30T06:00:00Z"},      // a Monday
		{Weekly, 6, "2026-11-30T06:00:00Z", "2026-12-07T06:00:00Z"},
		{Monthly, 6, "2026-11-01T05:00:00Z", "2026-11-01T06:00:00Z"},
		{Monthly, 6, "2026-11-30T12:00:00Z", "2026-12-01T06:00:00Z"},
		{Monthly, 6, "2027-02-01T06:00:00Z", "2027-03-01T06:00:00Z"},
	} {
		if got := (Schedule{Interval: test.interval, Hour: test.hour}).next(at(test.after)); !got.Equal(at(test.want)) {
			t.Errorf("%s at %d after %s: %s, want %s", test.interval, test.hour, test.after, got, test.want)
		}
	}
}
