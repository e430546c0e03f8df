package people

import (
	"context"
	"errors"
	"io"
	"net/http"
	"time"

	"stonetown/api/web"
	"stonetown/identity"
	"stonetown/identity/password"
	"stonetown/identity/userimport"
	"stonetown/internal/document"
)

// Importer is the part of [userimport.Importer] that the operations use.
type Importer interface {
	Receive(ctx context.Context, tenantID, commitID string, sendVerification bool, body io.Reader) (userimport.Job, error)
	Job(ctx context.Context, tenantID, jobID string) (userimport.Job, error)
	Jobs(ctx context.Context, tenantID string, after time.Time, id string, limit int) ([]userimport.Job, error)
	Cancel(ctx context.Context, tenantID, jobID string) (userimport.Job, error)
}

// ImportUsers receives the rows of an import.
func (h *Handlers) ImportUsers(ctx context.Context, request ImportUsersRequestObject) (ImportUsersResponseObject, error) {
	info := web.InfoOf(ctx)
	job, err := h.Importer.Receive(ctx, info.Tenant.ID, info.CommitID, request.Params.SendVerification, request.Body)
	if err != nil {
		return nil, err
	}
	return ImportUsers202JSONResponse{
		Body:    readImport(info, job),
		Headers: ImportUsers202ResponseHeaders{Location: "/api/v1/users/bulk-import/" + job.ID},
	}, nil
}

// ListImports returns a page of the imports.
func (h *Handlers) ListImports(ctx context.Context, request ListImportsRequestObject) (ListImportsResponseObject, error) {
	info, list := web.InfoOf(ctx), []string{"listImports"}
	limit, err := web.Limit(request.Params.Limit)
	if err != nil {
		return nil, err
	}
	var after time.Time
	var p position
	if request.Params.Cursor != "" {
		if err := h.Cursors.Resume(info.Tenant.ID, list, request.Params.Cursor, &p); err != nil {
			return nil, err
		}
		after = time.UnixMicro(p.At)
	}
	found, err := h.Importer.Jobs(ctx, info.Tenant.ID, after, p.ID, limit+1)
	if err != nil {
		return nil, err
	}
	body := ImportList{Data: []ImportListItem{}, Meta: ListMeta{RequestID: info.RequestID, Limit: limit}}
	for _, job := range found[:min(limit, len(found))] {
		body.Data = append(body.Data, ImportListItem{
			ID: job.ID, State: string(job.State), Total: job.Total, Imported: job.Imported, Failed: job.Failed,
			CreatedAt: document.Timestamp(job.CreatedAt), StartedAt: document.TimeOrNull(job.StartedAt), FinishedAt: document.TimeOrNull(job.FinishedAt),
		})
	}
	if len(found) > limit {
		last := found[limit-1]
		body.Meta.NextCursor, err = h.next(info, list, position{last.CreatedAt.UnixMicro(), last.ID})
	}
	return ListImports200JSONResponse{Body: body}, err
}

// GetImport returns the progress of an import.
func (h *Handlers) GetImport(ctx context.Context, request GetImportRequestObject) (GetImportResponseObject, error) {
	info := web.InfoOf(ctx)
	job, err := h.Importer.Job(ctx, info.Tenant.ID, request.JobID)
	if err != nil {
		return nil, err
	}
	return GetImport200JSONResponse{Body: readImport(info, job)}, nil
}

// CancelImport stops an import.
func (h *Handlers) CancelImport(ctx context.Context, request CancelImportRequestObject) (CancelImportResponseObject, error) {
	info := web.InfoOf(ctx)
	job, err := h.Importer.Cancel(ctx, info.Tenant.ID, request.JobID)
	if err != nil {
		return nil, err
	}
	return CancelImport200JSONResponse{Body: readImport(info, job)}, nil
}

func readImport(info *web.RequestInfo, job userimport.Job) ImportRead {
	data := Import{
		ID: job.ID, JobID: job.ID, State: string(job.State), Total: job.Total, Imported: job.Imported, Failed: job.Failed,
		Errors: []ImportError{}, ErrorsTruncated: job.Failed > len(job.Errors),
		CreatedAt: document.Timestamp(job.CreatedAt), StartedAt: document.TimeOrNull(job.StartedAt), FinishedAt: document.TimeOrNull(job.FinishedAt),
	}
	for _, e := range job.Errors {
		data.Errors = append(data.Errors, ImportError{Line: e.Line, Email: document.OrNull(e.Email), Code: e.Code, Message: e.Message})
	}
	return ImportRead{Data: data, Meta: Meta{RequestID: info.RequestID}}
}

// importForm is a row of an import.
type importForm struct {
	UserInput    `json:",inline"`
	PasswordHash *struct {
		Algorithm string `json:"algorithm"`
		Value     string `json:"value"`
	} `json:"password_hash"`
	Groups   []string `json:"groups"`
	Disabled bool     `json:"disabled"`
}

// ParseImport parses a row of an import, which has the form of a new user.
func ParseImport(line []byte) (row userimport.Row, failed *userimport.RowError) {
	var form importForm
	if err := web.Decode(line, &form); err != nil {
		return row, rowError(form.Email, err)
	}
	var v validation
	row.NewUser = identity.NewUser{Email: form.Email, EmailVerified: form.EmailVerified, Disabled: form.Disabled, PasswordMustBeReset: form.PasswordMustBeReset}
	row.Groups = form.Groups
	v.Text("", "email", form.Email)
	v.Profile(&row.Profile, form.Name, form.GivenName, form.FamilyName, form.Picture, form.Locale, form.Attributes)
	row.Password, _ = v.password(form.Password)
	if h := form.PasswordHash; h != nil {
		var err error
		if row.PasswordHash, err = password.ImportHash(h.Algorithm, h.Value); err != nil {
			v.Add("password_hash", "invalid", "is "+err.Error())
		}
		if row.Password != "" {
			v.Add("password_hash", "conflict", "cannot be combined with password")
		}
	}
	if err := v.Err(); err != nil {
		return row, rowError(form.Email, err)
	}
	return row, nil
}

// rowError returns the error of a row for an error of a request.
func rowError(email string, err error) *userimport.RowError {
	failed := &userimport.RowError{Email: email, Code: "invalid_json", Message: "the line is not a JSON object that describes a user"}
	var known *web.Error
	if errors.As(err, &known) {
		failed.Code, failed.Message = known.Code, known.Message
	}
	if len(email) > 254 {
		failed.Email = ""
	}
	return failed
}

// importErrors translates the errors of imports.
func importErrors(err error) *web.Error {
	switch {
	case errors.Is(err, userimport.ErrNotFound):
		return &web.Error{Status: http.StatusNotFound, Code: "job_not_found", Message: "job not found"}
	case errors.Is(err, userimport.ErrTooLong):
		return &web.Error{Status: http.StatusRequestEntityTooLarge, Code: "payload_too_large", Message: userimport.ErrTooLong.Error()}
	case errors.Is(err, userimport.ErrEmpty):
		return web.ValidationFailed(web.FieldError{Field: "body", Code: "required", Message: userimport.ErrEmpty.Error()})
	case errors.Is(err, userimport.ErrReceiving):
		return &web.Error{Status: http.StatusConflict, Code: "idempotency_in_progress", Message: "a request with this idempotency key is still being received", Header: http.Header{"Retry-After": {"1"}}}
	}
	return nil
}
