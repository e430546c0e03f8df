package resources

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"net/http"
	"net/url"
	"regexp"
	"slices"
	"strconv"
	"time"

	"github.com/go-json-experiment/json"

	"stonetown/api/web"
	"stonetown/engine"
	"stonetown/engine/assertions"
	"stonetown/internal/document"
	"stonetown/schema"
	"stonetown/schema/condition"
)

// Limits of a set of assertions.
const (
	maxSetRelations = 500
	maxAssertions   = 200
	maxReasons      = 50
	maxTestName     = 200 // bytes
)

var setName = regexp.MustCompile(`^[a-z0-9][a-z0-9_.-]{0,62}$`)

// Assertions is the part of [assertions.Store] that the operations use.
type Assertions interface {
	Put(ctx context.Context, tenant string, set assertions.Stored) (stored assertions.Stored, created bool, err error)
	Get(ctx context.Context, tenant, name string) (assertions.Stored, error)
	List(ctx context.Context, tenant string) ([]assertions.Stored, error)
	Delete(ctx context.Context, tenant, name string) error
}

// PutAssertionSet stores a set of assertions.
func (h *Handlers) PutAssertionSet(ctx context.Context, request PutAssertionSetRequestObject) (PutAssertionSetResponseObject, error) {
	info := web.InfoOf(ctx)
	if !setName.MatchString(request.Name) {
		return nil, web.ValidationFailed(web.FieldError{Field: "name", Code: "name_invalid", Message: fmt.Sprintf("must match %s", setName)})
	}
	set, err := setOf(request.Name, *request.Body)
	if err != nil {
		return nil, err
	}
	text, err := json.Marshal(request.Body, json.Deterministic(true))
	if err != nil {
		return nil, err
	}
	stored, created, err := h.Assertions.Put(ctx, info.Tenant.ID, assertions.Stored{Name: request.Name, Document: text, Assertions: len(set.Assertions)})
	if err != nil {
		return nil, err
	}
	body, err := setRead(info, stored)
	if err != nil {
		return nil, err
	}
	if !created {
		return PutAssertionSet200JSONResponse{Body: body}, nil
	}
	return PutAssertionSet201JSONResponse{Body: body, Headers: PutAssertionSet201ResponseHeaders{
		Location: "/api/v1/assertions/" + url.PathEscape(stored.Name),
	}}, nil
}

// GetAssertionSet reads a set of assertions.
func (h *Handlers) GetAssertionSet(ctx context.Context, request GetAssertionSetRequestObject) (GetAssertionSetResponseObject, error) {
	info := web.InfoOf(ctx)
	stored, err := h.Assertions.Get(ctx, info.Tenant.ID, request.Name)
	if err != nil {
		return nil, err
	}
	body, err := setRead(info, stored)
	if err != nil {
		return nil, err
	}
	return GetAssertionSet200JSONResponse{Body: body}, nil
}

// DeleteAssertionSet deletes a set of assertions.
func (h *Handlers) DeleteAssertionSet(ctx context.Context, request DeleteAssertionSetRequestObject) (DeleteAssertionSetResponseObject, error) {
	if err := h.Assertions.Delete(ctx, web.InfoOf(ctx).Tenant.ID, request.Name); err != nil {
		return nil, err
	}
	return DeleteAssertionSet204Response{}, nil
}

// ListAssertionSets lists the sets by name. A tenant has at most a hundred, so a page is a part of
// the whole list.
func (h *Handlers) ListAssertionSets(ctx context.Context, request ListAssertionSetsRequestObject) (ListAssertionSetsResponseObject, error) {
	info := web.InfoOf(ctx)
	limit, err := web.Limit(request.Params.Limit)
	if err != nil {
		return nil, err
	}
	list, after := []string{"listAssertionSets"}, ""
	if request.Params.Cursor != "" {
		if err := h.Cursors.Resume(info.Tenant.ID, list, request.Params.Cursor, &after); err != nil {
			return nil, err
		}
	}
	sets, err := h.Assertions.List(ctx, info.Tenant.ID)
	if err != nil {
		return nil, err
	}
	sets = slices.DeleteFunc(sets, func(s assertions.Stored) bool { return s.Name <= after })
	body := AssertionSetList{Meta: ListMeta{RequestID: info.RequestID, Limit: limit}}
	if len(sets) > limit {
		sets = sets[:limit]
		if body.Meta.NextCursor, err = h.next(info, list, sets[limit-1].Name); err != nil {
			return nil, err
		}
	}
	for _, s := range sets {
		body.Data = append(body.Data, AssertionSetSummary{
			Name: s.Name, Assertions: s.Assertions, CreatedAt: document.Timestamp(s.CreatedAt), UpdatedAt: document.Timestamp(s.UpdatedAt),
		})
	}
	return ListAssertionSets200JSONResponse{Body: body}, nil
}

func setRead(info *web.RequestInfo, stored assertions.Stored) (AssertionSetRead, error) {
	var in AssertionSetInput
	if err := json.Unmarshal(stored.Document, &in); err != nil {
		return AssertionSetRead{}, fmt.Errorf("stored assertions: %w", err)
	}
	return AssertionSetRead{Meta: Meta{RequestID: info.RequestID}, Data: AssertionSet{
		Name: stored.Name, Assertions: stored.Assertions, Relations: in.Relations, Tests: in.Tests,
		CreatedAt: document.Timestamp(stored.CreatedAt), UpdatedAt: document.Timestamp(stored.UpdatedAt),
	}}, nil
}

// judge returns the function that runs the stored assertions with the types before and after a
// change.
func (h *Handlers) judge(info *web.RequestInfo, use func(assertions.Report) error) func(context.Context, []schema.Type, []schema.Type) error {
	return func(ctx context.Context, before, after []schema.Type) error {
		report, err := assertions.Judge(ctx, h.storedSets(ctx, info.Tenant.ID), before, after, func(do func() error) error {
			return h.Engine.Heavy(ctx, info.Tenant.ID, do)
		})
		if err != nil {
			return err
		}
		return use(report)
	}
}

// storedSets yields the sets of a tenant. They can be large, so each is read when its turn comes.
func (h *Handlers) storedSets(ctx context.Context, tenant string) iter.Seq2[assertions.Set, error] {
	return func(yield func(assertions.Set, error) bool) {
		named, err := h.Assertions.List(ctx, tenant)
		if err != nil {
			yield(assertions.Set{}, err)
			return
		}
		for _, n := range named {
			stored, err := h.Assertions.Get(ctx, tenant, n.Name)
			if errors.Is(err, assertions.ErrNotFound) {
				continue // deleted meanwhile
			}
			var set assertions.Set
			if err == nil {
				set = readSet(stored)
			}
			if !yield(set, err) || err != nil {
				return
			}
		}
	}
}

// readSet reads a stored set. Another release can have stored one that this one does not read.
func readSet(stored assertions.Stored) assertions.Set {
	var in AssertionSetInput
	err := json.Unmarshal(stored.Document, &in)
	var set assertions.Set
	if err == nil {
		set, err = setOf(stored.Name, in)
	}
	if err != nil {
		return assertions.Set{Name: stored.Name, Unreadable: max(1, stored.Assertions)}
	}
	return set
}

// failedAssertions refuses a change with which assertions fail, and describes them to callers who may
// read them.
func failedAssertions(info *web.RequestInfo, report assertions.Report) error {
	if report.Failed == 0 {
		return nil
	}
	details := web.Details{"failed": report.Failed}
	if info.Principal.Scopes.Has(readScope) {
		details["report"] = reportOf(report)
	}
	return &web.Error{
		Status: http.StatusConflict, Code: "assertions_failed",
		Message: fmt.Sprintf("%d of %d stored assertions fail with the changed types", report.Failed, report.Assertions), Details: details,
	}
}

func reportOf(r assertions.Report) AssertionReport {
	out := AssertionReport{Sets: r.Sets, Assertions: r.Assertions, Failed: r.Failed, Unreadable: r.Unreadable}
	for _, f := range r.Failures {
		out.Failures = append(out.Failures, AssertionFailure{
			Set: f.Set, Index: f.Index, Test: f.Assertion.Name, Question: f.Assertion.Question(),
			Expected: f.Expected, Before: f.Before, After: f.After,
		})
	}
	return out
}

// setOf reads a set.
func setOf(name string, in AssertionSetInput) (assertions.Set, error) {
	set := assertions.Set{Name: name}
	if len(in.Relations) > maxSetRelations {
		return set, tooMany("relations", maxSetRelations)
	}
	if len(in.Tests) > maxAssertions {
		return set, tooMany("tests", maxAssertions)
	}
	var v validation
	set.Relations = v.facts("relations/", in.Relations)
	for i, t := range in.Tests {
		path := "tests/" + strconv.Itoa(i) + "/"
		if len(t.Relations) > engine.MaxContextual {
			return set, tooMany(path+"relations", engine.MaxContextual)
		}
		if n := len(set.Assertions) + len(t.Allow) + len(t.Deny) + len(t.Undecided) + len(t.Resources) + len(t.Subjects); n > maxAssertions {
			return set, tooMany(path+"allow, deny, undecided, resources and subjects, with those of earlier tests,", maxAssertions)
		}
		set.Assertions = append(set.Assertions, v.test(path, t)...)
	}
	if len(set.Assertions) == 0 {
		v.Add("tests", "required", "must have at least one assertion")
	}
	return set, v.Err()
}

// test reads the assertions of a test.
func (v *validation) test(path string, in AssertionTest) (all []assertions.Assertion) {
	common := assertions.Assertion{Name: in.Name, Contextual: v.facts(path+"relations/", in.Relations)}
	if in.Name != "" {
		v.Line(path, "name", in.Name, maxTestName)
	}
	if in.At != nil {
		at, err := time.Parse(time.RFC3339Nano, *in.At)
		if err != nil || at.UnixMicro() <= 0 {
			v.Add(path+"at", "timestamp_invalid", "must be an RFC 3339 time after 1970")
		}
		common.Instant = at
	}
	common.Context = v.Values(path+"context", in.Context, condition.MaxContext)
	check := func(path string, c AssertedCheck, want assertions.Answer, reasons []string) {
		a := common
		a.Check = &assertions.Check{
			Subject: v.subject(path, c.Subject), Action: c.Action, Want: want, Reasons: reasons,
			Resource: v.resource(path+"resource/", c.Resource.Type, c.Resource.ExternalID),
		}
		v.Text(path, "action", c.Action)
		if len(reasons) > maxReasons {
			v.Add(path+"reasons", "too_many", fmt.Sprintf("must have at most %d items", maxReasons))
		}
		v.texts(path+"reasons/", reasons)
		all = append(all, a)
	}
	for i, c := range in.Allow {
		check(path+"allow/"+strconv.Itoa(i)+"/", AssertedCheck{Subject: c.Subject, Action: c.Action, Resource: c.Resource}, assertions.Allowed, c.Reasons)
	}
	for i, c := range in.Deny {
		check(path+"deny/"+strconv.Itoa(i)+"/", c, assertions.Denied, nil)
	}
	for i, c := range in.Undecided {
		check(path+"undecided/"+strconv.Itoa(i)+"/", c, assertions.Undecided, nil)
	}
	for i, r := range in.Resources {
		path, a := path+"resources/"+strconv.Itoa(i)+"/", common
		a.Resources = &assertions.Resources{Subject: v.subject(path, r.Subject), Action: r.Action, Type: r.Type, Want: r.IDs}
		v.Text(path, "action", r.Action)
		v.Text(path, "type", r.Type)
		v.wanted(path, r.IDs)
		all = append(all, a)
	}
	for i, s := range in.Subjects {
		path, a := path+"subjects/"+strconv.Itoa(i)+"/", common
		a.Subjects = &assertions.Subjects{
			Resource: v.resource(path+"resource/", s.Resource.Type, s.Resource.ExternalID), Action: s.Action,
			Type: s.SubjectType, Relation: s.SubjectRelation, Want: s.IDs,
		}
		v.Text(path, "action", s.Action)
		v.Text(path, "subject_type", s.SubjectType)
		if s.SubjectRelation != "" {
			v.Text(path, "subject_relation", s.SubjectRelation)
		}
		v.wanted(path, s.IDs)
		all = append(all, a)
	}
	return all
}

// wanted requires the ids that an assertion expects.
func (v *validation) wanted(path string, ids []string) {
	switch {
	case ids == nil:
		v.Add(path+"ids", "required", "is required")
	case len(ids) > maxListIDs:
		v.Add(path+"ids", "too_many", fmt.Sprintf("must have at most %d items", maxListIDs))
	default:
		v.texts(path+"ids/", ids)
	}
}

func (v *validation) texts(path string, values []string) {
	for i, value := range values {
		v.Text(path, strconv.Itoa(i), value)
	}
}

// translateAssertions returns the response for an error of the store of assertions, nil for others.
func translateAssertions(err error) *web.Error {
	switch {
	case errors.Is(err, assertions.ErrNotFound):
		return &web.Error{Status: http.StatusNotFound, Code: "assertions_not_found", Message: assertions.ErrNotFound.Error()}
	case errors.Is(err, assertions.ErrTooMany):
		return &web.Error{
			Status: http.StatusConflict, Code: "assertion_set_limit_reached", Message: assertions.ErrTooMany.Error(),
			Details: web.Details{"limit": assertions.MaxSets},
		}
	}
	return nil
}

// RunAssertionSet runs a set with the types as they are.
func (h *Handlers) RunAssertionSet(ctx context.Context, request RunAssertionSetRequestObject) (RunAssertionSetResponseObject, error) {
	info := web.InfoOf(ctx)
	var set assertions.Set
	if given := request.Body.Set; given != nil {
		var err error
		if set, err = setOf(request.Name, *given); err != nil {
			return nil, err
		}
	} else {
		stored, err := h.Assertions.Get(ctx, info.Tenant.ID, request.Name)
		if err != nil {
			return nil, err
		}
		set = readSet(stored)
	}
	types, err := h.Engine.Types(ctx, info.Tenant.ID)
	if err != nil {
		return nil, err
	}
	one := func(yield func(assertions.Set, error) bool) { yield(set, nil) }
	report, err := assertions.Judge(ctx, one, types, types, func(do func() error) error {
		return h.Engine.Heavy(ctx, info.Tenant.ID, do)
	})
	if err != nil {
		return nil, err
	}
	return RunAssertionSet200JSONResponse{Body: AssertionRun{Data: reportOf(report), Meta: Meta{RequestID: info.RequestID}}}, nil
}
