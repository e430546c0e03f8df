// Package proofgraph draws the derivation of a permission: the expansion of a set of subjects as a
// graph and as a tree of lists, with the proof that a subject is in it, or with what is missing.
//
// The expansion and the decision are in the form of the API, whoever has answered them: the console
// asks a server, the playground an engine in the same program.
package proofgraph

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"stonetown/internal/notation"
)

// Node is a node of an expansion, as the operation returns it.
type Node struct {
	Kind     string       `json:"kind"`
	Resource notation.Ref `json:"resource"`
	Relation string       `json:"relation"`
	Tupleset string       `json:"tupleset"`
	Mode     string       `json:"mode"`
	Subjects []Fact       `json:"subjects"`
	Links    []Fact       `json:"links"`
	Children []*Node      `json:"children"`
	Cut      string       `json:"cut"`
	Next     string       `json:"next_cursor"`
}

// Fact is the subject of a relation in an expansion.
type Fact struct {
	Subject   notation.Subject `json:"subject"`
	ExpiresAt string           `json:"expires_at"`
	Condition *Condition       `json:"condition"`
}

// who returns the subject as the steps of a proof name it: a group means its members.
func (f Fact) who() notation.Subject {
	s := f.Subject
	if s.Type == "group" && s.Relation == "" && s.ID != "*" {
		s.Relation = "member"
	}
	return s
}

// name returns the set that a node belongs to, as type:id#relation.
func (n *Node) name() string { return n.Resource.String() + "#" + n.Relation }

// IsCut reports whether the answer lacks relations for its limit.
func (n *Node) IsCut() bool {
	return n.Next != "" || n.Cut == "limit" || slices.ContainsFunc(n.Children, (*Node).IsCut)
}

// below returns the expansion of a set among the children; nil: it was not expanded.
func (n *Node) below(resource notation.Ref, relation string) *Node {
	for _, c := range n.Children {
		if c.Resource == resource && (relation == "" || c.Relation == relation) {
			return c
		}
	}
	return nil
}

// Picture is an expansion as a graph and as a tree of lists, in which a proof is marked.
//
// The tuples of the proof are known by its steps. A set is proved if its rewrite follows from
// proved sets and these tuples, so that what is marked is a proof, and not only its tuples: of an
// intersection all operands are marked, and of an exclusion the base.
type Picture struct {
	bounds
	used  map[string]bool // the steps of the proof, as type:id#relation[@subject]
	self  []string        // those by which a resource has a relation to itself
	asked string          // the set that the subject is; empty: it is none
	holds map[*Node]bool
	drawn map[string]bool // sets that were drawn

	known map[string]*box
	order []*box
	lines []*line
	ways  map[string]*line
	// Tree is the expansion as lists.
	Tree Branch
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
	tuple    *Tuple // that it stands for; nil: a rewrite
	via      []*box // bends

	Path           string
	LabelX, LabelY int
}

// Branch is a node of the tree of lists.
type Branch struct {
	How, Name, Terms string
	Note             string
	Proof, Except    bool
	tuple            *Tuple
	Children         []Branch
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

// Decision is the answer to a check.
type Decision struct {
	Allowed bool     `json:"allowed"`
	Reasons []Reason `json:"reasons"`
	Denial  *Denial  `json:"denial"`
}

// Reason is a step of a proof.
type Reason struct {
	Via     string `json:"via"`
	Rewrite string `json:"rewrite"`
	Text    string `json:"text"`
}

// Denial has what would suffice for a check to be allowed.
type Denial struct {
	Ways      []Way `json:"ways"`
	Truncated bool  `json:"truncated"`
}

// Way is a set of changes that suffices.
type Way struct {
	Relations  []Missing   `json:"relations"`
	Exclusions []Exclusion `json:"exclusions"`
}

// Missing is a relation that does not hold.
type Missing struct {
	Resource  notation.Ref     `json:"resource"`
	Relation  string           `json:"relation"`
	Subject   notation.Subject `json:"subject"`
	State     string           `json:"state"`
	ExpiresAt string           `json:"expires_at"`
	Condition *Condition       `json:"condition"`
}

// Exclusion is an exclusion that applies to the subject.
type Exclusion struct {
	Resource notation.Ref `json:"resource"`
	Relation string       `json:"relation"`
	Reasons  []Reason     `json:"reasons"`
}

// Condition is the condition of a relation.
type Condition struct {
	Name string `json:"name"`
}

// Tuple is a relation, as the API has it.
type Tuple struct {
	Relation string           `json:"relation"`
	Resource notation.Ref     `json:"resource"`
	Subject  notation.Subject `json:"subject"`
}

// Terms describes the expiry and the condition of a relation; empty: it has none.
func Terms(expiresAt string, c *Condition) string {
	var parts []string
	if c != nil {
		parts = append(parts, "if "+c.Name)
	}
	if at, err := time.Parse(time.RFC3339, expiresAt); err == nil {
		parts = append(parts, fmt.Sprintf("until %s", at.UTC().Format("2006-01-02 15:04")))
	}
	return strings.Join(parts, ", ")
}

// New draws an expansion, with the proof that has some steps for a subject; none: the check
// is denied.
func New(root *Node, asked notation.Subject, proof []Reason, limits bounds) *Picture {
	p := &Picture{bounds: limits, used: map[string]bool{}, holds: map[*Node]bool{}, drawn: map[string]bool{}, known: map[string]*box{}, ways: map[string]*line{}}
	for _, r := range proof {
		p.used[r.Via] = true
		set := Fact{Subject: asked}.who()
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
	p.Tree = Branch{Name: root.name(), Proof: proved, Children: p.expand(root, top, style{proof: proved})}
	return p
}

// proves reports whether the proof derives a node.
func (p *Picture) proves(n *Node) bool {
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
func (p *Picture) provesSelf(n *Node) bool {
	resource := n.Resource.String()
	return slices.ContainsFunc(p.self, func(via string) bool {
		return strings.HasPrefix(via, resource+"#") && strings.HasSuffix(via, "@"+resource)
	})
}

// provesFact reports whether the proof uses a relation.
func (p *Picture) provesFact(n *Node, f Fact) bool {
	if !p.used[n.name()+"@"+f.who().String()] {
		return false
	}
	below := n.below(notation.Ref{Type: f.Subject.Type, ExternalID: f.Subject.ID}, f.who().Relation)
	return f.who().Relation == "" || p.asked == f.who().String() || below != nil && p.proves(below)
}

// provesLink reports whether the proof uses a link to another resource.
func (p *Picture) provesLink(n *Node, f Fact) bool {
	set := n.Resource.String() + "#" + n.Tupleset
	below := n.below(notation.Ref{Type: f.Subject.Type, ExternalID: f.Subject.ID}, "")
	return below != nil && (p.used[set+"@"+f.who().String()] || n.Mode == "all" && p.used[set]) && p.proves(below)
}

// expand draws what is in a set, and returns it for the tree.
func (p *Picture) expand(n *Node, from *box, s style) (all []Branch) {
	switch n.Kind {
	case "this":
		all = p.facts(n, n.Subjects, from, s, p.provesFact, func(f Fact) (string, *Node) {
			return "direct", n.below(notation.Ref{Type: f.Subject.Type, ExternalID: f.Subject.ID}, f.who().Relation)
		})
	case "self":
		for _, f := range n.Subjects {
			all = append(all, p.follow(from, f.who(), nil, Branch{How: "itself", Proof: s.proof}, s))
		}
	case "computed":
		for _, c := range n.Children {
			all = append(all, p.follow(from, notation.Subject{Type: c.Resource.Type, ID: c.Resource.ExternalID, Relation: c.Relation}, c, Branch{How: "includes", Proof: s.proof}, s))
		}
	case "tuple_to_userset":
		how := "via " + n.Tupleset
		if n.Mode == "all" {
			how = "via every " + n.Tupleset
		}
		all = p.facts(n, n.Links, from, s, p.provesLink, func(f Fact) (string, *Node) {
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
		all = append(all, Branch{Note: "There are more relations than this page reads."})
	}
	return all
}

// facts draws the relations of a set. Some of those that the proof does not use are drawn as a number.
func (p *Picture) facts(n *Node, facts []Fact, from *box, s style, proves func(*Node, Fact) bool, to func(Fact) (how string, below *Node)) (all []Branch) {
	others := 0
	for _, f := range facts {
		how, below := to(f)
		b := Branch{How: how, Terms: Terms(f.ExpiresAt, f.Condition), Proof: s.proof && proves(n, f)}
		if !b.Proof {
			if others++; others > p.folded {
				continue
			}
		}
		b.tuple = &Tuple{Resource: n.Resource, Relation: cmp.Or(n.Tupleset, n.Relation), Subject: f.Subject}
		target := f.who()
		if below != nil {
			target = notation.Subject{Type: below.Resource.Type, ID: below.Resource.ExternalID, Relation: below.Relation}
		}
		all = append(all, p.follow(from, target, below, b, s))
	}
	if others > p.folded {
		more := strconv.Itoa(others-p.folded) + " more"
		if from != nil && len(p.order) < p.boxes {
			p.line(from, p.box("more "+n.name()+n.Tupleset, more, "", "more"), Branch{Except: s.except})
		}
		all = append(all, Branch{Note: more + " " + n.Tupleset})
	}
	return all
}

// follow draws a line to a subject, or to the set of those who have a relation, and what is in that.
func (p *Picture) follow(from *box, to notation.Subject, n *Node, b Branch, s style) Branch {
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
func (p *Picture) set(n *Node) *box {
	return p.box(n.name(), n.Resource.String(), n.Relation, "set")
}

func (p *Picture) box(key, title, sub, kind string) *box {
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
func (p *Picture) line(from, to *box, b Branch) {
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
