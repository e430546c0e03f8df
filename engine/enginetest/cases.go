package enginetest

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"path"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/cockroachdb/datadriven"

	"stonetown/engine"
	"stonetown/schema"
	"stonetown/schema/condition"
	"stonetown/tuplestore"
)

// Cases runs a file of cases against one tenant. Each answer is also compared with the
// oracle, so that a wrong expectation cannot make a wrong engine pass, and with the answers
// of all other ways to ask.
type Cases struct {
	Engine *engine.Engine
	Tenant string // empty so far
	Ways   map[string]Way

	types  []schema.Type
	oracle *Oracle
	facts  map[tuplestore.Tuple]tuplestore.Qualifier
}

// Run runs the file.
func (c *Cases) Run(t *testing.T, file string) {
	datadriven.RunTest(t, file, func(t *testing.T, d *datadriven.TestData) string {
		return c.run(t, d)
	})
}

func (c *Cases) run(t *testing.T, d *datadriven.TestData) string {
	t.Helper()
	ctx := t.Context()
	var out strings.Builder
	switch d.Cmd {
	case "schema":
		types, err := ParseSchema(d.Input)
		if err != nil {
			d.Fatalf(t, "%v", err)
		}
		c.types, c.oracle = types, NewOracle(types)
		c.facts = map[tuplestore.Tuple]tuplestore.Qualifier{}
		for _, typ := range types {
			if _, _, _, err := c.Engine.PutType(ctx, c.Tenant, typ, engine.Origin{}); err != nil {
				fmt.Fprintln(&out, err)
			}
		}
	case "write", "delete":
		for line := range strings.Lines(d.Input) {
			op, err := ParseRelation(strings.TrimSpace(line))
			if err != nil {
				d.Fatalf(t, "%v", err)
			}
			op.Delete = d.Cmd == "delete"
			if err := c.write(ctx, op); err != nil {
				fmt.Fprintln(&out, err)
			}
		}
	case "check", "reasons", "denials":
		for line := range strings.Lines(d.Input) {
			q, err := ParseQuestion(strings.TrimSpace(line))
			if err != nil {
				d.Fatalf(t, "%v", err)
			}
			c.check(t, d, q, &out)
		}
	default:
		d.Fatalf(t, "unknown command %s", d.Cmd)
	}
	return out.String()
}

func (c *Cases) write(ctx context.Context, op engine.WriteOp) error {
	presence := tuplestore.Presence(op.Resource)
	if op.Relation == "" {
		c.facts[presence] = tuplestore.Qualifier{}
		_, _, err := c.Engine.Register(ctx, c.Tenant, op.Resource, engine.Origin{})
		return err
	}
	if _, err := c.Engine.Write(ctx, c.Tenant, engine.WriteRequest{Ops: []engine.WriteOp{op}}); err != nil {
		return err
	}
	f := factOf(op)
	if op.Delete {
		delete(c.facts, f.Tuple)
		return nil
	}
	c.facts[f.Tuple] = f.Qualifier
	c.facts[presence] = tuplestore.Qualifier{}
	return nil
}

// factOf returns the fact that an op writes.
func factOf(op engine.WriteOp) tuplestore.Fact {
	f := tuplestore.Fact{
		Tuple:     tuplestore.Tuple{Object: op.Resource, Relation: op.Relation, Subject: op.Subject},
		Qualifier: tuplestore.Qualifier{Condition: op.Condition, Context: string(op.Context)},
	}
	if !op.ExpiresAt.IsZero() {
		f.ExpiresAt = op.ExpiresAt.UnixMicro()
	}
	if f.Subject.Type == schema.GroupType && f.Subject.Relation == "" && f.Subject.ID != tuplestore.Wildcard {
		f.Subject.Relation = schema.GroupMember
	}
	return f
}

func (c *Cases) check(t *testing.T, d *datadriven.TestData, q Question, out *strings.Builder) {
	t.Helper()
	ctx := t.Context()
	answer, err := c.Engine.Check(ctx, c.Tenant, engine.CheckRequest{
		Subject: q.Subject, Reasons: d.Cmd == "reasons", Denials: d.Cmd == "denials", Context: q.Context, Contextual: q.Contextual,
		Queries: []engine.Query{{Resource: q.Resource, Action: q.Action}},
	})
	if err != nil {
		fmt.Fprintf(out, "%s: %v\n", q.Text, err)
		verdict, err := VerdictOf(false, err)
		if err != nil {
			d.Fatalf(t, "%v", err)
		}
		c.askOtherwise(t, d, q, verdict)
		return
	}
	decision := answer.Decisions[0]
	if d.Cmd == "reasons" {
		fmt.Fprintln(out, q.Text)
		for _, r := range decision.Reasons {
			fmt.Fprintf(out, "  %s %s\n    %s\n", r.Rewrite, r.Via, r.Text)
		}
		return
	}
	verdict, err := VerdictOf(decision.Allowed, decision.Err)
	if err != nil {
		d.Fatalf(t, "%v", err)
	}
	fmt.Fprintf(out, "%s: %s\n", q.Text, verdict)
	writeDenial(out, decision.Denial)
	c.askOtherwise(t, d, q, verdict)
	if verdict == Allowed || verdict == Denied || verdict == Cyclic {
		c.holdAgainstOracle(t, d, q, verdict)
	}
}

// writeDenial writes the ways of a denial, one per line.
func writeDenial(out *strings.Builder, d *engine.Denial) {
	if d == nil {
		return
	}
	for _, way := range d.Ways {
		var parts []string
		for _, r := range way.Relations {
			part := r.Tuple.String()
			switch r.State {
			case engine.RelationExpired:
				part += " (expired)"
			case engine.ConditionUnmet, engine.ConditionUndecided:
				part += fmt.Sprintf(" (%s %s %s)", r.State, r.Qualifier.Condition, r.Values)
			}
			parts = append(parts, part)
		}
		for _, x := range way.Exclusions {
			part := "no exclusion at " + x.Node.String()
			for _, reason := range x.Reasons {
				part += ", " + reason.Via
			}
			parts = append(parts, "("+part+")")
		}
		fmt.Fprintf(out, "  %s\n", strings.Join(parts, " and "))
	}
	if d.Truncated {
		fmt.Fprintln(out, "  and there may be more")
	}
}

// unlisted are the verdicts that a list does not distinguish from denied, by the last word
// of the way's name.
var unlisted = map[string]Verdict{"list-resources": NotFound, "list-actions": Undefined}

// askOtherwise asks in every other way.
func (c *Cases) askOtherwise(t *testing.T, d *datadriven.TestData, q Question, want Verdict) {
	t.Helper()
	for name, ask := range c.Ways {
		got, ok, err := ask(t.Context(), q)
		if err != nil {
			t.Errorf("%s: %s by %s: %v", d.Pos, q.Text, name, err)
		}
		same := got == want || got == Denied && unlisted[path.Base(name)] == want
		if ok && err == nil && !same {
			t.Errorf("%s: %s by %s: %s, a check answers %s", d.Pos, q.Text, name, got, want)
		}
	}
}

func (c *Cases) holdAgainstOracle(t *testing.T, d *datadriven.TestData, q Question, verdict Verdict) {
	t.Helper()
	own := map[tuplestore.Tuple]tuplestore.Qualifier{}
	for _, op := range q.Contextual {
		f := factOf(op)
		own[f.Tuple] = f.Qualifier
		own[tuplestore.Presence(f.Object)] = tuplestore.Qualifier{}
	}
	// A tuple that is stored and contextual holds if one of the two holds.
	holding, decided, err := Holding(c.types, c.facts, q.Context)
	if err != nil {
		d.Fatalf(t, "%v", err)
	}
	brought, ownDecided, err := Holding(c.types, own, q.Context)
	if err != nil {
		d.Fatalf(t, "%v", err)
	}
	maps.Copy(holding, brought)
	decided = decided && ownDecided
	if !decided {
		return // the answer may not depend on it; random tests cover that
	}
	c.oracle.Tuples = holding
	subject := q.Subject
	if subject.Type == schema.GroupType && subject.Relation == "" && subject.ID != tuplestore.Wildcard {
		subject.Relation = schema.GroupMember
	}
	relation := q.Action
	typ := c.oracle.typ(q.Resource.Type)
	if own := typ.Actions[q.Action]; own != "" {
		relation = own
	} else if conventional := map[string]string{"edit": "editor", "view": "viewer", "delete": "owner"}[q.Action]; conventional != "" {
		relation = conventional
	}
	if want := c.oracle.Check(subject, tuplestore.Node{Object: q.Resource, Relation: relation}); verdict != want {
		t.Errorf("%s: %s: engine %s, oracle %s", d.Pos, q.Text, verdict, want)
	}
}

// Holding returns the tuples that hold. decided is false if a condition lacks values or
// fails.
func Holding(types []schema.Type, facts map[tuplestore.Tuple]tuplestore.Qualifier, values map[string]any) (holding map[tuplestore.Tuple]bool, decided bool, err error) {
	holding, decided = map[tuplestore.Tuple]bool{}, true
	for tuple, on := range facts {
		if on.ExpiresAt != 0 && on.ExpiresAt <= time.Now().UnixMicro() {
			continue
		}
		if on.Condition != "" {
			met, missing, err := evaluate(types, tuple.Object.Type, on, values)
			var failed *condition.EvaluationError
			if err != nil && !errors.As(err, &failed) {
				return nil, false, err
			}
			if err != nil || len(missing) > 0 {
				decided = false
			}
			if !met {
				continue
			}
		}
		holding[tuple] = true
	}
	return holding, decided, nil
}

func evaluate(types []schema.Type, typ string, on tuplestore.Qualifier, values map[string]any) (met bool, missing []string, err error) {
	for _, t := range types {
		for _, d := range t.Conditions {
			if t.Name == typ && d.Name == on.Condition {
				c, err := compiled(d)
				if err != nil {
					return false, nil, err
				}
				stored, err := c.Normalize([]byte(on.Context))
				if err != nil {
					return false, nil, err
				}
				return c.Evaluate(context.Background(), stored, values)
			}
		}
	}
	return false, nil, fmt.Errorf("type %s has no condition %s", typ, on.Condition)
}

// programs are the compiled conditions, by their definitions.
var programs sync.Map

func compiled(d condition.Definition) (*condition.Condition, error) {
	key := fmt.Sprint(d)
	if c, ok := programs.Load(key); ok {
		return c.(*condition.Condition), nil
	}
	c, err := condition.Compile(d)
	if err == nil {
		programs.Store(key, c)
	}
	return c, err
}
