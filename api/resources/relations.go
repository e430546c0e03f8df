package resources

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/http"
	"strconv"

	"stonetown/api/web"
	"stonetown/engine"
	"stonetown/internal/document"
	"stonetown/tuplestore"
)

// maxBulk is the maximum number of relations that a request writes.
const maxBulk = 500

// CreateRelation creates a relation of a resource to a subject.
func (h *Handlers) CreateRelation(ctx context.Context, request CreateRelationRequestObject) (CreateRelationResponseObject, error) {
	info := web.InfoOf(ctx)
	op, err := relationOf(request.Type, request.ExternalID, *request.Body, false)
	if err != nil {
		return nil, err
	}
	written, err := h.writeRelation(ctx, info, op)
	if err != nil {
		return nil, err
	}
	body := RelationWritten{Data: op.Document(), Meta: tokenMeta(info, written.Token)}
	if status := written.Statuses[0]; status != tuplestore.Created && status != tuplestore.Replaced {
		return CreateRelation200JSONResponse{Body: body}, nil
	}
	return CreateRelation201JSONResponse{Body: body}, nil
}

// DeleteRelation removes one relation.
func (h *Handlers) DeleteRelation(ctx context.Context, request DeleteRelationRequestObject) (DeleteRelationResponseObject, error) {
	info := web.InfoOf(ctx)
	op, err := relationOf(request.Type, request.ExternalID, *request.Body, true)
	if err != nil {
		return nil, err
	}
	written, err := h.writeRelation(ctx, info, op)
	if err != nil {
		return nil, err
	}
	return DeleteRelation204Response{Headers: DeletedResponseHeaders{XConsistencyToken: written.Token}}, nil
}

func (h *Handlers) writeRelation(ctx context.Context, info *web.RequestInfo, op engine.WriteOp) (engine.WriteResponse, error) {
	if err := managed(op.Resource, op.Relation); err != nil {
		return engine.WriteResponse{}, &engine.OpError{Err: err}
	}
	written, err := h.Engine.WriteRelation(ctx, info.Tenant.ID, op, origin(info))
	if err != nil {
		return written, withSubject(info, err)
	}
	h.warnOfWrites(info, []engine.WriteOp{op})
	return written, nil
}

func relationOf(typ, externalID string, in RelationInput, isDelete bool) (engine.WriteOp, error) {
	var v validation
	op := engine.WriteOp{Delete: isDelete, Resource: v.resource("", typ, externalID), Relation: in.Relation, Subject: v.subject("", in.Subject)}
	v.Text("", "relation", in.Relation)
	v.qualifier("", in.ExpiresAt, in.Condition, &op)
	v.lasting("", op)
	return op, v.Err()
}

// WriteRelations writes many relations or none.
func (h *Handlers) WriteRelations(ctx context.Context, request WriteRelationsRequestObject) (WriteRelationsResponseObject, error) {
	info := web.InfoOf(ctx)
	in := request.Body.Operations
	if len(in) == 0 {
		return nil, web.ValidationFailed(web.FieldError{Field: "operations", Code: "required", Message: "operations must have at least one item"})
	}
	if len(in) > maxBulk {
		return nil, tooMany("operations", maxBulk)
	}
	var outcomes validation
	ifNew := outcomes.fails("on_existing", request.Body.OnExisting, false)
	ifPresent := !outcomes.fails("on_missing", request.Body.OnMissing, true)
	if err := outcomes.Err(); err != nil {
		return nil, err
	}
	conditions, err := preconditions(info, request.Body.Preconditions)
	if err != nil {
		return nil, err
	}
	ops := make([]engine.WriteOp, len(in))
	for i, item := range in {
		var v validation
		path := "operations/" + strconv.Itoa(i) + "/"
		ops[i] = engine.WriteOp{
			Delete: item.Op == "delete", New: ifNew, IfPresent: ifPresent,
			Resource: v.resource(path+"resource/", item.Resource.Type, item.Resource.ExternalID),
			Relation: item.Relation,
			Subject:  v.subject(path, item.Subject),
		}
		v.Text(path, "relation", item.Relation)
		v.qualifier(path, item.ExpiresAt, item.Condition, &ops[i])
		v.lasting(path, ops[i])
		if item.Op != "create" && item.Op != "delete" {
			v.Add(path+"op", "unknown_value", "must be create or delete")
		}
		if len(v.Faults) > 0 {
			return nil, atIndex(web.ValidationFailed(v.Faults...), i)
		}
	}
	written, err := h.writeAll(ctx, info, engine.WriteRequest{Origin: origin(info), Ops: ops, Preconditions: conditions})
	if err != nil {
		if e := preconditionError(err); e != nil {
			return nil, e
		}
		var failed *engine.OpError
		if errors.As(err, &failed) {
			if e := translate(withSubject(info, failed.Err)); e != nil {
				return nil, atIndex(e, failed.Index)
			}
		}
		return nil, err
	}
	h.warnOfWrites(info, ops)
	answer := &bulkAnswer{Meta: tokenMeta(info, written.Token)}
	answer.Data.Results = make([]BulkResult, len(in))
	for i, status := range written.Statuses {
		answer.Data.Applied += min(1, written.Counts[i])
		answer.Data.Results[i] = BulkResult{Index: i, Op: in[i].Op, Status: statusNames[status]}
		if status == tuplestore.Deleted && written.Counts[i] == 0 {
			answer.Data.Results[i].Status = "missing"
		}
	}
	return answer, nil
}

// bulkAnswer is a [BulkWritten] that is not encoded by reflection.
type bulkAnswer BulkWritten

// VisitWriteRelationsResponse implements [WriteRelationsResponseObject].
func (a *bulkAnswer) VisitWriteRelationsResponse(w http.ResponseWriter) error {
	return web.WriteJSON(w, http.StatusOK, a)
}

// AppendJSON appends the answer to b.
func (a *bulkAnswer) AppendJSON(b []byte) []byte {
	b = append(b, `{"data":{"applied":`...)
	b = strconv.AppendInt(b, int64(a.Data.Applied), 10)
	b = append(b, `,"results":[`...)
	for i := range a.Data.Results {
		if i > 0 {
			b = append(b, ',')
		}
		r := &a.Data.Results[i]
		b = append(b, `{"index":`...)
		b = strconv.AppendInt(b, int64(r.Index), 10)
		b = append(b, `,"op":"`...)
		b = append(b, r.Op...)
		b = append(b, `","status":"`...)
		b = append(b, r.Status...)
		b = append(b, `"}`...)
	}
	return appendMeta(append(b, "]}"...), &CheckMeta{ConsistencyToken: a.Meta.ConsistencyToken, RequestID: a.Meta.RequestID})
}

// fails reads the outcome of an operation that changes nothing: ok or fail.
func (v *validation) fails(field, value string, byDefault bool) bool {
	switch value {
	case "":
		return byDefault
	case "ok", "fail":
	default:
		v.Add(field, "unknown_value", "must be ok or fail")
	}
	return value == "fail"
}

func (h *Handlers) writeAll(ctx context.Context, info *web.RequestInfo, req engine.WriteRequest) (engine.WriteResponse, error) {
	for i, op := range req.Ops {
		if err := managed(op.Resource, op.Relation); err != nil {
			return engine.WriteResponse{}, &engine.OpError{Index: i, Err: err}
		}
	}
	return h.Engine.Write(ctx, info.Tenant.ID, req)
}

var statusNames = map[tuplestore.Status]string{
	tuplestore.Created: "created", tuplestore.Existed: "exists", tuplestore.Updated: "updated", tuplestore.Deleted: "deleted",
	tuplestore.Replaced: "replaced",
}

func tooMany(field string, most int) *web.Error {
	return &web.Error{
		Status: http.StatusBadRequest, Code: "bulk_too_large",
		Message: fmt.Sprintf("%s has more than %d items", field, most),
		Details: web.Details{"max": most},
	}
}

// relationPosition is the end of a page of relations.
type relationPosition struct {
	ResourceType    string `json:"o"` // this and the other names are those of stored relations
	Relation        string `json:"r"`
	SubjectType     string `json:"t"`
	SubjectID       string `json:"i"`
	SubjectRelation string `json:"s"`
}

// ListRelations lists the relations of a resource as they were written.
func (h *Handlers) ListRelations(ctx context.Context, request ListRelationsRequestObject) (ListRelationsResponseObject, error) {
	info := web.InfoOf(ctx)
	limit, err := web.Limit(request.Params.Limit)
	if err != nil {
		return nil, err
	}
	relation := request.Params.Relation
	var v validation
	o := v.resource("", request.Type, request.ExternalID)
	if relation != "" {
		v.Text("", "relation", relation)
	}
	if err := v.Err(); err != nil {
		return nil, err
	}
	list := []string{"listRelations", o.Type, o.ID, relation}
	var after *tuplestore.Record
	if request.Params.Cursor != "" {
		var p relationPosition
		if err := h.Cursors.Resume(info.Tenant.ID, list, request.Params.Cursor, &p); err != nil {
			return nil, err
		}
		after = &tuplestore.Record{Fact: tuplestore.Fact{Tuple: tuplestore.Tuple{
			Object: tuplestore.Object{Type: cmp.Or(p.ResourceType, o.Type), ID: o.ID}, Relation: p.Relation,
			Subject: tuplestore.Subject{Type: p.SubjectType, ID: p.SubjectID, Relation: p.SubjectRelation},
		}}}
	}
	records, next, err := h.Engine.Relations(ctx, info.Tenant.ID, o, relation, after, limit)
	if err != nil {
		return nil, err
	}
	body := RelationList{Data: wireRecords(records), Meta: ListMeta{RequestID: info.RequestID, Limit: limit}}
	if next != nil {
		position := relationPosition{next.Object.Type, next.Relation, next.Subject.Type, next.Subject.ID, next.Subject.Relation}
		if body.Meta.NextCursor, err = h.next(info, list, position); err != nil {
			return nil, err
		}
	}
	return ListRelations200JSONResponse{Body: body}, nil
}

func wireRecords(records []tuplestore.Record) []RelationRecord {
	var out []RelationRecord
	for _, r := range records {
		item := RelationRecord{
			Subject: engine.SubjectDocumentOf(r.Subject), Relation: r.Relation, Resource: engine.RefTo(r.Object),
			CreatedAt: document.Timestamp(r.CreatedAt), CreatedBy: r.CreatedBy,
		}
		item.ExpiresAt, item.Condition = engine.QualifierDocument(r.Qualifier)
		out = append(out, item)
	}
	return out
}
