package tuplestore

import (
	"errors"
	"fmt"
	"time"
)

var (
	// ErrRevisionCollected: the revision is older than the retained history.
	ErrRevisionCollected = errors.New("revision is older than the retained history")
	// ErrRevisionUnknown: the revision is beyond the tenant's head.
	ErrRevisionUnknown = errors.New("revision is beyond the head")
	// ErrSchemaChanged: the schema is not the one the write was validated by.
	ErrSchemaChanged = errors.New("schema changed")
	// ErrClosed: the store is shutting down.
	ErrClosed = errors.New("tuple store is closed")
	// ErrCommitIDReused: the commit ID belongs to a write with other contents.
	ErrCommitIDReused = errors.New("commit id belongs to another write")
	// ErrSequenceEnded: an earlier write of the sequence was not applied.
	ErrSequenceEnded = errors.New("an earlier write of the sequence was not applied")
)

// ConflictError is the error of a write that cannot be applied: an op deletes a missing
// tuple, creates an existing one or a second one of a node, or a filter of Absent matches.
type ConflictError struct {
	Op     int   // index into Write.Ops, or -1
	Absent int   // index into Write.Absent, or -1
	Count  int   // for Absent: how many tuples match, counted to at most 1,000
	Tuple  Tuple // for Op: the missing or existing tuple
	Exists bool  // for Op: the tuple exists
	Second bool  // for Op: it would be the second tuple of its node; Tuple is the first
}

func (e *ConflictError) Error() string {
	if e.Op >= 0 && e.Second {
		return fmt.Sprintf("op %d: %s has the tuple %s", e.Op, e.Tuple.Node(), e.Tuple)
	}
	if e.Op >= 0 && e.Exists {
		return fmt.Sprintf("op %d: %s exists", e.Op, e.Tuple)
	}
	if e.Op >= 0 {
		return fmt.Sprintf("op %d: %s does not exist", e.Op, e.Tuple)
	}
	return fmt.Sprintf("precondition %d: %d tuples exist", e.Absent, e.Count)
}

// PreconditionError is the error of a write of which a precondition is not met.
type PreconditionError struct {
	Index int // into Write.Preconditions
	// Revision is the newest revision when the write was validated, of the history Epoch.
	Revision Revision
	Epoch    string
}

func (e *PreconditionError) Error() string {
	return fmt.Sprintf("precondition %d is not met at revision %d", e.Index, e.Revision)
}

// BusyError is the error of a write to a full queue.
type BusyError struct {
	Queue      string        // which queue is full: "resource" or "tenant"
	Limit      int           // the number of writes that it may have
	RetryAfter time.Duration // time until the next attempt
}

func (e *BusyError) Error() string {
	return fmt.Sprintf("%d writes of this %s are already queued", e.Limit, e.Queue)
}
