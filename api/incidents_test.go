package api_test

import (
	"fmt"
	"net/url"
	"slices"
	"strings"
	"testing"

	"stonetown/internal/eventlog"
)

const incidentsPath = "/api/v1/breach-incidents"

// breachIncidents: an incident has affected users, who are notified, until it is closed. Every
// change is an event.
func breachIncidents(t *testing.T, w *world, c *client) {
	ann, bob := member(t, c, "ann@incidents.example"), member(t, c, "bob@incidents.example")
	created := c.want(t, 201, "", "POST", incidentsPath, object{"title": "Public backup", "severity": "high", "description": "What\nhappened", "assignee_id": ann})
	incident := created.data()
	path := created.header.Get("Location")
	equal(t, "location", path, incidentsPath+"/"+incident["id"].(string))
	equal(t, "state", incident["state"], "open")
	equal(t, "opened by", incident["opened_by"].(object)["type"], "application")
	equal(t, "event", lastEvent(t, w, c, eventlog.SecurityBreachIncidentOpened), object{"incident": incident})
	equal(t, "read", c.want(t, 200, "", "GET", path, nil).data(), incident)

	// The list of users.
	c.want(t, 409, "no_affected_users", "POST", path+"/notifications", object{"subject": "To nobody", "message": "Hello"})
	added := c.want(t, 200, "", "POST", path+"/affected-users", object{"user_ids": []string{ann, "usr_none", bob, ann}}).data()
	equal(t, "added", added, object{"affected_users": 2.0, "unknown_user_ids": []any{"usr_none"}})
	equal(t, "event", lastEvent(t, w, c, eventlog.SecurityBreachIncidentUpdated)["changes"], object{"affected_users": []any{0.0, 2.0}})
	events := len(w.told(t, c, eventlog.SecurityBreachIncidentUpdated))
	c.want(t, 200, "", "POST", path+"/affected-users", object{"user_ids": []string{bob}})
	equal(t, "events", len(w.told(t, c, eventlog.SecurityBreachIncidentUpdated)), events)
	page := c.want(t, 200, "", "GET", path+"/affected-users?limit=1", nil)
	next := c.want(t, 200, "", "GET", path+"/affected-users?limit=1&cursor="+url.QueryEscape(page.meta("next_cursor").(string)), nil)
	ids := []string{page.list()[0].(object)["user_id"].(string), next.list()[0].(object)["user_id"].(string)}
	want := []string{ann, bob}
	slices.Sort(want)
	equal(t, "affected", ids, want)
	equal(t, "the end", next.meta("next_cursor"), nil)
	emails := map[string]any{ann: "ann@incidents.example", bob: "bob@incidents.example"}
	equal(t, "email", page.list()[0].(object)["email"], emails[ids[0]])
	blind := c.with(w.token(t, c, w.application(t, c, "audit:read")))
	equal(t, "no email", blind.want(t, 200, "", "GET", path+"/affected-users", nil).list()[0].(object)["email"], nil)

	// A mail to each of them.
	notification := c.want(t, 202, "", "POST", path+"/notifications", object{"subject": "A backup was public", "message": "It had your name.\n\nWe are sorry."}).data()
	equal(t, "event", lastEvent(t, w, c, eventlog.SecurityBreachIncidentNotified)["notification"], object{"id": notification["id"], "subject": "A backup was public"})
	for _, to := range []string{"ann@incidents.example", "bob@incidents.example"} {
		if mail := w.mailbox.take(t, to, "A backup was public"); !strings.Contains(mail.Text, "It had your name.\n\nWe are sorry.\n") {
			t.Error(mail.Text)
		}
	}
	sent := c.want(t, 200, "", "GET", path+"/notifications", nil).list()[0].(object)
	equal(t, "state", []any{sent["state"], sent["mails"], sent["message"]}, []any{"completed", 2.0, "It had your name.\n\nWe are sorry."})

	// Those who are removed or deleted are not notified.
	c.want(t, 204, "", "DELETE", path+"/affected-users/"+bob, nil)
	c.want(t, 204, "", "DELETE", path+"/affected-users/"+bob, nil)
	c.want(t, 204, "", "DELETE", "/api/v1/users/"+ann, nil)
	incident = c.want(t, 200, "", "GET", path, nil).data()
	equal(t, "nobody", []any{incident["affected_users"], incident["assignee_id"]}, []any{0.0, nil})

	// All users are affected.
	changed := c.want(t, 200, "", "PATCH", path, object{"affects_all_users": true, "severity": "critical", "assignee_id": bob}).data()
	equal(t, "changes", lastEvent(t, w, c, eventlog.SecurityBreachIncidentUpdated)["changes"],
		object{"affects_all_users": []any{false, true}, "severity": []any{"high", "critical"}, "assignee_id": []any{nil, bob}})
	equal(t, "title", changed["title"], "Public backup")
	c.want(t, 202, "", "POST", path+"/notifications", object{"subject": "All of you", "message": "Hello"})
	w.mailbox.take(t, "bob@incidents.example", "All of you")

	// The end.
	c.want(t, 400, "validation_failed", "POST", path+"/close", object{"resolution": ""})
	closed := c.want(t, 200, "", "POST", path+"/close", object{"resolution": "It is private."}).data()
	equal(t, "closed", []any{closed["state"], closed["resolution"]}, []any{"closed", "It is private."})
	equal(t, "event", lastEvent(t, w, c, eventlog.SecurityBreachIncidentClosed), object{"incident": closed})
	for _, r := range [][2]string{{"PATCH", ""}, {"POST", "/close"}, {"POST", "/affected-users"}, {"POST", "/notifications"}} {
		form := object{"title": "Again", "resolution": "x", "user_ids": []string{bob}, "subject": "x", "message": "x"}
		for field, of := range map[string]string{"title": "", "resolution": "/close", "user_ids": "/affected-users", "subject": "/notifications", "message": "/notifications"} {
			if of != r[1] {
				delete(form, field)
			}
		}
		c.want(t, 409, "breach_incident_closed", r[0], path+r[1], form)
	}
	c.want(t, 409, "breach_incident_closed", "DELETE", path+"/affected-users/"+bob, nil)

	// Lists.
	second := c.want(t, 201, "", "POST", incidentsPath, object{"title": "Second", "severity": "low"}).data()
	titles := func(filter string) (titles []string, a answer) {
		t.Helper()
		a = c.want(t, 200, "", "GET", incidentsPath+filter, nil)
		for _, i := range a.list() {
			titles = append(titles, i.(object)["title"].(string))
		}
		return titles, a
	}
	all, _ := titles("")
	equal(t, "all", all, []string{"Second", "Public backup"})
	open, _ := titles("?state=open")
	equal(t, "open", open, []string{"Second"})
	first, a := titles("?limit=1")
	rest, _ := titles("?limit=1&cursor=" + url.QueryEscape(a.meta("next_cursor").(string)))
	equal(t, "pages", append(first, rest...), all)

	// Refusals.
	own := incidentsPath + "/" + second["id"].(string)
	for _, form := range []object{
		{"title": "x"},
		{"severity": "low"},
		{"title": "x", "severity": "bad"},
		{"title": "two\nlines", "severity": "low"},
		{"title": strings.Repeat("x", 201), "severity": "low"},
		{"title": "x", "severity": "low", "description": strings.Repeat("x", 10_001)},
		{"title": "x", "severity": "low", "description": "\x00"},
		{"title": "x", "severity": "low", "assignee_id": "usr_none"},
	} {
		c.want(t, 400, "validation_failed", "POST", incidentsPath, form)
	}
	for _, form := range []object{{"title": ""}, {"severity": ""}, {"title": 1}, {"title": nil}, {"severity": nil}, {"affects_all_users": nil}, {"affects_all_users": "yes"}, {"assignee_id": "usr_none"}} {
		c.want(t, 400, "validation_failed", "PATCH", own, form)
	}
	equal(t, "no description", c.want(t, 200, "", "PATCH", own, object{"description": nil, "assignee_id": nil}).data()["description"], "")
	c.want(t, 400, "immutable_field", "PATCH", own, object{"state": "closed"})
	c.want(t, 400, "validation_failed", "GET", incidentsPath+"?state=closed", nil)
	c.want(t, 400, "validation_failed", "POST", own+"/affected-users", object{"user_ids": []string{}})
	c.want(t, 400, "validation_failed", "POST", own+"/affected-users", object{"user_ids": slices.Repeat([]string{bob}, 1001)})
	c.want(t, 400, "validation_failed", "POST", own+"/notifications", object{"subject": "two\r\nBcc: eve@example.com", "message": "x"})
	c.want(t, 400, "validation_failed", "POST", own+"/notifications", object{"subject": "x", "message": ""})
	for n := range 20 {
		if n == 0 {
			c.want(t, 200, "", "POST", own+"/affected-users", object{"user_ids": []string{bob}})
		}
		c.want(t, 202, "", "POST", own+"/notifications", object{"subject": fmt.Sprint("Message ", n), "message": "x"})
	}
	c.want(t, 409, "breach_notification_limit_reached", "POST", own+"/notifications", object{"subject": "x", "message": "x"})

	// Rights, and other tenants.
	reader := c.with(w.token(t, c, w.application(t, c, "audit:read", "users:write", "settings:write")))
	reader.want(t, 200, "", "GET", path, nil)
	reader.want(t, 403, "insufficient_scope", "POST", incidentsPath, object{"title": "x", "severity": "low"})
	reader.want(t, 403, "insufficient_scope", "POST", own+"/notifications", object{"subject": "x", "message": "x"})
	writer := c.with(w.token(t, c, w.application(t, c, "incidents:write")))
	writer.want(t, 403, "insufficient_scope", "GET", path, nil)
	other := w.tenant(t, c.name()+"-other")
	equal(t, "of another tenant", len(other.want(t, 200, "", "GET", incidentsPath, nil).list()), 0)
	for _, r := range [][2]string{{"GET", ""}, {"GET", "/affected-users"}, {"GET", "/notifications"}, {"DELETE", "/affected-users/" + bob}} {
		other.want(t, 404, "breach_incident_not_found", r[0], own+r[1], nil)
	}
	other.want(t, 404, "breach_incident_not_found", "PATCH", own, object{"title": "x"})
	other.want(t, 404, "breach_incident_not_found", "POST", own+"/close", object{"resolution": "x"})
	other.want(t, 404, "breach_incident_not_found", "POST", own+"/notifications", object{"subject": "x", "message": "x"})

	// Limits.
	another := object{"title": "Full", "severity": "low"}
	full := other.want(t, 201, "", "POST", incidentsPath, another).data()["id"].(string)
	cid := member(t, other, "cid@incidents.example")
	if _, err := w.db.Exec(t.Context(), `UPDATE breach_incidents SET affected = 100000 WHERE id = $1`, full); err != nil {
		t.Fatal(err)
	}
	other.want(t, 409, "affected_user_limit_reached", "POST", incidentsPath+"/"+full+"/affected-users", object{"user_ids": []string{cid}})
	_, err := w.db.Exec(t.Context(), `
		INSERT INTO breach_incidents (tenant_id, id, title, description, severity, assignee_id, all_users, affected, resolution, opened_at, opened_by_type, opened_by, updated_at, closed_at)
		WITH RECURSIVE numbers (n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM numbers WHERE n < 999)
		SELECT tenant_id, CONCAT(id, n), title, description, severity, assignee_id, all_users, affected, resolution, opened_at, opened_by_type, opened_by, updated_at, closed_at
		FROM breach_incidents, numbers WHERE id = $1`, full)
	if err != nil {
		t.Fatal(err)
	}
	other.want(t, 409, "breach_incident_limit_reached", "POST", incidentsPath, another)
}
