package ratelimit

import (
	"context"
	"fmt"
	"hash/fnv"
	"maps"
	"strings"
	"sync"
	"time"
)

// memoryStore stores buckets until they expire, at most mostBuckets, because an attacker with
// many addresses creates one for each. When it is full, new keys share buckets: deleting
// others would restore their whole limit. It is a [throttled.GCRAStoreCtx].
type memoryStore struct {
	clock func() time.Time
	most  int

	mu        sync.Mutex
	entries   map[string]entry
	collected time.Time
}

const (
	// mostBuckets is the maximum number of buckets, of about 200 bytes each.
	mostBuckets = 200_000
	// sharedBuckets is the number of buckets that new keys share, for each limit of a tenant.
	sharedBuckets = 64
	// collectWhenFull is how often a full store looks for buckets to forget.
	collectWhenFull = 10 * time.Second
)

// bucket returns the name of a key's bucket: its own or, if the store is full, a shared one.
// mu is held.
func (s *memoryStore) bucket(key string, now time.Time) string {
	if len(s.entries) < s.most {
		return key
	}
	if _, ok := s.entries[key]; ok {
		return key
	}
	if now.Sub(s.collected) >= collectWhenFull {
		s.forgetExpired(now)
		if len(s.entries) < s.most {
			return key
		}
	}
	h := fnv.New32a()
	h.Write([]byte(key))
	return fmt.Sprintf("%s|shared %d", key[:max(0, strings.LastIndexByte(key, '|'))], h.Sum32()%sharedBuckets)
}

type entry struct {
	value   int64
	expires time.Time
}

func newMemoryStore(clock func() time.Time) *memoryStore {
	return &memoryStore{clock: clock, most: mostBuckets, entries: map[string]entry{}}
}

func (s *memoryStore) GetWithTime(_ context.Context, key string) (int64, time.Time, error) {
	now := s.clock()
	s.mu.Lock()
	defer s.mu.Unlock()
	if e, ok := s.entries[s.bucket(key, now)]; ok && e.expires.After(now) {
		return e.value, now, nil
	}
	return -1, now, nil
}

func (s *memoryStore) SetIfNotExistsWithTTL(_ context.Context, key string, value int64, ttl time.Duration) (bool, error) {
	now := s.clock()
	s.mu.Lock()
	defer s.mu.Unlock()
	key = s.bucket(key, now)
	if e, ok := s.entries[key]; ok && e.expires.After(now) {
		return false, nil
	}
	s.entries[key] = entry{value, now.Add(ttl)}
	return true, nil
}

func (s *memoryStore) CompareAndSwapWithTTL(_ context.Context, key string, old, new int64, ttl time.Duration) (bool, error) {
	now := s.clock()
	s.mu.Lock()
	defer s.mu.Unlock()
	key = s.bucket(key, now)
	if e, ok := s.entries[key]; !ok || e.value != old {
		return false, nil
	}
	s.entries[key] = entry{new, now.Add(ttl)}
	return true, nil
}

// setEmpty remembers for how long a bucket that is elsewhere is empty, if there is room.
func (s *memoryStore) setEmpty(key string, wait time.Duration) {
	now := s.clock()
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.bucket(key, now) != key {
		return
	}
	s.entries[key] = entry{expires: now.Add(wait)}
}

func (s *memoryStore) emptyFor(key string) time.Duration {
	s.mu.Lock()
	defer s.mu.Unlock()
	if e, ok := s.entries[key]; ok {
		return e.expires.Sub(s.clock())
	}
	return 0
}

func (s *memoryStore) collect() {
	now := s.clock()
	s.mu.Lock()
	defer s.mu.Unlock()
	s.forgetExpired(now)
}

func (s *memoryStore) forgetExpired(now time.Time) {
	s.collected = now
	maps.DeleteFunc(s.entries, func(_ string, e entry) bool { return !e.expires.After(now) })
}
