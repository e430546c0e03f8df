package memstore

import (
	"context"
	"sync"

	"stonetown/tuplestore"
	"stonetown/tuplestore/internal/fairqueue"
)

// line gives a tenant's writers their turns. One has the turn at a time, works
// in its own goroutine, and passes the turn on to the next in the queue.
type line struct {
	queue *fairqueue.Queue[chan struct{}] // closed when it is that writer's turn

	mu    sync.Mutex
	taken bool // someone has the turn
}

// wait returns when it is the caller's turn, who must then pass it on. It
// fails, and there is no turn to pass, when the queue is full, ctx ends or
// closing is closed.
func (l *line) wait(ctx context.Context, closing <-chan struct{}, key string) error {
	turn := make(chan struct{})
	ticket, err := l.queue.Push(key, 1, turn)
	if err != nil {
		return err
	}
	l.advance()

	select {
	case <-turn:
	case <-ctx.Done():
	case <-closing:
	}
	if err = refusal(ctx, closing); err != nil && !l.queue.Cancel(ticket) {
		// It is our turn, or about to be.
		<-turn
		l.pass()
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

// advance gives the turn to the next writer unless someone has it.
func (l *line) advance() {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.taken {
		return
	}
	for _, turn := range l.queue.Take(1) {
		l.taken = true
		close(turn)
	}
}

func (l *line) pass() {
	l.mu.Lock()
	l.taken = false
	l.mu.Unlock()
	l.advance()
}
