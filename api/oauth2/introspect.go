package oauth2

import (
	"cmp"
	"mime"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"stonetown/api/web"
	"stonetown/internal/ratelimit"
	"stonetown/oauth/client"
	"stonetown/oauth/detail"
	"stonetown/oauth/token"
)

// RevokeToken is the revocation endpoint (RFC 7009).
func (h *Handlers) RevokeToken(w http.ResponseWriter, r *http.Request) {
	err := h.presented(w, r, func(by client.Credentials, token string) error {
		return h.Tokens.Revoke(r.Context(), tenantOf(r), by, token)
	})
	if err != nil {
		h.Server.Fail(w, r, refusal(r, err))
		return
	}
	w.WriteHeader(http.StatusOK)
}

// introspectionJWT is the media type of signed responses (RFC 9701 §4).
const introspectionJWT = "application/token-introspection+jwt"

// IntrospectToken is the introspection endpoint (RFC 7662). A client that accepts a signed response
// gets one.
func (h *Handlers) IntrospectToken(w http.ResponseWriter, r *http.Request) {
	err := h.presented(w, r, func(by client.Credentials, token string) error {
		i, err := h.Tokens.Introspect(r.Context(), tenantOf(r), by, token)
		switch {
		case err != nil:
			return err
		case !accepts(r, introspectionJWT):
			return web.WriteJSON(w, http.StatusOK, introspectionOf(i))
		}
		signed, err := h.Tokens.SignIntrospection(r.Context(), tenantOf(r), by.ClientID, introspectionOf(i))
		if err == nil {
			err = writeJWT(w, introspectionJWT, signed)
		}
		return err
	})
	if err != nil {
		h.Server.Fail(w, r, refusal(r, err))
	}
}

// accepts reports whether a request names a media type in Accept (RFC 9110 §12.5.1).
func accepts(r *http.Request, mediaType string) bool {
	for _, text := range strings.Split(strings.Join(r.Header.Values("Accept"), ","), ",") {
		named, params, err := mime.ParseMediaType(text)
		weight, weightErr := strconv.ParseFloat(cmp.Or(params["q"], "1"), 64)
		if err == nil && weightErr == nil && named == mediaType && weight > 0 {
			return true
		}
	}
	return false
}

// introspection is the state of a token on the wire (RFC 7662 §2.2).
type introspection struct {
	Active    bool               `json:"active"`
	TokenType string             `json:"token_type,omitzero"`
	ClientID  string             `json:"client_id,omitzero"`
	Subject   string             `json:"sub,omitzero"`
	Username  string             `json:"username,omitzero"`
	Scope     string             `json:"scope,omitzero"`
	Audience  []string           `json:"aud,omitzero"`
	Issuer    string             `json:"iss,omitzero"`
	TokenID   string             `json:"jti,omitzero"`
	SessionID string             `json:"sid,omitzero"`
	TenantID  string             `json:"tid,omitzero"`
	ACR       string             `json:"acr,omitzero"`
	Confirm   token.Confirmation `json:"cnf,omitzero"`
	Act       *token.Actor       `json:"act,omitzero"`
	IssuedAt  int64              `json:"iat,omitzero"`
	NotBefore int64              `json:"nbf,omitzero"`
	ExpiresAt int64              `json:"exp,omitzero"`
	AuthTime  int64              `json:"auth_time,omitzero"`

	Details []detail.Detail `json:"authorization_details,omitzero"`
}

func introspectionOf(i token.Introspection) introspection {
	return introspection{
		i.Active, i.TokenType, i.ClientID, i.Subject, i.Username, i.Scope, i.Audience, i.Issuer, i.TokenID, i.SessionID, i.TenantID,
		i.AuthenticationContext,
		i.Confirmation,
		i.Actor, unix(i.IssuedAt), unix(i.NotBefore), unix(i.ExpiresAt), unix(i.AuthTime), i.Details,
	}
}

// presented reads a request about a token.
func (h *Handlers) presented(w http.ResponseWriter, r *http.Request, do func(by client.Credentials, token string) error) error {
	return h.asClient(w, r, ratelimit.Client, func(by client.Credentials, form url.Values) error {
		token := form.Get("token")
		if token == "" {
			return invalidRequest("token is missing")
		}
		return do(by, token)
	})
}

// unix returns seconds since 1970; 0 for the zero time.
func unix(t time.Time) int64 {
	if t.IsZero() {
		return 0
	}
	return t.Unix()
}
