package eval

import (
	"fmt"
	"time"

	"stonetown/tuplestore"
)

// Reason is one step of a proof, from the resource towards the subject.
type Reason struct {
	// Via is the relation that the step used, written as type:id#relation, followed by
	// @subject if the step used a tuple.
	Via     string
	Rewrite string // the kind of rewrite: this, computed, tuple_to_userset, ...
	Text    string // the step in a sentence
}

func reason(via fmt.Stringer, rewrite, text string, args ...any) Reason {
	return Reason{Via: via.String(), Rewrite: rewrite, Text: fmt.Sprintf(text, args...)}
}

// IdentityReason: the subject is the userset itself.
func IdentityReason(set tuplestore.Node) Reason {
	return reason(set, "this", "%s is the set of its own %ss", set, set.Relation)
}

// SelfReason: the subject is the resource itself.
func SelfReason(n tuplestore.Node) Reason {
	self := tuplestore.Subject{Type: n.Object.Type, ID: n.Object.ID}
	return reason(tuplestore.Tuple{Object: n.Object, Relation: n.Relation, Subject: self}, "self", "%s is %s of itself", n.Object, n.Relation)
}

// TupleReason: a tuple names the subject or its wildcard. q is nil for an unqualified tuple.
func TupleReason(t tuplestore.Tuple, q *tuplestore.Qualifier) Reason {
	subject := t.Subject.String()
	if t.Subject.ID == tuplestore.Wildcard {
		subject = "every " + t.Subject.Type
	}
	return reason(t, "this", "%s is %s of %s%s", subject, t.Relation, t.Object, terms(q))
}

// UsersetReason: a tuple names a userset that contains the subject.
func UsersetReason(t tuplestore.Tuple, q *tuplestore.Qualifier) Reason {
	return reason(t, "this", "every %s of %s is %s of %s%s", t.Subject.Relation, t.Subject.Object(), t.Relation, t.Object, terms(q))
}

// ArrowReason: a tuple links to an object whose relation contains the subject, which makes
// the subject a relation here.
func ArrowReason(link tuplestore.Tuple, q *tuplestore.Qualifier, computed, relation string) Reason {
	return reason(link, "tuple_to_userset", "%s is %s of %s, and every %s of it is %s here%s",
		link.Subject, link.Relation, link.Object, computed, relation, terms(q))
}

// EveryLinkReason: a relation of every object that a tupleset links to contains the subject.
func EveryLinkReason(tupleset tuplestore.Node, computed, relation string) Reason {
	return reason(tupleset, "tuple_to_userset", "the subject is %s of every %s of %s, which makes it %s here",
		computed, tupleset.Relation, tupleset.Object, relation)
}

// ComputedReason: one relation of the object implies another.
func ComputedReason(from tuplestore.Node, to string) Reason {
	return reason(from, "computed", "%s of %s implies %s", from.Relation, from.Object, to)
}

// IntersectionReason: the reasons that follow are those of the operands.
func IntersectionReason(n tuplestore.Node) Reason {
	return reason(n, "intersection", "%s of %s requires all of the following", n.Relation, n.Object)
}

// ExclusionReason: the subtracted side does not contain the subject.
func ExclusionReason(n tuplestore.Node) Reason {
	return reason(n, "exclusion", "the subject is not excluded from %s of %s", n.Relation, n.Object)
}

// terms describes the expiry and the condition of a tuple that holds.
func terms(q *tuplestore.Qualifier) string {
	if q == nil {
		return ""
	}
	text := ""
	if q.ExpiresAt != 0 {
		text = " until " + expiry(q).Format(time.RFC3339)
	}
	if q.Condition != "" {
		text += ", since the condition " + q.Condition + " is met"
	}
	return text
}

// expiry returns when a tuple expires.
func expiry(q *tuplestore.Qualifier) time.Time { return time.UnixMicro(q.ExpiresAt).UTC() }

// Earliest returns the earlier of two times of which the zero time is none, where the second
// is the expiry of a tuple; q is nil for an unqualified tuple.
func Earliest(until time.Time, q *tuplestore.Qualifier) time.Time {
	if q == nil || q.ExpiresAt == 0 {
		return until
	}
	if at := expiry(q); until.IsZero() || at.Before(until) {
		return at
	}
	return until
}
