package tuplestore_test

import (
	"testing"

	"stonetown/tuplestore"
)

func TestContiguous(t *testing.T) {
	for _, c := range []struct {
		filter tuplestore.Filter
		want   bool
	}{
		{tuplestore.Filter{}, false},
		{tuplestore.Filter{ObjectType: "doc"}, false}, // registrations are in between
		{tuplestore.Filter{ObjectType: "doc", ObjectID: "1"}, true},
		{tuplestore.Filter{ObjectType: "doc", ObjectID: "1", Relation: "r"}, true},
		{tuplestore.Filter{ObjectType: "doc", ObjectID: "1", Relation: "r", SubjectType: "user"}, true},
		{tuplestore.Filter{ObjectType: "doc", ObjectID: "1", Relation: "r", SubjectType: "user", SubjectID: "u", SubjectRelation: "s"}, true},
		{tuplestore.Filter{ObjectType: "doc", ObjectID: "1", Relation: "r", SubjectRelation: "s"}, false},
		{tuplestore.Filter{ObjectType: "doc", ObjectID: "1", SubjectType: "user"}, false},
		{tuplestore.Filter{ObjectType: "doc", Relation: "r"}, false},
		{tuplestore.Filter{ObjectType: "doc", SubjectType: "user"}, false},
		{tuplestore.Filter{Relation: "r"}, false},
		{tuplestore.Filter{SubjectType: "user"}, true},
		{tuplestore.Filter{SubjectType: "user", SubjectID: "u"}, true},
		{tuplestore.Filter{SubjectType: "user", SubjectID: "u", ObjectType: "doc"}, true},
		{tuplestore.Filter{SubjectType: "user", SubjectID: "u", ObjectType: "doc", ObjectID: "1"}, true},
		{tuplestore.Filter{SubjectType: "user", SubjectID: "u", ObjectType: "doc", Relation: "r"}, false},
		{tuplestore.Filter{SubjectType: "user", SubjectID: "u", Relation: "r"}, false},
		{tuplestore.Filter{SubjectType: "user", SubjectID: "u", SubjectRelation: "s"}, false},
		{tuplestore.Filter{SubjectType: "user", Condition: "c"}, false},
		{tuplestore.Filter{SubjectType: "user", Presence: tuplestore.WithPresence}, false},
	} {
		if got := c.filter.Contiguous(); got != c.want {
			t.Errorf("%+v: %v, want %v", c.filter, got, c.want)
		}
	}
}
