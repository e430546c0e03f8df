package bench

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync/atomic"
	"time"

	"stonetown/engine"
	"stonetown/engine/audit"
)

const (
	// writeRounds is how often the writes are measured in each way, alternately.
	writeRounds = 72
	// settling is the pause before each measurement, in which webhooks that were started read their
	// state. Without webhooks it is as long, because writes after a pause are slower.
	settling = 20 * time.Millisecond
)

// writes measures what events, and webhooks without subscriptions, add to the writes of
// relations. The ways take turns in short rounds, and each round is compared with those beside
// it, so that other load of the machine affects all of them.
func (w Webhooks) writes(ctx context.Context, db database) (rows []WebhooksRow, err error) {
	h, err := openHooks(ctx, db)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, h.Close()) }()
	audited := audit.Engine{Engine: h.Engine}
	origin := engine.Origin{Actor: "bench"}
	if _, _, _, err := audited.PutType(ctx, h.Tenant, docType, origin); err != nil {
		return nil, err
	}
	var n atomic.Int64
	plain := func(ctx context.Context) error {
		_, err := h.Engine.Write(ctx, h.Tenant, engine.WriteRequest{Origin: origin, Ops: []engine.WriteOp{docViewer("d", n.Add(1))}})
		return err
	}
	withEvent := func(ctx context.Context) error {
		_, err := audited.WriteRelation(ctx, h.Tenant, docViewer("d", n.Add(1)), origin)
		return err
	}
	for _, workers := range []int{1, remoteWorkers} {
		measure := func(write func(context.Context) error) (float64, error) {
			m := newMeter(Figure{Workers: workers, PerCall: 1}, func(int) func(context.Context) error { return write })
			time.Sleep(settling)
			err := m.run(ctx, w.Duration/20)
			return m.result().PerSecond, err
		}
		var alone, events, webhooks []float64 // per second, by round
		ways := []func() error{
			func() error { return add(&alone, measure, plain) },
			func() error { return add(&events, measure, withEvent) },
			func() error {
				stop := background(h.Webhooks.Run)
				defer stop()
				return add(&webhooks, measure, withEvent)
			},
		}
		for range writeRounds {
			for _, way := range ways {
				if err := way(); err != nil {
					return nil, err
				}
			}
			slices.Reverse(ways) // so that none always follows another
		}
		ofLog, ofWebhooks, ofBoth := added(alone, events), added(events, webhooks), added(alone, webhooks)
		at := fmt.Sprintf("relation writes, %d at once", workers)
		rows = append(rows,
			WebhooksRow{Measure: at + ": the event log adds", Figure: fmt.Sprintf("%s (%.0f/s without, %.0f/s with)", ofLog, median(alone), median(events))},
			WebhooksRow{Measure: at + ": webhooks add", Figure: ofWebhooks.String()},
			WebhooksRow{Measure: at + ": the event log and webhooks add", Figure: fmt.Sprintf("%s (%.0f/s)", ofBoth, median(webhooks)), Bar: "5 %", Met: ofBoth.median < 5},
		)
	}
	return rows, nil
}

// add measures a way to write, and adds the rate to the list.
func add(rates *[]float64, measure func(func(context.Context) error) (float64, error), write func(context.Context) error) error {
	rate, err := measure(write)
	*rates = append(*rates, rate)
	return err
}

// addition is the time that something adds to a write, in percent: the median of rounds, and the
// range of the middle half of them.
type addition struct{ median, low, high float64 }

func (a addition) String() string {
	return fmt.Sprintf("%+.1f %% (half of the rounds %+.1f to %+.1f)", a.median, a.low, a.high)
}

// added compares the rates of writes of the same rounds.
func added(without, with []float64) addition {
	var percent []float64
	for i := range without {
		percent = append(percent, 100*(without[i]/with[i]-1))
	}
	slices.Sort(percent)
	return addition{median(percent), percent[len(percent)/4], percent[len(percent)*3/4]}
}

func median(values []float64) float64 {
	sorted := slices.Sorted(slices.Values(values))
	return (sorted[(len(sorted)-1)/2] + sorted[len(sorted)/2]) / 2
}
