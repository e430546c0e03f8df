package resources

import (
	"slices"

	"stonetown/api/web"
	"stonetown/engine"
	"stonetown/schema"
	"stonetown/tuplestore"
)

// maxWarnings is the maximum number of warnings of a response.
const maxWarnings = 5

// uses collects the deprecated types and relations that a request names.
type uses struct {
	types *schema.Compiled // nil: nothing is deprecated
	notes []string
}

func (h *Handlers) uses(info *web.RequestInfo) uses {
	return uses{types: h.Engine.Deprecating(info.Tenant.ID)}
}

// any reports whether anything is deprecated. Otherwise there is nothing to collect.
func (u *uses) any() bool { return u.types != nil }

// relation adds a relation of a type or, without a relation, the type.
func (u *uses) relation(typ, relation string) {
	if t, _ := u.types.Type(typ); t.Deprecated != "" {
		u.add(typ, t.Deprecated)
	}
	if r, _ := u.types.Relation(typ, relation); r.Deprecated != "" {
		u.add(typ+"#"+relation, r.Deprecated)
	}
}

func (u *uses) add(name, note string) {
	note = name + " is deprecated: " + note
	if len(u.notes) < maxWarnings && !slices.Contains(u.notes, note) {
		u.notes = append(u.notes, note)
	}
}

// action adds the relation of an action.
func (u *uses) action(typ, action string) {
	relation, _ := u.types.ActionRelation(typ, action)
	u.relation(typ, relation)
}

func (u *uses) subject(s tuplestore.Subject) { u.relation(s.Type, s.Relation) }

// relations adds relations that are written, or are part of a question. To delete one is no use
// of it.
func (u *uses) relations(ops []engine.WriteOp) {
	for _, op := range ops {
		if !op.Delete {
			u.relation(op.Resource.Type, op.Relation)
			u.subject(op.Subject)
		}
	}
}

// warn adds the warnings to the response.
func (u *uses) warn(info *web.RequestInfo) {
	for _, note := range u.notes {
		info.Warn(note)
	}
}

// warnOfChecks warns of what checks use. It has the types from the response, which is free.
func warnOfChecks(info *web.RequestInfo, req *engine.CheckRequest, res *engine.CheckResponse) {
	u := uses{types: res.Deprecating}
	if !u.any() {
		return
	}
	u.subject(req.Subject)
	for _, q := range req.Queries {
		if q.Subject != nil {
			u.subject(*q.Subject)
		}
		u.action(q.Resource.Type, q.Action)
	}
	u.relations(req.Contextual)
	u.warn(info)
}

func (h *Handlers) warnOfWrites(info *web.RequestInfo, ops []engine.WriteOp) {
	if u := h.uses(info); u.any() {
		u.relations(ops)
		u.warn(info)
	}
}
