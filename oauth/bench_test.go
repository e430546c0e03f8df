package oauth_test

import (
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
