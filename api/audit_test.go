package api_test

import (
	"fmt"
	"net/url"
	"strings"
	"testing"
)

// auditEvents: the log is read by filter, page by page, and by those who may.
func auditEvents(t *testing.T, w *world, c *client) {
	group := c.want(t, 201, "", "POST", "/api/v1/groups", object{"slug": "eng", "name": "Engineers <script>", "scopes": []string{}}).data()["id"].(string)
	ann := member(t, c, "ann@example.com")
	c.want(t, 201, "", "POST", "/api/v1/groups/"+group+"/members", object{"user_id": ann})
	c.want(t, 200, "", "PATCH", "/api/v1/groups/"+group, object{"name": "Engineers"})

	reader := c.with(w.token(t, c, w.application(t, c, "audit:read")))
	list := func(filter string) (types string, a answer) {
		t.Helper()
		a = reader.want(t, 200, "", "GET", "/api/v1/audit/events?"+filter, nil)
		var all []string
		for _, e := range a.list() {
			all = append(all, e.(object)["event_type"].(string))
		}
		return strings.Join(all, " "), a
	}
	about := "about=" + group
	types, a := list(about)
	equal(t, "about a group", types, "group.updated group.member_added group.created")
	newest := a.list()[0].(object)
	equal(t, "who", newest["actor"].(object)["type"], "application")
	equal(t, "one", reader.want(t, 200, "", "GET", "/api/v1/audit/events/"+fmt.Sprint(newest["sequence"]), nil).data(), newest)
	types, _ = list(about + "&type=group.member_added")
	equal(t, "a type", types, "group.member_added")
	types, _ = list(about + "&type=user.*")
	equal(t, "another category", types, "")
	types, _ = list(about + "&actor=" + newest["actor"].(object)["id"].(string))
	equal(t, "an actor", types, "group.updated group.member_added group.created")
	types, _ = list("actor=usr_none")
	equal(t, "another actor", types, "")
	types, _ = list(about + "&since=2099-01-01T00:00:00Z")
	equal(t, "since", types, "")
	types, _ = list(about + "&until=2020-01-01T00:00:00Z")
	equal(t, "until", types, "")
	types, a = list(about + "&limit=2")
	equal(t, "a page", types, "group.updated group.member_added")
	cursor := "&cursor=" + url.QueryEscape(a.meta("next_cursor").(string))
	types, _ = list(about + "&limit=2" + cursor)
	equal(t, "the next", types, "group.created")

	for _, filter := range []string{"since=now", "until=tomorrow", "limit=0", "about=%00", "type=%ff"} {
		reader.want(t, 400, "validation_failed", "GET", "/api/v1/audit/events?"+filter, nil)
	}
	reader.want(t, 400, "cursor_invalid", "GET", "/api/v1/audit/events?about=other"+cursor, nil)
	for _, sequence := range []string{"0", "-1", "x", "999999", "99999999999999999999"} {
		reader.want(t, 404, "event_not_found", "GET", "/api/v1/audit/events/"+sequence, nil)
	}
	other := w.tenant(t, c.name()+"-other")
	equal(t, "another tenant", len(other.want(t, 200, "", "GET", "/api/v1/audit/events?"+about, nil).list()), 0)
	equal(t, "its cursor", other.do(t, "GET", "/api/v1/audit/events?"+about+cursor, nil).code(), "cursor_invalid")
	stranger := c.with(w.token(t, c, w.application(t, c, "users:read", "groups:read", "webhooks:read")))
	stranger.want(t, 403, "insufficient_scope", "GET", "/api/v1/audit/events", nil)
	stranger.want(t, 403, "insufficient_scope", "GET", "/api/v1/audit/events/1", nil)

	// The summary counts what the list has.
	stranger.want(t, 403, "insufficient_scope", "GET", "/api/v1/audit/summary", nil)
	summary := reader.want(t, 200, "", "GET", "/api/v1/audit/summary?days=1", nil).data()
	equal(t, "truncated", summary["truncated"], false)
	counted := 0
	for _, item := range summary["counts"].([]any) {
		counted++
		typ := item.(object)["event_type"].(string)
		equal(t, typ, item.(object)["count"], float64(len(reader.want(t, 200, "", "GET", "/api/v1/audit/events?limit=250&type="+typ, nil).list())))
	}
	equal(t, "counted", counted > 0, true)
	equal(t, "of another tenant", len(other.want(t, 200, "", "GET", "/api/v1/audit/summary", nil).data()["counts"].([]any)) < counted, true)
	for _, days := range []string{"0", "91", "x", "-1"} {
		reader.want(t, 400, "validation_failed", "GET", "/api/v1/audit/summary?days="+days, nil)
	}

	// The lineage of a token leads from each of its exchanges to all others.
	app := c.want(t, 201, "", "POST", "/api/v1/applications", object{"name": "Orders", "type": "m2m", "allowed_scopes": []string{"audit:read"}, "token_exchange": exchanging(ordersAPI, stockAPI)}).data()
	id, key := app["client_id"].(string), app["client_secret"].(string)
	for _, audience := range []string{ordersAPI, stockAPI} {
		permit(t, c, "audience", audience, "caller", object{"type": "application", "id": id})
	}
	subject := c.form(t, basic(id, key), url.Values{"grant_type": {"client_credentials"}}).body["access_token"].(string)
	swap := func(subject string, audience string) answer {
		return c.form(t, basic(id, key), url.Values{"grant_type": {exchangeGrant}, "subject_token": {subject}, "subject_token_type": {tokenTypes + "access_token"}, "audience": {audience}})
	}
	orders := swap(subject, ordersAPI).body["access_token"].(string)
	stock := swap(orders, stockAPI).body["access_token"].(string)
	equal(t, "denied", swap(orders, "https://other.example.com").status, 400)

	admins := c.want(t, 201, "", "POST", "/api/v1/groups", object{"slug": "auditors", "name": "Auditors", "scopes": []string{"audit:read"}}).data()["id"].(string)
	c.want(t, 201, "", "POST", "/api/v1/groups/"+admins+"/members", object{"user_id": ann})
	session := signIn(t, c, "ann@example.com", secret, "complete").data()["session_token"].(string)
	get := func(target string) shown { t.Helper(); return c.visit(t, "GET", target, asBrowser(session), nil) }
	jti := func(token string) string { return claimsOf(t, token)["jti"].(string) }
	_, a = list("type=token.*&about=" + jti(orders))
	if len(a.list()) != 3 {
		t.Fatalf("exchanges of a token: %s", a.text)
	}
	for _, e := range a.list() {
		p := get("/console/audit/" + fmt.Sprint(e.(object)["sequence"]))
		for _, want := range []string{jti(subject), jti(orders), jti(stock), "audience_not_permitted", `<span class="proof">`} {
			if p.status != 200 || strings.Count(p.html, `class="proof"`) != 1 || !strings.Contains(p.html, want) {
				t.Errorf("the lineage lacks %s: %d\n%s", want, p.status, p.html)
			}
		}
	}

	// Files have what the filter selects, and no formulas.
	c.want(t, 200, "", "PATCH", "/api/v1/groups/"+group, object{"name": "=cmd()"})
	p := get("/console/audit/events.csv?" + about)
	lines := strings.Split(strings.TrimSpace(p.html), "\n")
	equal(t, "csv", []any{p.status, len(lines), strings.HasPrefix(lines[0], "occurred_at,"), p.header.Get("Content-Type"), p.header.Get("Content-Disposition"), strings.Contains(p.html, ",=")},
		[]any{200, 5, true, "text/csv; charset=utf-8", `attachment; filename="events.csv"`, false})
	p = get("/console/audit/events.jsonl?" + about + "&type=group.created")
	equal(t, "lines", []any{p.status, strings.Count(p.html, "\n"), strings.HasPrefix(p.html, `{"event_id":"evt_`)}, []any{200, 1, true})
	equal(t, "a bad filter", get("/console/audit/events.csv?since=now").status, 400)
	p = get("/console/audit?" + about)
	equal(t, "page", []any{p.status, strings.Contains(withoutIsland(p.html), "<script"), strings.Count(p.html, "/console/audit/events.")}, []any{200, false, 2})
	equal(t, "not found", get("/console/audit/0").status, 404)
	equal(t, "a hostile filter", get("/console/audit?since="+url.QueryEscape(`"><script>`)).status, 400)
}
