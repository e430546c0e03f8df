package threat

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"sync"
	"time"

	"github.com/hashicorp/golang-lru/v2/simplelru"
	"golang.org/x/sync/singleflight"
)

const (
	// MaxMemory bounds the lists in the memory of a process, in bytes. Those of the tenants without
	// recent attempts are read again.
	MaxMemory = 128 << 20

	maxLoading = 2 // tenants whose lists are read at the same time
	loadTime   = 20 * time.Second
)

// Match is an entry of a feed that matches an attempt.
type Match struct {
	FeedID string
	Name   string
	Kind   Kind
	Mode   Mode
	Entry  string
}

// Match returns the matches of the enabled feeds of a tenant: of the client's address, and of the
// domain of the user's e-mail address. revision is the present one of the tenant; 0 means that there
// were never feeds.
func (s *Feeds) Match(ctx context.Context, tenantID string, revision int64, address, email string) (matches []Match, err error) {
	if revision == 0 {
		return nil, nil
	}
	all, err := s.listsOf(ctx, tenantID, revision)
	if err != nil {
		return nil, fmt.Errorf("match threat feeds: %w", err)
	}
	for _, one := range all.feeds {
		value := address
		if one.feed.Kind == MailDomain {
			value = DomainOf(email)
		}
		if entry, ok := one.list.Match(value); ok {
			matches = append(matches, Match{one.feed.ID, one.feed.Name, one.feed.Kind, one.feed.Mode, entry})
		}
	}
	return matches, nil
}

// lists are the enabled feeds of a tenant that have entries.
type lists struct {
	revision int64 // they are at least as new
	feeds    []loaded
	bytes    int
}

type loaded struct {
	feed Feed
	list *List
}

// memory has the lists of the tenants that were used last.
type memory struct {
	flight  singleflight.Group
	loading chan struct{}

	mu    sync.Mutex
	most  int
	bytes int
	byID  *simplelru.LRU[string, *lists]
}

func newMemory(most int) *memory {
	m := &memory{most: most, loading: make(chan struct{}, maxLoading)}
	byID, err := simplelru.NewLRU(1<<20, func(_ string, evicted *lists) { m.bytes -= evicted.bytes })
	if err != nil {
		panic(err) // the size is positive
	}
	m.byID = byID
	return m
}

func (m *memory) get(tenantID string) *lists {
	m.mu.Lock()
	defer m.mu.Unlock()
	all, _ := m.byID.Get(tenantID)
	return all
}

// put stores lists, unless newer ones are stored, and removes those that were used longest ago.
func (m *memory) put(tenantID string, all *lists) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if present, ok := m.byID.Peek(tenantID); ok {
		if present.revision > all.revision {
			return
		}
		m.byID.Remove(tenantID)
	}
	m.bytes += all.bytes
	m.byID.Add(tenantID, all)
	for m.bytes > m.most && m.byID.Len() > 1 {
		m.byID.RemoveOldest()
	}
}

// listsOf returns the lists of a tenant, at least as new as a revision.
func (s *Feeds) listsOf(ctx context.Context, tenantID string, revision int64) (*lists, error) {
	if all := s.memory.get(tenantID); all != nil && all.revision >= revision {
		return all, nil
	}
	// Attempts at the same time share the work, which the end of one of them must not cancel.
	result := s.memory.flight.DoChan(tenantID+" "+strconv.FormatInt(revision, 10), func() (any, error) {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), loadTime)
		defer cancel()
		select {
		case s.memory.loading <- struct{}{}:
			defer func() { <-s.memory.loading }()
		case <-ctx.Done():
			return nil, ctx.Err()
		}
		return s.load(ctx, tenantID, revision)
	})
	select {
	case r := <-result:
		if r.Err != nil {
			return nil, r.Err
		}
		return r.Val.(*lists), nil
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// load reads the lists of a tenant, except those that are in memory already.
func (s *Feeds) load(ctx context.Context, tenantID string, revision int64) (*lists, error) {
	feeds, err := selectFeeds(ctx, s.db, tenantID)
	if err != nil {
		return nil, err
	}
	known := map[string]loaded{}
	if present := s.memory.get(tenantID); present != nil {
		for _, one := range present.feeds {
			known[one.feed.ID] = one
		}
	}
	all := &lists{revision: revision, bytes: 256}
	for _, f := range feeds {
		if !f.Enabled || f.version == 0 {
			continue
		}
		l := known[f.ID].list
		if l == nil || known[f.ID].feed.version != f.version {
			l, err = s.listOf(ctx, f)
			if errors.Is(err, ErrNotFound) {
				continue // deleted meanwhile
			}
			if err != nil {
				return nil, err
			}
		}
		all.feeds = append(all.feeds, loaded{f, l})
		all.bytes += l.size()
	}
	s.memory.put(tenantID, all)
	return all, nil
}

// listOf reads the list of a feed: the present one if it was replaced since the feed was read.
func (s *Feeds) listOf(ctx context.Context, f Feed) (*List, error) {
	for range 3 {
		chunks, err := selectList(ctx, s.db, f)
		if err != nil {
			return nil, err
		}
		if len(chunks) == f.chunks {
			return unpack(f.Kind, chunks)
		}
		if f, err = s.Get(ctx, f.TenantID, f.ID); err != nil {
			return nil, err
		}
	}
	return nil, errors.New("the list of a threat feed changes too often to be read")
}
