package oauth_test

import (
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"stonetown/internal/sqldb"
	"stonetown/oauth"
	"stonetown/oauth/client"
	"stonetown/oauth/grants"
	"stonetown/oauth/keys"
	"stonetown/oauth/protocol"
	"stonetown/oauth/scope"
	"stonetown/oauth/token"
)

// decode reads part n of a compact JWT.
func decode(t *testing.T, token string, n int) map[string]any {
	t.Helper()
	parts := strings.Split(token, ".")
	if len(parts) != 3 {
		t.Fatalf("token has %d parts", len(parts))
	}
	raw, err := base64.RawURLEncoding.DecodeString(parts[n])
	if err != nil {
		t.Fatal(err)
	}
	var m map[string]any
	if err := json.Unmarshal(raw, &m); err != nil {
		t.Fatal(err)
	}
	return m
}

func TestClientCredentials(t *testing.T) {
	w := newWorld(t)
	app, secret := w.application(tenantA, client.Application{
		AllowedScopes: []string{"resources:read", "resources:write"}, AccessTokenTTL: 10 * time.Minute,
	})
	got, err := w.Grants.Token(t.Context(), tenantA, request(app, secret))
	if err != nil {
		t.Fatal(err)
	}
	want := token.Response{AccessToken: got.AccessToken, TokenType: "Bearer", ExpiresIn: 10 * time.Minute, Scope: "resources:read resources:write"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}

	header := decode(t, got.AccessToken, 0)
	if header["typ"] != "at+jwt" || header["alg"] != "ES256" || len(header) != 3 {
		t.Errorf("header is %v", header)
	}
	now := float64(w.clock.Now().Unix())
	members := decode(t, got.AccessToken, 1)
	wantMembers := map[string]any{
		"iss": tenantA.BaseURL, "sub": app.ClientID, "aud": tenantA.BaseURL, "client_id": app.ClientID,
		"tid": tenantA.ID, "scope": "resources:read resources:write",
		"iat": now, "nbf": now, "exp": now + 600, "jti": members["jti"],
	}
	if diff := cmp.Diff(wantMembers, members); diff != "" {
		t.Error(diff)
	}

	p, err := w.Tokens.Verify(t.Context(), tenantA, got.AccessToken)
	if err != nil {
		t.Fatal(err)
	}
	wantPrincipal := &token.Principal{
		Subject: app.ClientID, ClientID: app.ClientID, Scopes: scope.Set{"resources:read": {}, "resources:write": {}},
		TokenID: members["jti"].(string), KeyID: header["kid"].(string), ExpiresAt: w.clock.Now().Add(10 * time.Minute),
	}
	if diff := cmp.Diff(wantPrincipal, p); diff != "" {
		t.Error(diff)
	}
	if !p.Scopes.Has("resources:read") || p.Scopes.Has("users:read") || p.Scopes.Has("") {
		t.Errorf("Has is wrong on %v", p.Scopes)
	}

	again, err := w.Grants.Token(t.Context(), tenantA, request(app, secret))
	if err != nil || decode(t, again.AccessToken, 1)["jti"] == members["jti"] {
		t.Errorf("a second token has the same jti, or failed: %v", err)
	}
}

// ID tokens of a new application are signed with ES256. An application that was stored without an
// algorithm, when RS256 was the default, keeps that, as do those which were stored with it.
func TestIDTokenAlgorithm(t *testing.T) {
	w := newWorld(t)
	app, _ := w.application(tenantA, client.Application{Type: client.SPA, RedirectURIs: []string{"https://app.example.com/"}})
	if app.IDTokenAlg != keys.ES256 {
		t.Errorf("a new application has %s", app.IDTokenAlg)
	}
	for options, want := range map[string]keys.Alg{
		"": keys.RS256, `{"first_party":true}`: keys.RS256,
		`{"id_token_signed_response_alg":"RS256"}`: keys.RS256, `{"id_token_signed_response_alg":"ES256"}`: keys.ES256,
	} {
		if _, err := w.db.Exec(t.Context(), `UPDATE applications SET options = $2 WHERE client_id = $1`, app.ClientID, options); err != nil {
			t.Fatal(err)
		}
		if stored, err := client.Select(t.Context(), w.db, tenantA.ID, app.ClientID); err != nil || stored.IDTokenAlg != want {
			t.Errorf("stored as %q: %s, want %s, %v", options, stored.IDTokenAlg, want, err)
		}
	}
}

func TestSigningAlgorithm(t *testing.T) {
	w := newWorld(t)
	for _, alg := range keys.Algs {
		app, secret := w.application(tenantA, client.Application{SigningAlg: alg})
		token := w.token(tenantA, app, secret)
		if got := decode(t, token, 0)["alg"]; got != string(alg) {
			t.Errorf("alg is %v, want %s", got, alg)
		}
		if _, err := w.Tokens.Verify(t.Context(), tenantA, token); err != nil {
			t.Errorf("%s: %v", alg, err)
		}
	}
}

func TestScopes(t *testing.T) {
	w := newWorld(t)
	app, secret := w.application(tenantA, client.Application{AllowedScopes: []string{"resources:read", "resources:write", "users:read"}})
	none, noneSecret := w.application(tenantA, client.Application{})

	for _, test := range []struct {
		app    client.Application
		secret string
		scope  string
		want   string // the granted scopes, or the error code
	}{
		{app, secret, "", "resources:read resources:write users:read"},
		{app, secret, "  ", "resources:read resources:write users:read"},
		{app, secret, "users:read", "users:read"},
		{app, secret, "users:read resources:read  users:read", "users:read resources:read"},
		{app, secret, "users:write", "invalid_scope"},
		{app, secret, "resources:read users:write", "invalid_scope"},
		{app, secret, "made:up", "invalid_scope"},
		{app, secret, "resources:rea", "invalid_scope"},
		{app, secret, "resources:read\tusers:read", "invalid_scope"},
		{app, secret, "resources:read\x00", "invalid_scope"},
		{app, secret, `resources:read"`, "invalid_scope"},
		{app, secret, strings.Repeat("x ", 500_000), "invalid_scope"},
		{none, noneSecret, "", ""},
		{none, noneSecret, "resources:read", "invalid_scope"},
	} {
		req := request(test.app, test.secret)
		req.Scope = test.scope
		resp, err := w.Grants.Token(t.Context(), tenantA, req)
		got := resp.Scope
		if oauthErr, ok := errors.AsType[*protocol.Error](err); ok {
			got = string(oauthErr.Code)
		} else if err != nil {
			t.Fatal(err)
		}
		if got != test.want {
			t.Errorf("scope %.60q: %q, want %q", test.scope, got, test.want)
		}
	}
}

func TestAudience(t *testing.T) {
	w := newWorld(t)
	const other = "https://reports.example.com"
	scoped := client.Application{AllowedScopes: []string{"resources:read"}}
	plain := client.Application{}
	scopedOther, plainOther := scoped, plain
	scopedOther.Audience, plainOther.Audience = other, other

	for name, test := range map[string]struct {
		app   client.Application
		asked []string
		want  any // the aud claim, or the error code
	}{
		"default":                    {plain, nil, tenantA.BaseURL},
		"own API, asked":             {plain, []string{tenantA.BaseURL}, tenantA.BaseURL},
		"application's":              {plainOther, nil, other},
		"application's, asked":       {plainOther, []string{other}, other},
		"tenant instead":             {plainOther, []string{tenantA.BaseURL}, tenantA.BaseURL},
		"API scope adds tenant":      {scopedOther, nil, []any{other, tenantA.BaseURL}},
		"API scope adds tenant once": {scoped, nil, tenantA.BaseURL},
		"another's":                  {plainOther, []string{"https://evil.example.com"}, protocol.InvalidTarget},
		"another tenant's":           {scoped, []string{tenantB.BaseURL}, protocol.InvalidTarget},
		"not exactly":                {plainOther, []string{other + "/"}, protocol.InvalidTarget},
		"empty":                      {plainOther, []string{""}, protocol.InvalidTarget},
		"several":                    {plainOther, []string{other, tenantA.BaseURL, other}, []any{other, tenantA.BaseURL}},
		"one of them another's":      {plainOther, []string{other, tenantB.BaseURL}, protocol.InvalidTarget},
	} {
		app, secret := w.application(tenantA, test.app)
		req := request(app, secret)
		req.Audience = test.asked
		resp, err := w.Grants.Token(t.Context(), tenantA, req)
		var got any
		if oauthErr, ok := errors.AsType[*protocol.Error](err); ok {
			got = oauthErr.Code
		} else if err != nil {
			t.Fatal(err)
		} else {
			got = decode(t, resp.AccessToken, 1)["aud"]
		}
		if diff := cmp.Diff(test.want, got); diff != "" {
			t.Errorf("%s:\n%s", name, diff)
		}
	}
}

func TestClientAuthentication(t *testing.T) {
	w := newWorld(t)
	app, secret := w.application(tenantA, client.Application{})
	spa, none := w.application(tenantA, client.Application{Type: client.SPA})
	if none != "" {
		t.Errorf("an spa got the secret %q", none)
	}
	off, offSecret := w.application(tenantA, client.Application{})
	if _, err := w.Clients.Update(t.Context(), tenantA.ID, off.ID, "", func(a *client.Application) { a.State = client.Disabled }); err != nil {
		t.Fatal(err)
	}

	for name, test := range map[string]struct {
		tenant protocol.Tenant
		change func(*grants.Request)
		want   protocol.Code
	}{
		"no grant type":           {tenantA, func(r *grants.Request) { r.GrantType = "" }, protocol.InvalidRequest},
		"another grant type":      {tenantA, func(r *grants.Request) { r.GrantType = "password" }, protocol.UnsupportedGrantType},
		"two methods":             {tenantA, func(r *grants.Request) { r.ClientAuthMethods = append(r.ClientAuthMethods, client.ClientSecretBasic) }, protocol.InvalidRequest},
		"no client":               {tenantA, func(r *grants.Request) { r.ClientID = "" }, protocol.InvalidClient},
		"unknown client":          {tenantA, func(r *grants.Request) { r.ClientID = "client_x" }, protocol.InvalidClient},
		"no secret":               {tenantA, func(r *grants.Request) { r.ClientSecret = "" }, protocol.InvalidClient},
		"wrong secret":            {tenantA, func(r *grants.Request) { r.ClientSecret = secret + "x" }, protocol.InvalidClient},
		"secret in another case":  {tenantA, func(r *grants.Request) { r.ClientSecret = strings.ToUpper(secret) }, protocol.InvalidClient},
		"another's secret":        {tenantA, func(r *grants.Request) { r.ClientSecret = offSecret }, protocol.InvalidClient},
		"another tenant's client": {tenantB, func(*grants.Request) {}, protocol.InvalidClient},
		"disabled":                {tenantA, func(r *grants.Request) { r.ClientID, r.ClientSecret = off.ClientID, offSecret }, protocol.UnauthorizedClient},
		"disabled, wrong secret":  {tenantA, func(r *grants.Request) { r.ClientID = off.ClientID }, protocol.InvalidClient},
		"public":                  {tenantA, func(r *grants.Request) { r.ClientID, r.ClientSecret = spa.ClientID, "" }, protocol.UnauthorizedClient},
		"public with a secret":    {tenantA, func(r *grants.Request) { r.ClientID = spa.ClientID }, protocol.InvalidClient},
	} {
		req := request(app, secret)
		test.change(&req)
		_, err := w.Grants.Token(t.Context(), test.tenant, req)
		oauthErr, ok := errors.AsType[*protocol.Error](err)
		if !ok || oauthErr.Code != test.want {
			t.Errorf("%s: %v, want %s", name, err, test.want)
		} else if req.ClientSecret != "" && strings.Contains(err.Error(), req.ClientSecret) {
			t.Errorf("%s: the error %q quotes the secret", name, err)
		}
	}

	// An unknown client and a wrong secret are told apart by nothing.
	unknown, wrong := request(app, secret), request(app, "wrong")
	unknown.ClientID = "client_x"
	_, err1 := w.Grants.Token(t.Context(), tenantA, unknown)
	_, err2 := w.Grants.Token(t.Context(), tenantA, wrong)
	if err1.Error() != err2.Error() {
		t.Errorf("%q and %q differ", err1, err2)
	}
}

func TestRotateSecret(t *testing.T) {
	w := newWorld(t)
	app, first := w.application(tenantA, client.Application{})
	rotate := func(ttl time.Duration) string {
		t.Helper()
		r, err := w.Clients.RotateSecret(t.Context(), tenantA.ID, app.ID, "usr_a", &ttl)
		if err != nil {
			t.Fatal(err)
		}
		if want := w.clock.Now().Add(ttl); !r.PreviousExpiresAt.Equal(want) {
			t.Errorf("previous expires at %v, want %v", r.PreviousExpiresAt, want)
		}
		return r.Secret
	}
	works := func(secret string) bool {
		_, err := w.Grants.Token(t.Context(), tenantA, request(app, secret))
		return err == nil
	}

	second := rotate(time.Hour)
	if second == first || !works(second) {
		t.Error("the new secret does not work")
	}
	w.clock.add(time.Hour - time.Microsecond)
	if !works(first) {
		t.Error("the previous secret died early")
	}
	w.clock.add(time.Microsecond)
	if works(first) {
		t.Error("the previous secret outlived its time")
	}
	if !works(second) {
		t.Error("the current secret died with the previous one")
	}

	third := rotate(time.Hour)
	fourth := rotate(0)
	for secret, want := range map[string]bool{first: false, second: false, third: false, fourth: true} {
		if got := works(secret); got != want {
			t.Errorf("after two rotations a secret works: %v, want %v", got, want)
		}
	}

	spa, _ := w.application(tenantA, client.Application{Type: client.SPA})
	for applicationID, want := range map[string]error{spa.ID: client.ErrNotApplicable, "app_x": client.ErrNotFound} {
		if _, err := w.Clients.RotateSecret(t.Context(), tenantA.ID, applicationID, "", nil); !errors.Is(err, want) {
			t.Errorf("RotateSecret(%s): %v, want %v", applicationID, err, want)
		}
	}
}

// What the database holds of a secret does not contain it, and neither does an
// application that is printed.
func TestSecretIsNotKept(t *testing.T) {
	w := newWorld(t)
	app, secret := w.application(tenantA, client.Application{})
	var hash []byte
	if err := w.db.QueryRow(t.Context(), `SELECT secret_hash FROM applications`).Scan(&hash); err != nil {
		t.Fatal(err)
	}
	if want := sha256.Sum256([]byte(secret)); string(hash) != string(want[:]) {
		t.Errorf("stored %x, want the SHA-256 %x", hash, want)
	}
	if !strings.HasPrefix(secret, "cs_") || len(secret) != 3+43 {
		t.Errorf("secret %q is not cs_ and 256 bits in base64url", secret)
	}
	found, err := w.Clients.ByClientID(t.Context(), tenantA.ID, app.ClientID)
	if diff := cmp.Diff(app, found, cmp.Exporter(func(reflect.Type) bool { return true }), cmpopts.EquateEmpty(), cmp.Transformer("unix", time.Time.Unix)); err != nil || diff != "" {
		t.Errorf("found another application: %v\n%s", err, diff)
	}
	if strings.Contains(fmt.Sprintf("%+v", found), secret) {
		t.Error("an application prints its secret")
	}
}

func TestCreateApplicationRefuses(t *testing.T) {
	w := newWorld(t)
	for name, n := range map[string]client.Application{
		"no name":             {Type: client.Machine},
		"no type":             {Name: "x"},
		"unknown type":        {Name: "x", Type: "robot"},
		"unregistered scope":  {Name: "x", Type: client.Machine, AllowedScopes: []string{"made:up"}},
		"relative audience":   {Name: "x", Type: client.Machine, Audience: "/reports"},
		"audience, fragment":  {Name: "x", Type: client.Machine, Audience: "https://x.example.com/#a"},
		"short lifetime":      {Name: "x", Type: client.Machine, AccessTokenTTL: time.Second},
		"long lifetime":       {Name: "x", Type: client.Machine, AccessTokenTTL: 25 * time.Hour},
		"fractional lifetime": {Name: "x", Type: client.Machine, AccessTokenTTL: time.Hour + time.Millisecond},
		"algorithm none":      {Name: "x", Type: client.Machine, SigningAlg: "none"},
	} {
		err := w.db.Tx(t.Context(), func(tx *sqldb.Tx) error {
			_, _, err := w.Clients.CreateIn(t.Context(), tx, tenantA.ID, n)
			return err
		})
		if !errors.Is(err, client.ErrInvalid) {
			t.Errorf("%s: %v, want ErrApplicationInvalid", name, err)
		}
	}
}

func TestRevocationReachesOtherProcesses(t *testing.T) {
	w := newWorld(t)
	ctx := t.Context()
	other := w.service(w.db, 1)
	app, secret := w.application(tenantA, client.Application{AllowedScopes: []string{"resources:read"}})
	verifies := func(what, raw string, want bool) {
		t.Helper()
		for name, process := range map[string]*oauth.Service{"the process itself": w.Service, "another": other} {
			_, err := process.Tokens.Verify(ctx, tenantA, raw)
			var refused *token.Error
			if want && err != nil || !want && (!errors.As(err, &refused) || refused.Reason != token.Revoked) {
				t.Errorf("%s, %s: %v", what, name, err)
			}
		}
	}
	revoked, kept := w.token(tenantA, app, secret), w.token(tenantA, app, secret)
	verifies("issued", revoked, true)
	if err := w.Tokens.Revoke(ctx, tenantA, request(app, secret).Credentials, revoked); err != nil {
		t.Fatal(err)
	}
	verifies("revoked", revoked, false)
	verifies("not revoked", kept, true)
	for _, state := range []client.State{client.Disabled, client.Enabled} {
		_, err := w.Clients.Update(ctx, tenantA.ID, app.ID, "", func(a *client.Application) { a.State = state })
		if err != nil {
			t.Fatal(err)
		}
		verifies(string(state), kept, true) // until it expires; but no new one
		for name, process := range map[string]*oauth.Service{"the process itself": w.Service, "another": other} {
			if _, err := process.Grants.Token(ctx, tenantA, request(app, secret)); (err == nil) != (state == client.Enabled) {
				t.Errorf("%s, a new token of %s: %v", state, name, err)
			}
		}
	}
	verifies("still revoked", revoked, false)
	gone, goneSecret := w.application(tenantA, client.Application{AllowedScopes: []string{"resources:read"}})
	left := w.token(tenantA, gone, goneSecret)
	verifies("of another", left, true)
	if err := w.Clients.Delete(ctx, tenantA.ID, gone.ID, ""); err != nil {
		t.Fatal(err)
	}
	w.Clients.Settle(ctx)
	verifies("deleted", left, false)

	// A process that was suspended reads the revocations that it missed.
	late := w.service(w.db, 1)
	if _, err := late.Tokens.Verify(ctx, tenantA, kept); err != nil {
		t.Fatal(err)
	}
	if err := w.Tokens.Revoke(ctx, tenantA, request(app, secret).Credentials, kept); err != nil {
		t.Fatal(err)
	}
	w.clock.add(30 * time.Minute)
	var refused *token.Error
	if _, err := late.Tokens.Verify(ctx, tenantA, kept); !errors.As(err, &refused) || refused.Reason != token.Revoked {
		t.Errorf("after half an hour: %v", err)
	}

	// What has expired is forgotten, there and here.
	w.clock.add(25 * time.Hour)
	if err := w.Tidy(ctx); err != nil {
		t.Fatal(err)
	}
	w.Clients.Settle(ctx)
	if _, err := w.Tokens.Verify(ctx, tenantA, w.token(tenantA, app, secret)); err != nil {
		t.Fatal(err)
	}
	var rows int
	if err := w.db.QueryRow(ctx, `SELECT count(*) FROM revocations`).Scan(&rows); err != nil || rows != 0 {
		t.Errorf("%d rows, %v", rows, err)
	}
}
