package web

import (
	"context"
	"io"
	"net/http"
	"sync/atomic"
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

// free gives a slot back.
func (s slots) free() { <-s }

// takeNow takes a slot if there is one.
func (s slots) takeNow() error {
	select {
	case s <- struct{}{}:
		return nil
	default:
		return Unavailable("too many streams are open", 10*time.Second)
	}
}

// entrance is where requests take their slots, when their bodies have arrived if
// they have one: who sends slowly keeps nobody else from being served. What has
// arrived until then is bounded as well.
type entrance struct {
	slots
	most     int64 // bytes of bodies
	received atomic.Int64
}

// enter lets a request wait for its slot. leave gives back what it then has.
func (e *entrance) enter(r *http.Request) (leave func(), err error) {
	if r.ContentLength == 0 {
		return e.free, e.take(r.Context())
	}
	b := &waitingBody{ReadCloser: r.Body, entrance: e, ctx: r.Context()}
	r.Body = b
	return b.leave, nil
}

// waitingBody is a body behind whose end a slot waits.
type waitingBody struct {
	io.ReadCloser
	entrance *entrance
	ctx      context.Context
	received int64 // and not yet behind a slot
	entered  bool
}

func (b *waitingBody) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p)
	if b.entered {
		return n, err
	}
	b.received += int64(n)
	if b.entrance.received.Add(int64(n)) > b.entrance.most {
		return n, Unavailable("too much is being received", time.Second)
	}
	if err == io.EOF {
		if err := b.entrance.take(b.ctx); err != nil {
			return n, err
		}
		b.entered = true
		b.forget()
	}
	return n, err
}

func (b *waitingBody) forget() {
	b.entrance.received.Add(-b.received)
	b.received = 0
}

func (b *waitingBody) leave() {
	b.forget()
	if b.entered {
		b.entrance.free()
	}
}
