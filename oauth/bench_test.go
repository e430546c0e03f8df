package oauth_test

import (
	"fmt"
	"strings"
	"testing"

	"stonetown/engine"
	"stonetown/oauth/access"
	"stonetown/oauth/authorization"
	"stonetown/oauth/client"
	"stonetown/oauth/grants"
	"stonetown/oauth/protocol"
	"stonetown/oauth/scope"
	"stonetown/oauth/token"
	"stonetown/schema"
	"stonetown/tuplestore"
)

// BenchmarkIssue measures the grants in process, on an embedded database, all in one run.
func BenchmarkIssue(b *testing.B) {
	w := newWorld(b)
	ctx := b.Context()
	const api = "https://api.example.com"
	setup := *client.Server.Defaults()
	setup.Name, setup.RedirectURIs, setup.AllowedScopes = "bench", []string{"https://app.example.com/cb"}, append(scope.OIDC, "resources:read")
	setup.TokenExchange.Enabled, setup.TokenExchange.AllowedAudiences = true, []string{api}
	app, secret, err := w.Clients.Create(ctx, tenantA.ID, setup)
	if err != nil {
		b.Fatal(err)
	}
	caller := engine.WriteOp{
		Resource: tuplestore.Object{Type: schema.AudienceType, ID: api}, Relation: schema.AudienceCaller,
		Subject: tuplestore.Subject{Type: schema.ApplicationType, ID: app.ClientID},
	}
	if _, err := w.engine.Write(ctx, tenantA.ID, engine.WriteRequest{Ops: []engine.WriteOp{caller}}); err != nil {
		b.Fatal(err)
	}
	plain := request(app, secret)
	plain.Scope = "resources:read"
	token := func(req grants.Request) token.Response {
		b.Helper()
		r, err := w.Grants.Token(ctx, tenantA, req)
		if err != nil {
			b.Fatal(err)
		}
		return r
	}
	exchange := plain
	exchange.GrantType, exchange.Audience = protocol.GrantTokenExchange, []string{api}
	exchange.Exchange = grants.TokenExchange{SubjectToken: token(plain).AccessToken, SubjectTokenType: protocol.TypeAccessToken}
	r := authorization.Request{ClientID: app.ClientID, RedirectURI: setup.RedirectURIs[0], Scopes: scope.OIDC[:1], Challenge: "E9Melhoa2OwvFrEMTJguCHaoeK1t8URWbuGJSstw-cM"}
	by := access.Authentication{UserID: "usr_1", SessionID: "ses_1", Methods: []string{"pwd"}, AuthTime: w.clock.now}
	coded := plain
	coded.GrantType, coded.Scope, coded.RedirectURI, coded.CodeVerifier = protocol.GrantAuthorizationCode, "", r.RedirectURI, "dBjftJeZ4CVP-mB92K27uhbUJU1p1r_wW1gFWFOEjXk"

	b.Run("client_credentials", func(b *testing.B) {
		for b.Loop() {
			token(plain)
		}
	})
	for _, of := range answeredByEngine(b, w) {
		b.Run("client_credentials/"+of.name, func(b *testing.B) {
			for b.Loop() {
				token(of.request)
			}
		})
		b.Run("introspection/"+of.name, func(b *testing.B) {
			presented := token(of.request).AccessToken
			for b.Loop() {
				if i, err := w.Tokens.Introspect(ctx, tenantA, of.request.Credentials, presented); err != nil || !i.Active {
					b.Fatal(i, err)
				}
			}
		})
	}
	b.Run("token_exchange", func(b *testing.B) {
		for b.Loop() {
			token(exchange)
		}
	})
	b.Run("token_exchange/many at once", func(b *testing.B) {
		b.SetParallelism(16)
		b.RunParallel(func(pb *testing.PB) {
			for pb.Next() {
				if _, err := w.Grants.Token(ctx, tenantA, exchange); err != nil {
					b.Error(err)
				}
			}
		})
	})
	b.Run("token_exchange/engine", func(b *testing.B) { // the part of it that is asked of the engine
		subject := tuplestore.Subject{Type: schema.ApplicationType, ID: app.ClientID}
		target := tuplestore.Object{Type: schema.AudienceType, ID: api}
		exchanges := engine.CheckRequest{Subject: subject, Reasons: true, Queries: []engine.Query{
			{Resource: tuplestore.Object{Type: schema.ApplicationType, ID: app.ClientID}, Action: schema.Exchange}, {Resource: target, Action: schema.AudienceExchanger},
		}}
		calls := engine.CheckRequest{Subject: subject, Reasons: true, Queries: []engine.Query{{Resource: target, Action: schema.AudienceCaller}}}
		for b.Loop() {
			for _, question := range []*engine.CheckRequest{&exchanges, &calls} {
				answer, err := w.engine.Check(ctx, tenantA.ID, *question)
				if err != nil || !answer.Decisions[0].Allowed {
					b.Fatal(answer, err)
				}
				calls.Consistency = engine.Consistency{Mode: engine.Exactly, Token: answer.Token}
			}
		}
	})
	b.Run("authorization_code", func(b *testing.B) {
		for b.Loop() {
			b.StopTimer()
			code, err := w.Authorization.IssueCode(ctx, tenantA, r, by)
			if err != nil {
				b.Fatal(err)
			}
			coded.Code = code
			b.StartTimer()
			token(coded)
		}
	})
	b.Run("refresh_token", func(b *testing.B) {
		code, err := w.Authorization.IssueCode(ctx, tenantA, r, by)
		if err != nil {
			b.Fatal(err)
		}
		coded.Code = code
		renew := plain
		renew.GrantType, renew.Scope, renew.RefreshToken = protocol.GrantRefreshToken, "", token(coded).RefreshToken
		for b.Loop() {
			renew.RefreshToken = token(renew).RefreshToken
		}
	})
	b.Run("introspection", func(b *testing.B) {
		presented := token(plain).AccessToken
		for b.Loop() {
			if i, err := w.Tokens.Introspect(ctx, tenantA, plain.Credentials, presented); err != nil || !i.Active {
				b.Fatal(i, err)
			}
		}
	})
}

// askingEngine is a request for a token that has answers of the engine.
type askingEngine struct {
	name    string
	request grants.Request
}

// answeredByEngine returns requests for tokens with three configured claims, with 2 relations and
// 100 resources in all, and with 20 authorization details.
func answeredByEngine(b *testing.B, w *world) []askingEngine {
	b.Helper()
	ctx := b.Context()
	types := []schema.Type{{Name: "app", Relations: []schema.Relation{{Name: "admin"}, {Name: "viewer"}, {Name: "editor"}}}}
	if _, err := w.engine.ApplyTypes(ctx, tenantA.ID, engine.TypesChange{Put: types}, engine.Origin{}); err != nil {
		b.Fatal(err)
	}
	setup := *client.Machine.Defaults()
	setup.Name, setup.AllowedScopes = "details", []string{"resources:read"}
	detailed, secret, err := w.Clients.Create(ctx, tenantA.ID, setup)
	if err != nil {
		b.Fatal(err)
	}
	asks := request(detailed, secret)
	asks.Scope = "resources:read"
	setup.Name = "claims"
	for _, source := range []client.ClaimSource{
		{Relations: &client.ObjectRelations{Type: "app", ID: client.ClientIDInClaim}},
		{Relations: &client.ObjectRelations{Type: "app", ID: "a0", Names: []string{"admin", "viewer"}}},
		{Resources: &client.TypeAction{Type: "app", Action: "admin"}},
	} {
		setup.Claims = append(setup.Claims, client.Claim{Name: fmt.Sprint("c", len(setup.Claims)), Where: []client.ClaimPlace{client.InAccessToken}, Source: source})
	}
	claiming, secret, err := w.Clients.Create(ctx, tenantA.ID, setup)
	if err != nil {
		b.Fatal(err)
	}
	claims := request(claiming, secret)
	claims.Scope = "resources:read"
	var ops []engine.WriteOp
	var ids []string
	for i := range 99 {
		ids = append(ids, fmt.Sprintf(`"a%d"`, i))
		for _, app := range []client.Application{detailed, claiming} {
			ops = append(ops, engine.WriteOp{
				Resource: tuplestore.Object{Type: "app", ID: fmt.Sprint("a", i)}, Relation: "admin", Subject: tuplestore.Subject{Type: schema.ApplicationType, ID: app.ClientID},
			})
		}
	}
	ops = append(ops, engine.WriteOp{Resource: tuplestore.Object{Type: "app", ID: claiming.ClientID}, Relation: "admin", Subject: tuplestore.Subject{Type: schema.ApplicationType, ID: claiming.ClientID}})
	if _, err := w.engine.Write(ctx, tenantA.ID, engine.WriteRequest{Ops: ops}); err != nil {
		b.Fatal(err)
	}
	asks.Details = `[{"type":"app","actions":["admin"],"identifiers":[` + strings.Join(ids[:20], ",") + `]}]`
	return []askingEngine{{"3 configured claims", claims}, {"20 authorization details", asks}}
}
