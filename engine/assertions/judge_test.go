package assertions

import (
	"context"
	"errors"
	"iter"
	"slices"
	"strings"
	"testing"

	"stonetown/engine"
	"stonetown/engine/enginetest"
	"stonetown/schema"
	"stonetown/tuplestore"
)

func parse(t *testing.T, text string) []schema.Type {
	t.Helper()
	types, err := enginetest.ParseSchema(text)
	if err != nil {
		t.Fatal(err)
	}
	return types
}

func these(sets ...Set) iter.Seq2[Set, error] {
	return func(yield func(Set, error) bool) {
		for _, s := range sets {
			if !yield(s, nil) {
				return
			}
		}
	}
}

func anns(want Answer) Set {
	ann, d := tuplestore.Subject{Type: "user", ID: "ann"}, tuplestore.Object{Type: "doc", ID: "d"}
	return Set{
		Name: "anns", Relations: []engine.WriteOp{{Resource: d, Relation: "owner", Subject: ann}},
		Assertions: slices.Repeat([]Assertion{{Check: &Check{Subject: ann, Action: "view", Resource: d, Want: want}}}, 60),
	}
}

func TestJudge(t *testing.T) {
	before, after := parse(t, "doc\n  owner [user]\n  viewer: owner"), parse(t, "doc\n  owner [user]\n  viewer [user]")
	places := 0
	heavy := func(do func() error) error {
		places++
		return do()
	}
	report, err := Judge(t.Context(), these(anns(Allowed), anns(Denied), anns(Allowed)), before, after, heavy)
	if err != nil {
		t.Fatal(err)
	}
	if places != 3 || report.Sets != 3 || report.Assertions != 180 || report.Failed != 120 || len(report.Failures) != MaxFailures {
		t.Errorf("%d places, %d sets, %d assertions, %d failed, %d failures", places, report.Sets, report.Assertions, report.Failed, len(report.Failures))
	}
	unreadable, err := Judge(t.Context(), these(Set{Name: "later", Unreadable: 7}, anns(Denied)), before, after, heavy)
	if err != nil || unreadable.Sets != 1 || unreadable.Assertions != 67 || unreadable.Failed != 7 || !slices.Equal(unreadable.Unreadable, []string{"later"}) {
		t.Errorf("%+v, %v", unreadable, err)
	}
	if f := report.Failures[60]; f.Index != 0 || f.Set != "anns" || f.Before[0] != "allowed" || f.After[0] != "denied" || f.Expected[0] != "allowed" {
		t.Errorf("failure %+v", f)
	}

	// The types do not allow the relations.
	report, err = Judge(t.Context(), these(anns(Allowed)), before, parse(t, "doc\n  viewer [user]"), heavy)
	if err != nil || report.Failed != 60 || !strings.Contains(report.Failures[0].After[0], "owner") {
		t.Errorf("%+v, %v", report, err)
	}

	full := errors.New("full")
	if _, err := Judge(t.Context(), these(anns(Allowed)), before, after, func(func() error) error { return full }); !errors.Is(err, full) {
		t.Errorf("without a place: %v", err)
	}
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := Judge(ended, these(anns(Allowed)), before, after, heavy); !errors.Is(err, context.Canceled) {
		t.Errorf("after the request has ended: %v", err)
	}
}

// When no work is left, the rest has no answers.
func TestJudgeWithinBudget(t *testing.T) {
	types := parse(t, "doc\n  owner [user]\n  viewer: owner")
	var report Report
	meter := engine.NewMeter(stepsToWrite + 10*stepsToAsk)
	if err := report.judge(t.Context(), anns(Allowed), types, types, meter); err != nil {
		t.Fatal(err)
	}
	if report.Failed < 50 || report.Failed == 60 || report.Failures[0].After[0] != TooComplex || !meter.Empty() {
		t.Errorf("%d failed, first %+v", report.Failed, report.Failures[0])
	}
}

// BenchmarkJudge judges as many assertions as a tenant may store.
func BenchmarkJudge(b *testing.B) {
	types, err := enginetest.ParseSchema("doc\n  owner [user]\n  viewer: owner")
	if err != nil {
		b.Fatal(err)
	}
	set := anns(Allowed)
	set.Assertions = slices.Repeat(set.Assertions[:1], 200)
	for i := range 499 {
		op := set.Relations[0]
		op.Resource.ID += strings.Repeat("x", i%50+1)
		set.Relations = append(set.Relations, op)
	}
	sets := slices.Repeat([]Set{set}, MaxSets)
	for b.Loop() {
		report, err := Judge(b.Context(), these(sets...), types, types, func(do func() error) error { return do() })
		if err != nil || report.Failed > 0 {
			b.Fatal(report.Failed, err)
		}
	}
}
