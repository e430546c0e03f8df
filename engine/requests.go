package engine

import (
	"context"
	"time"

	"stonetown/engine/internal/denial"
	"stonetown/engine/internal/eval"
	"stonetown/schema"
	"stonetown/tuplestore"
)

// Consistency is the required state of an answer.
type Consistency struct {
	Mode  ConsistencyMode
	Token string // AtLeast, Exactly, AsOf: as returned by a write or an earlier request
	// Instant is of the mode AsOf.
	Instant time.Time
	// Assume has changes to assume to the state, if not nil.
	Assume *Assumption
}

// Following returns the consistency of a later page of an answer, whose revision a token names.
func (c Consistency) Following(token string) Consistency {
	if c.Mode != AsOf { // with the instant of the first page
		c.Mode = Exactly
	}
	c.Token = token
	return c
}

// ConsistencyMode is a level of freshness.
type ConsistencyMode int

const (
	// Full reflects every write acknowledged, anywhere, before the request.
	Full ConsistencyMode = iota
	// AtLeast reflects every write up to the token's.
	AtLeast
	// MinimizeLatency answers from the state in this process, if it was read within
	// Config.MaxStaleness.
	MinimizeLatency
	// Exactly answers from the token's revision, however old, so that the pages of a list
	// are consistent. Tuples that have expired since then do not hold.
	Exactly
	// AsOf gives the answer of an earlier time. With an Instant it is that of the newest
	// revision committed at or before the instant, by which tuples expire; an instant is
	// the end of its millisecond, because timestamps are shown without the rest. With a
	// Token it is that of the revision, and tuples expire by the time of its commit, so that
	// it is always the same. With both, as for the pages of a list, the token names the
	// revision. Errors are a [*PastError].
	AsOf
)

// Query asks whether a subject may perform an action on a resource.
type Query struct {
	Resource tuplestore.Object
	// Action is mapped to a relation by the resource's type: its own actions,
	// then the convention, then the relation of the same name.
	Action string
	// Subject is the query's own subject. Nil: that of the request.
	Subject *tuplestore.Subject
}

// CheckRequest asks several queries, answered from one revision: about one subject or, for
// queries with subjects of their own, about several.
type CheckRequest struct {
	// Subject is an object, a userset, or the wildcard type:*. The wildcard represents a
	// subject of the type that no tuple names: only tuples with the subject type:* include
	// it, and only those exclude it. A list of subjects names the wildcard exactly where a
	// check allows it. It may be empty if each query has a subject of its own.
	Subject     tuplestore.Subject
	Queries     []Query
	Consistency Consistency
	// Context has the values of condition parameters that are not stored with tuples:
	// decoded JSON (see [condition.Condition.Evaluate]).
	Context map[string]any
	// Contextual are relations that hold for this request only, at most
	// [MaxContextual]; their resources count as registered.
	Contextual []WriteOp
	// Reasons asks for the path that proved each allowed answer.
	Reasons bool
	// Denials asks why each denied answer is denied. All explanations of a request have one
	// budget.
	Denials bool
}

// Decision is the answer to one [Query].
type Decision struct {
	Allowed bool
	// Err is why the query is invalid ([*UnknownTypeError], [*UndefinedRelationError],
	// [*ResourceNotFoundError], [*InvalidSubjectError] of its own subject) or has no answer
	// ([*ConditionError], [*NegativeCycleError]); Allowed is then false.
	Err     error
	Reasons []Reason
	// Until is when the first of the relations in Reasons expires; zero: none expires, or
	// Reasons was not requested.
	Until time.Time
	// Denial is what would have to change for a denied answer; nil if that was not requested.
	Denial *Denial
}

// The explanation of a denied answer.
type (
	Denial           = denial.Denial
	Way              = denial.Way
	MissingRelation  = denial.Relation
	AppliedExclusion = denial.Exclusion
)

// Why a relation does not hold that is part of an explanation.
const (
	RelationAbsent     = denial.Absent
	RelationExpired    = denial.Expired
	ConditionUnmet     = denial.Unmet
	ConditionUndecided = denial.Undecided
)

// Reason is one step of a proof, from the resource towards the subject.
type Reason = eval.Reason

// CheckResponse is the answer to a [CheckRequest], decisions in request order.
type CheckResponse struct {
	Decisions []Decision
	// Token names the revision that the answers reflect.
	Token string
	// Deprecating are the types of the revision if any of them is deprecated, or one of their
	// relations, else nil.
	Deprecating *schema.Compiled
	// TokenIgnored: the request's token belongs to another history, because a backup was
	// restored since. The answer is fully consistent instead.
	TokenIgnored bool
}

// Origin is the origin of a change, with the rows and events that commit with it.
type Origin struct {
	Actor string // recorded as the creator: a user ID or a client ID
	// CommitID makes the change idempotent: a second request with the same ID changes
	// nothing and has the result of the first. Empty: the change is not idempotent.
	CommitID string
	// Also joins the caller's rows to the transaction; see
	// [tuplestore.Write.Also].
	Also func(ctx context.Context, tx *tuplestore.Tx) error
	// AlsoOf takes the place of Also for a change of one resource. It gets the name by which data
	// about the resource is stored, which a rename of its type does not change; see [Registration].
	AlsoOf func(ctx context.Context, tx *tuplestore.Tx, stored tuplestore.Object) error
	// Alone: Also sees every change before this one; see [tuplestore.Write.Alone].
	Alone bool
	// Attach queues statements that commit with the change; see
	// [tuplestore.Write.Attach]. The result's statuses begin with those of the
	// request's own ops.
	Attach func(r tuplestore.Result, b *tuplestore.Batch)
	// Event returns the text of the event of the change; see [tuplestore.Write.Event].
	Event func(r tuplestore.Result) string
	// AttachTypes is Attach for [Engine.ApplyTypes], with the changes that the write makes.
	AttachTypes func(r tuplestore.Result, changes []TypeChange, b *tuplestore.Batch)
}

// WriteRequest changes relations. It is applied whole or not at all.
type WriteRequest struct {
	Origin
	Ops []WriteOp
	// Preconditions must all be met before the write. Their filters have the first fields of
	// one of two orders: resource type and ID, relation, subject type, ID and relation; or
	// subject type and ID, resource type and ID, relation, subject relation.
	Preconditions []Precondition
	// Request, if not empty, is compared instead of Ops to recognize a request that is sent again
	// under its CommitID; see [tuplestore.Write.Request].
	Request string
	// LikelyNew: the relations probably do not exist; see [tuplestore.Write.LikelyNew].
	LikelyNew bool
	// Register registers further resources, besides those of the new relations.
	Register []tuplestore.Object
	// Turn, if not nil, is the place of the write in a sequence; see [tuplestore.Write.Turn]. A write
	// with a turn fails with [tuplestore.ErrSchemaChanged] where another one is validated again.
	Turn *tuplestore.Turn
}

// Precondition requires that relations exist that a filter selects, or that none does.
// Relations that have expired do not exist.
type Precondition struct {
	Filter    RelationFilter
	MustExist bool
}

// WriteOp creates or deletes one relation. To create a relation that exists replaces its
// expiry and condition. To create a second one where the resource's type allows one replaces the
// first, or fails with [*SingleValuedError], as the type has it.
type WriteOp struct {
	Delete bool
	// IfPresent: to delete a relation that does not exist is no error.
	IfPresent bool
	// New: to create a relation that exists, and has not expired, is an error.
	New      bool
	Resource tuplestore.Object
	Relation string
	Subject  tuplestore.Subject
	// The qualifier of a new relation: its expiry (the zero time: never), a condition of
	// the resource's type, and values for the condition's parameters as a JSON object.
	// Deletions ignore them.
	ExpiresAt time.Time
	Condition string
	Context   []byte
}

// WriteResponse is the outcome of a [WriteRequest].
type WriteResponse struct {
	// Statuses has one entry per op: created, existed, updated, replaced or deleted.
	Statuses []tuplestore.Status
	// Counts has one entry per op: how many relations it changed, 0 or 1, and 2 if one replaced
	// another.
	Counts []int
	// Token names the first revision that reflects the write.
	Token string
}
