package sqldb

import (
	"cmp"
	"errors"
	"maps"
	"slices"
	"sync"
	"sync/atomic"
)

// notice is a topic and a key that a transaction announces to the listeners of its process.
type notice struct{ topic, key string }

// Notify queues a notice, which is delivered to the listeners of the topic ([DB.OnNotice]) when
// the transaction that the batch is sent in has committed, as with PostgreSQL's NOTIFY. Equal
// notices of a transaction are delivered once. A transaction that rolls back delivers none, and
// of one that is retried only the last attempt counts. If the outcome of a commit is unknown, its
// notices are delivered.
//
// A notice reaches listeners of the same DB only, not other processes, and is lost if the process
// ends. It can therefore save a listener the wait for its next poll, but not replace polling. A
// batch that is sent outside of a transaction ([DB.Send]) delivers no notices.
func (b *Batch) Notify(topic, key string) { b.notices = append(b.notices, notice{topic, key}) }

// listeners are the functions that receive notices, by topic. A map in it is not modified.
type listeners struct {
	mu sync.Mutex // held by the writer
	by atomic.Pointer[map[string][]func(key string)]
}

// OnNotice calls fn with the key of each notice of a topic, as long as the DB is open; see
// [Batch.Notify]. fn is called by the goroutine that has committed, before the commit returns to
// its caller, so it must be quick and must not block. Calls of fn for different transactions may
// be concurrent, and may be in another order than the commits.
func (db *DB) OnNotice(topic string, fn func(key string)) {
	l := &db.listeners
	l.mu.Lock()
	defer l.mu.Unlock()
	next := map[string][]func(string){}
	if by := l.by.Load(); by != nil {
		maps.Copy(next, *by)
	}
	next[topic] = append(slices.Clone(next[topic]), fn)
	l.by.Store(&next)
}

// deliver calls the listeners with the notices of a transaction whose commit ended with err.
func (l *listeners) deliver(notices []notice, err error) {
	if ambiguous := (*AmbiguousCommitError)(nil); err != nil && !errors.As(err, &ambiguous) {
		return
	}
	by := l.by.Load()
	if by == nil || len(notices) == 0 {
		return
	}
	slices.SortFunc(notices, func(a, b notice) int {
		return cmp.Or(cmp.Compare(a.topic, b.topic), cmp.Compare(a.key, b.key))
	})
	for _, n := range slices.Compact(notices) {
		for _, fn := range (*by)[n.topic] {
			fn(n.key)
		}
	}
}
