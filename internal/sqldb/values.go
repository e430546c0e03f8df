package sqldb

import "time"

// Micros returns an instant as it is stored: in microseconds since 1970; 0 for the zero time.
func Micros(t time.Time) int64 {
	if t.IsZero() {
		return 0
	}
	return t.UnixMicro()
}

// Instant is the inverse of [Micros]. It is in UTC.
func Instant(micros int64) time.Time {
	if micros == 0 {
		return time.Time{}
	}
	return time.UnixMicro(micros).UTC()
}

// Blob returns bytes as they are stored: not NULL.
func Blob(b []byte) []byte {
	if b == nil {
		return []byte{}
	}
	return b
}
