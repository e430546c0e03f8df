package api_test

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"sync"
	"testing"
	"time"

	"stonetown/internal/eventlog"
)

const threatsPath = "/api/v1/threat-feeds"

// put uploads the entries of a feed.
func putEntries(t testing.TB, c *client, status int, code, path, text string) answer {
	t.Helper()
	a := c.send(t, "PUT", path+"/entries", http.Header{"Content-Type": {"text/plain"}}, []byte(text))
	if a.status != status || a.code() != code {
		t.Fatalf("upload: %d %q, want %d %q\n%s", a.status, a.code(), status, code, a.text)
	}
	return a
}

// newFeed creates a feed with uploaded entries.
func newFeed(t testing.TB, c *client, kind, mode, text string) (path string) {
	t.Helper()
	path = c.want(t, 201, "", "POST", threatsPath, object{"name": "Test", "kind": kind, "source": "upload", "mode": mode}).header.Get("Location")
	putEntries(t, c, 200, "", path, text)
	return path
}

// threatFeeds: feeds are created, filled, changed and deleted. Every change is an event.
func threatFeeds(t *testing.T, w *world, c *client) {
	created := c.want(t, 201, "", "POST", threatsPath, object{"name": "Own list", "kind": "address", "source": "upload", "mode": "log"})
	feed, path := created.data(), created.header.Get("Location")
	equal(t, "location", path, threatsPath+"/"+feed["id"].(string))
	equal(t, "empty", []any{feed["enabled"], feed["entries"], feed["url"], feed["refresh_interval_s"], feed["listed_at"]}, []any{true, 0.0, nil, nil, nil})
	equal(t, "event", lastEvent(t, w, c, eventlog.SecurityThreatFeedCreated), object{"feed": feed})
	lookup := func(value string) any {
		t.Helper()
		d := c.want(t, 200, "", "GET", path+"/lookup?value="+url.QueryEscape(value), nil).data()
		equal(t, "matched", d["matched"], d["entry"] != nil)
		return d["entry"]
	}
	equal(t, "nothing", lookup("203.0.113.7"), nil)

	feed = putEntries(t, c, 200, "", path, "# list\n203.0.113.0/24 ; SBL1\nbad line\n2001:db8::1\n").data()
	equal(t, "filled", []any{feed["entries"], feed["bad_lines"], feed["first_bad_lines"], feed["failure"]}, []any{2.0, 1.0, []any{3.0}, nil})
	equal(t, "changes", lastEvent(t, w, c, eventlog.SecurityThreatFeedUpdated)["changes"], object{"listed_at": []any{nil, feed["listed_at"]}, "entries": []any{0.0, 2.0}, "bad_lines": []any{0.0, 1.0}, "first_bad_lines": []any{[]any{}, []any{3.0}}})
	for value, want := range map[string]any{"203.0.113.7": "203.0.113.0/24", "::ffff:203.0.113.7": "203.0.113.0/24", "2001:db8:0::1": "2001:db8::1/128", "192.0.2.1": nil} {
		equal(t, value, lookup(value), want)
	}
	c.want(t, 400, "validation_failed", "GET", path+"/lookup?value=example.com", nil)

	// A list that is no list changes nothing, and the same list is no event.
	putEntries(t, c, 400, "validation_failed", path, "<html>\n")
	putEntries(t, c, 400, "validation_failed", path, "")
	events := len(w.told(t, c, eventlog.SecurityThreatFeedUpdated))
	putEntries(t, c, 200, "", path, "2001:db8::1/128\n203.0.113.9/24\nbad line\n\n")
	equal(t, "kept", lookup("203.0.113.7"), "203.0.113.0/24")
	equal(t, "events", len(w.told(t, c, eventlog.SecurityThreatFeedUpdated)), events)
	c.want(t, 409, "threat_feed_source_mismatch", "POST", path+"/refresh", nil)

	changed := c.want(t, 200, "", "PATCH", path, object{"mode": "refuse", "enabled": false, "name": "Ours"}).data()
	equal(t, "changed", []any{changed["mode"], changed["enabled"], changed["name"], changed["entries"]}, []any{"refuse", false, "Ours", 2.0})
	equal(t, "changes", lastEvent(t, w, c, eventlog.SecurityThreatFeedUpdated)["changes"], object{"mode": []any{"log", "refuse"}, "enabled": []any{true, false}, "name": []any{"Own list", "Ours"}})

	// Refusals.
	for _, form := range []object{
		{},
		{"name": "x", "kind": "address", "source": "upload"},
		{"name": "x", "kind": "address", "mode": "log"},
		{"name": "x", "source": "upload", "mode": "log"},
		{"name": "x", "kind": "address", "source": "upload", "mode": "off"},
		{"name": "x", "kind": "country", "source": "upload", "mode": "log"},
		{"name": "x", "kind": 1, "source": "upload", "mode": "log"},
		{"name": "x", "kind": "address", "source": "file", "mode": "log"},
		{"name": "two\nlines", "kind": "address", "source": "upload", "mode": "log"},
		{"name": long(101), "kind": "address", "source": "upload", "mode": "log"},
		{"name": "x", "kind": "address", "source": "upload", "mode": "log", "url": "https://feeds.example"},
		{"name": "x", "kind": "address", "source": "upload", "mode": "log", "refresh_interval_s": 3600},
		{"name": "x", "kind": "address", "source": "url", "mode": "log"},
		{"name": "x", "kind": "address", "source": "url", "mode": "log", "url": "ftp://feeds.example"},
		{"name": "x", "kind": "address", "source": "url", "mode": "log", "url": "https://feeds.example", "refresh_interval_s": 899},
		{"name": "x", "kind": "address", "source": "url", "mode": "log", "url": "https://feeds.example", "refresh_interval_s": 604801},
		{"name": "x", "kind": "address", "source": "url", "mode": "log", "url": "https://feeds.example", "refresh_interval_s": 1.5},
	} {
		c.want(t, 400, "validation_failed", "POST", threatsPath, form)
	}
	c.want(t, 200, "", "PATCH", path, object{"url": nil}) // it has none
	for _, form := range []object{{"name": ""}, {"name": nil}, {"mode": nil}, {"mode": "x"}, {"enabled": nil}, {"enabled": "yes"}, {"url": "https://feeds.example"}, {"refresh_interval_s": 3600}} {
		c.want(t, 400, "validation_failed", "PATCH", path, form)
	}
	for _, name := range []string{"id", "kind", "source", "entries", "created_at"} {
		c.want(t, 400, "immutable_field", "PATCH", path, object{name: "x"})
	}

	// Rights, and other tenants.
	reader := c.with(w.token(t, c, w.application(t, c, "settings:read", "users:write")))
	reader.want(t, 200, "", "GET", path, nil)
	reader.want(t, 403, "insufficient_scope", "PATCH", path, object{"mode": "log"})
	putEntries(t, reader, 403, "insufficient_scope", path, "192.0.2.1")
	writer := c.with(w.token(t, c, w.application(t, c, "settings:write")))
	writer.want(t, 403, "insufficient_scope", "GET", path+"/lookup?value=192.0.2.1", nil)
	other := w.tenant(t, c.name()+"-other")
	equal(t, "of another tenant", len(other.want(t, 200, "", "GET", threatsPath, nil).list()), 0)
	other.want(t, 404, "threat_feed_not_found", "GET", path, nil)
	other.want(t, 404, "threat_feed_not_found", "GET", path+"/lookup?value=192.0.2.1", nil)
	other.want(t, 404, "threat_feed_not_found", "PATCH", path, object{"mode": "log"})
	other.want(t, 404, "threat_feed_not_found", "POST", path+"/refresh", nil)
	other.want(t, 404, "threat_feed_not_found", "DELETE", path, nil)
	putEntries(t, other, 404, "threat_feed_not_found", path, "192.0.2.1")

	// Lists, and the limit.
	for n := range 9 {
		c.want(t, 201, "", "POST", threatsPath, object{"name": fmt.Sprint("Feed ", n), "kind": "mail_domain", "source": "upload", "mode": "log"})
	}
	c.want(t, 409, "threat_feed_limit_reached", "POST", threatsPath, object{"name": "One more", "kind": "address", "source": "upload", "mode": "log"})
	page := c.want(t, 200, "", "GET", threatsPath+"?limit=9", nil)
	equal(t, "newest", page.list()[0].(object)["name"], "Feed 8")
	last := c.want(t, 200, "", "GET", threatsPath+"?limit=9&cursor="+url.QueryEscape(page.meta("next_cursor").(string)), nil)
	equal(t, "oldest", []any{last.list()[0].(object)["name"], last.meta("next_cursor")}, []any{"Ours", nil})

	c.want(t, 400, "validation_failed", "GET", threatsPath+"?limit=0", nil)
	c.want(t, 400, "cursor_invalid", "GET", threatsPath+"?cursor=x", nil)

	c.want(t, 204, "", "DELETE", path, nil)
	equal(t, "event", lastEvent(t, w, c, eventlog.SecurityThreatFeedDeleted), object{"feed": changed})
	c.want(t, 404, "threat_feed_not_found", "GET", path, nil)
}

// listServer serves a list.
type listServer struct {
	*httptest.Server
	mu       sync.Mutex
	status   int
	text     string
	requests []http.Header
}

func newListServer(t testing.TB) *listServer {
	l := &listServer{status: http.StatusOK}
	l.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		l.mu.Lock()
		defer l.mu.Unlock()
		l.requests = append(l.requests, r.Header)
		w.Header().Set("ETag", fmt.Sprintf(`"%d"`, len(l.text)))
		w.Header().Set("Last-Modified", "Fri, 20 Nov 2026 19:27:00 GMT")
		if r.Header.Get("If-None-Match") == w.Header().Get("ETag") {
			w.WriteHeader(http.StatusNotModified)
			return
		}
		w.WriteHeader(l.status)
		_, _ = w.Write([]byte(l.text))
	}))
	t.Cleanup(l.Close)
	return l
}

// serve sets the answer, and returns the number of requests so far.
func (l *listServer) serve(status int, text string) int {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.status, l.text = status, text
	return len(l.requests)
}

func (l *listServer) header(n int) http.Header {
	l.mu.Lock()
	defer l.mu.Unlock()
	if n >= len(l.requests) {
		return nil
	}
	return l.requests[n]
}

// fetchedFeeds: a list is fetched when its feed is created, on request and when it is due. A list that
// cannot be fetched, or that is no list, leaves the last good one.
func fetchedFeeds(t *testing.T, w *world, c *client) {
	defer w.ahead.Store(w.ahead.Load())
	l := newListServer(t)
	l.serve(200, "203.0.113.0/24\n198.51.100.1\n")
	created := c.want(t, 201, "", "POST", threatsPath, object{"name": "Fetched", "kind": "address", "source": "url", "url": l.URL, "mode": "log"})
	path := created.header.Get("Location")
	equal(t, "interval", created.data()["refresh_interval_s"], 21600.0)
	var feed object
	state := func(what string, done func() bool) {
		t.Helper()
		until(t, what, func() bool {
			feed = c.want(t, 200, "", "GET", path, nil).data()
			return done()
		})
	}
	state("it is fetched", func() bool { return feed["entries"] == 2.0 })
	equal(t, "event of the product", w.told(t, c, eventlog.SecurityThreatFeedUpdated)[0]["actor"], " ")
	equal(t, "no condition", l.header(0).Get("If-None-Match")+l.header(0).Get("If-Modified-Since"), "")

	// On request, with the condition that it is another one than before.
	n := l.serve(200, "203.0.113.0/24\n198.51.100.1\n")
	first := feed["listed_at"]
	c.want(t, 202, "", "POST", path+"/refresh", nil)
	c.want(t, 409, "threat_feed_refresh_too_soon", "POST", path+"/refresh", nil)
	state("it is confirmed", func() bool { return feed["listed_at"] != first })
	equal(t, "condition", []string{l.header(n).Get("If-None-Match"), l.header(n).Get("If-Modified-Since")}, []string{`"28"`, "Fri, 20 Nov 2026 19:27:00 GMT"})

	// Failures.
	for _, bad := range []struct {
		status        int
		text, failure string
	}{
		{500, "down", "the host answered with the status 500"},
		{200, "<html>a page</html>\n", "the list has no valid entries"},
		{302, "elsewhere", "the host answered with the status 302"},
		{200, strings.Repeat("#", 8<<20+1), "the list has more than 8388608 bytes"},
	} {
		w.later(2 * time.Minute)
		l.serve(bad.status, bad.text)
		c.want(t, 202, "", "POST", path+"/refresh", nil)
		state(bad.failure, func() bool { return feed["failure"] == bad.failure })
		equal(t, "kept", []any{feed["entries"], c.want(t, 200, "", "GET", path+"/lookup?value=203.0.113.7", nil).data()["entry"]}, []any{2.0, "203.0.113.0/24"})
	}
	equal(t, "one event", len(w.told(t, c, eventlog.SecurityThreatFeedFailing)), 1)
	equal(t, "failing", lastEvent(t, w, c, eventlog.SecurityThreatFeedFailing)["feed"].(object)["failure"], "the host answered with the status 500")

	// It is due, after the pause of failures.
	l.serve(200, "192.0.2.1\n192.0.2.2\n192.0.2.3\n")
	w.later(61 * time.Minute)
	if _, err := w.threats.RefreshDue(t.Context()); err != nil {
		t.Fatal(err)
	}
	state("it is fetched when it is due", func() bool { return feed["entries"] == 3.0 })
	equal(t, "works again", []any{feed["failure"], feed["failing_since"]}, []any{nil, nil})

	// Another URL, and a disabled feed.
	second := newListServer(t)
	second.serve(200, "192.0.2.9\n")
	c.want(t, 200, "", "PATCH", path, object{"url": second.URL, "refresh_interval_s": nil})
	state("another list", func() bool { return feed["entries"] == 1.0 })
	equal(t, "no condition of another list", second.header(0).Get("If-None-Match"), "")
	c.want(t, 400, "validation_failed", "PATCH", path, object{"url": nil})
	c.want(t, 400, "validation_failed", "PATCH", path, object{"url": "ftp://feeds.example"})
	putEntries(t, c, 409, "threat_feed_source_mismatch", path, "192.0.2.1")
	c.want(t, 200, "", "PATCH", path, object{"enabled": false})
	c.want(t, 409, "threat_feed_disabled", "POST", path+"/refresh", nil)
}

// threatsAtSignIn: each way to sign in, and to sign up, is compared with the feeds.
func threatsAtSignIn(t *testing.T, w *world, c *client) {
	anyone := c.with("")
	matched := func() []object { return w.told(t, c, eventlog.SecurityThreatMatched) }
	userID := member(t, c, "ann@bad.example")
	p := newOpenID(t, w)
	staff(t, c, p, object{"link_policy": "always_prompt", "jit_provisioning": true})
	key := newDevice(c.host)
	owner := member(t, c, "key@bad.example")
	key.register(t, signedIn(t, c, "key@bad.example"))

	// Log only.
	path := newFeed(t, c, "mail_domain", "log", "BAD.example\n")
	feed := object{"id": strings.TrimPrefix(path, threatsPath+"/"), "name": "Test", "kind": "mail_domain"}
	equal(t, "events", len(matched()), 0)
	signIn(t, c, "ann@bad.example", secret, "complete")
	want := object{"feed": feed, "entry": "bad.example", "mode": "log", "outcome": "allowed", "during": "sign_in", "user": object{"id": userID, "email": "ann@bad.example"}}
	equal(t, "event", lastEvent(t, w, c, eventlog.SecurityThreatMatched), want)
	equal(t, "actor", matched()[0]["actor"], "user "+userID)
	anyone.want(t, 202, "", "POST", authPath+"/sign-up", object{"email": "new@sub.bad.example", "password": secret})
	equal(t, "event of a sign-up", lastEvent(t, w, c, eventlog.SecurityThreatMatched), with(want, object{"during": "sign_up", "user": nil}))
	w.mailbox.take(t, "new@sub.bad.example", "")
	n := len(matched())
	signIn(t, c, "key@bad.example", secret, "mfa_required")
	waiting := signIn(t, c, "key@bad.example", secret, "mfa_required").data()["mfa_token"]
	equal(t, "once for each sign-in", len(matched()), n+2)
	challenge := anyone.want(t, 200, "", "POST", authPath+"/mfa/challenge", object{"mfa_token": waiting, "kind": "webauthn"}).data()
	second := object{"mfa_token": waiting, "kind": "webauthn", "challenge_id": challenge["challenge_id"], "credential": key.get(t, challenge)}
	anyone.want(t, 200, "", "POST", authPath+"/mfa/verify", second)
	equal(t, "once for all of its steps", len(matched()), n+2)

	// Refused, at each way and at each step.
	waiting = signIn(t, c, "key@bad.example", secret, "mfa_required").data()["mfa_token"]
	challenge = anyone.want(t, 200, "", "POST", authPath+"/mfa/challenge", object{"mfa_token": waiting, "kind": "webauthn"}).data()
	second = object{"mfa_token": waiting, "kind": "webauthn", "challenge_id": challenge["challenge_id"], "credential": key.get(t, challenge)}
	begun := c.start(t, "staff", "")
	linking := anyone.want(t, 200, "", "POST", authPath+"/federation/complete", begun.complete("staff", p.signIn(t, begun.request, object{"sub": "1", "email": "ann@bad.example", "email_verified": true}))).data()["link_token"]
	anyone.want(t, 202, "", "POST", authPath+"/password/forgot", object{"email": "ann@bad.example"})
	reset := link(t, w.mailbox.take(t, "ann@bad.example", "Choose a new password"))
	c.want(t, 200, "", "PATCH", path, object{"mode": "refuse"})
	refused := func(target string, form object) {
		t.Helper()
		n := len(matched())
		a := anyone.want(t, 403, "permission_denied", "POST", authPath+target, form)
		equal(t, target, a.details(), object{"required_scope": nil, "reason": "threat_feed"})
		if strings.Contains(a.text, "Test") || strings.Contains(a.text, feed["id"].(string)) || strings.Contains(a.text, "bad.example") || cookie(a) != "none" {
			t.Errorf("%s: %s", target, a.text)
		}
		equal(t, "event", []any{len(matched()), lastEvent(t, w, c, eventlog.SecurityThreatMatched)["outcome"]}, []any{n + 1, "refused"})
	}
	refused("/sign-in", object{"email": "ann@bad.example", "password": secret})
	refused("/mfa/verify", second)
	asked := anyone.want(t, 200, "", "POST", authPath+"/webauthn/begin", object{}).data()
	refused("/webauthn/complete", object{"ceremony_id": asked["ceremony_id"], "credential": key.get(t, asked)})
	refused("/federation/link", object{"link_token": linking, "password": secret})
	refused("/password/reset", object{"token": reset, "password": "another long secret"})
	refused("/sign-up", object{"email": "more@bad.example", "password": secret})
	begun = c.start(t, "staff", "")
	refused("/federation/complete", begun.complete("staff", p.signIn(t, begun.request, object{"sub": "2", "email": "jit@bad.example", "email_verified": true})))
	equal(t, "no account", len(c.want(t, 200, "", "GET", usersPath+"?q=jit@bad.example", nil).list())+len(c.want(t, 200, "", "GET", usersPath+"?q=more@bad.example", nil).list()), 0)
	anyone.want(t, 401, "invalid_credentials", "POST", authPath+"/sign-in", object{"email": "ann@bad.example", "password": "wrong"})

	// The page says it in a sentence, also after a sign-in elsewhere.
	const sentence = "This is not possible from your network, or with your e-mail address."
	if page := c.visit(t, "POST", "/auth/sign-in", nil, url.Values{"email": {"key@bad.example"}, "password": {secret}}); page.status != 403 || !strings.Contains(page.html, sentence) {
		t.Errorf("page: %d\n%s", page.status, page.html)
	}
	begun = c.start(t, "staff", "")
	back := p.signIn(t, begun.request, object{"sub": "3", "email": "jit@bad.example", "email_verified": true})
	page := c.visit(t, "GET", "/federation/staff/callback?"+back.Encode(), http.Header{"Cookie": begun.cookies}, nil)
	if html := c.failure(t, page); !strings.Contains(html, sentence) {
		t.Errorf("page: %d %v\n%s", page.status, page.header, html)
	}

	// The address of the client, and a disabled account, which is told that first.
	c.want(t, 200, "", "PATCH", path, object{"enabled": false})
	signIn(t, c, "key@bad.example", secret, "mfa_required")
	address := newFeed(t, c, "address", "refuse", "192.0.2.1\n")
	signIn(t, c, "key@bad.example", secret, "mfa_required")
	putEntries(t, c, 200, "", address, "127.0.0.0/8\n")
	refused("/sign-in", object{"email": "key@bad.example", "password": secret})
	equal(t, "entry", lastEvent(t, w, c, eventlog.SecurityThreatMatched)["entry"], "127.0.0.0/8")
	c.want(t, 200, "", "POST", usersPath+"/"+owner+"/disable", nil)
	anyone.want(t, 403, "user_disabled", "POST", authPath+"/sign-in", object{"email": "key@bad.example", "password": secret})
	c.want(t, 204, "", "DELETE", address, nil)
	member(t, c, "bob@bad.example")
	signIn(t, c, "bob@bad.example", secret, "complete")
	other := w.tenant(t, c.name()+"-other")
	member(t, other, "bob@bad.example")
	signIn(t, other, "bob@bad.example", secret, "complete")
}
