package people

import (
	"context"
	"errors"
	"io"
	"net/http"

	"github.com/go-json-experiment/json"

	"stonetown/api/profile"
	"stonetown/api/web"
	"stonetown/identity"
	"stonetown/internal/document"
	"stonetown/internal/eventlog"
	"stonetown/internal/sqldb"
)

// Importer is what the surface needs of [identity.Importer].
type Importer interface {
	Receive(ctx context.Context, tenantID, commitID string, origin []byte, body io.Reader) (identity.Import, error)
	Import(ctx context.Context, tenantID, importID string) (identity.Import, error)
	Cancel(ctx context.Context, tenantID, importID string) (identity.Import, error)
}

// ImportUsers takes the rows of an import.
func (s *Surface) ImportUsers(ctx context.Context, request ImportUsersRequestObject) (ImportUsersResponseObject, error) {
	call := web.CallOf(ctx)
	origin, err := json.Marshal(importOrigin{call.Origin(), request.Params.SendVerification})
	if err != nil {
		return nil, err
	}
	job, err := s.Importer.Receive(ctx, call.Tenant.ID, call.CommitID, origin, request.Body)
	if err != nil {
		return nil, err
	}
	return ImportUsers202JSONResponse{
		Body:    readImport(call, job),
		Headers: ImportUsers202ResponseHeaders{Location: "/api/v1/users/bulk-import/" + job.ID},
	}, nil
}

// GetImport reads how far an import has come.
func (s *Surface) GetImport(ctx context.Context, request GetImportRequestObject) (GetImportResponseObject, error) {
	call := web.CallOf(ctx)
	job, err := s.Importer.Import(ctx, call.Tenant.ID, request.JobID)
	if err != nil {
		return nil, err
	}
	return GetImport200JSONResponse{Body: readImport(call, job)}, nil
}

// CancelImport stops an import.
func (s *Surface) CancelImport(ctx context.Context, request CancelImportRequestObject) (CancelImportResponseObject, error) {
	call := web.CallOf(ctx)
	job, err := s.Importer.Cancel(ctx, call.Tenant.ID, request.JobID)
	if err != nil {
		return nil, err
	}
	return CancelImport200JSONResponse{Body: readImport(call, job)}, nil
}

func readImport(call *web.Call, job identity.Import) ImportRead {
	data := Import{
		ID: job.ID, JobID: job.ID, State: string(job.State), Total: job.Total, Imported: job.Imported, Failed: job.Failed,
		Errors: []ImportError{}, ErrorsTruncated: job.Failed > len(job.Errors),
		CreatedAt: document.Timestamp(job.CreatedAt), StartedAt: profile.TimeOrNull(job.StartedAt), FinishedAt: profile.TimeOrNull(job.FinishedAt),
	}
	for _, e := range job.Errors {
		data.Errors = append(data.Errors, ImportError{Line: e.Line, Email: profile.OrNull(e.Email), Code: e.Code, Message: e.Message})
	}
	return ImportRead{Data: data, Meta: Meta{RequestID: call.RequestID}}
}

// importForm is a row of an import.
type importForm struct {
	UserInput    `json:",inline"`
	PasswordHash *struct {
		Algorithm string `json:"algorithm"`
		Value     string `json:"value"`
	} `json:"password_hash"`
	Groups []string `json:"groups"`
}

// ParseImport reads a row of an import.
func ParseImport(line []byte) (row identity.ImportRow, failed *identity.RowError) {
	var form importForm
	if err := web.Decode(line, &form); err != nil {
		return row, rowError(form.Email, err)
	}
	var v validation
	row.NewUser = identity.NewUser{Email: form.Email, EmailVerified: form.EmailVerified, PasswordMustBeReset: form.PasswordMustBeReset}
	row.Groups = form.Groups
	v.Text("", "email", form.Email)
	v.Profile(&row.Profile, form.Name, form.GivenName, form.FamilyName, form.Picture, form.Locale, form.Attributes)
	row.Password, _ = v.password(form.Password)
	if h := form.PasswordHash; h != nil {
		var err error
		if row.PasswordHash, err = identity.ForeignHash(h.Algorithm, h.Value); err != nil {
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

// rowError is an error of a request as that of a row.
func rowError(email string, err error) *identity.RowError {
	failed := &identity.RowError{Email: email, Code: "invalid_json", Message: "the line is not a JSON object that describes a user"}
	var known *web.Error
	if errors.As(err, &known) {
		failed.Code, failed.Message = known.Code, known.Message
	}
	if len(email) > 254 {
		failed.Email = ""
	}
	return failed
}

// importEvent is the data of the event about the end of an import.
type importEvent struct {
	Import struct {
		ID       string `json:"id"`
		Total    int    `json:"total"`
		Imported int    `json:"imported"`
		Failed   int    `json:"failed"`
	} `json:"import"`
}

// importOrigin is what a job remembers of the request that asked for it.
type importOrigin struct {
	eventlog.Origin  `json:",inline"`
	SendVerification bool `json:"send_verification,omitzero"`
}

// ImportEvents lets what follows from an import commit with it: its events and, if that
// was asked for, letters to those whose address is not verified.
func ImportEvents(verify func(*sqldb.Batch, identity.User)) identity.ImportEvents {
	return func(job identity.Import, created []identity.User, joined []identity.Join, b *sqldb.Batch) {
		importEvents(job, created, joined, verify, b)
	}
}

func importEvents(job identity.Import, created []identity.User, joined []identity.Join, verify func(*sqldb.Batch, identity.User), b *sqldb.Batch) {
	var from importOrigin
	if err := json.Unmarshal(job.Origin, &from); err != nil {
		panic("people: origin of an import: " + err.Error()) // which ImportUsers wrote
	}
	origin := from.Origin
	for _, u := range created {
		if from.SendVerification && !u.EmailVerified {
			verify(b, u)
		}
	}
	var events []eventlog.Event
	for _, u := range created {
		events = append(events, eventlog.New(eventlog.UserCreated, origin, userEvent{User: wire(u), Source: "bulk_import"}))
	}
	for _, j := range joined {
		for _, userID := range j.UserIDs {
			events = append(events, eventlog.New(eventlog.GroupMemberAdded, origin, memberEvent(j.Group, userID)))
		}
	}
	if !job.FinishedAt.IsZero() {
		var end importEvent
		end.Import.ID, end.Import.Total, end.Import.Imported, end.Import.Failed = job.ID, job.Total, job.Imported, job.Failed
		events = append(events, eventlog.New(eventlog.UserImportCompleted, origin, end))
	}
	eventlog.Append(b, job.TenantID, events...)
}

// importErrors translates what only imports fail with.
func importErrors(err error) *web.Error {
	switch {
	case errors.Is(err, identity.ErrImportNotFound):
		return &web.Error{Status: http.StatusNotFound, Code: "job_not_found", Message: "job not found"}
	case errors.Is(err, identity.ErrImportTooLong):
		return &web.Error{Status: http.StatusRequestEntityTooLarge, Code: "payload_too_large", Message: identity.ErrImportTooLong.Error()}
	case errors.Is(err, identity.ErrImportEmpty):
		return web.ValidationFailed(web.FieldError{Field: "body", Code: "required", Message: identity.ErrImportEmpty.Error()})
	case errors.Is(err, identity.ErrImportUnderWay):
		return &web.Error{Status: http.StatusConflict, Code: "idempotency_in_progress", Message: "a request with this idempotency key is still being received", Header: http.Header{"Retry-After": {"1"}}}
	}
	return nil
}
