package enginetest

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"stonetown/engine"
	"stonetown/schema"
	"stonetown/tuplestore"
)

// worlds are the oracle's tables of the nodes that hold in one state: one or, if conditions
// cannot be decided, several that are possible. An answer of the engine must be right in
// all of them.
type worlds struct {
	types    []schema.Type
	decided  bool
	possible []map[tuplestore.Tuple]bool
}

// maxUndecided is the number of undecided tuples that are assumed to hold in every
// combination; the others are assumed to hold all or not at all.
const maxUndecided = 3

func worldsOf(t *testing.T, types []schema.Type, state facts, values map[string]any) worlds {
	t.Helper()
	holding, decided, err := Holding(types, state, values)
	if err != nil {
		t.Fatal(err)
	}
	w := worlds{types: types, decided: decided, possible: []map[tuplestore.Tuple]bool{holding}}
	if decided {
		return w
	}
	var open []tuplestore.Tuple
	for tuple, on := range state {
		if holding[tuple] || on.Condition == "" {
			continue
		}
		alone, decided, err := Holding(types, facts{tuple: on}, values)
		if err != nil {
			t.Fatal(err)
		}
		if !decided && !alone[tuple] {
			open = append(open, tuple)
		}
	}
	slices.SortFunc(open, tuplestore.Tuple.Compare)
	all := maps.Clone(holding)
	for _, tuple := range open {
		all[tuple] = true
	}
	w.possible = append(w.possible, all)
	tried := open[:min(maxUndecided, len(open))]
	for choice := range 1 << len(tried) {
		for _, rest := range []map[tuplestore.Tuple]bool{holding, all} {
			one := maps.Clone(rest)
			for i, tuple := range tried {
				if choice>>i&1 == 1 {
					one[tuple] = true
				} else {
					delete(one, tuple)
				}
			}
			w.possible = append(w.possible, one)
		}
	}
	return w
}

// table is the oracle's answers for one subject.
type table struct{ holds, cyclic map[tuplestore.Node]bool }

func (t table) verdict(node tuplestore.Node) Verdict {
	switch {
	case t.cyclic[node]:
		return Cyclic
	case t.holds[node]:
		return Allowed
	}
	return Denied
}

// holds are the tables of one subject, one for each world.
func (w worlds) holds(s tuplestore.Subject) []table {
	tables := make([]table, len(w.possible))
	for i, tuples := range w.possible {
		oracle := NewOracle(w.types)
		oracle.Tuples = tuples
		tables[i].holds, tables[i].cyclic = oracle.Holds(s)
	}
	return tables
}

// is reports whether an answer is right in every world.
func is(tables []table, node tuplestore.Node, verdict Verdict) bool {
	return !slices.ContainsFunc(tables, func(t table) bool { return t.verdict(node) != verdict })
}

// mayBeCyclic reports whether a list may fail with [engine.NegativeCycleError]:
// some answer of it is cyclic in every world.
func mayBeCyclic(worlds worlds, subjects []tuplestore.Subject, nodes []tuplestore.Node) bool {
	for _, s := range subjects {
		tables := worlds.holds(s)
		for _, node := range nodes {
			if is(tables, node, Cyclic) {
				return true
			}
		}
	}
	return false
}

// question is the input of one comparison.
type question struct {
	values     map[string]any
	contextual []engine.WriteOp
}

func (u *universe) question() question {
	q := question{values: u.values()}
	for u.rand.IntN(4) == 0 {
		if op, ok := u.op(); ok {
			q.contextual = append(q.contextual, op)
		}
	}
	return q
}

// at returns the state that a token names, with the question's contextual tuples. It is not
// ok if a contextual tuple is also stored: a state cannot have both.
func (w *writer) at(t *testing.T, q question, token string) (state facts, rev tuplestore.Revision, ok bool) {
	t.Helper()
	rev = revision(t, token)
	stored := w.history.at(rev)
	if stored == nil {
		t.Errorf("answered from revision %d, which no write took", rev)
		return nil, rev, false
	}
	state = maps.Clone(stored)
	for _, op := range q.contextual {
		f := factOf(op)
		if _, twice := state[f.Tuple]; twice {
			return nil, rev, false
		}
		state[f.Tuple] = f.Qualifier
		state[tuplestore.Presence(f.Object)] = tuplestore.Qualifier{}
	}
	return state, rev, true
}

// compared counts the decisions and lists that were compared with the oracle, cyclic those
// without an answer because they depend on their own negation.
var compared, cyclic atomic.Int64

// compare compares the engine's answers to a random batch with the oracle's at the same
// revision.
func (w *writer) compare(ctx context.Context, t *testing.T, u *universe, consistency engine.Consistency) {
	t.Helper()
	if consistency.Mode == engine.Full && u.rand.IntN(4) == 0 {
		w.compareResources(ctx, t, u)
		w.compareSubjects(ctx, t, u)
		compared.Add(2)
		return
	}
	if consistency.Mode == engine.Full && !w.concurrent && u.rand.IntN(4) == 0 {
		w.compareExpansion(ctx, t, u)
		return
	}
	if consistency.Mode == engine.Full && u.rand.IntN(4) == 0 {
		w.compareAllowed(ctx, t, u)
		w.compareActions(ctx, t, u)
		compared.Add(2)
		return
	}
	subject, q := u.subject(), u.question()
	nodes := make([]tuplestore.Node, 1+u.rand.IntN(10))
	queries := make([]engine.Query, len(nodes))
	several := u.rand.IntN(3) == 0
	for i := range nodes {
		nodes[i] = u.node()
		queries[i] = engine.Query{Resource: nodes[i].Object, Action: nodes[i].Relation}
		if several && u.rand.IntN(3) > 0 {
			own := u.subject()
			queries[i].Subject = &own
		}
	}
	before := tuplestore.Revision(w.acked.Load())
	switch consistency.Mode {
	case engine.AtLeast:
		before = revision(t, consistency.Token)
	case engine.MinimizeLatency:
		before = w.history.acknowledgedBefore(time.Now().Add(-staleness))
	}
	res, err := w.engine.Check(ctx, w.tenant, engine.CheckRequest{
		Subject: subject, Queries: queries, Consistency: consistency, Reasons: u.rand.IntN(4) == 0,
		Context: q.values, Contextual: q.contextual,
	})
	if err != nil {
		w.failed(t, "check %s: %v", subject, err)
		return
	}
	state, rev, ok := w.at(t, q, res.Token)
	if rev < before {
		t.Errorf("consistency %v: answered from revision %d after %d was acknowledged", consistency.Mode, rev, before)
	}
	if !ok {
		return
	}
	compared.Add(int64(len(nodes)))
	worlds := worldsOf(t, w.types, state, q.values)
	known := map[tuplestore.Subject][]table{}
	for i, node := range nodes {
		d := res.Decisions[i]
		subject := subject
		if own := queries[i].Subject; own != nil {
			subject = *own
		}
		tables, ok := known[subject]
		if !ok {
			tables = worlds.holds(subject)
			known[subject] = tables
		}
		verdict, err := VerdictOf(d.Allowed, d.Err)
		if verdict == Cyclic {
			cyclic.Add(1)
		}
		_, registered := state[tuplestore.Presence(node.Object)]
		switch {
		case err != nil:
			t.Errorf("%s: %v", node, err)
		case registered == (verdict == NotFound):
			t.Errorf("%s at revision %d: registered %v, the engine answers %s", node.Object, rev, registered, verdict)
		case verdict == NotFound, verdict == Undecided && !worlds.decided:
		case !is(tables, node, verdict):
			t.Errorf("%s in %s at revision %d: the engine answers %s, which is wrong\nschema %s\ntuples %v\nquestion %v",
				subject, node, rev, verdict, schema.Encode(w.types), state, q)
		}
	}
}

// compareAllowed compares a list of the resources of several types and actions, whole and in
// pages, with lists of one type and action each, which are compared with the oracle.
func (w *writer) compareAllowed(ctx context.Context, t *testing.T, u *universe) {
	t.Helper()
	q := u.question()
	req := engine.ListAllowedRequest{Subject: u.subject(), Context: q.values, Contextual: q.contextual}
	for range 1 + u.rand.IntN(4) {
		n := u.node()
		if query := (engine.ResourceQuery{Type: n.Object.Type, Action: n.Relation}); !slices.Contains(req.Queries, query) {
			req.Queries = append(req.Queries, query)
		}
	}
	switch u.rand.IntN(4) {
	case 0:
		req.Filter.IDPrefix = fmt.Sprint(u.rand.IntN(u.objects))
	case 1:
		req.Filter.IDs = []string{"3", "none", fmt.Sprint(u.rand.IntN(u.objects)), "3", fmt.Sprint(u.rand.IntN(u.objects))}
	}
	list, err := w.engine.ListAllowed(ctx, w.tenant, req)
	if undecidable(err) {
		return
	}
	if err != nil {
		w.failed(t, "list allowed: %v", err)
		return
	}
	exactly := engine.Consistency{Mode: engine.Exactly, Token: list.Token}
	want := map[tuplestore.Object][]string{}
	for _, query := range req.Queries {
		one, err := w.engine.ListResources(ctx, w.tenant, engine.ListResourcesRequest{
			Subject: req.Subject, Type: query.Type, Action: query.Action, Context: q.values, Contextual: q.contextual, Consistency: exactly,
		})
		if undecidable(err) {
			return // the resource that cannot be decided is not admitted by the filter
		}
		if err != nil {
			w.failed(t, "list resources: %v", err)
			return
		}
		for _, id := range one.IDs {
			if strings.HasPrefix(id, req.Filter.IDPrefix) && (req.Filter.IDs == nil || slices.Contains(req.Filter.IDs, id)) {
				o := tuplestore.Object{Type: query.Type, ID: id}
				want[o] = append(want[o], query.Action)
			}
		}
	}
	sorted := slices.SortedFunc(maps.Keys(want), func(a, b tuplestore.Object) int {
		return cmp.Or(strings.Compare(a.Type, b.Type), strings.Compare(a.ID, b.ID))
	})
	whole := resourcesOf(list)
	same := len(sorted) == len(whole)
	for i, o := range sorted {
		same = same && whole[i].Object == o && slices.Equal(whole[i].Actions, want[o])
	}
	if !same {
		t.Errorf("list of %+v: %+v, want %v", req, whole, want)
	}
	req.Consistency = exactly
	req.Limit = 1 + u.rand.IntN(2)
	var paged []engine.AllowedResource
	for {
		page, err := w.engine.ListAllowed(ctx, w.tenant, req)
		if err != nil {
			w.failed(t, "page of allowed: %v", err)
			return
		}
		paged = append(paged, resourcesOf(page)...)
		if page.Len() < req.Limit {
			break
		}
		page.Release()
		req.After = paged[len(paged)-1].Object
	}
	if !reflect.DeepEqual(paged, whole) {
		t.Errorf("pages %v, whole %v", paged, whole)
	}
}

func resourcesOf(list *engine.AllowedList) (resources []engine.AllowedResource) {
	for i := range list.Len() {
		resources = append(resources, list.At(i))
	}
	return resources
}

// undecidable reports whether an answer depends on values that are missing, or on its own
// negation.
func undecidable(err error) bool {
	var undecided *engine.ConditionError
	var cycle *engine.NegativeCycleError
	return errors.As(err, &undecided) || errors.As(err, &cycle)
}

// compareActions compares a list of actions with the oracle.
func (w *writer) compareActions(ctx context.Context, t *testing.T, u *universe) {
	t.Helper()
	q, o, subject := u.question(), u.object(), u.subject()
	list, err := w.engine.ListActions(ctx, w.tenant, engine.ListActionsRequest{
		Subject: subject, Resource: o, Context: q.values, Contextual: q.contextual,
	})
	var missing *engine.ResourceNotFoundError
	if undecidable(err) || errors.As(err, &missing) {
		return
	}
	if err != nil {
		w.failed(t, "list actions: %v", err)
		return
	}
	state, rev, ok := w.at(t, q, list.Token)
	if !ok {
		return
	}
	tables := worldsOf(t, w.types, state, q.values).holds(subject)
	for _, typ := range w.types {
		if typ.Name != o.Type {
			continue
		}
		for _, r := range typ.Relations {
			node := tuplestore.Node{Object: o, Relation: r.Name}
			if in := slices.Contains(list.Actions, r.Name); !is(tables, node, listed(in)) {
				t.Errorf("%s in %s at revision %d: listed %v, wrongly\nschema %s\ntuples %v\nquestion %v",
					subject, node, rev, in, schema.Encode(w.types), state, q)
			}
		}
	}
}

// compareResources compares a list of resources, whole and in pages, with the oracle.
func (w *writer) compareResources(ctx context.Context, t *testing.T, u *universe) {
	t.Helper()
	q, target := u.question(), u.node()
	req := engine.ListResourcesRequest{
		Subject: u.subject(), Type: target.Object.Type, Action: target.Relation, Context: q.values, Contextual: q.contextual,
	}
	list, err := w.engine.ListResources(ctx, w.tenant, req)
	var undecided *engine.ConditionError
	if errors.As(err, &undecided) {
		return // the comparison of checks covers single answers
	}
	nodes := make([]tuplestore.Node, u.objects)
	for i := range nodes {
		nodes[i] = tuplestore.Node{Object: tuplestore.Object{Type: req.Type, ID: fmt.Sprint(i)}, Relation: req.Action}
	}
	var cycle *engine.NegativeCycleError
	if errors.As(err, &cycle) {
		w.mustBeCyclic(t, q, []tuplestore.Subject{req.Subject}, nodes)
		return
	}
	if err != nil {
		w.failed(t, "list resources: %v", err)
		return
	}
	state, rev, ok := w.at(t, q, list.Token)
	if !ok {
		return
	}
	tables := worldsOf(t, w.types, state, q.values).holds(req.Subject)
	for _, node := range nodes {
		_, registered := state[tuplestore.Presence(node.Object)]
		in := slices.Contains(list.IDs, node.Object.ID)
		if in && !registered || registered && !is(tables, node, listed(in)) {
			t.Errorf("%s in %s at revision %d: listed %v, registered %v, wrongly\nschema %s\ntuples %v\nquestion %v",
				req.Subject, node, rev, in, registered, schema.Encode(w.types), state, q)
		}
	}

	var paged []string
	req.Consistency = engine.Consistency{Mode: engine.Exactly, Token: list.Token}
	req.Limit = 1 + u.rand.IntN(2)
	for {
		page, err := w.engine.ListResources(ctx, w.tenant, req)
		if err != nil {
			w.failed(t, "page of resources: %v", err)
			return
		}
		paged = append(paged, page.IDs...)
		if len(page.IDs) < req.Limit {
			break
		}
		req.After = paged[len(paged)-1]
	}
	if !slices.Equal(paged, list.IDs) {
		t.Errorf("pages %v, whole %v", paged, list.IDs)
	}
}

// mustBeCyclic compares a list that failed with [engine.NegativeCycleError] with the
// oracle: at least one of its answers must depend on its own negation.
func (w *writer) mustBeCyclic(t *testing.T, q question, subjects []tuplestore.Subject, nodes []tuplestore.Node) {
	t.Helper()
	cyclic.Add(1)
	if w.concurrent {
		return
	}
	state, rev, ok := w.at(t, q, w.newest.Load().(string))
	if !ok {
		return
	}
	worlds := worldsOf(t, w.types, state, q.values)
	if !mayBeCyclic(worlds, subjects, nodes) {
		t.Errorf("list of %v in %v at revision %d: the engine answers %s, which is wrong\nschema %s\ntuples %v\nquestion %v",
			subjects, nodes, rev, Cyclic, schema.Encode(w.types), state, q)
	}
}

// compareSubjects compares a list of subjects, whole and in pages, with the oracle.
func (w *writer) compareSubjects(ctx context.Context, t *testing.T, u *universe) {
	t.Helper()
	q, target, kind := u.question(), u.node(), u.subject()
	req := engine.ListSubjectsRequest{
		Resource: target.Object, Action: target.Relation, SubjectType: kind.Type, SubjectRelation: kind.Relation,
		Context: q.values, Contextual: q.contextual,
	}
	list, err := w.engine.ListSubjects(ctx, w.tenant, req)
	var undecided *engine.ConditionError
	var missing *engine.ResourceNotFoundError
	if errors.As(err, &undecided) || errors.As(err, &missing) {
		return
	}
	subjects := make([]tuplestore.Subject, max(u.objects, u.users)+1) // no tuple names the last one
	for i := range subjects {
		subjects[i] = tuplestore.Subject{Type: kind.Type, ID: fmt.Sprint(i), Relation: kind.Relation}
	}
	everybody := tuplestore.Subject{Type: kind.Type, ID: tuplestore.Wildcard, Relation: kind.Relation}
	var cycle *engine.NegativeCycleError
	if errors.As(err, &cycle) {
		w.mustBeCyclic(t, q, append(subjects, everybody), []tuplestore.Node{target})
		return
	}
	if err != nil {
		w.failed(t, "list subjects: %v", err)
		return
	}
	state, rev, ok := w.at(t, q, list.Token)
	if !ok {
		return
	}
	named, everyone := map[string]bool{}, false
	for _, entry := range list.Entries {
		if entry.Subject.ID == tuplestore.Wildcard {
			everyone = true
		} else {
			named[entry.Subject.ID] = !entry.Excluded
		}
	}
	worlds := worldsOf(t, w.types, state, q.values)
	for _, s := range subjects {
		allowed, ok := named[s.ID]
		if !ok {
			allowed = everyone
		}
		if tables := worlds.holds(s); !is(tables, target, listed(allowed)) {
			t.Errorf("%s in %s at revision %d: listed %v, wrongly\nschema %s\ntuples %v\nquestion %v",
				s, target, rev, allowed, schema.Encode(w.types), state, q)
		}
	}

	// Only the subjects with some IDs: those that a check of each allows.
	some := req
	some.Consistency = engine.Consistency{Mode: engine.Exactly, Token: list.Token}
	some.IDs = []string{"2", fmt.Sprint(u.rand.IntN(len(subjects))), "2", "none"}
	among, err := w.engine.ListSubjects(ctx, w.tenant, some)
	var wanted, got []string
	for _, id := range slices.Compact(slices.Sorted(slices.Values(some.IDs))) {
		allowed, ok := named[id]
		if allowed || !ok && everyone {
			wanted = append(wanted, id)
		}
	}
	switch {
	case undecidable(err): // the wildcard can be decided, and this subject cannot
	case err != nil:
		w.failed(t, "list some subjects: %v", err)
	default:
		for _, entry := range among.Entries {
			got = append(got, entry.Subject.ID)
		}
		if !slices.Equal(got, wanted) {
			t.Errorf("some subjects of %v: %v, want %v", list.Entries, got, wanted)
		}
	}

	if req.SubjectRelation == "" && req.SubjectType != schema.GroupType {
		if tables := worlds.holds(everybody); !is(tables, target, listed(everyone)) {
			t.Errorf("%s in %s at revision %d: listed %v, wrongly\nschema %s\ntuples %v\nquestion %v",
				everybody, target, rev, everyone, schema.Encode(w.types), state, q)
		}
	}

	var paged []engine.SubjectEntry
	req.Consistency = engine.Consistency{Mode: engine.Exactly, Token: list.Token}
	req.Limit = 1 + u.rand.IntN(2)
	for {
		page, err := w.engine.ListSubjects(ctx, w.tenant, req)
		if err != nil {
			w.failed(t, "page of subjects: %v", err)
			return
		}
		paged = append(paged, page.Entries...)
		if len(page.Entries) < req.Limit {
			break
		}
		req.After = paged[len(paged)-1].Subject.ID
	}
	if !slices.Equal(paged, list.Entries) {
		t.Errorf("pages %v, whole %v", paged, list.Entries)
	}
}

// compareExpansion evaluates a tree for a subject and compares the answer with the
// oracle's.
func (w *writer) compareExpansion(ctx context.Context, t *testing.T, u *universe) {
	t.Helper()
	target := u.node()
	q := Question{Subject: u.subject(), Action: target.Relation, Resource: target.Object}
	verdict, ok, err := ways{engine: w.engine, tenant: w.tenant}.expand(ctx, q)
	var budget *engine.BudgetError
	if errors.As(err, &budget) {
		return // a tree repeats what a graph shares
	}
	if err != nil {
		w.failed(t, "expand %s: %v", target, err)
		return
	}
	state, rev, _ := w.at(t, question{}, w.newest.Load().(string))
	holding, decided, err := Holding(w.types, state, nil)
	if err != nil {
		t.Fatal(err)
	}
	if !ok || !decided || verdict == NotFound {
		return
	}
	compared.Add(1)
	if verdict == Cyclic {
		cyclic.Add(1)
	}
	oracle := NewOracle(w.types)
	oracle.Tuples = holding
	if want := oracle.Check(q.Subject, target); verdict != want {
		t.Errorf("%s in %s at revision %d: the tree answers %s, the oracle %s\nschema %s\ntuples %v",
			q.Subject, target, rev, verdict, want, schema.Encode(w.types), state)
	}
}
