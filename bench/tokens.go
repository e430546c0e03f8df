package bench

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strings"

	"stonetown/tuplestore"
)

// issuing is the data of measurements of a token endpoint: one application, and a user who
// has signed in.
type issuing struct {
	*HTTP
	clientID, clientSecret string
	session                string // of the user
	token                  string // of the application
}

const (
	tokenPath      = "/oauth2/token"
	introspectPath = "/oauth2/introspect"

	workload    = "tokens"
	tokenTarget = "https://api.example.com" // the audience of exchanged tokens
	callback    = "https://app.example.com/callback"
	// The pair of RFC 7636, appendix B.
	verifier, challenge = "dBjftJeZ4CVP-mB92K27uhbUJU1p1r_wW1gFWFOEjXk", "E9Melhoa2OwvFrEMTJguCHaoeK1t8URWbuGJSstw-cM"
)

// tokens measures token requests: client credentials, token exchange, authorization code
// including the request of the user's browser; and introspection.
func (r *run) tokens(ctx context.Context, h *HTTP) {
	if r.err != nil {
		return
	}
	i, err := newIssuing(ctx, h)
	if err != nil {
		r.err = fmt.Errorf("prepare tokens: %w", err)
		return
	}
	for _, n := range []int{1, remoteWorkers} {
		measures := []struct {
			name, path string
			form       url.Values
		}{
			{"client credentials", tokenPath, url.Values{"grant_type": {"client_credentials"}}},
			{"token exchange", tokenPath, url.Values{
				"grant_type": {"urn:ietf:params:oauth:grant-type:token-exchange"}, "audience": {tokenTarget},
				"subject_token": {i.token}, "subject_token_type": {"urn:ietf:params:oauth:token-type:access_token"},
			}},
			{"introspection", introspectPath, url.Values{"token": {i.token}}},
		}
		var meters []*meter
		for _, m := range measures {
			meters = append(meters, i.posting(h.Name(), m.name, n, m.path, m.form))
		}
		meters = append(meters, newMeter(Figure{Target: h.Name(), Workload: workload, Measure: "authorization code", Workers: n, PerCall: 1}, func(int) func(context.Context) error {
			return i.signIn
		}))
		if r.EchoURL != "" {
			echo := *i
			echo.HTTP = newHTTP(r.EchoURL, "", n)
			meters = append(meters, echo.posting(echoName, measures[0].name, n, tokenPath, measures[0].form))
		}
		r.measure(ctx, meters...)
	}
}

// newIssuing creates an application that may exchange tokens, and signs its user in.
func newIssuing(ctx context.Context, h *HTTP) (*issuing, error) {
	i := &issuing{HTTP: h}
	var made struct {
		Data struct {
			ClientID     string `json:"client_id"`
			ClientSecret string `json:"client_secret"`
		} `json:"data"`
	}
	limits := map[string]string{"token.ip": "unlimited", "token.caller": "unlimited", "client.caller": "unlimited", "sign-in.ip": "unlimited"}
	err := errors.Join(
		h.request(ctx, http.MethodPatch, "/api/v1/settings", map[string]any{"rate_limits": limits}, nil),
		h.request(ctx, http.MethodPost, "/api/v1/applications", map[string]any{
			"name": "bench", "type": "server", "redirect_uris": []string{callback}, "allowed_scopes": []string{"openid", "email", "resources:read"},
			"token_exchange": map[string]any{"enabled": true, "allowed_audiences": []string{tokenTarget}},
		}, &made),
	)
	if err != nil {
		return nil, err
	}
	i.clientID, i.clientSecret = made.Data.ClientID, made.Data.ClientSecret
	mayCall := tuplestore.Tuple{
		Object: tuplestore.Object{Type: "audience", ID: tokenTarget}, Relation: "caller",
		Subject: tuplestore.Subject{Type: "application", ID: i.clientID},
	}
	if err := h.Write(ctx, []tuplestore.Tuple{mayCall}); err != nil {
		return nil, err
	}
	var session struct {
		Data struct {
			Token string `json:"session_token"`
		} `json:"data"`
	}
	if err := h.request(ctx, http.MethodPost, "/api/v1/auth/sign-in", map[string]string{"email": h.email, "password": h.password}, &session); err != nil {
		return nil, err
	}
	i.session = session.Data.Token
	i.token, err = i.issue(ctx, url.Values{"grant_type": {"client_credentials"}, "scope": {"resources:read"}})
	return i, err
}

// posting returns the meter of one form that is posted repeatedly.
func (i *issuing) posting(target, measure string, workers int, path string, form url.Values) *meter {
	return newMeter(Figure{Target: target, Workload: workload, Measure: measure, Workers: workers, PerCall: 1}, func(int) func(context.Context) error {
		var answer bytes.Buffer
		return func(ctx context.Context) error {
			answer.Reset()
			err := i.post(ctx, path, form, &answer)
			if err == nil && target != echoName && !bytes.Contains(answer.Bytes(), []byte(`"access_token"`)) && !bytes.Contains(answer.Bytes(), []byte(`"active":true`)) {
				err = fmt.Errorf("%s: %.300s", measure, answer.Bytes())
			}
			return err
		}
	})
}

// post sends a form as the application.
func (i *issuing) post(ctx context.Context, path string, form url.Values, answer *bytes.Buffer) error {
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, i.BaseURL+path, strings.NewReader(form.Encode()))
	if err != nil {
		return err
	}
	req.Header = http.Header{"Content-Type": {"application/x-www-form-urlencoded"}}
	req.SetBasicAuth(i.clientID, i.clientSecret)
	return i.do(req, answer)
}

func (i *issuing) issue(ctx context.Context, form url.Values) (string, error) {
	var answer bytes.Buffer
	var token struct {
		AccessToken string `json:"access_token"`
	}
	if err := i.post(ctx, tokenPath, form, &answer); err != nil {
		return "", err
	}
	return token.AccessToken, json.Unmarshal(answer.Bytes(), &token)
}

// signIn signs a user with a session in to an application: the browser requests a code, and
// the application requests tokens.
func (i *issuing) signIn(ctx context.Context) error {
	query := url.Values{
		"response_type": {"code"}, "client_id": {i.clientID}, "redirect_uri": {callback}, "scope": {"openid email"}, "state": {"state"},
		"code_challenge": {challenge}, "code_challenge_method": {"S256"},
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, i.BaseURL+"/oauth2/authorize?"+query.Encode(), nil)
	if err != nil {
		return err
	}
	req.AddCookie(&http.Cookie{Name: "__Host-sid", Value: i.session})
	res, err := i.client.Transport.RoundTrip(req) // which follows no redirects
	if err != nil {
		return err
	}
	if err := res.Body.Close(); err != nil {
		return err
	}
	to, err := res.Location()
	if err != nil || to.Query().Get("code") == "" {
		return fmt.Errorf("authorize: %s to %v, %w", res.Status, to, err)
	}
	_, err = i.issue(ctx, url.Values{"grant_type": {"authorization_code"}, "code": {to.Query().Get("code")}, "redirect_uri": {callback}, "code_verifier": {verifier}})
	return err
}
