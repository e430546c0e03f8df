package grants

import (
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"stonetown/oauth/access"
	"stonetown/oauth/client"
	"stonetown/oauth/protocol"
	"stonetown/oauth/scope"
	"stonetown/oauth/token"
	"stonetown/schema"
	"stonetown/tuplestore"
)

// delegation returns a token exchange with an actor, which violates no rule.
func delegation() *exchange {
	app := *client.Server.Defaults()
	app.ClientID, app.State, app.Audience = "cl_a", client.Enabled, "https://a.example.com"
	user := access.User{ID: "usr_subject"}
	return &exchange{
		params: TokenExchange{
			SubjectToken: "s", SubjectTokenType: protocol.TypeAccessToken, ActorToken: "a", ActorTokenType: protocol.TypeIDToken,
			RequestedTokenType: protocol.TypeAccessToken,
		},
		app: app, authenticated: true, key: "key", audience: []string{"https://api.example.com"}, scopes: []string{"reports"},
		subject: presented{subject: tuplestore.Subject{Type: schema.UserType, ID: user.ID}, user: &user, app: app, clientID: "cl_a", tokenID: "tok_s", scopes: []string{"reports"}, key: "key", acr: protocol.AAL2, expires: time.Unix(1000, 0)},
		actor:   &presented{subject: tuplestore.Subject{Type: schema.UserType, ID: "usr_actor"}, clientID: "cl_b", tokenID: "tok_a", key: "key", expires: time.Unix(2000, 0)},
		allowed: answers{exchange: true, targets: []bool{true}, callers: []bool{true}, delegates: true, acts: true},
		granted: token.Claims{Act: &token.Actor{Subject: "usr_actor"}, Ancestors: []token.Ancestor{{TokenID: "tok_s"}, {TokenID: "tok_a"}}},
	}
}

var stages = []stage{stageForm, stageTokens, stageKey, stageRequest, stagePolicy, stageResult}

// firstDenial applies the rules as the grant does.
func firstDenial(e *exchange) *denial {
	for _, at := range stages {
		var d *denial
		if errors.As(e.check(at), &d) {
			return d
		}
	}
	return nil
}

func actors(n int) (chain *token.Actor) {
	for range n {
		chain = &token.Actor{Subject: "usr_x", Act: chain}
	}
	return chain
}

func TestExchangeRules(t *testing.T) {
	if d := firstDenial(delegation()); d != nil {
		t.Fatalf("the valid exchange: %v", d)
	}
	_, malformed := scope.Parse(`"`)
	// In the order of the table, latest rule last.
	tests := []struct {
		name   string
		change func(*exchange)
		reason string
		code   protocol.Code
	}{
		{"no subject token", func(e *exchange) { e.params.SubjectToken = "" }, "malformed", protocol.InvalidRequest},
		{"actor token without type", func(e *exchange) { e.params.ActorTokenType = "" }, "malformed", protocol.InvalidRequest},
		{"SAML assertion", func(e *exchange) { e.params.SubjectTokenType = "urn:ietf:params:oauth:token-type:saml2" }, "malformed", protocol.InvalidRequest},
		{"SAML assertion of the actor", func(e *exchange) { e.params.ActorTokenType = "urn:ietf:params:oauth:token-type:saml2" }, "malformed", protocol.InvalidRequest},
		{"refresh token requested", func(e *exchange) { e.params.RequestedTokenType = protocol.TypeRefreshToken }, "malformed", protocol.InvalidRequest},
		{"token of another application", func(e *exchange) {
			e.app.TokenExchange.SubjectTokens, e.subject.clientID, e.subject.audience = client.OwnSubjectTokens, "cl_b", []string{"https://b.example.com"}
		}, "subject_token_not_own", protocol.InvalidGrant},
		{"key of the subject token", func(e *exchange) { e.subject.key = "other" }, "subject_token_key", protocol.InvalidRequest},
		{"key of the actor token", func(e *exchange) { e.actor.key = "other" }, "actor_token_key", protocol.InvalidRequest},
		{"malformed scope", func(e *exchange) { e.scopesErr = malformed }, "scope_malformed", protocol.InvalidScope},
		{"too many audiences", func(e *exchange) { e.audience = slices.Repeat(e.audience, maxTargets+1) }, "audience_too_many", protocol.InvalidRequest},
		{"relative audience", func(e *exchange) { e.audience = append(e.audience, "/x") }, "audience_malformed", protocol.InvalidTarget},
		{"no permission to exchange", func(e *exchange) { e.allowed.exchange = false }, "not_enabled", protocol.InvalidGrant},
		{"no permission for an audience", func(e *exchange) { e.allowed.targets = []bool{true, false} }, "audience_not_permitted", protocol.InvalidTarget},
		{"subject may not call", func(e *exchange) { e.allowed.callers = []bool{false} }, "audience_denied", protocol.InvalidTarget},
		{"no delegation", func(e *exchange) { e.allowed.delegates = false }, "act_as_not_enabled", protocol.InvalidGrant},
		{"actor may not act", func(e *exchange) { e.allowed.acts = false }, "act_as_denied", protocol.InvalidGrant},
		{"scopes that the subject lacks", func(e *exchange) { e.exceeds = true }, "scope", protocol.InvalidScope},
		{"long chain of actors", func(e *exchange) { e.granted.Act = actors(maxActors + 1) }, "act_chain", protocol.InvalidGrant},
		{"long chain of exchanges", func(e *exchange) { e.granted.Ancestors = make([]token.Ancestor, token.MaxAncestors+1) }, "too_many_exchanges", protocol.InvalidGrant},
	}
	if len(tests) != len(exchangeRules) {
		t.Errorf("%d tests of %d rules", len(tests), len(exchangeRules))
	}
	all := delegation()
	for i, test := range slices.Backward(tests) {
		e := delegation()
		test.change(e)
		d := firstDenial(e)
		if d == nil || d.reason != test.reason || d.refusal.Code != test.code || d.refusal.Description == "" {
			t.Errorf("%s: %+v, want %s", test.name, d, test.reason)
		}
		// Together with all that come later it is still the one that is reported.
		if test.change(all); d != nil && firstDenial(all).refusal.Description != d.refusal.Description {
			t.Errorf("%s and all later ones: %v", test.name, firstDenial(all))
		}
		if exchangeRules[i].reason != test.reason {
			t.Errorf("rule %d is %s, not %s", i, exchangeRules[i].reason, test.reason)
		}
	}
}

// Bounds are inclusive, and rules about actors apply only if there is one.
func TestExchangeBounds(t *testing.T) {
	for name, change := range map[string]func(*exchange){
		"longest chain of actors":    func(e *exchange) { e.granted.Act = actors(maxActors) },
		"longest chain of exchanges": func(e *exchange) { e.granted.Ancestors = make([]token.Ancestor, token.MaxAncestors) },
		"most audiences":             func(e *exchange) { e.audience = slices.Repeat(e.audience, maxTargets) },
		"no actor": func(e *exchange) {
			e.params.ActorToken, e.params.ActorTokenType, e.actor = "", "", nil
			e.allowed.delegates, e.allowed.acts, e.granted.Act = false, false, actors(maxActors+1) // of the subject token
		},
		"unbound tokens": func(e *exchange) { e.subject.key, e.actor.key = "", "" },
		"own by audience": func(e *exchange) {
			e.app.TokenExchange.SubjectTokens, e.subject.clientID, e.subject.audience = client.OwnSubjectTokens, "cl_b", []string{"https://a.example.com"}
		},
		"own by client id": func(e *exchange) {
			e.app.TokenExchange.SubjectTokens, e.subject.clientID, e.subject.audience = client.OwnSubjectTokens, "cl_b", []string{"cl_a"}
		},
		"no requested type":      func(e *exchange) { e.params.RequestedTokenType = "" },
		"token of another, any":  func(e *exchange) { e.subject.clientID = "cl_b" },
		"no audience, no scopes": func(e *exchange) { e.audience, e.scopes, e.allowed.targets, e.allowed.callers = nil, nil, nil, nil },
	} {
		e := delegation()
		change(e)
		if d := firstDenial(e); d != nil {
			t.Errorf("%s: %v", name, d)
		}
	}
}

// The new token has the least of everything: the earliest expiry, and AAL1 if an actor acts.
func TestExchangeResult(t *testing.T) {
	e := delegation()
	e.until = time.Unix(3000, 0)
	e.subject.ancestors, e.actor.ancestors = []token.Ancestor{{TokenID: "tok_0"}}, []token.Ancestor{{TokenID: "tok_0"}, {TokenID: "tok_1"}}
	e.result(token.Entitlement{})
	if got := e.granted; got.Expires != 1000 || got.ACR != protocol.AAL1 || got.Act.Subject != "usr_actor" || got.Parent != "tok_s" || got.Subject != "usr_subject" {
		t.Errorf("%+v", got)
	}
	if !e.exceeds {
		t.Error("a scope that the subject does not have is granted")
	}
	var ids []string
	for _, a := range e.granted.Ancestors {
		ids = append(ids, a.TokenID)
	}
	if got := strings.Join(ids, " "); got != "tok_s tok_0 tok_a tok_1" {
		t.Errorf("ancestors are %s", got)
	}
	e.actor.expires = time.Unix(900, 0)
	if e.result(token.Entitlement{}); e.granted.Expires != 900 {
		t.Errorf("expires at %d, after the actor's token", e.granted.Expires)
	}
	e.until = time.Unix(800, 0)
	if e.result(token.Entitlement{}); e.granted.Expires != 800 {
		t.Errorf("expires at %d, after the relations", e.granted.Expires)
	}
	e.actor, e.audience, e.subject.audience = nil, nil, []string{"https://x.example.com"}
	if e.result(token.Entitlement{}); e.granted.ACR != protocol.AAL2 || !slices.Equal(e.granted.Audience, []string{"https://x.example.com"}) || e.granted.Act != nil {
		t.Errorf("without actor and audience: %+v", e.granted)
	}
}

func TestVerifies(t *testing.T) {
	const challenge, verifier = "E9Melhoa2OwvFrEMTJguCHaoeK1t8URWbuGJSstw-cM", "dBjftJeZ4CVP-mB92K27uhbUJU1p1r_wW1gFWFOEjXk" // RFC 7636, appendix B
	for name, test := range map[string]struct {
		challenge, verifier string
		want                bool
	}{
		"RFC 7636":          {challenge, verifier, true},
		"another":           {challenge, strings.Repeat("x", 43), false},
		"none":              {challenge, "", false},
		"the challenge":     {challenge, challenge, false},
		"too short":         {challenge, verifier[:42], false},
		"too long":          {challenge, strings.Repeat("x", 129), false},
		"without challenge": {"", "", true},
		"injected":          {"", verifier, false},
	} {
		if got := verifies(test.challenge, test.verifier); got != test.want {
			t.Errorf("%s: %v", name, got)
		}
	}
}
