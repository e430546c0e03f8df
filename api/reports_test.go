package api_test

import (
	"context"
	"encoding/csv"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"testing"
	"time"

	"stonetown/internal/eventlog"
	"stonetown/reporting"
)

const reportsPath = "/api/v1/reports"

// ran runs a report and returns the path of the run that ended, and the run.
func ran(t testing.TB, c *client, report string) (path string, run object) {
	t.Helper()
	started := c.want(t, 202, "", "POST", reportsPath+"/"+report+"/runs", nil)
	path = started.header.Get("Location")
	return path, reportEnded(t, c, path)
}

func reportEnded(t testing.TB, c *client, path string) (run object) {
	t.Helper()
	waitFor(t, "the end of the report", func() bool {
		run = c.want(t, 200, "", "GET", path, nil).data()
		return run["finished_at"] != nil
	})
	return run
}

func figures(run object) map[string]float64 {
	found := map[string]float64{}
	for _, f := range run["figures"].([]any) {
		figure := f.(object)
		name := figure["name"].(string)
		if label, ok := figure["label"].(string); ok {
			name += " " + label
		}
		found[name] = figure["value"].(float64)
	}
	return found
}

// reports: a report is saved, run, read in all formats, changed and deleted. Each kind tells no more
// than its reader may read otherwise.
func reports(t *testing.T, w *world, c *client) {
	ahead := time.Duration(w.ahead.Load()) // of the time of events
	w.later(-ahead)
	defer w.later(ahead)
	define(t, c)
	ann, bob := member(t, c, "ann@reports.example"), member(t, c, "bob@reports.example")
	cid := c.want(t, 201, "", "POST", "/api/v1/users", object{"email": "cid@reports.example", "name": "=1+1"}).data()["id"].(string)
	staff := group(t, c, "staff")
	for _, userID := range []string{ann, bob} {
		c.want(t, 201, "", "POST", groupsPath+"/"+staff+"/members", object{"user_id": userID})
	}
	signIn(t, c, "ann@reports.example", secret, "complete")
	c.with("").want(t, 401, "invalid_credentials", "POST", authPath+"/sign-in", object{"email": "ann@reports.example", "password": "wrong password"})

	save := func(name, kind string, parameters object) string {
		t.Helper()
		return c.want(t, 201, "", "POST", reportsPath, object{"name": name, "kind": kind, "parameters": parameters}).data()["id"].(string)
	}

	// Sign-ins.
	created := c.want(t, 201, "", "POST", reportsPath, object{"name": "Sign-ins", "kind": "sign_ins_by_method"})
	report := created.data()
	own := created.header.Get("Location")
	equal(t, "default", report["parameters"], object{"days": 30.0})
	equal(t, "event", lastEvent(t, w, c, eventlog.ReportCreated), object{"report": report})
	equal(t, "read", c.want(t, 200, "", "GET", own, nil).data(), report)
	path, run := ran(t, c, report["id"].(string))
	equal(t, "run", []any{run["state"], run["rows"], run["truncated"], run["error"], run["scheduled"]}, []any{"completed", 1.0, false, nil, false})
	equal(t, "figures", figures(run), map[string]float64{"sign_ins": 1, "failures": 1, "users": 1, "sign_ins pwd": 1})
	row := c.want(t, 200, "", "GET", path+"/rows", nil).list()[0].(object)
	equal(t, "row", []any{row["method"], row["sign_ins"], row["failures"], row["users"]}, []any{"pwd", 1.0, 1.0, 1.0})
	equal(t, "event", lastEvent(t, w, c, eventlog.ReportCompleted), object{
		"report": object{"id": report["id"], "name": "Sign-ins", "kind": "sign_ins_by_method"},
		"run":    object{"id": run["id"], "state": "completed", "scheduled": false, "error": nil},
	})

	// Second factors, as CSV and as lines. A name is not a formula.
	path, run = ran(t, c, save("MFA", "mfa_coverage", nil))
	equal(t, "figures", figures(run), map[string]float64{"users": 3, "users_without_factor": 3, "group_users staff": 2, "group_users_without_factor staff": 2})
	for _, how := range []struct {
		target string
		header http.Header
	}{{path + "/rows?format=csv", nil}, {path + "/rows", http.Header{"Accept": {"text/csv"}}}} {
		a := c.send(t, "GET", how.target, how.header, nil)
		table, err := csv.NewReader(strings.NewReader(a.text)).ReadAll()
		if err != nil || a.status != 200 || len(table) != 4 || !strings.Contains(a.text, "\r\n") {
			t.Fatalf("%d %q %v", a.status, a.text, err)
		}
		i := slices.IndexFunc(table, func(r []string) bool { return r[0] == cid })
		equal(t, "cell", table[i], []string{cid, "cid@reports.example", "'=1+1", "pending", "", "", ""})
	}
	lines := c.send(t, "GET", path+"/rows", http.Header{"Accept": {"application/x-ndjson, text/csv"}}, nil)
	equal(t, "lines", []any{lines.status, strings.Count(lines.text, "\n"), lines.header.Get("Content-Type")}, []any{200, 3, "application/x-ndjson"})
	page := c.want(t, 200, "", "GET", path+"/rows?limit=2", nil)
	rest := c.want(t, 200, "", "GET", path+"/rows?limit=2&cursor="+url.QueryEscape(page.meta("next_cursor").(string)), nil)
	equal(t, "pages", []any{len(page.list()), len(rest.list()), rest.meta("next_cursor")}, []any{2, 1, nil})
	for _, wrong := range []string{"format=xml", "format=csv&limit=2", "limit=251", "format=jsonl&cursor=x"} {
		c.want(t, 400, "validation_failed", "GET", path+"/rows?"+wrong, nil)
	}
	c.want(t, 400, "cursor_invalid", "GET", path+"/rows?cursor=x", nil)

	// Applications: a new one is not unused yet.
	used := c.want(t, 201, "", "POST", "/api/v1/applications", object{"name": "Old", "type": "m2m"}).data()["id"].(string)
	if _, err := w.db.Exec(t.Context(), `UPDATE applications SET created_at = 1 WHERE id = $1`, used); err != nil {
		t.Fatal(err)
	}
	path, run = ran(t, c, save("Unused", "unused_applications", object{"days": 7}))
	equal(t, "unused", figures(run)["unused_applications"], 1.0)
	equal(t, "application", c.want(t, 200, "", "GET", path+"/rows", nil).list()[0].(object)["application_id"], used)

	// A review: direct relations with their authors, and derived access.
	relate(t, c, "document", "q3", "editor", user(ann))
	relate(t, c, "document", "q3", "viewer", object{"type": "group", "id": staff, "relation": "member"})
	relate(t, c, "document", "q4", "viewer", user(cid))
	review := save("Viewers", "access_review", object{"resource_type": "document", "action": "view"})
	path, run = ran(t, c, review)
	equal(t, "review", figures(run), map[string]float64{"resources": 2, "subjects": 3, "direct_relations": 2, "undecided_resources": 0})
	var found []string
	for _, r := range c.want(t, 200, "", "GET", path+"/rows", nil).list() {
		row := r.(object)
		relation, _ := row["direct_relation"].(string)
		if granted := row["granted_at"] != nil && row["granted_by"] != nil; granted != (row["access"] == "direct") {
			t.Errorf("%v", row)
		}
		found = append(found, row["resource_id"].(string)+" "+row["email"].(string)+" "+row["access"].(string)+" "+relation)
	}
	slices.Sort(found)
	equal(t, "rows", found, []string{"q3 ann@reports.example direct editor", "q3 bob@reports.example derived ", "q4 cid@reports.example direct viewer"})
	_, run = ran(t, c, save("One", "access_review", object{"resource_type": "document", "action": "view", "resource_ids": []string{"q4", "none"}}))
	equal(t, "one", figures(run), map[string]float64{"resources": 2, "subjects": 1, "direct_relations": 1, "undecided_resources": 1})
	wrong := save("Wrong", "access_review", object{"resource_type": "nothing", "action": "view"})
	path, run = ran(t, c, wrong)
	equal(t, "failure", []any{run["state"], run["error"].(object)["code"]}, []any{"failed", "resource_type_not_found"})
	c.want(t, 409, "report_run_unfinished", "GET", path+"/rows", nil)

	// Rights: the log alone opens no relations, users or applications.
	auditor := c.with(w.token(t, c, w.application(t, c, "audit:read")))
	for kind, form := range map[string]object{
		"users:read": {"name": "x", "kind": "mfa_coverage"}, "applications:read": {"name": "x", "kind": "unused_applications"},
		"resources:read": {"name": "x", "kind": "access_review", "parameters": object{"resource_type": "document", "action": "view", "subject_type": "application"}},
	} {
		writer := c.with(w.token(t, c, w.application(t, c, "audit:read", "settings:write")))
		a := writer.want(t, 403, "insufficient_scope", "POST", reportsPath, form)
		equal(t, "scope", a.body["details"].(object)["required_scope"], kind)
	}
	half := c.with(w.token(t, c, w.application(t, c, "audit:read", "resources:read", "settings:write")))
	runPath := reportsPath + "/" + review
	latest := c.want(t, 200, "", "GET", runPath+"/runs", nil).list()[0].(object)["id"].(string)
	for _, reader := range []*client{auditor, half} { // addresses of users require users:read
		reader.want(t, 403, "insufficient_scope", "POST", runPath+"/runs", nil)
		reader.want(t, 403, "insufficient_scope", "GET", runPath+"/runs", nil)
		reader.want(t, 403, "insufficient_scope", "GET", runPath+"/runs/"+latest, nil)
		reader.want(t, 403, "insufficient_scope", "GET", runPath+"/runs/"+latest+"/rows", nil)
		reader.want(t, 200, "", "GET", runPath, nil)
	}
	half.want(t, 403, "insufficient_scope", "PATCH", runPath, object{"parameters": object{"resource_type": "document", "action": "view", "subject_type": "group"}})
	auditor.want(t, 202, "", "POST", own+"/runs", nil)
	auditor.want(t, 403, "insufficient_scope", "PATCH", own, object{"name": "x"})
	auditor.want(t, 403, "insufficient_scope", "DELETE", own, nil)

	// Changes.
	schedule := object{"interval": "daily", "hour": 0, "recipients": []string{ann, cid}}
	changed := c.want(t, 200, "", "PATCH", own, object{"name": "Week", "parameters": object{"days": 7}, "schedule": schedule}).data()
	equal(t, "changed", []any{changed["name"], changed["parameters"], changed["next_run_at"] != nil}, []any{"Week", object{"days": 7.0}, true})
	changes := lastEvent(t, w, c, eventlog.ReportUpdated)["changes"].(object)
	equal(t, "changes", changes["name"], []any{"Sign-ins", "Week"})
	equal(t, "no schedule", c.want(t, 200, "", "PATCH", own, object{"schedule": nil}).data()["next_run_at"], nil)
	c.want(t, 400, "immutable_field", "PATCH", own, object{"kind": "mfa_coverage"})
	for _, form := range []object{
		{"name": ""},
		{"name": nil},
		{"name": "two\nlines"},
		{"parameters": nil},
		{"parameters": 1},
		{"parameters": object{"days": 91}},
		{"parameters": object{"days": -1}},
		{"parameters": object{"action": "view"}},
		{"schedule": 1},
		{"schedule": object{"interval": "hourly", "hour": 1}},
		{"schedule": object{"interval": "daily"}},
		{"schedule": object{"interval": "daily", "hour": 24}},
		{"schedule": object{"interval": "daily", "hour": 1, "recipients": []string{"usr_none"}}},
		{"schedule": object{"interval": "daily", "hour": 1, "recipients": []string{ann, ann}}},
		{"schedule": object{"interval": "daily", "hour": 1, "recipients": slices.Repeat([]string{ann}, 21)}},
	} {
		c.want(t, 400, "validation_failed", "PATCH", own, form)
	}
	for _, form := range []object{
		{"name": "x"},
		{"name": "x", "kind": "other"},
		{"kind": "mfa_coverage"},
		{"name": "x", "kind": "mfa_coverage", "parameters": object{"days": 3}},
		{"name": "x", "kind": "access_review"},
		{"name": "x", "kind": "access_review", "parameters": object{"resource_type": "a", "action": "b", "resource_ids": []string{"q", "q"}}},
		{"name": strings.Repeat("x", 201), "kind": "mfa_coverage"},
		{"name": "x", "kind": "unused_applications", "parameters": object{"days": 3651}},
	} {
		c.want(t, 400, "validation_failed", "POST", reportsPath, form)
	}

	// A schedule: two processes find it due, and one run and one mail to each recipient who may read
	// the run follow. ann may, and bob may not.
	admins := group(t, c, "auditors", "audit:read")
	c.want(t, 201, "", "POST", groupsPath+"/"+admins+"/members", object{"user_id": ann})
	scheduled := c.want(t, 201, "", "POST", reportsPath, object{"name": "Weekly sign-ins", "kind": "sign_ins_by_method", "schedule": object{"interval": "weekly", "hour": 6, "recipients": []string{ann, bob, cid}}}).data()
	if _, err := w.db.Exec(t.Context(), `UPDATE reports SET next_run_at = 1 WHERE id = $1`, scheduled["id"]); err != nil {
		t.Fatal(err)
	}
	registry := w.config.Reports.(*reporting.Registry)
	failed := make(chan error, 2)
	for range 2 {
		go func() {
			_, err := registry.StartDue(context.Background())
			failed <- err
		}()
	}
	for range 2 {
		if err := <-failed; err != nil {
			t.Fatal(err)
		}
	}
	runs := c.want(t, 200, "", "GET", reportsPath+"/"+scheduled["id"].(string)+"/runs", nil).list()
	equal(t, "runs", len(runs), 1)
	path = reportsPath + "/" + scheduled["id"].(string) + "/runs/" + runs[0].(object)["id"].(string)
	run = reportEnded(t, c, path)
	equal(t, "by the product", []any{run["scheduled"], run["created_by"]}, []any{true, nil})
	mail := w.mailbox.take(t, "ann@reports.example", "Report: Weekly sign-ins")
	if !strings.Contains(mail.Text, "/console/reports/"+scheduled["id"].(string)+"/runs/"+run["id"].(string)) || !strings.Contains(mail.Text, "Sign-ins: 1") || strings.Contains(mail.Text, "pwd") {
		t.Error(mail.Text)
	}
	waitFor(t, "the mails", func() bool {
		states := map[string]any{}
		for _, m := range c.want(t, 200, "", "GET", path, nil).data()["mails"].([]any) {
			mail := m.(object)
			states[mail["user_id"].(string)] = mail["reason"]
			if mail["state"] == "queued" {
				return false
			}
		}
		equal(t, "mails", states, map[string]any{ann: nil, bob: "scope_missing", cid: "email_unverified"})
		return true
	})
	next := c.want(t, 200, "", "GET", reportsPath+"/"+scheduled["id"].(string), nil).data()["next_run_at"].(string)
	if next <= run["created_at"].(string) {
		t.Error(next)
	}

	// The console passes files on, and refuses what the operations refuse.
	browser := asBrowser(signIn(t, c, "ann@reports.example", secret, "complete").data()["session_token"].(string))
	for name, want := range map[string]string{"rows.csv": "date,method,sign_ins,failures,users\r\n20", "rows.jsonl": `{"date":"20`} {
		p := c.visit(t, "GET", strings.Replace(path, "/api/v1", "/console", 1)+"/"+name, browser, nil)
		equal(t, name, []any{p.status, strings.HasPrefix(p.html, want)}, []any{200, true})
	}
	for page, want := range map[string]int{"": 200, "/runs/" + latest: 403, "/runs/" + latest + "/rows.csv": 403, "/edit": 403, "/delete": 403} {
		p := c.visit(t, "GET", "/console/reports/"+review+page, browser, nil)
		equal(t, "page "+page, []any{p.status, strings.Contains(p.html, "cid@reports.example")}, []any{want, false})
	}

	// One run at a time, and lists.
	waitFor(t, "the runs", func() bool {
		return c.want(t, 200, "", "GET", own+"/runs", nil).list()[0].(object)["finished_at"] != nil
	})
	if _, err := w.db.Exec(t.Context(), `UPDATE report_runs SET state = 'running' WHERE report_id = $1`, report["id"]); err != nil {
		t.Fatal(err)
	}
	c.want(t, 409, "report_run_underway", "POST", own+"/runs", nil)
	all := c.want(t, 200, "", "GET", reportsPath, nil)
	start := c.want(t, 200, "", "GET", reportsPath+"?limit=2", nil)
	then := c.want(t, 200, "", "GET", reportsPath+"?limit=100&cursor="+url.QueryEscape(start.meta("next_cursor").(string)), nil)
	equal(t, "pages of reports", append(start.list(), then.list()...), all.list())
	equal(t, "first", all.list()[0].(object)["name"], "Weekly sign-ins")
	first := c.want(t, 200, "", "GET", own+"/runs?limit=1", nil)
	second := c.want(t, 200, "", "GET", own+"/runs?limit=1&cursor="+url.QueryEscape(first.meta("next_cursor").(string)), nil)
	equal(t, "end of runs", []any{len(second.list()), second.meta("next_cursor")}, []any{1, nil})

	// Other tenants.
	other := w.tenant(t, c.name()+"-other")
	other.want(t, 404, "report_not_found", "GET", own, nil)
	other.want(t, 404, "report_not_found", "PATCH", own, object{"name": "x"})
	other.want(t, 404, "report_not_found", "DELETE", own, nil)
	other.want(t, 404, "report_not_found", "GET", own+"/runs", nil)
	other.want(t, 404, "report_not_found", "POST", own+"/runs", nil)
	other.want(t, 404, "report_run_not_found", "GET", path, nil)
	other.want(t, 404, "report_run_not_found", "GET", path+"/rows", nil)

	// The end: results go with the report.
	c.want(t, 204, "", "DELETE", own, nil)
	c.want(t, 404, "report_not_found", "DELETE", own, nil)
	equal(t, "event", lastEvent(t, w, c, eventlog.ReportDeleted)["report"].(object)["id"], report["id"])
	for _, table := range []string{"report_runs", "report_chunks"} {
		column := map[string]string{"report_runs": "report_id", "report_chunks": "run_id"}[table]
		var n int64
		value := map[string]any{"report_runs": report["id"], "report_chunks": first.list()[0].(object)["id"]}[table]
		if err := w.db.QueryRow(t.Context(), `SELECT COUNT(*) FROM `+table+` WHERE `+column+` = $1`, value).Scan(&n); err != nil || n != 0 {
			t.Errorf("%s: %d rows, %v", table, n, err)
		}
	}

	// The limit.
	full := other.want(t, 201, "", "POST", reportsPath, object{"name": "x", "kind": "mfa_coverage"}).data()["id"]
	if _, err := w.db.Exec(t.Context(), `
		INSERT INTO reports (tenant_id, id, kind, name, parameters, schedule, next_run_at, created_at, created_by_type, created_by, updated_at)
		WITH RECURSIVE numbers (n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM numbers WHERE n < 99)
		SELECT tenant_id, CONCAT(id, n), kind, name, parameters, schedule, next_run_at, created_at, created_by_type, created_by, updated_at FROM reports, numbers WHERE id = $1`, full); err != nil {
		t.Fatal(err)
	}
	other.want(t, 409, "report_limit_reached", "POST", reportsPath, object{"name": "x", "kind": "mfa_coverage"})
}
