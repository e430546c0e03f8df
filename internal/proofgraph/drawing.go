package proofgraph

import (
	"encoding/json"

	"stonetown/internal/notation"
)

// The bounds of the picture that the server draws, and of the graph for the island of the page,
// which folds it.
var (
	DrawnBounds  = bounds{folded: 8, boxes: 150}
	islandBounds = bounds{folded: 6000, boxes: 6000}
)

// drawing is the graph for the island: the same boxes and lines, without places.
type drawing struct {
	Nodes []drawnNode `json:"nodes"`
	Edges []drawnEdge `json:"edges"`
}

type drawnNode struct {
	ID    string `json:"id"`
	Title string `json:"title"`
	Sub   string `json:"sub,omitempty"`
	Kind  string `json:"kind"`
}

type drawnEdge struct {
	From  string `json:"from"`
	To    string `json:"to"`
	Label string `json:"label"`
	Kind  string `json:"kind"` // "proof", "except" or "missing", and "terms"
	// Tuple is the relation that the line stands for, in the form of the API; nil: a rewrite.
	Tuple *Tuple `json:"tuple,omitempty"`
	// Way is the number of the way of a denial that has a missing relation, from 1.
	Way int `json:"way,omitempty"`
}

// Explore returns the graph of an expansion and a decision as JSON, for the island.
func Explore(root *Node, asked notation.Subject, d Decision) (string, error) {
	p := New(root, asked, d.Reasons, islandBounds)
	var missing []drawnEdge
	if d.Denial != nil {
		for i, way := range d.Denial.Ways {
			for _, r := range way.Relations {
				if r.State != "absent" {
					continue
				}
				from := p.box(r.Resource.String()+"#"+r.Relation, r.Resource.String(), r.Relation, "set")
				who := Fact{Subject: r.Subject}.who()
				kind, title := "subject", who.String()
				if who.Relation != "" {
					kind, title = "set", notation.Subject{Type: who.Type, ID: who.ID}.String()
				}
				to := p.box(who.String(), title, who.Relation, kind)
				missing = append(missing, drawnEdge{
					From: from.key, To: to.key, Label: "+ missing", Kind: "missing", Way: i + 1,
					Tuple: &Tuple{Resource: r.Resource, Relation: r.Relation, Subject: r.Subject},
				})
			}
		}
	}
	var g drawing
	for _, b := range p.order {
		kind := b.Kind
		if b.Proof {
			kind += " proof"
		}
		g.Nodes = append(g.Nodes, drawnNode{b.key, b.Title, b.Sub, kind})
	}
	for _, l := range p.lines {
		e := drawnEdge{From: l.from.key, To: l.to.key, Label: l.Label, Kind: l.Class, Tuple: l.tuple}
		g.Edges = append(g.Edges, e)
	}
	g.Edges = append(g.Edges, missing...)
	text, err := json.Marshal(g)
	return string(text), err
}
