package authzen

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"reflect"
	"strconv"

	"stonetown/api/web"
	"stonetown/engine"
)

// maxEvaluations is the maximum number of decisions of a request.
const maxEvaluations = 1000

// The semantics of many evaluations (AuthZEN §7.1.2.1).
const (
	executeAll          = "execute_all"
	denyOnFirstDeny     = "deny_on_first_deny"
	permitOnFirstPermit = "permit_on_first_permit"
)

// all are the parts of an evaluation.
var all = parts{subjectID: true, action: true, resourceID: true}

// Evaluate makes one decision (AuthZEN §6).
func (h *Handlers) Evaluate(ctx context.Context, request EvaluateRequestObject) (EvaluateResponseObject, error) {
	decision, err := h.evaluate(ctx, *request.Body)
	if err != nil {
		return nil, err
	}
	return Evaluate200JSONResponse{Body: decision}, nil
}

func (h *Handlers) evaluate(ctx context.Context, in AuthZENEvaluation) (AuthZENDecision, error) {
	var v web.Validation
	e := entitiesOf(&v, "", in, all)
	if err := v.Err(); err != nil {
		return AuthZENDecision{}, err
	}
	decisions, err := h.decide(ctx, []entities{e})
	if err != nil {
		return AuthZENDecision{}, err
	}
	return decisions[0], nil
}

// EvaluateMany makes many decisions (AuthZEN §7).
func (h *Handlers) EvaluateMany(ctx context.Context, request EvaluateManyRequestObject) (EvaluateManyResponseObject, error) {
	in := request.Body
	defaults := AuthZENEvaluation{Subject: in.Subject, Action: in.Action, Resource: in.Resource, Context: in.Context}
	if len(in.Evaluations) == 0 {
		decision, err := h.evaluate(ctx, defaults)
		if err != nil {
			return nil, err
		}
		return EvaluateMany200JSONResponse{Body: AuthZENDecisions{Decision: &decision.Decision, Context: decision.Context}}, nil
	}
	if len(in.Evaluations) > maxEvaluations {
		return nil, &web.Error{
			Status: http.StatusBadRequest, Code: "bulk_too_large",
			Message: fmt.Sprintf("evaluations has more than %d items", maxEvaluations), Details: web.Details{"max": maxEvaluations},
		}
	}
	var v web.Validation
	semantic := in.Options.EvaluationsSemantic
	switch semantic {
	case "", executeAll, denyOnFirstDeny, permitOnFirstPermit:
	default:
		v.Add("options/evaluations_semantic", "unknown_value", "must be execute_all, deny_on_first_deny or permit_on_first_permit")
	}
	asked := make([]entities, len(in.Evaluations))
	for i, item := range in.Evaluations {
		asked[i] = entitiesOf(&v, "evaluations/"+strconv.Itoa(i)+"/", withDefaults(item, defaults), all)
	}
	if err := v.Err(); err != nil {
		return nil, err
	}
	decisions, err := h.decide(ctx, asked)
	if err != nil {
		return nil, err
	}
	for i, d := range decisions {
		if semantic == denyOnFirstDeny && !d.Decision || semantic == permitOnFirstPermit && d.Decision {
			decisions = decisions[:i+1]
			break
		}
	}
	return EvaluateMany200JSONResponse{Body: AuthZENDecisions{Evaluations: decisions}}, nil
}

// withDefaults adds the members that an evaluation lacks.
func withDefaults(item, defaults AuthZENEvaluation) AuthZENEvaluation {
	if item.Subject == nil {
		item.Subject = defaults.Subject
	}
	if item.Action == nil {
		item.Action = defaults.Action
	}
	if item.Resource == nil {
		item.Resource = defaults.Resource
	}
	if item.Context == nil {
		item.Context = defaults.Context
	}
	return item
}

// decide makes decisions in order. Consecutive evaluations that differ only in action and
// resource are one batch.
func (h *Handlers) decide(ctx context.Context, asked []entities) ([]AuthZENDecision, error) {
	var decisions []AuthZENDecision
	for len(asked) > 0 {
		first, n := asked[0], 0
		req := engine.CheckRequest{Subject: first.subject, Context: first.values}
		for _, e := range asked {
			if e.subject != first.subject || !reflect.DeepEqual(e.values, first.values) {
				break
			}
			req.Queries = append(req.Queries, engine.Query{Resource: e.resource, Action: e.action})
			n++
		}
		asked = asked[n:]
		answer, err := h.Engine.Check(ctx, web.InfoOf(ctx).Tenant.ID, req)
		if err != nil {
			var unknown *engine.InvalidSubjectError
			if !errors.As(err, &unknown) {
				return nil, err
			}
			for range n {
				decisions = append(decisions, decisionOf(false, unknown))
			}
			continue
		}
		for _, d := range answer.Decisions {
			decisions = append(decisions, decisionOf(d.Allowed, d.Err))
		}
	}
	return decisions, nil
}

// decisionOf converts a decision, with the error if there is none.
func decisionOf(allowed bool, err error) AuthZENDecision {
	if err == nil {
		return AuthZENDecision{Decision: allowed}
	}
	e := Errors.Translate(err)
	return AuthZENDecision{Context: &AuthZENDecisionContext{
		Error: AuthZENError{Status: e.Status, Code: e.Code, Message: e.Message},
	}}
}
