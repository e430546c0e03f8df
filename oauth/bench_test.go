package oauth

import (
	"context"
	"strings"
	"testing"
	"time"

	"stonetown/engine"
	"stonetown/schema"
	"stonetown/tuplestore"
)

// somebody is everybody: one who is always signed in.
type somebody struct{}

func (somebody) Person(_ context.Context, _, userID string) (Person, error) {
	return Person{ID: userID, Email: "ann@example.com"}, nil
}

func (somebody) ValidFrom(context.Context, string, string) (time.Time, error) {
	return time.Time{}, nil
}
func (somebody) SessionLive(context.Context, string, string) (bool, error) { return true, nil }
func (somebody) LiveSessions(_ context.Context, _ string, ids []string) (int, time.Time, error) {
	return len(ids), time.Time{}, nil
}

// BenchmarkIssue is what the ways to get a token cost, in process and on an embedded
// database, all in one run.
func BenchmarkIssue(b *testing.B) {
	w := newWorld(b)
	w.people = somebody{}
	ctx := b.Context()
	const api = "https://api.example.com"
	setup := *Server.Defaults()
	setup.Name, setup.RedirectURIs, setup.AllowedScopes = "bench", []string{"https://app.example.com/cb"}, append(OIDCScopes, "resources:read")
	setup.TokenExchange.Enabled, setup.TokenExchange.AllowedAudiences = true, []string{api}
	app, secret, err := w.Register(ctx, tenantA.ID, setup)
	if err != nil {
		b.Fatal(err)
	}
	caller := engine.WriteOp{
		Resource: tuplestore.Object{Type: schema.AudienceType, ID: api}, Relation: schema.AudienceCaller,
		Subject: tuplestore.Subject{Type: schema.ApplicationType, ID: app.ClientID},
	}
	if _, err := w.relations.Write(ctx, tenantA.ID, engine.WriteRequest{Ops: []engine.WriteOp{caller}}); err != nil {
		b.Fatal(err)
	}
	plain := request(app, secret)
	plain.Scope = "resources:read"
	token := func(req TokenRequest) TokenResponse {
		b.Helper()
		r, err := w.Token(ctx, tenantA, req)
		if err != nil {
			b.Fatal(err)
		}
		return r
	}
	exchange := plain
	exchange.GrantType, exchange.Audience = GrantTokenExchange, []string{api}
	exchange.Exchange = ExchangeRequest{SubjectToken: token(plain).AccessToken, SubjectTokenType: TypeAccessToken}
	r := AuthorizationRequest{ClientID: app.ClientID, RedirectURI: setup.RedirectURIs[0], Scopes: OIDCScopes[:1], Challenge: "E9Melhoa2OwvFrEMTJguCHaoeK1t8URWbuGJSstw-cM"}
	by := Authentication{UserID: "usr_1", SessionID: "ses_1", Methods: []string{"pwd"}, AuthTime: w.clock.now}
	coded := plain
	coded.GrantType, coded.Scope, coded.RedirectURI, coded.CodeVerifier = GrantAuthorizationCode, "", r.RedirectURI, "dBjftJeZ4CVP-mB92K27uhbUJU1p1r_wW1gFWFOEjXk"

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
				if _, err := w.Token(ctx, tenantA, exchange); err != nil {
					b.Error(err)
				}
			}
		})
	})
	b.Run("token_exchange/engine", func(b *testing.B) { // the part of it that is asked of the engine
		e := exchangeOf(app, strings.Fields(api))
		for b.Loop() {
			if denied, err := w.permitted(ctx, tenantA, &e); err != nil || denied != nil {
				b.Fatal(denied, err)
			}
		}
	})
	b.Run("authorization_code", func(b *testing.B) {
		for b.Loop() {
			b.StopTimer()
			code, err := w.IssueCode(ctx, tenantA, r, by)
			if err != nil {
				b.Fatal(err)
			}
			coded.Code = code
			b.StartTimer()
			token(coded)
		}
	})
	b.Run("refresh_token", func(b *testing.B) {
		code, err := w.IssueCode(ctx, tenantA, r, by)
		if err != nil {
			b.Fatal(err)
		}
		coded.Code = code
		renew := plain
		renew.GrantType, renew.Scope, renew.RefreshToken = GrantRefreshToken, "", token(coded).RefreshToken
		for b.Loop() {
			renew.RefreshToken = token(renew).RefreshToken
		}
	})
	b.Run("introspection", func(b *testing.B) {
		presented := token(plain).AccessToken
		for b.Loop() {
			if i, err := w.Introspect(ctx, tenantA, plain.Credentials, presented); err != nil || !i.Active {
				b.Fatal(i, err)
			}
		}
	})
}

func exchangeOf(app Application, audience []string) exchange {
	subject := presented{subject: tuplestore.Subject{Type: schema.ApplicationType, ID: app.ClientID}, clientID: app.ClientID}
	return exchange{app: app, authenticated: true, subject: subject, audience: audience}
}
