package keys

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"time"

	"stonetown/internal/eventlog"
	"stonetown/internal/sqldb"
	"stonetown/oauth/protocol"
	"stonetown/oauth/revocation"
)

// State is where in its life a signing key is.
type State string

// The states, in the order in which a key passes them. In an emergency it skips those
// between.
const (
	Next    State = "next"    // published, and does not sign yet
	Active  State = "active"  // signs; there is one of each algorithm
	Retired State = "retired" // signs no longer; what it has signed is good
	Removed State = "removed" // what it has signed is refused, and its private half is gone
)

const (
	// publishedFor is how long a key is published before it signs, so that everybody has it
	// by then who keeps a key set for up to a day; and until all processes publish it.
	publishedFor = 24*time.Hour + keyringFor

	// signsFor is how long a key signs.
	signsFor = 90 * 24 * time.Hour

	// retiredFor is how long a retired key is published: until the last token that it has
	// signed has expired, and an hour. In that hour fall the minute for which other processes
	// may have signed with it still, as they know the keys of a minute ago, and the
	// difference of clocks. So nobody has to wait for anybody when a key is retired.
	retiredFor = protocol.MaxAccessTokenTTL + time.Hour

	// RecordedFor is how long a key that was removed is listed.
	RecordedFor = 90 * 24 * time.Hour
)

// Key is a key that a tenant's tokens are signed with. Times are zero if what they
// are of did not happen.
type Key struct {
	KID         string // RFC 7638 thumbprint
	Alg         Alg
	State       State
	CreatedAt   time.Time // and published
	ActivatedAt time.Time
	RetiredAt   time.Time
	RemovedAt   time.Time

	// sealed is the private half, as PKCS #8, for (tenant, KID). The public half is derived
	// from it, so that whoever can only write to the database cannot plant a key.
	sealed []byte
}

// enter is the key in another state.
func (k Key) enter(state State, now time.Time) Key {
	k.State = state
	switch state {
	case Active:
		k.ActivatedAt = now
	case Retired:
		k.RetiredAt = now
	case Removed:
		k.RemovedAt, k.sealed = now, []byte{}
	}
	return k
}

// step is a state that a key enters: one that is there, or, without an id, a new one.
type step struct {
	kid string
	alg Alg
	to  State
}

// plan says which steps the keys of a tenant take, in this order, at a time. It depends on
// nothing else.
type plan func(keys []Key, now time.Time) []step

// due is the plan of the life that keys have by themselves.
func due(keys []Key, now time.Time) (steps []step) {
	for _, alg := range Algs {
		active, next := find(keys, alg, Active), find(keys, alg, Next)
		switch {
		case active == nil:
			steps = append(steps, step{"", alg, Active})
		case next == nil && !now.Before(active.ActivatedAt.Add(signsFor-publishedFor)):
			steps = append(steps, step{"", alg, Next})
		case next != nil && !now.Before(next.CreatedAt.Add(publishedFor)):
			steps = append(steps, step{active.KID, alg, Retired}, step{next.KID, alg, Active})
		}
	}
	for _, k := range keys {
		if k.State == Retired && !now.Before(k.RetiredAt.Add(retiredFor)) {
			steps = append(steps, step{k.KID, k.Alg, Removed})
		}
	}
	return steps
}

// succeed is the plan of a rotation that somebody asks for: every active key gets a
// successor now, unless it has one. The rest is due in its time.
func succeed(keys []Key, _ time.Time) (steps []step) {
	for _, alg := range Algs {
		switch {
		case find(keys, alg, Active) == nil:
			steps = append(steps, step{"", alg, Active})
		case find(keys, alg, Next) == nil:
			steps = append(steps, step{"", alg, Next})
		}
	}
	return steps
}

// replace is the plan of an emergency: whoever has got at one key may have got at all, so
// they are removed, also those that are next, and new ones sign.
func replace(keys []Key, _ time.Time) (steps []step) {
	for _, k := range keys {
		if k.State != Removed {
			steps = append(steps, step{k.KID, k.Alg, Removed})
		}
	}
	for _, alg := range Algs {
		steps = append(steps, step{"", alg, Active})
	}
	return steps
}

func find(keys []Key, alg Alg, state State) *Key {
	i := slices.IndexFunc(keys, func(k Key) bool { return k.Alg == alg && k.State == state })
	if i < 0 {
		return nil
	}
	return &keys[i]
}

// errKeysChanged: another process has changed a tenant's keys in between.
var errKeysChanged = errors.New("the signing keys were changed concurrently")

// advance lets the keys of a tenant take the steps of a plan, and returns them as they are
// then. Any number of processes may do so at once: the steps are written if the keys are
// still those that they were planned for, and else planned anew. New keys are made before
// the transaction, for which an RSA key would be a long time.
func (k *Service) advance(ctx context.Context, tenantID string, by plan, emergency bool) ([]Key, error) {
	for {
		before, err := selectKeys(ctx, k.db, tenantID)
		if err != nil {
			return nil, err
		}
		now := k.clock().UTC().Truncate(time.Microsecond)
		steps := by(before, now)
		if len(steps) == 0 {
			return before, nil
		}
		changed, err := k.take(tenantID, before, steps, now)
		if err != nil {
			return nil, err
		}
		err = k.db.Tx(ctx, func(tx *sqldb.Tx) error {
			again, err := selectKeys(ctx, tx, tenantID)
			if err != nil {
				return err
			}
			if !reflect.DeepEqual(before, again) {
				return errKeysChanged
			}
			var b sqldb.Batch
			for _, key := range changed {
				putKey(&b, tenantID, key)
				if key.State == Removed {
					k.revoked.Set(&b, revocation.Item{TenantID: tenantID, Kind: revocation.Key, ID: key.KID}, now.Add(retiredFor))
				}
			}
			if len(before) > 0 { // a tenant's first keys replace none
				eventlog.Append(&b, tenantID, rotated(ctx, emergency, changed))
			}
			return tx.Send(ctx, &b)
		})
		switch {
		case err == nil:
			k.cache.Remove(tenantID) // other processes follow within keyringFor, or at once where keys are removed
			return selectKeys(ctx, k.db, tenantID)
		case !errors.Is(err, errKeysChanged) && !sqldb.IsUniqueViolation(err):
			return nil, err
		}
	}
}

// take returns the keys that steps change, as they are after them.
func (k *Service) take(tenantID string, keys []Key, steps []step, now time.Time) (changed []Key, err error) {
	for _, s := range steps {
		var key Key
		if s.kid == "" {
			if key, err = generate(k.sealer, tenantID, s.alg, now); err != nil {
				return nil, fmt.Errorf("make %s key: %w", s.alg, err)
			}
		} else {
			key = keys[slices.IndexFunc(keys, func(k Key) bool { return k.KID == s.kid })]
		}
		changed = append(changed, key.enter(s.to, now))
	}
	return changed, nil
}

// List lists the keys of a tenant, also those removed in the last 90 days.
func (s *Service) List(ctx context.Context, tenantID string) ([]Key, error) {
	return selectKeys(ctx, s.db, tenantID)
}

// Rotate publishes successors of a tenant's keys, unless there are some, which
// sign when they have been published for a day ([Service.Run]). In an emergency new keys
// sign at once and all others are removed: when it returns, no process accepts a token that
// they have signed. It returns the keys as they are then.
func (s *Service) Rotate(ctx context.Context, tenantID string, emergency bool) ([]Key, error) {
	by := succeed
	if emergency {
		by = replace
	}
	keys, err := s.advance(ctx, tenantID, by, emergency)
	if err != nil {
		return nil, fmt.Errorf("rotate signing keys of tenant %s: %w", tenantID, err)
	}
	if emergency {
		s.revoked.Settle(ctx)
	}
	return keys, nil
}

// RotateDue lets all keys take the steps that are due.
func (s *Service) RotateDue(ctx context.Context) error {
	tenants, err := selectLivingKeys(ctx, s.db)
	if err != nil {
		return err
	}
	var failed []error
	for tenantID, keys := range tenants { // in no order, so that several processes share the work
		if len(due(keys, s.clock())) == 0 {
			continue
		}
		if _, err := s.advance(ctx, tenantID, due, false); err != nil {
			failed = append(failed, fmt.Errorf("rotate signing keys of tenant %s: %w", tenantID, err))
		}
	}
	return errors.Join(failed...)
}

// asProduct is the context of changes that the product makes without a caller.
func asProduct(ctx context.Context) context.Context {
	return eventlog.WithOrigin(ctx, func() eventlog.Origin { return eventlog.Origin{} })
}
