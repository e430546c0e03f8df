package resources

import (
	"context"
	"fmt"
	"net/http"
	"strconv"
	"sync"

	"stonetown/api/web"
	"stonetown/engine"
)

// maxBatch is the maximum number of checks of a request.
const maxBatch = 1000

// buffers are the memory of a check, which later checks use again.
type buffers struct {
	request  engine.CheckRequest
	response engine.CheckResponse
}

var bufferPool = sync.Pool{New: func() any { return new(buffers) }}

func (b *buffers) release() {
	queries, decisions := b.request.Queries, b.response.Decisions
	clear(queries)
	clear(decisions)
	b.request = engine.CheckRequest{Queries: queries[:0]}
	b.response = engine.CheckResponse{Decisions: decisions[:0]}
	bufferPool.Put(b)
}

// Check answers one check.
func (h *Handlers) Check(ctx context.Context, request CheckRequestObject) (CheckResponseObject, error) {
	in := request.Body
	c := bufferPool.Get().(*buffers)
	defer c.release()
	if err := checkRequest(in, &c.request); err != nil {
		return nil, err
	}
	at := web.InfoOf(ctx)
	if err := h.Engine.CheckInto(ctx, at.Tenant.ID, &c.request, &c.response); err != nil {
		return nil, err
	}
	decision := c.response.Decisions[0]
	if decision.Err != nil {
		return nil, decision.Err
	}
	warnOfChecks(at, &c.request, &c.response)
	answer := checkAnswer{allowed: decision.Allowed, meta: checkMeta(at, &c.response)}
	if !in.Debug {
		return answer, nil
	}
	return Check200JSONResponse{Body: CheckAnswer{Data: decisionOf(decision), Meta: answer.meta}}, nil
}

func decisionOf(d engine.Decision) CheckDecision {
	return CheckDecision{Allowed: d.Allowed, Reasons: reasons(d.Reasons), Denial: denial(d.Denial)}
}

// checkRequest converts a check to the request.
func checkRequest(in *CheckInput, req *engine.CheckRequest) (err error) {
	var v validation
	req.Subject = v.subject("", in.Subject)
	req.Queries = append(req.Queries, engine.Query{Resource: v.resource("resource/", in.Resource.Type, in.Resource.ExternalID), Action: in.Action})
	req.Consistency = v.consistency(in.Consistency, in.ConsistencyToken, in.At)
	req.Reasons, req.Denials = in.Debug, in.Debug
	req.Context = v.context(in.Context)
	v.Text("", "action", in.Action)
	if req.Contextual, err = v.contextual(in.ContextualRelations); err != nil {
		return err
	}
	return v.Err()
}

func reasons(list []engine.Reason) []Reason {
	var out []Reason
	for _, r := range list {
		out = append(out, Reason{Via: r.Via, Rewrite: r.Rewrite, Text: r.Text})
	}
	return out
}

// denial represents the explanation of a denied check; nil if there is none.
func denial(d *engine.Denial) *Denial {
	if d == nil {
		return nil
	}
	out := &Denial{Truncated: d.Truncated}
	for _, way := range d.Ways {
		var w DenialWay
		for _, r := range way.Relations {
			item := DenialRelation{
				Resource: engine.RefTo(r.Object), Relation: r.Relation, Subject: engine.SubjectDocumentOf(r.Subject), State: string(r.State),
			}
			switch expiresAt, condition := engine.QualifierDocument(r.Qualifier); r.State {
			case engine.RelationExpired:
				item.ExpiresAt = expiresAt
			case engine.ConditionUnmet, engine.ConditionUndecided:
				condition.Context = r.Values
				item.Condition = condition
			}
			w.Relations = append(w.Relations, item)
		}
		for _, x := range way.Exclusions {
			w.Exclusions = append(w.Exclusions, DenialExclusion{
				Resource: engine.RefTo(x.Node.Object), Relation: x.Node.Relation, Reasons: reasons(x.Reasons),
			})
		}
		out.Ways = append(out.Ways, w)
	}
	return out
}

// CheckBatch answers many checks, about the subject of the request or their own.
func (h *Handlers) CheckBatch(ctx context.Context, request CheckBatchRequestObject) (CheckBatchResponseObject, error) {
	c := bufferPool.Get().(*buffers)
	defer c.release()
	if err := batchRequest(request.Body, &c.request); err != nil {
		return nil, err
	}
	at := web.InfoOf(ctx)
	if err := h.Engine.CheckInto(ctx, at.Tenant.ID, &c.request, &c.response); err != nil {
		return nil, err
	}
	warnOfChecks(at, &c.request, &c.response)
	return newBatchAnswer(c.response.Decisions, checkMeta(at, &c.response)), nil
}

// batchRequest converts a batch of checks to the request.
func batchRequest(in *CheckBatchInput, req *engine.CheckRequest) error {
	if len(in.Checks) > maxBatch {
		return tooMany("checks", maxBatch)
	}
	var v validation
	if len(in.Checks) == 0 {
		v.Add("checks", "required", "must have at least one item")
	}
	common := in.Subject
	for i := range in.Checks {
		if common == nil && in.Checks[i].Subject == nil {
			common = new(Subject) // which is missing
		}
	}
	if common != nil {
		req.Subject = v.subject("", *common)
	}
	req.Consistency = v.consistency(in.Consistency, in.ConsistencyToken, in.At)
	req.Context = v.context(in.Context)
	var err error
	if req.Contextual, err = v.contextual(in.ContextualRelations); err != nil {
		return err
	}
	for i := range in.Checks {
		item := &in.Checks[i]
		var faults validation
		q := engine.Query{Resource: faults.resource("resource/", item.Resource.Type, item.Resource.ExternalID), Action: item.Action}
		if item.Subject != nil {
			own := faults.subject("", *item.Subject)
			q.Subject = &own
		}
		req.Queries = append(req.Queries, q)
		faults.Text("", "action", item.Action)
		for _, f := range faults.Faults { // paths are only built for errors
			path := "checks/" + strconv.Itoa(i) + "/"
			v.Faults = append(v.Faults, web.FieldError{Field: path + f.Field, Code: f.Code, Message: path + f.Message})
		}
	}
	return v.Err()
}

func checkMeta(info *web.RequestInfo, answer *engine.CheckResponse) CheckMeta {
	return CheckMeta{RequestID: info.RequestID, ConsistencyToken: answer.Token, ConsistencyTokenIgnored: answer.TokenIgnored}
}

// checkAnswer encodes a [CheckAnswer] without reasons.
type checkAnswer struct {
	allowed bool
	meta    CheckMeta
}

// VisitCheckResponse implements [CheckResponseObject].
func (a checkAnswer) VisitCheckResponse(w http.ResponseWriter) error {
	return web.WriteJSON(w, http.StatusOK, &a)
}

// AppendJSON appends the answer to b.
func (a *checkAnswer) AppendJSON(b []byte) []byte {
	b = append(b, `{"data":{"allowed":`...)
	b = strconv.AppendBool(b, a.allowed)
	return appendMeta(append(b, '}'), &a.meta)
}

// batchAnswer is an encoded [CheckBatchAnswer]. To encode a large batch by reflection would
// take longer than the checks.
type batchAnswer []byte

func newBatchAnswer(decisions []engine.Decision, meta CheckMeta) batchAnswer {
	b := make([]byte, 0, 256+len(`{"allowed":false},`)*len(decisions))
	b = append(b, `{"data":[`...)
	for i := range decisions {
		if i > 0 {
			b = append(b, ',')
		}
		switch d := &decisions[i]; {
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
	return appendMeta(append(b, ']'), &meta)
}

// VisitCheckBatchResponse implements [CheckBatchResponseObject].
func (a batchAnswer) VisitCheckBatchResponse(w http.ResponseWriter) error {
	return web.WriteJSON(w, http.StatusOK, a)
}

// AppendJSON appends the answer to b.
func (a batchAnswer) AppendJSON(b []byte) []byte { return append(b, a...) }

// appendMeta appends the end of an answer after its data.
func appendMeta(b []byte, meta *CheckMeta) []byte {
	b = append(b, `,"meta":{"consistency_token":"`...)
	b = append(b, meta.ConsistencyToken...) // base64url
	b = append(b, '"')
	if meta.ConsistencyTokenIgnored {
		b = append(b, `,"consistency_token_ignored":true`...)
	}
	b = append(b, `,"request_id":"`...)
	b = append(b, meta.RequestID...)
	return append(b, `"}}`...)
}

// itemCode returns the code of the error of a check.
func itemCode(err error) string {
	switch err := err.(type) { // the engine documents that these are not wrapped
	case *engine.UnknownTypeError:
		return codeResourceTypeNotFound
	case *engine.UndefinedRelationError:
		return codeRelationUndefined
	case *engine.ResourceNotFoundError:
		return codeResourceNotFound
	case *engine.InvalidSubjectError:
		return codeSubjectInvalid
	case *engine.ConditionError:
		return conditionCode(err)
	case *engine.NegativeCycleError:
		return codeExclusionCycle
	default:
		panic(fmt.Sprintf("a check has no answer for an undocumented reason: %v", err))
	}
}

// conditionCode distinguishes missing values from values of the wrong type.
func conditionCode(err *engine.ConditionError) string {
	if err.Err != nil {
		return codeConditionFailed
	}
	return codeContextMissing
}
