package saml

import (
	"context"
	"errors"
	"slices"

	"stonetown/internal/samlprotocol"
	"stonetown/oauth/access"
	"stonetown/oauth/authorization"
	"stonetown/oauth/client"
	"stonetown/oauth/protocol"
	"stonetown/oauth/saml/identityprovider"
)

// Read validates the request of a service provider (SAML Core §3.4.1). Refusals are
// [*authorization.PageError], or [*authorization.RedirectError] if the service provider can be
// told: then [Service.Refuse] returns the message. Any other error is the server's.
func (s *Service) Read(ctx context.Context, tenant protocol.Tenant, m samlprotocol.Received) (authorization.Request, error) {
	issuer, err := m.Issuer()
	if err != nil {
		return authorization.Request{}, s.refusal(ctx, tenant, client.Application{}, err)
	}
	app, sp, err := s.application(ctx, tenant, issuer)
	switch {
	case err != nil:
		return authorization.Request{}, err
	case app.State != client.Enabled:
		return authorization.Request{}, errDisabled
	}
	p, err := s.provider(ctx, tenant)
	if err != nil {
		return authorization.Request{}, err
	}
	asked, err := p.ReadRequest(sp, m, s.Clock())
	r := request(app, asked)
	var unsupported *identityprovider.UnsupportedError
	switch {
	case errors.As(err, &unsupported):
		s.Logger.InfoContext(ctx, "SAML request refused", "tenant", tenant.ID, "application", app.ID, "detail", unsupported.Detail)
		return r, r.Refusal(string(unsupported.Status), unsupported.Detail)
	case err != nil:
		return r, s.refusal(ctx, tenant, app, err)
	}
	return r, nil
}

var (
	errDisabled    = &authorization.PageError{Description: "the application is disabled"}
	errNotLaunched = &authorization.PageError{Description: "a sign-in to this application must start at the application"}
)

// request returns the authorization request for a request of an application.
func request(app client.Application, asked identityprovider.Request) authorization.Request {
	r := authorization.Request{ClientID: app.ClientID, Scopes: scopesOf(app.ServiceProvider), MaxAge: -1, SAML: &asked}
	if asked.ForceAuthn {
		r.Prompt = append(r.Prompt, "login")
	}
	if asked.Passive {
		r.Prompt = append(r.Prompt, "none")
	}
	if asked.Subject != nil && asked.Subject.Format == identityprovider.EmailAddress {
		r.LoginHint = asked.Subject.Value
	}
	if len(asked.AuthnContexts) > 0 {
		weak := func(class string) bool { return !isStrong(class) }
		r.AAL2 = isStrong(asked.AuthnContexts[0])
		r.StepUp = r.AAL2 && !slices.ContainsFunc(asked.AuthnContexts, weak)
	}
	return r
}

// isStrong reports whether a class of authentication requires a second factor.
func isStrong(class string) bool { return slices.Index(contexts, class) >= strongContext }

// Launch returns the request of a user who goes from the tenant to an application (SAML Profiles
// §4.1.5), which must allow it. The user confirms it (prompt select_account) unless confirmed, as a
// link of another site may have led here. It fails with [*authorization.PageError].
func (s *Service) Launch(ctx context.Context, tenant protocol.Tenant, applicationID, relayState string, confirmed bool) (authorization.Request, error) {
	app, err := s.Clients.ByID(ctx, tenant.ID, applicationID)
	switch {
	case client.IsNotFound(err) || err == nil && app.Type != client.SAML:
		return authorization.Request{}, &authorization.PageError{Description: "the application is unknown"}
	case err != nil:
		return authorization.Request{}, err
	case app.State != client.Enabled:
		return authorization.Request{}, errDisabled
	case !app.ServiceProvider.AllowIDPInitiated:
		return authorization.Request{}, errNotLaunched
	case len(relayState) > samlprotocol.MaxRelayState:
		return authorization.Request{}, &authorization.PageError{Description: "RelayState is too long"}
	}
	sp, err := serviceProvider(app)
	if err != nil {
		return authorization.Request{}, err
	}
	r := request(app, identityprovider.Unsolicited(sp, relayState))
	if !confirmed {
		r.Prompt = []string{"select_account"}
	}
	return r, nil
}

// Respond returns the message with the assertion for a request whose user has signed in and agreed
// to its scopes, and stores the sign-in. It fails as [Service.Read] does.
func (s *Service) Respond(ctx context.Context, tenant protocol.Tenant, r authorization.Request, by access.Authentication) (samlprotocol.Message, error) {
	app, sp, p, err := s.parties(ctx, tenant, r.ClientID)
	if err != nil {
		return samlprotocol.Message{}, err
	}
	switch { // the application may have changed since the request
	case app.State != client.Enabled:
		return samlprotocol.Message{}, errDisabled
	case r.SAML.ID == "" && !app.ServiceProvider.AllowIDPInitiated:
		return samlprotocol.Message{}, errNotLaunched
	}
	user, err := s.Users.Person(ctx, tenant.ID, by.UserID)
	if errors.Is(err, access.ErrUserGone) {
		return samlprotocol.Message{}, r.Refusal(protocol.AccessDenied, err.Error())
	}
	if err != nil {
		return samlprotocol.Message{}, err
	}
	name, err := s.nameID(tenant, app, user, by.SessionID)
	if err != nil {
		return samlprotocol.Message{}, err
	}
	switch {
	case name == "":
		return samlprotocol.Message{}, &authorization.PageError{Description: "the application requires a verified e-mail address; verify yours and try again"}
	case app.ServiceProvider.NameIDFormat == "emailAddress" && !slices.Contains(r.Scopes, "email"):
		return samlprotocol.Message{}, r.Refusal(protocol.AccessDenied, "the user does not allow the e-mail address, which is the name at the application")
	}
	assertion := identityprovider.Assertion{
		NameID: p.NameID(sp, name), AuthnInstant: by.AuthTime, AuthnContext: contextOf(by, r.SAML.AuthnContexts),
		Attributes: attributes(app.ServiceProvider, user, r.Scopes),
	}
	assertion.SessionIndex, err = s.Access.SignIn(ctx, tenant, access.Grant{
		ClientID: app.ClientID, Authentication: by, Scopes: r.Scopes, Audience: app.ServiceProvider.EntityID, NameID: name,
	})
	if err != nil {
		return samlprotocol.Message{}, err
	}
	message, err := p.Respond(sp, *r.SAML, assertion, s.Clock())
	var unsupported *identityprovider.UnsupportedError
	if errors.As(err, &unsupported) {
		return message, r.Refusal(string(unsupported.Status), unsupported.Detail)
	}
	if err != nil {
		return message, s.refusal(ctx, tenant, app, err)
	}
	return message, s.Clients.NoteUse(ctx, app)
}

// contextOf returns the class of authentication of a sign-in: the first of the requested ones that it
// satisfies, if there is one.
func contextOf(by access.Authentication, requested []string) string {
	strong := !by.SecondFactor.IsZero()
	for _, class := range requested {
		if strong || !isStrong(class) {
			return class
		}
	}
	if strong {
		return contexts[strongContext]
	}
	return contexts[plainContext]
}

// Refuse returns the message with a status instead of an assertion. It fails as [Service.Read] does,
// with [*authorization.PageError] only.
func (s *Service) Refuse(ctx context.Context, tenant protocol.Tenant, refused *authorization.RedirectError) (samlprotocol.Message, error) {
	app, sp, p, err := s.parties(ctx, tenant, refused.ClientID)
	if err != nil {
		return samlprotocol.Message{}, err
	}
	status, ok := statuses[refused.Code]
	if !ok {
		status = identityprovider.Status(refused.Code)
	}
	message, err := p.Refuse(sp, *refused.SAML, status, s.Clock())
	if err != nil {
		return message, s.refusal(ctx, tenant, app, err)
	}
	return message, nil
}

// statuses are the statuses for the refusals of authorization requests.
var statuses = map[string]identityprovider.Status{
	protocol.LoginRequired: identityprovider.NoPassive, protocol.InteractionRequired: identityprovider.NoPassive, protocol.ConsentRequired: identityprovider.NoPassive,
	protocol.UnmetRequirements: identityprovider.NoAuthnContext, protocol.AccessDenied: identityprovider.RequestDenied,
}

// parties returns both sides of a sign-in. It fails with [*authorization.PageError].
func (s *Service) parties(ctx context.Context, tenant protocol.Tenant, clientID string) (app client.Application, sp identityprovider.ServiceProvider, p *identityprovider.Provider, err error) {
	app, err = s.Clients.ByClientID(ctx, tenant.ID, clientID)
	if client.IsNotFound(err) {
		err = &authorization.PageError{Description: "the application is unknown"}
	}
	if err == nil {
		sp, err = serviceProvider(app)
	}
	if err == nil {
		p, err = s.provider(ctx, tenant)
	}
	return app, sp, p, err
}
