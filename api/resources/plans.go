package resources

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"time"

	"stonetown/api/web"
	"stonetown/engine"
	"stonetown/engine/assertions"
	"stonetown/schema"
	"stonetown/tuplestore"
)

// maxRenames is the maximum number of renames of a change.
const maxRenames = 100

// maxQuestions is the maximum number of questions of a plan.
const maxQuestions = 1000

// PlanResourceTypes answers what a change of several types would do.
func (h *Handlers) PlanResourceTypes(ctx context.Context, request PlanResourceTypesRequestObject) (PlanResourceTypesResponseObject, error) {
	info := web.InfoOf(ctx)
	req, err := planRequest(*request.Body)
	if err != nil {
		return nil, err
	}
	var body PlanAnswer
	body.Data, body.Meta, err = h.plan(ctx, info, req)
	return PlanResourceTypes200JSONResponse{Body: body}, err
}

func (h *Handlers) plan(ctx context.Context, info *web.RequestInfo, req engine.PlanRequest) (out TypesPlan, meta CheckMeta, err error) {
	var report assertions.Report
	req.Judge = h.judge(info, func(r assertions.Report) error {
		report = r
		return nil
	})
	plan, err := h.Engine.PlanTypes(ctx, info.Tenant.ID, req)
	if err != nil {
		return out, meta, within(req.TypesChange, err)
	}
	out = planOf(req.Renames, plan)
	out.Assertions = reportOf(report)
	return out, CheckMeta{RequestID: info.RequestID, ConsistencyToken: plan.Token}, nil
}

// StreamPlanOfResourceTypes answers the same with progress.
func (h *Handlers) StreamPlanOfResourceTypes(ctx context.Context, request StreamPlanOfResourceTypesRequestObject) (StreamPlanOfResourceTypesResponseObject, error) {
	info := web.InfoOf(ctx)
	req, err := planRequest(*request.Body)
	if err != nil {
		return nil, err
	}
	return lines(func(w *web.Lines) error {
		next := time.Now().Add(betweenProgress)
		req.Progress = func(counted int) error {
			now := time.Now()
			if now.Before(next) {
				return nil
			}
			next = now.Add(betweenProgress)
			if err := w.Write(PlanLine{Event: "progress", Counted: counted}); err != nil {
				return err
			}
			return w.Flush()
		}
		plan, meta, err := h.plan(ctx, info, req)
		if err != nil {
			return err
		}
		return w.Write(PlanLine{Event: "plan", Data: plan, Meta: meta})
	}), nil
}

// betweenProgress is the shortest time between two lines with progress.
const betweenProgress = 250 * time.Millisecond

// VisitStreamPlanOfResourceTypesResponse implements [StreamPlanOfResourceTypesResponseObject].
func (write lines) VisitStreamPlanOfResourceTypesResponse(w http.ResponseWriter) error {
	return write.visit(w)
}

func planRequest(in PlanInput) (engine.PlanRequest, error) {
	change, err := typesChange(in.Renames, in.Types, in.Delete, in.ExpectedRevision)
	if err != nil {
		return engine.PlanRequest{}, err
	}
	if len(in.Questions) > maxQuestions {
		return engine.PlanRequest{}, tooMany("questions", maxQuestions)
	}
	var v validation
	req := engine.PlanRequest{TypesChange: change, Context: v.context(in.Context)}
	for i, q := range in.Questions {
		path := "questions/" + strconv.Itoa(i) + "/"
		subject := v.subject(path, q.Subject)
		req.Questions = append(req.Questions, engine.Query{
			Subject: &subject, Resource: v.resource(path+"resource/", q.Resource.Type, q.Resource.ExternalID), Action: q.Action,
		})
		v.Text(path, "action", q.Action)
	}
	return req, v.Err()
}

func planOf(renames []schema.Rename, plan *engine.TypesPlan) TypesPlan {
	out := TypesPlan{Revision: plan.Version, Changes: changesOf(plan.Changes), Affected: affectedOf(plan)}
	for i, r := range renames {
		n := plan.Renamed[i]
		out.Renames = append(out.Renames, PlannedRename{Type: r.Type, From: r.From, To: r.To, Count: n.Count, Exact: n.Exact})
	}
	for _, found := range plan.Illegal {
		out.Illegal = append(out.Illegal, illegalOf(found))
	}
	for _, a := range plan.Answers {
		out.Answers = append(out.Answers, PlannedAnswer{Before: plannedOf(a.Before), After: plannedOf(a.After), Differs: a.Differs()})
	}
	return out
}

// ApplyResourceTypes changes several types in one revision.
func (h *Handlers) ApplyResourceTypes(ctx context.Context, request ApplyResourceTypesRequestObject) (ApplyResourceTypesResponseObject, error) {
	info, in := web.InfoOf(ctx), request.Body
	change, err := typesChange(in.Renames, in.Types, in.Delete, in.ExpectedRevision)
	if err != nil {
		return nil, err
	}
	if in.RequireAssertions {
		change.Judge = h.judge(info, func(r assertions.Report) error { return failedAssertions(info, r) })
	}
	applied, err := h.Engine.ApplyTypes(ctx, info.Tenant.ID, change, origin(info))
	if err != nil {
		return nil, within(change, err)
	}
	body := ApplyAnswer{Meta: tokenMeta(info, applied.Token)}
	body.Data.Revision, body.Data.Changes = applied.Version, changesOf(applied.Changes)
	body.Data.Renames = renamesOf(change.Renames)
	return ApplyResourceTypes200JSONResponse{Body: body}, nil
}

func renamesOf(in []schema.Rename) (all []TypeRename) {
	for _, r := range in {
		all = append(all, TypeRename{Type: r.Type, From: r.From, To: r.To})
	}
	return all
}

// typesChange reads a change, in which each type may be named once.
func typesChange(renames []TypeRename, types []ResourceTypeInput, deleted []string, expected string) (engine.TypesChange, error) {
	change := engine.TypesChange{Delete: deleted, Expected: expected}
	if len(renames) > maxRenames {
		return change, tooMany("renames", maxRenames)
	}
	if len(types) > schema.MaxTypes {
		return change, tooMany("types", schema.MaxTypes)
	}
	if len(deleted) > schema.MaxTypes {
		return change, tooMany("delete", schema.MaxTypes)
	}
	var v validation
	for i, r := range renames {
		path := "renames/" + strconv.Itoa(i) + "/"
		if r.Type != "" {
			v.Text(path, "type", r.Type)
		}
		v.Text(path, "from", r.From)
		v.Text(path, "to", r.To)
		change.Renames = append(change.Renames, schema.Rename{Type: r.Type, From: r.From, To: r.To})
	}
	named := map[string]bool{}
	once := func(field, name string) {
		if named[name] {
			v.Add(field, "duplicate", fmt.Sprintf("names the type %q a second time", name))
		}
		named[name] = true
	}
	for i, t := range types {
		once("types/"+strconv.Itoa(i)+"/name", t.Name)
		change.Put = append(change.Put, TypeOf(t))
	}
	for i, name := range deleted {
		field := "delete/" + strconv.Itoa(i)
		if v.Text("delete/", strconv.Itoa(i), name) {
			once(field, name)
		}
	}
	return change, v.Err()
}

// within adds the name of a type and its place in a change to an error in its definition. A type
// that the change does not contain can become invalid, too.
func within(change engine.TypesChange, err error) error {
	var invalid *schema.Error
	switch {
	case errors.As(err, &invalid):
		located := *invalid
		located.Message = fmt.Sprintf("resource type %q: %s", invalid.Type, invalid.Message)
		if i := slices.IndexFunc(change.Put, func(t schema.Type) bool { return t.Name == invalid.Type }); i >= 0 {
			located.Path = fmt.Sprintf("types[%d].%s", i, invalid.Path)
		}
		return &located
	case errors.Is(err, engine.ErrTokenInvalid):
		return web.ValidationFailed(web.FieldError{Field: "expected_revision", Code: "invalid", Message: "the revision was not issued for this tenant"})
	}
	return err
}

func changesOf(in []engine.TypeChange) (all []TypeChange) {
	for _, c := range in {
		all = append(all, TypeChange{Name: c.Type.Name, Change: c.Result})
	}
	return all
}

func illegalOf(in engine.IllegalTuples) IllegalRelations {
	out := IllegalRelations{Type: in.Type, Relation: in.Relation, Condition: in.Condition, Count: in.Count, Exact: in.Exact}
	if in.Crowded {
		out.Reason = reasonCardinality
	}
	for _, r := range in.Samples {
		out.Samples = append(out.Samples, sampleOf(r.Tuple))
	}
	return out
}

func sampleOf(t tuplestore.Tuple) IllegalSample {
	s := IllegalSample{Resource: engine.RefTo(t.Object)}
	if !t.IsPresence() {
		s.Relation, s.Subject = t.Relation, engine.SubjectDocumentOf(t.Subject)
	}
	return s
}

// affectedOf groups what a plan affects by type, in the order of types.
func affectedOf(plan *engine.TypesPlan) (all []AffectedType) {
	at := func(typ string) *AffectedType {
		for i := range all {
			if all[i].Type == typ {
				return &all[i]
			}
		}
		all = append(all, AffectedType{Type: typ})
		return &all[len(all)-1]
	}
	for _, r := range plan.Affected {
		t := at(r.Type)
		t.Relations = append(t.Relations, r.Relation)
	}
	for _, a := range plan.Actions {
		t := at(a.Type)
		t.Actions = append(t.Actions, a.Action)
	}
	return all
}

func plannedOf(d engine.Decision) PlannedDecision {
	p := PlannedDecision{Allowed: d.Allowed}
	if d.Err != nil {
		p.Error = itemCode(d.Err)
	}
	return p
}
