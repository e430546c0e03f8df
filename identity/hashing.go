package identity

import (
	"context"
	"time"

	"stonetown/internal/fair"
)

// Hashing a password takes milliseconds and megabytes on purpose. At most half of the
// processors do it at the same time, so that checks always find one, and whoever waits
// has its turn by tenant, then by caller. The queue is short: a sign-in that would
// have to wait for seconds is refused at once, and consumes nothing.
var hashing = fair.NewGate("passwords to verify",
	fair.Limits{Service: int64(fair.HeavyPlaces())},
	fair.Queue{Waiting: 2000, WaitingOfTenant: 100, WaitingOfCaller: 32, Patience: 4 * time.Second})

type hashingKey struct{}

// Hashing waits for its turn to hash passwords and then does work, in whose context
// passwords are hashed and verified without another wait. What must not be consumed if
// there is no turn belongs into work; what takes long does not. The request's place
// among those that are worked on is free meanwhile ([fair.Aside]).
//
// It fails with [*fair.ExhaustedError] if too many wait, or as work does.
func Hashing(ctx context.Context, work func(context.Context) error) error {
	if ctx.Value(hashingKey{}) != nil {
		return work(ctx)
	}
	return fair.Aside(ctx, func() error {
		place, err := fair.From(ctx).Wait(ctx, hashing)
		if err != nil {
			return err
		}
		defer place.Leave()
		return work(context.WithValue(ctx, hashingKey{}, true))
	})
}
