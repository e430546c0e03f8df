// Package reports has the operations on the saved reports of a tenant, and on the results of their runs.
package reports

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
	"github.com/gorilla/mux"

	"stonetown/api/web"
	"stonetown/reporting"
)

// Registry is the part of [reporting.Registry] that the operations use.
type Registry interface {
	List(ctx context.Context, tenantID, before string, limit int) ([]reporting.Report, error)
	Get(ctx context.Context, tenantID, reportID string) (reporting.Report, error)
	Create(ctx context.Context, tenantID string, kind reporting.Kind, s reporting.Settings) (reporting.Report, error)
	Update(ctx context.Context, tenantID, reportID string, change func(reporting.Kind, *reporting.Settings) error) (reporting.Report, error)
	Delete(ctx context.Context, tenantID, reportID string) error
	Start(ctx context.Context, tenantID, reportID string) (reporting.Run, error)
	Runs(ctx context.Context, tenantID, reportID, before string, limit int) ([]reporting.Run, error)
	GetRun(ctx context.Context, tenantID, reportID, runID string) (reporting.Run, []reporting.Mail, error)
	Rows(ctx context.Context, run reporting.Run, from, limit int) ([][]any, error)
}

// Handlers implements the operations. It is safe for concurrent use.
type Handlers struct {
	Registry Registry
	Cursors  *web.Cursors
}

var _ StrictServerInterface = (*Handlers)(nil)

// Mount adds the operations to a router. fail answers requests that end in an error.
func (h *Handlers) Mount(router *mux.Router, fail func(w http.ResponseWriter, r *http.Request, err error)) {
	HandlerWithOptions(NewStrictHandler(h, fail), GorillaServerOptions{BaseRouter: router, ErrorHandlerFunc: web.Parameters(fail)})
}

// Errors is the error format of the operations.
var Errors = web.ErrorFormat{Translate: translate}

func translate(err error) *web.Error {
	for _, known := range []struct {
		err    error
		status int
		code   string
	}{
		{reporting.ErrNotFound, http.StatusNotFound, "report_not_found"},
		{reporting.ErrRunNotFound, http.StatusNotFound, "report_run_not_found"},
		{reporting.ErrTooMany, http.StatusConflict, "report_limit_reached"},
		{reporting.ErrUnderway, http.StatusConflict, "report_run_underway"},
		{reporting.ErrUnfinished, http.StatusConflict, "report_run_unfinished"},
	} {
		if errors.Is(err, known.err) {
			return &web.Error{Status: known.status, Code: known.code, Message: known.err.Error()}
		}
	}
	if e, ok := errors.AsType[*reporting.UnknownRecipientError](err); ok {
		field := fmt.Sprintf("schedule/recipients/%d", e.Index)
		return web.ValidationFailed(web.FieldError{Field: field, Code: "not_found", Message: field + " must be the id of a user"})
	}
	return nil
}

// allow refuses a caller who may not read the rows of a report. Every operation that saves, runs or
// shows results of one calls it.
func allow(info *web.RequestInfo, kind reporting.Kind, p reporting.Parameters) error {
	for _, scope := range reporting.Scopes(kind, p.WithDefaults(kind)) {
		if !info.Principal.Scopes.Has(scope) {
			return web.InsufficientScope(info, scope)
		}
	}
	return nil
}

// ListReports lists reports.
func (h *Handlers) ListReports(ctx context.Context, request ListReportsRequestObject) (ListReportsResponseObject, error) {
	info, p := web.InfoOf(ctx), request.Params
	limit, err := web.Limit(p.Limit)
	if err != nil {
		return nil, err
	}
	list, before := []string{"listReports"}, ""
	if p.Cursor != "" {
		if err := h.Cursors.Resume(info.Tenant.ID, list, p.Cursor, &before); err != nil {
			return nil, err
		}
	}
	found, err := h.Registry.List(ctx, info.Tenant.ID, before, limit+1)
	if err != nil {
		return nil, err
	}
	body := ReportList{Data: []Report{}, Meta: ListMeta{RequestID: info.RequestID, Limit: limit}}
	for _, r := range found[:min(limit, len(found))] {
		body.Data = append(body.Data, r.Document())
	}
	if len(found) > limit {
		body.Meta.NextCursor, err = h.next(info, list, found[limit-1].ID)
	}
	return ListReports200JSONResponse{Body: body}, err
}

// next returns the cursor of the page after a position of a list.
func (h *Handlers) next(info *web.RequestInfo, list []string, last any) (*string, error) {
	cursor, err := h.Cursors.Next(info.Tenant.ID, list, last)
	return &cursor, err
}

// CreateReport saves a report.
func (h *Handlers) CreateReport(ctx context.Context, request CreateReportRequestObject) (CreateReportResponseObject, error) {
	info, form := web.InfoOf(ctx), request.Body
	kind := reporting.Kind(form.Kind)
	s := reporting.Settings{Name: form.Name, Parameters: form.Parameters}
	var v web.Validation
	s.Schedule = scheduleOf(&v, form.Schedule)
	if kind == "" {
		v.Add("kind", "required", "is required")
	}
	web.OneOf(&v, "kind", kind, reporting.Kinds...)
	if err := validate(&v, kind, s); err != nil {
		return nil, err
	}
	if err := allow(info, kind, s.Parameters); err != nil {
		return nil, err
	}
	r, err := h.Registry.Create(ctx, info.Tenant.ID, kind, s)
	return CreateReport201JSONResponse{
		Body: read(info, r), Headers: CreateReport201ResponseHeaders{Location: "/api/v1/reports/" + r.ID},
	}, err
}

// GetReport reads a report.
func (h *Handlers) GetReport(ctx context.Context, request GetReportRequestObject) (GetReportResponseObject, error) {
	info := web.InfoOf(ctx)
	r, err := h.Registry.Get(ctx, info.Tenant.ID, request.ReportID)
	return GetReport200JSONResponse{Body: read(info, r)}, err
}

// PatchReport changes a report.
func (h *Handlers) PatchReport(ctx context.Context, request PatchReportRequestObject) (PatchReportResponseObject, error) {
	info, members := web.InfoOf(ctx), *request.Body
	var immutable []web.Member
	for _, name := range []string{"id", "kind", "created_at"} {
		immutable = append(immutable, web.Member{Name: name, Value: members[name]})
	}
	if err := web.RefuseImmutable(immutable...); err != nil {
		return nil, err
	}
	var (
		v        web.Validation
		name     *string
		params   *reporting.Parameters
		schedule *reporting.Schedule
	)
	name = web.ReadMember[string](&v, members, "name", "must be a string", false)
	params = web.ReadMember[reporting.Parameters](&v, members, "parameters", "must be an object of parameters", false)
	if members["schedule"] != nil {
		schedule = scheduleOf(&v, members["schedule"])
	}
	if err := v.Err(); err != nil {
		return nil, err
	}
	r, err := h.Registry.Update(ctx, info.Tenant.ID, request.ReportID, func(kind reporting.Kind, s *reporting.Settings) error {
		before := s.Parameters
		if name != nil {
			s.Name = *name
		}
		if params != nil {
			s.Parameters = *params
		}
		if members["schedule"] != nil {
			s.Schedule = schedule
		}
		var v web.Validation
		if err := validate(&v, kind, *s); err != nil {
			return err
		}
		if err := allow(info, kind, before); err != nil {
			return err
		}
		return allow(info, kind, s.Parameters)
	})
	return PatchReport200JSONResponse{Body: read(info, r)}, err
}

// DeleteReport deletes a report.
func (h *Handlers) DeleteReport(ctx context.Context, request DeleteReportRequestObject) (DeleteReportResponseObject, error) {
	err := h.Registry.Delete(ctx, web.InfoOf(ctx).Tenant.ID, request.ReportID)
	return DeleteReport204Response{}, err
}

// allowed reads a report, and refuses a caller who may not read its rows.
func (h *Handlers) allowed(ctx context.Context, reportID string) (reporting.Report, error) {
	info := web.InfoOf(ctx)
	r, err := h.Registry.Get(ctx, info.Tenant.ID, reportID)
	if err == nil {
		err = allow(info, r.Kind, r.Parameters)
	}
	return r, err
}

// RunReport starts a run.
func (h *Handlers) RunReport(ctx context.Context, request RunReportRequestObject) (RunReportResponseObject, error) {
	info := web.InfoOf(ctx)
	if _, err := h.allowed(ctx, request.ReportID); err != nil {
		return nil, err
	}
	run, err := h.Registry.Start(ctx, info.Tenant.ID, request.ReportID)
	return RunReport202JSONResponse{
		Body:    ReportRunRead{Data: run.Document(nil), Meta: Meta{RequestID: info.RequestID}},
		Headers: RunReport202ResponseHeaders{Location: "/api/v1/reports/" + run.ReportID + "/runs/" + run.ID},
	}, err
}

// ListReportRuns lists the runs of a report. Runs that had other parameters, for which the caller lacks
// a scope, are left out.
func (h *Handlers) ListReportRuns(ctx context.Context, request ListReportRunsRequestObject) (ListReportRunsResponseObject, error) {
	info, p := web.InfoOf(ctx), request.Params
	limit, err := web.Limit(p.Limit)
	if err != nil {
		return nil, err
	}
	if _, err := h.allowed(ctx, request.ReportID); err != nil {
		return nil, err
	}
	list, before := []string{"listReportRuns", request.ReportID}, ""
	if p.Cursor != "" {
		if err := h.Cursors.Resume(info.Tenant.ID, list, p.Cursor, &before); err != nil {
			return nil, err
		}
	}
	found, err := h.Registry.Runs(ctx, info.Tenant.ID, request.ReportID, before, limit+1)
	if err != nil {
		return nil, err
	}
	body := ReportRunList{Data: []ReportRun{}, Meta: ListMeta{RequestID: info.RequestID, Limit: limit}}
	for _, run := range found[:min(limit, len(found))] {
		if allow(info, run.Kind, run.Parameters) == nil {
			body.Data = append(body.Data, run.Document(nil))
		}
	}
	if len(found) > limit {
		body.Meta.NextCursor, err = h.next(info, list, found[limit-1].ID)
	}
	return ListReportRuns200JSONResponse{Body: body}, err
}

// run reads a run, and refuses a caller who may not read its rows.
func (h *Handlers) run(ctx context.Context, reportID, runID string) (reporting.Run, []reporting.Mail, error) {
	info := web.InfoOf(ctx)
	run, mails, err := h.Registry.GetRun(ctx, info.Tenant.ID, reportID, runID)
	if err == nil {
		err = allow(info, run.Kind, run.Parameters)
	}
	return run, mails, err
}

// GetReportRun reads a run.
func (h *Handlers) GetReportRun(ctx context.Context, request GetReportRunRequestObject) (GetReportRunResponseObject, error) {
	run, mails, err := h.run(ctx, request.ReportID, request.RunID)
	return GetReportRun200JSONResponse{Body: ReportRunRead{Data: run.Document(mails), Meta: Meta{RequestID: web.InfoOf(ctx).RequestID}}}, err
}

func read(info *web.RequestInfo, r reporting.Report) ReportRead {
	return ReportRead{Data: r.Document(), Meta: Meta{RequestID: info.RequestID}}
}

// maxName is the maximum length of a name, in bytes.
const maxName = 200

// scheduleOf reads a schedule; nil: none.
func scheduleOf(v *web.Validation, value jsontext.Value) *reporting.Schedule {
	if value == nil || value.Kind() == 'n' {
		return nil
	}
	var form struct {
		Interval   reporting.Interval `json:"interval"`
		Hour       *int               `json:"hour"`
		Recipients []string           `json:"recipients"`
	}
	if json.Unmarshal(value, &form) != nil {
		v.Add("schedule", "type_invalid", "must be a schedule with interval, hour and recipients, or null")
		return nil
	}
	s := &reporting.Schedule{Interval: form.Interval, Recipients: append([]string{}, form.Recipients...)}
	switch {
	case form.Interval == "":
		v.Add("schedule/interval", "required", "is required")
	default:
		web.OneOf(v, "schedule/interval", form.Interval, reporting.Daily, reporting.Weekly, reporting.Monthly)
	}
	switch {
	case form.Hour == nil:
		v.Add("schedule/hour", "required", "is required")
	case *form.Hour < 0 || *form.Hour > 23:
		v.Add("schedule/hour", "out_of_range", "must be 0 to 23")
	default:
		s.Hour = *form.Hour
	}
	if len(s.Recipients) > reporting.MaxRecipients {
		v.Add("schedule/recipients", "too_many", fmt.Sprintf("must have at most %d ids", reporting.MaxRecipients))
		return s
	}
	distinct(v, "schedule/recipients", s.Recipients)
	return s
}

// distinct requires ids, each of them once.
func distinct(v *web.Validation, field string, ids []string) {
	for n, id := range ids {
		at := fmt.Sprintf("%s/%d", field, n)
		if v.Text("", at, id) && slices.Contains(ids[:n], id) {
			v.Add(at, "repeated", "is given more than once")
		}
	}
}

// validate refuses settings that are not valid for a kind.
func validate(v *web.Validation, kind reporting.Kind, s reporting.Settings) error {
	v.Line("", "name", s.Name, maxName)
	p := s.Parameters
	review := kind == reporting.AccessReview
	for _, one := range []struct {
		name  string
		given bool
		kinds []reporting.Kind
	}{
		{"days", p.Days != 0, []reporting.Kind{reporting.SignInsByMethod, reporting.UnusedApplications}},
		{"include_covered", p.IncludeCovered, []reporting.Kind{reporting.MFACoverage}},
		{"resource_type", p.ResourceType != "", []reporting.Kind{reporting.AccessReview}},
		{"action", p.Action != "", []reporting.Kind{reporting.AccessReview}},
		{"resource_ids", len(p.ResourceIDs) > 0, []reporting.Kind{reporting.AccessReview}},
		{"subject_type", p.SubjectType != "", []reporting.Kind{reporting.AccessReview}},
	} {
		if one.given && kind != "" && !slices.Contains(one.kinds, kind) {
			v.Add("parameters/"+one.name, "not_applicable", fmt.Sprintf("does not apply to reports of the kind %s", kind))
		}
	}
	most := map[reporting.Kind]int{reporting.SignInsByMethod: reporting.MaxDays, reporting.UnusedApplications: reporting.MaxUnusedDays}[kind]
	if most > 0 && (p.Days < 0 || p.Days > most) {
		v.Add("parameters/days", "out_of_range", fmt.Sprintf("must be 1 to %d", most))
	}
	if review {
		v.Text("parameters/", "resource_type", p.ResourceType)
		v.Text("parameters/", "action", p.Action)
		if p.SubjectType != "" {
			v.Text("parameters/", "subject_type", p.SubjectType)
		}
		if len(p.ResourceIDs) > reporting.MaxResources {
			v.Add("parameters/resource_ids", "too_many", fmt.Sprintf("must have at most %d ids", reporting.MaxResources))
		} else {
			distinct(v, "parameters/resource_ids", p.ResourceIDs)
		}
	}
	return v.Err()
}
