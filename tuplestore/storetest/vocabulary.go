package storetest

import (
	"slices"

	"stonetown/tuplestore"
)

// everything selects all tuples of a tenant.
var everything = tuplestore.Filter{Presence: tuplestore.WithPresence}

func presence(objectType, id string) tuplestore.Tuple {
	return tuplestore.Presence(tuplestore.Object{Type: objectType, ID: id})
}

// viewer is doc:ID#viewer@user:USER.
func viewer(doc, user string) tuplestore.Tuple {
	return related("doc", doc, "viewer", "user", user, "")
}

// related is object#relation@subject.
func related(objectType, objectID, relation, subjectType, subjectID, subjectRelation string) tuplestore.Tuple {
	return tuplestore.Tuple{
		Object:   tuplestore.Object{Type: objectType, ID: objectID},
		Relation: relation,
		Subject:  tuplestore.Subject{Type: subjectType, ID: subjectID, Relation: subjectRelation},
	}
}

func create(t tuplestore.Tuple) tuplestore.Op {
	return tuplestore.Op{Kind: tuplestore.Create, Tuple: t}
}

// createOn is create with a qualifier.
func createOn(qualifier tuplestore.Qualifier, t tuplestore.Tuple) tuplestore.Op {
	return tuplestore.Op{Kind: tuplestore.Create, Tuple: t, Qualifier: qualifier}
}

func remove(t tuplestore.Tuple) tuplestore.Op {
	return tuplestore.Op{Kind: tuplestore.Delete, Tuple: t}
}

func removeMatching(f tuplestore.Filter) tuplestore.Op {
	return tuplestore.Op{Kind: tuplestore.DeleteMatching, Match: f}
}

// expire deletes a tuple that ceased to hold at or before an instant.
func expire(t tuplestore.Tuple, at int64) tuplestore.Op {
	return tuplestore.Op{Kind: tuplestore.Expire, Tuple: t, Qualifier: tuplestore.Qualifier{ExpiresAt: at}}
}

func creations(tuples ...tuplestore.Tuple) []tuplestore.Op {
	ops := make([]tuplestore.Op, len(tuples))
	for i, t := range tuples {
		ops[i] = create(t)
	}
	return ops
}

func sorted(tuples []tuplestore.Tuple) []tuplestore.Tuple {
	return slices.SortedFunc(slices.Values(tuples), tuplestore.Tuple.Compare)
}

func compareFacts(a, b tuplestore.Fact) int { return a.Tuple.Compare(b.Tuple) }

func tuplesOf(records []tuplestore.Record) []tuplestore.Tuple {
	tuples := make([]tuplestore.Tuple, len(records))
	for i, r := range records {
		tuples[i] = r.Tuple
	}
	return tuples
}
