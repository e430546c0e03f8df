package storetest

import (
	"math/rand/v2"
	"slices"
	"strconv"

	"stonetown/tuplestore"
)

// largeCases are writes of so many tuples that a store may write them in another way.
var largeCases = []testCase{
	{"a large write equals small ones", func(f *fixture) {
		r := rand.New(rand.NewPCG(1, 2))
		small := f.in("small")
		for round, likelyNew := range []bool{true, true, false, true} {
			var ops []tuplestore.Op
			for range 3000 {
				t := viewer(strconv.Itoa(round*500+r.IntN(1000)), strconv.Itoa(r.IntN(10)))
				op := create(t)
				if r.IntN(5) == 0 {
					op = createOn(tuplestore.Qualifier{ExpiresAt: r.Int64N(3), Condition: "c", Context: `{"x":"a\t\\\n"}`}, t)
				}
				if round == 3 && r.IntN(5) == 0 {
					op = tuplestore.Op{Kind: tuplestore.DeleteExisting, Tuple: t}
				}
				ops = append(ops, op)
			}
			for i := range 1000 {
				ops = append(ops, create(tuplestore.Presence(tuplestore.Object{Type: "doc", ID: strconv.Itoa(round*500 + i)})))
			}
			large := f.write(tuplestore.Write{Ops: ops, LikelyNew: likelyNew, Actor: "loader", CommitID: strconv.Itoa(round)})
			var statuses []tuplestore.Status
			for part := range slices.Chunk(ops, 50) {
				statuses = append(statuses, small.write(tuplestore.Write{Ops: part, Actor: "loader"}).Statuses...)
			}
			f.same("statuses", statuses, large.Statuses)
			f.same("again", large, f.write(tuplestore.Write{Ops: ops, LikelyNew: likelyNew, Actor: "loader", CommitID: strconv.Itoa(round)}))
			if want := tuplestore.Revision(round + 1); large.Revision != want {
				f.Fatalf("revision %d, want %d", large.Revision, want)
			}
			facts := func(s tuplestore.Snapshot) map[tuplestore.Tuple]tuplestore.Qualifier {
				facts := map[tuplestore.Tuple]tuplestore.Qualifier{}
				for _, r := range f.scan(s, everything) {
					facts[r.Tuple] = r.Qualifier
				}
				return facts
			}
			f.same("tuples", facts(small.newest()), facts(f.newest()))
			// The changelog leads from the state before to this one.
			commits := f.changes(large.Revision-1, 10)
			if len(commits) != 1 {
				f.Fatalf("%d commits, want 1", len(commits))
			}
			state := facts(f.store.Snapshot(f.tenant, large.Revision-1))
			for _, c := range commits[0].Changes {
				if delete(state, c.Tuple); !c.Deleted {
					state[c.Tuple] = c.Qualifier
				}
			}
			f.same("state by the changelog", facts(f.newest()), state)
		}
	}},
}
