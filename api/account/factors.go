package account

import (
	"context"
	"errors"
	"unicode/utf8"

	"stonetown/api/web"
	"stonetown/identity/authn"
	"stonetown/identity/factor"
	"stonetown/identity/session"
	"stonetown/internal/document"
)

// maxLabel is the maximum length of a label, in characters.
const maxLabel = 100

func validLabel(label string) error {
	var v web.Validation
	if label != "" {
		v.Line("", "label", label, utf8.UTFMax*maxLabel)
	}
	if v.Faults == nil && utf8.RuneCountInString(label) > maxLabel {
		v.Add("label", "too_long", "must have at most 100 characters")
	}
	return v.Err()
}

// ListMyFactors lists the caller's second factors.
func (h *Handlers) ListMyFactors(ctx context.Context, request ListMyFactorsRequestObject) (ListMyFactorsResponseObject, error) {
	info := web.InfoOf(ctx)
	userID, err := self(info)
	if err != nil {
		return nil, err
	}
	all, err := h.Service.Factors(ctx, info.Tenant.ID, userID)
	if err != nil {
		return nil, err
	}
	page, limit, next, err := web.Page(h.Cursors, info.Tenant.ID, []string{"listMyFactors", userID}, request.Params.Limit, request.Params.Cursor, all, func(f factor.Factor) string { return f.ID })
	if err != nil {
		return nil, err
	}
	body := FactorList{Data: []Factor{}, Meta: ListMeta{RequestID: info.RequestID, Limit: limit, NextCursor: next}}
	for _, f := range page {
		body.Data = append(body.Data, wireFactor(f))
	}
	return ListMyFactors200JSONResponse{Body: body}, err
}

// BeginFactor begins the enrolment of a factor.
func (h *Handlers) BeginFactor(ctx context.Context, request BeginFactorRequestObject) (BeginFactorResponseObject, error) {
	info, form := web.InfoOf(ctx), request.Body
	if err := validLabel(form.Label); err != nil {
		return nil, err
	}
	current, err := h.person(ctx, info)
	if err != nil {
		return nil, err
	}
	n := authn.NewFactor{Kind: factor.Kind(request.Kind), Label: form.Label, Number: form.PhoneNumber, Passkey: form.Passkey == nil || *form.Passkey}
	e, err := h.Service.BeginFactor(ctx, tenant(info), current, n)
	if err != nil {
		return nil, h.adding(ctx, info, current, err)
	}
	body := Enrolment{Meta: meta(info)}
	d := &body.Data
	d.CeremonyID, d.ExpiresAt = e.ID, document.Timestamp(e.ExpiresAt)
	d.Secret, d.OtpauthURI, d.QrCode = e.Key.Secret, e.Key.URI, e.Key.QR
	d.PhoneNumberMasked, d.ResendAfter, d.PublicKey = e.Number, int(e.ResendAfter.Seconds()), options(e.Options)
	return BeginFactor200JSONResponse{Body: body}, nil
}

// CompleteFactor completes the enrolment of a factor.
func (h *Handlers) CompleteFactor(ctx context.Context, request CompleteFactorRequestObject) (CompleteFactorResponseObject, error) {
	info, form := web.InfoOf(ctx), request.Body
	err := need("ceremony_id", form.CeremonyID)
	if err == nil && form.Label != nil {
		err = validLabel(*form.Label)
	}
	if err != nil {
		return nil, err
	}
	current, err := h.person(ctx, info)
	if err != nil {
		return nil, err
	}
	proof := authn.FactorProof{Code: form.Code, Credential: form.Credential, Label: form.Label}
	f, err := h.Service.CompleteFactor(ctx, tenant(info), current, factor.Kind(request.Kind), form.CeremonyID, proof)
	if err != nil {
		return nil, h.adding(ctx, info, current, err)
	}
	return CompleteFactor201JSONResponse{Body: FactorRead{Data: wireFactor(f), Meta: meta(info)}}, nil
}

// adding returns the response to an error of an enrolment, which may require a second factor.
func (h *Handlers) adding(ctx context.Context, info *web.RequestInfo, current session.Session, err error) error {
	if errors.Is(err, authn.ErrStepUp) {
		return h.stepUp(ctx, info, current)
	}
	return err
}

// PatchFactor changes the label of a factor.
func (h *Handlers) PatchFactor(ctx context.Context, request PatchFactorRequestObject) (PatchFactorResponseObject, error) {
	info := web.InfoOf(ctx)
	if err := validLabel(request.Body.Label); err != nil {
		return nil, err
	}
	current, err := h.person(ctx, info)
	if err != nil {
		return nil, err
	}
	f, err := h.Service.RenameFactor(ctx, info.Tenant.ID, current.UserID, request.FactorID, request.Body.Label)
	return PatchFactor200JSONResponse{Body: FactorRead{Data: wireFactor(f), Meta: meta(info)}}, err
}

// RemoveMyFactor removes one of the caller's factors.
func (h *Handlers) RemoveMyFactor(ctx context.Context, request RemoveMyFactorRequestObject) (RemoveMyFactorResponseObject, error) {
	info := web.InfoOf(ctx)
	current, err := h.steppedUp(ctx, info)
	if err == nil {
		err = h.Service.RemoveFactor(ctx, info.Tenant.ID, current.UserID, request.FactorID)
	}
	return RemoveMyFactor204Response{}, err
}

// NewBackupCodes replaces the caller's backup codes.
func (h *Handlers) NewBackupCodes(ctx context.Context, _ NewBackupCodesRequestObject) (NewBackupCodesResponseObject, error) {
	info := web.InfoOf(ctx)
	current, err := h.steppedUp(ctx, info)
	if err != nil {
		return nil, err
	}
	codes, err := h.Service.NewBackupCodes(ctx, info.Tenant.ID, current.UserID)
	body := BackupCodes{Meta: meta(info)}
	body.Data.Codes = codes
	return NewBackupCodes200JSONResponse{Body: body}, err
}
