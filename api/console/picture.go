package console

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"stonetown/internal/notation"
)

// treeNode is a node of an expansion, as the operation returns it.
type treeNode struct {
	Kind     string       `json:"kind"`
	Resource notation.Ref `json:"resource"`
	Relation string       `json:"relation"`
	Tupleset string       `json:"tupleset"`
	Mode     string       `json:"mode"`
	Subjects []treeFact   `json:"subjects"`
	Links    []treeFact   `json:"links"`
	Children []*treeNode  `json:"children"`
	Cut      string       `json:"cut"`
	Next     string       `json:"next_cursor"`
}

// treeFact is the subject of a relation in an expansion.
type treeFact struct {
	Subject   notation.Subject `json:"subject"`
	ExpiresAt string           `json:"expires_at"`
	Condition *condition       `json:"condition"`
}

// who returns the subject as the steps of a proof name it: a group means its members.
func (f treeFact) who() notation.Subject {
	s := f.Subject
	if s.Type == "group" && s.Relation == "" && s.ID != "*" {
		s.Relation = "member"
	}
	return s
}

// name returns the set that a node belongs to, as type:id#relation.
func (n *treeNode) name() string { return n.Resource.String() + "#" + n.Relation }

// cut reports whether the answer lacks relations for its limit.
func (n *treeNode) cut() bool {
	return n.Next != "" || n.Cut == "limit" || slices.ContainsFunc(n.Children, (*treeNode).cut)
}

// below returns the expansion of a set among the children; nil: it was not expanded.
func (n *treeNode) below(resource notation.Ref, relation string) *treeNode {
	for _, c := range n.Children {
		if c.Resource == resource && (relation == "" || c.Relation == relation) {
			return c
		}
	}
	return nil
}

// picture is an expansion as a graph and as a tree of lists, in which a proof is marked.
//
// The tuples of the proof are known by its steps. A set is proved if its rewrite follows from
// proved sets and these tuples, so that what is marked is a proof, and not only its tuples: of an
// intersection all operands are marked, and of an exclusion the base.
type picture struct {
	bounds
	used  map[string]bool // the steps of the proof, as type:id#relation[@subject]
	self  []string        // those by which a resource has a relation to itself
	asked string          // the set that the subject is; empty: it is none
	holds map[*treeNode]bool
	drawn map[string]bool // sets that were drawn

	known map[string]*box
	order []*box
	lines []*line
	ways  map[string]*line
	tree  branch
}

// box is a node of the graph: a set, or a subject.
type box struct {
	key        string
	Title, Sub string
	Kind       string // "set", "subject" or "more"
	Proof      bool

	X, Y, W, H int
	layer      int
	index      int     // in its layer
	middle     float64 // of its neighbours
	bend       bool    // a place through which a long line goes
}

// line leads from a set to what is in it.
type line struct {
	from, to *box
	Label    string
	Class    string
	tuple    *record // that it stands for; nil: a rewrite
	via      []*box  // bends

	Path           string
	LabelX, LabelY int
}

// branch is a node of the tree of lists.
type branch struct {
	How, Name, Terms string
	Note             string
	Proof, Except    bool
	tuple            *record
	Children         []branch
}

// style is what a part of a tree inherits.
type style struct {
	except bool // it is what an exclusion leaves out
	all    bool // it is an operand of an intersection
	proof  bool // it is on the way of the proof
}

// bounds are those of a picture besides the proof.
type bounds struct {
	folded int // relations of a set, in the graph and in the tree
	boxes  int // of the graph; the tree has what is not in it
}

// newPicture draws an expansion, with the proof that has some steps for a subject; none: the check
// is denied.
func newPicture(root *treeNode, asked notation.Subject, proof []reason, limits bounds) *picture {
	p := &picture{bounds: limits, used: map[string]bool{}, holds: map[*treeNode]bool{}, drawn: map[string]bool{}, known: map[string]*box{}, ways: map[string]*line{}}
	for _, r := range proof {
		p.used[r.Via] = true
		set := treeFact{Subject: asked}.who()
		switch {
		case r.Rewrite == "self":
			p.self = append(p.self, r.Via)
		case r.Rewrite == "this" && set.Relation != "" && r.Via == set.String():
			p.asked = r.Via
		}
	}
	top := p.set(root)
	proved := len(proof) > 0 && p.proves(root)
	top.Proof = proved
	p.tree = branch{Name: root.name(), Proof: proved, Children: p.expand(root, top, style{proof: proved})}
	return p
}

// proves reports whether the proof derives a node.
func (p *picture) proves(n *treeNode) bool {
	if holds, known := p.holds[n]; known {
		return holds
	}
	holds := n.Kind == "intersection" && len(n.Children) > 0
	switch n.Kind {
	case "self":
		holds = p.provesSelf(n)
	case "this":
		for _, f := range n.Subjects {
			holds = holds || p.provesFact(n, f)
		}
	case "tuple_to_userset":
		for _, f := range n.Links {
			holds = holds || p.provesLink(n, f)
		}
	case "exclusion":
		holds = len(n.Children) == 2 && p.proves(n.Children[0])
	default:
		for _, c := range n.Children {
			if n.Kind == "intersection" {
				holds = holds && p.proves(c)
			} else {
				holds = holds || p.proves(c)
			}
		}
	}
	holds = holds || p.asked != "" && p.asked == n.name()
	p.holds[n] = holds
	return holds
}

// provesSelf reports whether the proof uses that a resource has a relation to itself. The step may
// name another relation, which includes that of the node.
func (p *picture) provesSelf(n *treeNode) bool {
	resource := n.Resource.String()
	return slices.ContainsFunc(p.self, func(via string) bool {
		return strings.HasPrefix(via, resource+"#") && strings.HasSuffix(via, "@"+resource)
	})
}

// provesFact reports whether the proof uses a relation.
func (p *picture) provesFact(n *treeNode, f treeFact) bool {
	if !p.used[n.name()+"@"+f.who().String()] {
		return false
	}
	below := n.below(notation.Ref{Type: f.Subject.Type, ExternalID: f.Subject.ID}, f.who().Relation)
	return f.who().Relation == "" || p.asked == f.who().String() || below != nil && p.proves(below)
}

// provesLink reports whether the proof uses a link to another resource.
func (p *picture) provesLink(n *treeNode, f treeFact) bool {
	set := n.Resource.String() + "#" + n.Tupleset
	below := n.below(notation.Ref{Type: f.Subject.Type, ExternalID: f.Subject.ID}, "")
	return below != nil && (p.used[set+"@"+f.who().String()] || n.Mode == "all" && p.used[set]) && p.proves(below)
}

// expand draws what is in a set, and returns it for the tree.
func (p *picture) expand(n *treeNode, from *box, s style) (all []branch) {
	switch n.Kind {
	case "this":
		all = p.facts(n, n.Subjects, from, s, p.provesFact, func(f treeFact) (string, *treeNode) {
			return "direct", n.below(notation.Ref{Type: f.Subject.Type, ExternalID: f.Subject.ID}, f.who().Relation)
		})
	case "self":
		for _, f := range n.Subjects {
			all = append(all, p.follow(from, f.who(), nil, branch{How: "itself", Proof: s.proof}, s))
		}
	case "computed":
		for _, c := range n.Children {
			all = append(all, p.follow(from, notation.Subject{Type: c.Resource.Type, ID: c.Resource.ExternalID, Relation: c.Relation}, c, branch{How: "includes", Proof: s.proof}, s))
		}
	case "tuple_to_userset":
		how := "via " + n.Tupleset
		if n.Mode == "all" {
			how = "via every " + n.Tupleset
		}
		all = p.facts(n, n.Links, from, s, p.provesLink, func(f treeFact) (string, *treeNode) {
			return how, n.below(notation.Ref{Type: f.Subject.Type, ExternalID: f.Subject.ID}, "")
		})
	case "exclusion":
		for i, c := range n.Children {
			operand := style{except: s.except != (i == 1), all: s.all, proof: s.proof && i == 0}
			all = append(all, p.expand(c, from, operand)...)
		}
	case "intersection":
		for _, c := range n.Children {
			all = append(all, p.expand(c, from, style{except: s.except, all: true, proof: s.proof})...)
		}
	default:
		for _, c := range n.Children {
			all = append(all, p.expand(c, from, style{except: s.except, all: s.all, proof: s.proof && p.proves(c)})...)
		}
	}
	if n.Next != "" && n.Cut == "" {
		all = append(all, branch{Note: "There are more relations than this page reads."})
	}
	return all
}

// facts draws the relations of a set. Some of those that the proof does not use are drawn as a number.
func (p *picture) facts(n *treeNode, facts []treeFact, from *box, s style, proves func(*treeNode, treeFact) bool, to func(treeFact) (how string, below *treeNode)) (all []branch) {
	others := 0
	for _, f := range facts {
		how, below := to(f)
		b := branch{How: how, Terms: terms(f.ExpiresAt, f.Condition), Proof: s.proof && proves(n, f)}
		if !b.Proof {
			if others++; others > p.folded {
				continue
			}
		}
		b.tuple = &record{Resource: n.Resource, Relation: cmp.Or(n.Tupleset, n.Relation), Subject: f.Subject}
		target := f.who()
		if below != nil {
			target = notation.Subject{Type: below.Resource.Type, ID: below.Resource.ExternalID, Relation: below.Relation}
		}
		all = append(all, p.follow(from, target, below, b, s))
	}
	if others > p.folded {
		more := strconv.Itoa(others-p.folded) + " more"
		if from != nil && len(p.order) < p.boxes {
			p.line(from, p.box("more "+n.name()+n.Tupleset, more, "", "more"), branch{Except: s.except})
		}
		all = append(all, branch{Note: more + " " + n.Tupleset})
	}
	return all
}

// follow draws a line to a subject, or to the set of those who have a relation, and what is in that.
func (p *picture) follow(from *box, to notation.Subject, n *treeNode, b branch, s style) branch {
	b.Name, b.Except = to.String(), s.except
	if s.all {
		b.How = "and " + b.How
	}
	if s.except {
		b.How = "except " + strings.TrimPrefix(strings.TrimPrefix(b.How, "direct"), "includes")
		b.How = strings.TrimSpace(b.How)
	}
	if len(p.order) >= p.boxes && !b.Proof && p.known[b.Name] == nil {
		b.Note = "not in the picture"
		from = nil
	}
	var target *box
	if from != nil {
		switch {
		case n != nil:
			target = p.set(n)
		case to.Relation != "":
			target = p.box(b.Name, notation.Subject{Type: to.Type, ID: to.ID}.String(), to.Relation, "set")
		case to.ID == "*":
			target = p.box(b.Name, "every "+to.Type, "", "subject")
		default:
			target = p.box(b.Name, b.Name, "", "subject")
		}
		target.Proof = target.Proof || b.Proof
		p.line(from, target, b)
	}
	switch {
	case n == nil:
	case n.Cut == "depth", n.Cut == "limit":
		b.Note = "has more than this page reads"
	case n.Cut == "cycle":
		b.Note = "leads back to itself"
	case p.drawn[b.Name] && len(n.Children)+len(n.Subjects)+len(n.Links) > 0 && !b.Proof:
		b.Note = "see above"
	default:
		p.drawn[b.Name] = true
		b.Children = p.expand(n, target, style{except: s.except, proof: b.Proof})
	}
	return b
}

// set returns the box of a set.
func (p *picture) set(n *treeNode) *box {
	return p.box(n.name(), n.Resource.String(), n.Relation, "set")
}

func (p *picture) box(key, title, sub, kind string) *box {
	b := p.known[key]
	if b == nil {
		b = &box{key: key, Title: title, Sub: sub, Kind: kind}
		p.known[key] = b
		p.order = append(p.order, b)
	}
	return b
}

// line draws a line, once for each way in which a set is a part of another. The proof may lead to a
// set that was drawn before.
func (p *picture) line(from, to *box, b branch) {
	if from == nil {
		return
	}
	class, label := "", b.How
	switch {
	case b.Except:
		class = "except"
	case b.Proof:
		class, label = "proof", "✓ "+label
	}
	if b.Terms != "" {
		label = strings.TrimSpace(strings.TrimSuffix(label, "direct") + " " + b.Terms)
		class += " terms"
	}
	key := fmt.Sprintf("%p %p %s %s", from, to, b.How, b.Terms)
	l := p.ways[key]
	if l == nil {
		l = &line{from: from, to: to}
		p.ways[key] = l
		p.lines = append(p.lines, l)
	} else if !b.Proof {
		return
	}
	l.Class, l.Label, l.tuple = class, label, b.tuple
}
