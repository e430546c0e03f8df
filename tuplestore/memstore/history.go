package memstore

import (
	"bytes"
	"context"
	"slices"
	"sync"
	"time"

	"stonetown/tuplestore"
	"stonetown/tuplestore/internal/apply"
)

// tenant is a tenant's history with its locks.
type tenant struct {
	lock writeLock

	mu sync.RWMutex // locked to publish a write, and to read
	history
}

// history is the whole history, guarded by tenant.mu. Only the holder of tenant.lock
// changes it, and may therefore read it without mu.
type history struct {
	commits []tuplestore.Commit   // revision r is at index r-1
	schemas []tuplestore.Revision // those that put a schema
	results map[string]replay     // by commit ID

	// Timelines are never removed; each is in every index that applies.
	timelines map[tuplestore.Tuple]*timeline
	nodes     map[tuplestore.Node][]*timeline   // by object and relation
	usersets  map[tuplestore.Node][]*timeline   // those whose subject is a userset
	objects   map[tuplestore.Object][]*timeline // by object
	subjects  map[tuplestore.Object][]*timeline // by the subject's object, without presences
}

// replay is the effect of a write that may be sent again.
type replay struct {
	fingerprint []byte
	result      tuplestore.Result
}

// timeline is the intervals in which a tuple existed, oldest first. If the tuple got
// another qualifier, one interval ends where the next begins.
type timeline struct {
	tuple     tuplestore.Tuple
	intervals []interval
}

type interval struct {
	created   tuplestore.Revision
	deleted   tuplestore.Revision // 0: still exists
	qualifier tuplestore.Qualifier
}

func newHistory() history {
	return history{
		results:   make(map[string]replay),
		timelines: make(map[tuplestore.Tuple]*timeline),
		nodes:     make(map[tuplestore.Node][]*timeline),
		usersets:  make(map[tuplestore.Node][]*timeline),
		objects:   make(map[tuplestore.Object][]*timeline),
		subjects:  make(map[tuplestore.Object][]*timeline),
	}
}

// at returns the interval of the tuple at rev, if it existed.
func (l *timeline) at(rev tuplestore.Revision) (interval, bool) {
	for _, interval := range slices.Backward(l.intervals) {
		if interval.created <= rev {
			return interval, interval.deleted == 0 || rev < interval.deleted
		}
	}
	return interval{}, false
}

func (t *tenant) head(epoch string) tuplestore.Head {
	t.mu.RLock()
	defer t.mu.RUnlock()
	return t.headLocked(epoch)
}

func (t *tenant) headLocked(epoch string) tuplestore.Head {
	head := tuplestore.Head{Revision: tuplestore.Revision(len(t.commits)), Epoch: epoch}
	if n := len(t.schemas); n > 0 {
		head.SchemaRevision = t.schemas[n-1]
	}
	return head
}

// schema returns the document at rev and the revision that put it.
func (t *tenant) schema(rev tuplestore.Revision) ([]byte, tuplestore.Revision) {
	t.mu.RLock()
	defer t.mu.RUnlock()
	for _, put := range slices.Backward(t.schemas) {
		if put <= rev {
			return t.commits[put-1].Schema, put
		}
	}
	return nil, 0
}

func (t *tenant) changes(after tuplestore.Revision, limit int) []tuplestore.Commit {
	t.mu.RLock()
	defer t.mu.RUnlock()
	from := min(int(after), len(t.commits))
	return slices.Clone(t.commits[from:min(from+limit, len(t.commits))])
}

// revisionAt returns the newest revision committed at or before an instant.
func (t *tenant) revisionAt(instant time.Time) tuplestore.Revision {
	t.mu.RLock()
	defer t.mu.RUnlock()
	after, _ := slices.BinarySearchFunc(t.commits, instant, func(c tuplestore.Commit, instant time.Time) int {
		if c.At.After(instant) {
			return 1
		}
		return -1
	})
	return tuplestore.Revision(after)
}

func (t *tenant) committedAt(rev tuplestore.Revision) (time.Time, error) {
	t.mu.RLock()
	defer t.mu.RUnlock()
	switch {
	case rev > tuplestore.Revision(len(t.commits)):
		return time.Time{}, tuplestore.ErrRevisionUnknown
	case rev == 0:
		return time.Time{}, nil
	}
	return t.commits[rev-1].At, nil
}

// next returns the time of the next commit.
func (t *tenant) next(now time.Time) time.Time {
	now = now.UTC().Truncate(time.Microsecond)
	if n := len(t.commits); n > 0 && now.Before(t.commits[n-1].At) {
		return t.commits[n-1].At
	}
	return now
}

// write validates and publishes w. The caller holds t.lock.
func (t *tenant) write(ctx context.Context, epoch string, clock func() time.Time, w tuplestore.Write) (tuplestore.Result, error) {
	fingerprint := apply.Fingerprint(w)
	if earlier, ok := t.results[w.CommitID]; ok {
		if !bytes.Equal(earlier.fingerprint, fingerprint) {
			return tuplestore.Result{}, tuplestore.ErrCommitIDReused
		}
		return earlier.result, nil
	}

	view := t.view(epoch, w)
	effect, err := view.Validate(w)
	if err != nil {
		return tuplestore.Result{}, err
	}
	if w.Also != nil {
		if err := w.Also(ctx, nil); err != nil {
			return tuplestore.Result{}, err
		}
	}
	result := view.Accept(effect)

	t.mu.Lock()
	defer t.mu.Unlock()
	if effect.TakesRevision() {
		t.publish(tuplestore.Commit{
			Revision: result.Revision,
			At:       t.next(clock()),
			Actor:    w.Actor,
			Changes:  effect.Changes,
			Schema:   bytes.Clone(w.PutSchema),
		})
	}
	if w.CommitID != "" {
		t.results[w.CommitID] = replay{fingerprint, result}
	}
	return result, nil
}

// view returns the view that validates w. It reads preconditions in full, as all tuples are
// in memory.
func (t *tenant) view(epoch string, w tuplestore.Write) *apply.View {
	head := t.headLocked(epoch)
	view := apply.NewView(head)
	needs := apply.NeedsOf(w)
	for _, tuple := range needs.Tuples {
		if l := t.timelines[tuple]; l != nil {
			if interval, exists := l.at(head.Revision); exists {
				view.Add(tuplestore.Fact{Tuple: tuple, Qualifier: interval.qualifier})
			}
		}
	}
	filters := slices.Concat(needs.Matching, needs.Absent)
	for _, existing := range needs.Existing {
		filters = append(filters, existing.Filter)
	}
	for _, f := range filters {
		for r := range t.matching(f, head.Revision) {
			view.Add(r.Fact)
		}
	}
	return view
}

func (t *tenant) publish(c tuplestore.Commit) {
	t.commits = append(t.commits, c)
	if c.Schema != nil {
		t.schemas = append(t.schemas, c.Revision)
	}
	for _, change := range c.Changes {
		l := t.timelines[change.Tuple]
		if l == nil {
			l = t.index(change.Tuple)
		}
		if n := len(l.intervals); n > 0 && l.intervals[n-1].deleted == 0 {
			l.intervals[n-1].deleted = c.Revision
		}
		if !change.Deleted {
			l.intervals = append(l.intervals, interval{created: c.Revision, qualifier: change.Qualifier})
		}
	}
}

// index starts a timeline.
func (t *tenant) index(tuple tuplestore.Tuple) *timeline {
	l := &timeline{tuple: tuple}
	t.timelines[tuple] = l
	t.nodes[tuple.Node()] = append(t.nodes[tuple.Node()], l)
	if tuple.Subject.IsUserset() {
		t.usersets[tuple.Node()] = append(t.usersets[tuple.Node()], l)
	}
	t.objects[tuple.Object] = append(t.objects[tuple.Object], l)
	if !tuple.IsPresence() {
		subject := tuple.Subject.Object()
		t.subjects[subject] = append(t.subjects[subject], l)
	}
	return l
}
