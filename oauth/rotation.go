package oauth

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"time"

	"stonetown/internal/eventlog"
	"stonetown/internal/sqldb"
)

// KeyState is where in its life a signing key is.
type KeyState string

// The states, in the order in which a key passes them. In an emergency it skips those
// between.
const (
	KeyNext    KeyState = "next"    // published, and does not sign yet
	KeyActive  KeyState = "active"  // signs; there is one of each algorithm
	KeyRetired KeyState = "retired" // signs no longer; what it has signed is good
	KeyRemoved KeyState = "removed" // what it has signed is refused, and its private half is gone
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
	retiredFor = maxAccessTokenTTL + time.Hour

	// recordedFor is how long a key that was removed is listed.
	recordedFor = 90 * 24 * time.Hour
)

// SigningKey is a key that a tenant's tokens are signed with. Times are zero if what they
// are of did not happen.
type SigningKey struct {
	KID         string // RFC 7638 thumbprint
	Alg         Alg
	State       KeyState
	CreatedAt   time.Time // and published
	ActivatedAt time.Time
	RetiredAt   time.Time
	RemovedAt   time.Time

	// sealed is the private half, as PKCS #8, for (tenant, KID). The public half is derived
	// from it, so that whoever can only write to the database cannot plant a key.
	sealed []byte
}

// enter is the key in another state.
func (k SigningKey) enter(state KeyState, now time.Time) SigningKey {
	k.State = state
	switch state {
	case KeyActive:
		k.ActivatedAt = now
	case KeyRetired:
		k.RetiredAt = now
	case KeyRemoved:
		k.RemovedAt, k.sealed = now, []byte{}
	}
	return k
}

// step is a state that a key enters: one that is there, or, without an id, a new one.
type step struct {
	kid string
	alg Alg
	to  KeyState
}

// plan says which steps the keys of a tenant take, in this order, at a time. It depends on
// nothing else.
type plan func(keys []SigningKey, now time.Time) []step

// due is the plan of the life that keys have by themselves.
func due(keys []SigningKey, now time.Time) (steps []step) {
	for _, alg := range algs {
		active, next := find(keys, alg, KeyActive), find(keys, alg, KeyNext)
		switch {
		case active == nil:
			steps = append(steps, step{"", alg, KeyActive})
		case next == nil && !now.Before(active.ActivatedAt.Add(signsFor-publishedFor)):
			steps = append(steps, step{"", alg, KeyNext})
		case next != nil && !now.Before(next.CreatedAt.Add(publishedFor)):
			steps = append(steps, step{active.KID, alg, KeyRetired}, step{next.KID, alg, KeyActive})
		}
	}
	for _, k := range keys {
		if k.State == KeyRetired && !now.Before(k.RetiredAt.Add(retiredFor)) {
			steps = append(steps, step{k.KID, k.Alg, KeyRemoved})
		}
	}
	return steps
}

// succeed is the plan of a rotation that somebody asks for: every active key gets a
// successor now, unless it has one. The rest is due in its time.
func succeed(keys []SigningKey, _ time.Time) (steps []step) {
	for _, alg := range algs {
		switch {
		case find(keys, alg, KeyActive) == nil:
			steps = append(steps, step{"", alg, KeyActive})
		case find(keys, alg, KeyNext) == nil:
			steps = append(steps, step{"", alg, KeyNext})
		}
	}
	return steps
}

// replace is the plan of an emergency: whoever has got at one key may have got at all, so
// they are removed, also those that are next, and new ones sign.
func replace(keys []SigningKey, _ time.Time) (steps []step) {
	for _, k := range keys {
		if k.State != KeyRemoved {
			steps = append(steps, step{k.KID, k.Alg, KeyRemoved})
		}
	}
	for _, alg := range algs {
		steps = append(steps, step{"", alg, KeyActive})
	}
	return steps
}

func find(keys []SigningKey, alg Alg, state KeyState) *SigningKey {
	i := slices.IndexFunc(keys, func(k SigningKey) bool { return k.Alg == alg && k.State == state })
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
func (k *keyrings) advance(ctx context.Context, tenantID string, by plan, emergency bool) ([]SigningKey, error) {
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
				if key.State == KeyRemoved {
					k.revoked.set(&b, revocation{tenantID, revokedKey, key.KID}, now.Add(retiredFor))
				}
			}
			if len(before) > 0 { // a tenant's first keys replace none
				eventlog.Append(&b, tenantID, signingKeysRotated(ctx, emergency, changed))
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
func (k *keyrings) take(tenantID string, keys []SigningKey, steps []step, now time.Time) (changed []SigningKey, err error) {
	for _, s := range steps {
		var key SigningKey
		if s.kid == "" {
			if key, err = newSigningKey(k.sealer, tenantID, s.alg, now); err != nil {
				return nil, fmt.Errorf("make %s key: %w", s.alg, err)
			}
		} else {
			key = keys[slices.IndexFunc(keys, func(k SigningKey) bool { return k.KID == s.kid })]
		}
		changed = append(changed, key.enter(s.to, now))
	}
	return changed, nil
}

// SigningKeys lists the keys of a tenant, also those removed in the last 90 days.
func (s *Service) SigningKeys(ctx context.Context, tenantID string) ([]SigningKey, error) {
	return selectKeys(ctx, s.db, tenantID)
}

// RotateSigningKeys publishes successors of a tenant's keys, unless there are some, which
// sign when they have been published for a day ([Service.Run]). In an emergency new keys
// sign at once and all others are removed: when it returns, no process accepts a token that
// they have signed. It returns the keys as they are then.
func (s *Service) RotateSigningKeys(ctx context.Context, tenantID string, emergency bool) ([]SigningKey, error) {
	by := succeed
	if emergency {
		by = replace
	}
	keys, err := s.keys.advance(ctx, tenantID, by, emergency)
	if err != nil {
		return nil, fmt.Errorf("rotate signing keys of tenant %s: %w", tenantID, err)
	}
	if emergency {
		s.revoked.settle(ctx)
	}
	return keys, nil
}

// rotate lets all keys take the steps that are due.
func (s *Service) rotate(ctx context.Context) error {
	tenants, err := selectLivingKeys(ctx, s.db)
	if err != nil {
		return err
	}
	var failed []error
	for tenantID, keys := range tenants { // in no order, so that several processes share the work
		if len(due(keys, s.clock())) == 0 {
			continue
		}
		if _, err := s.keys.advance(ctx, tenantID, due, false); err != nil {
			failed = append(failed, fmt.Errorf("rotate signing keys of tenant %s: %w", tenantID, err))
		}
	}
	return errors.Join(failed...)
}
