package apply

import (
	"crypto/sha256"
	"encoding/binary"

	"stonetown/tuplestore"
)

// Resource returns the key by which w is queued: the object of its first op, or a common
// key for all writes that do not begin with an object.
func Resource(w tuplestore.Write) string {
	if len(w.Ops) == 0 {
		return ""
	}
	op := w.Ops[0]
	if op.Kind == tuplestore.DeleteMatching {
		return tuplestore.Object{Type: op.Match.ObjectType, ID: op.Match.ObjectID}.String()
	}
	return op.Tuple.Object.String()
}

// Fingerprint returns a SHA-256 hash of the contents of w except its commit ID, Also and
// Attach. It distinguishes a write that is sent again from another one with the same commit
// ID. It is stored, so its encoding must not change.
func Fingerprint(w tuplestore.Write) []byte {
	// Every value is written with its length or at a fixed width, so that no
	// two writes have the same encoding.
	var b []byte
	number := func(n int) { b = binary.AppendVarint(b, int64(n)) }
	text := func(values ...string) {
		for _, s := range values {
			number(len(s))
			b = append(b, s...)
		}
	}
	filter := func(f tuplestore.Filter) {
		text(f.ObjectType, f.ObjectID, f.Relation, f.SubjectType, f.SubjectID, f.SubjectRelation, f.Condition)
		number(int(f.Presence))
		number(present(f.SubjectsOutside != nil))
		number(len(f.SubjectsOutside))
		for _, s := range f.SubjectsOutside {
			text(s.Type, s.Relation)
			number(present(s.Wildcard))
		}
		number(present(f.Newest) | present(f.Crowded)<<1)
	}

	text(w.Actor)
	ifSchema, absent, ops, putSchema := w.IfSchema, w.Absent, w.Ops, w.PutSchema
	if w.Request != "" {
		ifSchema, absent, ops, putSchema = nil, nil, nil, nil
	}
	number(present(ifSchema != nil))
	if ifSchema != nil {
		number(int(*ifSchema))
	}
	number(len(absent))
	for _, f := range absent {
		filter(f)
	}
	if w.Request != "" {
		number(-1) // not a number of ops
		text(w.Request)
	} else {
		number(len(ops))
	}
	for _, op := range ops {
		number(int(op.Kind) | int(op.Others)<<8)
		if op.Kind == tuplestore.DeleteMatching {
			filter(op.Match)
			continue
		}
		t := op.Tuple
		text(t.Object.Type, t.Object.ID, t.Relation, t.Subject.Type, t.Subject.ID, t.Subject.Relation)
		b = binary.AppendVarint(b, op.Qualifier.ExpiresAt)
		text(op.Qualifier.Condition, op.Qualifier.Context)
	}
	number(present(putSchema != nil))
	text(string(putSchema))
	for _, p := range w.Preconditions {
		filter(p.Filter)
		number(present(p.Exists))
	}

	sum := sha256.Sum256(b)
	return sum[:]
}

func present(b bool) int {
	if b {
		return 1
	}
	return 0
}
