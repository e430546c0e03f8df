package resources

import (
	"context"
	"fmt"
	"time"

	"stonetown/api/web"
	"stonetown/engine"
	"stonetown/internal/document"
)

// maxChanges is the maximum number of changes on a page.
const maxChanges = 100

// historyPosition is where the next page of a history begins.
type historyPosition struct {
	Token   string `json:"t"`
	Instant int64  `json:"i"` // µs
}

// CheckHistory lists the changes of the answer to a check.
func (h *Handlers) CheckHistory(ctx context.Context, request CheckHistoryRequestObject) (CheckHistoryResponseObject, error) {
	info, in := web.InfoOf(ctx), request.Body
	var v validation
	req := engine.HistoryRequest{
		Subject: v.subject("", in.Subject),
		Query:   engine.Query{Resource: v.resource("resource/", in.Resource.Type, in.Resource.ExternalID), Action: in.Action},
		Context: v.context(in.Context), Consistency: v.consistency("", "", in.At), Limit: 1,
	}
	v.Text("", "action", in.Action)
	if in.Limit != nil {
		if req.Limit = *in.Limit; req.Limit < 1 || req.Limit > maxChanges {
			v.Add("limit", "out_of_range", fmt.Sprintf("must be between 1 and %d", maxChanges))
		}
	}
	if err := v.Err(); err != nil {
		return nil, err
	}
	asked := *in
	asked.Limit, asked.Cursor = nil, ""
	list := filters("checkHistory", asked)
	if in.Cursor != "" {
		var after historyPosition
		if err := h.Cursors.Resume(info.Tenant.ID, list, in.Cursor, &after); err != nil {
			return nil, err
		}
		req.After = &engine.HistoryPosition{Token: after.Token, Instant: time.UnixMicro(after.Instant)}
	}
	history, err := h.Engine.CheckHistory(ctx, info.Tenant.ID, req)
	if err != nil {
		return nil, err
	}
	var body CheckHistoryAnswer
	for _, c := range history.Changes {
		body.Data = append(body.Data, changeOf(c))
	}
	body.Meta.RequestID, body.Meta.Limit = info.RequestID, req.Limit
	body.Meta.ConsistencyToken, body.Meta.HistoryEnded = history.Token, history.Collected
	body.Meta.Proof = wireRecords(history.Proof)
	if next := history.Next; next != nil {
		if body.Meta.NextCursor, err = h.next(info, list, historyPosition{next.Token, next.Instant.UnixMicro()}); err != nil {
			return nil, err
		}
	}
	return CheckHistory200JSONResponse{Body: body}, nil
}

func changeOf(c engine.CheckChange) DecisionChange {
	d := plannedOf(c.Decision)
	out := DecisionChange{
		Allowed: d.Allowed, Error: d.Error, At: document.Timestamp(c.At), ConsistencyToken: c.Token, Cause: c.Cause, Actor: c.Actor,
		Reasons: reasons(c.Reasons),
	}
	for _, change := range c.Changes {
		out.Changes = append(out.Changes, wireChange(change))
	}
	return out
}
