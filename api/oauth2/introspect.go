package oauth2

import (
	"net/http"
	"net/url"
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

// IntrospectToken is the introspection endpoint (RFC 7662).
func (h *Handlers) IntrospectToken(w http.ResponseWriter, r *http.Request) {
	var i token.Introspection
	err := h.presented(w, r, func(by client.Credentials, token string) (err error) {
		i, err = h.Tokens.Introspect(r.Context(), tenantOf(r), by, token)
		return err
	})
	if err == nil {
		err = web.WriteJSON(w, http.StatusOK, struct {
			Active    bool         `json:"active"`
			TokenType string       `json:"token_type,omitzero"`
			ClientID  string       `json:"client_id,omitzero"`
			Subject   string       `json:"sub,omitzero"`
			Username  string       `json:"username,omitzero"`
			Scope     string       `json:"scope,omitzero"`
			Audience  []string     `json:"aud,omitzero"`
			Issuer    string       `json:"iss,omitzero"`
			TokenID   string       `json:"jti,omitzero"`
			SessionID string       `json:"sid,omitzero"`
			TenantID  string       `json:"tid,omitzero"`
			ACR       string       `json:"acr,omitzero"`
			Confirm   keyOf        `json:"cnf,omitzero"`
			Act       *token.Actor `json:"act,omitzero"`
			IssuedAt  int64        `json:"iat,omitzero"`
			NotBefore int64        `json:"nbf,omitzero"`
			ExpiresAt int64        `json:"exp,omitzero"`
			AuthTime  int64        `json:"auth_time,omitzero"`

			Details []detail.Detail `json:"authorization_details,omitzero"`
		}{
			i.Active, i.TokenType, i.ClientID, i.Subject, i.Username, i.Scope, i.Audience, i.Issuer, i.TokenID, i.SessionID, i.TenantID,
			i.AuthenticationContext,
			keyOf{i.Thumbprint},
			i.Actor, unix(i.IssuedAt), unix(i.NotBefore), unix(i.ExpiresAt), unix(i.AuthTime), i.Details,
		})
	}
	if err != nil {
		h.Server.Fail(w, r, refusal(r, err))
	}
}

// keyOf names the key to which a token is bound (RFC 9449 §6.2).
type keyOf struct {
	Thumbprint string `json:"jkt"`
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
