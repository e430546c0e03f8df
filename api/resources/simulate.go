package resources

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"strings"
	"time"

	"stonetown/api/web"
	"stonetown/engine"
)

// premise is what a question assumes. Its zero value assumes nothing.
type premise struct {
	assume  *engine.Assumption
	filters []string // to which the cursors of lists are bound
}

// Simulate answers one question under an assumption.
func (h *Handlers) Simulate(ctx context.Context, request SimulateRequestObject) (SimulateResponseObject, error) {
	in := request.Body
	name, err := in.question()
	if err != nil {
		return nil, err
	}
	if in.Assume == nil {
		return nil, web.ValidationFailed(web.FieldError{Field: "assume", Code: "required", Message: "assume is required"})
	}
	assume, err := assumption(in.Assume)
	if err != nil {
		return nil, err
	}
	p := premise{assume, filters("simulate", in.Assume)}
	var body SimulateAnswer
	out, info := &body.Data, web.InfoOf(ctx)
	switch name {
	case "check", "check_batch":
		err = h.simulateChecks(ctx, in, assume, &body)
	case "list_resources":
		var list AllowedResourceList
		list, err = h.allowedResources(ctx, in.ListResources, p)
		out.ListResources, body.Meta = append([]AllowedResource{}, list.Data...), listSimulated(list.Meta)
	case "list_subjects":
		var list AllowedSubjectList
		list, err = h.allowedSubjects(ctx, in.ListSubjects, p)
		out.ListSubjects, body.Meta = append([]AllowedSubject{}, list.Data...), listSimulated(list.Meta)
	case "list_actions":
		var list AllowedActionList
		list, err = h.allowedActions(ctx, in.ListActions, p)
		out.ListActions.Actions, body.Meta = append([]string{}, list.Data.Actions...), SimulateMeta{RequestID: info.RequestID, ConsistencyToken: list.Meta.ConsistencyToken}
	case "list_proofs":
		var list ProofList
		list, err = h.proofs(ctx, in.ListProofs, p)
		out.ListProofs = append([]Proof{}, list.Data...)
		body.Meta = SimulateMeta{
			RequestID: info.RequestID, ConsistencyToken: list.Meta.ConsistencyToken, Limit: list.Meta.Limit, NextCursor: list.Meta.NextCursor, Truncated: list.Meta.Truncated,
		}
	case "expand":
		var tree ExpandAnswer
		tree, err = h.expansion(ctx, in.Expand, p)
		out.Expand, body.Meta = &tree.Data, SimulateMeta{RequestID: info.RequestID, ConsistencyToken: tree.Meta.ConsistencyToken}
	}
	if err != nil {
		return nil, simulationError(name, assume, err)
	}
	return Simulate200JSONResponse{Body: body}, nil
}

func listSimulated(m PageMeta) SimulateMeta {
	return SimulateMeta{RequestID: m.RequestID, ConsistencyToken: m.ConsistencyToken, Limit: m.Limit, NextCursor: m.NextCursor}
}

// question returns the name of the only question.
func (in *SimulateInput) question() (string, error) {
	var names []string
	for _, q := range []struct {
		name  string
		asked bool
	}{
		{"check", in.Check != nil},
		{"check_batch", in.CheckBatch != nil},
		{"list_resources", in.ListResources != nil},
		{"list_actions", in.ListActions != nil},
		{"list_subjects", in.ListSubjects != nil},
		{"list_proofs", in.ListProofs != nil},
		{"expand", in.Expand != nil},
	} {
		if q.asked {
			names = append(names, q.name)
		}
	}
	switch len(names) {
	case 1:
		return names[0], nil
	case 0:
		return "", web.ValidationFailed(web.FieldError{Field: "check", Code: "required", Message: "one question is required: check, check_batch, list_resources, list_actions, list_subjects, list_proofs or expand"})
	default:
		return "", web.ValidationFailed(web.FieldError{Field: names[1], Code: "conflict", Message: names[1] + " cannot be combined with " + names[0]})
	}
}

// assumption reads what a question assumes.
func assumption(in *Assumption) (*engine.Assumption, error) {
	var a engine.Assumption
	var v validation
	var err error
	if a.Add, err = v.relations("assume/relations/add", in.Relations.Add); err != nil {
		return nil, err
	}
	removed := make([]ContextualRelation, len(in.Relations.Remove))
	for i, r := range in.Relations.Remove {
		removed[i] = ContextualRelation{Resource: r.Resource, Relation: r.Relation, Subject: r.Subject}
	}
	if a.Remove, err = v.relations("assume/relations/remove", removed); err != nil {
		return nil, err
	}
	if in.Instant != nil {
		if a.Instant, err = time.Parse(time.RFC3339, *in.Instant); err != nil || a.Instant.UnixMicro() <= 0 {
			v.Add("assume/instant", "timestamp_invalid", "must be an RFC 3339 time after 1970")
		}
	}
	if err := v.Err(); err != nil {
		return nil, err
	}
	a.Types, err = typesChange(nil, in.ResourceTypes.Types, in.ResourceTypes.Delete, "")
	if err != nil {
		return nil, under("assume/resource_types/", err)
	}
	return &a, nil
}

// simulateChecks answers a check or a batch, under the assumption and without it.
func (h *Handlers) simulateChecks(ctx context.Context, in *SimulateInput, assume *engine.Assumption, body *SimulateAnswer) error {
	c := bufferPool.Get().(*buffers)
	defer c.release()
	req := &c.request
	var err error
	if in.Check != nil {
		err = checkRequest(in.Check, req)
	} else {
		err = batchRequest(in.CheckBatch, req)
	}
	if err != nil {
		return err
	}
	info := web.InfoOf(ctx)
	asked := req.Consistency
	req.Consistency.Assume = assume
	if err := h.Engine.CheckInto(ctx, info.Tenant.ID, req, &c.response); err != nil {
		return err
	}
	decisions := c.response.Decisions
	if in.Check == nil {
		body.Data.CheckBatch = allPlanned(decisions)
	} else {
		if err := decisions[0].Err; err != nil {
			return err
		}
		d := decisionOf(decisions[0])
		body.Data.Check = &d
	}
	body.Meta = SimulateMeta{RequestID: info.RequestID, ConsistencyToken: c.response.Token, ConsistencyTokenIgnored: c.response.TokenIgnored}

	// The same state without the assumption.
	req.Reasons, req.Denials = false, false
	req.Consistency = engine.Consistency{Mode: engine.Exactly, Token: c.response.Token}
	if asked.Mode == engine.AsOf {
		req.Consistency.Mode, req.Consistency.Instant = engine.AsOf, asked.Instant
	}
	err = h.Engine.CheckInto(ctx, info.Tenant.ID, req, &c.response)
	var invalid *engine.InvalidSubjectError
	var contextual *engine.ContextualError
	if errors.As(err, &invalid) || errors.As(err, &contextual) {
		return nil
	}
	body.Data.Before = allPlanned(c.response.Decisions)
	return err
}

func allPlanned(decisions []engine.Decision) []PlannedDecision {
	list := make([]PlannedDecision, len(decisions))
	for i, d := range decisions {
		list[i] = plannedOf(d)
	}
	return list
}

// simulationError adds the part of the request that it belongs to to an error.
func simulationError(question string, a *engine.Assumption, err error) error {
	var assumed *engine.AssumptionError
	switch {
	case !errors.As(err, &assumed):
		return under(question+"/", err)
	case assumed.Part == "types":
		return under("assume/resource_types/", within(a.Types, assumed.Err))
	}
	path := fmt.Sprintf("assume/relations/%s/%d", assumed.Part, assumed.Index)
	e := translate(under(path+"/", assumed.Err))
	if e == nil {
		return err
	}
	e = atIndex(e, assumed.Index)
	e.Details["path"] = path
	return e
}

// under adds a prefix to the fields and the path of an error that the client caused.
func under(prefix string, err error) error {
	e := translate(err)
	if e == nil {
		return err
	}
	located := *e
	located.Details = maps.Clone(e.Details)
	if path, ok := e.Details["path"].(string); ok {
		located.Details["path"] = prefix + path
	}
	if fields, ok := e.Details["field_errors"].([]web.FieldError); ok {
		var all []web.FieldError
		for _, f := range fields {
			if strings.HasPrefix(f.Message, f.Field) {
				f.Message = prefix + f.Message
			}
			f.Field = prefix + f.Field
			all = append(all, f)
		}
		located.Details["field_errors"], located.Message = all, all[0].Message
	}
	return &located
}
