package main

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"
)

// inspector checks pages of the console for accessibility, with axe.
type inspector struct {
	*browser
	axe string
}

func newInspector(t *testing.T, b *browser) inspector {
	t.Helper()
	script, err := os.ReadFile(filepath.Join(npmFolder(t.Context(), t), "node_modules/axe-core/axe.min.js"))
	if err != nil {
		t.Fatal(err)
	}
	return inspector{b, string(script)}
}

// at waits for a page and inspects it: no violation in light and dark, no script but those of the
// assets, nothing that is wider than a narrow screen.
func (b inspector) at(path, title string) {
	b.Helper()
	b.browser.at(path, title)
	b.accessible(path)
}

// accessible inspects the page that is shown, with scripts for axe.
func (b inspector) accessible(path string) {
	b.Helper()
	b.scripts(true) // of axe
	defer b.scripts(false)
	b.inspected(path)
}

// inspected inspects the page as it is.
func (b inspector) inspected(path string) {
	b.Helper()
	for _, scheme := range []string{"light", "dark"} {
		perform(b.browser, emulation.SetEmulatedMedia, emulation.SetEmulatedMediaParams{Features: []*emulation.MediaFeature{{Name: "prefers-color-scheme", Value: scheme}}})
		ask(b.browser, chromedp.Evaluate[bool](b.axe+";true"))
		found := ask(b.browser, chromedp.Evaluate[string](`axe.run(document, {resultTypes: ["violations"]}).then(r => JSON.stringify(r.violations.map(v => v.id + ": " + v.nodes.map(n => n.html + " " + n.failureSummary).join("; "))))`, chromedp.EvalAwaitPromise))
		if found != "[]" {
			b.Errorf("%s in %s: %s", path, scheme, found)
		}
	}
	perform(b.browser, emulation.SetEmulatedMedia, emulation.SetEmulatedMediaParams{})
	if inline := ask(b.browser, chromedp.Evaluate[string](`[...document.scripts].filter(s => s.text || !/^\/((auth|console)\/assets|docs\/playground)\//.test(new URL(s.src).pathname)).map(s => s.outerHTML).join()`)); inline != "" {
		b.Errorf("%s has the scripts %s", path, inline)
	}
	// Names of the API are for programs. Some are those of standards, or of the tenant.
	if raw := ask(b.browser, chromedp.Evaluate[string](`[...document.querySelectorAll("main option, main label.check")].filter(e => !e.closest("#island, .explorer, [name=token_endpoint_auth_method], [name=action]") && !e.querySelector(".hidden") && /^[a-z0-9]+(_[a-z0-9]+)*$/.test(e.textContent.trim())).map(e => e.textContent.trim()).join()`)); raw != "" && strings.HasPrefix(path, "/console") {
		b.Errorf("%s has the options %s", path, raw)
	}
	perform(b.browser, emulation.SetDeviceMetricsOverride, emulation.SetDeviceMetricsOverrideParams{Width: 320, Height: 640, DeviceScaleFactor: 1, Mobile: true})
	if width := ask(b.browser, chromedp.Evaluate[int](`document.documentElement.scrollWidth`)); width > 320 {
		b.Errorf("%s is %d px wide on a screen of 320 px", path, width)
	}
	perform(b.browser, emulation.ClearDeviceMetricsOverride, cdp.Empty{})
	// A click needs the final layout.
	ask(b.browser, chromedp.Evaluate[bool](`new Promise(done => { const wait = () => innerWidth > 320 ? requestAnimationFrame(() => done(true)) : requestAnimationFrame(wait); wait() })`, chromedp.EvalAwaitPromise))
}

// scripts sets whether the browser runs scripts. It waits until the page is loaded: a module that arrives
// while scripts are off is empty, and a module that imports from it fails (HTML, "create a JavaScript
// module script").
func (b inspector) scripts(run bool) {
	b.Helper()
	b.until(`document.readyState === "complete"`)
	perform(b.browser, emulation.SetScriptExecutionDisabled, emulation.SetScriptExecutionDisabledParams{Value: !run})
}

// tabTo presses the tabulator key until an element with a label has the focus.
func (b inspector) tabTo(label string) {
	b.Helper()
	var seen []string
	for range 80 {
		b.do(chromedp.KeyEvent(kb.Tab))
		at := ask(b.browser, chromedp.Evaluate[string](`(e => (e.labels?.[0] ?? e).textContent.trim())(document.activeElement)`))
		if at == label {
			return
		}
		seen = append(seen, at)
	}
	b.Fatalf("the keyboard does not lead to %q: %q", label, seen)
}

// refused waits until an invalid field has the focus.
func (b inspector) refused(field string) {
	b.Helper()
	b.do(chromedp.WaitVisible(chromedp.CSS(fmt.Sprintf(`[name=%q][aria-invalid][aria-describedby^=problem]:focus`, field))))
}

// keys presses keys.
func (b inspector) keys(text string) {
	b.Helper()
	b.do(chromedp.KeyEvent(text))
}

// curl runs the commands that a page shows, and returns what they print.
func (b inspector) curl(token string) (answers []map[string]any) {
	b.Helper()
	commands := ask(b.browser, chromedp.Evaluate[[]string](`[...document.querySelectorAll(".curl pre")].map(e => e.textContent)`))
	if len(commands) == 0 {
		b.Fatal("the page shows no command")
	}
	for _, command := range commands {
		run := exec.CommandContext(b.Context(), "sh", "-c", strings.Replace(command, "curl ", "curl --noproxy '*' ", 1))
		run.Env = append(os.Environ(), "TOKEN="+token)
		out, err := run.Output()
		var answer map[string]any
		if err != nil || json.Unmarshal(out, &answer) != nil || answer["error"] != nil {
			b.Fatalf("%s\nanswers %s, %v", command, out, err)
		}
		answers = append(answers, answer)
	}
	return answers
}

// An administrator signs in to the console and works in each of its areas, without scripts.
func TestConsole(t *testing.T) {
	dir := t.TempDir()
	server := start(t, "--dev", "--data-dir", dir, "--rate-limits", "sign-in.ip=unlimited,self-service.caller=unlimited,token.ip=unlimited")
	b := newInspector(t, openBrowser(t, server))
	c := readJSON(t, filepath.Join(dir, "bootstrap.json"))
	const hostile = `</code><script>alert(1)</script>'"&`
	person := func(email, name string) string {
		body, err := json.Marshal(map[string]any{"email": email, "name": name, "email_verified": true, "password": "correct horse battery"})
		if err != nil {
			t.Fatal(err)
		}
		return server.call(t, c, "POST", "users", string(body), 201)["id"].(string)
	}
	ann := person("ann@example.com", "Ann "+hostile)
	bob := person("bob@example.com", "Bob")
	group := server.call(t, c, "POST", "groups", `{"slug":"readers","name":"Readers","description":"They read","scopes":["groups:read"]}`, 201)["id"].(string)
	for path, bodies := range map[string][]string{
		"resource-types": {
			`{"name":"folder","conditions":[{"name":"from_office","expression":"ip == '192.0.2.7'","parameters":{"ip":"string"}}],"relations":[{"name":"owner","rewrites":[]},{"name":"viewer","rewrites":[{"kind":"this"},{"kind":"computed","relation":"owner"}]}]}`,
			`{"name":"document","relations":[{"name":"parent","rewrites":[],"subjects":["folder"]},{"name":"banned","rewrites":[]},{"name":"viewer","rewrites":[{"kind":"exclusion",
				"base":{"kind":"union","children":[{"kind":"this"},{"kind":"tuple_to_userset","tupleset":"parent","computed":"viewer"}]},"subtract":{"kind":"computed","relation":"banned"}}]}]}`,
		},
	} {
		for _, body := range bodies {
			server.call(t, c, "POST", path, body, 201)
		}
	}
	server.call(t, c, "POST", "resources/relations/bulk", `{"operations":[
		{"op":"create","resource":{"type":"folder","external_id":"2026"},"relation":"owner","subject":{"type":"user","id":"ann"}},
		{"op":"create","resource":{"type":"folder","external_id":"2026"},"relation":"viewer","subject":{"type":"group","id":"eng"}},
		{"op":"create","resource":{"type":"folder","external_id":"2026"},"relation":"viewer","subject":{"type":"user","id":"cid"},"condition":{"name":"from_office"},"expires_at":"2099-12-31T00:00:00Z"},
		{"op":"create","resource":{"type":"group","external_id":"eng"},"relation":"member","subject":{"type":"user","id":"bob"}},
		{"op":"create","resource":{"type":"document","external_id":"plans/q1 draft"},"relation":"parent","subject":{"type":"folder","id":"2026"}},
		{"op":"create","resource":{"type":"document","external_id":"plans/q1 draft"},"relation":"viewer","subject":{"type":"user","id":"eve"}},
		{"op":"create","resource":{"type":"document","external_id":"plans/q1 draft"},"relation":"banned","subject":{"type":"user","id":"eve"}}]}`, 200)
	b.scripts(false)

	b.open("/console/users?q=ann")
	b.browser.at("/auth/sign-in", "Sign in")
	b.fill("email", c.Admin.Email, "password", c.Admin.Password)
	b.press("Sign in")
	b.at("/console/users", "Users")
	b.says("ann@example.com")
	server.confirm(t)
	b.open("/console")
	b.at("/console", "Overview")
	b.press("Users")
	b.at("/console/users", "Users")

	t.Run("Users", func(t *testing.T) {
		b := b.in(t)
		b.fill("q", strings.Repeat("é", 200)) // too many bytes
		b.send("Search")
		b.says("254 bytes")
		b.refused("q")
		b.fill("q", "nobody")
		b.send("Search")
		b.says("No users match.")
		b.fill("q", "example.com")
		b.send("Search")
		b.says("bob@example.com")
		if got := b.curl(server.token(c))[0]["data"].([]any); len(got) != 2 {
			t.Errorf("the command lists %v", got)
		}
		b.press("ann@example.com")
		b.at("/console/users/"+ann, "ann@example.com")
		b.says("Ann " + "</code>")
		b.curl(server.token(c))
		b.press("Disable")
		b.at("/console/users/"+ann+"/disable", "Disable ann@example.com?")
		b.press("Cancel")
		b.browser.at("/console/users/"+ann, "ann@example.com")
		b.press("Disable")
		b.browser.at("/console/users/"+ann+"/disable", "Disable ann@example.com?")
		b.press("Disable")
		b.at("/console/users/"+ann, "ann@example.com")
		b.says("User disabled, and signed out everywhere.")
		b.press("Enable")
		b.says("User enabled.")
		b.open("/console/users/usr_none")
		b.at("/console/users/usr_none", "Not found")
		manageUsers(b, server, c)
	})

	t.Run("Groups", func(t *testing.T) {
		b := b.in(t)
		b.open("/console/groups")
		b.at("/console/groups", "Groups")
		b.fill("q", "read")
		b.send("Search")
		b.says("Readers")
		b.press("Readers")
		b.at("/console/groups/"+group, "Readers")
		b.fill("user", "nobody@example.com")
		b.press("Add")
		b.says("No user has this address.")
		b.refused("user")
		if kept := ask(b.browser, chromedp.Evaluate[string](`document.querySelector("[name=user]").value`)); kept != "nobody@example.com" {
			t.Errorf("the form has forgotten what was typed: %q", kept)
		}
		b.fill("user", "usr_none")
		b.press("Add")
		b.says("User not found.")
		b.refused("user")
		b.at("/console/groups/"+group, "Readers")
		b.fill("user", "ann@example.com")
		b.press("Add")
		b.says("Added.")
		b.fill("user", ann)
		b.press("Add")
		b.says("was a member before")
		b.at("/console/groups/"+group, "Readers")
		b.curl(server.token(c))
		b.press("Remove")
		b.at("/console/groups/"+group+"/remove", "Remove ann@example.com from Readers?")
		b.press("Remove")
		b.says("Removed.")
		b.says("None.")
	})

	t.Run("Applications", func(t *testing.T) {
		b := b.in(t)
		body, err := json.Marshal(map[string]any{"name": "Shop", "description": hostile, "type": "spa", "redirect_uris": []string{"https://shop.example.com/back"}, "allowed_scopes": []string{"openid", "profile"}})
		if err != nil {
			t.Fatal(err)
		}
		id := server.call(t, c, "POST", "applications", string(body), 201)["id"].(string)
		page := "/console/applications/" + id
		b.open("/console/applications")
		b.fill("q", "nothing")
		b.send("Search")
		b.says("No applications match.")
		b.fill("q", strings.Repeat("é", 150)) // too many bytes
		b.send("Search")
		b.refused("q")
		b.at("/console/applications", "Applications")
		b.fill("q", "shop")
		b.send("Search")
		b.at("/console/applications", "Applications")
		if got := b.curl(server.token(c))[0]["data"].([]any); len(got) != 1 {
			t.Errorf("the command lists %v", got)
		}
		b.press("Shop")
		b.at(page, "Shop")
		b.says("https://shop.example.com/back")
		b.says("valid for 30 days")
		b.curl(server.token(c))
		b.press("Disable")
		b.at(page+"/disable", "Disable Shop?")
		b.press("Disable")
		b.says("Application disabled.")
		if got := server.call(t, c, "GET", "applications/"+id, "", 200)["state"]; got != "disabled" {
			t.Errorf("the state is %v", got)
		}
		b.press("Enable")
		b.says("Application enabled.")
		manageApplications(b, server, c)
	})

	t.Run("Webhooks", func(t *testing.T) {
		b := b.in(t)
		var fails atomic.Bool
		receiver := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			if fails.Load() {
				w.WriteHeader(http.StatusTeapot)
			}
		}))
		defer receiver.Close()
		id := server.call(t, c, "POST", "webhooks/subscriptions", fmt.Sprintf(`{"name":"Shop","url":%q,"events":["group.*"]}`, receiver.URL), 201)["id"].(string)
		page := "/console/webhooks/" + id
		// until repeats a page until it says something.
		until := func(words string) {
			t.Helper()
			for deadline := time.Now().Add(20 * time.Second); ; time.Sleep(50 * time.Millisecond) {
				b.open(page)
				if strings.Contains(b.text("main"), words) {
					return
				}
				if time.Now().After(deadline) {
					t.Fatalf("the page does not say %q:\n%s", words, b.text("main"))
				}
			}
		}
		b.open("/console/webhooks")
		b.at("/console/webhooks", "Webhooks")
		b.press("Shop")
		b.at(page, "Shop")
		b.send("Send a test event")
		b.says("Test event queued.")
		until("200 ")
		b.says("test.ping")
		b.at(page, "Shop")
		b.curl(server.token(c))
		b.press("Deliver again")
		b.says("Delivery queued.")

		// What could not be delivered when the subscription was disabled is a dead letter.
		fails.Store(true)
		b.send("Send a test event")
		b.says("Test event queued.")
		until("418")
		server.call(t, c, "POST", "webhooks/subscriptions/"+id+"/disable", "", 200)
		until("subscription_disabled")
		b.at(page, "Shop")
		b.press("Enable")
		b.says("Subscription enabled.")
		fails.Store(false)
		b.send("Deliver chosen again")
		b.says("No dead letters were chosen.")
		b.put("entry", "yes")
		b.send("Deliver chosen again")
		b.says("Dead letters queued.")
		until("None.")
		manageWebhooks(b, server, c, receiver.URL, &fails)
	})

	t.Run("Connections", func(t *testing.T) { manageConnections(b.in(t), server, c, group) })
	t.Run("Manage groups", func(t *testing.T) { manageGroups(b.in(t), server, c) })
	t.Run("Manage resources", func(t *testing.T) { manageResources(b.in(t), server, c) })
	t.Run("Incidents", func(t *testing.T) { manageIncidents(b.in(t), server, c) })
	t.Run("Reports", func(t *testing.T) { manageReports(b.in(t), server, c) })

	t.Run("Audit", func(t *testing.T) { readAudit(b.in(t), server, c, ann) })

	t.Run("Access", func(t *testing.T) {
		b := b.in(t)
		b.open("/console/access")
		b.at("/console/access", "Access")
		b.fill("subject", "bob", "action", "view", "resource", "document:plans/q1 draft")
		b.press("Ask")
		b.says("A subject is type:id")
		b.refused("subject")
		b.fill("subject", "user:bob", "resource", "document:none")
		b.press("Ask")
		b.refused("resource")
		b.at("/console/access", "Access")
		b.fill("resource", "document:plans/q1 draft")
		b.press("Ask")
		b.says("✓ Allowed")
		b.at("/console/access", "Access")
		b.says("every member of group:eng is viewer of folder:2026")
		b.picture("console-access", "allowed")
		if got := b.curl(server.token(c)); len(got) != 2 || got[0]["data"].(map[string]any)["allowed"] != true {
			t.Errorf("the commands answer %v", got)
		}
		if got := b.marked(); got != "document:plans/q1 draft viewer, folder:2026 viewer, group:eng member, user:bob" {
			t.Errorf("the proof is drawn as %s", got)
		}
		// The link has the answer of now, whatever is written later.
		link := ask(b.browser, chromedp.Evaluate[string](`[...document.links].find(e => e.textContent == "Link to this answer").getAttribute("href")`))
		server.call(t, c, "DELETE", "resources/group/eng/relations", `{"subject":{"type":"user","id":"bob"},"relation":"member"}`, 204)
		b.press("Ask")
		b.says("✗ Denied")
		b.at("/console/access", "Access")
		b.says("Each of these would be enough:")
		b.picture("console-access", "denied")
		b.open(link)
		b.says("✓ Allowed")
		b.press("Who else may?")
		b.says("The answer depends on values for ip") // in the folder of this document
		b.refused("context")
		b.do(chromedp.SendKeys(chromedp.CSS("textarea"), `{"ip":"192.0.2.8"}`))
		b.press("Ask")
		b.says("user:bob")
		b.at("/console/access/subjects", "Who may?")
		b.curl(server.token(c))
		b.press("user:bob")
		b.says("✓ Allowed")
		b.press("What else?")
		b.at("/console/access/resources", "What may be done?")
		b.says("document:plans/q1 draft")
		b.curl(server.token(c))
		b.fill("at", "yesterday")
		b.press("Ask")
		b.refused("at")
		b.open("/console/access?subject=user:eve&action=view&resource=document:plans/q1+draft")
		b.says("does not exclude the subject; it does now")
		b.at("/console/access", "Access")
	})

	t.Run("Simulator", func(t *testing.T) {
		b := b.in(t)
		b.open("/console/access?subject=user:cid&action=view&resource=folder:2026&context=%7B%22ip%22%3A%22192.0.2.7%22%7D")
		b.says("✓ Allowed")
		b.press("What if?")
		b.at("/console/simulator", "Simulator")
		b.says("The answer stays the same.")
		typed := func(field, text string) {
			t.Helper()
			b.do(chromedp.WaitVisible(chromedp.CSS(fmt.Sprintf("textarea[name=%q]", field))), chromedp.Evaluate[chromedp.Void](fmt.Sprintf("document.querySelector('textarea[name=%s]').value = %q", field, text)))
		}
		typed("then", `{"ip":"192.0.2.8"}`)
		b.press("Compare")
		b.says("The answer changes.")
		says := func(words string) {
			t.Helper()
			if got := b.text("main > section"); !strings.Contains(got, words) {
				t.Errorf("the page does not say %q:\n%s", words, got)
			}
		}
		says("the condition from_office of this relation is not met")
		b.at("/console/simulator", "Simulator")
		b.curl(server.token(c))
		typed("then", "")
		b.fill("instant", "2100-01-01T00:00:00Z")
		b.press("Compare")
		b.do(chromedp.WaitVisible(chromedp.Search(`//li[contains(., "this relation expired on")]`)))
		typed("remove", "folder:2026")
		b.press("Compare")
		b.says("is not a relation")
		b.refused("remove")
		b.at("/console/simulator", "Simulator")
		typed("remove", "folder:2026#viewer@user:nobody")
		b.press("Compare")
		b.refused("remove")
		typed("remove", "folder:2026#viewer@user:cid")
		typed("add", `{"resource":{"type":"folder","external_id":"2026"},"relation":"owner","subject":{"type":"user","id":"cid"},"expires_at":"2100-02-01T00:00:00Z"}`)
		b.press("Compare")
		b.says("The answer stays the same.")
		says("user:cid is owner of folder:2026")
		b.picture("console-simulator", "compared")
		link := ask(b.browser, chromedp.Evaluate[string](`[...document.links].find(e => e.textContent == "Link to this comparison").getAttribute("href")`))
		server.call(t, c, "POST", "resources/folder/2026/relations", `{"subject":{"type":"user","id":"cid"},"relation":"owner"}`, 201)
		server.call(t, c, "DELETE", "resources/folder/2026/relations", `{"subject":{"type":"user","id":"cid"},"relation":"owner"}`, 204)
		b.open(link)
		b.says("The answer stays the same.")
		// A question that has no answer yet.
		b.fill("resource", "folder:new", "at", "", "instant", "")
		typed("remove", "")
		typed("add", "folder:new#owner@user:cid")
		b.press("Compare")
		b.says("The question has an answer only then.")
		b.at("/console/simulator", "Simulator")
		b.curl(server.token(c))
	})

	t.Run("Relations", func(t *testing.T) {
		b := b.in(t)
		b.open("/console/relations")
		b.at("/console/relations", "Relations")
		b.fill("resource_type", "nothing")
		b.press("Find")
		b.refused("resource_type")
		b.fill("resource_type", "document", "external_id", "plans/q1 draft")
		b.press("Find")
		b.says("folder:2026")
		b.at("/console/relations", "Relations")
		if got := b.curl(server.token(c))[0]["data"].([]any); len(got) != 3 {
			t.Errorf("the command lists %v", got)
		}
		b.press("Add a relation")
		b.at("/console/relations/add", "Add a relation")
		b.fill("subject", "user:dan", "relation", "reader", "resource", "document:plans/q1 draft")
		b.press("Add")
		b.refused("relation")
		if kept := ask(b.browser, chromedp.Evaluate[string](`document.querySelector("[name=subject]").value`)); kept != "user:dan" {
			t.Errorf("the form has forgotten what was typed: %q", kept)
		}
		b.fill("relation", "viewer", "expires_at", "soon")
		b.press("Add")
		b.refused("expires_at")
		b.at("/console/relations/add", "Add a relation")
		b.fill("expires_at", "2099-12-31T00:00:00Z")
		b.press("Add")
		b.says("Added.")
		b.says("until 2099-12-31 00:00")
		b.do(chromedp.Click(chromedp.Search(`//a[@aria-label="Remove user:dan as viewer of document:plans/q1 draft"]`)))
		b.refused("context")
		b.do(chromedp.SendKeys(chromedp.CSS("textarea"), `{"ip":"192.0.2.8"}`))
		b.press("Compare")
		b.says("These lose ")
		if got := b.text("main section"); !strings.Contains(got, "user:dan") {
			t.Errorf("the page says %s", got)
		}
		b.at("/console/relations/remove", "Remove this relation?")
		b.curl(server.token(c))
		b.press("Remove")
		b.says("Removed.")
		b.do(chromedp.Click(chromedp.Search(`//a[@aria-label="Remove user:eve as banned of document:plans/q1 draft"]`)))
		b.says("These lose ") // the relation itself
		b.fill("action", "viewer")
		b.press("Compare")
		b.refused("context")
		b.at("/console/relations/remove", "Remove this relation?")
		b.do(chromedp.SendKeys(chromedp.CSS("textarea"), `{"ip":"192.0.2.8"}`))
		b.press("Compare")
		b.says("These get ") // to remove an exclusion gives access
		b.fill("action", "view", "subject_type", "nothing")
		b.press("Compare")
		b.refused("subject_type")
		b.fill("subject_type", "group")
		b.press("Compare")
		b.says("Nobody loses or gets ")
		b.press("Cancel")
		b.browser.at("/console/relations", "Relations")
	})

	t.Run("Model", func(t *testing.T) {
		b := b.in(t)
		// replace edits the text, as a person would in the field.
		replace := func(old, text string) {
			t.Helper()
			if !ask(b.browser, chromedp.Evaluate[bool](fmt.Sprintf(`(e => { const had = e.value.includes(%[1]q); e.value = e.value.replace(%[1]q, %[2]q); return had })(document.querySelector("[name=text]"))`, old, text))) {
				t.Fatalf("the text lacks %q:\n%s", old, ask(b.browser, chromedp.Evaluate[string](`document.querySelector("[name=text]").value`)))
			}
		}
		discard := func() {
			t.Helper()
			b.press("Discard changes")
			b.do(chromedp.WaitNotPresent(chromedp.CSS("main section")))
		}
		server.call(t, c, "PUT", "assertions/viewers", `{"relations":[{"resource":{"type":"document","external_id":"d"},"relation":"banned","subject":{"type":"user","id":"eve"}},
			{"resource":{"type":"document","external_id":"d"},"relation":"viewer","subject":{"type":"user","id":"eve"}}],"tests":[{"name":"the banned","deny":[{"subject":{"type":"user","id":"eve"},"action":"view","resource":{"type":"document","external_id":"d"}}]}]}`, 201)
		b.open("/console/model")
		b.at("/console/model", "Model")
		if got := b.curl(server.token(c))[0]["data"].([]any); len(got) != 2 {
			t.Errorf("the command lists %v", got)
		}
		b.press("Compare")
		b.says("Nothing: the text means what is active.")

		replace("name: document", "nam: document")
		b.press("Compare")
		b.says("/nam is not a member of a resource type")
		b.refused("text")
		b.at("/console/model", "Model")
		replace("nam: document", "name: document")
		replace("computed: viewer", "computed: reader")
		b.press("Compare")
		b.says("document")
		b.refused("text")
		replace("computed: reader", "computed: viewer")

		// Without the exclusion, an assertion fails and the banned are allowed.
		replace("kind: computed, relation: banned", "kind: computed, relation: nobody")
		replace("name: banned}", "name: banned}\n    - {name: nobody}")
		b.do(chromedp.Click(chromedp.CSS("summary")), chromedp.SendKeys(chromedp.CSS("[name=questions]"), "user:eve view document:plans/q1 draft\nuser:bob"))
		b.press("Compare")
		b.refused("questions")
		b.do(chromedp.Clear(chromedp.CSS("[name=questions]")), chromedp.SendKeys(chromedp.CSS("[name=questions]"), "user:eve view document:plans/q1 draft"))
		b.press("Compare")
		b.says("1 of 1 assertions fail:")
		b.at("/console/model", "Model")
		b.says("(changes)")
		for _, want := range []string{"user:eve view document:plans/q1 draft", "denied", "allowed (changes)", "All of them stay valid.", "may user:eve view document:d?", "+     - {name: nobody}"} {
			if got := b.text("main section"); !strings.Contains(got, want) {
				t.Errorf("the page does not say %q:\n%s", want, got)
			}
		}
		b.press("Apply")
		b.says("assertion")
		b.refused("text")
		b.at("/console/model/apply", "Model")

		// What is stored must stay legal.
		replace("    - {name: banned}\n", "")
		b.press("Compare")
		b.says("The change cannot be applied while these are stored:")
		b.says("document:plans/q1 draft#banned@user:eve")
		b.at("/console/model", "Model")
		if ask(b.browser, chromedp.Evaluate[bool](`document.querySelector("form[action$=apply]") !== null`)) {
			t.Error("the page offers a change that would be refused")
		}

		// Several types at once, one with another name. Meanwhile another person changes one.
		discard()
		b.at("/console/model", "Model")
		replace("name: folder", "name: space")
		replace("subjects: [folder]", "subjects: [space]")
		replace("- name: document", "- name: draft\n- name: document")
		b.do(chromedp.Click(chromedp.CSS("summary")), chromedp.SendKeys(chromedp.CSS("[name=renames]"), "folder=space"))
		b.press("Compare")
		b.says("draft")
		b.says("is created")
		server.call(t, c, "POST", "resource-types", `{"name":"late","relations":[]}`, 201)
		b.press("Apply")
		b.says("The model was changed by another person meanwhile.")
		if got := b.text("main section"); !strings.Contains(got, "late is deleted") {
			t.Errorf("the page says\n%s", got)
		}
		b.press("Compare")
		b.press("Apply") // which a refused change does not have
		b.says("Model changed.")
		if got := ask(b.browser, chromedp.Evaluate[string](`document.querySelector("[name=text]").value`)); !strings.Contains(got, "name: space") || !strings.Contains(got, "name: draft") || strings.Contains(got, "late") {
			t.Errorf("the model is\n%s", got)
		}
		b.open("/console/access?subject=user:ann&action=view&resource=space:2026")
		b.says("✓ Allowed")
		// The commands of the page make the change, too.
		b.open("/console/model")
		replace("- name: draft\n", "")
		replace("space\n", "folder\n")
		replace("[space]", "[folder]")
		b.do(chromedp.Click(chromedp.CSS("summary")), chromedp.SendKeys(chromedp.CSS("[name=renames]"), "space=folder"))
		b.press("Compare")
		b.says("What would change")
		b.curl(server.token(c))
		discard()
		if got := ask(b.browser, chromedp.Evaluate[string](`document.querySelector("[name=text]").value`)); !strings.Contains(got, "name: folder") || strings.Contains(got, "draft") {
			t.Errorf("the model is\n%s", got)
		}
	})

	t.Run("Tests", func(t *testing.T) { runAssertions(b.in(t), server, c) })

	// With its script, the page compares while one types, and draws the types.
	t.Run("Model with a script", func(t *testing.T) {
		b := b.in(t)
		b.scripts(true)
		defer b.scripts(false)
		b.open("/console/model")
		b.do(chromedp.WaitVisible(chromedp.CSS("#island .graph .box")))
		drawn := func() string {
			t.Helper()
			return ask(b.browser, chromedp.Evaluate[string](`[...document.querySelectorAll("#island .box .title")].map(e => e.textContent).sort().join()`))
		}
		if got := drawn(); got != "banned,document,folder,owner,parent,viewer,viewer" {
			t.Errorf("the graph has %s", got)
		}
		if got := ask(b.browser, chromedp.Evaluate[int](`document.querySelectorAll("#island .line.except").length`)); got != 1 {
			t.Errorf("the graph has %d exclusions", got)
		}
		b.inspected("/console/model")

		// By keyboard: the tabulator key leads into the editor and out of it.
		b.do(chromedp.Evaluate[chromedp.Void](`document.querySelector(".editor").shadowRoot.querySelector(".cm-content").focus()`))
		b.keys(kb.Tab)
		if at := ask(b.browser, chromedp.Evaluate[string](`document.activeElement.getAttribute("class") ?? ""`)); at == "editor" {
			t.Error("the tabulator key does not leave the editor")
		}
		b.do(chromedp.Evaluate[chromedp.Void](`document.querySelector(".editor").shadowRoot.querySelector(".cm-content").focus()`))
		b.do(chromedp.KeyEvent(kb.End, chromedp.KeyModifiers(chromedp.ModifierCtrl)), chromedp.KeyEvent("- name: note\n"))
		b.says("What would change")
		b.says("Compared.")
		if got := b.text("main > section"); !strings.Contains(got, "note is created") || !strings.Contains(got, "+ - name: note") {
			t.Errorf("the page says\n%s", got)
		}
		b.do(chromedp.WaitVisible(chromedp.Search(`//*[local-name()="text"][.="note"]`)))
		b.picture("console-model", "island")
		b.inspected("/console/model")

		// A text that cannot be read says so and leaves the graph as it is; the old change is not offered.
		b.keys("- nam: x")
		b.do(chromedp.WaitVisible(chromedp.CSS(".status.wrong")))
		if got := b.text(".status"); !strings.Contains(got, "/nam is not a member") {
			t.Errorf("the status is %s", got)
		}
		if ask(b.browser, chromedp.Evaluate[bool](`document.querySelector("form[action$=apply]") !== null`)) {
			t.Error("the page offers a change that is not in the editor")
		}
		if got := drawn(); !strings.Contains(got, "note") {
			t.Errorf("the graph has %s", got)
		}
		for range len("- nam: x") {
			b.keys(kb.Backspace)
		}
		b.says("Compared.")
		b.press("Apply")
		b.says("Model changed.")
		if got := ask(b.browser, chromedp.Evaluate[string](`document.querySelector("[name=text]").value`)); !strings.Contains(got, "note") {
			t.Errorf("the model is\n%s", got)
		}

		// A box leads to its definition. The picture moves and grows by keys.
		b.do(chromedp.WaitVisible(chromedp.CSS("#island .graph .box")))
		b.do(chromedp.Click(chromedp.Search(`//*[local-name()="text"][.="banned"]`)))
		if got := ask(b.browser, chromedp.Evaluate[string](`document.querySelector(".editor").shadowRoot.querySelector(".cm-activeLine").textContent`)); !strings.Contains(got, "banned") {
			t.Errorf("the cursor is in %q", got)
		}
		view := func() string {
			t.Helper()
			return ask(b.browser, chromedp.Evaluate[string](`document.querySelector("#island .graph").getAttribute("viewBox")`))
		}
		before := view()
		b.do(chromedp.Focus(chromedp.CSS("#island .graph")))
		b.keys("+" + kb.ArrowRight)
		if view() == before {
			t.Error("keys do not move the picture")
		}
		b.keys("0")
		if got := view(); got != before {
			t.Errorf("the view is %s, before %s", got, before)
		}
		if took := ask(b.browser, chromedp.Evaluate[float64](`performance.getEntriesByName("first-contentful-paint")[0].startTime`)); took > 0 {
			t.Logf("first contentful paint after %.0f ms", took)
		}
	})

	t.Run("Model in the graph", func(t *testing.T) { editGraph(b.in(t), server, c) })

	// With its script, the graph of an answer can be folded, searched and moved, also a large one.
	t.Run("Explorer", func(t *testing.T) {
		b := b.in(t)
		b.scripts(true)
		defer b.scripts(false)
		b.open("/console/access?subject=user:eve&action=view&resource=document:plans/q1+draft")
		b.do(chromedp.WaitVisible(chromedp.CSS("#island .graph .box")))
		b.says("✗ Denied")
		if ask(b.browser, chromedp.Evaluate[bool](`document.querySelector("#island .line.except") === null || getComputedStyle(document.querySelector("#island + .scroll")).display != "none"`)) {
			t.Error("the graph has no exclusion, or is there twice")
		}
		b.inspected("/console/access")
		b.open("/console/access?subject=user:nobody&action=view&resource=document:plans/q1+draft")
		b.do(chromedp.WaitVisible(chromedp.CSS("#island .line.missing")))
		b.picture("console-access", "missing")
		b.do(chromedp.Focus(chromedp.CSS("#search")), chromedp.KeyEvent("folder"))
		b.do(chromedp.WaitVisible(chromedp.CSS("#island .search li")))
		b.inspected("/console/access")

		const groups, members = 50, 100
		operations := func(n int, operation func(i int) string) {
			t.Helper()
			for i := 0; i < n; i += 500 {
				var all []string
				for j := i; j < min(n, i+500); j++ {
					all = append(all, operation(j))
				}
				server.call(t, c, "POST", "resources/relations/bulk", `{"operations":[`+strings.Join(all, ",")+`]}`, 200)
			}
		}
		operations(groups*members, func(i int) string {
			return fmt.Sprintf(`{"op":"create","resource":{"type":"group","external_id":"g%d"},"relation":"member","subject":{"type":"user","id":"u%d"}}`, i/members, i)
		})
		operations(groups, func(i int) string {
			return fmt.Sprintf(`{"op":"create","resource":{"type":"folder","external_id":"large"},"relation":"viewer","subject":{"type":"group","id":"g%d"}}`, i)
		})
		b.open("/console/access?subject=user:u4321&action=view&resource=folder:large")
		b.do(chromedp.WaitVisible(chromedp.CSS("#island .graph .box")))
		b.press("Read all relations")
		b.do(chromedp.WaitNotPresent(chromedp.Search(`//a[.="Read all relations"]`)), chromedp.WaitVisible(chromedp.CSS("#island .graph .box.proof")))
		drawn := func() int {
			t.Helper()
			return ask(b.browser, chromedp.Evaluate[int](`Number(document.querySelector(".tools .status").textContent.match(/^(\d+) boxes of 50\d\d/)?.[1] ?? 0)`))
		}
		b.do(chromedp.WaitVisible(chromedp.Search(`//*[@class="tools"]//*[contains(text(), "boxes of")]`)))
		if n := drawn(); n < 10 || n > 200 {
			t.Errorf("%d boxes are drawn first", n)
		}
		if got := ask(b.browser, chromedp.Evaluate[string](`[...document.querySelectorAll("#island .box.proof .title")].map(e => e.textContent).join()`)); got != "folder:large,group:g43,user:u4321" {
			t.Errorf("the proof is drawn as %s", got)
		}
		b.picture("console-access", "large")

		// By keyboard: find a box that is folded.
		b.do(chromedp.Focus(chromedp.CSS("#search")))
		b.keys("user u1234")
		b.do(chromedp.WaitVisible(chromedp.Search(`//button[normalize-space()="user:u1234"]`)))
		b.keys(kb.Tab + kb.Enter)
		b.do(chromedp.WaitVisible(chromedp.Search(`//*[contains(@class, "centre")]//*[.="user:u1234"]`)))
		found := drawn()
		b.do(chromedp.Focus(chromedp.CSS("#search")))
		b.keys("group g12")
		b.do(chromedp.WaitVisible(chromedp.Search(`//button[normalize-space()="group:g12 member"]`)))
		b.keys(kb.Tab + kb.Enter)
		b.do(chromedp.Click(chromedp.Search(`//*[@id="island"]//*[contains(@class, "centre")]//*[.="group:g12"]`)))
		b.do(chromedp.WaitNotPresent(chromedp.Search(`//*[local-name()="text"][.="user:u1234"]`)))
		b.do(chromedp.WaitVisible(chromedp.Search(`//*[@class="tools"]//*[contains(text(), "boxes of")]`)))
		if n := drawn(); n >= found {
			t.Errorf("%d boxes are drawn with a group closed, %d before", n, found)
		}
		begin := time.Now()
		b.press("Unfold all")
		b.do(chromedp.WaitVisible(chromedp.Search(`//*[@class="tools"]//*[starts-with(text(), "5052 boxes")]`)))
		t.Logf("%d boxes are drawn after %s", drawn(), time.Since(begin).Round(time.Millisecond))
		begin = time.Now()
		b.do(chromedp.Focus(chromedp.CSS("#island .graph")))
		for range 20 {
			b.keys("+" + kb.ArrowDown)
		}
		ask(b.browser, chromedp.Evaluate[bool](`new Promise(done => requestAnimationFrame(() => requestAnimationFrame(() => done(true))))`, chromedp.EvalAwaitPromise))
		t.Logf("20 zooms and moves take %s", time.Since(begin).Round(time.Millisecond))
		b.press("Fold")
		b.do(chromedp.WaitNotPresent(chromedp.Search(`//*[@class="tools"]//*[starts-with(text(), "5052 boxes")]`)))
	})

	t.Run("Search", func(t *testing.T) { searchEverything(b.in(t), server, c) })

	t.Run("by keyboard", func(t *testing.T) {
		b := b.in(t)
		b.open("/console")
		b.tabTo("Skip to content")
		b.tabTo("Users")
		b.keys(kb.Enter)
		b.at("/console/users", "Users")
		b.tabTo("Words in address, name or attributes")
		b.keys("bob" + kb.Enter)
		b.do(chromedp.WaitNotPresent(chromedp.Search(`//a[.="ann@example.com"]`)))
		b.tabTo("bob@example.com")
		b.keys(kb.Enter)
		b.browser.at("/console/users/"+bob, "bob@example.com")
		b.tabTo("Disable")
		b.keys(kb.Enter)
		b.browser.at("/console/users/"+bob+"/disable", "Disable bob@example.com?")
		b.tabTo("Disable")
		b.keys(kb.Enter)
		b.says("User disabled, and signed out everywhere.")
		b.tabTo("Sign out")
		b.keys(kb.Enter)
		b.browser.at("/auth/sign-out", "Sign out?")
		b.tabTo("Sign out")
		b.keys(kb.Enter)
		b.browser.at("/auth/sign-in", "Sign in")
		b.open("/console/users")
		b.browser.at("/auth/sign-in", "Sign in")
	})

	// A person without any right, and one with few.
	t.Run("rights", func(t *testing.T) {
		b := b.in(t)
		b.fill("email", "ann@example.com", "password", "correct horse battery")
		b.press("Sign in")
		b.at("/console/users", "You have no administrative rights")
		server.confirm(t)
		server.call(t, c, "POST", "groups/"+group+"/members", fmt.Sprintf(`{"user_id":%q}`, ann), 201)
		b.open("/console") // with the next page, without a new sign-in
		b.at("/console", "Overview")
		if got := ask(b.browser, chromedp.Evaluate[string](`[...document.querySelectorAll("nav a")].map(e => e.textContent).join()`)); got != "Overview,Groups" {
			t.Errorf("the areas are %s", got)
		}
		b.press("Groups")
		b.press("Readers")
		b.at("/console/groups/"+group, "Readers")
		if ask(b.browser, chromedp.Evaluate[bool](`document.querySelector("main form, main a[href*=remove], main a[href*=users]") !== null`)) {
			t.Error("the page offers what the person may not do")
		}
		b.open("/console/users")
		b.at("/console/users", "You may not do this")
		b.says("users:read")
		b.open("/console/groups/" + group + "/remove?user=" + ann)
		b.at("/console/groups/"+group+"/remove", "You may not do this")
	})
}

// marked returns the boxes of the picture that belong to the proof, from left to right.
func (b inspector) marked() string {
	b.Helper()
	return ask(b.browser, chromedp.Evaluate[string](`[...document.querySelectorAll(".box.proof")].sort((a, b) => a.getBBox().x - b.getBBox().x).map(e => [...e.querySelectorAll("text")].map(t => t.textContent).join(" ")).join(", ")`))
}

// in returns the inspector for a part of a test.
func (b inspector) in(t *testing.T) inspector {
	other := *b.browser
	other.T = t
	return inspector{&other, b.axe}
}
