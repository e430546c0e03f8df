package enginetest

import (
	"context"
	"fmt"
	"time"

	"stonetown/engine/internal/graph"
	"stonetown/engine/internal/program"
	"stonetown/engine/internal/view"
	"stonetown/engine/internal/work"
	"stonetown/schema"
	"stonetown/tuplestore"
)

// View is a view of resource types, in the notation of [ParseSchema], and relations, in that
// of [ParseRelation], for tests of the engine's parts.
type View struct {
	*view.View
	Compiled *schema.Compiled
}

// NewView returns a view of a graph that has all relations, within limits and with values
// for conditions.
func NewView(types string, relations []string, l work.Limits, values map[string]any) (View, error) {
	parsed, err := ParseSchema(types)
	if err != nil {
		return View{}, err
	}
	compiled, err := schema.Compile(parsed)
	if err != nil {
		return View{}, err
	}
	facts, err := ParseFacts(relations)
	if err != nil {
		return View{}, err
	}
	g := graph.New()
	for _, f := range facts {
		g.Add(f)
		g.Add(tuplestore.Fact{Tuple: tuplestore.Presence(f.Object)})
	}
	v := &view.View{Graph: g, Program: program.New(compiled, g)}
	v.Start(context.Background(), l, time.Now, values)
	return View{v, compiled}, nil
}

// ParseFacts reads relations.
func ParseFacts(relations []string) ([]tuplestore.Fact, error) {
	facts := make([]tuplestore.Fact, len(relations))
	for i, text := range relations {
		op, err := ParseRelation(text)
		if err != nil {
			return nil, err
		}
		facts[i] = factOf(op)
	}
	return facts, nil
}

// Question returns the object and the rule of a question, and its subject.
func (v View) Question(text string) (object graph.ObjectID, rule int32, s view.Subject, err error) {
	q, err := ParseQuestion(text)
	if err != nil {
		return 0, 0, s, err
	}
	relation, ok := v.Compiled.ActionRelation(q.Resource.Type, q.Action)
	object = v.Find(q.Resource)
	if !ok || object == graph.NoObject {
		return 0, 0, s, fmt.Errorf("%q names no relation or no object of the view", text)
	}
	id, _ := v.Compiled.Rule(q.Resource.Type, relation)
	return object, int32(id), v.Subject(q.Subject), nil
}
