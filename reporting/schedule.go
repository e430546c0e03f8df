package reporting

import "time"

// Interval is how often a report runs.
type Interval string

// The intervals. A week begins on Monday, a month on its first day.
const (
	Daily   Interval = "daily"
	Weekly  Interval = "weekly"
	Monthly Interval = "monthly"
)

// Schedule is when a report runs without a request, and who gets a mail about it.
type Schedule struct {
	Interval   Interval `json:"interval"`
	Hour       int      `json:"hour"`       // in UTC, from 0 to 23
	Recipients []string `json:"recipients"` // ids of users
}

// next returns the first instant of the schedule after another one.
func (s Schedule) next(after time.Time) time.Time {
	after = after.UTC()
	at := time.Date(after.Year(), after.Month(), after.Day(), s.Hour, 0, 0, 0, time.UTC)
	for !at.After(after) || !s.on(at) {
		at = at.AddDate(0, 0, 1)
	}
	return at
}

// on reports whether the schedule has a run on a day.
func (s Schedule) on(day time.Time) bool {
	switch s.Interval {
	case Weekly:
		return day.Weekday() == time.Monday
	case Monthly:
		return day.Day() == 1
	}
	return true
}
