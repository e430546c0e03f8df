package jobs

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

func TestLoop(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		var log bytes.Buffer
		wake := NewSignal()
		l := Loop{Name: "count", Every: time.Minute, Wake: wake, Logger: slog.New(slog.NewTextHandler(&log, nil))}
		start := time.Now()
		var at []time.Duration
		go l.Run(ctx, func(context.Context) (more bool, err error) {
			at = append(at, time.Since(start))
			switch len(at) {
			case 1:
				return true, nil // there is more
			case 3:
				return true, errors.New("database is down") // wait in spite of more
			}
			return false, nil
		})
		time.Sleep(90 * time.Second)
		wake.Send() // ends the pause
		wake.Send() // waits for the next one
		wake.Send() // dropped
		synctest.Wait()
		time.Sleep(time.Minute)
		cancel()
		synctest.Wait()
		time.Sleep(time.Hour)
		want := []time.Duration{0, 0, time.Minute, 90 * time.Second, 90 * time.Second, 2 * time.Minute}
		if !slices.Equal(at, want) {
			t.Errorf("steps at %v, want %v", at, want)
		}
		if n := strings.Count(log.String(), "count"); n != 1 || !strings.Contains(log.String(), "database is down") {
			t.Errorf("log: %s", log.String())
		}
	})
}

// An error that the end of the loop has caused is not logged.
func TestLoopEndsQuietly(t *testing.T) {
	var log bytes.Buffer
	ctx, cancel := context.WithCancel(t.Context())
	Loop{Name: "count", Every: time.Hour, Logger: slog.New(slog.NewTextHandler(&log, nil))}.Run(ctx, Once(func(ctx context.Context) error {
		cancel()
		return ctx.Err()
	}))
	if log.Len() > 0 {
		t.Errorf("log: %s", log.String())
	}
}
