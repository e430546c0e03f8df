package client

import (
	"context"
	"errors"
	"net/http"
	"sync"
)

// Batcher answers checks that are asked at the same time with few requests: while one is in
// progress, the checks that arrive wait and are the next batch. A check that is alone waits for
// nothing. Those under contexts with different consistency tokens are in different batches. A
// Batcher is safe for concurrent use.
type Batcher struct {
	client *Client

	mu     sync.Mutex
	queues map[string]*batchQueue // by consistency token
}

// batchQueue has the checks that wait while a batch is in progress.
type batchQueue struct{ waiting []*waitingCheck }

type waitingCheck struct {
	BatchCheck
	consistency *consistency
	version     int
	done        chan struct{} // closed when there is an answer
	allowed     bool
	err         error
}

// NewBatcher returns a batcher that sends its requests with a client.
func NewBatcher(c *Client) *Batcher { return &Batcher{client: c, queues: map[string]*batchQueue{}} }

// Allowed reports whether a subject may perform an action on a resource. It fails with an [*Error] if
// the request or the check has no answer, and with the error of ctx when that ends.
func (b *Batcher) Allowed(ctx context.Context, s Subject, action string, resource Ref) (bool, error) {
	w := &waitingCheck{BatchCheck: BatchCheck{s, action, resource}, consistency: of(ctx), done: make(chan struct{})}
	var token string
	token, w.version = w.consistency.begin()
	b.add(ctx, token, w)
	select {
	case <-w.done:
		return w.allowed, w.err
	case <-ctx.Done():
		return false, ctx.Err()
	}
}

// add queues a check, and sends batches until no check waits if nobody does.
func (b *Batcher) add(ctx context.Context, token string, w *waitingCheck) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if q := b.queues[token]; q != nil {
		q.waiting = append(q.waiting, w)
		return
	}
	b.queues[token] = &batchQueue{waiting: []*waitingCheck{w}}
	// The batches are for others, too, so they do not end with the context.
	go b.send(context.WithoutCancel(ctx), token)
}

func (b *Batcher) send(ctx context.Context, token string) {
	ctx = context.WithValue(ctx, consistencyKey{}, (*consistency)(nil)) // each check has its own
	for {
		batch := b.next(token)
		if batch == nil {
			return
		}
		b.answer(ctx, token, batch)
	}
}

// answer asks for the answers of a batch. A check that is malformed, or that requires too much work,
// must not fail those of other callers, so a batch that is refused for its content is asked in halves.
func (b *Batcher) answer(ctx context.Context, token string, batch []*waitingCheck) {
	checks := make([]BatchCheck, len(batch))
	for i, w := range batch {
		checks[i] = w.BatchCheck
	}
	decisions, seen, err := b.client.CheckBatch(ctx, Batch{Checks: checks, ConsistencyToken: token})
	refused, ok := errors.AsType[*Error](err)
	if ok && len(batch) > 1 && (refused.Status == http.StatusBadRequest || refused.Status == http.StatusRequestEntityTooLarge) {
		half := len(batch) / 2
		b.answer(ctx, token, batch[:half])
		b.answer(ctx, token, batch[half:])
		return
	}
	for i, w := range batch {
		if w.err = err; err == nil {
			w.allowed, w.err = decisions[i].Allowed, decisions[i].Err()
			w.consistency.end(w.version, seen, false)
		}
		close(w.done)
	}
}

// next returns the checks of the next batch; nil if there are none, after which the queue is gone.
func (b *Batcher) next(token string) []*waitingCheck {
	b.mu.Lock()
	defer b.mu.Unlock()
	q := b.queues[token]
	n := min(len(q.waiting), MaxBatch)
	if n == 0 {
		delete(b.queues, token)
		return nil
	}
	batch := q.waiting[:n:n]
	q.waiting = q.waiting[n:]
	return batch
}
