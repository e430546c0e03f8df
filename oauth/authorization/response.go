package authorization

import (
	"context"
	"net/url"
	"time"

	"stonetown/oauth/protocol"
)

// The response modes. Those that end in jwt have the parameters in a JWT (JARM §2.3).
const (
	query       = "query"
	FormPost    = "form_post" // OAuth 2.0 Form Post Response Mode
	queryJWT    = "query.jwt"
	formPostJWT = "form_post.jwt"
)

// Posted reports whether a form that the browser posts has the response, rather than the query of the
// redirect URI.
func Posted(mode string) bool { return mode == FormPost || mode == formPostJWT }

// responseTTL is the lifetime of a response that is a JWT. JARM §2.1 recommends at most 10 minutes.
const responseTTL = 5 * time.Minute

// Respond returns the parameters of a response, or of a refusal, to an application in a response mode:
// params, or a JWT of them for the application (JARM §2.1). It fails with [*PageError] if the
// application was deleted.
func (s *Service) Respond(ctx context.Context, tenant protocol.Tenant, clientID, mode string, params url.Values) (url.Values, error) {
	if mode != queryJWT && mode != formPostJWT {
		return params, nil
	}
	c, err := s.known(ctx, tenant, &Request{ClientID: clientID})
	if err != nil {
		return nil, err
	}
	claims := map[string]any{}
	for name := range params {
		claims[name] = params.Get(name)
	}
	claims["iss"], claims["aud"], claims["exp"] = tenant.BaseURL, clientID, s.clock().Add(responseTTL).Unix()
	token, err := s.keys.Sign(ctx, tenant, c.app.AuthorizationAlg, "JWT", claims)
	if err != nil {
		return nil, err
	}
	return url.Values{"response": {token}}, nil
}
