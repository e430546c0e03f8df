package document

import "time"

// OrNull is nil for no text, which is written as null.
func OrNull(text string) *string {
	if text == "" {
		return nil
	}
	return &text
}

// TimeOrNull is nil for the zero time, which is written as null.
func TimeOrNull(t time.Time) *Timestamp {
	if t.IsZero() {
		return nil
	}
	return new(Timestamp(t))
}
