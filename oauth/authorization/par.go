package authorization

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"slices"
	"time"

	"stonetown/oauth/client"
	"stonetown/oauth/protocol"
)

const (
	// requestURIPrefix begins the request_uri of pushed requests (RFC 9126 §2.2).
	requestURIPrefix = "urn:ietf:params:oauth:request_uri:"
	// pushedTTL is the lifetime of a pushed request.
	pushedTTL = 90 * time.Second
)

// Push stores an authorization request of an application (RFC 9126), and returns the
// request_uri for the browser and its lifetime. The request_uri is valid once. Refusals are
// [*protocol.Error].
func (s *Service) Push(ctx context.Context, tenant protocol.Tenant, by client.Credentials, params url.Values) (requestURI string, good time.Duration, err error) {
	if err := s.admit(ctx, tenant, by.ClientID); err != nil {
		return "", 0, err
	}
	app, err := s.authn.Authenticate(ctx, tenant, &by)
	if err != nil {
		return "", 0, err
	}
	if params.Has("request_uri") {
		return "", 0, protocol.NewError(protocol.InvalidRequest, "request_uri cannot be pushed")
	}
	params.Set("client_id", app.ClientID)
	key, err := s.authn.ProvenKey(tenant, app, by, protocol.PushPath)
	if err != nil {
		return "", 0, err
	}
	if err := s.authn.Admit(ctx, by, app.ClientID); err != nil {
		return "", 0, err
	}
	r, _, err := s.validate(ctx, tenant, params)
	var page *PageError
	var redirect *RedirectError
	switch {
	case errors.As(err, &page):
		return "", 0, protocol.NewError(protocol.InvalidRequest, page.Description)
	case errors.As(err, &redirect):
		return "", 0, protocol.NewError(protocol.Code(redirect.Code), redirect.Description)
	case err != nil:
		return "", 0, err
	case key != "" && r.Thumbprint != "" && r.Thumbprint != key: // RFC 9449 §10.1
		return "", 0, protocol.NewError(protocol.InvalidRequest, "dpop_jkt does not match the key of the DPoP proof")
	case key != "":
		r.Thumbprint = key
	}
	requestURI = protocol.NewToken(requestURIPrefix)
	return requestURI, pushedTTL, s.storeRequest(ctx, tenant, requestURI, r, "", pushedTTL)
}

// admit admits a client whose id is a URL, before it authenticates. It fails with
// [*protocol.Error].
func (s *Service) admit(ctx context.Context, tenant protocol.Tenant, clientID string) error {
	err := s.registry.AdmitDocument(ctx, tenant, clientID)
	if refused, ok := errors.AsType[*client.DocumentError](err); ok {
		return protocol.NewError(protocol.InvalidClient, refused.Error())
	}
	return err
}

// pushed returns the request of a request_uri and consumes it: a request_uri is valid for its
// own client only, and once (RFC 9126 §4). It fails as [Service.Authorize] does.
func (s *Service) pushed(ctx context.Context, tenant protocol.Tenant, params url.Values) (r Request, app client.Application, err error) {
	requestURI := params.Get("request_uri")
	refused := &PageError{"the request_uri is unknown, used or expired"}
	if len(params["request_uri"]) != 1 {
		return r, app, refused
	}
	f, err := s.readRequest(ctx, tenant, requestURI)
	r = f.Request
	switch {
	case errors.Is(err, ErrRequestNotFound) || errors.Is(err, ErrRequestExpired) || err == nil && !slices.Equal(params["client_id"], []string{r.ClientID}):
		return r, app, refused
	case err != nil:
		return r, app, err
	}
	n, err := s.db.Exec(ctx, `DELETE FROM authorization_requests WHERE tenant_id = $1 AND id = $2`, tenant.ID, protocol.Hash(requestURI))
	if err != nil {
		return r, app, fmt.Errorf("use pushed request: %w", err)
	}
	if n == 0 {
		return r, app, refused
	}
	named := url.Values{"client_id": {r.ClientID}, "redirect_uri": {r.RedirectURI}}
	c, err := s.named(ctx, tenant, named)
	if app = c.app; err == nil {
		r.known = &c
		err = redirectsTo(app, named)
	}
	if err == nil && app.State != client.Enabled {
		err = r.Refusal(string(protocol.UnauthorizedClient), "the application is disabled")
	}
	return r, app, err
}
