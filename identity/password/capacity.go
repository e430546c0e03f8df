package password

import (
	"context"
	"time"

	"stonetown/internal/fair"
)

// capacity admits at most as many hashes at a time as half of the processors, so that
// checks always find a free one. The queue is short: a request that would wait longer than
// Patience is refused at once, before it has consumed anything.
var capacity = fair.NewGate("passwords to verify",
	fair.Limits{Service: int64(fair.HeavyPlaces())},
	fair.Queue{Waiting: 2000, WaitingOfTenant: 100, WaitingOfCaller: 32, Patience: 4 * time.Second})

type reservedKey struct{}

// Reserve waits for capacity to hash passwords and then calls work with a context in which
// passwords are hashed and verified without further waiting. work is also the place for
// effects that a refused request must not have, such as counting an attempt; it must not
// contain other slow operations. While the request waits, its place among the requests in
// progress is free ([fair.Aside]).
//
// Reserve fails with [*fair.ExhaustedError] if the queue is full, or as work does.
func Reserve(ctx context.Context, work func(context.Context) error) error {
	if ctx.Value(reservedKey{}) != nil {
		return work(ctx)
	}
	return fair.Aside(ctx, func() error {
		place, err := fair.From(ctx).Wait(ctx, capacity)
		if err != nil {
			return err
		}
		defer place.Leave()
		return work(context.WithValue(ctx, reservedKey{}, true))
	})
}
