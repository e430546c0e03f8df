package keys

import (
	"context"
	"errors"
	"fmt"
	"reflect"
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

	// announcedFor is how long processes are told that a first key exists: longer than keyringFor,
	// and than their clocks differ.
	announcedFor = time.Hour

	// rotatedAtOnce is how many keys that are due are read at once.
	rotatedAtOnce = 100
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

	dueAt time.Time // as stored; see dueAt

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

// dueAt returns the time of the next step of one of the keys of a tenant. That of a removed key is
// its deletion.
func dueAt(keys []Key, k Key) time.Time {
	switch k.State {
	case Next:
		return k.CreatedAt.Add(publishedFor)
	case Active:
		if next := find(keys, k.Alg, Next); next != nil {
			return dueAt(keys, *next)
		}
		return k.ActivatedAt.Add(signsFor - publishedFor)
	case Retired:
		return k.RetiredAt.Add(retiredFor)
	default:
		return k.RemovedAt.Add(RecordedFor)
	}
}

// due is the plan of the periodic rotation.
func due(keys []Key, now time.Time) (steps []step) {
	steps = missing(used(keys)...)(keys, now)
	for _, k := range keys {
		active, next := find(keys, k.Alg, Active), find(keys, k.Alg, Next)
		switch {
		case now.Before(dueAt(keys, k)):
		case k.State == Active && next == nil:
			steps = append(steps, step{"", k.Alg, Next})
		case k.State == Next && active != nil:
			steps = append(steps, step{active.KID, k.Alg, Retired}, step{k.KID, k.Alg, Active})
		case k.State == Retired:
			steps = append(steps, step{k.KID, k.Alg, Removed})
		}
	}
	return steps
}

// used returns the algorithms of a tenant: the default, and those of which it has had a key.
func used(keys []Key) (algs []Alg) {
	for _, alg := range Algs {
		if alg == ES256 || slices.ContainsFunc(keys, func(k Key) bool { return k.Alg == alg }) {
			algs = append(algs, alg)
		}
	}
	return algs
}

// missing is the plan that makes the active keys of algorithms that have none.
func missing(algs ...Alg) plan {
	return func(keys []Key, _ time.Time) (steps []step) {
		for _, alg := range algs {
			if find(keys, alg, Active) == nil {
				steps = append(steps, step{"", alg, Active})
			}
		}
		return steps
	}
}

// succeed is the plan of a requested rotation: every active key gets a successor now, unless
// it has one. The following steps are due in their time.
func succeed(keys []Key, _ time.Time) (steps []step) {
	for _, alg := range used(keys) {
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
	for _, alg := range used(keys) {
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
			}
			entered := entered(before, changed)
			for _, key := range entered {
				if key.State == Removed {
					k.revoked.Set(b, revocation.Item{TenantID: tenantID, Kind: revocation.Key, ID: key.KID}, now.Add(retiredFor))
				}
			}
			// The first key of an algorithm is no rotation.
			later := slices.DeleteFunc(entered, func(key Key) bool {
				first := !slices.ContainsFunc(before, func(k Key) bool { return k.Alg == key.Alg })
				if first && len(before) > 0 { // otherwise no process has keys of the tenant
					k.revoked.Set(b, firstOf(tenantID, key.Alg), now.Add(announcedFor))
				}
				return first
			})
			if len(later) > 0 {
				eventlog.Append(b, tenantID, rotated(ctx, emergency, later))
			}
		},
	}.Advance(ctx)
	if changed {
		k.cache.Remove(tenantID) // other processes follow within keyringFor, or at once if keys are removed
	}
	return keys, err
}

// take returns the keys that differ after some steps, and those whose time in the row is not that
// of their next step.
func (k *Service) take(tenantID string, keys []Key, steps []step, now time.Time) (changed []Key, err error) {
	after := slices.Clone(keys)
	for _, s := range steps {
		i := slices.IndexFunc(after, func(k Key) bool { return k.KID == s.kid })
		if s.kid == "" {
			key, err := generate(k.sealer, tenantID, s.alg, now)
			if err != nil {
				return nil, fmt.Errorf("make %s key: %w", s.alg, err)
			}
			after, i = append(after, key), len(after)
		}
		after[i] = after[i].enter(s.to, now)
	}
	for i, key := range after {
		key.dueAt = dueAt(after, key)
		if i >= len(keys) || !reflect.DeepEqual(key, keys[i]) {
			changed = append(changed, key)
		}
	}
	return changed, nil
}

// entered returns the changed keys that are in another state than before, or new.
func entered(before, changed []Key) []Key {
	return slices.DeleteFunc(slices.Clone(changed), func(key Key) bool {
		return slices.ContainsFunc(before, func(k Key) bool { return k.KID == key.KID && k.State == key.State })
	})
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

// RotateDue takes the steps that are due, for all tenants. Other tenants cost nothing.
func (s *Service) RotateDue(ctx context.Context) error {
	var failed []error
	now := s.clock()
	for last := (dueKey{}); ; {
		page, err := selectDue(ctx, s.db, now, last)
		if err != nil {
			return errors.Join(append(failed, err)...)
		}
		tenants := map[string]bool{}
		for _, key := range page {
			tenants[key.tenantID], last = true, key
		}
		for tenantID := range tenants { // in random order, so that processes share the work
			if _, err := s.advance(ctx, tenantID, due, false); err != nil {
				failed = append(failed, fmt.Errorf("rotate signing keys of tenant %s: %w", tenantID, err))
			}
		}
		if len(page) < rotatedAtOnce {
			return errors.Join(failed...)
		}
	}
}
