package engine

import (
	"context"
	"time"

	"stonetown/engine/internal/eval"
	"stonetown/internal/sqldb"
	"stonetown/schema"
	"stonetown/tuplestore"
)

// Consistency says how fresh the data behind an answer must be.
type Consistency struct {
	Mode  ConsistencyMode
	Token string // AtLeast, Exactly: as returned by a write or an earlier request
}

// ConsistencyMode is a level of freshness.
type ConsistencyMode int

const (
	// Full reflects every write acknowledged, anywhere, before the request.
	Full ConsistencyMode = iota
	// AtLeast reflects every write up to the token's.
	AtLeast
	// MinimizeLatency answers from what this process has, if it was brought up
	// to date within Config.MaxStaleness.
	MinimizeLatency
	// Exactly answers from the token's revision, however old, so that the pages
	// of a list belong together. Tuples that have expired since are gone all
	// the same.
	Exactly
)

// Query asks whether a subject may do something to a resource.
type Query struct {
	Resource tuplestore.Object
	// Action is mapped to a relation by the resource's type: its own actions,
	// then the convention, then the relation of the same name.
	Action string
}

// CheckRequest asks several queries about one subject, answered from one
// revision.
type CheckRequest struct {
	// Subject is an object, a userset, or the wildcard type:*. The last asks about
	// a subject of the type that no relation names: only relations to type:*
	// count for it, and only those take away from it. A list of subjects names
	// the wildcard exactly where a check allows it.
	Subject     tuplestore.Subject
	Queries     []Query
	Consistency Consistency
	// Context holds the values of condition parameters that the tuples do not
	// hold themselves: decoded JSON (see [condition.Condition.Evaluate]).
	Context map[string]any
	// Contextual are relations that hold for this request only, at most
	// [MaxContextual]; their resources count as registered.
	Contextual []WriteOp
	// Reasons asks for the path that proved each allowed answer.
	Reasons bool
}

// Decision is the answer to one [Query].
type Decision struct {
	Allowed bool
	// Err is why the query has no meaning ([*UnknownTypeError],
	// [*UndefinedRelationError], [*ResourceNotFoundError]) or no answer
	// ([*ConditionError], [*NegativeCycleError]); Allowed is then false.
	Err     error
	Reasons []Reason
	// Until is when the first of the relations in Reasons expires; zero: none does, or
	// no reasons were asked for.
	Until time.Time
}

// Reason is one step of a proof, from the resource towards the subject.
type Reason = eval.Reason

// CheckResponse is the answer to a [CheckRequest], decisions in request order.
type CheckResponse struct {
	Decisions []Decision
	// Token names the revision that the answers reflect.
	Token string
	// TokenIgnored: the request's token belonged to another line of history
	// (a backup was restored since), so the answer is fully consistent instead.
	TokenIgnored bool
}

// Origin says where a change comes from, and what is committed with it.
type Origin struct {
	Actor string // recorded as the creator: a user ID or a client ID
	// CommitID makes the change safe to send again: the second time it changes
	// nothing and answers as the first time. Empty: it is not.
	CommitID string
	// Also joins the caller's rows to the transaction; see
	// [tuplestore.Write.Also].
	Also func(ctx context.Context, tx *sqldb.Tx) error
	// Alone: Also sees every change before this one; see [tuplestore.Write.Alone].
	Alone bool
	// Attach queues statements that commit with the change; see
	// [tuplestore.Write.Attach]. The result's statuses begin with those of the
	// request's own ops.
	Attach func(r tuplestore.Result, b *sqldb.Batch)
	// AttachType is Attach for [Engine.PutType], which tells it the definition as it is
	// stored, and whether it is new.
	AttachType func(stored schema.Type, created bool, b *sqldb.Batch)
}

// WriteRequest changes relations. It is applied whole or not at all.
type WriteRequest struct {
	Origin
	Ops []WriteOp
	// Register makes resources known besides those that a new relation names.
	Register []tuplestore.Object
}

// WriteOp creates or deletes one relation. Creating one that exists on other
// qualifier replaces the qualifier.
type WriteOp struct {
	Delete bool
	// IfPresent: deleting a relation that is not there is no error. What goes are all
	// relations to the subject, usersets of it among them, so there must be none.
	IfPresent bool
	Resource  tuplestore.Object
	Relation  string
	Subject   tuplestore.Subject
	// The qualifier of a new relation: when it ceases to hold (the zero time:
	// never), a condition of the resource's type, and values for the condition's
	// parameters as a JSON object. They play no part in deleting.
	ExpiresAt time.Time
	Condition string
	Context   []byte
}

// WriteResponse is the outcome of a [WriteRequest].
type WriteResponse struct {
	// Statuses has one entry per op: created, existed, updated or deleted.
	Statuses []tuplestore.Status
	// Counts has one entry per op: how many relations it changed, 0 or 1.
	Counts []int
	// Token names the first revision that reflects the write.
	Token string
}
