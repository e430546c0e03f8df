package ratelimit

import (
	"context"
	"maps"
	"sync"
	"time"
)

// memoryStore keeps numbers until their time is over. It is a
// [throttled.GCRAStoreCtx].
type memoryStore struct {
	clock func() time.Time

	mu      sync.Mutex
	entries map[string]entry
}

type entry struct {
	value   int64
	expires time.Time
}

func newMemoryStore(clock func() time.Time) *memoryStore {
	return &memoryStore{clock: clock, entries: map[string]entry{}}
}

func (s *memoryStore) GetWithTime(_ context.Context, key string) (int64, time.Time, error) {
	now := s.clock()
	s.mu.Lock()
	defer s.mu.Unlock()
	if e, ok := s.entries[key]; ok && e.expires.After(now) {
		return e.value, now, nil
	}
	return -1, now, nil
}

func (s *memoryStore) SetIfNotExistsWithTTL(_ context.Context, key string, value int64, ttl time.Duration) (bool, error) {
	now := s.clock()
	s.mu.Lock()
	defer s.mu.Unlock()
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
	if e, ok := s.entries[key]; !ok || e.value != old {
		return false, nil
	}
	s.entries[key] = entry{new, now.Add(ttl)}
	return true, nil
}

// setEmpty remembers for how long a bucket that is elsewhere is empty.
func (s *memoryStore) setEmpty(key string, wait time.Duration) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.entries[key] = entry{expires: s.clock().Add(wait)}
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
	maps.DeleteFunc(s.entries, func(_ string, e entry) bool { return !e.expires.After(now) })
}
