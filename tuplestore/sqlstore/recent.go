package sqlstore

import (
	"slices"
	"sync"

	"stonetown/tuplestore"
)

// recent has the newest commits that this process made, of all tenants, in memory. A reader in the
// process moves past them without a read, and a writer knows the state that they have left
// (known.go). What it keeps is bounded, however many tenants write.
type recent struct {
	mu      sync.RWMutex
	tenants map[string]*recentTenant  // that have commits
	slots   [recentCommits]recentSlot // a ring: which commit is dropped next
	oldest  int
	kept    int // slots
	changes int // of the commits of all slots
}

// recentTenant is the newest commits of a tenant.
type recentTenant struct {
	commits []tuplestore.Commit // oldest first, without gaps
	tip     tip                 // after the last one

	// Where other processes write to the tenant, too, the tip is often not the newest state. After
	// each group that was decided on another one, what is known is not used for some groups, left of
	// which are to come: pause of them, twice as many each time.
	pause, left int
}

// tip is the state of a tenant after a commit.
type tip struct {
	head                      tuplestore.Head
	commitEvents, committedAt int64 // the number of commits with an event; the time in µs
}

type recentSlot struct {
	tenant   string
	revision tuplestore.Revision
	changes  int
}

const (
	recentCommits = 256
	recentChanges = 16_384 // of all commits
	largestRecent = 2048   // changes of a commit; a larger one is not kept, nor are those before it

	shortestPause, longestPause = 16, 1024 // groups
)

// add keeps the commits of a group, and the state that they leave.
func (r *recent) add(tenant string, rows []commitRow, after tip) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, row := range rows {
		n := len(row.Changes)
		if n > largestRecent {
			delete(r.tenants, tenant)
			continue
		}
		for r.kept == recentCommits || r.kept > 0 && r.changes+n > recentChanges {
			r.dropOldest()
		}
		t := r.tenants[tenant]
		if t == nil {
			t = new(recentTenant)
			if r.tenants == nil {
				r.tenants = make(map[string]*recentTenant)
			}
			r.tenants[tenant] = t
		}
		if last := len(t.commits) - 1; last >= 0 && (t.commits[last].Revision+1 != row.Revision || t.tip.head.Epoch != after.head.Epoch) {
			t.commits = nil // another process has written in between
		}
		t.commits = append(t.commits, row.Commit)
		t.tip = after
		r.slots[(r.oldest+r.kept)%recentCommits] = recentSlot{tenant, row.Revision, n}
		r.kept++
		r.changes += n
	}
	if t := r.tenants[tenant]; t != nil {
		if t.left > 0 {
			t.left--
		} else if t.pause > 0 {
			t.pause--
		}
	}
}

// forget drops the commits of a tenant.
func (r *recent) forget(tenant string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.tenants, tenant)
}

// dropOldest empties the oldest slot. mu is held.
func (r *recent) dropOldest() {
	s := r.slots[r.oldest]
	r.oldest = (r.oldest + 1) % recentCommits
	r.kept--
	r.changes -= s.changes
	t := r.tenants[s.tenant]
	if t == nil || t.commits[0].Revision != s.revision {
		return // dropped before, by a gap
	}
	if t.commits = slices.Delete(t.commits, 0, 1); len(t.commits) == 0 {
		delete(r.tenants, s.tenant)
	}
}

// after returns the commits after a revision of an epoch; false if they are not all kept.
func (r *recent) after(tenant, epoch string, rev tuplestore.Revision) ([]tuplestore.Commit, bool) {
	r.mu.RLock()
	defer r.mu.RUnlock()
	t := r.tenants[tenant]
	if t == nil || t.tip.head.Epoch != epoch || t.tip.head.Revision <= rev {
		return nil, false
	}
	return t.since(rev)
}

// since returns a copy of the commits after a revision, which is not after the tip; false if they
// are not all kept.
func (t *recentTenant) since(rev tuplestore.Revision) ([]tuplestore.Commit, bool) {
	first := t.commits[0].Revision
	if rev+1 < first {
		return nil, false
	}
	return slices.Clone(t.commits[rev+1-first:]), true
}
