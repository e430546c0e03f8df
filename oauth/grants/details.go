package grants

import (
	"context"

	"stonetown/oauth/detail"
	"stonetown/oauth/protocol"
	"stonetown/oauth/token"
	"stonetown/tuplestore"
)

// newDetails returns the authorization details that an application requests for itself. All of
// them are granted, or the request is refused (RFC 9396 §6).
func (s sources) newDetails(ctx context.Context, r *request) ([]detail.Detail, error) {
	requested, err := detail.Parse(r.Details)
	if err != nil || requested == nil {
		return nil, err
	}
	if err := s.details.Defined(ctx, r.tenant.ID, requested); err != nil {
		return nil, err
	}
	_, all, err := s.details.Allowed(ctx, r.tenant.ID, token.SubjectOf(r.app.ClientID), requested)
	if err == nil && !all {
		err = protocol.NewError(protocol.InvalidAuthorizationDetails, "the application may not do everything that the authorization_details state")
	}
	return requested, err
}

// heldDetails returns the details of a token that follows from a grant or another token: those
// that are requested, which may not exceed those that were granted, without what the subject has
// lost since.
func (s sources) heldDetails(ctx context.Context, r *request, subject tuplestore.Subject, granted []detail.Detail) ([]detail.Detail, error) {
	requested, err := detail.Parse(r.Details)
	if err == nil {
		requested, err = detail.Narrow(granted, requested)
	}
	if err != nil {
		return nil, err
	}
	held, _, err := s.details.Allowed(ctx, r.tenant.ID, subject, requested)
	return held, err
}
