package engine

import (
	"errors"
	"fmt"
	"strings"

	"stonetown/engine/internal/eval"
	"stonetown/engine/internal/view"
	"stonetown/engine/internal/work"
	"stonetown/tuplestore"
)

var (
	// ErrTokenInvalid: the consistency token was not issued by this service for this
	// tenant.
	ErrTokenInvalid = errors.New("consistency token is not valid for this tenant")
	// ErrTokenUnknown: the token names a revision after the end of the tenant's history.
	ErrTokenUnknown = errors.New("consistency token is ahead of the tenant's history")
	// ErrTokenExpired: the token names a revision that has been collected, or another
	// history.
	ErrTokenExpired = errors.New("consistency token is older than the retained history")
)

// PastError is the error of the token or the instant of a question about the past: that of a
// token, ErrTokenExpired for an instant before the retained history, or ErrInstantInFuture.
type PastError struct{ Err error }

// ErrInstantInFuture: the instant has not passed.
var ErrInstantInFuture = errors.New("instant has not passed")

func (e *PastError) Error() string {
	if errors.Is(e.Err, ErrTokenExpired) {
		return "the point in time is before the retained history"
	}
	return e.Err.Error()
}
func (e *PastError) Unwrap() error { return e.Err }

// UnknownTypeError: the resource type is not defined.
type UnknownTypeError struct{ Type string }

func (e *UnknownTypeError) Error() string {
	return fmt.Sprintf("resource type %q is not defined", e.Type)
}

// UndefinedRelationError: the type has no such relation, or the action maps to
// none.
type UndefinedRelationError struct{ Type, Relation string }

func (e *UndefinedRelationError) Error() string {
	return fmt.Sprintf("resource type %q has no relation for %q", e.Type, e.Relation)
}

// ResourceNotFoundError: no such resource is registered.
type ResourceNotFoundError struct{ Resource tuplestore.Object }

func (e *ResourceNotFoundError) Error() string {
	return fmt.Sprintf("resource %s does not exist", e.Resource)
}

// RelationExistsError: the relation to be created exists.
type RelationExistsError struct{ Tuple tuplestore.Tuple }

func (e *RelationExistsError) Error() string {
	return fmt.Sprintf("relation %s exists", e.Tuple)
}

// SingleValuedError: the resource has another subject in a relation that takes one.
type SingleValuedError struct{ Tuple tuplestore.Tuple } // the existing one

func (e *SingleValuedError) Error() string {
	return fmt.Sprintf("relation %s takes one subject and has another", e.Tuple.Node())
}

// FilterError: no index serves the filter, so it would read more relations than it selects.
type FilterError struct {
	Field   string // of the API's filter: the one at fault; empty: all together
	Code    string // a stable word: required, conflict, not_indexed
	Message string
}

func (e *FilterError) Error() string { return strings.TrimSpace(e.Field + " " + e.Message) }

// InvalidPreconditionError is the error of one precondition of a write.
type InvalidPreconditionError struct {
	Index int
	Err   error
}

func (e *InvalidPreconditionError) Error() string {
	return fmt.Sprintf("precondition %d: %v", e.Index, e.Err)
}
func (e *InvalidPreconditionError) Unwrap() error { return e.Err }

// PreconditionError: a precondition of a write is not met.
type PreconditionError struct {
	Index int
	Token string // names the revision by which it was judged
}

func (e *PreconditionError) Error() string {
	return fmt.Sprintf("precondition %d is not met", e.Index)
}

// RelationNotFoundError: the relation to be deleted does not exist.
type RelationNotFoundError struct{ Tuple tuplestore.Tuple }

func (e *RelationNotFoundError) Error() string {
	return fmt.Sprintf("relation %s does not exist", e.Tuple)
}

// InvalidSubjectError: a relation or a check cannot name this subject.
type InvalidSubjectError struct {
	Subject tuplestore.Subject
	// Reason is a stable word: unknown_type, id_length, wildcard,
	// type_not_allowed, relation_undefined, relation_not_direct.
	Reason  string
	Message string
}

func (e *InvalidSubjectError) Error() string { return e.Message }

// InvalidResourceError: the resource's ID is not valid.
type InvalidResourceError struct{ Message string }

func (e *InvalidResourceError) Error() string { return e.Message }

// UnknownConditionError: the resource type defines no such condition.
type UnknownConditionError struct{ Type, Condition string }

func (e *UnknownConditionError) Error() string {
	return fmt.Sprintf("resource type %q has no condition %q", e.Type, e.Condition)
}

// InvalidQualifierError: the expiry or the condition of a new relation is not valid.
type InvalidQualifierError struct {
	Field   string // expires_at or context
	Message string
}

func (e *InvalidQualifierError) Error() string { return e.Message }

// Errors of questions that evaluation cannot answer.
type (
	// ConditionError: the answer depends on a condition that could not be decided.
	ConditionError = view.ConditionError
	// NegativeCycleError: the answer depends on its own negation.
	NegativeCycleError = eval.NegativeCycleError
	// BudgetError: the answer takes more work than one request may cause.
	BudgetError = work.BudgetError
)

// TooManyContextualError: the request has more contextual tuples than allowed.
type TooManyContextualError struct{ Count int }

func (e *TooManyContextualError) Error() string {
	return fmt.Sprintf("%d contextual tuples, at most %d are allowed", e.Count, MaxContextual)
}

// TypeInUseError: tuples exist that the changed or deleted type would make
// meaningless.
type TypeInUseError struct {
	Type      string // the type whose tuples these are
	Relation  string // empty when the whole type or one of its conditions is in use
	Condition string // the condition in use, if that is what would change
	Crowded   bool   // these are the tuples of resources with several, of which one is allowed
	Count     int    // how many, counted to at most 1,000
}

func (e *TypeInUseError) Error() string {
	if e.Condition != "" {
		return fmt.Sprintf("condition %q of resource type %q is in use by %d tuples", e.Condition, e.Type, e.Count)
	}
	if e.Crowded {
		return fmt.Sprintf("relation %q of resource type %q has several subjects in some resources, %d tuples in all", e.Relation, e.Type, e.Count)
	}
	if e.Relation == "" {
		return fmt.Sprintf("resource type %q is in use by %d tuples", e.Type, e.Count)
	}
	return fmt.Sprintf("relation %q of resource type %q is in use by %d tuples", e.Relation, e.Type, e.Count)
}

// NameInUseError: data outside of the tuples has a name that would change.
type NameInUseError struct {
	Type, Relation string            // Relation is empty if the name of the type is in use
	By             tuplestore.Object // what uses it
}

func (e *NameInUseError) Error() string {
	name := e.Type
	if e.Relation != "" {
		name += "#" + e.Relation
	}
	return fmt.Sprintf("%s has the name %s, which would change", e.By, name)
}

// OpError is the error of one op of a write.
type OpError struct {
	Index int
	Err   error
}

func (e *OpError) Error() string { return fmt.Sprintf("operation %d: %v", e.Index, e.Err) }
func (e *OpError) Unwrap() error { return e.Err }

// ContextualError is the error of one contextual tuple of a request.
type ContextualError struct {
	Index int
	Err   error
}

func (e *ContextualError) Error() string {
	return fmt.Sprintf("contextual tuple %d: %v", e.Index, e.Err)
}
func (e *ContextualError) Unwrap() error { return e.Err }
