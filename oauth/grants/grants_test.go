package grants_test

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"log/slog"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"stonetown/engine"
	"stonetown/internal/eventlog"
	"stonetown/internal/jobs"
	"stonetown/internal/outbound"
	"stonetown/internal/seal"
	"stonetown/internal/sqldb"
	"stonetown/oauth"
	"stonetown/oauth/access"
	"stonetown/oauth/authorization"
	"stonetown/oauth/client"
	"stonetown/oauth/dpop/dpoptest"
	"stonetown/oauth/grants"
	"stonetown/oauth/oauthtest"
	"stonetown/oauth/protocol"
	"stonetown/oauth/token"
	"stonetown/schema"
	"stonetown/tuplestore"
	"stonetown/tuplestore/sqlstore"
)

const (
	challenge, verifier = "E9Melhoa2OwvFrEMTJguCHaoeK1t8URWbuGJSstw-cM", "dBjftJeZ4CVP-mB92K27uhbUJU1p1r_wW1gFWFOEjXk" // RFC 7636, appendix B
	redirectURI         = "https://app.example.com/cb"
	api                 = "https://api.example.com"
)

var tenant = protocol.Tenant{ID: "tnt_a", BaseURL: "https://a.example.com"}

// world is the module with two applications that can use every grant: one that authenticates
// by a secret, and one without credentials.
type world struct {
	*oauth.Service
	t      *testing.T
	db     *sqldb.DB
	engine *engine.Engine
	users  *oauthtest.Users
	now    time.Time
	server client.Application
	secret string
	native client.Application
}

func newWorld(t *testing.T, changes ...func(*client.Application)) *world {
	t.Helper()
	db, err := sqldb.Open(t.Context(), sqldb.Config{URL: "sqlite:" + filepath.Join(t.TempDir(), "test.db")})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { db.Close() })
	if err := db.Migrate(t.Context(), oauth.Migrations(), sqlstore.Migrations(), eventlog.Migrations(), jobs.Migrations()); err != nil {
		t.Fatal(err)
	}
	key, err := seal.NewKey(bytes.Repeat([]byte{1}, seal.KeySize))
	if err != nil {
		t.Fatal(err)
	}
	w := &world{t: t, db: db, users: new(oauthtest.Users), now: time.Date(2026, 11, 20, 9, 0, 0, 0, time.UTC)}
	w.engine = oauthtest.Engine(t, oauth.Config{DB: db})
	w.Service = oauthtest.New(t, oauth.Config{
		DB: db, Seal: key, Users: w.users, Relations: w.engine, Clock: func() time.Time { return w.now },
		Outbound: outbound.New(outbound.Config{AllowInsecure: true}), Logger: slog.New(slog.DiscardHandler),
	})
	w.server, w.secret = w.create(client.Server, changes...)
	w.native, _ = w.create(client.Native, changes...)
	return w
}

func (w *world) create(of client.Type, changes ...func(*client.Application)) (client.Application, string) {
	w.t.Helper()
	a := *of.Defaults()
	a.Name, a.RedirectURIs, a.AllowedScopes = string(of), []string{redirectURI}, []string{"openid", "email", "offline_access", "me:read"}
	a.TokenExchange.Enabled, a.TokenExchange.AllowedAudiences = true, []string{api}
	a.TokenExchange.ActAs = client.ActAs{Enabled: true, AllowedSubjectTypes: []string{schema.UserType, schema.ApplicationType}}
	for _, change := range changes {
		change(&a)
	}
	app, secret, err := w.Clients.Create(w.t.Context(), tenant.ID, a)
	if err != nil {
		w.t.Fatal(err)
	}
	return app, secret
}

// relate writes a relation.
func (w *world) relate(resource tuplestore.Object, relation string, subject tuplestore.Subject) {
	w.t.Helper()
	op := engine.WriteOp{Resource: resource, Relation: relation, Subject: subject}
	if _, err := w.engine.Write(w.t.Context(), tenant.ID, engine.WriteRequest{Ops: []engine.WriteOp{op}}); err != nil {
		w.t.Fatal(err)
	}
}

// authenticated returns a request of the server application.
func (w *world) authenticated(grantType string) grants.Request {
	return grants.Request{GrantType: grantType, Credentials: client.Credentials{
		ClientID: w.server.ClientID, ClientSecret: w.secret, ClientAuthMethods: []client.AuthMethod{client.ClientSecretBasic},
	}}
}

// public returns a request of the application without credentials.
func (w *world) public(grantType string) grants.Request {
	return grants.Request{GrantType: grantType, Credentials: client.Credentials{ClientID: w.native.ClientID}}
}

// code returns a new authorization code for an application.
func (w *world) code(app client.Application, scopes ...string) string {
	w.t.Helper()
	code, err := w.Authorization.IssueCode(w.t.Context(), tenant, authorization.Request{
		ClientID: app.ClientID, RedirectURI: redirectURI, Scopes: scopes, Challenge: challenge, Nonce: "n",
	}, w.signedIn())
	if err != nil {
		w.t.Fatal(err)
	}
	return code
}

func (w *world) signedIn() access.Authentication {
	return access.Authentication{UserID: "usr_1", SessionID: "ses_1", Methods: []string{"pwd"}, AuthTime: w.now}
}

// redeeming returns a request that redeems a new code.
func (w *world) redeeming(app client.Application, scopes ...string) grants.Request {
	w.t.Helper()
	r := w.authenticated(protocol.GrantAuthorizationCode)
	if app.ID == w.native.ID {
		r = w.public(protocol.GrantAuthorizationCode)
	}
	r.Code, r.RedirectURI, r.CodeVerifier = w.code(app, scopes...), redirectURI, verifier
	return r
}

// refreshing returns a request that uses a refresh token.
func (w *world) refreshing(of grants.Request, refresh string) grants.Request {
	return grants.Request{GrantType: protocol.GrantRefreshToken, Credentials: of.Credentials, RefreshToken: refresh}
}

// polling returns a request of a device, and the code that its user enters.
func (w *world) polling() (r grants.Request, userCode string) {
	w.t.Helper()
	r = w.authenticated(protocol.GrantDeviceCode)
	d, err := w.Authorization.AuthorizeDevice(w.t.Context(), tenant, authorization.DeviceAuthorizationRequest{Credentials: r.Credentials, Scope: "openid"})
	if err != nil {
		w.t.Fatal(err)
	}
	r.DeviceCode = d.DeviceCode
	return r, d.UserCode
}

// exchanging returns a request that exchanges a token.
func (w *world) exchanging(subject, typ string) grants.Request {
	r := w.authenticated(protocol.GrantTokenExchange)
	r.Exchange = grants.TokenExchange{SubjectToken: subject, SubjectTokenType: typ}
	return r
}

// issued requests tokens, which must be granted.
func (w *world) issued(r grants.Request) token.Response {
	w.t.Helper()
	got, err := w.Grants.Token(w.t.Context(), tenant, r)
	if err != nil {
		w.t.Fatal(err)
	}
	return got
}

// refused requests tokens, which must be refused with a code.
func (w *world) refused(what string, r grants.Request, want protocol.Code) {
	w.t.Helper()
	_, err := w.Grants.Token(w.t.Context(), tenant, r)
	var refusal *protocol.Error
	if !errors.As(err, &refusal) || refusal.Code != want {
		w.t.Errorf("%s: %v, want %s", what, err, want)
	}
}

// claims reads a JWT.
func (w *world) claims(jwt string) (c map[string]any) {
	w.t.Helper()
	payload, err := base64.RawURLEncoding.DecodeString(strings.Split(jwt, ".")[1])
	if err == nil {
		err = json.Unmarshal(payload, &c)
	}
	if err != nil {
		w.t.Fatal(err)
	}
	return c
}

// events returns the types of all events, with the reasons of those that have one.
func (w *world) events() (list []string) {
	w.t.Helper()
	log, err := eventlog.Open(eventlog.Config{DB: w.db})
	if err != nil {
		w.t.Fatal(err)
	}
	all, err := log.Read(w.t.Context(), tenant.ID, 0, 1000)
	if err != nil {
		w.t.Fatal(err)
	}
	for _, e := range all {
		var data struct {
			Reason string `json:"reason"`
		}
		if err := json.Unmarshal(e.Data, &data); err != nil {
			w.t.Fatal(err)
		}
		list = append(list, strings.TrimSpace(string(e.Type)+" "+data.Reason))
	}
	return list
}

// every returns a valid request of each grant, by its name.
func (w *world) every() map[string]grants.Request {
	w.t.Helper()
	w.allow()
	plain := w.authenticated(protocol.GrantClientCredentials)
	plain.Scope = "me:read"
	device, userCode := w.polling()
	if err := w.Authorization.AnswerDevice(w.t.Context(), tenant, userCode, w.signedIn(), true); err != nil {
		w.t.Fatal(err)
	}
	redeemed := w.redeeming(w.server, "openid")
	exchange := w.exchanging(w.issued(plain).AccessToken, protocol.TypeAccessToken)
	exchange.Audience = []string{api}
	return map[string]grants.Request{
		"client_credentials": plain, "authorization_code": w.redeeming(w.server, "openid"), "device_code": device,
		"refresh_token": w.refreshing(redeemed, w.issued(redeemed).RefreshToken), "token_exchange": exchange,
	}
}

// allow lets the server application and the user call the API.
func (w *world) allow() {
	w.t.Helper()
	target := tuplestore.Object{Type: schema.AudienceType, ID: api}
	w.relate(target, schema.AudienceCaller, tuplestore.Subject{Type: schema.ApplicationType, ID: w.server.ClientID})
	w.relate(target, schema.AudienceCaller, tuplestore.Subject{Type: schema.UserType, ID: "usr_1"})
}

// No grant can leave out a phase: each request is tried without what the phase demands.
func TestPhasesOfEveryGrant(t *testing.T) {
	w := newWorld(t)
	requests := w.every()
	if len(requests) != len(protocol.GrantTypes) {
		t.Fatalf("%d grants of %d are tested", len(requests), len(protocol.GrantTypes))
	}
	for name, r := range requests {
		t.Run(name, func(t *testing.T) {
			w.t = t
			wrong := r
			wrong.ClientSecret = "cs_wrong"
			w.refused("wrong secret", wrong, protocol.InvalidClient)
			wrong = r
			wrong.ClientAuthMethods = append(wrong.ClientAuthMethods, client.ClientSecretPost)
			w.refused("two methods of authentication", wrong, protocol.InvalidRequest)
			wrong = r
			wrong.Proofs = []string{"x"}
			w.refused("wrong proof", wrong, protocol.InvalidDPoPProof)

			// A request over its limit consumes nothing, neither its code or token nor its proof.
			key := dpoptest.NewKey(t)
			r.Proofs = []string{key.Proof(t, "POST", tenant.BaseURL+protocol.TokenPath, "", map[string]any{"iat": w.now.Unix()})}
			limited, over := r, errors.New("over the limit")
			var counted []string
			limited.Limit = func(_ context.Context, key string) error {
				counted = append(counted, key)
				return over
			}
			if _, err := w.Grants.Token(t.Context(), tenant, limited); !errors.Is(err, over) {
				t.Errorf("over the limit: %v", err)
			}
			of := w.server.ClientID
			if r.Code != "" || r.RefreshToken != "" || r.DeviceCode != "" {
				of = "usr_1"
			}
			if !slices.Equal(counted, []string{of}) {
				t.Errorf("counted for %v, want %s once", counted, of)
			}
			got := w.issued(r)
			bound := w.claims(got.AccessToken)
			if cnf, _ := bound["cnf"].(map[string]any); got.TokenType != protocol.TokenTypeDPoP || cnf["jkt"] != key.Thumbprint {
				t.Errorf("the token is not bound to the proved key: %v", bound)
			}
			for _, scope := range strings.Fields(got.Scope) {
				if !slices.Contains(w.server.AllowedScopes, scope) {
					t.Errorf("scope %s is more than the application may have", scope)
				}
			}
			r.Code, r.RefreshToken, r.DeviceCode = "", "", "" // only the proof is presented again
			w.refused("the same proof", r, map[string]protocol.Code{
				"authorization_code": protocol.InvalidGrant, "refresh_token": protocol.InvalidGrant, "device_code": protocol.InvalidGrant,
			}[name]+map[string]protocol.Code{"client_credentials": protocol.InvalidDPoPProof, "token_exchange": protocol.InvalidDPoPProof}[name])
		})
	}
}

// An application that requires bound tokens gets no others, by any grant.
func TestEveryGrantRequiresTheKey(t *testing.T) {
	w := newWorld(t)
	requests := w.every()
	if _, err := w.Clients.Update(t.Context(), tenant.ID, w.server.ID, "", func(a *client.Application) { a.DPoPBound = true }); err != nil {
		t.Fatal(err)
	}
	for name, r := range requests {
		w.refused(name, r, protocol.InvalidDPoPProof)
	}
	if _, err := w.Clients.Update(t.Context(), tenant.ID, w.server.ID, "", func(a *client.Application) { a.DPoPBound, a.State = false, client.Disabled }); err != nil {
		t.Fatal(err)
	}
	for name, r := range requests {
		w.refused(name+", disabled", r, protocol.UnauthorizedClient)
	}
	if _, err := w.Clients.Update(t.Context(), tenant.ID, w.server.ID, "", func(a *client.Application) { a.State = client.Enabled }); err != nil {
		t.Fatal(err)
	}
	for name, r := range requests { // none of the refusals has consumed anything
		if _, err := w.Grants.Token(t.Context(), tenant, r); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestUnknownGrants(t *testing.T) {
	w := newWorld(t)
	w.refused("no grant_type", w.authenticated(""), protocol.InvalidRequest)
	w.refused("password", w.authenticated("password"), protocol.UnsupportedGrantType)
}

func TestClientCredentials(t *testing.T) {
	w := newWorld(t)
	r := w.authenticated(protocol.GrantClientCredentials)
	r.Scope = "me:read"
	got := w.issued(r)
	if c := w.claims(got.AccessToken); c["sub"] != w.server.ClientID || c["scope"] != "me:read" || got.RefreshToken != "" || got.IDToken != "" || got.ExpiresIn != time.Hour {
		t.Errorf("%+v of %v", got, c)
	}
	r.Scope = "admin"
	w.refused("scope of others", r, protocol.InvalidScope)
	r.Scope, r.Audience = "", []string{"https://other.example.com"}
	w.refused("audience of others", r, protocol.InvalidTarget)
	w.refused("without credentials", w.public(protocol.GrantClientCredentials), protocol.UnauthorizedClient)
}

func TestAuthorizationCode(t *testing.T) {
	w := newWorld(t)
	r := w.redeeming(w.server, "openid", "email")
	for name, change := range map[string]func(*grants.Request){
		"another redirect URI": func(r *grants.Request) { r.RedirectURI += "x" },
		"another verifier":     func(r *grants.Request) { r.CodeVerifier = strings.Repeat("x", 43) },
		"no verifier":          func(r *grants.Request) { r.CodeVerifier = "" },
		"another code":         func(r *grants.Request) { r.Code = "ac_x" },
		"another client":       func(r *grants.Request) { r.Credentials = w.public("").Credentials },
	} {
		wrong := r
		change(&wrong)
		w.refused(name, wrong, protocol.InvalidGrant)
	}
	wrong := r
	wrong.Audience = []string{"https://other.example.com"}
	w.refused("audience of others", wrong, protocol.InvalidTarget)

	got := w.issued(r) // none of them has consumed the code
	c, id := w.claims(got.AccessToken), w.claims(got.IDToken)
	if c["sub"] != "usr_1" || c["sid"] != "ses_1" || c["scope"] != "openid email" || c["acr"] != protocol.AAL1 || id["nonce"] != "n" || id["email"] != "ann@example.com" || id["aud"] != w.server.ClientID {
		t.Errorf("access token %v, ID token %v", c, id)
	}
	w.refused("again", r, protocol.InvalidGrant)
	if got := w.events(); !slices.Contains(got, string(eventlog.SecurityAuthorizationCodeReused)) || !slices.Contains(got, string(eventlog.TokenFamilyRevoked)) {
		t.Errorf("events %v", got)
	}
	w.refused("refresh token of a reused code", w.refreshing(r, got.RefreshToken), protocol.InvalidGrant)

	late := w.redeeming(w.server, "openid")
	w.now = w.now.Add(time.Minute)
	w.refused("after a minute", late, protocol.InvalidGrant)

	ended := w.redeeming(w.server, "openid")
	w.users.Gone = []string{"ses_1"}
	w.refused("session has ended", ended, protocol.InvalidGrant)
	w.users.Gone = []string{"usr_1"}
	w.refused("user is deleted", ended, protocol.InvalidGrant)

	machine, secret := w.create(client.Machine, func(a *client.Application) { a.AllowedScopes, a.RedirectURIs = nil, nil })
	ended.ClientID, ended.ClientSecret = machine.ClientID, secret
	w.refused("a machine", ended, protocol.UnauthorizedClient)
}

// Of requests that redeem one code at the same time, one gets tokens, and they end.
func TestCodesAreRedeemedOnce(t *testing.T) {
	w := newWorld(t)
	r := w.redeeming(w.server, "openid")
	var all sync.WaitGroup
	granted := make(chan token.Response, 20)
	for range cap(granted) {
		all.Go(func() {
			got, err := w.Grants.Token(t.Context(), tenant, r)
			if err == nil {
				granted <- got
			} else if !errors.Is(err, access.ErrInvalidGrant) {
				t.Error(err)
			}
		})
	}
	all.Wait()
	if len(granted) > 1 {
		t.Fatalf("%d requests got tokens", len(granted))
	}
	if len(granted) == 1 {
		w.refused("refresh token of a reused code", w.refreshing(r, (<-granted).RefreshToken), protocol.InvalidGrant)
	}
}

func TestRefreshToken(t *testing.T) {
	w := newWorld(t)
	of := w.redeeming(w.server, "openid", "email")
	first := w.issued(of).RefreshToken

	wrong := w.refreshing(of, first)
	wrong.Credentials = w.public("").Credentials
	w.refused("another client", wrong, protocol.InvalidGrant)
	w.refused("another token", w.refreshing(of, "rt_x"), protocol.InvalidGrant)
	wrong = w.refreshing(of, first)
	wrong.Scope = "me:read"
	w.refused("more scopes", wrong, protocol.InvalidScope)
	wrong.Scope = `"`
	w.refused("malformed scope", wrong, protocol.InvalidScope)

	narrow := w.refreshing(of, first)
	narrow.Scope, narrow.GrantType = "email", "refresh"
	got := w.issued(narrow)
	if got.Scope != "email" || got.IDToken != "" {
		t.Errorf("%+v", got)
	}
	second := w.issued(w.refreshing(of, got.RefreshToken))
	if second.Scope != "openid email" || w.claims(second.IDToken)["nonce"] != nil {
		t.Errorf("%+v", second)
	}
	w.refused("a token that was replaced", w.refreshing(of, first), protocol.InvalidGrant)
	w.refused("the newest of a revoked family", w.refreshing(of, second.RefreshToken), protocol.InvalidGrant)
	if got := w.events(); !slices.Contains(got, string(eventlog.SecurityRefreshTokenReused)) {
		t.Errorf("events %v", got)
	}

	of = w.redeeming(w.server, "openid", "offline_access")
	old := w.issued(of).RefreshToken
	w.users.Gone = []string{"ses_1"}
	old = w.issued(w.refreshing(of, old)).RefreshToken // outlives its session
	w.now = w.now.Add(client.DefaultRefreshTokenTTL)
	w.refused("expired", w.refreshing(of, old), protocol.InvalidGrant)
}

// Within the leeway a token that was replaced leads to the same successor, until that is used.
func TestRefreshLeeway(t *testing.T) {
	w := newWorld(t)
	leeway := func(seconds int) {
		t.Helper()
		err := w.db.Tx(t.Context(), func(tx *sqldb.Tx) error {
			_, _, err := w.Clients.UpdateSettings(t.Context(), tx, tenant.ID, func(s *client.Settings) { s.RefreshReuseLeewayS = seconds })
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	leeway(10)
	of := w.redeeming(w.server, "openid")
	renew := func(token string) string { return w.issued(w.refreshing(of, token)).RefreshToken }
	first := w.issued(of).RefreshToken
	second := renew(first)
	w.now = w.now.Add(10 * time.Second)
	if again := renew(first); again != second {
		t.Errorf("%s again is %s", second, again)
	}
	third := renew(second)
	w.refused("the predecessor of one that was used", w.refreshing(of, first), protocol.InvalidGrant)
	w.refused("its family", w.refreshing(of, third), protocol.InvalidGrant)

	of = w.redeeming(w.server, "openid")
	first = w.issued(of).RefreshToken
	renew(first)
	w.now = w.now.Add(11 * time.Second)
	w.refused("after the leeway", w.refreshing(of, first), protocol.InvalidGrant)

	of = w.redeeming(w.server, "openid")
	first = w.issued(of).RefreshToken
	renew(first)
	leeway(0)
	w.refused("without a leeway", w.refreshing(of, first), protocol.InvalidGrant)
	leeway(10)

	// Requests at the same time get the same successor.
	of = w.redeeming(w.server, "openid")
	first = w.issued(of).RefreshToken
	tokens := make(chan string, 10)
	var all sync.WaitGroup
	for range cap(tokens) {
		all.Go(func() {
			got, err := w.Grants.Token(t.Context(), tenant, w.refreshing(of, first))
			if err != nil {
				t.Error(err)
			}
			tokens <- got.RefreshToken
		})
	}
	all.Wait()
	close(tokens)
	second = <-tokens
	for other := range tokens {
		if other != second {
			t.Errorf("%s and %s at once", second, other)
		}
	}
	renew(second)

	// The database has no token, and with a token that was replaced still not its successor.
	of = w.redeeming(w.server, "openid")
	first = w.issued(of).RefreshToken
	second = renew(first)
	var hash, seed string
	err := w.db.QueryRow(t.Context(), `SELECT hash, seed FROM refresh_tokens WHERE predecessor = $1`, protocol.Hash(first)).Scan(&hash, &seed)
	if err != nil || hash != protocol.Hash(second) || len(seed) != 43 {
		t.Errorf("stored as %s with the seed %s, %v", hash, seed, err)
	}
	if _, err := w.db.Exec(t.Context(), `UPDATE refresh_tokens SET seed = 'x' WHERE hash = $1`, hash); err != nil {
		t.Fatal(err)
	}
	w.refused("the seed of another", w.refreshing(of, first), protocol.InvalidGrant)
	renew(second)
}

// A refresh token of a client without credentials is bound to its key.
func TestRefreshTokenKey(t *testing.T) {
	w := newWorld(t)
	key := dpoptest.NewKey(t)
	proof := func(key *dpoptest.Key) []string {
		return []string{key.Proof(t, "POST", tenant.BaseURL+protocol.TokenPath, "", map[string]any{"iat": w.now.Unix()})}
	}
	of := w.redeeming(w.native, "openid")
	of.Proofs = proof(key)
	refresh := w.issued(of).RefreshToken
	r := w.refreshing(w.public(""), refresh)
	w.refused("without a proof", r, protocol.InvalidGrant)
	r.Proofs = proof(dpoptest.NewKey(t))
	w.refused("another key", r, protocol.InvalidGrant)
	r.Proofs = proof(key)
	w.issued(r)
}

// Within the leeway only the key of a token leads to its successor.
func TestRefreshLeewayKey(t *testing.T) {
	w := newWorld(t)
	err := w.db.Tx(t.Context(), func(tx *sqldb.Tx) error {
		_, _, err := w.Clients.UpdateSettings(t.Context(), tx, tenant.ID, func(s *client.Settings) { s.RefreshReuseLeewayS = 10 })
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	key, other := dpoptest.NewKey(t), dpoptest.NewKey(t)
	with := func(key *dpoptest.Key, token string) grants.Request {
		r := w.refreshing(w.public(""), token)
		if key != nil {
			r.Proofs = []string{key.Proof(t, "POST", tenant.BaseURL+protocol.TokenPath, "", map[string]any{"iat": w.now.Unix()})}
		}
		return r
	}
	of := w.redeeming(w.native, "openid")
	first := w.issued(of).RefreshToken // unbound
	second := w.issued(with(key, first)).RefreshToken
	w.refused("unbound, of one that is bound now", with(nil, first), protocol.InvalidGrant)
	w.refused("with another key", with(other, first), protocol.InvalidGrant)
	if again := w.issued(with(key, first)).RefreshToken; again != second {
		t.Errorf("%s again is %s", second, again)
	}
	third := w.issued(with(key, second)).RefreshToken
	w.refused("bound, without the key", with(nil, second), protocol.InvalidGrant)
	w.refused("bound, with another key", with(other, second), protocol.InvalidGrant)
	if again := w.issued(with(key, second)).RefreshToken; again != third { // they have revoked nothing
		t.Errorf("%s again is %s", third, again)
	}
}

func TestDeviceCode(t *testing.T) {
	w := newWorld(t)
	ctx := t.Context()
	r, userCode := w.polling()
	w.refused("no answer", r, protocol.AuthorizationPending)
	w.refused("too soon", r, protocol.SlowDown)
	w.now = w.now.Add(2 * access.PollInterval)
	w.refused("after the longer interval", r, protocol.AuthorizationPending)
	wrong := r
	wrong.DeviceCode = "dc_x"
	w.refused("another code", wrong, protocol.InvalidGrant)
	wrong = r
	wrong.Credentials = w.public("").Credentials
	w.refused("another client", wrong, protocol.InvalidGrant)
	if err := w.Authorization.AnswerDevice(ctx, tenant, strings.ToLower(userCode), w.signedIn(), true); err != nil {
		t.Fatal(err)
	}
	if got := w.issued(r); w.claims(got.AccessToken)["sub"] != "usr_1" || got.RefreshToken == "" {
		t.Errorf("%+v", got)
	}
	w.refused("again", r, protocol.InvalidGrant)

	r, userCode = w.polling()
	if err := w.Authorization.AnswerDevice(ctx, tenant, userCode, w.signedIn(), false); err != nil {
		t.Fatal(err)
	}
	w.refused("denied", r, protocol.AccessDenied)
	r, _ = w.polling()
	w.now = w.now.Add(10 * time.Minute)
	w.refused("expired", r, protocol.ExpiredToken)
}

func TestTokenExchange(t *testing.T) {
	w := newWorld(t)
	redeemed := w.redeeming(w.server, "openid", "email", "offline_access")
	tokens := w.issued(redeemed)
	r := w.exchanging(tokens.AccessToken, protocol.TypeAccessToken)
	r.Audience = []string{api}
	w.refused("the subject may not call the API", r, protocol.InvalidTarget)
	w.allow()
	for typ, subject := range map[string]string{
		protocol.TypeAccessToken: tokens.AccessToken, protocol.TypeJWT: tokens.AccessToken, protocol.TypeIDToken: tokens.IDToken, protocol.TypeRefreshToken: tokens.RefreshToken,
	} {
		r := w.exchanging(subject, typ)
		r.Audience, r.Scope = []string{api}, "email"
		got := w.issued(r)
		c := w.claims(got.AccessToken)
		if got.IssuedTokenType != protocol.TypeAccessToken || got.Scope != "email" || got.RefreshToken != "" || c["sub"] != "usr_1" || c["aud"] != api || c["client_id"] != w.server.ClientID {
			t.Errorf("%s: %+v, %v", typ, got, c)
		}
		r.Scope = "me:read"
		w.refused(typ+", more scopes", r, protocol.InvalidScope)
		if typ == protocol.TypeIDToken || typ == protocol.TypeRefreshToken {
			r.Credentials, r.Exchange.SubjectToken = w.public("").Credentials, "x"
			w.refused(typ+", not valid", r, protocol.InvalidRequest)
		}
	}
	// The chain of exchanged tokens is part of the token.
	again := w.exchanging(w.issued(r).AccessToken, protocol.TypeAccessToken)
	c := w.claims(w.issued(again).AccessToken)
	if ancestors, _ := c["anc"].([]any); len(ancestors) != 2 || c["aud"] != api {
		t.Errorf("%v", c)
	}

	// Without authentication the client is that of the token, if it may.
	native := w.redeeming(w.native, "openid")
	own := w.issued(native)
	unauthenticated := w.exchanging(own.AccessToken, protocol.TypeAccessToken)
	unauthenticated.Credentials = client.Credentials{}
	if got := w.issued(unauthenticated); w.claims(got.AccessToken)["client_id"] != w.native.ClientID {
		t.Errorf("%+v", got)
	}
	unauthenticated.Exchange.SubjectToken, unauthenticated.Exchange.SubjectTokenType = own.RefreshToken, protocol.TypeRefreshToken
	w.issued(unauthenticated)
	unauthenticated.ClientID = w.server.ClientID
	w.refused("as another client", unauthenticated, protocol.InvalidClient)
	r.Credentials = client.Credentials{}
	w.refused("of a client that must authenticate", r, protocol.InvalidClient)
	first, err := w.Tokens.IssueToUser(t.Context(), tenant, token.UserToken{UserID: "usr_1", SessionID: "ses_1", AuthTime: w.now})
	if err != nil {
		t.Fatal(err)
	}
	unauthenticated = w.exchanging(first.AccessToken, protocol.TypeAccessToken)
	unauthenticated.Credentials = client.Credentials{}
	w.refused("of the product itself", unauthenticated, protocol.InvalidClient)

	// Tokens that have ended lead to no others.
	w.refused("ID token of another client", func() grants.Request {
		r := w.exchanging(own.IDToken, protocol.TypeIDToken)
		return r
	}(), protocol.InvalidRequest)
	w.refused("refresh token of another client", w.exchanging(own.RefreshToken, protocol.TypeRefreshToken), protocol.InvalidRequest)
	if _, err := w.Clients.Update(t.Context(), tenant.ID, w.native.ID, "", func(a *client.Application) { a.State = client.Disabled }); err != nil {
		t.Fatal(err)
	}
	w.refused("access token of a disabled client", w.exchanging(own.AccessToken, protocol.TypeAccessToken), protocol.InvalidRequest)
	disabled := w.exchanging(own.AccessToken, protocol.TypeAccessToken)
	disabled.Credentials = client.Credentials{}
	w.refused("of a disabled client, by itself", disabled, protocol.UnauthorizedClient)
	w.users.Gone = []string{"usr_1"}
	w.refused("user is deleted", w.exchanging(tokens.AccessToken, protocol.TypeAccessToken), protocol.InvalidRequest)
}

func TestDelegation(t *testing.T) {
	w := newWorld(t)
	subject := w.issued(w.redeeming(w.server, "openid")).AccessToken
	plain := w.authenticated(protocol.GrantClientCredentials)
	actor := w.issued(plain).AccessToken
	r := w.exchanging(subject, protocol.TypeAccessToken)
	r.Exchange.ActorToken, r.Exchange.ActorTokenType = actor, protocol.TypeAccessToken
	w.refused("the actor may not act", r, protocol.InvalidGrant)
	w.relate(tuplestore.Object{Type: schema.UserType, ID: "usr_1"}, schema.ActAs, tuplestore.Subject{Type: schema.ApplicationType, ID: w.server.ClientID})
	got := w.issued(r)
	c := w.claims(got.AccessToken)
	if act, _ := c["act"].(map[string]any); c["sub"] != "usr_1" || act["sub"] != w.server.ClientID {
		t.Errorf("%v", c)
	}
	r.Exchange.ActorToken = "x"
	w.refused("an actor token that is not valid", r, protocol.InvalidRequest)
}

// Each decision about a known application is recorded, with the reason of a refusal.
func TestTokenExchangeIsRecorded(t *testing.T) {
	w := newWorld(t)
	subject := w.issued(w.redeeming(w.server, "openid")).AccessToken
	w.allow()
	before := len(w.events())
	allowed := w.exchanging(subject, protocol.TypeAccessToken)
	w.issued(allowed)
	secret, token, scope, proof, audience := allowed, allowed, allowed, allowed, allowed
	secret.ClientSecret = "cs_wrong"
	w.refused("wrong secret", secret, protocol.InvalidClient)
	token.Exchange.SubjectToken = "x"
	w.refused("not a token", token, protocol.InvalidRequest)
	scope.Scope = `"`
	w.refused("malformed scope", scope, protocol.InvalidScope)
	proof.Proofs = []string{"x"}
	w.refused("wrong proof", proof, protocol.InvalidDPoPProof)
	audience.Audience = []string{"https://other.example.com"}
	w.refused("audience of others", audience, protocol.InvalidTarget)
	unknown := allowed
	unknown.ClientID = "cl_unknown"
	w.refused("an unknown application", unknown, protocol.InvalidClient)

	const denied = string(eventlog.TokenExchangeDenied) + " "
	want := []string{string(eventlog.TokenExchanged), denied + "client", denied + "subject_token_invalid", denied + "scope_malformed", denied + "dpop_proof", denied + "audience_not_permitted"}
	if got := w.events()[before:]; !slices.Equal(got, want) {
		t.Errorf("recorded %q, want %q", got, want)
	}
}
