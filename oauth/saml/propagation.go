package saml

import (
	"context"
	"errors"
	"fmt"

	"stonetown/internal/samlprotocol"
	"stonetown/internal/sqldb"
	"stonetown/oauth/access"
	"stonetown/oauth/authorization"
	"stonetown/oauth/client"
	"stonetown/oauth/internal/storage"
	"stonetown/oauth/protocol"
)

// maxParticipants bounds the service providers that one sign-out reaches: each is a redirect of the
// browser.
const maxParticipants = 20

// signOut is a sign-out that reaches the service providers of sessions that end, one after another
// (SAML Profiles §4.4.3.3). It is stored while one of them is asked, under the RelayState of the
// request: 130 random bits, which only the browser and that service provider learn. So nothing in a
// message decides where the browser continues.
type signOut struct {
	// End leads the browser on at the end. Without a URL, RequestID of ClientID is answered instead.
	End        samlprotocol.Message `json:"end"`
	ClientID   string               `json:"client_id,omitempty"`
	RequestID  string               `json:"request_id,omitempty"`
	RelayState string               `json:"relay_state,omitempty"`

	Left    []string                   `json:"left,omitempty"` // ids of the grants whose service providers are not asked yet
	Asked   string                     `json:"asked"`          // id of the grant whose service provider is asked
	Pending samlprotocol.PendingLogout `json:"pending"`        // the request to it
	Partial bool                       `json:"partial"`        // a service provider did not confirm the end, or could not be asked
}

// include adds the service providers of sessions, except that of the request.
func (s *Service) include(ctx context.Context, tenant protocol.Tenant, o *signOut, sessions ...string) error {
	for _, sessionID := range sessions {
		list, err := s.Access.Participants(ctx, tenant, sessionID)
		if err != nil {
			return err
		}
		for _, g := range list {
			if g.ClientID != o.ClientID {
				o.Left = append(o.Left, g.ID)
			}
		}
	}
	if len(o.Left) > maxParticipants {
		o.Left, o.Partial = o.Left[:maxParticipants], true
	}
	return nil
}

// BeginLogout begins to sign the user of a session out at its service providers, which the caller
// ends. The result is the message to the first of them; the browser returns from there, and at the end
// has the message end, whose URL the caller must have validated. The result is zero if there are no
// service providers.
func (s *Service) BeginLogout(ctx context.Context, tenant protocol.Tenant, sessionID string, end samlprotocol.Message) (first samlprotocol.Message, err error) {
	o := signOut{End: end}
	if err := s.include(ctx, tenant, &o, sessionID); err != nil || len(o.Left) == 0 {
		return first, err
	}
	return s.proceed(ctx, tenant, "", o)
}

// ContinueLogout returns the next message of a sign-out: after a request, whose sessions must have
// ended, or after a response. It is a request to the next service provider or, after the last one, the
// answer to the first request, or the message that [Service.BeginLogout] got. It fails as
// [Service.ReadLogout] does.
func (s *Service) ContinueLogout(ctx context.Context, tenant protocol.Tenant, l Logout) (samlprotocol.Message, error) {
	if l.IsRequest() {
		o := signOut{ClientID: l.app.ClientID, RequestID: l.message.Request.ID, RelayState: l.message.RelayState}
		if err := s.include(ctx, tenant, &o, l.Sessions...); err != nil {
			return samlprotocol.Message{}, err
		}
		return s.proceed(ctx, tenant, "", o)
	}
	o, err := s.waiting(ctx, tenant, l.message.RelayState)
	if err != nil {
		return samlprotocol.Message{}, err
	}
	complete, err := l.channel.Finish(o.Pending, l.message)
	if failed, ok := errors.AsType[*samlprotocol.Error](err); ok && failed.Class != samlprotocol.Stale {
		s.logFailure(ctx, tenant, l.app, failed)
		complete, err = false, nil
	}
	if err == nil && complete {
		err = s.Access.Revoke(ctx, tenant, o.Asked) // so that no other sign-out asks again
	}
	if err != nil {
		return samlprotocol.Message{}, s.refusal(ctx, tenant, l.app, err)
	}
	o.Partial = o.Partial || !complete
	return s.proceed(ctx, tenant, o.Pending.RelayState, o)
}

// proceed asks the next service provider, or ends the sign-out. The request with the RelayState
// answered is no longer waited for; empty: there is none.
func (s *Service) proceed(ctx context.Context, tenant protocol.Tenant, answered string, o signOut) (samlprotocol.Message, error) {
	for len(o.Left) > 0 {
		o.Asked, o.Left = o.Left[0], o.Left[1:]
		g, app, err := s.participant(ctx, tenant, o.Asked)
		if errors.Is(err, access.ErrInvalidGrant) {
			continue
		}
		var message samlprotocol.Message
		if err == nil {
			message, o.Pending, err = s.ask(ctx, tenant, app, g)
		}
		if failed, ok := errors.AsType[*samlprotocol.Error](err); ok {
			s.logFailure(ctx, tenant, app, failed)
			o.Partial = true
			continue
		}
		if err != nil {
			return message, err
		}
		return message, s.replace(ctx, tenant, answered, &o)
	}
	if o.End.URL == "" {
		var err error
		if o.End, err = s.answerLogout(ctx, tenant, o); err != nil {
			return o.End, err
		}
	}
	return o.End, s.replace(ctx, tenant, answered, nil)
}

// participant finds a grant and its service provider. It fails with [access.ErrInvalidGrant] if they
// have ended meanwhile.
func (s *Service) participant(ctx context.Context, tenant protocol.Tenant, grantID string) (access.Grant, client.Application, error) {
	g, err := s.Access.Grant(ctx, tenant, grantID)
	if err == nil && !g.RevokedAt.IsZero() {
		err = access.ErrInvalidGrant
	}
	if err != nil {
		return g, client.Application{}, err
	}
	app, err := s.Clients.ByClientID(ctx, tenant.ID, g.ClientID)
	if client.IsNotFound(err) {
		err = access.ErrInvalidGrant
	}
	return g, app, err
}

// ask returns the request to a service provider. It fails with [*samlprotocol.Error] if the service
// provider cannot be asked: it has no slo_url, or no certificate that verifies its response.
func (s *Service) ask(ctx context.Context, tenant protocol.Tenant, app client.Application, g access.Grant) (m samlprotocol.Message, pending samlprotocol.PendingLogout, err error) {
	sp, err := serviceProvider(app)
	if err != nil {
		return m, pending, err
	}
	if len(sp.Certificates) == 0 {
		return m, pending, samlprotocol.Failed(samlprotocol.Misconfigured, "the application has no certificate")
	}
	p, err := s.provider(ctx, tenant)
	if err != nil {
		return m, pending, err
	}
	return p.SingleLogout(sp).Begin(p.NameID(sp, g.NameID), g.ID, s.Clock())
}

// answerLogout returns the answer to the request with which a sign-out began.
func (s *Service) answerLogout(ctx context.Context, tenant protocol.Tenant, o signOut) (samlprotocol.Message, error) {
	app, sp, p, err := s.parties(ctx, tenant, o.ClientID)
	if err != nil {
		return samlprotocol.Message{}, err
	}
	message, err := p.SingleLogout(sp).Answer(samlprotocol.LogoutRequest{ID: o.RequestID}, o.RelayState, o.Partial, s.Clock())
	if err != nil {
		return message, s.refusal(ctx, tenant, app, err)
	}
	return message, nil
}

// logFailure logs why a service provider did not sign a user out, or could not be asked.
func (s *Service) logFailure(ctx context.Context, tenant protocol.Tenant, app client.Application, failed *samlprotocol.Error) {
	s.Logger.InfoContext(ctx, "SAML application did not sign a user out", "tenant", tenant.ID, "application", app.ID, "class", string(failed.Class), "detail", failed.Detail)
}

// errSignOutOver is the page for a response to no request, or to one that was answered.
var errSignOutOver = &authorization.PageError{Description: "this sign-out has expired, or was completed before"}

// waiting finds the sign-out that waits for the answer with a RelayState. It fails with
// [*authorization.PageError].
func (s *Service) waiting(ctx context.Context, tenant protocol.Tenant, relayState string) (o signOut, err error) {
	id := protocol.Hash(relayState)
	var sealed []byte
	var expires int64
	err = s.DB.QueryRow(ctx, `SELECT logout, expires_at FROM saml_logouts WHERE tenant_id = $1 AND id = $2`, tenant.ID, id).Scan(&sealed, &expires)
	if errors.Is(err, sqldb.ErrNoRows) || err == nil && !storage.Now(s.Clock).Before(sqldb.Instant(expires)) {
		return o, errSignOutOver
	}
	var text []byte
	if err == nil {
		text, err = s.Seal.Open(tenant.ID, id, sealed)
	}
	if err == nil {
		err = storage.ReadJSON(string(text), &o)
	}
	if err != nil {
		return o, fmt.Errorf("read sign-out: %w", err)
	}
	return o, nil
}

// replace deletes the sign-out that waited for the answer with a RelayState, and stores the one that
// waits for the next; nil: there is none. It fails with [*authorization.PageError] if the answer was
// used before, so each is used once.
func (s *Service) replace(ctx context.Context, tenant protocol.Tenant, answered string, next *signOut) error {
	err := s.DB.Tx(ctx, func(tx *sqldb.Tx) error {
		if answered != "" {
			n, err := tx.Exec(ctx, `DELETE FROM saml_logouts WHERE tenant_id = $1 AND id = $2`, tenant.ID, protocol.Hash(answered))
			if err != nil {
				return err
			}
			if n == 0 {
				return errSignOutOver
			}
		}
		if next == nil {
			return nil
		}
		id := protocol.Hash(next.Pending.RelayState)
		_, err := tx.Exec(ctx, `INSERT INTO saml_logouts (tenant_id, id, logout, expires_at) VALUES ($1, $2, $3, $4)`,
			tenant.ID, id, s.Seal.Seal(tenant.ID, id, []byte(storage.JSON(next))), storage.Now(s.Clock).Add(samlprotocol.LogoutLifetime).UnixMicro())
		return err
	})
	if err != nil && !errors.Is(err, errSignOutOver) {
		return fmt.Errorf("store sign-out: %w", err)
	}
	return err
}
