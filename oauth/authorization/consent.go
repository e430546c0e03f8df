package authorization

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"stonetown/internal/sqldb"
	"stonetown/oauth/access"
	"stonetown/oauth/client"
	"stonetown/oauth/internal/storage"
	"stonetown/oauth/protocol"
	"stonetown/oauth/scope"
	"stonetown/oauth/token"
)

// Answer is the answer of a user to an authorization request, as far as it was given.
type Answer struct {
	SessionID string `json:"session,omitempty"` // of the account that the user chose

	// The consent of a user; an empty user has not been asked.
	UserID string   `json:"user,omitempty"`
	Scopes []string `json:"scopes,omitempty"` // none: the user denied the request
	Claims []string `json:"claims,omitempty"` // see [Request]
}

// ErrScopesNotAsked and ErrClaimsNotAsked are returned for consent to scopes or claims that were not
// requested.
var (
	ErrScopesNotAsked = errors.New("the application did not request all of these scopes")
	ErrClaimsNotAsked = errors.New("the application did not request all of these claims, or its scopes have them")
)

// Consented returns a request with the scopes and claims to which the user agreed: for this request,
// before, or because the application is first party. It fails with [*RedirectError]:
// [protocol.ConsentRequired] if the user has to be asked, [protocol.AccessDenied] if the user
// denied the request or may not do what its authorization details state. To ask such a user for
// consent would promise what no token has. A third-party application that asks in the background
// (prompt=none) does not learn that before there is consent: [protocol.ConsentRequired] comes first.
// The same holds for resources that the user may not call.
func (s *Service) Consented(ctx context.Context, tenant protocol.Tenant, r Request, answer Answer, userID string) (Request, error) {
	agreed, err := s.agreed(ctx, tenant, r, answer, userID)
	refused, _ := errors.AsType[*RedirectError](err)
	asks := refused != nil && refused.Code == protocol.ConsentRequired && !r.Prompts("none")
	if (err == nil || asks) && r.Audience != "" {
		c, failed := s.known(ctx, tenant, &r)
		if failed == nil {
			failed = s.permitted(ctx, tenant, r, c.app, token.SubjectOf(userID), protocol.AccessDenied, "the user may not call a resource of the request")
		}
		if failed != nil {
			return r, failed
		}
	}
	return agreed, err
}

// agreed is [Service.Consented] without resources.
func (s *Service) agreed(ctx context.Context, tenant protocol.Tenant, r Request, answer Answer, userID string) (Request, error) {
	ask := r.Refusal(protocol.ConsentRequired, "the user has not given consent")
	answered := answer.UserID == userID
	if r.Details != nil && r.Prompts("none") && !answered {
		switch c, err := s.known(ctx, tenant, &r); {
		case err != nil:
			return r, err
		case !c.app.FirstParty:
			return r, ask
		}
	}
	_, all, err := s.details.Allowed(ctx, tenant.ID, token.SubjectOf(userID), r.Details)
	switch {
	case err != nil:
		return r, err
	case !all:
		return r, r.Refusal(protocol.AccessDenied, "the user may not do everything that the authorization_details state")
	}
	if answered {
		if len(answer.Scopes) == 0 {
			return r, r.Refusal(protocol.AccessDenied, "the user denied the request")
		}
		r.Scopes, r.Claims = answer.Scopes, r.Claims.Of(answer.Claims)
		return r, nil
	}
	if r.Prompts("consent") {
		return r, ask
	}
	c, err := s.known(ctx, tenant, &r)
	switch {
	case err != nil:
		return r, err
	case c.app.FirstParty:
		return r, nil
	case r.Details != nil, c.app.Source == client.FromDocument, slices.Contains(r.Scopes, scope.OfflineAccess): // which require consent each time
		return r, ask
	}
	before, err := s.access.SelectConsent(ctx, s.db, tenant, userID, r.ClientID)
	if err == nil && !before.Covers(r.Scopes, r.Claims) {
		err = ask
	}
	return r, err
}

// Consent stores the consent of a user to a pending request: to some of the requested scopes,
// to all (nil), or to none, which denies the request; and to some of the requested claims, or to all
// (nil). Later requests for the same need no consent. It fails with [ErrRequestNotFound],
// [ErrRequestExpired], [ErrScopesNotAsked] or [ErrClaimsNotAsked].
func (s *Service) Consent(ctx context.Context, tenant protocol.Tenant, requestID, userID string, scopes, claims []string) error {
	pending, err := s.Pending(ctx, tenant, requestID)
	if err != nil {
		return err
	}
	if scopes == nil {
		scopes = pending.Request.Scopes
	}
	requested := pending.Request.Claims.Names()
	if len(scopes) > 0 && claims == nil {
		claims = requested
	}
	switch {
	case len(scope.Intersect(scopes, pending.Request.Scopes)) < len(scopes):
		return ErrScopesNotAsked
	case slices.ContainsFunc(claims, func(name string) bool { return !slices.Contains(requested, name) }):
		return ErrClaimsNotAsked
	}
	pending.Answer.UserID, pending.Answer.Scopes, pending.Answer.Claims = userID, scopes, claims
	return s.db.Tx(ctx, func(tx *sqldb.Tx) error {
		if err := storeAnswer(ctx, tx, tenant, requestID, pending.Answer); err != nil || len(scopes) == 0 {
			return err
		}
		before, err := s.access.SelectConsent(ctx, tx, tenant, userID, pending.Request.ClientID)
		if err != nil || before.Covers(scopes, pending.Request.Claims.Of(claims)) {
			return err
		}
		app, err := client.Select(ctx, tx, tenant.ID, pending.Request.ClientID)
		if err != nil {
			return err
		}
		var b sqldb.Batch
		s.access.AddConsent(ctx, &b, tenant, userID, app, access.Consent{Scopes: scopes, Claims: claims}, before)
		return tx.Send(ctx, &b)
	})
}

// Choose stores that the user continues with the account of a session. It fails with
// [ErrRequestNotFound] or [ErrRequestExpired].
func (s *Service) Choose(ctx context.Context, tenant protocol.Tenant, requestID, sessionID string) error {
	pending, err := s.Pending(ctx, tenant, requestID)
	if err != nil {
		return err
	}
	pending.Answer.SessionID = sessionID
	return s.db.Tx(ctx, func(tx *sqldb.Tx) error { return storeAnswer(ctx, tx, tenant, requestID, pending.Answer) })
}

// storeAnswer stores the answer of a user with the pending request.
func storeAnswer(ctx context.Context, tx *sqldb.Tx, tenant protocol.Tenant, requestID string, answer Answer) error {
	_, err := tx.Exec(ctx, `UPDATE authorization_requests SET answer = $3 WHERE tenant_id = $1 AND id = $2`, tenant.ID, protocol.Hash(requestID), storage.JSON(answer))
	if err != nil {
		return fmt.Errorf("answer authorization request: %w", err)
	}
	return nil
}
