package bench

import (
	"fmt"
	"iter"
	"math/rand/v2"

	"stonetown/schema"
	"stonetown/tuplestore"
)

// Shapes are small workloads, each of which is expensive in one way. Every question of a
// shape is about one of its users and drawn in the same way.
type shape struct {
	name   string
	types  []schema.Type
	tuples iter.Seq[tuplestore.Tuple]
	users  int
	ask    func(r *rand.Rand, user int) Question
}

func (s *shape) Name() string                             { return s.name }
func (s *shape) Types() []schema.Type                     { return s.types }
func (s *shape) Tuples(yield func(tuplestore.Tuple) bool) { s.tuples(yield) }

func (s *shape) Questioner(seed, worker uint64) Questioner {
	return &shapeQuestioner{s, rand.New(rand.NewPCG(seed, worker))}
}

type shapeQuestioner struct {
	shape *shape
	rand  *rand.Rand
}

func (q *shapeQuestioner) Next() Question { return q.shape.ask(q.rand, q.rand.IntN(q.shape.users)) }

func (q *shapeQuestioner) Batch(size int) []Question {
	user := q.rand.IntN(q.shape.users)
	batch := make([]Question, size)
	for i := range batch {
		batch[i] = q.shape.ask(q.rand, user)
	}
	return batch
}

func asSubject(o tuplestore.Object, relation string) tuplestore.Subject {
	return tuplestore.Subject{Type: o.Type, ID: o.ID, Relation: relation}
}

// drive is folders in folders, which users and groups may view.
func drive() []schema.Type { return NewDocs().Types()[:1] }

// Chain is 1,000 folders, each at the end of a chain of folders of the given depth. Half of
// the users may view the contents of a chain, because they may view its first folder.
func Chain(depth int) Workload {
	const chains, users = 1000, 1000
	at := func(chain, level int) tuplestore.Object {
		return object("folder", fmt.Sprintf("c%d-%d-", depth, chain), level)
	}
	return &shape{
		name: fmt.Sprintf("chain-%d", depth), types: drive(), users: users,
		tuples: func(yield func(tuplestore.Tuple) bool) {
			for c := range chains {
				for level := range depth {
					if !yield(tuplestore.Tuple{Object: at(c, level+1), Relation: "parent", Subject: asSubject(at(c, level), "")}) {
						return
					}
				}
				for i := range 5 { // five of the ten users whose number ends as the chain's does
					if !yield(tuplestore.Tuple{Object: at(c, 0), Relation: "viewer", Subject: user((c + 100*i) % users)}) {
						return
					}
				}
			}
		},
		ask: func(r *rand.Rand, u int) Question {
			c := (u + 100*r.IntN(10)) % chains
			apart := (u - c + users) % users
			return Question{user(u), at(c, depth), "view", apart%100 == 0 && apart/100 < 5}
		},
	}
}

// NestedGroups is 500 chains of nested groups of the given depth, with a user in the
// innermost and a folder that the outermost may view.
func NestedGroups(depth int) Workload {
	const towers = 500
	at := func(tower, level int) tuplestore.Object {
		return object("team", fmt.Sprintf("t%d-", tower), level)
	}
	team := schema.Type{Name: "team", Relations: []schema.Relation{{Name: "member", Subjects: []schema.SubjectType{{Type: schema.UserType}, {Type: "team", Relation: "member"}}}}}
	folder := schema.Type{Name: "box", Relations: []schema.Relation{{Name: "viewer", Subjects: []schema.SubjectType{{Type: "team", Relation: "member"}}}}}
	return &shape{
		name: fmt.Sprintf("nested-groups-%d", depth), types: []schema.Type{team, folder}, users: towers,
		tuples: func(yield func(tuplestore.Tuple) bool) {
			for t := range towers {
				ok := yield(tuplestore.Tuple{Object: object("box", "b", t), Relation: "viewer", Subject: asSubject(at(t, 0), "member")}) &&
					yield(tuplestore.Tuple{Object: at(t, depth), Relation: "member", Subject: user(t)})
				for level := range depth {
					ok = ok && yield(tuplestore.Tuple{Object: at(t, level), Relation: "member", Subject: asSubject(at(t, level+1), "member")})
				}
				if !ok {
					return
				}
			}
		},
		ask: func(r *rand.Rand, u int) Question {
			t := (u + r.IntN(2)) % towers
			return Question{user(u), object("box", "b", t), "view", t == u}
		},
	}
}

// Group is one group with the given number of members, which may view 1,000 folders. Half
// of the users of questions are members.
func Group(members int) Workload {
	const folders = 1000
	all := object(schema.GroupType, "everyone", 0)
	return &shape{
		name: fmt.Sprintf("group-%d", members), types: drive(), users: 2 * members,
		tuples: func(yield func(tuplestore.Tuple) bool) {
			for u := range members {
				if !yield(tuplestore.Tuple{Object: all, Relation: schema.GroupMember, Subject: user(2 * u)}) {
					return
				}
			}
			for f := range folders {
				if !yield(tuplestore.Tuple{Object: object("folder", "open", f), Relation: "viewer", Subject: asSubject(all, schema.GroupMember)}) {
					return
				}
			}
		},
		ask: func(r *rand.Rand, u int) Question {
			return Question{user(u), object("folder", "open", r.IntN(folders)), "view", u%2 == 0}
		},
	}
}

// Diamond is 20 folders, each with the given number of parents, all of which have one
// common parent, which one user in two may view: many paths between the same two folders.
func Diamond(width int) Workload {
	const diamonds, users = 20, 40
	return &shape{
		name: fmt.Sprintf("diamond-%d", width), types: drive(), users: users,
		tuples: func(yield func(tuplestore.Tuple) bool) {
			for d := range diamonds {
				bottom, top := object("folder", "bottom", d), object("folder", "top", d)
				ok := true
				for w := range width {
					middle := object("folder", fmt.Sprintf("m%d-", d), w)
					ok = ok && yield(tuplestore.Tuple{Object: bottom, Relation: "parent", Subject: asSubject(middle, "")}) &&
						yield(tuplestore.Tuple{Object: middle, Relation: "parent", Subject: asSubject(top, "")})
				}
				for u := 0; u < users; u += 2 {
					ok = ok && yield(tuplestore.Tuple{Object: top, Relation: "viewer", Subject: user(u)})
				}
				if !ok {
					return
				}
			}
		},
		ask: func(r *rand.Rand, u int) Question {
			return Question{user(u), object("folder", "bottom", r.IntN(diamonds)), "view", u%2 == 0}
		},
	}
}

// Exclusions is 10,000 reports. A user may read a report if the user is in the audience of
// its section and has signed for it, and is not barred from it.
func Exclusions() Workload {
	const reports, sections, users = 10_000, 100, 1000
	people := []schema.SubjectType{{Type: schema.UserType}}
	types := []schema.Type{
		{Name: "section", Relations: []schema.Relation{{Name: "audience", Subjects: people}}},
		{Name: "report", Relations: []schema.Relation{
			{Name: "section", Subjects: []schema.SubjectType{{Type: "section"}}},
			{Name: "signed", Subjects: people},
			{Name: "barred", Subjects: people},
			{Name: "reader", Rewrites: []schema.Rewrite{{
				Kind: schema.Exclusion,
				Base: &schema.Rewrite{Kind: schema.Intersection, Children: []schema.Rewrite{
					{Kind: schema.TupleToUserset, Tupleset: "section", Computed: "audience"},
					{Kind: schema.Computed, Relation: "signed"},
				}},
				Subtract: &schema.Rewrite{Kind: schema.Computed, Relation: "barred"},
			}}},
		}},
	}
	inAudience := func(u, section int) bool { return u%sections != section }
	signed := func(u, report int) bool { return u%3 == report%3 }
	barred := func(u, report int) bool { return u%7 == report%7 }
	near := func(report, i int) int { return (report + i) % users } // the users that tuples of a report name
	return &shape{
		name: "exclusions", types: types, users: users,
		tuples: func(yield func(tuplestore.Tuple) bool) {
			ok := true
			for s := range sections {
				for u := range users {
					if inAudience(u, s) {
						ok = ok && yield(tuplestore.Tuple{Object: object("section", "s", s), Relation: "audience", Subject: user(u)})
					}
				}
			}
			for n := range reports {
				report := object("report", "r", n)
				ok = ok && yield(tuplestore.Tuple{Object: report, Relation: "section", Subject: asSubject(object("section", "s", n%sections), "")})
				for i := range 10 {
					u := near(n, i)
					if signed(u, n) {
						ok = ok && yield(tuplestore.Tuple{Object: report, Relation: "signed", Subject: user(u)})
					}
					if barred(u, n) {
						ok = ok && yield(tuplestore.Tuple{Object: report, Relation: "barred", Subject: user(u)})
					}
				}
				if !ok {
					return
				}
			}
		},
		ask: func(r *rand.Rand, u int) Question {
			n := r.IntN(reports)
			if r.IntN(2) == 0 { // one whose tuples name the user
				n = (u-r.IntN(10)+users)%users + users*r.IntN(reports/users)
			}
			isNear := (u-near(n, 0)+users)%users < 10
			return Question{
				user(u), object("report", "r", n), "reader",
				isNear && inAudience(u, n%sections) && signed(u, n) && !barred(u, n),
			}
		},
	}
}
