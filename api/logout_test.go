package api_test

import (
	"net/http"
	"net/url"
	"testing"
)

const logoutPath = "/oauth2/logout"

// An application signs its user out: at once with an ID token of the session, and else the
// person is asked. Nobody is sent where the application has not said.
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
	// Nobody is signed in any more, which comes to the same.
	_, to = leave(url.Values{"id_token_hint": {hint}, "post_logout_redirect_uri": {bye}})
	equal(t, "out already", to.String(), bye)
	_, to = leave(nil)
	equal(t, "nowhere to go", to.String(), "/auth/sign-in?done=out")

	// Not with the ID token of the session: the person is asked.
	old := hint
	hint, _ = enter()
	for what, v := range map[string]url.Values{
		"no hint": {}, "of an older session": {"id_token_hint": {old}}, "a client alone": {"client_id": {p.id}}, "not signed": {"id_token_hint": {hint[:len(hint)-6] + "AAAAAA"}},
		"another token": {"id_token_hint": {p.exchange(t, p.code(t, nil), nil).body["access_token"].(string)}},
	} {
		_, to := leave(v)
		equal(t, what, []any{to.Path, to.Query().Get("next"), live()}, []any{"/auth/sign-out", logoutPath + "?" + v.Encode(), true})
	}
	// The page signs out, and what comes next is judged again.
	v := url.Values{"client_id": {p.id}, "post_logout_redirect_uri": {bye}, "state": {"s"}}
	fromElsewhere := http.Header{"Cookie": {"__Host-sid=" + p.session}, "Sec-Fetch-Site": {"cross-site"}}
	equal(t, "from another site", []any{c.visit(t, "POST", "/auth/sign-out", fromElsewhere, url.Values{"next": {"/"}}).status, live()}, []any{403, true})
	equal(t, "page", c.visit(t, "GET", "/auth/sign-out?next=/", asBrowser(p.session), nil).status, 200)
	said := c.visit(t, "POST", "/auth/sign-out", asBrowser(p.session), url.Values{"next": {logoutPath + "?" + v.Encode()}})
	equal(t, "said", []any{said.status, said.header.Get("Location"), live()}, []any{303, logoutPath + "?" + v.Encode(), false})
	_, to = leave(v)
	equal(t, "then", to.String(), bye+"&state=s")

	// Nowhere but where the application has said.
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
