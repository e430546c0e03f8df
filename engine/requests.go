package engine

import (
	"context"

	"stonetown/internal/sqldb"
	"stonetown/tuplestore"
)

// Consistency says how fresh the data behind an answer must be.
type Consistency struct {
	Mode  ConsistencyMode
	Token string // AtLeast: as returned by a write or an earlier check
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
	Subject     tuplestore.Subject
	Queries     []Query
	Consistency Consistency
	// Reasons asks for the path that proved each allowed answer.
	Reasons bool
}

// Decision is the answer to one [Query].
type Decision struct {
	Allowed bool
	// Err is why the query has no meaning ([*UnknownTypeError],
	// [*UndefinedRelationError], [*ResourceNotFoundError]); Allowed is then
	// false.
	Err     error
	Reasons []Reason
}

// Reason is one step of a proof, from the resource towards the subject.
type Reason struct {
	// Via is the relation that the step used, written as
	// type:id#relation, followed by @subject where a tuple was used.
	Via     string
	Rewrite string // the kind of rewrite: this, computed, tuple_to_userset, ...
}

// CheckResponse is the answer to a [CheckRequest], decisions in request order.
type CheckResponse struct {
	Decisions []Decision
	// Token names the revision that the answers reflect.
	Token string
	// TokenIgnored: the request's token belonged to another line of history
	// (a backup was restored since), so the answer is fully consistent instead.
	TokenIgnored bool
}

// WriteRequest changes relations. It is applied whole or not at all.
type WriteRequest struct {
	Ops   []WriteOp
	Actor string // recorded as the creator: a user ID or a client ID
	// Also joins the caller's rows to the transaction; see
	// [tuplestore.Write.Also].
	Also func(ctx context.Context, tx *sqldb.Tx) error
}

// WriteOp creates or deletes one relation.
type WriteOp struct {
	Delete   bool
	Resource tuplestore.Object
	Relation string
	Subject  tuplestore.Subject
}

// WriteResponse is the outcome of a [WriteRequest].
type WriteResponse struct {
	// Statuses has one entry per op: created, existed or deleted.
	Statuses []tuplestore.Status
	// Token names the first revision that reflects the write.
	Token string
}
