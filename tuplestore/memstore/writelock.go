package memstore

import (
	"context"
	"sync"

	"stonetown/tuplestore"
	"stonetown/tuplestore/internal/fairqueue"
)

// writeLock is the lock of a tenant's writes, which is acquired in the order of a fair
// queue.
type writeLock struct {
	queue *fairqueue.Queue[chan struct{}] // a channel is closed when its writer has the lock

	mu   sync.Mutex
	held bool
}

// acquire acquires the lock, which the caller has to release. It fails if the queue is
// full, ctx ends or closing is closed.
func (l *writeLock) acquire(ctx context.Context, closing <-chan struct{}, key string) error {
	acquired := make(chan struct{})
	handle, err := l.queue.Push(key, 1, acquired)
	if err != nil {
		return err
	}
	l.advance()

	select {
	case <-acquired:
	case <-ctx.Done():
	case <-closing:
	}
	if err = refusal(ctx, closing); err != nil && !l.queue.Cancel(handle) {
		// The caller has the lock, or is about to get it.
		<-acquired
		l.release()
	}
	return err
}

func refusal(ctx context.Context, closing <-chan struct{}) error {
	select {
	case <-closing:
		return tuplestore.ErrClosed
	default:
		return ctx.Err()
	}
}

// advance passes the lock to the next writer, unless it is held.
func (l *writeLock) advance() {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.held {
		return
	}
	for _, acquired := range l.queue.Take(1) {
		l.held = true
		close(acquired)
	}
}

func (l *writeLock) release() {
	l.mu.Lock()
	l.held = false
	l.mu.Unlock()
	l.advance()
}
