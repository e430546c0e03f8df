package engine

import (
	"context"
	"errors"
	"time"

	"stonetown/tuplestore"
)

// asOf returns the revision of an answer of an earlier time, and the clock that shows this time.
func (e *Engine) asOf(ctx context.Context, tenantID string, c Consistency) (Consistency, func() time.Time, error) {
	instant := c.Instant
	if !instant.IsZero() {
		instant = instant.Truncate(time.Millisecond)
		if instant.After(e.clock()) {
			return c, nil, &PastError{ErrInstantInFuture}
		}
		instant = instant.Add(time.Millisecond - time.Microsecond)
	}
	var err error
	if c.Token == "" {
		c.Token, err = e.tokenAt(ctx, tenantID, instant)
	} else if instant.IsZero() {
		instant, err = e.committedAt(ctx, tenantID, c.Token)
	}
	if err != nil {
		return c, nil, err
	}
	return Consistency{Mode: Exactly, Token: c.Token}, func() time.Time { return instant }, nil
}

// tokenAt returns the token of the newest revision committed at or before an instant.
func (e *Engine) tokenAt(ctx context.Context, tenantID string, instant time.Time) (string, error) {
	rev, epoch, err := e.store.RevisionAt(ctx, tenantID, instant)
	if errors.Is(err, tuplestore.ErrRevisionCollected) {
		err = &PastError{ErrTokenExpired}
	}
	return encodeToken(tenantID, epoch, rev), err
}

// committedAt returns the time of the commit that a token names.
func (e *Engine) committedAt(ctx context.Context, tenantID, token string) (time.Time, error) {
	t := e.tenant(tenantID)
	if _, err := t.rlock(ctx, Consistency{Mode: Exactly, Token: token}); err != nil {
		return time.Time{}, past(err)
	}
	t.mu.RUnlock()
	_, rev, _ := decodeToken(tenantID, token) // which rlock has read
	at, err := e.store.CommittedAt(ctx, tenantID, rev)
	if errors.Is(err, tuplestore.ErrRevisionCollected) {
		err = &PastError{ErrTokenExpired}
	}
	return at, err
}

// past returns the error of a token as that of a question about the past.
func past(err error) error {
	if errors.Is(err, ErrTokenInvalid) || errors.Is(err, ErrTokenUnknown) || errors.Is(err, ErrTokenExpired) {
		return &PastError{err}
	}
	return err
}
