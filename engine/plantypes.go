package engine

import (
	"context"
	"fmt"

	"stonetown/engine/internal/work"
	"stonetown/schema"
	"stonetown/tuplestore"
)

// PlanRequest asks for the effects of a [TypesChange] that is not made.
type PlanRequest struct {
	TypesChange
	// Questions are answered by the types as they are, and by those that are planned. Each has
	// a subject of its own.
	Questions []Query
	// Context has the values of condition parameters; see [CheckRequest.Context].
	Context map[string]any
	// Progress is called with the number of tuples counted so far, from time to time; may be nil.
	Progress func(counted int) error
}

// TypesPlan is the answer to a [PlanRequest]. All of it is of one revision.
type TypesPlan struct {
	Changes []TypeChange    // those of Put, of Delete, and of other types that renames change
	Renamed []RenamedTuples // one for each rename
	// Illegal are the stored tuples that the planned types do not allow. While there are any,
	// the change cannot be made.
	Illegal []IllegalTuples
	// Affected are the relations of the types as they are whose sets may change. The answers
	// of all others stay the same.
	Affected []schema.RelationName
	// Actions are the actions of the types as they are whose answers may change.
	Actions []AffectedAction
	// Answers has one entry for each question. The planned types answer as if the illegal
	// tuples were deleted, except the tuples of relations that are to take one subject.
	Answers []PlannedAnswer
	Version string // of the types as they are
	Token   string // names the revision
}

// IllegalTuples are stored tuples of one type that the planned types do not allow, for one
// reason.
type IllegalTuples struct {
	Type string
	// Relation and Condition are empty if all tuples and resources of the type are meant.
	Relation  string
	Condition string // the tuples with this condition
	Crowded   bool   // the tuples of resources with several in this relation, of which one is allowed
	Count     int    // of all reasons together at most MaxIllegal, and then MaxSamples of each
	Exact     bool   // there are not more
	Samples   []tuplestore.Record
}

// Limits of a plan.
const (
	MaxIllegal = 1_000_000 // how many tuples are counted
	MaxSamples = 10        // how many are returned for each reason
)

// AffectedAction is an action of a type whose answer may change.
type AffectedAction struct{ Type, Action string }

// PlannedAnswer is the decision of a question before and after a change.
type PlannedAnswer struct{ Before, After Decision }

// Differs reports whether the change alters the answer.
func (a PlannedAnswer) Differs() bool {
	return a.Before.Allowed != a.After.Allowed || (a.Before.Err == nil) != (a.After.Err == nil)
}

// PlanTypes answers what [Engine.ApplyTypes] would change. Errors are those of ApplyTypes
// without [*TypeInUseError], those of [Engine.Check] that are not of one question, that of
// Progress, and [*fair.ExhaustedError] if too many plans count tuples.
func (e *Engine) PlanTypes(ctx context.Context, tenantID string, req PlanRequest) (*TypesPlan, error) {
	at, err := e.tenant(tenantID).at(ctx, true)
	if err != nil {
		return nil, fmt.Errorf("plan resource types: %w", err)
	}
	p, err := req.propose(tenantID, at)
	if err == nil {
		err = req.judge(ctx, at, p)
	}
	if err != nil {
		return nil, fmt.Errorf("plan resource types: %w", err)
	}
	plan := &TypesPlan{Changes: p.changes, Version: at.typesVersion(tenantID), Token: at.token}
	p.affect(at, plan)
	snapshot := e.snapshot(tenantID, at)
	gone := p.gone()
	planned := at
	planned.compiled = p.compiled
	after := &assumed{Snapshot: e.snapshot(tenantID, planned), before: p.compiled, gone: forbidden(narrowed(p.renamed, p.compiled))}
	if len(gone)+len(req.Renames) > 0 {
		err = within(ctx, e.counts, tenantID, "engine.wait_to_count", func() (err error) {
			if plan.Renamed, err = countRenamed(ctx, snapshot, req.Renames); err == nil {
				plan.Illegal, err = illegal(ctx, snapshot, gone, MaxIllegal, req.Progress)
			}
			return err
		})
	}
	if err != nil {
		return nil, fmt.Errorf("plan resource types: %w", err)
	}
	err = e.attempt(ctx, tenantID, func(l work.Limits) error {
		before, err := e.checkAt(ctx, snapshot, at, req, l)
		if err != nil {
			return err
		}
		after, err := e.checkAt(ctx, after, planned, p.rename(req), l)
		plan.Answers = make([]PlannedAnswer, len(before))
		for i := range before {
			plan.Answers[i] = PlannedAnswer{before[i], after[i]}
		}
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("plan resource types: %w", err)
	}
	return plan, nil
}

// affect adds to a plan what the change affects, by the names before renames, which affect nothing.
func (p *proposal) affect(at position, plan *TypesPlan) {
	affected := schema.Affected(p.renamed, p.compiled)
	for _, t := range at.compiled.Types {
		for _, action := range schema.AffectedActions(p.renamed, p.compiled, p.renaming.Type(t.Name), affected) {
			if _, ok := at.compiled.ActionRelation(t.Name, action); ok {
				plan.Actions = append(plan.Actions, AffectedAction{t.Name, action})
			}
		}
	}
	before := p.renaming.Reverse()
	for _, r := range affected {
		plan.Affected = append(plan.Affected, schema.RelationName{Type: before.Type(r.Type), Relation: before.Relation(r.Type, r.Relation)})
	}
}

// progressEvery is the number of tuples after which progress is reported.
const progressEvery = 1000

// illegal counts the tuples that filters select, up to a number in all.
func illegal(ctx context.Context, s tuplestore.Snapshot, filters []tuplestore.Filter, most int, progress func(counted int) error) ([]IllegalTuples, error) {
	var all []IllegalTuples
	counted := 0
	for _, f := range filters {
		found := IllegalTuples{Type: f.ObjectType, Relation: f.Relation, Condition: f.Condition, Crowded: f.Crowded, Exact: true}
		for r, err := range s.Scan(ctx, f) {
			if err != nil {
				return nil, err
			}
			if found.Count >= MaxSamples && counted >= most {
				found.Exact = false
				break
			}
			found.Count++
			if counted++; progress != nil && counted%progressEvery == 0 {
				if err := progress(counted); err != nil {
					return nil, err
				}
			}
			if len(found.Samples) < MaxSamples {
				found.Samples = append(found.Samples, r)
			}
		}
		if found.Count > 0 {
			all = append(all, found)
		}
	}
	return all, nil
}

// checkAt answers the questions of a plan at a position that need not be one of the tenant's.
func (e *Engine) checkAt(ctx context.Context, s tuplestore.Snapshot, at position, req PlanRequest, l work.Limits) ([]Decision, error) {
	decisions := make([]Decision, len(req.Questions))
	if len(decisions) == 0 {
		return decisions, nil
	}
	v := readView{engine: e, limits: l, clock: e.clock, at: at}
	v.goCold(s)
	c := check{
		readView: v, req: &CheckRequest{Queries: req.Questions, Context: req.Context},
		response: &CheckResponse{Decisions: decisions},
	}
	defer c.leave()
	return decisions, c.answer(ctx)
}
