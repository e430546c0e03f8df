package keys

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"stonetown/internal/eventlog"
	"stonetown/internal/rotation"
	"stonetown/internal/sqldb"
	"stonetown/oauth/protocol"
	"stonetown/oauth/revocation"
)

// State is the state of a signing key.
type State string

// The states, in their order. In an emergency a key skips those in between.
const (
	Next    State = "next"    // published, and does not sign yet
	Active  State = "active"  // signs; there is one of each algorithm
	Retired State = "retired" // no longer signs; its tokens are valid
	Removed State = "removed" // its tokens are refused, and the private key is deleted
)

const (
	// publishedFor is how long a key is published before it signs: longer than clients cache a key
	// set, which is up to a day, and than processes cache the keys.
	publishedFor = 24*time.Hour + keyringFor

	// signsFor is how long a key signs.
	signsFor = 90 * 24 * time.Hour

	// retiredFor is how long a retired key is published: until the last token that it signed has
	// expired, and an hour. The hour covers the minute in which other processes may still sign
	// with it, and the difference of clocks. So a key is retired without coordination.
	retiredFor = protocol.MaxAccessTokenTTL + time.Hour

	// RecordedFor is how long a removed key is listed.
	RecordedFor = 90 * 24 * time.Hour
)

// Key is a signing key of a tenant. The time of a state that the key has not entered is zero.
type Key struct {
	KID         string // RFC 7638 thumbprint
	Alg         Alg
	State       State
	CreatedAt   time.Time // and published
	ActivatedAt time.Time
	RetiredAt   time.Time
	RemovedAt   time.Time

	// sealed is the private key, as PKCS #8, sealed for (tenant, KID). The public key is derived
	// from it, so that write access to the database does not suffice to plant a key.
	sealed []byte
}

// enter returns the key in another state.
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

// step is a state that a key enters. A step without kid makes a new key.
type step struct {
	kid string
	alg Alg
	to  State
}

// plan returns the steps that the keys of a tenant take at a time, in order. It depends on
// nothing else.
type plan func(keys []Key, now time.Time) []step

// due is the plan of the periodic rotation.
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

// succeed is the plan of a requested rotation: every active key gets a successor now, unless
// it has one. The following steps are due in their time.
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

// replace is the plan of an emergency: an intruder who has one key may have all, so all are
// removed, also those that are next, and new ones sign.
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

// advance takes the steps of a plan for the keys of a tenant, and returns the keys afterwards. New
// keys are made before the transaction, because an RSA key takes long.
func (k *Service) advance(ctx context.Context, tenantID string, by plan, emergency bool) ([]Key, error) {
	keys, changed, err := rotation.Rows[Key]{
		DB: k.db, Clock: k.clock,
		Read: func(ctx context.Context, from rotation.Querier) ([]Key, error) {
			return selectKeys(ctx, from, tenantID)
		},
		Plan: func(keys []Key, now time.Time) ([]Key, error) { return k.take(tenantID, keys, by(keys, now), now) },
		Write: func(b *sqldb.Batch, before, changed []Key, now time.Time) {
			for _, key := range changed {
				putKey(b, tenantID, key)
				if key.State == Removed {
					k.revoked.Set(b, revocation.Item{TenantID: tenantID, Kind: revocation.Key, ID: key.KID}, now.Add(retiredFor))
				}
			}
			if len(before) > 0 { // the first keys of a tenant are no rotation
				eventlog.Append(b, tenantID, rotated(ctx, emergency, changed))
			}
		},
	}.Advance(ctx)
	if changed {
		k.cache.Remove(tenantID) // other processes follow within keyringFor, or at once if keys are removed
	}
	return keys, err
}

// take returns the keys that steps change, as they are afterwards.
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

// List lists the keys of a tenant, including those that were removed in the last 90 days.
func (s *Service) List(ctx context.Context, tenantID string) ([]Key, error) {
	return selectKeys(ctx, s.db, tenantID)
}

// Rotate publishes successors of a tenant's keys, unless there are some. They sign when they
// have been published for a day. In an emergency new keys sign at once and all others are
// removed: when Rotate returns, no process accepts a token that they signed. It returns the
// keys as they are then.
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

// RotateDue takes the steps that are due, for all tenants.
func (s *Service) RotateDue(ctx context.Context) error {
	tenants, err := selectLivingKeys(ctx, s.db)
	if err != nil {
		return err
	}
	var failed []error
	for tenantID, keys := range tenants { // in random order, so that processes share the work
		if len(due(keys, s.clock())) == 0 {
			continue
		}
		if _, err := s.advance(ctx, tenantID, due, false); err != nil {
			failed = append(failed, fmt.Errorf("rotate signing keys of tenant %s: %w", tenantID, err))
		}
	}
	return errors.Join(failed...)
}
