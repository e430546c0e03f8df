package oauth

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"stonetown/internal/eventlog"
	"stonetown/internal/sqldb"
)

// Answer is what a person has said so far to an authorization request.
type Answer struct {
	SessionID string `json:"session,omitempty"` // that was chosen among the person's accounts

	// What the application may have, said by a user; an empty user has not been asked.
	UserID string   `json:"user,omitempty"`
	Scopes []string `json:"scopes,omitempty"` // none: the user denied the request
}

// ErrScopesNotAsked is returned for consent to something that was not asked for.
var ErrScopesNotAsked = errors.New("the application did not request all of these scopes")

// ErrNoAuthorization is returned where a user has not let an application do anything.
var ErrNoAuthorization = errors.New("the user has not signed in to the application")

// Consented is a request as a user has consented to it: at this time, before, or because
// the application is one of the tenant's own. It fails with [*RedirectError]:
// [ConsentRequired] where the user has to be asked, [AccessDenied] where they said no.
func (s *Service) Consented(ctx context.Context, tenant Tenant, r AuthorizationRequest, said Answer, userID string) (AuthorizationRequest, error) {
	if said.UserID == userID {
		if len(said.Scopes) == 0 {
			return r, r.Refusal(AccessDenied, "the user denied the request")
		}
		r.Scopes = said.Scopes
		return r, nil
	}
	ask := r.Refusal(ConsentRequired, "the user has not given consent")
	if r.Prompts("consent") {
		return r, ask
	}
	app, err := selectApplication(ctx, s.db, tenant.ID, r.ClientID)
	switch {
	case notFound(err):
		return r, &PageError{"the application is unknown"}
	case err != nil:
		return r, err
	case app.FirstParty:
		return r, nil
	case slices.Contains(r.Scopes, offlineAccess): // which lasts, and is asked for each time
		return r, ask
	}
	before, err := s.selectConsent(ctx, s.db, tenant, userID, r.ClientID)
	if err == nil && len(intersect(r.Scopes, before)) < len(r.Scopes) {
		err = ask
	}
	return r, err
}

// Consent records what a user lets an application have whose request waits: of the scopes
// that it asked for some, all (nil), or none to deny it. What was consented to is
// remembered. It fails with [ErrFlowNotFound], [ErrFlowExpired] or [ErrScopesNotAsked].
func (s *Service) Consent(ctx context.Context, tenant Tenant, flowID, userID string, scopes []string) error {
	flow, err := s.Flow(ctx, tenant, flowID)
	if err != nil {
		return err
	}
	if scopes == nil {
		scopes = flow.Request.Scopes
	}
	if len(intersect(scopes, flow.Request.Scopes)) < len(scopes) {
		return ErrScopesNotAsked
	}
	flow.Answer.UserID, flow.Answer.Scopes = userID, scopes
	return s.db.Tx(ctx, func(tx *sqldb.Tx) error {
		if err := answerFlow(ctx, tx, tenant, flowID, flow.Answer); err != nil || len(scopes) == 0 {
			return err
		}
		before, err := s.selectConsent(ctx, tx, tenant, userID, flow.Request.ClientID)
		if err != nil {
			return err
		}
		more := slices.DeleteFunc(slices.Clone(scopes), func(scope string) bool { return slices.Contains(before, scope) })
		if len(more) == 0 {
			return nil
		}
		app, err := selectApplication(ctx, tx, tenant.ID, flow.Request.ClientID)
		if err != nil {
			return err
		}
		now := moment(s.clock).UnixMicro()
		var b sqldb.Batch
		b.Queue(`
			INSERT INTO authorizations (tenant_id, user_id, client_id, scopes, created_at, used_at) VALUES ($1, $2, $3, $4, $5, $5)
			ON CONFLICT (tenant_id, user_id, client_id) DO UPDATE SET scopes = $4`,
			[]any{tenant.ID, userID, app.ClientID, strings.Join(slices.Concat(before, more), " "), now}, nil)
		eventlog.Append(&b, tenant.ID, consentGranted(ctx, app, userID, scopes))
		return tx.Send(ctx, &b)
	})
}

// Choose records that a person goes on with the account of a session. It fails with
// [ErrFlowNotFound] or [ErrFlowExpired].
func (s *Service) Choose(ctx context.Context, tenant Tenant, flowID, sessionID string) error {
	flow, err := s.Flow(ctx, tenant, flowID)
	if err != nil {
		return err
	}
	flow.Answer.SessionID = sessionID
	return s.db.Tx(ctx, func(tx *sqldb.Tx) error { return answerFlow(ctx, tx, tenant, flowID, flow.Answer) })
}

func answerFlow(ctx context.Context, tx *sqldb.Tx, tenant Tenant, flowID string, said Answer) error {
	_, err := tx.Exec(ctx, `UPDATE flows SET answer = $3 WHERE tenant_id = $1 AND id = $2`, tenant.ID, tokenHash(flowID), stored(said))
	if err != nil {
		return fmt.Errorf("answer authorization request: %w", err)
	}
	return nil
}

// selectConsent are the scopes that a user has let an application have.
func (s *Service) selectConsent(ctx context.Context, from querier, tenant Tenant, userID, clientID string) ([]string, error) {
	var scopes string
	err := from.QueryRow(ctx, `SELECT scopes FROM authorizations WHERE tenant_id = $1 AND user_id = $2 AND client_id = $3`, tenant.ID, userID, clientID).Scan(&scopes)
	if err != nil && !errors.Is(err, sqldb.ErrNoRows) {
		return nil, fmt.Errorf("read consent: %w", err)
	}
	return strings.Fields(scopes), nil
}

// Authorization is an application that a user has signed in to.
type Authorization struct {
	Application Application
	Scopes      []string  // that the user has consented to: none of the tenant's own applications
	CreatedAt   time.Time // UTC, as is the other
	UsedAt      time.Time // when the user was last sent back to it
}

// maxAuthorizations is how many applications of one user are listed.
const maxAuthorizations = 1000

// Authorizations lists the applications that a user has signed in to, the latest first, at
// most 1,000.
func (s *Service) Authorizations(ctx context.Context, tenantID, userID string) (list []Authorization, err error) {
	rows, err := s.db.Query(ctx, `
		SELECT z.scopes, z.created_at, z.used_at, a.id, a.client_id, a.name, a.options
		FROM authorizations z JOIN applications a ON a.tenant_id = z.tenant_id AND a.client_id = z.client_id
		WHERE z.tenant_id = $1 AND z.user_id = $2 ORDER BY z.used_at DESC, z.client_id LIMIT $3`, tenantID, userID, int64(maxAuthorizations))
	if err != nil {
		return nil, fmt.Errorf("list authorizations: %w", err)
	}
	defer rows.Close()
	for rows.Next() {
		var z Authorization
		var scopes, options string
		var created, used int64
		err := rows.Scan(&scopes, &created, &used, &z.Application.ID, &z.Application.ClientID, &z.Application.Name, &options)
		if err == nil {
			z.Application.FirstParty = true
			err = unstore(options, &z.Application.Options)
		}
		if err != nil {
			return nil, fmt.Errorf("list authorizations: %w", err)
		}
		z.Scopes, z.CreatedAt, z.UsedAt = strings.Fields(scopes), instant(created), instant(used)
		list = append(list, z)
	}
	if err := rows.Err(); err != nil {
		return nil, fmt.Errorf("list authorizations: %w", err)
	}
	return list, nil
}

// EndAuthorization takes back all that a user has let an application do, and forgets what
// they have consented to. It fails with [ErrApplicationNotFound] or [ErrNoAuthorization].
func (s *Service) EndAuthorization(ctx context.Context, tenant Tenant, userID, applicationID string) error {
	app, err := s.Application(ctx, tenant.ID, applicationID)
	if err != nil {
		return err
	}
	err = s.db.Tx(ctx, func(tx *sqldb.Tx) error {
		scopes, err := s.selectConsent(ctx, tx, tenant, userID, app.ClientID)
		if err != nil {
			return err
		}
		n, err := tx.Exec(ctx, `DELETE FROM authorizations WHERE tenant_id = $1 AND user_id = $2 AND client_id = $3`, tenant.ID, userID, app.ClientID)
		if err == nil && n == 0 {
			err = ErrNoAuthorization
		}
		if err == nil {
			_, err = tx.Exec(ctx, `UPDATE grants SET revoked_at = $4 WHERE tenant_id = $1 AND user_id = $2 AND client_id = $3 AND revoked_at = 0`,
				tenant.ID, userID, app.ClientID, moment(s.clock).UnixMicro())
		}
		if err != nil {
			return err
		}
		var b sqldb.Batch
		eventlog.Append(&b, tenant.ID, consentRevoked(ctx, app, userID, scopes))
		return tx.Send(ctx, &b)
	})
	if err != nil {
		return fmt.Errorf("end authorization: %w", err)
	}
	return nil
}

// ForgetUser queues that what a user has let applications do is taken back and forgotten.
func (s *Service) ForgetUser(b *sqldb.Batch, tenantID, userID string) {
	b.Queue(`UPDATE grants SET revoked_at = $3 WHERE tenant_id = $1 AND user_id = $2 AND revoked_at = 0`, []any{tenantID, userID, moment(s.clock).UnixMicro()}, nil)
	b.Queue(`DELETE FROM authorizations WHERE tenant_id = $1 AND user_id = $2`, []any{tenantID, userID}, nil)
}

// forgetClient queues that the access of users to a deleted application is revoked and
// forgotten.
func (s *Service) forgetClient(b *sqldb.Batch, tenantID, clientID string) {
	b.Queue(`DELETE FROM authorizations WHERE tenant_id = $1 AND client_id = $2`, []any{tenantID, clientID}, nil)
	b.Queue(`UPDATE grants SET revoked_at = $3 WHERE tenant_id = $1 AND client_id = $2 AND revoked_at = 0`, []any{tenantID, clientID, moment(s.clock).UnixMicro()}, nil)
}

// GroupScopesOf are those scopes that a user's groups bring into the tokens of an
// application beyond what it asked for.
func (s *Service) GroupScopesOf(ctx context.Context, tenant Tenant, app Application, asked []string, userID string) ([]string, error) {
	person, err := s.people.Person(ctx, tenant.ID, userID)
	if err != nil {
		return nil, err
	}
	return slices.DeleteFunc(groupScopes(app, person), func(scope string) bool { return slices.Contains(asked, scope) }), nil
}

// ScopeDescriptions are what the tenant says of those scopes that it has described.
func (s *Service) ScopeDescriptions(ctx context.Context, tenantID string, scopes []string) (map[string]string, error) {
	registered, err := selectScopes(ctx, s.db, tenantID)
	if err != nil {
		return nil, err
	}
	said := map[string]string{}
	for _, scope := range scopes {
		if text := registered[scope].Description; text != "" {
			said[scope] = text
		}
	}
	return said, nil
}
