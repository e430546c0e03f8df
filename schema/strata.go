package schema

import "fmt"

// dependency is the derivation of the set of one relation from that of another; negative if
// an exclusion subtracts the other.
type dependency struct {
	from, to relationKey
	negative bool
	// byData: tuples lead from one to the other. Otherwise both are of the same object.
	byData bool
	path   string // location in the type of from
}

// stratify numbers the relations so that each is not lower than those it includes and
// higher than those it subtracts, and otherwise as high as possible: the higher a relation,
// the more usersets its tuples may name.
//
// A relation that reaches itself through an exclusion has no such number. If tuples lead
// there, the cycle has one stratum, and the exclusions in it are local (Przymusinski 1988,
// "local stratification"): whether objects depend on their own absence depends on the
// tuples. If the cycle stays within an object, they always do, and the document is refused.
func (c *Compiled) stratify() error {
	deps := c.dependencies()
	outgoing, within := map[relationKey][]dependency{}, map[relationKey][]dependency{}
	for _, d := range deps {
		outgoing[d.from] = append(outgoing[d.from], d)
		if !d.byData {
			within[d.from] = append(within[d.from], d)
		}
	}
	for i := range deps {
		d := &deps[i]
		if !d.negative {
			continue
		}
		if !d.byData && reaches(within, d.to, d.from) {
			return rewriteError(d.from.typ, d.path, "recursion_through_exclusion",
				"%s#%s depends on its own negation: the subtracted %s#%s leads back to it",
				d.from.typ, d.from.relation, d.to.typ, d.to.relation)
		}
		if reaches(outgoing, d.to, d.from) {
			c.relations[d.from].local = true
			d.negative = false // both are of the same stratum
		}
	}
	// No cycle has a negative dependency any more, so the loop ends: levels sink below 0 at
	// most once per exclusion on a path.
	lowest := 0
	for sinking := true; sinking; {
		sinking = false
		for _, d := range deps {
			limit := c.relations[d.from].stratum
			if d.negative {
				limit--
			}
			if to := c.relations[d.to]; to.stratum > limit {
				to.stratum = limit
				lowest = min(lowest, limit)
				sinking = true
			}
		}
	}
	for _, info := range c.relations {
		info.stratum -= lowest
		info.ceiling = info.stratum
		if info.relation.subtractsTuples() {
			info.ceiling--
		}
	}
	return nil
}

func reaches(outgoing map[relationKey][]dependency, from, to relationKey) bool {
	seen := map[relationKey]bool{from: true}
	for todo := []relationKey{from}; len(todo) > 0; {
		at := todo[len(todo)-1]
		todo = todo[:len(todo)-1]
		if at == to {
			return true
		}
		for _, d := range outgoing[at] {
			if !seen[d.to] {
				seen[d.to] = true
				todo = append(todo, d.to)
			}
		}
	}
	return false
}

func (c *Compiled) dependencies() []dependency {
	d := dependencies{c: c}
	for t := range c.all() {
		for i := range t.Relations {
			r := &t.Relations[i]
			d.typ, d.relation = t, r
			if len(r.Rewrites) == 0 {
				d.this("", false)
			}
			for j := range r.Rewrites {
				d.rewrite(&r.Rewrites[j], fmt.Sprintf("relations[%d].rewrites[%d]", i, j), false)
			}
		}
	}
	return d.found
}

type dependencies struct {
	c        *Compiled
	typ      *Type
	relation *Relation
	found    []dependency
}

func (d *dependencies) on(typ, relation, path string, negative, byData bool) {
	to := relationKey{typ, relation}
	if d.c.relations[to] == nil {
		return // not defined yet
	}
	d.found = append(d.found, dependency{relationKey{d.typ.Name, d.relation.Name}, to, negative, byData, path})
}

// this depends on the usersets that tuples may name. An open relation depends only on group
// members: the strata limit the others that it may name.
func (d *dependencies) this(path string, negative bool) {
	if d.relation.Subjects == nil {
		d.on(GroupType, GroupMember, path, negative, true)
		return
	}
	for _, s := range d.relation.Subjects {
		if s.Relation != "" {
			d.on(s.Type, s.Relation, path, negative, true)
		}
	}
}

func (d *dependencies) rewrite(rw *Rewrite, path string, negative bool) {
	switch rw.Kind {
	case This:
		d.this(path, negative)
	case Computed:
		d.on(d.typ.Name, rw.Relation, path, negative, false)
	case TupleToUserset:
		if subjects := d.typ.relation(rw.Tupleset).Subjects; subjects != nil {
			for _, s := range subjects {
				d.on(s.Type, rw.Computed, path, negative, true)
			}
			return
		}
		for t := range d.c.all() {
			d.on(t.Name, rw.Computed, path, negative, true)
		}
	case Union, Intersection:
		for i := range rw.Children {
			d.rewrite(&rw.Children[i], fmt.Sprintf("%s.children[%d]", path, i), negative)
		}
	case Exclusion:
		d.rewrite(rw.Base, path+".base", negative)
		d.rewrite(rw.Subtract, path+".subtract", true)
	}
}
