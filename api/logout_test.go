package api_test

import (
	"net/http"
	"net/http/httptest"
	"net/url"
	"slices"
	"testing"
	"time"

	"github.com/lestrrat-go/jwx/v3/jwk"
	"github.com/lestrrat-go/jwx/v3/jws"
)

const logoutPath = "/oauth2/logout"

// logout signs the user out at once with an ID token of the session, and otherwise asks the
// user. It redirects only to registered URIs.
func logout(t *testing.T, w *world, c *client) {
	w.ahead.Store(0)
	member(t, c, "ann@example.com")
	bye := "https://app.example.com/bye?x=1"
	p := newParty(t, c, object{"post_logout_redirect_uris": []any{bye}})
	other := newParty(t, c, object{"post_logout_redirect_uris": []any{"https://other.example.com/"}})
	enter := func() (idToken, refresh string) {
		t.Helper()
		p.session = signIn(t, c, "ann@example.com", secret, "complete").data()["session_token"].(string)
		a := p.exchange(t, p.code(t, nil), nil)
		return a.body["id_token"].(string), a.body["refresh_token"].(string)
	}
	leave := func(v url.Values) (answer, *url.URL) { t.Helper(); return p.browse(t, logoutPath+"?"+v.Encode()) }
	live := func() bool {
		return c.with(p.session).do(t, "GET", mePath+"/profile", nil).status == 200
	}

	hint, refresh := enter()
	a, to := leave(url.Values{"id_token_hint": {hint}, "post_logout_redirect_uri": {bye}, "state": {"a&b"}})
	equal(t, "out", []any{a.status, to.String(), live()}, []any{302, bye + "&state=a%26b", false})
	equal(t, "refresh", p.refresh(t, refresh, nil).code(), "invalid_grant")
	cookie, err := http.ParseSetCookie(a.header.Get("Set-Cookie"))
	if err != nil || cookie.Name != "__Host-sid" || cookie.MaxAge >= 0 {
		t.Errorf("cookie: %v, %v", cookie, err)
	}
	// Without a session the result is the same.
	_, to = leave(url.Values{"id_token_hint": {hint}, "post_logout_redirect_uri": {bye}})
	equal(t, "out already", to.String(), bye)
	_, to = leave(nil)
	equal(t, "nowhere to go", to.String(), "/auth/sign-in?done=out")

	// Without the ID token of the session the user is asked.
	old := hint
	hint, _ = enter()
	for what, v := range map[string]url.Values{
		"no hint": {}, "of an older session": {"id_token_hint": {old}}, "a client alone": {"client_id": {p.id}}, "not signed": {"id_token_hint": {hint[:len(hint)-6] + "AAAAAA"}},
		"another token": {"id_token_hint": {p.exchange(t, p.code(t, nil), nil).body["access_token"].(string)}},
	} {
		_, to := leave(v)
		equal(t, what, []any{to.Path, to.Query().Get("next"), live()}, []any{"/auth/sign-out", logoutPath + "?" + v.Encode(), true})
	}
	// The page signs out, and the redirect is validated again.
	v := url.Values{"client_id": {p.id}, "post_logout_redirect_uri": {bye}, "state": {"s"}}
	fromElsewhere := http.Header{"Cookie": {"__Host-sid=" + p.session}, "Sec-Fetch-Site": {"cross-site"}}
	equal(t, "from another site", []any{c.visit(t, "POST", "/auth/sign-out", fromElsewhere, url.Values{"next": {"/"}}).status, live()}, []any{403, true})
	equal(t, "page", c.visit(t, "GET", "/auth/sign-out?next=/", asBrowser(p.session), nil).status, 200)
	said := c.visit(t, "POST", "/auth/sign-out", asBrowser(p.session), url.Values{"next": {logoutPath + "?" + v.Encode()}})
	equal(t, "said", []any{said.status, said.header.Get("Location"), live()}, []any{303, logoutPath + "?" + v.Encode(), false})
	_, to = leave(v)
	equal(t, "then", to.String(), bye+"&state=s")

	// Only registered URIs are accepted.
	for what, v := range map[string]url.Values{
		"another path": {"client_id": {p.id}, "post_logout_redirect_uri": {bye + "2"}}, "slash": {"client_id": {other.id}, "post_logout_redirect_uri": {"https://other.example.com"}},
		"another's": {"client_id": {p.id}, "post_logout_redirect_uri": {"https://other.example.com/"}}, "nobody's": {"client_id": {"nobody"}, "post_logout_redirect_uri": {bye}}, "of no client": {"post_logout_redirect_uri": {bye}},
		"a redirect_uri": {"client_id": {p.id}, "post_logout_redirect_uri": {callback}},
	} {
		_, to := leave(v)
		equal(t, what, to.String(), "/auth/sign-in?done=out")
	}
	hint, _ = enter()
	for what, v := range map[string]url.Values{
		"another's token": {"id_token_hint": {hint}, "client_id": {other.id}}, "twice": {"client_id": {p.id, p.id}}, "state": {"state": {"\x00"}}, "long state": {"state": {long(2049)}},
	} {
		a, to := leave(v)
		equal(t, what, []any{a.status, to.String(), live()}, []any{400, "", true})
	}
	// By POST, which becomes a GET.
	post := p.send(t, "POST", logoutPath, http.Header{"Content-Type": {"application/x-www-form-urlencoded"}}, []byte(url.Values{"id_token_hint": {hint}}.Encode()))
	equal(t, "post", []any{post.status, post.header.Get("Location"), live()}, []any{303, logoutPath + "?id_token_hint=" + hint, true})
	large := p.send(t, "POST", logoutPath, http.Header{"Content-Type": {"application/x-www-form-urlencoded"}}, []byte(url.Values{"state": {long(70_000)}}.Encode()))
	equal(t, "too large", large.status, 400)
}

// backchannelLogout notifies applications of each session that ends, by whichever operation
// (OIDC Back-Channel Logout).
func backchannelLogout(t *testing.T, w *world, c *client) {
	w.ahead.Store(0)
	id := member(t, c, "ann@example.com")
	status, tokens := make(chan int, 1), make(chan string, 100)
	status <- http.StatusOK
	server := httptest.NewServer(http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
		if r.Method != "POST" || r.Header.Get("Content-Type") != "application/x-www-form-urlencoded" {
			t.Errorf("%s %s", r.Method, r.Header)
		}
		tokens <- r.FormValue("logout_token")
		now := <-status
		status <- now
		rw.WriteHeader(now)
	}))
	t.Cleanup(server.Close)
	answer := func(with int) { <-status; status <- with }
	p := newParty(t, c, object{"backchannel_logout_uri": server.URL + "/out", "backchannel_logout_session_required": true})
	other := newParty(t, c, object{"backchannel_logout_uri": server.URL + "/other"})
	silent := newParty(t, c, nil)
	enter := func(parties ...*relyingParty) (sid string) {
		t.Helper()
		session := signIn(t, c, "ann@example.com", secret, "complete").data()["session_token"].(string)
		for _, party := range parties {
			party.session = session
			sid = claimsOf(t, party.exchange(t, party.code(t, nil), nil).body["id_token"].(string))["sid"].(string)
		}
		return sid
	}
	// hears waits for a logout token and returns its claims.
	hears := func() map[string]any {
		t.Helper()
		select {
		case token := <-tokens:
			keys, err := jwk.Parse([]byte(c.with("").want(t, 200, "", "GET", "/.well-known/jwks.json", nil).text))
			if err != nil {
				t.Fatal(err)
			}
			if _, err := jws.Verify([]byte(token), jws.WithKeySet(keys)); err != nil {
				t.Fatalf("logout token: %v", err)
			}
			message, err := jws.ParseString(token)
			if err != nil {
				t.Fatal(err)
			}
			if typ, _ := message.Signatures()[0].ProtectedHeaders().Type(); typ != "logout+jwt" {
				t.Errorf("typ %q", typ)
			}
			c.with(token).want(t, 401, "invalid_token", "GET", mePath+"/profile", nil) // it is good for nothing else
			return claimsOf(t, token)
		case <-time.After(10 * time.Second):
			t.Fatal("nothing heard")
			return nil
		}
	}
	hearsOf := func(sid string, parties ...*relyingParty) {
		t.Helper()
		var audiences, want []string
		for _, party := range parties {
			claims := hears()
			events, _ := claims["events"].(map[string]any)
			_, is := events["http://schemas.openid.net/event/backchannel-logout"]
			lifetime := claims["exp"].(float64) - claims["iat"].(float64)
			equal(t, "claims", []any{claims["iss"], claims["sub"], claims["sid"], is, claims["nonce"], claims["jti"] != nil, lifetime}, []any{c.base(), id, sid, true, nil, true, 120.0})
			audiences, want = append(audiences, claims["aud"].(string)), append(want, party.id)
		}
		slices.Sort(audiences)
		slices.Sort(want)
		equal(t, "who was told", audiences, want)
	}

	sid := enter(p, other, silent)
	c.with(p.session).want(t, 204, "", "POST", authPath+"/logout", nil)
	hearsOf(sid, p, other)
	// An application gets no notification of sessions that it was not part of.
	first := enter(p)
	kept := p.session
	second := enter(p)
	c.with(kept).want(t, 204, "", "DELETE", mePath+"/sessions/"+second, nil)
	hearsOf(second, p)
	c.want(t, 204, "", "DELETE", "/api/v1/users/"+id+"/sessions/"+first, nil)
	hearsOf(first, p)
	sid = enter(p)
	c.want(t, 200, "", "POST", "/api/v1/users/"+id+"/disable", nil)
	hearsOf(sid, p)
	c.want(t, 200, "", "POST", "/api/v1/users/"+id+"/enable", nil)

	// Three attempts fail, and then the failure is recorded.
	answer(http.StatusInternalServerError)
	sid = enter(p)
	c.with(p.session).want(t, 204, "", "POST", authPath+"/logout", nil)
	hearsOf(sid, p)
	for _, wait := range []time.Duration{30 * time.Second, 5 * time.Minute} {
		for tries := 0; ; tries++ { // until the failure is noted
			var due int64
			if err := w.db.QueryRow(t.Context(), `SELECT due_at FROM jobs WHERE kind = 'backchannel_logout'`).Scan(&due); err != nil || tries > 500 {
				t.Fatalf("due at %d, %v", due, err)
			}
			if left := time.UnixMicro(due).Sub(w.now()); left <= wait && left > wait-20*time.Second {
				w.later(left - 2*time.Second)
				break
			}
			time.Sleep(20 * time.Millisecond)
		}
		select {
		case <-tokens:
			t.Errorf("told again before %s", wait)
		case <-time.After(1200 * time.Millisecond):
		}
		w.later(2 * time.Second)
		hearsOf(sid, p)
	}
	for range 50 {
		if len(w.types(t, c, "application.logout")) > 0 {
			break
		}
		time.Sleep(100 * time.Millisecond)
	}
	equal(t, "events", w.types(t, c, "application.logout"), []string{"application.logout_failed"})

	// Deleting the user ends sessions, too. An application that requires a sid is not notified
	// without one.
	answer(http.StatusNoContent)
	w.ahead.Store(0)
	sid = enter(p)
	c.want(t, 204, "", "DELETE", "/api/v1/users/"+id, nil)
	hearsOf(sid, p)
	select {
	case <-tokens:
		t.Error("told once more")
	case <-time.After(1200 * time.Millisecond):
	}
}
