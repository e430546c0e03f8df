package delivery

import (
	"math/rand/v2"
	"net/http"
	"strconv"
	"strings"
	"time"
)

// delays are the pauses between attempts: the first one is the pause before the second attempt.
var delays = []time.Duration{time.Minute, 5 * time.Minute, 30 * time.Minute, 2 * time.Hour, 12 * time.Hour}

// MaxAttempts is the number of attempts of a delivery.
const MaxAttempts = 6

// maxRetryAfter bounds the pause that a receiver can ask for.
const maxRetryAfter = 24 * time.Hour

// pause returns the pause after the n-th failed attempt, from 1, which is the last but one at
// most: the delay of the schedule with a random deviation of up to 10 %, or the longer one that
// the receiver has asked for.
func pause(n int, asked time.Duration) time.Duration {
	delay := delays[n-1]
	return max(delay-delay/10+rand.N(delay/5+1), min(asked, maxRetryAfter))
}

// retryAfter returns the pause that a receiver asks for with a status 503 or 429 (RFC 9110
// §10.2.3), in seconds or as a date; 0 if it asks for none.
func retryAfter(status int, h http.Header, now time.Time) time.Duration {
	if status != http.StatusServiceUnavailable && status != http.StatusTooManyRequests {
		return 0
	}
	value := strings.TrimSpace(h.Get("Retry-After"))
	if value == "" {
		return 0
	}
	if strings.Trim(value, "0123456789") == "" {
		seconds, err := strconv.ParseInt(value, 10, 64)
		if err != nil || seconds > int64(maxRetryAfter/time.Second) { // too many digits
			return maxRetryAfter
		}
		return time.Duration(seconds) * time.Second
	}
	at, err := http.ParseTime(value)
	if err != nil {
		return 0
	}
	return min(max(0, at.Sub(now)), maxRetryAfter)
}
