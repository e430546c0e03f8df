package client

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"net/http"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"
)

const (
	// MaxBulk is the maximum number of operations in a request of the API.
	MaxBulk = 500
	// maxBulkBytes leaves some of the API's 1 MiB for the members around the operations.
	maxBulkBytes = 1<<20 - 1<<10
	// bulksInFlight is the number of concurrent requests.
	bulksInFlight = 4
)

// Operation creates or deletes a relation.
type Operation struct {
	Op string `json:"op"` // create or delete
	Tuple
}

// Conditions are the conditions of a bulk.
type Conditions struct {
	Preconditions []Precondition `json:"preconditions,omitempty"`
	OnExisting    string         `json:"on_existing,omitempty"` // ok or fail; empty: ok
	OnMissing     string         `json:"on_missing,omitempty"`  // ok or fail; empty: fail
}

// None reports whether there are no conditions.
func (c Conditions) None() bool {
	return len(c.Preconditions) == 0 && c.OnExisting == "" && c.OnMissing == ""
}

// Precondition requires a relation that a filter selects, or that there is none: it has one of
// both.
type Precondition struct {
	MustExist    *RelationFilter `json:"must_exist,omitempty"`
	MustNotExist *RelationFilter `json:"must_not_exist,omitempty"`
}

// Outcome is the effect of an operation: created, exists, updated, replaced, deleted or missing.
type Outcome struct {
	Index  int    `json:"index"`
	Op     string `json:"op"`
	Status string `json:"status"`
}

// Bulk applies all operations in order, or none.
func (c *Client) Bulk(ctx context.Context, ops []Operation, conditions Conditions) ([]Outcome, error) {
	texts := make([]json.RawMessage, len(ops))
	for i, op := range ops {
		text, err := encode(op)
		if err != nil {
			return nil, err
		}
		texts[i] = text
	}
	return c.bulk(ctx, texts, conditions)
}

func (c *Client) bulk(ctx context.Context, ops []json.RawMessage, conditions Conditions) ([]Outcome, error) {
	data, _, err := call[struct {
		Results []Outcome `json:"results"`
	}](ctx, c, request{method: http.MethodPost, path: resourcesPath + "/relations/bulk", body: struct {
		Operations []json.RawMessage `json:"operations"`
		Conditions
	}{ops, conditions}})
	return data.Results, err
}

// TupleError is the error of a tuple of [Client.WriteTuples].
type TupleError struct {
	Index int // from 0
	Tuple Tuple
	Err   error
}

func (e *TupleError) Error() string {
	return fmt.Sprintf("relation %d, %s: %v", e.Index+1, e.Tuple, e.Err)
}

// Unwrap returns the error of the server.
func (e *TupleError) Unwrap() error { return e.Err }

// batch is a bulk that is being filled.
type batch struct {
	tuples  []Tuple
	indexes []int // of the tuples
	texts   []json.RawMessage
	bytes   int
}

// WriteTuples writes tuples, in any order and in several concurrent requests. progress, which
// may be nil, is called with the number of tuples written so far, by one goroutine at a time.
// After an error some tuples are written and some are not; all of them can be written again.
// Tuples that have expired are left out, because the server refuses them; expired is their
// number. The error is a [*TupleError] if the server refused a tuple, and the error of the
// source if it yields one.
func (c *Client) WriteTuples(ctx context.Context, tuples iter.Seq2[Tuple, error], progress func(written int)) (expired int, err error) {
	outer := ctx
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(bulksInFlight)
	var (
		mu      sync.Mutex
		written int
	)
	send := func(b batch) {
		group.Go(func() error {
			if _, err := c.bulk(ctx, b.texts, Conditions{}); err != nil {
				return b.locate(err)
			}
			mu.Lock()
			defer mu.Unlock()
			written += len(b.tuples)
			if progress != nil {
				progress(written)
			}
			return nil
		})
	}
	var b batch
	var failed error
	index := -1
	for t, err := range tuples {
		index++
		if err != nil {
			failed = err
			break
		}
		if ctx.Err() != nil {
			break
		}
		if t.hasExpired(time.Now()) {
			expired++
			continue
		}
		text, err := encode(Operation{"create", t})
		if err != nil {
			failed = &TupleError{index, t, err}
			break
		}
		if len(b.tuples) == MaxBulk || len(b.tuples) > 0 && b.bytes+len(text)+1 > maxBulkBytes {
			send(b)
			b = batch{}
		}
		b.indexes = append(b.indexes, index)
		b.tuples, b.texts, b.bytes = append(b.tuples, t), append(b.texts, text), b.bytes+len(text)+1
	}
	if failed == nil && len(b.tuples) > 0 && ctx.Err() == nil {
		send(b)
	}
	if err := group.Wait(); err != nil {
		return expired, err
	}
	if failed == nil {
		failed = outer.Err() // canceled before a request was sent
	}
	return expired, failed
}

// locate adds the tuple to an error about it.
func (b batch) locate(err error) error {
	if refused, ok := errors.AsType[*Error](err); ok {
		if i, ok := refused.index(); ok && i >= 0 && i < len(b.tuples) {
			return &TupleError{b.indexes[i], b.tuples[i], refused}
		}
	}
	return err
}
