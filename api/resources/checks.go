package resources

import (
	"context"
	"fmt"
	"net/http"
	"strconv"

	"stonetown/api/web"
	"stonetown/engine"
)

// maxBatch is how many checks one call may ask.
const maxBatch = 1000

// Check answers one check.
func (s *Surface) Check(ctx context.Context, request CheckRequestObject) (CheckResponseObject, error) {
	call, in := web.CallOf(ctx), request.Body
	var v validation
	req := engine.CheckRequest{
		Subject:     v.subject("", in.Subject),
		Queries:     []engine.Query{{Resource: v.resource("resource/", in.Resource.Type, in.Resource.ExternalID), Action: in.Action}},
		Consistency: v.consistency(in.Consistency, in.ConsistencyToken),
		Reasons:     in.Debug,
		Context:     v.context(in.Context),
	}
	v.Text("", "action", in.Action)
	var err error
	if req.Contextual, err = v.contextual(in.ContextualRelations); err != nil {
		return nil, err
	}
	if err := v.Err(); err != nil {
		return nil, err
	}
	answer, err := s.Engine.Check(ctx, call.Tenant.ID, req)
	if err != nil {
		return nil, err
	}
	decision := answer.Decisions[0]
	if decision.Err != nil {
		return nil, decision.Err
	}
	body := CheckAnswer{Data: CheckDecision{Allowed: decision.Allowed}, Meta: checkMeta(call, answer)}
	for _, r := range decision.Reasons {
		body.Data.Reasons = append(body.Data.Reasons, Reason{Via: r.Via, Rewrite: r.Rewrite, Text: r.Text})
	}
	return Check200JSONResponse{Body: body}, nil
}

// CheckBatch answers many checks of one subject.
func (s *Surface) CheckBatch(ctx context.Context, request CheckBatchRequestObject) (CheckBatchResponseObject, error) {
	call, in := web.CallOf(ctx), request.Body
	if len(in.Checks) > maxBatch {
		return nil, tooMany("checks", maxBatch)
	}
	var v validation
	if len(in.Checks) == 0 {
		v.Add("checks", "required", "must have at least one item")
	}
	req := engine.CheckRequest{
		Subject:     v.subject("", in.Subject),
		Queries:     make([]engine.Query, len(in.Checks)),
		Consistency: v.consistency(in.Consistency, in.ConsistencyToken),
		Context:     v.context(in.Context),
	}
	var err error
	if req.Contextual, err = v.contextual(in.ContextualRelations); err != nil {
		return nil, err
	}
	for i := range in.Checks {
		item := &in.Checks[i]
		var faults validation
		req.Queries[i] = engine.Query{Resource: faults.resource("resource/", item.Resource.Type, item.Resource.ExternalID), Action: item.Action}
		faults.Text("", "action", item.Action)
		for _, f := range faults.Faults { // paths are only built for what is wrong
			path := "checks/" + strconv.Itoa(i) + "/"
			v.Faults = append(v.Faults, web.FieldError{Field: path + f.Field, Code: f.Code, Message: path + f.Message})
		}
	}
	if err := v.Err(); err != nil {
		return nil, err
	}
	answer, err := s.Engine.Check(ctx, call.Tenant.ID, req)
	if err != nil {
		return nil, err
	}
	return batchAnswer{answer.Decisions, checkMeta(call, answer)}, nil
}

func checkMeta(call *web.Call, answer *engine.CheckResponse) CheckMeta {
	return CheckMeta{RequestID: call.RequestID, ConsistencyToken: answer.Token, ConsistencyTokenIgnored: answer.TokenIgnored}
}

// batchAnswer is a [CheckBatchAnswer] that writes itself: encoding a large batch
// by reflection would cost more than checking it.
type batchAnswer struct {
	decisions []engine.Decision
	meta      CheckMeta
}

// VisitCheckBatchResponse implements [CheckBatchResponseObject].
func (a batchAnswer) VisitCheckBatchResponse(w http.ResponseWriter) error {
	return web.WriteJSON(w, http.StatusOK, a)
}

// AppendJSON appends the answer to b.
func (a batchAnswer) AppendJSON(b []byte) []byte {
	b = append(b, `{"data":[`...)
	for i := range a.decisions {
		if i > 0 {
			b = append(b, ',')
		}
		switch d := &a.decisions[i]; {
		case d.Err != nil:
			b = append(b, `{"allowed":false,"error":"`...)
			b = append(b, itemCode(d.Err)...)
			b = append(b, `"}`...)
		case d.Allowed:
			b = append(b, `{"allowed":true}`...)
		default:
			b = append(b, `{"allowed":false}`...)
		}
	}
	b = append(b, `],"meta":{"consistency_token":"`...)
	b = append(b, a.meta.ConsistencyToken...) // base64url
	b = append(b, '"')
	if a.meta.ConsistencyTokenIgnored {
		b = append(b, `,"consistency_token_ignored":true`...)
	}
	b = append(b, `,"request_id":"`...)
	b = append(b, a.meta.RequestID...)
	return append(b, `"}}`...)
}

// itemCode says in one word why a check has no answer.
func itemCode(err error) string {
	switch err := err.(type) { // the engine documents these, and that they are not wrapped
	case *engine.UnknownTypeError:
		return codeResourceTypeNotFound
	case *engine.UndefinedRelationError:
		return codeRelationUndefined
	case *engine.ResourceNotFoundError:
		return codeResourceNotFound
	case *engine.ConditionError:
		return conditionCode(err)
	default:
		panic(fmt.Sprintf("a check has no answer for an undocumented reason: %v", err))
	}
}

// conditionCode tells values that are missing from those that do not fit.
func conditionCode(err *engine.ConditionError) string {
	if err.Err != nil {
		return codeConditionFailed
	}
	return codeContextMissing
}
