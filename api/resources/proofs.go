package resources

import (
	"context"

	"stonetown/api/web"
	"stonetown/engine"
	"stonetown/internal/document"
)

// proofPosition is the end of a page of proofs, and the revision that it reflects.
type proofPosition struct {
	Token string `json:"t"`
	Next  []int  `json:"n"`
}

// ListProofs lists a page of the proofs of a check.
func (h *Handlers) ListProofs(ctx context.Context, request ListProofsRequestObject) (ListProofsResponseObject, error) {
	info, in := web.InfoOf(ctx), request.Body
	limit, err := web.Limit(in.Limit)
	if err != nil {
		return nil, err
	}
	var v validation
	req := engine.ListProofsRequest{
		Subject: v.subject("", in.Subject), Resource: v.resource("resource/", in.Resource.Type, in.Resource.ExternalID), Action: in.Action,
		Context: v.context(in.Context), Consistency: v.consistency(in.Consistency, in.ConsistencyToken, in.At), Limit: limit,
	}
	v.Text("", "action", in.Action)
	if req.Contextual, err = v.contextual(in.ContextualRelations); err != nil {
		return nil, err
	}
	if err := v.Err(); err != nil {
		return nil, err
	}
	bound := *in
	bound.Cursor, bound.Limit = "", nil
	list := filters("proofs", bound)
	if in.Cursor != "" {
		var after proofPosition
		if err := h.Cursors.Resume(info.Tenant.ID, list, in.Cursor, &after); err != nil {
			return nil, err
		}
		req.From, req.Consistency = after.Next, req.Consistency.Following(after.Token)
	}
	found, err := h.Engine.ListProofs(ctx, info.Tenant.ID, req)
	if err != nil {
		return nil, err
	}
	if u := h.uses(info); u.any() {
		u.subject(req.Subject)
		u.action(req.Resource.Type, req.Action)
		u.relations(req.Contextual)
		u.warn(info)
	}
	body := ProofList{Meta: ProofListMeta{
		RequestID: info.RequestID, Limit: limit, Truncated: found.Truncated, ConsistencyToken: found.Token,
	}}
	for _, p := range found.Proofs {
		body.Data = append(body.Data, Proof{Reasons: reasons(p.Reasons), ExpiresAt: document.Timestamp(p.Until)})
	}
	if found.Next != nil {
		if body.Meta.NextCursor, err = h.next(info, list, proofPosition{found.Token, found.Next}); err != nil {
			return nil, err
		}
	}
	return ListProofs200JSONResponse{Body: body}, nil
}
