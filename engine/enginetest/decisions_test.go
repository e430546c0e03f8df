package enginetest

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"reflect"
	"slices"
	"testing"
	"time"

	"stonetown/engine"
	"stonetown/schema"
	"stonetown/tuplestore"
)

// TestWatchedDecisions compares the events of a watch for decisions with all decisions before and
// after each commit, one by one.
func TestWatchedDecisions(t *testing.T) {
	for name, c := range map[string]struct {
		visits int
		scopes bool // some commits have too many changes
	}{"all": {0, false}, "small budget": {60, true}} {
		t.Run(name, func(t *testing.T) {
			residentAndCold(t, func(t *testing.T, e *engine.Engine, s tuplestore.Store) {
				watching := newEngine(t, engine.Config{MaxVisits: c.visits}, s)
				// For a watch, expired relations hold until they are deleted.
				timeless := newEngine(t, engine.Config{Clock: func() time.Time { return time.UnixMicro(1) }}, s)
				randomly(t, func(t *testing.T, r *rand.Rand) {
					seen := map[string]int{}
					shown := []string{"gained", "lost", "wildcard", "resource_types"}
					if c.scopes {
						shown = []string{"too_many"}
					}
					lacks := func() bool {
						return slices.ContainsFunc(shown, func(what string) bool { return seen[what] == 0 })
					}
					for round := range untilShown(max(4, *rounds/2), lacks) {
						w := newTenant(t.Context(), t, e, r, fmt.Sprintf("tnt_%d", round))
						w.followDecisions(t, s, watching, timeless, seen)
						if t.Failed() {
							return
						}
					}
					t.Logf("seen: %v", seen)
					if lacks() {
						t.Errorf("no event of some of %q", shown)
					}
					if seen["too_many"] > 0 && !c.scopes {
						t.Errorf("%d events with too many changes", seen["too_many"])
					}
				})
			})
		})
	}
}

// decisionTable has the decisions of one revision.
type decisionTable map[[2]string]engine.DecisionState

func (w *writer) followDecisions(t *testing.T, s tuplestore.Store, watching, timeless *engine.Engine, seen map[string]int) {
	ctx := t.Context()
	for range 10 {
		w.write(ctx, t)
	}
	start := w.newest.Load().(string)
	for range 25 {
		switch w.rand.IntN(10) {
		case 0:
			w.changeTypes(ctx, t)
		case 1:
			if expiring, ok := s.(interface {
				Expire(ctx context.Context, before time.Time) error
			}); ok {
				if err := expiring.Expire(ctx, time.Now()); err != nil {
					t.Fatal(err)
				}
				w.tuples = maps.Clone(w.tuples)
				maps.DeleteFunc(w.tuples, func(_ tuplestore.Tuple, on tuplestore.Qualifier) bool { return hasExpired(on) })
			}
		default:
			w.write(ctx, t)
		}
	}
	now, err := w.engine.Check(ctx, w.tenant, engine.CheckRequest{Subject: tuplestore.Subject{Type: "user", ID: "0"}})
	if err != nil {
		t.Fatal(err)
	}
	commits := watched(t, watching, w.tenant, engine.WatchRequest{After: start}, now.Token)
	tokens := []string{start}
	for _, c := range commits {
		tokens = append(tokens, c.Token)
	}
	for range 3 {
		about := engine.WatchedDecisions{Type: pick(w.rand, w.types).Name, SubjectType: pick(w.rand, []string{"user", "user", "group", pick(w.rand, w.types).Name})}
		about.Action = pick(w.rand, append(w.compiled.Actions(about.Type), "a"))
		if _, ok := w.compiled.ActionRelation(about.Type, about.Action); !ok {
			continue
		}
		if w.rand.IntN(10) == 0 {
			about.Type, about.Action = schema.GroupType, schema.GroupMember
		}
		tables := make([]decisionTable, len(tokens))
		for i, token := range tokens {
			tables[i] = w.decisions(ctx, t, timeless, about, token)
		}
		events := watched(t, watching, w.tenant, engine.WatchRequest{After: start, Decisions: &about}, now.Token)
		byToken := map[string]engine.WatchEvent{}
		for _, ev := range events {
			byToken[ev.Token] = ev
		}
		for i, c := range commits {
			ev, ok := byToken[c.Token]
			if ok && (ev.At != c.At || ev.Actor != c.Actor) {
				t.Fatalf("%+v, of the commit %+v", ev, c)
			}
			count(seen, ev)
			if wrong := compareEvent(ev, about, tables[i], tables[i+1]); wrong != "" {
				t.Fatalf("%+v: %s\nchanges %+v, event %+v", about, wrong, c.Changes, ev)
			}
		}
		// Other pages of commits have the same events. Under a small budget, it depends on what has
		// been read before which of them have a scope.
		from := pick(w.rand, append(tokens, withRevision(start, 0)))
		begins := max(revision(t, from), revision(t, start))
		before := func(ev engine.WatchEvent) bool { return revision(t, ev.Token) <= begins }
		rest := slices.DeleteFunc(watched(t, watching, w.tenant, engine.WatchRequest{After: from, Decisions: &about}, now.Token), before)
		want := slices.DeleteFunc(events, before)
		if seen["too_many"] == 0 && len(rest)+len(want) > 0 && !reflect.DeepEqual(rest, want) {
			t.Fatalf("resumed: %+v, want %+v", rest, want)
		}
	}
}

// watched returns the events of a watch up to a token, without heartbeats.
func watched(t *testing.T, e *engine.Engine, tenant string, req engine.WatchRequest, last string) (events []engine.WatchEvent) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	done := errors.New("done")
	req.Heartbeat = time.Millisecond
	if err := e.Watch(ctx, tenant, req, func(ev engine.WatchEvent) error {
		if !ev.Heartbeat {
			events = append(events, ev)
		}
		if ev.Token == last {
			return done
		}
		return nil
	}); !errors.Is(err, done) {
		t.Fatalf("watch %+v: %v", req, err)
	}
	return events
}

// decisions asks for all decisions at a revision.
func (w *writer) decisions(ctx context.Context, t *testing.T, e *engine.Engine, about engine.WatchedDecisions, token string) decisionTable {
	t.Helper()
	var queries []engine.Query
	for _, resource := range []string{"0", "1", "2", "3", "never"} {
		for _, id := range []string{"0", "1", "2", "3", "4", "nobody", tuplestore.Wildcard} {
			if about.SubjectType == schema.GroupType && id == tuplestore.Wildcard {
				continue
			}
			queries = append(queries, engine.Query{
				Subject:  &tuplestore.Subject{Type: about.SubjectType, ID: id},
				Resource: tuplestore.Object{Type: about.Type, ID: resource}, Action: about.Action,
			})
		}
	}
	answer, err := e.Check(ctx, w.tenant, engine.CheckRequest{Queries: queries, Consistency: engine.Consistency{Mode: engine.Exactly, Token: token}})
	if err != nil {
		t.Fatal(err)
	}
	table := decisionTable{}
	for i, q := range queries {
		verdict, err := VerdictOf(answer.Decisions[i].Allowed, answer.Decisions[i].Err)
		if err != nil {
			t.Fatal(err)
		}
		state := engine.DecisionDenied
		switch verdict {
		case Allowed:
			state = engine.DecisionAllowed
		case Undecided:
			state = engine.DecisionConditional
		case Cyclic:
			state = engine.DecisionUndecidable
		}
		table[[2]string{q.Resource.ID, q.Subject.ID}] = state
	}
	return table
}

func count(seen map[string]int, ev engine.WatchEvent) {
	if ev.Scope != nil {
		seen[ev.Scope.Reason]++
	}
	for _, c := range ev.Decisions {
		seen[map[engine.DecisionState]string{
			engine.DecisionAllowed: "gained", engine.DecisionDenied: "lost",
			engine.DecisionConditional: "conditional", engine.DecisionUndecidable: "undecidable",
		}[c.After]]++
		if c.Subject.ID == tuplestore.Wildcard {
			seen["wildcard"]++
		}
		if len(c.Except) > 0 {
			seen["except"]++
		}
	}
}

// compareEvent compares an event, which is zero if there is none, with the decisions before and
// after its commit. It returns what is wrong.
func compareEvent(ev engine.WatchEvent, about engine.WatchedDecisions, before, after decisionTable) string {
	listed := map[[2]string]engine.DecisionChange{}
	for _, c := range ev.Decisions {
		key := [2]string{c.Resource.ID, c.Subject.ID}
		if _, twice := listed[key]; twice {
			return fmt.Sprintf("%v is listed twice", key)
		}
		listed[key] = c
	}
	for key, was := range before {
		resource, subject, is := key[0], key[1], after[key]
		if s := ev.Scope; s != nil {
			if is == was || s.Reason == "resource_types" {
				continue
			}
			if s.Resources != nil && !slices.ContainsFunc(s.Resources, func(o tuplestore.Object) bool { return o == tuplestore.Object{Type: about.Type, ID: resource} }) ||
				s.Subjects != nil && !slices.ContainsFunc(s.Subjects, func(o tuplestore.Subject) bool { return o.ID == subject }) {
				return fmt.Sprintf("%v changed outside of the scope %+v", key, s)
			}
			continue
		}
		c, named := listed[key]
		all, forAll := listed[[2]string{resource, tuplestore.Wildcard}]
		excepted := forAll && slices.ContainsFunc(all.Except, func(s tuplestore.Subject) bool { return s.ID == subject })
		switch {
		case named && (c.Before != was || c.After != is || was == is):
			return fmt.Sprintf("%v: %d before, %d after, want %d and %d", key, c.Before, c.After, was, is)
		case named && subject != tuplestore.Wildcard && forAll != excepted:
			return fmt.Sprintf("%v is named beside a wildcard that says so", key)
		case excepted && is == all.After:
			return fmt.Sprintf("%v is excepted for nothing", key)
		case !named && forAll && !excepted && is != all.After:
			return fmt.Sprintf("%v is not excepted", key)
		case !named && (!forAll || excepted) && was != is:
			return fmt.Sprintf("%v: nothing, want %d before, %d after", key, was, is)
		}
	}
	return ""
}
