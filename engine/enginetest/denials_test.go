package enginetest

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"stonetown/engine"
	"stonetown/schema"
	"stonetown/tuplestore"
)

// TestDenials compares explanations of denials with the oracle. The changes of a way
// suffice, and no part of them does. If a single relation suffices, it is among the ways.
func TestDenials(t *testing.T) {
	everywhere(t, func(t *testing.T, e *engine.Engine, _ tuplestore.Store) {
		randomly(t, func(t *testing.T, r *rand.Rand) {
			ctx := context.Background()
			seen := map[string]int{}
			for round := range *rounds {
				w := newTenant(ctx, t, e, r, fmt.Sprintf("tnt_%d", round))
				for range 8 {
					w.write(ctx, t)
					for range 4 {
						w.compareDenial(ctx, t, seen)
					}
				}
				if t.Failed() {
					return
				}
			}
			t.Logf("ways by size and state: %v", seen)
			if seen["1"] == 0 {
				t.Error("no check was explained")
			}
			for _, part := range []string{"1", "2", "absent", "expired", "condition_unmet", "exclusion", "complete"} {
				if *rounds >= 200 && seen[part] == 0 { // the rarest is in one world of ten
					t.Errorf("no explanation has shown %q: %v", part, seen)
				}
			}
		})
	})
}

// compareDenial asks why a random check is denied.
func (w *writer) compareDenial(ctx context.Context, t *testing.T, seen map[string]int) {
	t.Helper()
	u := &w.universe
	subject, node, q := u.subject(), u.node(), u.question()
	res, err := w.engine.Check(ctx, w.tenant, engine.CheckRequest{
		Subject: subject, Queries: []engine.Query{{Resource: node.Object, Action: node.Relation}},
		Context: q.values, Contextual: q.contextual, Denials: true, Reasons: u.rand.IntN(2) == 0,
	})
	if err != nil {
		t.Fatalf("check %s: %v", subject, err)
	}
	d := res.Decisions[0]
	if d.Allowed || d.Err != nil {
		if d.Denial != nil {
			t.Errorf("%+v has a denial", d)
		}
		return
	}
	state, _, ok := w.at(t, q, res.Token)
	if !ok {
		return
	}
	o := denialOracle{t: t, types: w.types, state: state, values: q.values, subject: subject, node: node}
	fail := func(format string, args ...any) {
		t.Helper()
		t.Errorf("%s\n%s in %s: %+v\nschema %s\ntuples %v\nquestion %v", fmt.Sprintf(format, args...),
			subject, node, d.Denial, schema.Encode(w.types), state, q)
	}
	decided := worldsOf(t, w.types, state, q.values).decided
	var single []tuplestore.Tuple
	for _, way := range d.Denial.Ways {
		size := len(way.Relations) + len(way.Exclusions)
		seen[fmt.Sprint(size)]++
		if len(way.Relations) == 1 && size == 1 {
			single = append(single, way.Relations[0].Tuple)
		}
		for _, r := range way.Relations {
			seen[string(r.State)]++
			if fault := o.wrong(u.compiled, r); fault != "" {
				fail("%s: %s", r.Tuple, fault)
			}
		}
		for _, x := range way.Exclusions {
			seen["exclusion"]++
			if len(x.Reasons) == 0 {
				fail("exclusion at %s without reasons", x.Node)
			}
		}
		if !o.allowed(way, 1<<size-1) {
			fail("way %+v does not suffice", way)
		}
		for part := range 1<<size - 1 {
			if decided && o.allowed(way, part) {
				fail("part %b of way %+v suffices", part, way)
			}
		}
	}
	if d.Denial.Truncated || !decided || subject.Type != schema.UserType || hasExclusion(w.types) {
		return
	}
	seen["complete"]++
	for _, tuple := range o.candidates(u) {
		if o.with([]tuplestore.Tuple{tuple}, nil) && !slices.Contains(single, tuple) {
			fail("%s would suffice", tuple)
		}
	}
}

func hasExclusion(types []schema.Type) bool {
	for _, typ := range types {
		for _, r := range typ.Relations {
			for i := range r.Rewrites {
				for range exclusions(&r.Rewrites[i]) {
					return true
				}
			}
		}
	}
	return false
}

// denialOracle answers one check in changed states.
type denialOracle struct {
	t       *testing.T
	types   []schema.Type
	state   facts
	values  map[string]any
	subject tuplestore.Subject
	node    tuplestore.Node
}

// with reports whether the check is allowed if some tuples hold and some exclusions do not
// apply.
func (o denialOracle) with(tuples []tuplestore.Tuple, suspended map[tuplestore.Node]bool) bool {
	state := maps.Clone(o.state)
	for _, tuple := range tuples {
		state[tuple] = tuplestore.Qualifier{}
	}
	for _, tuples := range worldsOf(o.t, o.types, state, o.values).possible {
		oracle := NewOracle(o.types)
		oracle.Tuples, oracle.Suspended = tuples, suspended
		if holds, cyclic := oracle.Holds(o.subject); cyclic[o.node] || !holds[o.node] {
			return false
		}
	}
	return true
}

// allowed makes the changes of a way whose bits are set: relations, then exclusions.
func (o denialOracle) allowed(way engine.Way, part int) bool {
	var tuples []tuplestore.Tuple
	suspended := map[tuplestore.Node]bool{}
	for i, r := range way.Relations {
		if part>>i&1 == 1 {
			tuples = append(tuples, r.Tuple)
		}
	}
	for i, x := range way.Exclusions {
		if part>>(len(way.Relations)+i)&1 == 1 {
			suspended[x.Node] = true
		}
	}
	return o.with(tuples, suspended)
}

// wrong returns what is wrong in the description of a relation that does not hold.
func (o denialOracle) wrong(c *schema.Compiled, r engine.MissingRelation) string {
	q, exists := o.state[r.Tuple]
	expired := q.ExpiresAt != 0 && q.ExpiresAt <= time.Now().UnixMicro()
	switch {
	case c.Allows(r.Object.Type, r.Relation, schema.SubjectType(r.Subject.Shape())) != schema.Allowed:
		return "cannot be written"
	case !exists:
		if r.State != "absent" {
			return "is absent"
		}
		return ""
	case expired:
		if r.State != "expired" || r.Qualifier.ExpiresAt != q.ExpiresAt {
			return "has expired"
		}
		return ""
	case q.Condition == "":
		return "holds"
	}
	met, missing, err := evaluate(o.types, r.Object.Type, q, o.values)
	if err != nil || met {
		return fmt.Sprintf("condition is met: %v %v", met, err)
	}
	if want := map[bool]string{true: "condition_undecided", false: "condition_unmet"}[len(missing) > 0]; string(r.State) != want || r.Qualifier.Condition != q.Condition {
		return want
	}
	var values map[string]any
	if err := json.Unmarshal(r.Values, &values); err != nil {
		return err.Error()
	}
	met, _, err = evaluate(o.types, r.Object.Type, tuplestore.Qualifier{Condition: q.Condition, Context: string(r.Values)}, nil)
	if err != nil || met {
		return "condition is met with the values of the explanation"
	}
	return ""
}

// candidates are the tuples that name the subject and do not hold, and all others that exist
// and do not hold.
func (o denialOracle) candidates(u *universe) []tuplestore.Tuple {
	holding, _, err := Holding(o.types, o.state, o.values)
	if err != nil {
		o.t.Fatal(err)
	}
	found := map[tuplestore.Tuple]bool{}
	add := func(n tuplestore.Node) {
		tuple := tuplestore.Tuple{Object: n.Object, Relation: n.Relation, Subject: o.subject}
		if u.compiled.Allows(n.Object.Type, n.Relation, schema.SubjectType(o.subject.Shape())) == schema.Allowed {
			found[tuple] = true
		}
	}
	for i := range u.objects {
		for _, typ := range u.types {
			for _, r := range typ.Relations {
				add(tuplestore.Node{Object: tuplestore.Object{Type: typ.Name, ID: fmt.Sprint(i)}, Relation: r.Name})
			}
		}
		add(tuplestore.Node{Object: tuplestore.Object{Type: schema.GroupType, ID: fmt.Sprint(i)}, Relation: schema.GroupMember})
	}
	for tuple := range o.state {
		if !tuple.IsPresence() {
			found[tuple] = true
		}
	}
	maps.DeleteFunc(found, func(tuple tuplestore.Tuple, _ bool) bool { return holding[tuple] })
	return slices.SortedFunc(maps.Keys(found), tuplestore.Tuple.Compare)
}
