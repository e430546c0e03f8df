package enginetest

import (
	"context"
	"fmt"
	"math/rand/v2"
	"reflect"
	"slices"
	"strings"
	"testing"

	"stonetown/engine"
	"stonetown/schema"
	"stonetown/tuplestore"
)

// TestProofs compares the lists of proofs with the oracle: of any part of the tuples, a check
// is allowed if and only if the tuples of one of the proofs are among them. The types have
// neither exclusions nor intersection arrows, of which that is not true; that such checks have
// a proof if and only if they are allowed is part of [TestAgreement].
func TestProofs(t *testing.T) {
	everywhere(t, func(t *testing.T, e *engine.Engine, _ tuplestore.Store) {
		randomly(t, func(t *testing.T, r *rand.Rand) {
			ctx := context.Background()
			several, skipped := 0, 0
			for round := range untilShown(max(10, *rounds/4), func() bool { return several == 0 }) {
				types := RandomTypes(r)
				for !isMonotone(types) {
					types = RandomTypes(r)
				}
				w := newTenantOf(ctx, t, e, r, fmt.Sprintf("tnt_%d", round), types)
				for range 12 {
					w.write(ctx, t)
				}
				for range 12 {
					switch n, all := w.compareProofs(ctx, t); {
					case !all:
						skipped++
					case n > 1:
						several++
					}
				}
				if t.Failed() {
					return
				}
			}
			t.Logf("%d checks with several proofs, %d with too many", several, skipped)
			if several == 0 {
				t.Error("no check has several proofs")
			}
		})
	})
}

// isMonotone reports whether more tuples never deny more.
func isMonotone(types []schema.Type) bool {
	var isAll func(rw schema.Rewrite) bool
	isAll = func(rw schema.Rewrite) bool { return rw.Mode == schema.All || slices.ContainsFunc(rw.Children, isAll) }
	for _, typ := range types {
		for _, r := range typ.Relations {
			if slices.ContainsFunc(r.Rewrites, isAll) {
				return false
			}
		}
	}
	return !hasExclusion(types)
}

func hasIntersection(types []schema.Type) bool {
	var isOne func(rw schema.Rewrite) bool
	isOne = func(rw schema.Rewrite) bool {
		return rw.Kind == schema.Intersection || slices.ContainsFunc(rw.Children, isOne)
	}
	return slices.ContainsFunc(types, func(typ schema.Type) bool {
		return slices.ContainsFunc(typ.Relations, func(r schema.Relation) bool { return slices.ContainsFunc(r.Rewrites, isOne) })
	})
}

// compareProofs lists the proofs of a random check, in pages, and returns their number. It
// reports whether it has listed all.
func (w *writer) compareProofs(ctx context.Context, t *testing.T) (n int, all bool) {
	t.Helper()
	u := &w.universe
	subject, node, q := u.subject(), u.node(), u.question()
	req := engine.ListProofsRequest{
		Subject: subject, Resource: node.Object, Action: node.Relation, Context: q.values, Contextual: q.contextual, Limit: 1 + u.rand.IntN(4),
	}
	var proofs []engine.Proof
	var token string
	for {
		page, err := w.engine.ListProofs(ctx, w.tenant, req)
		if err != nil {
			if _, err := VerdictOf(false, err); err != nil {
				t.Fatal(err)
			}
			return 0, false // such checks are a part of TestAgreement
		}
		proofs = append(proofs, page.Proofs...)
		token = page.Token
		if req.From = page.Next; page.Next == nil {
			break
		}
		if len(proofs) > 200 {
			return 0, false
		}
		req.Consistency = req.Consistency.Following(token)
	}
	for i, p := range proofs {
		if hasIntersection(w.types) {
			break // several intersections of a relation can have the same steps
		}
		if slices.ContainsFunc(proofs[:i], func(q engine.Proof) bool { return reflect.DeepEqual(p, q) }) {
			t.Fatalf("proof %v is listed twice", p)
		}
	}
	state, _, ok := w.at(t, q, token)
	if !ok {
		return 0, false
	}
	holding, decided, err := Holding(w.types, state, q.values)
	if err != nil || !decided {
		return 0, false
	}
	for range 8 {
		o := NewOracle(w.types)
		present := map[string]bool{}
		for tuple := range holding {
			if tuple.IsPresence() || u.rand.IntN(4) > 0 {
				o.Tuples[tuple] = true
				present[tuple.String()] = true
			}
		}
		holds, _ := o.Holds(subject)
		suffices := func(p engine.Proof) bool {
			for _, r := range p.Reasons {
				if strings.Contains(r.Via, "@") && r.Rewrite != "self" && !present[r.Via] {
					return false
				}
			}
			return true
		}
		if got := slices.ContainsFunc(proofs, suffices); got != holds[node] {
			t.Fatalf("%s in %s: oracle %v, proofs %v\nproofs %v\ntuples %v of %v\nschema %s",
				subject, node, holds[node], got, proofs, o.Tuples, state, schema.Encode(w.types))
		}
	}
	return len(proofs), true
}

// TestManyProofs lists some of 2^20 proofs with a budget that does not suffice for a page.
func TestManyProofs(t *testing.T) {
	for temperature, config := range temperatures {
		t.Run(temperature, func(t *testing.T) {
			ctx := context.Background()
			config.MaxVisits = 30_000
			e := newEngine(t, config, backends["memory"](t))
			types, err := ParseSchema("doc\n  viewer [team#member]\nteam\n  member [user, team#member]")
			if err != nil {
				t.Fatal(err)
			}
			for _, typ := range types {
				if _, _, _, err := e.PutType(ctx, "tnt", typ, by); err != nil {
					t.Fatal(err)
				}
			}
			write := func(text string) {
				op, err := ParseRelation(text)
				if err == nil {
					_, err = e.Write(ctx, "tnt", engine.WriteRequest{Origin: by, Ops: []engine.WriteOp{op}})
				}
				if err != nil {
					t.Fatal(err)
				}
			}
			write("doc:1#viewer@team:0a#member")
			for i := range 20 {
				for _, from := range []string{"a", "b"} {
					for _, to := range []string{"a", "b"} {
						write(fmt.Sprintf("team:%d%s#member@team:%d%s#member", i, from, i+1, to))
					}
				}
			}
			write("team:20a#member@user:ann")
			write("team:20b#member@user:ann")
			req := engine.ListProofsRequest{
				Subject: tuplestore.Subject{Type: "user", ID: "ann"}, Resource: tuplestore.Object{Type: "doc", ID: "1"}, Action: "viewer", Limit: 1000,
			}
			seen, short := map[string]bool{}, 0
			for range 10 {
				page, err := e.ListProofs(ctx, "tnt", req)
				if err != nil {
					t.Fatal(err)
				}
				for _, p := range page.Proofs {
					if text := fmt.Sprint(p.Reasons); seen[text] || len(p.Reasons) != 22 {
						t.Fatalf("proof %s is wrong or listed twice", text)
					} else {
						seen[text] = true
					}
				}
				if page.Next == nil || page.Truncated {
					t.Fatal("the list ends")
				}
				if len(page.Proofs) < req.Limit {
					short++
				}
				req.From, req.Consistency = page.Next, engine.Consistency{Mode: engine.Exactly, Token: page.Token}
			}
			if short == 0 || len(seen) < 200 {
				t.Errorf("%d short pages with %d proofs", short, len(seen))
			}
		})
	}
}
