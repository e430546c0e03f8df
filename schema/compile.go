package schema

import (
	"iter"
	"maps"
	"slices"

	"stonetown/schema/condition"
)

// Compiled is a validated and compiled document. It is immutable and safe for concurrent
// use.
type Compiled struct {
	// Types are the document's types, in its order.
	Types []Type
	// Rules and Logic refer to each other by index.
	Rules []Rule
	Logic []Logic

	// Deprecates: a type or a relation is deprecated.
	Deprecates bool

	byName    map[string]*Type
	relations map[relationKey]*relationInfo
	stored    *StoredNames
	// conditions by type and name
	conditions map[relationKey]*condition.Condition
}

// RuleID indexes [Compiled.Rules].
type RuleID int

// LogicID indexes [Compiled.Logic].
type LogicID int

// Rule is the set of a relation, or of an operand within one: the union of all that one
// visit of a resource can add to it.
type Rule struct {
	Type string
	// Relation is the rule's relation; for an operand, the relation whose rewrites contain
	// it.
	Relation string
	// Includes are the relations of the resource whose whole sets are part of this one.
	// Their usersets are members of the set, too.
	Includes []string
	// Direct are the relations of the resource whose tuples count.
	Direct []string
	// Arrows are the relations of linked resources that are part of the union.
	Arrows []Arrow
	// Logic are the intersections, exclusions and intersection arrows that are
	// part of the union.
	Logic []LogicID
	// Self: the resource itself is part of the set.
	Self bool
}

// Arrow is the relation Computed of all resources that tuples of the relation Tupleset
// name.
type Arrow struct{ Tupleset, Computed string }

// Logic combines rules of the same resource: all of Operands or, for an exclusion,
// Operands[0] without Operands[1]. An intersection arrow (TupleToUserset) has the subjects
// that are in Arrow's relation of every linked resource, of which there must be at least
// one; its only operand is the union over the same links, which contains it.
//
// The links are tuples and not derived. An intersection arrow is therefore monotonic in the
// sets that it is derived from, and needs no stratum.
type Logic struct {
	Kind     Kind // Intersection, Exclusion or TupleToUserset
	Operands []RuleID
	Arrow    Arrow
	// Stratum orders exclusions: when all of lower strata are settled, an exclusion whose
	// subtracted side is unproven can be answered.
	Stratum int
	// Local: the exclusion's relation reaches itself through its subtracted side, along
	// tuples. Its stratum orders it only with respect to relations outside the recursion.
	Local bool
}

type relationKey struct{ typ, relation string }

type relationInfo struct {
	rule     RuleID
	relation *Relation
	direct   bool
	stratum  int
	local    bool // reaches itself through an exclusion
	ceiling  int  // the highest stratum of usersets that tuples may name
}

// Compile validates the types together and compiles them. Errors are [*Error].
func Compile(types []Type) (*Compiled, error) {
	if n := len(types); n > MaxTypes {
		return nil, fieldError(types[n-1].Name, "name", "too_many", "%d resource types, at most %d are allowed", n, MaxTypes)
	}
	c := &Compiled{
		Types:     types,
		byName:    make(map[string]*Type, len(types)+len(system)),
		relations: map[relationKey]*relationInfo{},

		conditions: map[relationKey]*condition.Condition{},
	}
	for i := range system {
		c.byName[system[i].Name] = &system[i]
	}
	for i := range types {
		if err := validateType(&types[i]); err != nil {
			return nil, err
		}
		if c.byName[types[i].Name] != nil {
			return nil, fieldError(types[i].Name, "name", "duplicate", "type %q is defined twice", types[i].Name)
		}
		c.byName[types[i].Name] = &types[i]
	}
	for t := range c.all() {
		c.Deprecates = c.Deprecates || t.Deprecated != ""
		for i := range t.Relations {
			r := &t.Relations[i]
			c.relations[relationKey{t.Name, r.Name}] = &relationInfo{relation: r, direct: r.isDirect()}
			c.Deprecates = c.Deprecates || r.Deprecated != ""
		}
		if n := len(c.relations); n > MaxDocument {
			return nil, fieldError(t.Name, "relations", "too_many", "%d relations in all types, at most %d are allowed", n, MaxDocument)
		}
	}
	if err := c.validateReferences(); err != nil {
		return nil, err
	}
	if err := c.stratify(); err != nil {
		return nil, err
	}
	if err := c.compileConditions(); err != nil {
		return nil, err
	}
	c.flatten()
	c.stored = storedNames(types)
	return c, nil
}

// all yields all types, the system types first, in a stable order.
func (c *Compiled) all() func(yield func(*Type) bool) {
	return func(yield func(*Type) bool) {
		for _, ts := range [][]Type{system, c.Types} {
			for i := range ts {
				if !yield(&ts[i]) {
					return
				}
			}
		}
	}
}

// Type returns a type of the document.
func (c *Compiled) Type(name string) (Type, bool) {
	if t := c.byName[name]; t != nil && !IsSystem(name) {
		return *t, true
	}
	return Type{}, false
}

// HasType reports whether a type is built in or defined.
func (c *Compiled) HasType(name string) bool { return c.byName[name] != nil }

// Relation returns the definition of a relation of a type, system types
// included.
func (c *Compiled) Relation(typ, relation string) (Relation, bool) {
	if info := c.relations[relationKey{typ, relation}]; info != nil {
		return *info.relation, true
	}
	return Relation{}, false
}

// TypeNames yields the names of all types, built in and defined.
func (c *Compiled) TypeNames() iter.Seq[string] { return maps.Keys(c.byName) }

// Rule returns the rule of a relation.
func (c *Compiled) Rule(typ, relation string) (RuleID, bool) {
	if info := c.relations[relationKey{typ, relation}]; info != nil {
		return info.rule, true
	}
	return 0, false
}

// conventional maps actions to relations for types without an action of the name.
var conventional = map[string]string{"edit": "editor", "view": "viewer", "delete": "owner"}

// ActionRelation maps an action to a relation of the type: by the type's own
// actions, else by convention (edit to editor, view to viewer, delete to
// owner), else to the relation of the action's own name.
func (c *Compiled) ActionRelation(typ, action string) (relation string, ok bool) {
	if t := c.byName[typ]; t != nil {
		return t.actionRelation(action)
	}
	return "", false
}

func (t *Type) actionRelation(action string) (relation string, ok bool) {
	if relation, ok = t.Actions[action]; ok {
		return relation, true
	}
	if relation, ok = conventional[action]; ok && t.relation(relation) != nil {
		return relation, true
	}
	return action, t.relation(action) != nil
}

// Actions lists, in order, all actions that [Compiled.ActionRelation] maps to a relation of
// the type.
func (c *Compiled) Actions(typ string) []string {
	t := c.byName[typ]
	if t == nil {
		return nil
	}
	names := map[string]bool{}
	for action := range t.Actions {
		names[action] = true
	}
	for action := range conventional {
		if _, ok := c.ActionRelation(typ, action); ok {
			names[action] = true
		}
	}
	for _, r := range t.Relations {
		names[r.Name] = true
	}
	return slices.Sorted(maps.Keys(names))
}

// flatten builds the rules: first an empty one per relation, so that they can refer to each
// other, then their contents.
func (c *Compiled) flatten() {
	for t := range c.all() {
		for i := range t.Relations {
			info := c.relations[relationKey{t.Name, t.Relations[i].Name}]
			info.rule = c.newRule(t.Name, t.Relations[i].Name)
		}
	}
	f := flattener{c: c, logic: map[*Rewrite]LogicID{}}
	for t := range c.all() {
		for i := range t.Relations {
			f.include(t, &t.Relations[i], c.relations[relationKey{t.Name, t.Relations[i].Name}].rule)
		}
	}
	for i := range c.Rules {
		c.dropCoveredArrows(&c.Rules[i])
	}
}

func (c *Compiled) newRule(typ, relation string) RuleID {
	c.Rules = append(c.Rules, Rule{Type: typ, Relation: relation})
	return RuleID(len(c.Rules) - 1)
}

type flattener struct {
	c *Compiled
	// logic has the logic compiled so far: a relation that is part of several others shares
	// its intersections and exclusions with them.
	logic map[*Rewrite]LogicID
}

// include adds all of relation r to the rule, once.
func (f *flattener) include(t *Type, r *Relation, into RuleID) {
	rule := &f.c.Rules[into]
	if slices.Contains(rule.Includes, r.Name) {
		return
	}
	rule.Includes = append(rule.Includes, r.Name)
	if len(r.Rewrites) == 0 {
		f.direct(r, into)
	}
	for i := range r.Rewrites {
		f.add(t, r, &r.Rewrites[i], into)
	}
}

func (f *flattener) direct(r *Relation, into RuleID) {
	rule := &f.c.Rules[into]
	if !slices.Contains(rule.Direct, r.Name) {
		rule.Direct = append(rule.Direct, r.Name)
	}
}

// add adds one rewrite of relation r to the rule.
func (f *flattener) add(t *Type, r *Relation, rw *Rewrite, into RuleID) {
	switch rw.Kind {
	case This:
		f.direct(r, into)
	case Self:
		f.c.Rules[into].Self = true
	case Computed:
		f.include(t, t.relation(rw.Relation), into)
	case TupleToUserset:
		if rw.Mode == All {
			f.logicOf(t, r, rw, into)
			return
		}
		rule := &f.c.Rules[into]
		if arrow := (Arrow{rw.Tupleset, rw.Computed}); !slices.Contains(rule.Arrows, arrow) {
			rule.Arrows = append(rule.Arrows, arrow)
		}
	case Union:
		for i := range rw.Children {
			f.add(t, r, &rw.Children[i], into)
		}
	case Intersection, Exclusion:
		f.logicOf(t, r, rw, into)
	}
}

// logicOf adds the logic of a rewrite to the rule.
func (f *flattener) logicOf(t *Type, r *Relation, rw *Rewrite, into RuleID) {
	id, ok := f.logic[rw]
	if !ok {
		id = f.compileLogic(t, r, rw)
	}
	rule := &f.c.Rules[into]
	if !slices.Contains(rule.Logic, id) {
		rule.Logic = append(rule.Logic, id)
	}
}

func (f *flattener) compileLogic(t *Type, r *Relation, rw *Rewrite) LogicID {
	id := LogicID(len(f.c.Logic))
	f.c.Logic = append(f.c.Logic, Logic{Kind: rw.Kind})
	f.logic[rw] = id // before the operands: they may include r again
	var operands []*Rewrite
	switch rw.Kind {
	case Exclusion:
		operands = []*Rewrite{rw.Base, rw.Subtract}
	case TupleToUserset:
		operands = []*Rewrite{{Kind: TupleToUserset, Tupleset: rw.Tupleset, Computed: rw.Computed}}
		f.c.Logic[id].Arrow = Arrow{rw.Tupleset, rw.Computed}
	default:
		for i := range rw.Children {
			operands = append(operands, &rw.Children[i])
		}
	}
	for _, operand := range operands {
		rule := f.c.newRule(t.Name, r.Name)
		f.add(t, r, operand, rule)
		f.c.Logic[id].Operands = append(f.c.Logic[id].Operands, rule)
	}
	info := f.c.relations[relationKey{t.Name, r.Name}]
	// Exclusions within the subtracted side of another settle before it.
	f.c.Logic[id].Stratum = info.stratum*(MaxDepth+1) + exclusionHeight(rw)
	f.c.Logic[id].Local = rw.Kind == Exclusion && info.local
	return id
}

// exclusionHeight returns how deep exclusions are nested in subtracted sides.
func exclusionHeight(rw *Rewrite) int {
	height := 0
	for i := range rw.Children {
		height = max(height, exclusionHeight(&rw.Children[i]))
	}
	if rw.Kind == Exclusion {
		height = max(exclusionHeight(rw.Base), exclusionHeight(rw.Subtract)+1)
	}
	return height
}

// dropCoveredArrows removes an arrow whose set another arrow of the same tupleset contains:
// beside parent->viewer, parent->editor adds nothing if every type's viewer includes its
// editor.
func (c *Compiled) dropCoveredArrows(rule *Rule) {
	var kept []Arrow
	for i, a := range rule.Arrows {
		covered := false
		for j, b := range rule.Arrows {
			if i == j || a.Tupleset != b.Tupleset || !c.includesEverywhere(b.Computed, a.Computed) {
				continue
			}
			// Of two that cover each other the first stays.
			if !c.includesEverywhere(a.Computed, b.Computed) || j < i {
				covered = true
			}
		}
		if !covered {
			kept = append(kept, a)
		}
	}
	rule.Arrows = kept
}

// includesEverywhere reports whether, on every type that has relation part,
// relation whole includes it.
func (c *Compiled) includesEverywhere(whole, part string) bool {
	for t := range c.all() {
		if t.relation(part) == nil {
			continue
		}
		info := c.relations[relationKey{t.Name, whole}]
		if info == nil || !slices.Contains(c.Rules[info.rule].Includes, part) {
			return false
		}
	}
	return true
}
