// Package flows has the operations on the sign-in flow of a tenant.
package flows

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/netip"
	"slices"
	"strconv"
	"time"

	"github.com/gorilla/mux"

	"stonetown/api/web"
	"stonetown/engine/authority"
	"stonetown/identity"
	"stonetown/identity/flow"
	"stonetown/internal/document"
)

// Registry is the part of [flow.Registry] that the operations use.
type Registry interface {
	Active(ctx context.Context, tenantID string) (flow.Version, error)
	Draft(ctx context.Context, tenantID string) (flow.Draft, error)
	SaveDraft(ctx context.Context, tenantID string, d flow.Document, expected *string) (flow.Draft, error)
	DeleteDraft(ctx context.Context, tenantID string) error
	Publish(ctx context.Context, tenantID, note string, expected *string) (flow.Version, error)
	RollBack(ctx context.Context, tenantID string, number int, note string) (flow.Version, error)
	Versions(ctx context.Context, tenantID string, before, limit int) ([]flow.Version, error)
	Version(ctx context.Context, tenantID string, number int) (flow.Version, error)
	RotateSecret(ctx context.Context, tenantID, action string, previousTTL time.Duration) (secret string, previousExpires time.Time, err error)
	Preview(ctx context.Context, tenantID string, d flow.Document, p flow.Point, in flow.Input, calls bool) (flow.Outcome, error)
}

// Accounts describes the sign-in of a user for a preview; [authn.Service] implements it.
type Accounts interface {
	PreviewOf(ctx context.Context, tenantID, userID string) (u identity.User, hasFactors bool, err error)
}

// Handlers implements the operations. It is safe for concurrent use.
type Handlers struct {
	Registry Registry
	Accounts Accounts
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
	if invalid, ok := errors.AsType[*flow.ValidationError](err); ok {
		fields := make([]web.FieldError, len(invalid.Faults))
		for i, f := range invalid.Faults {
			fields[i] = web.FieldError(f)
		}
		return web.ValidationFailed(fields...)
	}
	if missing, ok := errors.AsType[*flow.SecretMissingError](err); ok {
		return &web.Error{Status: http.StatusConflict, Code: "sign_in_action_secret_missing", Message: missing.Error(), Details: web.Details{"action": missing.Action}}
	}
	for _, known := range []struct {
		err    error
		status int
		code   string
	}{
		{flow.ErrNoDraft, http.StatusNotFound, "sign_in_flow_draft_not_found"},
		{flow.ErrVersionNotFound, http.StatusNotFound, "sign_in_flow_version_not_found"},
		{flow.ErrActionNotFound, http.StatusNotFound, "sign_in_action_not_found"},
		{identity.ErrUserNotFound, http.StatusNotFound, "user_not_found"},
		{flow.ErrChanged, http.StatusConflict, "sign_in_flow_changed"},
	} {
		if errors.Is(err, known.err) {
			return &web.Error{Status: known.status, Code: known.code, Message: known.err.Error()}
		}
	}
	return nil
}

// GetSignInFlow reads the active version.
func (h *Handlers) GetSignInFlow(ctx context.Context, _ GetSignInFlowRequestObject) (GetSignInFlowResponseObject, error) {
	info := web.InfoOf(ctx)
	v, err := h.Registry.Active(ctx, info.Tenant.ID)
	return GetSignInFlow200JSONResponse{Body: read(info, v)}, err
}

func read(info *web.RequestInfo, v flow.Version) SignInFlowRead {
	return SignInFlowRead{Data: v.Public(), Meta: Meta{RequestID: info.RequestID}}
}

// GetSignInFlowDraft reads the draft.
func (h *Handlers) GetSignInFlowDraft(ctx context.Context, _ GetSignInFlowDraftRequestObject) (GetSignInFlowDraftResponseObject, error) {
	info := web.InfoOf(ctx)
	d, err := h.Registry.Draft(ctx, info.Tenant.ID)
	return GetSignInFlowDraft200JSONResponse{Body: SignInFlowDraftRead{Data: d.Public(), Meta: Meta{RequestID: info.RequestID}}}, err
}

// PutSignInFlowDraft creates or replaces the draft.
func (h *Handlers) PutSignInFlowDraft(ctx context.Context, request PutSignInFlowDraftRequestObject) (PutSignInFlowDraftResponseObject, error) {
	info, form := web.InfoOf(ctx), request.Body
	d, err := h.Registry.SaveDraft(ctx, info.Tenant.ID, flow.Document{SignUp: form.SignUp, SignIn: form.SignIn, Actions: form.Actions}, form.ExpectedRevision)
	return PutSignInFlowDraft200JSONResponse{Body: SignInFlowDraftRead{Data: d.Public(), Meta: Meta{RequestID: info.RequestID}}}, err
}

// DeleteSignInFlowDraft deletes the draft.
func (h *Handlers) DeleteSignInFlowDraft(ctx context.Context, _ DeleteSignInFlowDraftRequestObject) (DeleteSignInFlowDraftResponseObject, error) {
	return DeleteSignInFlowDraft204Response{}, h.Registry.DeleteDraft(ctx, web.InfoOf(ctx).Tenant.ID)
}

// note validates the note of a version.
func note(text string) error {
	var v web.Validation
	if text != "" {
		v.Line("", "note", text, flow.MaxNote)
	}
	return v.Err()
}

// PublishSignInFlow publishes the draft.
func (h *Handlers) PublishSignInFlow(ctx context.Context, request PublishSignInFlowRequestObject) (PublishSignInFlowResponseObject, error) {
	info, form := web.InfoOf(ctx), request.Body
	if err := note(form.Note); err != nil {
		return nil, err
	}
	v, err := h.Registry.Publish(ctx, info.Tenant.ID, form.Note, form.ExpectedRevision)
	return PublishSignInFlow200JSONResponse{Body: read(info, v)}, err
}

// ListSignInFlowVersions lists the versions.
func (h *Handlers) ListSignInFlowVersions(ctx context.Context, request ListSignInFlowVersionsRequestObject) (ListSignInFlowVersionsResponseObject, error) {
	info, p := web.InfoOf(ctx), request.Params
	limit, err := web.Limit(p.Limit)
	if err != nil {
		return nil, err
	}
	list, before := []string{"listSignInFlowVersions"}, 0
	if p.Cursor != "" {
		if err := h.Cursors.Resume(info.Tenant.ID, list, p.Cursor, &before); err != nil {
			return nil, err
		}
	}
	found, err := h.Registry.Versions(ctx, info.Tenant.ID, before, limit+1)
	if err != nil {
		return nil, err
	}
	body := SignInFlowVersionList{Data: []SignInFlowVersion{}, Meta: ListMeta{RequestID: info.RequestID, Limit: limit}}
	for _, v := range found[:min(limit, len(found))] {
		body.Data = append(body.Data, v.Summary())
	}
	if len(found) > limit {
		cursor, err := h.Cursors.Next(info.Tenant.ID, list, found[limit-1].Number)
		if err != nil {
			return nil, err
		}
		body.Meta.NextCursor = &cursor
	}
	return ListSignInFlowVersions200JSONResponse{Body: body}, nil
}

// number returns the number of a version; 0, which no version has, for another text.
func number(version string) int {
	n, err := strconv.Atoi(version)
	if err != nil {
		return 0
	}
	return n
}

// GetSignInFlowVersion reads a version.
func (h *Handlers) GetSignInFlowVersion(ctx context.Context, request GetSignInFlowVersionRequestObject) (GetSignInFlowVersionResponseObject, error) {
	info := web.InfoOf(ctx)
	v, err := h.Registry.Version(ctx, info.Tenant.ID, number(request.Version))
	return GetSignInFlowVersion200JSONResponse{Body: read(info, v)}, err
}

// RollBackSignInFlow publishes a version again.
func (h *Handlers) RollBackSignInFlow(ctx context.Context, request RollBackSignInFlowRequestObject) (RollBackSignInFlowResponseObject, error) {
	info, form := web.InfoOf(ctx), request.Body
	if err := note(form.Note); err != nil {
		return nil, err
	}
	v, err := h.Registry.RollBack(ctx, info.Tenant.ID, number(request.Version), form.Note)
	return RollBackSignInFlow200JSONResponse{Body: read(info, v)}, err
}

// RotateSignInActionSecret gives an action a signing secret.
func (h *Handlers) RotateSignInActionSecret(ctx context.Context, request RotateSignInActionSecretRequestObject) (RotateSignInActionSecretResponseObject, error) {
	info, ttl := web.InfoOf(ctx), flow.DefaultPreviousTTL
	if given := request.Body.PreviousTTLS; given != nil {
		most := int(flow.MaxPreviousTTL / time.Second)
		if *given < 0 || *given > most {
			return nil, web.ValidationFailed(web.FieldError{Field: "previous_ttl_s", Code: "out_of_range", Message: fmt.Sprintf("previous_ttl_s must be between 0 and %d", most)})
		}
		ttl = time.Duration(*given) * time.Second
	}
	secret, previous, err := h.Registry.RotateSecret(ctx, info.Tenant.ID, request.ActionName, ttl)
	body := SignInActionSecret{Meta: Meta{RequestID: info.RequestID}}
	body.Data.SigningSecret, body.Data.PreviousExpiresAt = secret, document.TimeOrNull(previous)
	return RotateSignInActionSecret200JSONResponse{Body: body}, err
}

// PreviewSignInFlow runs a flow without effects.
func (h *Handlers) PreviewSignInFlow(ctx context.Context, request PreviewSignInFlowRequestObject) (PreviewSignInFlowResponseObject, error) {
	info, form := web.InfoOf(ctx), request.Body
	var v web.Validation
	web.OneOf(&v, "flow", string(form.Flow), "draft", "active")
	web.OneOf(&v, "point", flow.Point(form.Point), flow.SignUp, flow.SignIn)
	in := form.Context.input(&v)
	if err := v.Err(); err != nil {
		return nil, err
	}
	d, err := h.document(ctx, info.Tenant.ID, form.Flow == "active")
	if err != nil {
		return nil, err
	}
	if form.UserID != "" {
		if caller, known := authority.Of(ctx); known && !slices.Contains(caller.Scopes, "users:read") {
			return nil, &authority.DeniedError{Scope: "users:read"}
		}
		if in.User, in.HasFactors, err = h.Accounts.PreviewOf(ctx, info.Tenant.ID, form.UserID); err != nil {
			return nil, err
		}
	}
	point := flow.SignIn
	if form.Point != "" {
		point = flow.Point(form.Point)
	}
	o, err := h.Registry.Preview(ctx, info.Tenant.ID, d, point, in, form.CallActions)
	if err != nil {
		return nil, err
	}
	return PreviewSignInFlow200JSONResponse{Body: previewed(info, o)}, nil
}

// document returns the document of the active version or of the draft.
func (h *Handlers) document(ctx context.Context, tenantID string, active bool) (flow.Document, error) {
	if active {
		v, err := h.Registry.Active(ctx, tenantID)
		return v.Document, err
	}
	d, err := h.Registry.Draft(ctx, tenantID)
	return d.Document, err
}

// The bounds of a context.
const (
	maxText       = 500      // bytes
	maxAttributes = 16 << 10 // bytes
	maxMethods    = 20
)

// input returns the input of a preview.
func (c SignInFlowContext) input(v *web.Validation) flow.Input {
	in := flow.Input{
		User:       identity.User{Email: c.Email, EmailVerified: c.EmailVerified, CreatedAt: time.Time(c.CreatedAt)},
		Connection: c.Connection, Methods: c.Amr, SecondFactor: c.SecondFactor, HasFactors: c.HasFactors,
		IP: c.IP, Country: c.Country, UserAgent: c.UserAgent, NewDevice: c.NewDevice, At: time.Time(c.Time),
	}
	in.User.Attributes = v.Object("context/attributes", c.Attributes, maxAttributes)
	line := func(field, text string) {
		if text != "" {
			v.Line("context/", field, text, maxText)
		}
	}
	line("email", c.Email)
	line("connection", c.Connection)
	line("country", c.Country)
	line("user_agent", c.UserAgent)
	if len(c.Amr) > maxMethods {
		v.Add("context/amr", "too_many", fmt.Sprintf("must have at most %d methods", maxMethods))
	} else {
		for i, method := range c.Amr {
			line(fmt.Sprint("amr/", i), method)
		}
	}
	if _, err := netip.ParseAddr(c.IP); c.IP != "" && err != nil {
		v.Add("context/ip", "invalid", "must be an IP address")
	}
	return in
}

// claimSet are claims by their names.
type claimSet = map[string]json.RawMessage

// stepResult is the result of one step, as clients see it.
type stepResult struct {
	Position   int             `json:"position"`
	Name       string          `json:"name"`
	Kind       flow.Kind       `json:"kind"`
	When       string          `json:"when"`
	Action     *string         `json:"action"`
	Holds      *bool           `json:"holds"`
	Error      *string         `json:"error"`
	Result     flow.StepResult `json:"result"`
	Reason     *string         `json:"reason"`
	Claims     claimSet        `json:"claims"`
	DurationMS *int64          `json:"duration_ms"`
}

func previewed(info *web.RequestInfo, o flow.Outcome) SignInFlowPreviewed {
	body := SignInFlowPreviewed{Meta: Meta{RequestID: info.RequestID}}
	d := &body.Data
	d.Steps, d.Claims = []stepResult{}, orEmpty(o.Claims)
	denied, message := o.Denied()
	switch {
	case denied:
		d.Outcome, d.Message, d.Claims = "denied", document.OrNull(message), orEmpty(nil)
	case o.VerifiedEmail:
		d.Outcome = "email_verification_required"
	case o.Factor:
		d.Outcome = "factor_required"
	default:
		d.Outcome = "allowed"
	}
	for _, s := range o.Steps {
		one := stepResult{
			Position: s.Position + 1, Name: s.Name, Kind: s.Kind, When: s.When, Action: document.OrNull(s.Action), Holds: s.Holds,
			Error: document.OrNull(s.Fault), Result: s.Result, Reason: document.OrNull(string(s.Reason)), Claims: orEmpty(s.Claims),
		}
		if s.Duration > 0 {
			ms := s.Duration.Milliseconds()
			one.DurationMS = &ms
		}
		d.Steps = append(d.Steps, one)
	}
	return body
}

func orEmpty(claims claimSet) claimSet {
	if claims == nil {
		return claimSet{}
	}
	return claims
}
