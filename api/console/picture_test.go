package console

import (
	"encoding/json"
	"fmt"
	"maps"
	"os/exec"
	"strings"
	"testing"

	"stonetown/internal/notation"
)

// large returns an expansion with a group of many members, nested in many others.
func large(width, depth int) *treeNode {
	n := &treeNode{Kind: "this", Resource: notation.Ref{Type: "group", ExternalID: fmt.Sprint("g", depth)}, Relation: "member"}
	for i := range width {
		n.Subjects = append(n.Subjects, treeFact{Subject: notation.Subject{Type: "user", ID: fmt.Sprintf("u%d-%d", depth, i)}})
	}
	if depth > 0 {
		below := large(width, depth-1)
		n.Subjects = append(n.Subjects, treeFact{Subject: notation.Subject{Type: "group", ID: below.Resource.ExternalID}, Condition: &condition{"on_duty"}})
		n.Children = append(n.Children, below)
	}
	return n
}

// A picture of many relations stays small, its boxes do not overlap, and it has the whole proof.
func TestPictureIsBounded(t *testing.T) {
	const depth, width = 20, 300
	var proof []reason
	for i := depth; i > 0; i-- {
		proof = append(proof, reason{Via: fmt.Sprintf("group:g%d#member@group:g%d#member", i, i-1)})
	}
	proof = append(proof, reason{Via: "group:g0#member@user:u0-299"})
	p := newPicture(large(width, depth), notation.Subject{Type: "user", ID: "u0-299"}, proof, drawnBounds)
	g := p.layOut()
	if len(g.Boxes) > drawnBounds.boxes+depth+2 {
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
	direct := func(relation string) *treeNode {
		set := &treeNode{Kind: "this", Resource: document, Relation: relation, Subjects: []treeFact{{Subject: notation.Subject{Type: "user", ID: "ann"}}}}
		return &treeNode{Kind: "computed", Resource: document, Relation: "viewer", Children: []*treeNode{set}}
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
		var proof []reason
		for relation := range strings.FieldsSeq(test.used) {
			proof = append(proof, reason{Via: "document:d#" + relation + "@user:ann"})
		}
		p := newPicture(&treeNode{Kind: test.kind, Resource: document, Relation: "viewer", Children: []*treeNode{direct("a"), direct("b")}}, notation.Subject{Type: "user", ID: "ann"}, proof, drawnBounds)
		if p.tree.Proof != test.want {
			t.Errorf("%s of %q: marked %t, want %t", test.kind, test.used, p.tree.Proof, test.want)
		}
		for _, b := range p.tree.Children {
			if operand := b.Name[len("document:d#"):]; b.Proof != (test.want && strings.Contains(test.used, operand)) {
				t.Errorf("%s of %q: %s is marked %t", test.kind, test.used, b.Name, b.Proof)
			}
		}
	}
}

// A set that two others include is drawn once, and marked if the proof leads through one of them.
func TestPictureMarksSharedSets(t *testing.T) {
	document := notation.Ref{Type: "document", ExternalID: "d"}
	through := func(relation string) *treeNode {
		members := &treeNode{Kind: "this", Resource: notation.Ref{Type: "group", ExternalID: "g"}, Relation: "member", Subjects: []treeFact{{Subject: notation.Subject{Type: "user", ID: "ann"}}}}
		set := &treeNode{Kind: "this", Resource: document, Relation: relation, Subjects: []treeFact{{Subject: notation.Subject{Type: "group", ID: "g"}}}, Children: []*treeNode{members}}
		return &treeNode{Kind: "computed", Resource: document, Relation: "viewer", Children: []*treeNode{set}}
	}
	p := newPicture(&treeNode{Kind: "union", Resource: document, Relation: "viewer", Children: []*treeNode{through("a"), through("b")}}, notation.Subject{Type: "user", ID: "ann"},
		[]reason{{Via: "document:d#b@group:g#member"}, {Via: "group:g#member@user:ann"}}, drawnBounds)
	marked := map[string]bool{}
	for _, l := range p.layOut().Lines {
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
	link := func(from, to notation.Ref, below *treeNode) *treeNode {
		return &treeNode{Kind: "tuple_to_userset", Resource: from, Relation: "viewer", Tupleset: "parent", Links: []treeFact{{Subject: notation.Subject{Type: to.Type, ID: to.ExternalID}}}, Children: []*treeNode{below}}
	}
	p := newPicture(link(a, b, link(b, a, &treeNode{Kind: "union", Resource: a, Relation: "viewer", Cut: "cycle"})), notation.Subject{}, nil, drawnBounds)
	if g := p.layOut(); len(g.Boxes) != 2 || len(g.Lines) != 2 {
		t.Errorf("%d boxes and %d lines, want 2 and 2", len(g.Boxes), len(g.Lines))
	}
}

// A shell reads a printed command as it was meant, whatever the ids are.
func TestCurl(t *testing.T) {
	for _, id := range []string{"plain", `it's`, `$(touch x) "quoted" \ ` + "`id`", "line\nbreak", "<b>&amp;</b>", "'; rm -rf /; '"} {
		c := call{"POST", "/api/v1/resources/check", object{"id": id}}
		out, err := exec.CommandContext(t.Context(), "sh", "-c", "curl() { printf '%s\\n' \"$@\"; }; TOKEN=secret; "+c.curl("https://a.example")).Output()
		args := strings.Split(strings.TrimSpace(string(out)), "\n")
		if err != nil || len(args) != 8 || args[1] != "https://a.example/api/v1/resources/check" || args[3] != "Authorization: Bearer secret" {
			t.Fatalf("%q: %q, %v", id, args, err)
		}
		var body struct{ ID string }
		if err := json.Unmarshal([]byte(args[7]), &body); err != nil || body.ID != id {
			t.Errorf("%q was sent as %q, %v", id, body.ID, err)
		}
	}
}
