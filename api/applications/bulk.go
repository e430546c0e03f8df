package applications

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"

	"stonetown/api/web"
	"stonetown/engine/authority"
	"stonetown/oauth/client"
)

// maxBulk bounds the applications of one request.
const maxBulk = 250

// each does something to applications, each for itself and once, and says what became of
// them. What is not about one of them ends it all.
func each(info *web.RequestInfo, ids []string, do func(applicationID string) error) (ApplicationsChanged, error) {
	body := ApplicationsChanged{Meta: meta(info)}
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

// DisableApplications disables applications.
func (h *Handlers) DisableApplications(ctx context.Context, request DisableApplicationsRequestObject) (DisableApplicationsResponseObject, error) {
	info := web.InfoOf(ctx)
	body, err := each(info, request.Body.Ids, func(applicationID string) error {
		_, err := h.setState(ctx, info, applicationID, client.Disabled)
		return err
	})
	return DisableApplications200JSONResponse{Body: body}, err
}

// EnableApplications enables applications.
func (h *Handlers) EnableApplications(ctx context.Context, request EnableApplicationsRequestObject) (EnableApplicationsResponseObject, error) {
	info := web.InfoOf(ctx)
	body, err := each(info, request.Body.Ids, func(applicationID string) error {
		_, err := h.setState(ctx, info, applicationID, client.Enabled)
		return err
	})
	return EnableApplications200JSONResponse{Body: body}, err
}

// DeleteApplications deletes applications.
func (h *Handlers) DeleteApplications(ctx context.Context, request DeleteApplicationsRequestObject) (DeleteApplicationsResponseObject, error) {
	info := web.InfoOf(ctx)
	defer h.Clients.Settle(ctx)
	body, err := each(info, request.Body.Ids, func(applicationID string) error { return h.delete(ctx, info, applicationID) })
	return DeleteApplications200JSONResponse{Body: body}, err
}
