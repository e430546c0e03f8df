package scim

import (
	"context"
	"encoding/json"
	"net/http"
	"slices"
	"strconv"
	"strings"
)

const (
	// MaxBulk is the maximum number of operations of a bulk request.
	MaxBulk = 1000
	// bulkUsers is the number of users that a transaction creates.
	bulkUsers = 250
)

// BulkOperation is an operation of a bulk request (RFC 7644 §3.7).
type BulkOperation struct {
	Method  string          `json:"method"`
	Path    string          `json:"path"`
	BulkID  string          `json:"bulkId"`
	Version string          `json:"version"`
	Data    json.RawMessage `json:"data"`
}

// BulkResult is the result of an operation.
type BulkResult struct {
	Method   string `json:"method"`
	BulkID   string `json:"bulkId,omitempty"`
	Version  string `json:"version,omitempty"`
	Location string `json:"location,omitempty"`
	Status   string `json:"status"`
	Response any    `json:"response,omitempty"` // of a failed operation

	failed bool
}

// bulk is a request in progress.
type bulk struct {
	service    *Service
	client     Client
	operations []BulkOperation
	references [][]string // the bulkIds that each operation names
	results    []*BulkResult
	ids        map[string]string // of created resources, by bulkId
	pending    map[string]bool   // bulkIds of operations to come
	internal   func(error)
}

// Bulk executes operations in an order in which the resources that they name by bulkId exist;
// otherwise in their own. After failOnErrors failures, if that is not 0, no further operation is
// executed. The results are in the order of the operations, without those that were not executed.
// Internal errors are given to internal, and the operation has status 500. Users that are created
// by consecutive operations are created in few transactions.
func (s *Service) Bulk(ctx context.Context, c Client, operations []BulkOperation, failOnErrors int, internal func(error)) ([]*BulkResult, error) {
	if len(operations) > MaxBulk {
		return nil, &Error{http.StatusRequestEntityTooLarge, "", "a bulk request has at most " + strconv.Itoa(MaxBulk) + " operations"}
	}
	b := &bulk{service: s, client: c, operations: operations, references: make([][]string, len(operations)), results: make([]*BulkResult, len(operations)), ids: map[string]string{}, pending: map[string]bool{}, internal: internal}
	for i := range operations {
		op := &operations[i]
		op.Method = strings.ToUpper(op.Method)
		b.references[i] = references(*op)
		if op.Method == http.MethodPost && op.BulkID == "" {
			return nil, refuse(InvalidSyntax, "bulkId is required for POST")
		}
		if op.BulkID != "" && op.Method == http.MethodPost {
			if b.pending[op.BulkID] {
				return nil, refuse(InvalidSyntax, "bulkId %q is given more than once", op.BulkID)
			}
			b.pending[op.BulkID] = true
		}
	}
	b.run(ctx, failOnErrors)
	var done []*BulkResult
	for _, r := range b.results {
		if r != nil {
			done = append(done, r)
		}
	}
	return done, nil
}

// run executes the operations whose references are known, until there are none.
func (b *bulk) run(ctx context.Context, failOnErrors int) {
	failures := 0
	for progress := true; progress; {
		progress = false
		for i := 0; i < len(b.operations); i++ {
			if b.results[i] != nil || b.waits(i) {
				continue
			}
			n := 1
			if failOnErrors == 0 {
				for i+n < len(b.operations) && n < bulkUsers && b.createsUser(i) && b.createsUser(i+n) {
					n++
				}
			}
			if n > 1 {
				b.createUsers(ctx, i, n)
			} else {
				b.one(ctx, i)
			}
			progress = true
			for _, r := range b.results[i : i+n] {
				if r.failed {
					failures++
				}
			}
			if failOnErrors > 0 && failures >= failOnErrors {
				return
			}
			i += n - 1
		}
	}
	for i, op := range b.operations { // the references form a cycle
		if b.results[i] == nil {
			b.fail(i, op, &Error{http.StatusConflict, "", "a bulkId in the operation could not be resolved"})
		}
	}
}

// references returns the bulkIds that an operation names.
func references(op BulkOperation) (ids []string) {
	if !strings.Contains(op.Path, "bulkId:") && !strings.Contains(string(op.Data), "bulkId:") {
		return nil
	}
	if _, id, ok := strings.Cut(op.Path, "/bulkId:"); ok {
		ids = append(ids, id)
	}
	var data any
	if json.Unmarshal(op.Data, &data) == nil {
		replaced(data, func(id string) string { ids = append(ids, id); return "" })
	}
	return ids
}

// replaced returns a value in which references have become ids.
func replaced(value any, id func(string) string) any {
	switch v := value.(type) {
	case string:
		if ref, ok := strings.CutPrefix(v, "bulkId:"); ok {
			return id(ref)
		}
	case []any:
		for i, item := range v {
			v[i] = replaced(item, id)
		}
	case Object:
		for name, item := range v {
			v[name] = replaced(item, id)
		}
	}
	return value
}

// waits reports whether an operation names a resource that another one has still to create.
func (b *bulk) waits(i int) bool {
	return slices.ContainsFunc(b.references[i], func(id string) bool { return b.pending[id] })
}

func (b *bulk) createsUser(i int) bool {
	op := b.operations[i]
	return b.results[i] == nil && op.Method == http.MethodPost && op.Path == Users.Endpoint && len(b.references[i]) == 0
}

func (b *bulk) createUsers(ctx context.Context, from, n int) {
	bodies := make([]Object, n)
	failed := make([]error, n)
	for k := range n {
		bodies[k], failed[k] = b.body(b.operations[from+k])
	}
	created, errs, err := b.service.createUsers(ctx, b.client, bodies)
	for k := range n {
		op := b.operations[from+k]
		switch {
		case err != nil:
			b.fail(from+k, op, err)
		case failed[k] != nil:
			b.fail(from+k, op, failed[k])
		case errs[k] != nil:
			b.fail(from+k, op, errs[k])
		default:
			b.succeed(from+k, op, created[k], http.StatusCreated)
		}
	}
}

// body returns the data of an operation with ids in place of references.
func (b *bulk) body(op BulkOperation) (Object, error) {
	var data any
	if err := json.Unmarshal(op.Data, &data); err != nil {
		return nil, refuse(InvalidSyntax, "data must be a JSON object")
	}
	var unknown string
	data = replaced(data, func(ref string) string {
		id, ok := b.ids[ref]
		if !ok {
			unknown = ref
		}
		return id
	})
	if unknown != "" {
		return nil, &Error{http.StatusConflict, InvalidValue, "no operation has created the resource with bulkId " + strconv.Quote(unknown)}
	}
	o, ok := data.(Object)
	if !ok {
		return nil, refuse(InvalidSyntax, "data must be a JSON object")
	}
	return o, nil
}

// one executes one operation.
func (b *bulk) one(ctx context.Context, i int) {
	op := b.operations[i]
	r, status, err := b.execute(ctx, op)
	if err != nil {
		b.fail(i, op, err)
		return
	}
	b.succeed(i, op, r, status)
}

func (b *bulk) execute(ctx context.Context, op BulkOperation) (r Resource, status int, err error) {
	endpoint, id, _ := strings.Cut(strings.TrimPrefix(op.Path, "/"), "/")
	if ref, ok := strings.CutPrefix(id, "bulkId:"); ok {
		if id = b.ids[ref]; id == "" {
			return r, 0, &Error{http.StatusConflict, InvalidValue, "no operation has created the resource with bulkId " + strconv.Quote(ref)}
		}
	}
	var t *Type
	for _, known := range Types {
		if "/"+endpoint == known.Endpoint {
			t = known
		}
	}
	if t == nil || (id == "") != (op.Method == http.MethodPost) || strings.Contains(id, "/") {
		return r, 0, refuse(InvalidPath, "the path is not /Users or /Groups or, for methods other than POST, one of their resources")
	}
	match := Match(op.Version)
	s, c := b.service, b.client
	if op.Method == http.MethodDelete {
		if t == Users {
			err = s.DeleteUser(ctx, c, id, match)
		} else {
			err = s.DeleteGroup(ctx, c, id, match)
		}
		return Resource{Location: c.Base + t.Endpoint + "/" + id}, http.StatusNoContent, err
	}
	body, err := b.body(op)
	if err != nil {
		return r, 0, err
	}
	switch op.Method {
	case http.MethodPost:
		if t == Users {
			r, err = s.CreateUser(ctx, c, body)
		} else {
			r, err = s.CreateGroup(ctx, c, body)
		}
		return r, http.StatusCreated, err
	case http.MethodPut:
		if t == Users {
			r, err = s.ReplaceUser(ctx, c, id, body, match)
		} else {
			r, err = s.ReplaceGroup(ctx, c, id, body, match)
		}
		return r, http.StatusOK, err
	case http.MethodPatch:
		operations, err := Operations(body)
		if err != nil {
			return r, 0, err
		}
		if t == Users {
			r, err = s.PatchUser(ctx, c, id, operations, match)
		} else {
			r, err = s.PatchGroup(ctx, c, id, operations, match)
		}
		return r, http.StatusOK, err
	}
	return r, 0, refuse(InvalidSyntax, "method must be POST, PUT, PATCH or DELETE")
}

// Operations reads the body of a PATCH.
func Operations(body Object) ([]Operation, error) {
	for name, value := range body {
		if !strings.EqualFold(name, "Operations") {
			continue
		}
		encoded, err := json.Marshal(value)
		if err != nil {
			return nil, err
		}
		var operations []Operation
		if json.Unmarshal(encoded, &operations) != nil {
			return nil, refuse(InvalidSyntax, "Operations must be an array of objects with op, path and value")
		}
		return operations, nil
	}
	return nil, refuse(InvalidSyntax, "Operations is required")
}

func (b *bulk) succeed(i int, op BulkOperation, r Resource, status int) {
	b.results[i] = &BulkResult{Method: op.Method, BulkID: op.BulkID, Version: r.Version, Location: r.Location, Status: strconv.Itoa(status)}
	if op.Method == http.MethodPost {
		b.ids[op.BulkID] = r.ID
		delete(b.pending, op.BulkID)
	}
}

func (b *bulk) fail(i int, op BulkOperation, err error) {
	e := Translate(err)
	if e == nil {
		b.internal(err)
		e = &Error{http.StatusInternalServerError, "", "internal error"}
	}
	b.results[i] = &BulkResult{Method: op.Method, BulkID: op.BulkID, Status: strconv.Itoa(e.Status), Response: e.Document(), failed: true}
	if op.Method == http.MethodPost {
		delete(b.pending, op.BulkID)
	}
}
