package api_test

import (
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"stonetown/oauth/dpop"
)

// dpopNonces demands nonces of the server in proofs (RFC 9449 §8 and §9).
func dpopNonces(t *testing.T, w *world, c *client) {
	const target = "/api/v1/resource-types"
	bank := newBank(t, c, "Nonces", "", object{"type": "m2m", "redirect_uris": []any{}, "allowed_scopes": []any{"resources:read"}, "require_dpop_nonce": true})
	key := bank.key
	// The clocks of these processes begin a second after a nonce has changed.
	begun := time.Now().Truncate(dpop.NonceInterval).Add(time.Second)
	behind := time.Since(begun)
	after := func(d time.Duration) (*client, func() time.Time) {
		clock := func() time.Time { return time.Now().Add(d - behind) }
		_, at := w.process(t, clock)
		return at(c), clock
	}
	// asks requests a token with a nonce at a process; nil: the proof has none.
	asks := func(at *client, clock func() time.Time, nonce any) answer {
		t.Helper()
		now := clock()
		h := http.Header{"Dpop": {key.Proof(t, "POST", c.base()+"/oauth2/token", "", object{"nonce": nonce, "iat": now.Unix()})}}
		claims := object{"iat": now.Unix(), "exp": now.Add(time.Minute).Unix()}
		return at.with("").form(t, h, asserting(bank.assert(t, bank.id, c.base(), claims), url.Values{"grant_type": {"client_credentials"}}))
	}
	nonceOf := func(a answer) string {
		t.Helper()
		nonce := a.header.Get(dpop.NonceHeader)
		if len(nonce) != 22 {
			t.Fatalf("the nonce is %q: %d %s", nonce, a.status, a.text)
		}
		return nonce
	}
	one, clock := after(0)
	other, _ := after(0)
	a := asks(one, clock, nil)
	equal(t, "without", []any{a.status, a.code()}, []any{400, "use_dpop_nonce"})
	nonce := nonceOf(a)
	stranger := newMachine(t, w.tenant(t, "dpop-nonces-other"), object{"require_dpop_nonce": true})
	for what, bad := range map[string]any{"made up": "AAAAAAAAAAAAAAAAAAAAAA", "empty": "", "longer": nonce + "A", "another tenant's": nonceOf(stranger.proving(key).credential(t))} {
		a := asks(one, clock, bad)
		equal(t, what, []any{a.status, a.code(), nonceOf(a)}, []any{400, "use_dpop_nonce", nonce})
	}
	a = asks(one, clock, nonce)
	token := boundTo(t, "with the nonce", a, key.Thumbprint)
	equal(t, "offered with the token", nonceOf(a), nonce)
	boundTo(t, "at another process", asks(other, clock, nonce), key.Thumbprint)
	equal(t, "a nonce that is no text", asks(one, clock, 7).code(), "invalid_dpop_proof")

	// The API has the same nonces.
	get := func(at *client, nonce any) answer {
		t.Helper()
		proof := key.Proof(t, "GET", c.base()+target, token, object{"nonce": nonce, "iat": clock().Unix()})
		return at.with("").send(t, "GET", target, http.Header{"Authorization": {"DPoP " + token}, "Dpop": {proof}}, nil)
	}
	a = get(one, nil)
	equal(t, "the API, without", []any{a.status, a.code(), nonceOf(a), a.header["Www-Authenticate"][0]},
		[]any{401, "use_dpop_nonce", nonce, `DPoP realm="` + c.base() + `", resource_metadata="` + c.base() + `/.well-known/oauth-protected-resource", algs="ES256 RS256 PS256 EdDSA", error="use_dpop_nonce"`})
	a = get(other, nonce)
	equal(t, "the API", []any{a.status, nonceOf(a)}, []any{200, nonce})

	// Pushed requests need one, too.
	web := newBank(t, c, "Web", "", object{"require_dpop_nonce": true})
	equal(t, "pushed", web.push(t, nil).code(), "use_dpop_nonce")

	// So does registration, which finds out first whether it is on.
	allowRegistration(t, c)
	machine := newMachine(t, c, object{"allowed_scopes": []any{"applications:write"}, "require_dpop_nonce": true})
	offered := nonceOf(machine.proving(key).credential(t))
	h := basic(machine.id, machine.secret)
	h["Dpop"] = []string{key.Proof(t, "POST", c.base()+"/oauth2/token", "", object{"nonce": offered})}
	writes := boundTo(t, "registers", machine.form(t, h, url.Values{"grant_type": {"client_credentials"}}), key.Thumbprint)
	c.with(writes).proving(key).want(t, 401, "use_dpop_nonce", "POST", registerPath, object{"redirect_uris": []any{callback}})

	// Another application is not asked for one, and its tokens need none.
	plain := newMachine(t, c, nil)
	free := plain.proving(key).credential(t)
	equal(t, "nothing is offered", free.header.Get(dpop.NonceHeader), "")
	equal(t, "its token", c.with(boundTo(t, "free", free, key.Thumbprint)).proving(key).want(t, 200, "", "GET", target, nil).header.Get(dpop.NonceHeader), "")

	// The nonce changes every five minutes; the last one stays valid until there is the next.
	later, clockLater := after(dpop.NonceInterval)
	a = asks(later, clockLater, nonce)
	next := nonceOf(a)
	equal(t, "an interval later", []any{a.status, next != nonce}, []any{200, true})
	last, clockLast := after(2 * dpop.NonceInterval)
	a = asks(last, clockLast, nonce)
	equal(t, "two intervals later", []any{a.status, a.code()}, []any{400, "use_dpop_nonce"})
	equal(t, "with the next", asks(last, clockLast, next).status, 200)

	// Scripts of other origins can read it.
	const origin = "https://app.example.com"
	page := newParty(t, c, object{"type": "spa", "redirect_uris": []any{origin + "/cb"}, "allowed_origins": []any{origin}, "dpop_bound_access_tokens": true, "require_dpop_nonce": true})
	a = c.with("").form(t, http.Header{"Origin": {origin}}, url.Values{"grant_type": {"refresh_token"}, "client_id": {page.id}, "refresh_token": {"x"}})
	equal(t, "exposed", strings.Contains(strings.ToLower(a.header.Get("Access-Control-Expose-Headers")), "dpop-nonce"), true)
}
