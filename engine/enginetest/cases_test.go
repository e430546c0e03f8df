package enginetest

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/cockroachdb/datadriven"

	"stonetown/engine"
	"stonetown/tuplestore"
)

const tenant = "tnt_test"

// TestCases runs testdata on every backend. Each answer is also held against
// the oracle, so that a wrong expectation cannot make a wrong engine pass.
func TestCases(t *testing.T) {
	everywhere(t, func(t *testing.T, e *engine.Engine, _ tuplestore.Store) {
		files := 0
		datadriven.Walk(t, "testdata", func(t *testing.T, path string) {
			files++
			c := cases{engine: e, tenant: fmt.Sprint(tenant, files)}
			datadriven.RunTest(t, path, func(t *testing.T, d *datadriven.TestData) string {
				return c.run(t, d)
			})
		})
	})
}

type cases struct {
	engine *engine.Engine
	tenant string // one per file
	oracle *Oracle
}

func (c *cases) run(t *testing.T, d *datadriven.TestData) string {
	t.Helper()
	ctx := context.Background()
	var out strings.Builder
	switch d.Cmd {
	case "schema":
		types, err := ParseSchema(d.Input)
		if err != nil {
			d.Fatalf(t, "%v", err)
		}
		c.oracle = NewOracle(types)
		for _, typ := range types {
			if _, _, _, err := c.engine.PutType(ctx, c.tenant, typ, "test"); err != nil {
				fmt.Fprintln(&out, err)
			}
		}
	case "write", "delete":
		for line := range strings.Lines(d.Input) {
			tuple, err := ParseTuple(strings.TrimSpace(line))
			if err != nil {
				d.Fatalf(t, "%v", err)
			}
			if err := c.write(ctx, tuple, d.Cmd == "delete"); err != nil {
				fmt.Fprintln(&out, err)
			}
		}
	case "check", "reasons":
		for line := range strings.Lines(d.Input) {
			c.check(ctx, t, d, strings.TrimSpace(line), &out)
		}
	default:
		d.Fatalf(t, "unknown command %s", d.Cmd)
	}
	return out.String()
}

func (c *cases) write(ctx context.Context, t tuplestore.Tuple, remove bool) error {
	if t.IsPresence() {
		c.oracle.Tuples[t] = true
		_, _, err := c.engine.Register(ctx, c.tenant, t.Object, "test", nil)
		return err
	}
	_, err := c.engine.Write(ctx, c.tenant, engine.WriteRequest{Actor: "test", Ops: []engine.WriteOp{
		{Delete: remove, Resource: t.Object, Relation: t.Relation, Subject: t.Subject},
	}})
	if err != nil {
		return err
	}
	if t.Subject.Type == "group" && t.Subject.Relation == "" {
		t.Subject.Relation = "member"
	}
	if remove {
		delete(c.oracle.Tuples, t)
		return nil
	}
	c.oracle.Tuples[t] = true
	c.oracle.Tuples[tuplestore.Presence(t.Object)] = true
	return nil
}

func (c *cases) check(ctx context.Context, t *testing.T, d *datadriven.TestData, question string, out *strings.Builder) {
	t.Helper()
	words := strings.Fields(question)
	if len(words) != 3 {
		d.Fatalf(t, "%q is not of the form subject action object", question)
	}
	subject, err := ParseSubject(words[0])
	if err != nil {
		d.Fatalf(t, "%v", err)
	}
	object, err := parseObject(words[2])
	if err != nil {
		d.Fatalf(t, "%v", err)
	}
	answer, err := c.engine.Check(ctx, c.tenant, engine.CheckRequest{
		Subject: subject, Reasons: d.Cmd == "reasons",
		Queries: []engine.Query{{Resource: object, Action: words[1]}},
	})
	if err != nil {
		fmt.Fprintf(out, "%s: %v\n", question, err)
		return
	}
	decision := answer.Decisions[0]
	if d.Cmd == "reasons" {
		fmt.Fprintln(out, question)
		for _, r := range decision.Reasons {
			fmt.Fprintf(out, "  %s %s\n", r.Rewrite, r.Via)
		}
		return
	}
	verdict := "denied"
	switch {
	case decision.Err != nil:
		verdict = decision.Err.Error()
	case decision.Allowed:
		verdict = "allowed"
	}
	fmt.Fprintf(out, "%s: %s\n", question, verdict)
	if decision.Err == nil {
		c.holdAgainstOracle(t, d, subject, object, words[1], decision.Allowed)
	}
}

func (c *cases) holdAgainstOracle(t *testing.T, d *datadriven.TestData, subject tuplestore.Subject, object tuplestore.Object, action string, allowed bool) {
	t.Helper()
	if subject.Type == "group" && subject.Relation == "" {
		subject.Relation = "member"
	}
	relation := action
	typ := c.oracle.typ(object.Type)
	if own := typ.Actions[action]; own != "" {
		relation = own
	} else if conventional := map[string]string{"edit": "editor", "view": "viewer", "delete": "owner"}[action]; conventional != "" {
		relation = conventional
	}
	want, _ := c.oracle.Check(subject, tuplestore.Node{Object: object, Relation: relation})
	if allowed != want {
		t.Errorf("%s: %s %s %s: engine %v, oracle %v", d.Pos, subject, action, object, allowed, want)
	}
}
