package peers

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/golang-jwt/jwt/v5"
	"github.com/jmespath-community/go-jmespath"
	"k8s.io/apiserver/pkg/apis/apiserver"
	"k8s.io/apiserver/plugin/pkg/authenticator/token/oidc"

	"stonetown/controlplane"
	"stonetown/identity/password/breached"
	"stonetown/internal/geo"
	"stonetown/internal/notify"
	"stonetown/internal/outbound"
	"stonetown/internal/seal"
	"stonetown/internal/sqldb"
	"stonetown/oauth/client"
	"stonetown/oauth/protocol"
	"stonetown/oauth/scope"
	"stonetown/server"
)

const (
	issuer   = "https://acme.example.com"
	callback = "https://app.example.com/cb"
	verifier = "dBjftJeZ4CVP-mB92K27uhbUJU1p1r_wW1gFWFOEjXk"
	password = "correct horse battery staple"
)

// noMail drops messages.
type noMail struct{}

func (noMail) SendMail(context.Context, notify.Mail) error    { return nil }
func (noMail) SendText(context.Context, string, string) error { return nil }
func (noMail) Accepts(string) bool                            { return true }

// product is the whole product with one tenant.
type product struct {
	*http.Client // leads to the product, whatever the address
	t            *testing.T
	token        string // of an application with all scopes
}

func newProduct(t *testing.T) *product {
	t.Helper()
	ctx := t.Context()
	key, err := seal.NewKey(bytes.Repeat([]byte{1}, seal.KeySize))
	if err != nil {
		t.Fatal(err)
	}
	s, err := server.Open(ctx, server.Config{
		Database: sqldb.Config{URL: "sqlite://" + filepath.Join(t.TempDir(), "test.db")}, MasterKey: key, Mail: noMail{}, Texts: noMail{},
		BreachedPasswords: breached.None{}, GeoIP: geo.None{}, Outbound: outbound.New(outbound.Config{}), Logger: slog.New(slog.DiscardHandler),
	})
	if err != nil {
		t.Fatal(err)
	}
	running, stop := context.WithCancel(context.Background())
	var background sync.WaitGroup
	background.Go(func() { s.Run(running) })
	t.Cleanup(func() {
		stop()
		background.Wait()
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
	var tenant controlplane.Tenant
	err = s.DB.Tx(ctx, func(tx *sqldb.Tx) error {
		org, err := s.Organizations.CreateOrganization(ctx, tx, "org", "Organisation")
		if err == nil {
			tenant, err = s.Organizations.CreateTenant(ctx, tx, controlplane.NewTenant{OrgID: org.ID, Slug: "acme", Name: "Acme", BaseURL: issuer})
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	app, secret, err := s.OAuth.Clients.Create(ctx, tenant.ID, client.Application{Name: "admin", Type: client.Machine, AllowedScopes: scope.Builtin})
	if err != nil {
		t.Fatal(err)
	}
	handler, err := s.Handler()
	if err != nil {
		t.Fatal(err)
	}
	listening := httptest.NewTLSServer(handler)
	t.Cleanup(listening.Close)
	transport := listening.Client().Transport.(*http.Transport).Clone()
	transport.TLSClientConfig.InsecureSkipVerify = true // the certificate is that of another name
	transport.DialContext = func(ctx context.Context, network, _ string) (net.Conn, error) {
		return new(net.Dialer).DialContext(ctx, network, listening.Listener.Addr().String())
	}
	t.Cleanup(transport.CloseIdleConnections)
	p := &product{t: t, Client: &http.Client{
		Transport: transport, Timeout: 30 * time.Second, CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}}
	p.token = p.form(protocol.TokenPath, url.Values{"grant_type": {"client_credentials"}, "client_id": {app.ClientID}, "client_secret": {secret}})["access_token"].(string)
	return p
}

// send sends a request, which must succeed.
func (p *product) send(method, path, mediaType, body string, header http.Header) (*http.Response, map[string]any) {
	p.t.Helper()
	req, err := http.NewRequestWithContext(p.t.Context(), method, issuer+path, strings.NewReader(body))
	if err != nil {
		p.t.Fatal(err)
	}
	if header != nil {
		req.Header = header
	}
	req.Header.Set("Content-Type", mediaType)
	res, err := p.Do(req)
	if err != nil {
		p.t.Fatal(err)
	}
	defer res.Body.Close()
	text, err := io.ReadAll(res.Body)
	if err != nil || res.StatusCode >= 400 {
		p.t.Fatalf("%s %s: %d %s %v", method, path, res.StatusCode, text, err)
	}
	var members map[string]any
	_ = json.Unmarshal(text, &members) // a redirect has a page
	return res, members
}

func (p *product) form(path string, form url.Values) map[string]any {
	p.t.Helper()
	_, body := p.send("POST", path, "application/x-www-form-urlencoded", form.Encode(), nil)
	return body
}

// call calls an operation of the API and returns the data of its response.
func (p *product) call(method, path string, body map[string]any) map[string]any {
	p.t.Helper()
	text, err := json.Marshal(body)
	if err != nil {
		p.t.Fatal(err)
	}
	_, answer := p.send(method, "/api/v1"+path, "application/json", string(text), http.Header{"Authorization": {"Bearer " + p.token}})
	data, _ := answer["data"].(map[string]any)
	return data
}

// signIn signs a user in to an application, and returns its tokens.
func (p *product) signIn(email, clientID, clientSecret, scope string) map[string]any {
	p.t.Helper()
	session := p.call("POST", "/auth/sign-in", map[string]any{"email": email, "password": password})["session_token"].(string)
	challenge := sha256.Sum256([]byte(verifier))
	res, _ := p.send("GET", protocol.AuthorizePath+"?"+url.Values{
		"response_type": {"code"}, "client_id": {clientID}, "redirect_uri": {callback}, "scope": {scope}, "state": {"s"},
		"code_challenge": {base64.RawURLEncoding.EncodeToString(challenge[:])}, "code_challenge_method": {"S256"},
	}.Encode(), "", "", http.Header{"Cookie": {"__Host-sid=" + session}})
	to, err := res.Location()
	if err != nil || !to.Query().Has("code") {
		p.t.Fatalf("authorize: %d to %s", res.StatusCode, to)
	}
	return p.form(protocol.TokenPath, url.Values{
		"grant_type": {"authorization_code"}, "client_id": {clientID}, "client_secret": {clientSecret}, "code": {to.Query().Get("code")},
		"redirect_uri": {callback}, "code_verifier": {verifier},
	})
}

// TestClaims shows the claims of an application to those that read them.
func TestClaims(t *testing.T) {
	p := newProduct(t)
	group := p.call("POST", "/groups", map[string]any{"slug": "platform", "name": "Platform"})["id"].(string)
	p.call("POST", "/resource-types", map[string]any{"name": "app", "relations": []any{map[string]any{"name": "admin"}, map[string]any{"name": "editor"}}})
	claim := func(name string, source map[string]any) map[string]any {
		return map[string]any{"name": name, "where": []any{"id_token", "userinfo"}, "source": source}
	}
	app := p.call("POST", "/applications", map[string]any{"name": "Products", "type": "server", "redirect_uris": []any{callback}, "claims": []any{
		claim("preferred_username", map[string]any{"attribute": "email"}),
		claim("groups", map[string]any{"groups": "slug"}),
		claim("roles", map[string]any{"relations": map[string]any{"type": "app", "id": "{client_id}"}}),
	}})
	clientID, clientSecret := app["client_id"].(string), app["client_secret"].(string)
	tokens := map[string]string{}
	for _, name := range []string{"ann", "bob", "eve"} {
		id := p.call("POST", "/users", map[string]any{"email": name + "@example.com", "email_verified": true, "password": password})["id"].(string)
		if name == "ann" {
			p.call("POST", "/groups/"+group+"/members", map[string]any{"user_id": id})
		}
		if role := map[string]string{"ann": "admin", "bob": "editor"}[name]; role != "" {
			p.call("POST", "/resources/app/"+clientID+"/relations", map[string]any{"relation": role, "subject": map[string]any{"type": "user", "id": id}})
		}
		tokens[name] = p.signIn(name+"@example.com", clientID, clientSecret, "openid")["id_token"].(string)
	}

	t.Run("Kubernetes", func(t *testing.T) { kubernetes(t, p, clientID, tokens) })

	claimsOf := func(name string) jwt.MapClaims {
		t.Helper()
		read := jwt.MapClaims{}
		if _, _, err := jwt.NewParser().ParseUnverified(tokens[name], read); err != nil {
			t.Fatal(err)
		}
		return read
	}
	t.Run("Grafana", func(t *testing.T) { // as role_attribute_path in docs/tokens.md
		path := jmespath.MustCompile("contains(roles[*], 'admin') && 'Admin' || contains(roles[*], 'editor') && 'Editor' || 'Viewer'")
		for name, want := range map[string]string{"ann": "Admin", "bob": "Editor", "eve": "Viewer"} {
			if got, err := path.Search(map[string]any(claimsOf(name))); err != nil || got != want {
				t.Errorf("%s: %v %v, want %s", name, got, err, want)
			}
		}
	})
	t.Run("Argo CD", func(t *testing.T) {
		// Argo CD reads the claim in this way (jwt.GetGroups, with the scope "groups").
		for name, want := range map[string][]string{"ann": {"platform"}, "bob": nil} {
			var got []string
			list, ok := claimsOf(name)["groups"].([]any)
			for _, item := range list {
				got = append(got, item.(string))
			}
			if !ok || !slices.Equal(got, want) {
				t.Errorf("%s: %v, want %v", name, got, want)
			}
		}
	})
}

// kubernetes authenticates users by the authenticator of the API server.
func kubernetes(t *testing.T, p *product, clientID string, tokens map[string]string) {
	prefix := "stonetown:"
	authenticator, err := oidc.New(t.Context(), oidc.Options{
		JWTAuthenticator: apiserver.JWTAuthenticator{
			Issuer: apiserver.Issuer{URL: issuer, Audiences: []string{clientID}},
			ClaimMappings: apiserver.ClaimMappings{
				Username: apiserver.PrefixedClaimOrExpression{Claim: "preferred_username", Prefix: &prefix},
				Groups:   apiserver.PrefixedClaimOrExpression{Claim: "groups", Prefix: &prefix},
			},
		},
		Client: p.Client, SupportedSigningAlgs: []string{"ES256"},
	})
	if err != nil {
		t.Fatal(err)
	}
	for end := time.Now().Add(30 * time.Second); authenticator.HealthCheck() != nil; time.Sleep(50 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatal(authenticator.HealthCheck())
		}
	}
	for name, want := range map[string][]string{"ann": {prefix + "platform"}, "bob": {}} {
		found, ok, err := authenticator.AuthenticateToken(t.Context(), tokens[name])
		if err != nil || !ok {
			t.Fatalf("%s: %t %v", name, ok, err)
		}
		if got := found.User.GetName(); got != prefix+name+"@example.com" {
			t.Errorf("name: %s", got)
		}
		if got := append([]string{}, found.User.GetGroups()...); !reflect.DeepEqual(got, want) {
			t.Errorf("groups of %s: %v, want %v", name, got, want)
		}
	}
	if _, ok, err := authenticator.AuthenticateToken(t.Context(), tokens["ann"][:len(tokens["ann"])-4]+"AAAA"); ok || err == nil {
		t.Error("a token with another signature is accepted:", fmt.Sprint(ok, err))
	}
}
