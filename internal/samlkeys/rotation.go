package samlkeys

import (
	"context"
	"crypto/rsa"
	"crypto/x509"
	"errors"
	"fmt"
	"slices"
	"time"

	"stonetown/internal/eventlog"
	"stonetown/internal/rotation"
	"stonetown/internal/sqldb"
)

// State is the state of a key.
type State string

// The states, in their order. In an emergency a key skips those in between.
const (
	Next    State = "next"    // published, and does not sign yet
	Active  State = "active"  // signs; there is one of each use
	Retired State = "retired" // published and decrypts, and no longer signs
	Removed State = "removed" // deleted
)

const (
	// publishedFor is how long a key is published before it signs.
	publishedFor = 7 * 24 * time.Hour
	// retiredFor is how long a retired key is published.
	retiredFor = 7 * 24 * time.Hour
	// renewedBefore is how long before the end of a certificate its key gets a successor.
	renewedBefore = 60 * 24 * time.Hour
)

// Key is a key of a tenant. The time of a state that the key has not entered is zero.
type Key struct {
	ID          string // SHA-256 of the certificate, in lower-case hexadecimal
	Use         Use
	State       State
	Private     *rsa.PrivateKey // nil in the result of [Store.List] and [Store.Rotate]
	Certificate *x509.Certificate
	CreatedAt   time.Time // and published
	ActivatedAt time.Time
	RetiredAt   time.Time

	sealed []byte // the private key, as PKCS #8, sealed for (tenant, ID)
}

// enter returns the key in another state.
func (k Key) enter(state State, now time.Time) Key {
	k.State = state
	switch state {
	case Active:
		k.ActivatedAt = now
	case Retired:
		k.RetiredAt = now
	}
	return k
}

// dueAt returns when the next step of the rotation is due for the key.
func (k Key) dueAt() time.Time {
	switch k.State {
	case Next:
		return k.CreatedAt.Add(publishedFor)
	case Active:
		return k.Certificate.NotAfter.Add(-renewedBefore)
	default:
		return k.RetiredAt.Add(retiredFor)
	}
}

func (k Key) due(now time.Time) bool { return !now.Before(k.dueAt()) }

// step is a state that a key enters. A step without id makes a new key.
type step struct {
	id string
	to State
}

// plan returns the steps that the keys of a tenant for a use take at a time, in order. It depends
// on nothing else.
type plan func(keys []Key, now time.Time) []step

// due is the plan of the periodic rotation.
func due(keys []Key, now time.Time) (steps []step) {
	active, next := find(keys, Active), find(keys, Next)
	switch {
	case active == nil:
		steps = append(steps, step{"", Active})
	case next == nil && active.due(now):
		steps = append(steps, step{"", Next})
	case next != nil && next.due(now):
		steps = append(steps, step{active.ID, Retired}, step{next.ID, Active})
	}
	for _, k := range keys {
		if k.State == Retired && k.due(now) {
			steps = append(steps, step{k.ID, Removed})
		}
	}
	return steps
}

// succeed is the plan of a requested rotation: the active key gets a successor now, unless it has
// one. The following steps are due in their time.
func succeed(keys []Key, _ time.Time) []step {
	switch {
	case find(keys, Active) == nil:
		return []step{{"", Active}}
	case find(keys, Next) == nil:
		return []step{{"", Next}}
	}
	return nil
}

// replace is the plan of an emergency: an intruder who has one key may have all, so all are
// removed, and a new one signs.
func replace(keys []Key, _ time.Time) (steps []step) {
	for _, k := range keys {
		steps = append(steps, step{k.ID, Removed})
	}
	return append(steps, step{"", Active})
}

func find(keys []Key, state State) *Key {
	i := slices.IndexFunc(keys, func(k Key) bool { return k.State == state })
	if i < 0 {
		return nil
	}
	return &keys[i]
}

// advance takes the steps of a plan, and returns the keys afterwards, without their private keys. New
// keys are made before the transaction, because an RSA key takes long.
func (s *Store) advance(ctx context.Context, of owner, by plan, emergency bool) ([]Key, error) {
	keys, changed, err := rotation.Rows[Key]{
		DB: s.DB, Clock: s.Clock,
		Read: func(ctx context.Context, from rotation.Querier) ([]Key, error) { return selectKeys(ctx, from, of) },
		Plan: func(keys []Key, now time.Time) ([]Key, error) { return s.take(of, keys, by(keys, now), now) },
		Write: func(b *sqldb.Batch, before, changed []Key, _ time.Time) {
			for _, key := range changed {
				if key.State == Removed {
					b.Queue(deleteKey, []any{of.tenantID, string(of.use), key.ID}, nil)
				} else {
					putKey(b, of.tenantID, key)
				}
			}
			if len(before) > 0 { // the first key is no rotation
				eventlog.Append(b, of.tenantID, rotated(ctx, emergency, changed))
			}
		},
	}.Advance(ctx)
	if changed {
		s.cache.Remove(of) // other processes follow within cacheFor
	}
	return keys, err
}

// take returns the keys that steps change, as they are afterwards.
func (s *Store) take(of owner, keys []Key, steps []step, now time.Time) (changed []Key, err error) {
	for _, st := range steps {
		var key Key
		if st.id == "" {
			if key, err = generate(s.Seal, of, now); err != nil {
				return nil, fmt.Errorf("make SAML key: %w", err)
			}
		} else {
			key = keys[slices.IndexFunc(keys, func(k Key) bool { return k.ID == st.id })]
		}
		changed = append(changed, key.enter(st.to, now))
	}
	return changed, nil
}

// Rotate publishes a successor of a tenant's key, unless there is one. It signs when it has been
// published for a week. In an emergency a new key signs at once, on other processes within a minute,
// and all others are removed. Rotate returns the keys of all uses as they are then, like
// [Store.List].
func (s *Store) Rotate(ctx context.Context, tenantID string, use Use, emergency bool) ([]Key, error) {
	by := succeed
	if emergency {
		by = replace
	}
	if _, err := s.advance(ctx, owner{tenantID, use}, by, emergency); err != nil {
		return nil, fmt.Errorf("rotate SAML keys of tenant %s: %w", tenantID, err)
	}
	return s.List(ctx, tenantID)
}

// RotateDue takes the steps that are due, for all tenants.
func (s *Store) RotateDue(ctx context.Context) error {
	owners, err := selectDue(ctx, s.DB, s.Clock())
	if err != nil {
		return err
	}
	var failed []error
	for of := range owners { // in random order, so that processes share the work
		if _, err := s.advance(ctx, of, due, false); err != nil {
			failed = append(failed, fmt.Errorf("rotate SAML keys of tenant %s: %w", of.tenantID, err))
		}
	}
	return errors.Join(failed...)
}
