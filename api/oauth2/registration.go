package oauth2

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"strings"

	"stonetown/api/web"
	"stonetown/internal/ratelimit"
	"stonetown/oauth/client"
	"stonetown/oauth/keys"
	"stonetown/oauth/mtls"
	"stonetown/oauth/protocol"
	"stonetown/oauth/token"
)

// Clients is the part of [client.Registry] that the operations use for clients that register
// themselves.
type Clients interface {
	Settings(ctx context.Context, tenantID string) (client.Settings, error)
	Register(ctx context.Context, t protocol.Tenant, m client.Metadata, by string) (client.Registered, error)
	Managed(ctx context.Context, t protocol.Tenant, clientID, token string) (client.Application, error)
	UpdateRegistered(ctx context.Context, t protocol.Tenant, clientID, token string, m client.Metadata) (client.Registered, error)
	DeleteRegistered(ctx context.Context, t protocol.Tenant, clientID, token string) error
	Settle(ctx context.Context)
}

// initialAccess is the scope of tokens that permit registration (RFC 7591 §3): a caller that
// may register a client may also create an application.
const initialAccess = "applications:write"

// clientMetadata is the client metadata of requests and responses (RFC 7591 §2 and §3.2.1).
// The conversion below compiles only while all members are there.
type clientMetadata struct {
	ClientID     string `json:"client_id,omitzero"`
	ClientSecret string `json:"client_secret,omitzero"`

	RedirectURIs    []string          `json:"redirect_uris"`
	AuthMethod      client.AuthMethod `json:"token_endpoint_auth_method"`
	GrantTypes      []string          `json:"grant_types"`
	ResponseTypes   []string          `json:"response_types"`
	ApplicationType string            `json:"application_type"`
	Scope           string            `json:"scope"`

	ClientName        string   `json:"client_name"`
	ClientURI         string   `json:"client_uri,omitzero"`
	LogoURI           string   `json:"logo_uri,omitzero"`
	TOSURI            string   `json:"tos_uri,omitzero"`
	PolicyURI         string   `json:"policy_uri,omitzero"`
	Contacts          []string `json:"contacts,omitempty"`
	SoftwareID        string   `json:"software_id,omitzero"`
	SoftwareVersion   string   `json:"software_version,omitzero"`
	SoftwareStatement string   `json:"software_statement,omitzero"`

	JWKS       json.RawMessage `json:"jwks,omitzero"`
	JWKSURI    string          `json:"jwks_uri,omitzero"`
	IDTokenAlg keys.Alg        `json:"id_token_signed_response_alg"`

	AuthorizationAlg     keys.Alg `json:"authorization_signed_response_alg"`
	IntrospectionAlg     keys.Alg `json:"introspection_signed_response_alg"`
	UserInfoAlg          keys.Alg `json:"userinfo_signed_response_alg,omitzero"`
	AuthAlg              string   `json:"token_endpoint_auth_signing_alg,omitzero"`
	RequestURIs          []string `json:"request_uris,omitempty"`
	RequestObjectAlg     string   `json:"request_object_signing_alg,omitzero"`
	RequireRequestObject bool     `json:"require_signed_request_object"`

	PostLogoutRedirectURIs            []string `json:"post_logout_redirect_uris,omitempty"`
	BackchannelLogoutURI              string   `json:"backchannel_logout_uri,omitzero"`
	BackchannelLogoutSessionRequired  bool     `json:"backchannel_logout_session_required"`
	FrontchannelLogoutURI             string   `json:"frontchannel_logout_uri,omitzero"`
	FrontchannelLogoutSessionRequired bool     `json:"frontchannel_logout_session_required"`

	RequirePAR          bool       `json:"require_pushed_authorization_requests"`
	DPoPBound           bool       `json:"dpop_bound_access_tokens"`
	Certificate         mtls.Names `json:",embed"`
	CertificateBound    bool       `json:"tls_client_certificate_bound_access_tokens,omitzero"`
	DefaultMaxAge       *int       `json:"default_max_age,omitzero"`
	RequireAuthTime     bool       `json:"require_auth_time,omitzero"`
	SectorIdentifierURI string     `json:"sector_identifier_uri,omitzero"`
	InitiateLoginURI    string     `json:"initiate_login_uri,omitzero"`

	Others map[string]json.RawMessage `json:",embed"`
}

// information is the response to a registration (RFC 7591 §3.2.1, RFC 7592 §3).
type information struct {
	clientMetadata `json:",inline"`

	IssuedAt        int64  `json:"client_id_issued_at"`
	SecretExpiresAt *int64 `json:"client_secret_expires_at,omitzero"` // with a secret: 0, it does not expire
	Token           string `json:"registration_access_token"`
	URI             string `json:"registration_client_uri"`
}

// RegisterClient is the client registration endpoint (RFC 7591 §3).
func (h *Handlers) RegisterClient(w http.ResponseWriter, r *http.Request) {
	if err := h.registerClient(w, r); err != nil {
		h.Server.Fail(w, r, registrationRefusal(r, err))
	}
}

func (h *Handlers) registerClient(w http.ResponseWriter, r *http.Request) error {
	mode, err := h.registrationOn(r)
	if err != nil {
		return err
	}
	by := ""
	if mode != client.DCROpen || len(r.Header["Authorization"]) > 0 {
		if err := h.Server.Authorize(w, r, initialAccess, ratelimit.Token); err != nil {
			return err
		}
		by = web.InfoOf(r.Context()).Principal.Subject
	}
	said, err := readMetadata(w, r)
	if err != nil {
		return err
	}
	c, err := h.Clients.Register(r.Context(), tenantOf(r), said, by)
	if err != nil {
		return err
	}
	return writeInformation(w, r, http.StatusCreated, c)
}

// GetClient reads the registration of a client (RFC 7592 §2.1).
func (h *Handlers) GetClient(w http.ResponseWriter, r *http.Request, clientID string) {
	a, token, err := h.managed(w, r, clientID)
	if err == nil {
		err = writeInformation(w, r, http.StatusOK, client.Registered{Application: a, Token: token})
	}
	if err != nil {
		h.Server.Fail(w, r, registrationRefusal(r, err))
	}
}

// PutClient updates the registration of a client (RFC 7592 §2.2).
func (h *Handlers) PutClient(w http.ResponseWriter, r *http.Request, clientID string) {
	if err := h.putClient(w, r, clientID); err != nil {
		h.Server.Fail(w, r, registrationRefusal(r, err))
	}
}

func (h *Handlers) putClient(w http.ResponseWriter, r *http.Request, clientID string) error {
	_, token, err := h.managed(w, r, clientID)
	if err != nil {
		return err
	}
	said, err := readMetadata(w, r)
	if err != nil {
		return err
	}
	c, err := h.Clients.UpdateRegistered(r.Context(), tenantOf(r), clientID, token, said)
	if err != nil {
		return err
	}
	return writeInformation(w, r, http.StatusOK, c)
}

// DeleteClient deletes a client at its request (RFC 7592 §2.3).
func (h *Handlers) DeleteClient(w http.ResponseWriter, r *http.Request, clientID string) {
	_, token, err := h.managed(w, r, clientID)
	if err == nil {
		err = h.Clients.DeleteRegistered(r.Context(), tenantOf(r), clientID, token)
	}
	if err != nil {
		h.Server.Fail(w, r, registrationRefusal(r, err))
		return
	}
	h.Clients.Settle(r.Context())
	w.WriteHeader(http.StatusNoContent)
}

// registrationOn responds with 404 if the tenant has not enabled registration.
func (h *Handlers) registrationOn(r *http.Request) (client.DCRMode, error) {
	settings, err := h.Clients.Settings(r.Context(), web.InfoOf(r.Context()).Tenant.ID)
	if err == nil && settings.DCRMode == client.DCROff {
		err = web.NotFound()
	}
	return settings.DCRMode, err
}

// managed returns the application of a request to manage a client, with its registration
// access token, and counts the request for the application, which becomes the actor.
func (h *Handlers) managed(w http.ResponseWriter, r *http.Request, clientID string) (a client.Application, raw string, err error) {
	if _, err := h.registrationOn(r); err != nil {
		return a, "", err
	}
	if header := r.Header["Authorization"]; len(header) == 1 {
		if scheme, value, _ := strings.Cut(header[0], " "); strings.EqualFold(scheme, protocol.TokenTypeBearer) {
			raw = value
		}
	}
	if a, err = h.Clients.Managed(r.Context(), tenantOf(r), clientID, raw); err != nil {
		return a, "", err
	}
	web.InfoOf(r.Context()).Principal = &token.Principal{Subject: a.ClientID, ClientID: a.ClientID}
	return a, raw, h.Server.LimitClient(r.Context(), w, ratelimit.Token, a.ClientID)
}

// registrationRefusal returns the response to a refusal.
func registrationRefusal(r *http.Request, err error) error {
	if errors.Is(err, client.ErrRegistrationToken) {
		return &web.Error{
			Status: http.StatusUnauthorized, Code: "invalid_token", Message: client.ErrRegistrationToken.Error(),
			Header: http.Header{"Www-Authenticate": {`Bearer realm="` + web.InfoOf(r.Context()).Tenant.BaseURL + `", error="invalid_token"`}},
		}
	}
	if refused, ok := errors.AsType[*protocol.Error](err); ok && refused.Code == protocol.UnauthorizedClient { // RFC 7592 §2
		return &web.Error{Status: http.StatusForbidden, Code: string(refused.Code), Message: refused.Description}
	}
	return refusal(r, err)
}

// readMetadata reads client metadata.
func readMetadata(w http.ResponseWriter, r *http.Request) (client.Metadata, error) {
	var said clientMetadata
	r.Body = http.MaxBytesReader(w, r.Body, maxForm)
	err := web.DecodeJSON(w, r, &said)
	if refused, ok := errors.AsType[*web.Error](err); ok {
		err = &protocol.Error{Code: protocol.InvalidClientMetadata, Description: refused.Message}
	}
	return client.Metadata(said), err
}

func writeInformation(w http.ResponseWriter, r *http.Request, status int, c client.Registered) error {
	i := information{
		clientMetadata: clientMetadata(c.Metadata()), IssuedAt: c.Application.CreatedAt.Unix(), Token: c.Token,
		URI: web.InfoOf(r.Context()).Tenant.BaseURL + protocol.RegisterPath + "/" + c.Application.ClientID,
	}
	if c.Secret != "" {
		i.SecretExpiresAt = new(int64)
	}
	return web.WriteJSON(w, status, i)
}
