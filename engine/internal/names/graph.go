package names

import (
	"stonetown/engine/internal/graph"
	"stonetown/schema"
)

// Rename gives a graph the names that types have after a change of them, if the change renames any.
// It reports whether that is possible: in a graph, a relation has one name for all types, so that
// those who have it must rename it together. Otherwise the graph is unchanged, and has to be loaded
// again.
func Rename(g *graph.Graph, before, after *schema.Compiled) bool {
	renames := schema.Renamed(before.Types, after.Types)
	if len(renames) == 0 {
		return true
	}
	types := map[string]string{}
	renamed := map[schema.RelationName]string{}
	for _, r := range renames {
		if r.Type == "" {
			types[r.From] = r.To
		} else {
			renamed[schema.RelationName{Type: r.Type, Relation: r.From}] = r.To
		}
	}
	relations, back := map[string]string{}, map[string]string{}
	for _, of := range before.Rules {
		to, ok := renamed[schema.RelationName{Type: of.Type, Relation: of.Relation}]
		if !ok {
			to = of.Relation
		}
		if other, ok := relations[of.Relation]; ok && other != to {
			return false
		}
		if other, ok := back[to]; ok && other != of.Relation {
			return false
		}
		relations[of.Relation], back[to] = to, of.Relation
	}
	g.Rename(types, relations)
	return true
}
