// Package oauth2 has the authorization and token endpoints of a tenant and its discovery
// documents.
//
// It decodes requests and encodes responses as RFC 6749 defines them; package oauth decides
// about them. Errors of the token endpoint have the form of RFC 6749 §5.2 and, in addition,
// the members of all other errors of the API.
package oauth2

import (
	"context"
	"errors"
	"io"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/gorilla/mux"

	"stonetown/api/web"
	"stonetown/identity/branding"
	"stonetown/internal/ratelimit"
	"stonetown/oauth"
	"stonetown/oauth/access"
	"stonetown/oauth/assertion"
	"stonetown/oauth/authorization"
	"stonetown/oauth/client"
	"stonetown/oauth/detail"
	"stonetown/oauth/dpop"
	"stonetown/oauth/grants"
	"stonetown/oauth/protocol"
	"stonetown/oauth/token"
)

// Grants is the part of [grants.Service] that the operations use.
type Grants interface {
	Token(ctx context.Context, t protocol.Tenant, req grants.Request) (token.Response, error)
}

// Authorization is the part of [authorization.Service] that the operations use.
type Authorization interface {
	Authorize(ctx context.Context, t protocol.Tenant, params url.Values) (authorization.Request, client.Application, error)
	Push(ctx context.Context, t protocol.Tenant, by client.Credentials, params url.Values) (requestURI string, good time.Duration, err error)
	AuthorizeDevice(ctx context.Context, t protocol.Tenant, req authorization.DeviceAuthorizationRequest) (authorization.DeviceAuthorization, error)
	Suspend(ctx context.Context, t protocol.Tenant, r authorization.Request, browser string) (id string, err error)
	Resume(ctx context.Context, t protocol.Tenant, id string, browsers []string) (authorization.PendingRequest, error)
	IssueCode(ctx context.Context, t protocol.Tenant, r authorization.Request, by access.Authentication) (code string, err error)
	Respond(ctx context.Context, t protocol.Tenant, clientID, mode string, params url.Values) (url.Values, error)
	Consented(ctx context.Context, t protocol.Tenant, r authorization.Request, said authorization.Answer, userID string) (authorization.Request, error)
	Logout(ctx context.Context, t protocol.Tenant, params url.Values) (authorization.LogoutRequest, error)
	LogoutFrames(ctx context.Context, t protocol.Tenant, sessionID string) ([]string, error)
}

// Tokens is the part of [token.Service] that the operations use.
type Tokens interface {
	Revoke(ctx context.Context, t protocol.Tenant, by client.Credentials, bearer string) error
	Introspect(ctx context.Context, t protocol.Tenant, by client.Credentials, bearer string) (token.Introspection, error)
	SignIntrospection(ctx context.Context, t protocol.Tenant, clientID string, response any) (string, error)
	UserInfo(ctx context.Context, t protocol.Tenant, p *token.Principal) (map[string]any, client.Application, error)
	SignUserInfo(ctx context.Context, t protocol.Tenant, app client.Application, claims map[string]any) (string, error)
}

// Keys is the part of [stonetown/oauth/keys.Service] that the operations use.
type Keys interface {
	JWKS(ctx context.Context, t protocol.Tenant) ([]byte, error)
}

// Describer is the part of [oauth.Service] that the operations use.
type Describer interface {
	Metadata(ctx context.Context, t protocol.Tenant) (oauth.Metadata, error)
	ProtectedResource(t protocol.Tenant) oauth.ProtectedResource
}

// Brandings has the brandings of tenants; [branding.Registry] implements it.
type Brandings interface {
	Of(ctx context.Context, tenantID, mark string) (*branding.Branding, error)
}

// Handlers implements the operations. It is safe for concurrent use.
type Handlers struct {
	Grants        Grants
	Authorization Authorization
	Tokens        Tokens
	Keys          Keys
	Clients       Clients
	Describer     Describer
	Sessions      Sessions
	SAML          SAML
	SignIns       SignIns
	Brandings     Brandings
	// Server writes error responses, counts the requests of clients and decides which
	// origins may read responses.
	Server *web.Server
}

var _ ServerInterface = (*Handlers)(nil)

// Mount adds the operations to a router.
func (h *Handlers) Mount(router *mux.Router) {
	HandlerWithOptions(h, GorillaServerOptions{BaseRouter: router, ErrorHandlerFunc: func(w http.ResponseWriter, r *http.Request, err error) {
		if r.URL.Path == protocol.AuthorizePath { // it has its own error responses
			h.authorize(w, r, r.URL.Query())
			return
		}
		web.Parameters(h.Server.Fail)(w, r, err)
	}})
}

// TokenErrors is the error format of the token endpoint.
var TokenErrors = web.ErrorFormat{
	Body:   tokenErrorBody,
	Header: http.Header{"Pragma": {"no-cache"}}, // RFC 6749 §5.1
}

// tokenError has the members of RFC 6749 §5.2 and those of all other errors.
type tokenError struct {
	Error       string      `json:"error"`
	Description string      `json:"error_description"`
	Message     string      `json:"message"`
	Details     web.Details `json:"details"`
	RequestID   string      `json:"request_id"`
}

// tokenErrorBody translates errors of the pipeline to the codes of the RFC.
func tokenErrorBody(e *web.Error, requestID string) (status int, body any) {
	status, code := e.Status, e.Code
	switch code {
	case "unsupported_media_type", "payload_too_large":
		status, code = http.StatusBadRequest, string(protocol.InvalidRequest)
	case "internal_error":
		code = "server_error"
	case "service_unavailable":
		code = "temporarily_unavailable"
	}
	return status, tokenError{code, e.Message, e.Message, e.Details, requestID}
}

// IssueToken is the token endpoint (RFC 6749 §3.2).
func (h *Handlers) IssueToken(w http.ResponseWriter, r *http.Request) {
	if err := h.issueToken(w, r); err != nil {
		h.Server.Fail(w, r, refusal(r, err))
	}
}

func (h *Handlers) issueToken(w http.ResponseWriter, r *http.Request) error {
	form, err := readForm(w, r)
	if err != nil {
		return err
	}
	req := grants.Request{
		GrantType: form.Get("grant_type"),
		Scope:     form.Get("scope"),
		Details:   form.Get(detail.Parameter),
		Code:      form.Get("code"), RedirectURI: form.Get("redirect_uri"), CodeVerifier: form.Get("code_verifier"),
		RefreshToken:   form.Get("refresh_token"),
		DeviceCode:     form.Get("device_code"),
		GrantAssertion: form.Get("assertion"),
		Audience:       slices.Concat(form["audience"], form["resource"]),
		Exchange: grants.TokenExchange{
			SubjectToken: form.Get("subject_token"), SubjectTokenType: form.Get("subject_token_type"),
			ActorToken: form.Get("actor_token"), ActorTokenType: form.Get("actor_token_type"),
			RequestedTokenType: form.Get("requested_token_type"),
		},
	}
	if req.Credentials, err = h.client(w, r, form, ratelimit.Token); err != nil {
		return err
	}
	issued, err := h.Grants.Token(r.Context(), tenantOf(r), req)
	if err != nil {
		return err
	}
	return web.WriteJSON(w, http.StatusOK, struct {
		AccessToken string `json:"access_token"`
		TokenType   string `json:"token_type"`
		ExpiresIn   int    `json:"expires_in"`
		Scope       string `json:"scope"`
		Refresh     string `json:"refresh_token,omitzero"`
		IDToken     string `json:"id_token,omitzero"`
		IssuedType  string `json:"issued_token_type,omitzero"`

		Details []detail.Detail `json:"authorization_details,omitzero"`
	}{issued.AccessToken, issued.TokenType, int(issued.ExpiresIn.Seconds()), issued.Scope, issued.RefreshToken, issued.IDToken, issued.IssuedTokenType, issued.Details})
}

// refusal returns the response to a refusal of package oauth. A client that failed to
// authenticate gets a challenge (RFC 6749 §5.2).
func refusal(r *http.Request, err error) error {
	var refused *protocol.Error
	if !errors.As(err, &refused) {
		return err
	}
	e := &web.Error{Status: http.StatusBadRequest, Code: string(refused.Code), Message: refused.Description}
	if refused.Code == protocol.InvalidClient {
		e.Status = http.StatusUnauthorized
		e.Header = http.Header{"Www-Authenticate": {`Basic realm="` + web.InfoOf(r.Context()).Tenant.BaseURL + `", charset="UTF-8"`}}
	}
	return e
}

func invalidRequest(description string) error {
	return &protocol.Error{Code: protocol.InvalidRequest, Description: description}
}

// maxForm bounds the size of a form in bytes. It is more than any valid request has.
const maxForm = 64 << 10

// readForm reads the parameters from the body, and from there only: in a URL a
// secret would end up in logs (RFC 6749 §2.3.1). Parameters without a value
// count as absent; no parameter may come twice (§3.2), but for the two that name
// an audience, of which the service wants to know.
func readForm(w http.ResponseWriter, r *http.Request) (url.Values, error) {
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, maxForm))
	if err != nil {
		return nil, web.BodyError(err)
	}
	form, err := url.ParseQuery(string(body))
	if err != nil {
		return nil, invalidRequest("the body is not a valid form")
	}
	for name, values := range form {
		values = slices.DeleteFunc(values, func(v string) bool { return v == "" })
		if len(values) == 0 {
			delete(form, name)
			continue
		}
		form[name] = values
		if len(values) > 1 && name != "audience" && name != "resource" {
			return nil, invalidRequest("a parameter is given more than once")
		}
		for _, v := range values {
			if strings.IndexByte(v, 0) >= 0 || !utf8.ValidString(v) {
				return nil, invalidRequest("a parameter is not valid text")
			}
		}
	}
	return form, nil
}

// asClient reads a request of a client and passes it on.
func (h *Handlers) asClient(w http.ResponseWriter, r *http.Request, counted ratelimit.Family, do func(by client.Credentials, form url.Values) error) error {
	form, err := readForm(w, r)
	if err != nil {
		return err
	}
	by, err := h.client(w, r, form, counted)
	if err != nil {
		return err
	}
	return do(by, form)
}

// client reads the credentials of the client (RFC 6749 §2.3.1) from the body, or from the
// Authorization header, where both parts are form-encoded before they are joined. An assertion
// (RFC 7521 §4.2) names its client itself. From then on only pages of the client's origins may
// read the response. The service counts the request against a limit, which only an
// authenticated client can use up.
func (h *Handlers) client(w http.ResponseWriter, r *http.Request, form url.Values, counted ratelimit.Family) (client.Credentials, error) {
	c, err := credentials(r, form)
	if err == nil {
		if c.Certificate, err = web.InfoOf(r.Context()).ClientCertificate(); err != nil {
			err = invalidRequest(err.Error())
		}
	}
	h.Server.RestrictOrigin(w, r, c.ClientID)
	c.OfferNonce = func(nonce string) { w.Header().Set(dpop.NonceHeader, nonce) }
	c.Limit = func(ctx context.Context, key string) error { return h.Server.LimitClient(ctx, w, counted, key) }
	return c, err
}

func credentials(r *http.Request, form url.Values) (c client.Credentials, err error) {
	c.ClientID, c.ClientSecret, c.Proofs = form.Get("client_id"), form.Get("client_secret"), r.Header.Values(dpop.Header)
	if c.ClientSecret != "" {
		c.ClientAuthMethods = append(c.ClientAuthMethods, client.ClientSecretPost)
	}
	if err := readAssertion(form, &c); err != nil {
		return c, err
	}
	switch len(r.Header["Authorization"]) {
	case 0:
		return c, nil
	case 1:
	default:
		return c, invalidRequest("more than one Authorization header")
	}
	malformed := &protocol.Error{Code: protocol.InvalidClient, Description: "the Authorization header is not valid Basic authentication"}
	user, password, ok := r.BasicAuth()
	if !ok {
		return c, malformed
	}
	id, idErr := url.QueryUnescape(user)
	secret, secretErr := url.QueryUnescape(password)
	if idErr != nil || secretErr != nil || strings.IndexByte(id, 0) >= 0 || !utf8.ValidString(id) {
		return c, malformed
	}
	if c.ClientID != "" && c.ClientID != id {
		return c, invalidRequest("the client_id in the body differs from the one in the Authorization header")
	}
	c.ClientID = id
	if c.ClientSecret == "" {
		c.ClientSecret = secret
	}
	c.ClientAuthMethods = append(c.ClientAuthMethods, client.ClientSecretBasic)
	return c, nil
}

// readAssertion reads the assertion of the client, if there is one.
func readAssertion(form url.Values, c *client.Credentials) error {
	kind := form.Get("client_assertion_type")
	c.Assertion = form.Get("client_assertion")
	switch {
	case kind == "" && c.Assertion == "":
		return nil
	case kind != assertion.Type || c.Assertion == "":
		return invalidRequest("client_assertion requires the client_assertion_type " + assertion.Type)
	}
	c.ClientAuthMethods = append(c.ClientAuthMethods, client.PrivateKeyJWT)
	id, err := assertion.ClientID(c.Assertion)
	switch {
	case err != nil: // the service refuses it
	case c.ClientID == "":
		c.ClientID = id
	case c.ClientID != id: // the assertion is not one of that client
		return &protocol.Error{Code: protocol.InvalidClient, Description: "the client_id in the body differs from the subject of the assertion"}
	}
	return nil
}

func tenantOf(r *http.Request) protocol.Tenant {
	t := web.InfoOf(r.Context()).Tenant
	return protocol.Tenant{ID: t.ID, BaseURL: t.BaseURL}
}
