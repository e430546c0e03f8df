package bench

import (
	"context"
	"fmt"
	"iter"
	"math/rand/v2"
	"runtime"
	"slices"
	"strconv"
	"strings"

	"stonetown/engine"
	"stonetown/internal/fair"
	"stonetown/schema"
	"stonetown/schema/condition"
	"stonetown/tuplestore"
)

// Stalls is checks of [Docs], due at a rate that the target can easily do: by themselves, beside
// writes, beside continuous heavy requests, and beside both. Heavy requests are lists of 150,000
// resources on all targets that have lists and, in process, checks that evaluate costly conditions.
type Stalls struct{ *Docs }

// Name implements [Workload].
func (Stalls) Name() string { return "stalls" }

const (
	listed        = 150_000 // resources of a list
	stallsRate    = 2000    // checks a second, if the target can do twice as many
	stallsWorkers = 4
	stallsWrites  = 500 // a second
)

// Lister is a target that lists resources.
type Lister interface {
	// List returns the ID of each resource of a type that a subject has a relation to, in any order.
	// The IDs can be read once.
	List(ctx context.Context, s tuplestore.Subject, typ, relation string) (iter.Seq[string], error)
}

// pages are the resources of the lists; one user may view all of them.
func pages() Workload {
	return &shape{
		name: "pages", users: 1,
		types: []schema.Type{{Name: "page", Relations: []schema.Relation{{Name: "viewer", Subjects: []schema.SubjectType{{Type: schema.UserType}}}}}},
		tuples: func(yield func(tuplestore.Tuple) bool) {
			for n := range listed {
				if !yield(tuplestore.Tuple{Object: object("page", "p", n), Relation: "viewer", Subject: user(0)}) {
					return
				}
			}
		},
		ask: func(r *rand.Rand, u int) Question {
			return Question{user(u), object("page", "p", r.IntN(listed)), "view", true}
		},
	}
}

func (s Stalls) measure(ctx context.Context, r *run, targets ...Target) {
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(0))
	ctx, end := context.WithCancel(ctx)
	defer end()
	// Lists are checked by threads of low priority: that is not work of the target.
	checkers := fair.NewThreads(1, ctx.Done())
	for _, t := range targets {
		if _, ok := t.(Lister); ok {
			r.load(ctx, t, pages())
		}
		if p, ok := t.(*InProcess); ok && r.err == nil {
			// As in a server, see cmd/stonetown/tuning.go.
			fair.AddProcessors(2)
			defer runtime.KeepAlive(make([]byte, 256<<20))
			r.err = s.loadGate(ctx, p)
		}
	}
	r.prepare(ctx, s, targets)
	for _, t := range targets {
		if l, ok := t.(Lister); ok && r.err == nil {
			// The first list builds an index, and a client may keep what it has decoded.
			_, r.err = l.List(ctx, user(0), "page", "viewer")
		}
	}
	var meters []*meter
	for i, t := range targets {
		if r.err != nil {
			return
		}
		f, err := checks(ctx, t, s, stallsWorkers, r.Duration/2)
		if err != nil {
			f.Measure = "check, alone"
			r.figure(f, err)
			continue
		}
		check := func(measure string) *meter {
			return checking(t, s, stallsWorkers, func(of *Figure) {
				of.Measure, of.Rate = measure, min(stallsRate, f.PerSecond/2)
			})
		}
		alone, writes, heavy, busy := check("check, alone"), check("check, beside writes"),
			check("check, beside heavy requests"), check("check, beside writes and heavy requests")
		writes.beside = []*meter{s.writing(t, 2*i, "write, beside checks")}
		heavy.beside = s.heavyRequests(t, checkers, "beside checks")
		busy.beside = append(s.heavyRequests(t, checkers, "beside checks and writes"),
			s.writing(t, 2*i+1, "write, beside checks and heavy requests"))
		for _, m := range []*meter{alone, writes, heavy, busy} {
			m.collected = false // collections are a part of the load of heavy requests
			meters = append(meters, m)
		}
	}
	r.measure(ctx, meters...) // all interleaved: what counts is the ratio to the checks alone
}

// writing returns the meter of writes at a rate. Those of different writers differ.
func (s Stalls) writing(t Target, writer int, measure string) *meter {
	f := Figure{Target: t.Name(), Workload: s.Name(), Measure: measure, Workers: 1, PerCall: 1, Rate: stallsWrites}
	return newMeter(f, func(int) func(context.Context) error {
		n := 0
		return func(ctx context.Context) error {
			n++
			tuple, _ := s.New(uint64(1_000_000+writer), n)
			return t.Write(ctx, []tuplestore.Tuple{tuple})
		}
	})
}

// heavyRequests returns the meters of the heavy requests that a target has, beside something.
func (s Stalls) heavyRequests(t Target, checkers *fair.Threads, beside string) (requests []*meter) {
	if l, ok := t.(Lister); ok {
		requests = append(requests, listing(t, l, checkers, beside))
	}
	if p, ok := t.(*InProcess); ok {
		requests = append(requests, s.checkingGate(p, beside))
	}
	return requests
}

// listing returns the meter of lists of all pages.
func listing(t Target, l Lister, checkers *fair.Threads, beside string) *meter {
	f := Figure{Target: t.Name(), Workload: Stalls{}.Name(), Measure: "list of " + number(listed) + ", " + beside, Workers: 1, PerCall: 1}
	return newMeter(f, func(int) func(context.Context) error {
		var last, spare []string // the last list, and memory for the next
		return func(ctx context.Context) error {
			var ids iter.Seq[string]
			var err error
			list := func() { ids, err = l.List(ctx, user(0), "page", "viewer") }
			if _, ok := t.(*InProcess); ok {
				list()
			} else {
				checkers.Do(list) // to decode the response is not work of the target either
			}
			if err != nil {
				return err
			}
			checkers.Do(func() {
				read := slices.AppendSeq(spare[:0], ids)
				if !slices.Equal(read, last) {
					err = areAllPages(read)
				}
				last, spare = read, last
			})
			return err
		}
	})
}

// areAllPages returns an error unless a list has every page, once.
func areAllPages(ids []string) error {
	seen := make([]bool, listed)
	for _, id := range ids {
		n, err := strconv.Atoi(strings.TrimPrefix(id, "p"))
		if err != nil || n < 0 || n >= listed || seen[n] {
			return fmt.Errorf("the list of all pages has %q, or has it twice", id)
		}
		seen[n] = true
	}
	if len(ids) != listed {
		return fmt.Errorf("a list of %d of %d pages", len(ids), listed)
	}
	return nil
}

// gated is the number of conditional tuples of the gate; the n-th is about the n-th group.
const gated = 500

// loadGate creates a resource whose viewers depend on a costly condition.
func (s Stalls) loadGate(ctx context.Context, p *InProcess) error {
	gate := schema.Type{
		Name:      "gate",
		Relations: []schema.Relation{{Name: "viewer", Subjects: []schema.SubjectType{{Type: schema.GroupType, Relation: schema.GroupMember}}}},
		Conditions: []condition.Definition{{
			Name: "loops", Expression: "n >= 0 && l.all(x, l.all(y, x + y > n))",
			Parameters: []condition.Parameter{{Name: "n", Type: "int"}, {Name: "l", Type: "list<int>"}},
		}},
	}
	if err := p.Define(ctx, append(s.Types(), gate)); err != nil {
		return err
	}
	var ops []engine.WriteOp
	for n := range gated {
		ops = append(ops, engine.WriteOp{
			Resource: object("gate", "", 0), Relation: "viewer", Subject: asSubject(object(schema.GroupType, "g", n), schema.GroupMember),
			Condition: "loops", Context: fmt.Appendf(nil, `{"n":%d}`, n),
		})
	}
	_, err := p.Engine.Write(ctx, p.Tenant, engine.WriteRequest{Origin: engine.Origin{Actor: "bench"}, Ops: ops})
	return err
}

// checkingGate returns the meter of checks that evaluate the conditions of the gate, each in many
// steps. All of them hold, so that a user passes who is a member of one of the groups.
func (s Stalls) checkingGate(p *InProcess, beside string) *meter {
	list := make([]any, 10)
	for i := range list {
		list[i] = float64(gated + i)
	}
	q := Question{Subject: user(1), Resource: object("gate", "", 0), Action: "viewer"}
	for _, members := range s.members {
		q.Allowed = q.Allowed || members[1]
	}
	f := Figure{Target: p.Name(), Workload: s.Name(), Measure: "check of costly conditions, " + beside, Workers: 1, PerCall: 1}
	return newMeter(f, func(int) func(context.Context) error {
		return func(ctx context.Context) error {
			res, err := p.Engine.Check(ctx, p.Tenant, engine.CheckRequest{
				Subject: q.Subject, Queries: []engine.Query{{Resource: q.Resource, Action: q.Action}}, Context: map[string]any{"l": list},
			})
			if err != nil {
				return err
			}
			if d := res.Decisions[0]; d.Err != nil || d.Allowed != q.Allowed {
				return fmt.Errorf("%w (%v)", wrong(&q, d.Allowed), d.Err)
			}
			return nil
		}
	})
}
