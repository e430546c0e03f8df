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

// maxLabel is the longest label of a factor, in characters.
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
func (s *Surface) ListMyFactors(ctx context.Context, request ListMyFactorsRequestObject) (ListMyFactorsResponseObject, error) {
	call := web.CallOf(ctx)
	userID, err := self(call)
	if err != nil {
		return nil, err
	}
	all, err := s.Service.Factors(ctx, call.Tenant.ID, userID)
	if err != nil {
		return nil, err
	}
	page, limit, next, err := web.Page(s.Cursors, call.Tenant.ID, []string{"listMyFactors", userID}, request.Params.Limit, request.Params.Cursor, all, func(f factor.Factor) string { return f.ID })
	if err != nil {
		return nil, err
	}
	body := FactorList{Data: []Factor{}, Meta: ListMeta{RequestID: call.RequestID, Limit: limit, NextCursor: next}}
	for _, f := range page {
		body.Data = append(body.Data, wireFactor(f))
	}
	return ListMyFactors200JSONResponse{Body: body}, err
}

// BeginFactor begins to add a factor.
func (s *Surface) BeginFactor(ctx context.Context, request BeginFactorRequestObject) (BeginFactorResponseObject, error) {
	call, form := web.CallOf(ctx), request.Body
	if err := validLabel(form.Label); err != nil {
		return nil, err
	}
	current, err := s.person(ctx, call)
	if err != nil {
		return nil, err
	}
	n := authn.NewFactor{Kind: factor.Kind(request.Kind), Label: form.Label, Number: form.PhoneNumber, Passkey: form.Passkey == nil || *form.Passkey}
	e, err := s.Service.BeginFactor(ctx, tenant(call), current, n)
	if err != nil {
		return nil, s.adding(ctx, call, current, err)
	}
	body := Enrolment{Meta: meta(call)}
	d := &body.Data
	d.CeremonyID, d.ExpiresAt = e.ID, document.Timestamp(e.ExpiresAt)
	d.Secret, d.OtpauthURI, d.QrCode = e.Key.Secret, e.Key.URI, e.Key.QR
	d.PhoneNumberMasked, d.ResendAfter, d.PublicKey = e.Number, int(e.ResendAfter.Seconds()), options(e.Options)
	return BeginFactor200JSONResponse{Body: body}, nil
}

// CompleteFactor adds a factor.
func (s *Surface) CompleteFactor(ctx context.Context, request CompleteFactorRequestObject) (CompleteFactorResponseObject, error) {
	call, form := web.CallOf(ctx), request.Body
	err := need("ceremony_id", form.CeremonyID)
	if err == nil && form.Label != nil {
		err = validLabel(*form.Label)
	}
	if err != nil {
		return nil, err
	}
	current, err := s.person(ctx, call)
	if err != nil {
		return nil, err
	}
	proof := authn.FactorProof{Code: form.Code, Credential: form.Credential, Label: form.Label}
	f, err := s.Service.CompleteFactor(ctx, tenant(call), current, factor.Kind(request.Kind), form.CeremonyID, proof)
	if err != nil {
		return nil, s.adding(ctx, call, current, err)
	}
	return CompleteFactor201JSONResponse{Body: FactorRead{Data: wireFactor(f), Meta: meta(call)}}, nil
}

// adding states an error of adding a factor, which may be that more has to be proved.
func (s *Surface) adding(ctx context.Context, call *web.Call, current session.Session, err error) error {
	if errors.Is(err, authn.ErrStepUp) {
		return s.stepUp(ctx, call, current)
	}
	return err
}

// PatchFactor names a factor.
func (s *Surface) PatchFactor(ctx context.Context, request PatchFactorRequestObject) (PatchFactorResponseObject, error) {
	call := web.CallOf(ctx)
	if err := validLabel(request.Body.Label); err != nil {
		return nil, err
	}
	current, err := s.person(ctx, call)
	if err != nil {
		return nil, err
	}
	f, err := s.Service.RenameFactor(ctx, call.Tenant.ID, current.UserID, request.FactorID, request.Body.Label)
	return PatchFactor200JSONResponse{Body: FactorRead{Data: wireFactor(f), Meta: meta(call)}}, err
}

// RemoveMyFactor removes one of the caller's factors.
func (s *Surface) RemoveMyFactor(ctx context.Context, request RemoveMyFactorRequestObject) (RemoveMyFactorResponseObject, error) {
	call := web.CallOf(ctx)
	current, err := s.steppedUp(ctx, call)
	if err == nil {
		err = s.Service.RemoveFactor(ctx, call.Tenant.ID, current.UserID, request.FactorID)
	}
	return RemoveMyFactor204Response{}, err
}

// NewBackupCodes replaces the caller's backup codes.
func (s *Surface) NewBackupCodes(ctx context.Context, _ NewBackupCodesRequestObject) (NewBackupCodesResponseObject, error) {
	call := web.CallOf(ctx)
	current, err := s.steppedUp(ctx, call)
	if err != nil {
		return nil, err
	}
	codes, err := s.Service.NewBackupCodes(ctx, call.Tenant.ID, current.UserID)
	body := BackupCodes{Meta: meta(call)}
	body.Data.Codes = codes
	return NewBackupCodes200JSONResponse{Body: body}, err
}
