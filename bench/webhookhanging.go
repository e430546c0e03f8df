package bench

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"time"

	"stonetown/internal/eventlog"
)

const (
	receivers    = 100
	hangingRate  = 4 // events per second, each to all receivers
	hangingParts = 4 // measurements with, and as many without
)

// hanging measures the latencies of 99 receivers while one more hangs, and while it does not.
func (w Webhooks) hanging(ctx context.Context, db database) (rows []WebhooksRow, err error) {
	h, err := openHooks(ctx, db)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, h.Close()) }()
	defer background(h.Run)()
	all := newArrivals()
	var bad *receiver
	for i := range receivers {
		arrived := all.add
		if i == 0 {
			arrived = func(time.Time, *http.Request) {}
		}
		v, err := receive(arrived)
		if err != nil {
			return nil, err
		}
		defer v.Close()
		if i == 0 {
			bad = v
		}
		if err := h.subscribe(ctx, v.URL, eventlog.UserUpdated); err != nil {
			return nil, err
		}
	}
	measure := func(hangs bool, into latencies) (time.Duration, error) {
		bad.hangs.Store(hangs)
		part, _, err := h.latencies(ctx, all, receivers-1, hangingRate, 2*w.Duration)
		if err != nil {
			return 0, fmt.Errorf("%w; attempts by result: %v", err, h.Webhooks.Stats().Attempts)
		}
		into.h.Merge(part.h)
		return part.at(99), nil
	}
	if _, err := measure(false, newLatencies()); err != nil { // opens the connections
		return nil, err
	}
	without, with := newLatencies(), newLatencies()
	for range hangingParts {
		quiet, err := measure(false, without)
		if err != nil {
			return nil, err
		}
		hung, err := measure(true, with)
		if err != nil {
			return nil, err
		}
		w.Progress("  p99 %s without, %s with", ms(quiet), ms(hung))
	}
	ratio := float64(with.at(99)) / float64(without.at(99))
	return []WebhooksRow{{
		Measure: fmt.Sprintf("commit to arrival, %d events/s to %d receivers, of which one hangs", hangingRate, receivers),
		Figure:  fmt.Sprintf("%s; without it %s; p99 %.2f x", with, without, ratio),
		Bar:     "1.2 x", Met: ratio < 1.2,
	}}, nil
}
