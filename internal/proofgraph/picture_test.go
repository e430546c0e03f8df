package proofgraph

import (
	"fmt"
	"maps"
	"strings"
	"testing"

	"stonetown/internal/notation"
)

// large returns an expansion with a group of many members, nested in many others.
func large(width, depth int) *Node {
	n := &Node{Kind: "this", Resource: notation.Ref{Type: "group", ExternalID: fmt.Sprint("g", depth)}, Relation: "member"}
	for i := range width {
		n.Subjects = append(n.Subjects, Fact{Subject: notation.Subject{Type: "user", ID: fmt.Sprintf("u%d-%d", depth, i)}})
	}
	if depth > 0 {
		below := large(width, depth-1)
		n.Subjects = append(n.Subjects, Fact{Subject: notation.Subject{Type: "group", ID: below.Resource.ExternalID}, Condition: &Condition{"on_duty"}})
		n.Children = append(n.Children, below)
	}
	return n
}

// A picture of many relations stays small, its boxes do not overlap, and it has the whole proof.
func TestPictureIsBounded(t *testing.T) {
	const depth, width = 20, 300
	var proof []Reason
	for i := depth; i > 0; i-- {
		proof = append(proof, Reason{Via: fmt.Sprintf("group:g%d#member@group:g%d#member", i, i-1)})
	}
	proof = append(proof, Reason{Via: "group:g0#member@user:u0-299"})
	p := New(large(width, depth), notation.Subject{Type: "user", ID: "u0-299"}, proof, DrawnBounds)
	g := p.LayOut()
	if len(g.Boxes) > DrawnBounds.boxes+depth+2 {
		t.Errorf("%d boxes", len(g.Boxes))
	}
	marked := 0
	for i, b := range g.Boxes {
		if b.Proof {
			marked++
		}
		if b.X < 0 || b.Y < 0 || b.X+b.W > g.Width || b.Y+b.H > g.Height {
			t.Errorf("%s is outside of the picture", b.Title)
		}
		for _, other := range g.Boxes[:i] {
			if b.X < other.X+other.W && other.X < b.X+b.W && b.Y < other.Y+other.H && other.Y < b.Y+b.H {
				t.Errorf("%s is on %s", b.Title, other.Title)
			}
		}
	}
	if marked != depth+2 {
		t.Errorf("%d boxes belong to the proof, want %d", marked, depth+2)
	}
	for _, l := range g.Lines {
		if l.from.X >= l.to.X {
			t.Errorf("the line from %s to %s leads back", l.from.Title, l.to.Title)
		}
	}
}

// An intersection is proved by all operands, and an exclusion by its base.
func TestPictureMarksProofsOnly(t *testing.T) {
	document := notation.Ref{Type: "document", ExternalID: "d"}
	direct := func(relation string) *Node {
		set := &Node{Kind: "this", Resource: document, Relation: relation, Subjects: []Fact{{Subject: notation.Subject{Type: "user", ID: "ann"}}}}
		return &Node{Kind: "computed", Resource: document, Relation: "viewer", Children: []*Node{set}}
	}
	for _, test := range []struct {
		kind string
		used string // relations of which the proof uses the tuple
		want bool
	}{
		{"union", "a", true},
		{"union", "b", true},
		{"union", "", false},
		{"intersection", "a", false},
		{"intersection", "a b", true},
		{"exclusion", "a", true},
		{"exclusion", "b", false},
	} {
		var proof []Reason
		for relation := range strings.FieldsSeq(test.used) {
			proof = append(proof, Reason{Via: "document:d#" + relation + "@user:ann"})
		}
		p := New(&Node{Kind: test.kind, Resource: document, Relation: "viewer", Children: []*Node{direct("a"), direct("b")}}, notation.Subject{Type: "user", ID: "ann"}, proof, DrawnBounds)
		if p.Tree.Proof != test.want {
			t.Errorf("%s of %q: marked %t, want %t", test.kind, test.used, p.Tree.Proof, test.want)
		}
		for _, b := range p.Tree.Children {
			if operand := b.Name[len("document:d#"):]; b.Proof != (test.want && strings.Contains(test.used, operand)) {
				t.Errorf("%s of %q: %s is marked %t", test.kind, test.used, b.Name, b.Proof)
			}
		}
	}
}

// A set that two others include is drawn once, and marked if the proof leads through one of them.
func TestPictureMarksSharedSets(t *testing.T) {
	document := notation.Ref{Type: "document", ExternalID: "d"}
	through := func(relation string) *Node {
		members := &Node{Kind: "this", Resource: notation.Ref{Type: "group", ExternalID: "g"}, Relation: "member", Subjects: []Fact{{Subject: notation.Subject{Type: "user", ID: "ann"}}}}
		set := &Node{Kind: "this", Resource: document, Relation: relation, Subjects: []Fact{{Subject: notation.Subject{Type: "group", ID: "g"}}}, Children: []*Node{members}}
		return &Node{Kind: "computed", Resource: document, Relation: "viewer", Children: []*Node{set}}
	}
	p := New(&Node{Kind: "union", Resource: document, Relation: "viewer", Children: []*Node{through("a"), through("b")}}, notation.Subject{Type: "user", ID: "ann"},
		[]Reason{{Via: "document:d#b@group:g#member"}, {Via: "group:g#member@user:ann"}}, DrawnBounds)
	marked := map[string]bool{}
	for _, l := range p.LayOut().Lines {
		marked[l.from.Title+l.from.Sub+" "+l.to.Title+l.to.Sub] = l.Arrow() == "proof"
	}
	want := map[string]bool{
		"document:dviewer document:da": false, "document:da group:gmember": false,
		"document:dviewer document:db": true, "document:db group:gmember": true, "group:gmember user:ann": true,
	}
	if !maps.Equal(marked, want) {
		t.Errorf("marked are %v, want %v", marked, want)
	}
}

// A picture of relations that lead in a cycle ends.
func TestPictureOfACycle(t *testing.T) {
	a, b := notation.Ref{Type: "folder", ExternalID: "a"}, notation.Ref{Type: "folder", ExternalID: "b"}
	link := func(from, to notation.Ref, below *Node) *Node {
		return &Node{Kind: "tuple_to_userset", Resource: from, Relation: "viewer", Tupleset: "parent", Links: []Fact{{Subject: notation.Subject{Type: to.Type, ID: to.ExternalID}}}, Children: []*Node{below}}
	}
	p := New(link(a, b, link(b, a, &Node{Kind: "union", Resource: a, Relation: "viewer", Cut: "cycle"})), notation.Subject{}, nil, DrawnBounds)
	if g := p.LayOut(); len(g.Boxes) != 2 || len(g.Lines) != 2 {
		t.Errorf("%d boxes and %d lines, want 2 and 2", len(g.Boxes), len(g.Lines))
	}
}
