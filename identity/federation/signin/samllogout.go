package signin

import (
	"context"
	"encoding/json"
	"errors"
	"net/url"

	"stonetown/identity/authn"
	"stonetown/identity/external"
	"stonetown/identity/federation"
	"stonetown/identity/federation/serviceprovider"
	"stonetown/internal/samlprotocol"
	"stonetown/internal/sqldb"
)

// requestSAMLLogout returns the request that ends a session at a SAML identity provider and at its
// other service providers (SAML Profiles §4.4); zero: the identity provider has no single logout.
func (s *Service) requestSAMLLogout(ctx context.Context, t federation.Tenant, c federation.Connection, at external.Session) (Begun, error) {
	provider, err := s.serviceProvider(ctx, t, c)
	if err != nil || !provider.CanLogout() {
		return Begun{}, err
	}
	var subject serviceprovider.NameID
	if err := json.Unmarshal([]byte(at.Hint), &subject); err != nil {
		return Begun{}, err
	}
	message, pending, err := provider.BeginLogout(subject, at.ProviderID, s.now())
	return Begun{URL: message.URL, Form: message.Form, State: pending.RelayState}, err
}

// LogoutMessage is a message for the SLO URL of a connection.
type LogoutMessage struct {
	Query string     // of the URL, as it was sent: the redirect binding
	Form  url.Values // the POST binding, instead of Query
}

// SingleLogout receives a message of single logout from a SAML identity provider, through a browser.
//
// A request ends the sessions here that it names, once, and is answered: the browser is sent to the
// URL of the result. It is accepted while the connection is disabled, too, because its sessions stay.
// An answer to a request of [Service.BeginLogout] has only its RelayState as the result: the browser
// for which it was made continues by it, see [Service.FinishLogout]. The session here ended before, so
// the status of the answer has no effect.
//
// SingleLogout fails with [federation.ErrNotFound], also for other kinds than SAML, or with [*Failure].
func (s *Service) SingleLogout(ctx context.Context, t federation.Tenant, slug string, m LogoutMessage) (Begun, error) {
	c, err := s.Connections.BySlug(ctx, t.ID, slug)
	if err == nil && c.Kind != federation.SAML {
		err = federation.ErrNotFound
	}
	if err != nil {
		return Begun{}, err
	}
	b, err := s.singleLogout(ctx, t, c, m)
	return b, s.logged(ctx, c, failing(err))
}

func (s *Service) singleLogout(ctx context.Context, t federation.Tenant, c federation.Connection, m LogoutMessage) (Begun, error) {
	var l serviceprovider.Logout
	provider, err := s.verified(ctx, t, c, func(provider *serviceprovider.Provider) (err error) {
		if m.Form != nil {
			l, err = provider.ReadLogoutForm(m.Form, s.now())
		} else {
			l, err = provider.ReadLogoutQuery(m.Query, s.now())
		}
		return err
	})
	if err != nil || l.Request == nil {
		return Begun{State: l.RelayState}, err
	}
	if err := s.endBySAML(ctx, t.ID, c, provider, *l.Request); err != nil {
		return Begun{}, err
	}
	answer, err := provider.AnswerLogout(*l.Request, l.RelayState, false, s.now())
	return Begun{URL: answer.URL, Form: answer.Form}, err
}

// endBySAML ends the sessions that a request names. The user of a NameID that is no key of links has
// none.
func (s *Service) endBySAML(ctx context.Context, tenantID string, c federation.Connection, p *serviceprovider.Provider, r serviceprovider.LogoutRequest) error {
	subject, err := subjectOf(p, r.Subject)
	if e, ok := errors.AsType[*serviceprovider.Error](err); ok && e.Class == serviceprovider.Misconfigured {
		return nil
	}
	if err != nil {
		return err
	}
	at := authn.AtProvider{ConnectionID: c.ID, Subject: subject, ProviderIDs: r.SessionIndexes}
	return s.Accounts.EndAtProvider(ctx, tenantID, at, func(ctx context.Context, tx *sqldb.Tx) error {
		first, err := once(ctx, tx, c, "logout "+r.ID, s.now().Add(samlprotocol.LogoutLifetime+2*samlprotocol.Skew))
		if err == nil && !first {
			err = &serviceprovider.Error{Class: serviceprovider.Stale, Detail: "the request was used before"}
		}
		return err
	})
}
