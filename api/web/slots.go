package web

import (
	"context"
	"io"
	"net/http"
	"time"
)

// slots bound how many requests are worked on at the same time, and with that the
// memory they take: a body and what is decoded of it is many times what a request
// takes that waits.
type slots chan struct{}

// take waits for a slot until ctx ends.
func (s slots) take(ctx context.Context) error {
	select {
	case s <- struct{}{}:
		return nil
	default:
	}
	select {
	case s <- struct{}{}:
		return nil
	case <-ctx.Done():
		return Unavailable("too many requests are being worked on", time.Second)
	}
}

// enter lets a request take a slot, when its body has arrived if it has one: who
// sends slowly keeps nobody else from being served. leave gives the slot back.
func (s slots) enter(r *http.Request) (leave func(), err error) {
	if r.ContentLength == 0 {
		return s.free, s.take(r.Context())
	}
	b := &waitingBody{ReadCloser: r.Body, slots: s, ctx: r.Context()}
	r.Body = b
	return func() {
		if b.taken {
			s.free()
		}
	}, nil
}

// waitingBody is a body behind whose end a slot waits.
type waitingBody struct {
	io.ReadCloser
	slots slots
	ctx   context.Context
	taken bool
}

func (b *waitingBody) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p)
	if err == io.EOF && !b.taken {
		if err := b.slots.take(b.ctx); err != nil {
			return n, err
		}
		b.taken = true
	}
	return n, err
}

// takeNow takes a slot if there is one.
func (s slots) takeNow() error {
	select {
	case s <- struct{}{}:
		return nil
	default:
		return Unavailable("too many streams are open", 10*time.Second)
	}
}

func (s slots) free() { <-s }
