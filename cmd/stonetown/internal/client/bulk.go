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
	// MaxBulk is how many operations the API takes in one request.
	MaxBulk = 500
	// maxBulkBytes leaves some of the API's 1 MiB for what is around the
	// operations.
	maxBulkBytes = 1<<20 - 1<<10
	// bulksInFlight is how many requests write at a time.
	bulksInFlight = 4
)

// Operation creates or deletes a relation.
type Operation struct {
	Op string `json:"op"` // create or delete
	Tuple
}

// Outcome is what became of an operation: created, exists, updated or deleted.
type Outcome struct {
	Index  int    `json:"index"`
	Op     string `json:"op"`
	Status string `json:"status"`
}

// Bulk applies operations in order, all or none.
func (c *Client) Bulk(ctx context.Context, ops []Operation) ([]Outcome, error) {
	texts := make([]json.RawMessage, len(ops))
	for i, op := range ops {
		text, err := encode(op)
		if err != nil {
			return nil, err
		}
		texts[i] = text
	}
	return c.bulk(ctx, texts)
}

func (c *Client) bulk(ctx context.Context, ops []json.RawMessage) ([]Outcome, error) {
	data, _, err := call[struct {
		Results []Outcome `json:"results"`
	}](ctx, c, request{method: http.MethodPost, path: resourcesPath + "/relations/bulk", body: map[string]any{"operations": ops}})
	return data.Results, err
}

// TupleError says which tuple of [Client.WriteTuples] was not written.
type TupleError struct {
	Index int // from 0
	Tuple Tuple
	Err   error
}

func (e *TupleError) Error() string {
	return fmt.Sprintf("relation %d, %s: %v", e.Index+1, e.Tuple, e.Err)
}

// Unwrap returns the server's refusal.
func (e *TupleError) Unwrap() error { return e.Err }

// batch is a bulk under way.
type batch struct {
	tuples  []Tuple
	indexes []int // of the tuples
	texts   []json.RawMessage
	bytes   int
}

// WriteTuples writes tuples, in any order and several requests at a time.
// progress, which may be nil, is told how many are written so far, one call at a
// time. After an error some are written and some are not; writing all of them
// again does no harm. Tuples that have expired are left out, as the server
// refuses them; expired is how many. The error is a [*TupleError] if the server refused a
// tuple, and the source's own if it yields one.
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
			if _, err := c.bulk(ctx, b.texts); err != nil {
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
		failed = outer.Err() // canceled before anything was sent
	}
	return expired, failed
}

// locate names the tuple that an error is about.
func (b batch) locate(err error) error {
	if refused, ok := errors.AsType[*Error](err); ok {
		if i, ok := refused.index(); ok && i >= 0 && i < len(b.tuples) {
			return &TupleError{b.indexes[i], b.tuples[i], refused}
		}
	}
	return err
}
