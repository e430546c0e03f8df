package eval_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"stonetown/engine/enginetest"
	"stonetown/engine/internal/eval"
	"stonetown/engine/internal/graph"
	"stonetown/engine/internal/view"
	"stonetown/engine/internal/work"
	"stonetown/tuplestore"
)

const shelves = `
shelf
  parent [shelf]
  reader [user, group#member]
  banned [user]
  auditor [user, group#member]
  viewer: reader - banned
  both: reader & auditor
  inherited: reader | parent->inherited
  every: all parent->reader
  alternate: reader - parent->alternate
  when open(x bool): x
  when far(y int): y > 10`

// evaluate answers one question on a view of tuples.
func evaluate(t *testing.T, question string, tuples []string, l work.Limits) (e *eval.Evaluation, q eval.Question, allowed bool, err error) {
	t.Helper()
	parsed, err := enginetest.ParseQuestion(question)
	if err != nil {
		t.Fatal(err)
	}
	v, err := enginetest.NewView(shelves, tuples, l, parsed.Context)
	if err != nil {
		t.Fatal(err)
	}
	object, rule, s, err := v.Question(question)
	if err != nil {
		t.Fatal(err)
	}
	e = new(eval.Evaluation)
	e.Explain = true
	e.Begin(v.View, s)
	q = eval.Question{Object: object, Rule: rule}
	e.Ask(&q)
	questions := []eval.Question{q}
	if err := e.Run(context.Background(), questions); err != nil {
		return e, q, false, err
	}
	allowed, err = e.Answer(questions[0])
	return e, questions[0], allowed, err
}

func TestEvaluation(t *testing.T) {
	const undecided, cyclic = "lacks", "depends on its own negation"
	for _, test := range []struct {
		question string
		tuples   string
		want     string // yes, no, or a part of the error
	}{
		{"user:ann viewer shelf:a", "shelf:a#reader@user:ann", "yes"},
		{"user:ann viewer shelf:a", "shelf:a#reader@user:ann; shelf:a#banned@user:ann", "no"},
		{"user:ann viewer shelf:a", "shelf:a#reader@group:g#member; group:g#member@user:ann", "yes"},
		{"group:g#member reader shelf:a", "shelf:a#reader@group:g#member", "yes"},
		{"user:ann both shelf:a", "shelf:a#reader@user:ann", "no"},
		{"user:ann both shelf:a", "shelf:a#reader@user:ann; shelf:a#auditor@group:g#member; group:g#member@user:ann", "yes"},

		// Cycles of tuples.
		{"user:ann inherited shelf:a", "shelf:a#parent@shelf:b; shelf:b#parent@shelf:a", "no"},
		{"user:ann inherited shelf:a", "shelf:a#parent@shelf:b; shelf:b#parent@shelf:a; shelf:b#reader@user:ann", "yes"},

		// An intersection arrow requires a link, and the relation at all of them.
		{"user:ann every shelf:a", "shelf:a#reader@user:ann", "no"},
		{"user:ann every shelf:a", "shelf:a#parent@shelf:b; shelf:b#reader@user:ann", "yes"},
		{"user:ann every shelf:a", "shelf:a#parent@shelf:b; shelf:a#parent@shelf:c; shelf:b#reader@user:ann", "no"},

		// Recursion through an exclusion ends with the tuples, or not at all.
		{"user:ann alternate shelf:a", "shelf:a#parent@shelf:b; shelf:a#reader@user:ann; shelf:b#reader@user:ann", "no"},
		{"user:ann alternate shelf:a", "shelf:a#parent@shelf:b; shelf:b#parent@shelf:c; shelf:a#reader@user:ann; shelf:b#reader@user:ann; shelf:c#reader@user:ann", "yes"},
		{"user:ann alternate shelf:a", "shelf:a#parent@shelf:a; shelf:a#reader@user:ann", cyclic},
		{"user:bob alternate shelf:a", "shelf:a#parent@shelf:a; shelf:a#reader@user:ann", "no"},

		// A condition that cannot be decided matters only if the answer depends on it.
		{"user:ann reader shelf:a", "shelf:a#reader@user:ann when open", undecided},
		{`user:ann reader shelf:a with {"x": true}`, "shelf:a#reader@user:ann when open", "yes"},
		{`user:ann reader shelf:a with {"x": false}`, "shelf:a#reader@user:ann when open", "no"},
		{"user:ann viewer shelf:a", "shelf:a#reader@user:ann; shelf:a#banned@user:ann when open", undecided},
		{"user:ann viewer shelf:a", "shelf:a#banned@user:ann when open", "no"},
		{"user:ann inherited shelf:a", "shelf:a#reader@user:ann when open; shelf:a#parent@shelf:b; shelf:b#reader@user:ann", "yes"},
		{"user:ann both shelf:a", "shelf:a#reader@user:ann when open", "no"},
		{"user:ann every shelf:a", "shelf:a#parent@shelf:b when open; shelf:a#parent@shelf:c; shelf:c#reader@user:ann", undecided},
		{"user:ann every shelf:a", "shelf:a#parent@shelf:b when open; shelf:a#parent@shelf:c; shelf:b#reader@user:ann", "no"},
		{"user:ann alternate shelf:a", "shelf:a#parent@shelf:a when open; shelf:a#reader@user:ann", undecided},
	} {
		_, _, allowed, err := evaluate(t, test.question, strings.Split(test.tuples, ";"), work.Limits{Most: 10_000})
		got := "no"
		switch {
		case err != nil:
			got = err.Error()
		case allowed:
			got = "yes"
		}
		if got != test.want && (err == nil || !strings.Contains(got, test.want)) {
			t.Errorf("%s with %s: %s, want %s", test.question, test.tuples, got, test.want)
		}
	}
}

func TestConditionErrorNamesAllMissingValues(t *testing.T) {
	tuples := []string{"shelf:a#reader@user:ann when open", "shelf:a#auditor@user:ann when far"}
	_, _, _, err := evaluate(t, "user:ann both shelf:a", tuples, work.Limits{Most: 10_000})
	e, ok := errors.AsType[*view.ConditionError](err)
	if !ok || strings.Join(e.Conditions, " ") != "far open" || strings.Join(e.Missing, " ") != "x y" {
		t.Errorf("got %v (%+v), want a *ConditionError for x and y", err, e)
	}
}

func TestNegativeCycleErrorNamesTheFirstNodeOfTheCycle(t *testing.T) {
	tuples := []string{
		"shelf:z#parent@shelf:c", "shelf:c#parent@shelf:b", "shelf:b#parent@shelf:c",
		"shelf:z#reader@user:ann", "shelf:b#reader@user:ann", "shelf:c#reader@user:ann",
	}
	for _, from := range []string{"z", "b", "c"} {
		_, _, _, err := evaluate(t, "user:ann alternate shelf:"+from, tuples, work.Limits{Most: 10_000})
		e, ok := errors.AsType[*eval.NegativeCycleError](err)
		if !ok || e.Node.String() != "shelf:b#alternate" {
			t.Errorf("from %s: %v, want a *NegativeCycleError for shelf:b", from, err)
		}
	}
}

func TestEvaluationEndsWithTheBudget(t *testing.T) {
	var tuples []string
	for i := range 100 {
		tuples = append(tuples, fmt.Sprintf("shelf:%d#parent@shelf:%d", i, i+1))
	}
	tuples = append(tuples, "shelf:100#reader@user:ann")
	for limit, exceeds := range map[int]bool{50: true, 1000: false} {
		_, _, allowed, err := evaluate(t, "user:ann inherited shelf:0", tuples, work.Limits{Most: limit})
		if _, exceeded := errors.AsType[*work.BudgetError](err); exceeded != exceeds || allowed == exceeds {
			t.Errorf("limit %d: %v, %v", limit, allowed, err)
		}
	}
}

func TestReasonsFollowTheProof(t *testing.T) {
	tuples := []string{
		"shelf:a#parent@shelf:b", "shelf:b#reader@group:g#member until 2999-01-01T00:00:00Z", "group:g#member@user:ann",
	}
	e, q, allowed, err := evaluate(t, "user:ann inherited shelf:a", tuples, work.Limits{Most: 10_000})
	if err != nil || !allowed {
		t.Fatal(allowed, err)
	}
	reasons, until := e.Reasons(q)
	var via []string
	for _, r := range reasons {
		via = append(via, r.Rewrite+" "+r.Via)
	}
	const want = "tuple_to_userset shelf:a#parent@shelf:b, computed shelf:b#reader, " +
		"this shelf:b#reader@group:g#member, this group:g#member@user:ann"
	if got := strings.Join(via, ", "); got != want || until.Year() != 2999 {
		t.Errorf("reasons: %s until %v, want %s until 2999", got, until, want)
	}
}

// A level is one read, however many goals it has, and plain members are not read.
func TestEvaluationReadsByLevel(t *testing.T) {
	var relations []string
	for i := range 20 {
		relations = append(relations, fmt.Sprintf("shelf:a#reader@group:%d#member", i), fmt.Sprintf("group:%d#member@user:other%d", i, i))
	}
	relations = append(relations, "group:7#member@user:ann")
	stored, err := enginetest.ParseFacts(relations)
	if err != nil {
		t.Fatal(err)
	}
	v, err := enginetest.NewView(shelves, []string{"shelf:a#parent@shelf:b"}, work.Limits{Most: 10_000}, nil)
	if err != nil {
		t.Fatal(err)
	}
	reads, read := 0, 0
	v.Reader = view.NewReader(v.Graph, v.Program, func(_ context.Context, l tuplestore.Lookup) (found []tuplestore.Fact, _ error) {
		reads++
		for _, f := range stored {
			node := tuplestore.Node{Object: f.Object, Relation: f.Relation}
			for _, n := range l.Usersets {
				if n == node && f.Subject.IsUserset() {
					found = append(found, f)
				}
			}
			for _, tuple := range l.Tuples {
				if tuple == f.Tuple {
					found = append(found, f)
				}
			}
		}
		read += len(found)
		return found, nil
	})
	subject := tuplestore.Subject{Type: "user", ID: "ann"}
	v.Reader.About(subject)
	_, rule, _, err := v.Question("user:ann reader shelf:a")
	if err != nil {
		t.Fatal(err)
	}
	var e eval.Evaluation
	e.Begin(v.View, v.Subject(subject))
	q := eval.Question{Object: v.Find(tuplestore.Object{Type: "shelf", ID: "a"}), Rule: rule}
	e.Ask(&q)
	questions := []eval.Question{q}
	if err := e.Run(context.Background(), questions); err != nil {
		t.Fatal(err)
	}
	if allowed, err := e.Answer(questions[0]); !allowed || err != nil || reads != 2 || read != 21 || q.Object == graph.NoObject {
		t.Errorf("%v, %v after %d reads of %d tuples, want 2 reads of 21", allowed, err, reads, read)
	}
}
