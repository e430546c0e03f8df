package sqlstore

import (
	"slices"
	"sync"

	"stonetown/tuplestore"
)

// recent has the newest commits of all tenants in memory, if this process is the only writer, so
// that a reader in the process moves past a write without a read. What it keeps is bounded, however
// many tenants write.
type recent struct {
	mu      sync.RWMutex
	commits map[string][]tuplestore.Commit // by tenant, oldest first, without gaps
	slots   [recentCommits]recentSlot
	next    int // the slot of the oldest commit
}

// recentSlot says which commit is dropped next.
type recentSlot struct {
	tenant   string
	revision tuplestore.Revision
}

const (
	recentCommits = 256
	recentChanges = 64 // of a commit; a larger one is not kept, nor are those before it
)

// add keeps the commits of a group.
func (r *recent) add(tenant string, rows []commitRow) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.commits == nil {
		r.commits = make(map[string][]tuplestore.Commit)
	}
	for _, row := range rows {
		if len(row.Changes) > recentChanges {
			delete(r.commits, tenant)
			continue
		}
		slot := &r.slots[r.next]
		r.next = (r.next + 1) % recentCommits
		r.drop(*slot)
		*slot = recentSlot{tenant, row.Revision}
		r.commits[tenant] = append(r.commits[tenant], row.Commit)
	}
}

// drop drops the commit of a slot, if it is kept. mu is held.
func (r *recent) drop(s recentSlot) {
	list := r.commits[s.tenant]
	if len(list) == 0 || list[0].Revision != s.revision {
		return
	}
	if list = slices.Delete(list, 0, 1); len(list) > 0 {
		r.commits[s.tenant] = list
	} else {
		delete(r.commits, s.tenant)
	}
}

// after returns the commits after a revision; false if they are not all kept.
func (r *recent) after(tenant string, rev tuplestore.Revision) ([]tuplestore.Commit, bool) {
	r.mu.RLock()
	defer r.mu.RUnlock()
	list := r.commits[tenant]
	if len(list) == 0 || list[0].Revision > rev+1 || list[len(list)-1].Revision <= rev {
		return nil, false
	}
	return slices.Clone(list[rev+1-list[0].Revision:]), true
}
