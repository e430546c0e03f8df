package program_test

import (
	"maps"
	"slices"
	"testing"

	"stonetown/engine/enginetest"
	"stonetown/engine/internal/program"
	"stonetown/engine/internal/work"
)

const drive = `
folder
  parent [folder]
  editor [user, group#member]
  viewer [user]: this | editor | parent->viewer
  reader: viewer - banned
  banned [user]
  only [user]
doc
  parent [folder]
  author [user]
  viewer: author | parent->viewer | parent->editor`

func newProgram(t *testing.T) (*program.Program, enginetest.View) {
	t.Helper()
	v, err := enginetest.NewView(drive, nil, work.Limits{Most: 1000}, nil)
	if err != nil {
		t.Fatal(err)
	}
	return v.Program, v
}

func TestRulesHaveTheNumbersOfTheGraph(t *testing.T) {
	p, v := newProgram(t)
	types, relations := &v.Graph.Types, &v.Graph.Relations
	doc, viewer := types.Known("doc"), relations.Known("viewer")
	rule := &p.Rules[p.Rule(doc, viewer)]
	if rule.Relation != viewer || !rule.IsDirect(relations.Known("author")) || rule.IsDirect(viewer) || !rule.IsTupleset(relations.Known("parent")) {
		t.Errorf("rule of doc#viewer: %v %v %v", rule.Relation, rule.Direct, rule.Arrows)
	}
	// A folder's viewers include its editors.
	if want := []program.Arrow{{Tupleset: relations.Known("parent"), Computed: viewer}}; !slices.Equal(rule.Arrows, want) {
		t.Errorf("arrows of doc#viewer: %v, want %v", rule.Arrows, want)
	}
	if rule := &p.Rules[p.Rule(types.Known("folder"), relations.Known("only"))]; !rule.Leaf || rule.Self {
		t.Error("folder#only is no leaf")
	}
	reader := &p.Rules[p.Rule(types.Known("folder"), relations.Known("reader"))]
	if len(reader.Logic) != 1 || !p.Logic[reader.Logic[0]].IsExclusion() || reader.Leaf {
		t.Error("folder#reader is no exclusion")
	}
	if p.Rule(doc, relations.Known("banned")) != program.NoRule || p.Rule(doc, relations.Intern("new")) != program.NoRule {
		t.Error("there are rules of relations that doc does not have")
	}
}

func TestInverseHasOnlyRelevantRelations(t *testing.T) {
	p, v := newProgram(t)
	types, relations := v.Graph.Types.Names(), v.Graph.Relations.Names()
	target := program.TypeRelation{Type: v.Graph.Types.Known("folder"), Relation: v.Graph.Relations.Known("reader")}
	found := map[string]bool{}
	relevant := p.Inverse().Relevant(target)
	for typ := range types {
		for relation := range relations {
			if at := p.At(v.Graph.Types.Known(types[typ]), v.Graph.Relations.Known(relations[relation])); relevant[at] {
				found[types[typ]+"#"+relations[relation]] = true
			}
		}
	}
	want := map[string]bool{"folder#reader": true, "folder#viewer": true, "group#member": true}
	if !maps.Equal(found, want) {
		t.Errorf("relevant for folder#reader: %v, want %v", found, want)
	}
}

// The subject of a tuple of editor is surely in viewer, and only possibly in reader.
func TestInverseIsSureOnlyWithoutLogic(t *testing.T) {
	p, v := newProgram(t)
	relations := &v.Graph.Relations
	found := map[string]bool{}
	for _, into := range p.Inverse().ByTuple[p.At(v.Graph.Types.Known("folder"), relations.Known("editor"))] {
		found[relations.Name(into.Relation)] = into.Sure
	}
	if want := map[string]bool{"editor": true, "viewer": true, "reader": false}; !maps.Equal(found, want) {
		t.Errorf("folder#editor leads into %v, want %v", found, want)
	}
}
