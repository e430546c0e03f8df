package applications

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"

	"stonetown/api/web"
	"stonetown/engine/authority"
	"stonetown/oauth"
)

// maxBulk is how many applications are changed at once.
const maxBulk = 250

// each does something to applications, each for itself and once, and says what became of
// them. What is not about one of them ends it all.
func each(call *web.Call, ids []string, do func(applicationID string) error) (ApplicationsChanged, error) {
	body := ApplicationsChanged{Meta: meta(call)}
	if len(ids) > maxBulk {
		return body, &web.Error{
			Status: http.StatusBadRequest, Code: "bulk_too_large", Message: fmt.Sprintf("ids must be at most %d", maxBulk), Details: web.Details{"max": maxBulk},
		}
	}
	if len(ids) == 0 {
		return body, web.ValidationFailed(web.FieldError{Field: "ids", Code: "required", Message: "ids is required"})
	}
	for i, applicationID := range ids {
		if slices.Contains(ids[:i], applicationID) {
			continue
		}
		body.Data = append(body.Data, struct {
			Error  *ApplicationFailure `json:"error"`
			ID     string              `json:"id"`
			Status string              `json:"status"`
		}{ID: applicationID, Status: "succeeded"})
		if err := do(applicationID); err != nil {
			known := translate(err)
			if denied, ok := errors.AsType[*authority.DeniedError](err); ok {
				known = web.Denied(denied)
			}
			if known == nil {
				return body, err
			}
			last := &body.Data[len(body.Data)-1]
			last.Status, last.Error = "error", &ApplicationFailure{Code: known.Code, Message: known.Message}
		}
	}
	return body, nil
}

// DisableApplications keeps applications from getting tokens.
func (s *Surface) DisableApplications(ctx context.Context, request DisableApplicationsRequestObject) (DisableApplicationsResponseObject, error) {
	call := web.CallOf(ctx)
	body, err := each(call, request.Body.Ids, func(applicationID string) error {
		_, err := s.setState(ctx, call, applicationID, oauth.Disabled)
		return err
	})
	return DisableApplications200JSONResponse{Body: body}, err
}

// EnableApplications lets disabled applications get tokens again.
func (s *Surface) EnableApplications(ctx context.Context, request EnableApplicationsRequestObject) (EnableApplicationsResponseObject, error) {
	call := web.CallOf(ctx)
	body, err := each(call, request.Body.Ids, func(applicationID string) error {
		_, err := s.setState(ctx, call, applicationID, oauth.Enabled)
		return err
	})
	return EnableApplications200JSONResponse{Body: body}, err
}

// DeleteApplications removes applications.
func (s *Surface) DeleteApplications(ctx context.Context, request DeleteApplicationsRequestObject) (DeleteApplicationsResponseObject, error) {
	call := web.CallOf(ctx)
	defer s.Service.Settle(ctx)
	body, err := each(call, request.Body.Ids, func(applicationID string) error { return s.delete(ctx, call, applicationID) })
	return DeleteApplications200JSONResponse{Body: body}, err
}
