package main

import (
	"fmt"
	"strings"
	"sync/atomic"
	"time"

	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"
)

// put sets the value of a field that may be hidden by the size of the screen, as one types it.
func (b inspector) put(pairs ...string) {
	b.Helper()
	for i := 0; i < len(pairs); i += 2 {
		if !ask(b.browser, chromedp.Evaluate[bool](fmt.Sprintf(`(e => { if (e) { if (e.type == "checkbox") e.checked = %[2]q == "yes"; else e.value = %[2]q } return e !== null })(document.querySelector('main [name=%[1]q]:not([type=hidden])'))`, pairs[i], pairs[i+1]))) {
			b.Fatalf("the page has no field %s", pairs[i])
		}
	}
}

// value returns the value of a field.
func (b inspector) value(name string) string {
	b.Helper()
	return ask(b.browser, chromedp.Evaluate[string](fmt.Sprintf(`document.querySelector('main [name=%q]:not([type=hidden])').value`, name)))
}

// manageUsers creates, changes and deletes a user in the console.
func manageUsers(b inspector, server *running, c credentials) {
	b.Helper()
	b.open("/console/users")
	b.press("New user")
	b.at("/console/users/new", "New user")
	b.put("email", "carl@example.com", "name", "Carl", "password", "short")
	b.send("Create")
	b.refused("password")
	b.at("/console/users/new", "New user")
	if b.value("name") != "Carl" || b.value("password") != "" {
		b.Errorf("the form has forgotten what was typed, or kept the password: %q, %q", b.value("name"), b.value("password"))
	}
	b.put("password", "a long secret of carl")
	b.send("Create")
	b.says("User created.")
	page := strings.TrimPrefix(strings.TrimSuffix(ask(b.browser, chromedp.Location()), "?done=user-created"), b.base)
	b.at(page, "carl@example.com")
	b.press("Edit")
	b.at(page+"/edit", "Edit carl@example.com")
	b.put("attributes", `{"team": "ops"}`, "email_verified", "yes")
	b.send("Save")
	b.says("Saved.")
	u := server.call(b.T, c, "GET", "users/"+strings.TrimPrefix(page, "/console/users/"), "", 200)
	if u["email_verified"] != true || u["name"] != "Carl" || u["attributes"].(map[string]any)["team"] != "ops" || u["password_set"] != true {
		b.Errorf("the user is %v", u)
	}
	b.send("Send a link to a new password")
	b.says("on its way to the user")
	b.press("Delete")
	b.at(page+"/delete", "Delete carl@example.com?")
	b.send("Delete")
	b.says("User deleted.")
	b.at("/console/users", "Users")
}

// manageApplications creates, changes and deletes applications in the console.
func manageApplications(b inspector, server *running, c credentials) {
	b.Helper()
	const hostile = `</textarea><script>alert(1)</script>'"&`
	b.open("/console/applications")
	b.press("New application")
	b.at("/console/applications/new", "New application")
	b.press("Web application")
	b.do(chromedp.WaitVisible(chromedp.CSS("[name=redirect_uris]")))
	b.put("name", "Books", "description", hostile, "redirect_uris", "https://books.example.com/back\nhttp://books.example.com/back", "allowed_scopes", "openid\nprofile", "first_party", "no", "audience", "https://books.example.com")
	b.send("Create")
	b.refused("redirect_uris")
	b.at("/console/applications/new", "New application")
	if got := b.value("description"); got != hostile {
		b.Errorf("the form has forgotten what was typed: %q", got)
	}
	b.put("redirect_uris", "https://books.example.com/back", "allowed_scopes", "openid\nprofil")
	b.send("Create")
	b.refused("allowed_scopes")
	b.put("allowed_scopes", "openid\nprofile")
	b.send("Create")
	b.at("/console/applications/new", "Application created")
	secret := b.text("#secret")
	id := strings.TrimPrefix(ask(b.browser, chromedp.Evaluate[string](`[...document.links].find(e => e.textContent == "I have saved it").getAttribute("href")`)), "/console/applications/")
	page := "/console/applications/" + id
	read := func() map[string]any { return server.call(b.T, c, "GET", "applications/"+id, "", 200) }
	if a := read(); a["first_party"] != false || a["description"] != hostile || a["audience"] != "https://books.example.com" || !strings.HasPrefix(secret, "cs_") {
		b.Errorf("created: %v, %s", a, secret)
	}
	// The form that is sent again makes nothing new, and shows the secret that might have been missed.
	b.do(chromedp.Reload())
	b.browser.at("/console/applications/new", "Application created")
	if again := b.text("#secret"); again != secret {
		b.Errorf("sent again, the form shows the secret %q, not %q", again, secret)
	}
	if _, answer := server.do("GET", "http://"+server.Addr()+"/api/v1/applications?q=Books", hostOf(b.T, c.BaseURL), server.token(c), ""); len(answer["data"].([]any)) != 1 {
		b.Errorf("sent twice, the form has made %v", answer)
	}
	b.press("I have saved it")
	b.at(page, "Books")
	if text := b.text("main"); strings.Contains(text, secret) {
		b.Error("the secret is shown again")
	}

	// Only what was changed is sent, and not over the change of another person.
	b.press("Edit")
	b.at(page+"/edit", "Edit Books")
	b.curl(server.token(c))
	b.put("access_token_ttl_s", "soon")
	b.send("Save")
	b.refused("access_token_ttl_s")
	b.put("access_token_ttl_s", "5")
	b.send("Save")
	b.says("between 60 and 86400")
	b.refused("access_token_ttl_s")
	b.at(page+"/edit", "Edit Books")
	server.call(b.T, c, "PATCH", "applications/"+id, `{"tags":["by another"]}`, 200)
	b.put("access_token_ttl_s", "600", "token_exchange/enabled", "yes", "token_exchange/allowed_audiences", "https://api.example.com", "token_exchange/act_as/enabled", "yes")
	b.send("Save")
	b.says("This was changed meanwhile.")
	b.put("tags", "by another\nbooks", "userinfo_signed_response_alg", "ES256", "request_uris", "https://books.example.com/request", "token_endpoint_auth_signing_alg", "ES256")
	b.send("Save")
	b.says("Saved.")
	a := read()
	if a["userinfo_signed_response_alg"] != "ES256" || fmt.Sprint(a["request_uris"]) != "[https://books.example.com/request]" || a["token_endpoint_auth_signing_alg"] != "ES256" {
		b.Errorf("saved: %v", a)
	}
	if a["access_token_ttl_s"] != 600.0 || fmt.Sprint(a["tags"]) != "[by another books]" || a["description"] != hostile || fmt.Sprint(a["token_exchange"]) != "map[act_as:map[allowed_subject_types:[user] enabled:true] allowed_audiences:[https://api.example.com] enabled:true require_client_authentication:true subject_tokens:any]" {
		b.Errorf("saved: %v", a)
	}

	// The exchange policy is the relations that decide.
	b.at(page, "Books")
	for _, relation := range []string{"exchange", "exchanger", "act_as_user"} {
		if got := b.text("section:has(#exchange) tbody"); !strings.Contains(got, relation) {
			b.Errorf("the policy lacks %s:\n%s", relation, got)
		}
	}
	b.curl(server.token(c))
	b.do(chromedp.Click(chromedp.Search(`//a[starts-with(@aria-label, "Why is ") and contains(@aria-label, "exchanger")]`)))
	b.says("✓ Allowed")
	b.open(page)
	b.do(chromedp.Click(chromedp.Search(`//a[contains(., "its own audience")]`)))
	b.browser.at("/console/relations", "Relations")

	b.open(page)
	b.press("Edit and preview")
	b.at(page+"/claims", "Claims of Books")
	b.put("claims", `[{"name": "roles"`)
	b.send("Save")
	b.refused("claims")
	b.put("claims", `[{"name": "nick", "where": ["id_token"], "scope": "profile", "source": {"attribute": "name"}}, {"name": "team", "where": ["userinfo"], "scope": "openid", "source": {"attribute": "attributes.team"}}]`, "user", "nobody@example.com")
	b.send("Preview")
	b.refused("user")
	b.put("user", "ann@example.com")
	b.send("Preview")
	b.says("Left out")
	b.at(page+"/claims", "Claims of Books")
	if got := b.text("main section"); !strings.Contains(got, `"nick": "Ann `) || !strings.Contains(got, "value_missing") {
		b.Errorf("the preview is %s", got)
	}
	if claims := read()["claims"].([]any); len(claims) != 0 {
		b.Errorf("a preview has stored %v", claims)
	}
	if answers := b.curl(server.token(c)); answers[len(answers)-1]["data"].(map[string]any)["id_token"].(map[string]any)["nick"] == nil {
		b.Errorf("the command answers %v", answers)
	}
	b.send("Save")
	b.says("Saved.")
	if claims := read()["claims"].([]any); len(claims) != 2 {
		b.Errorf("the claims are %v", claims)
	}

	b.open(page + "/rotate-secret")
	b.at(page+"/rotate-secret", "New secret for Books")
	b.put("previous", "0")
	b.press("Create a new secret")
	b.at(page+"/rotate-secret", "New secret")
	if rotated := b.text("#secret"); rotated == secret || !strings.HasPrefix(rotated, "cs_") {
		b.Errorf("the new secret is %q", rotated)
	}
	b.press("I have saved it")
	b.press("Delete")
	b.at(page+"/delete", "Delete Books?")
	b.press("Delete")
	b.says("Application deleted.")
	server.call(b.T, c, "GET", "applications/"+id, "", 404)

	// A type without a secret, and one that speaks SAML.
	for typ, fields := range map[string][]string{
		"Native application": {"name", "Phone", "redirect_uris", "com.example.phone:/back"},
		"SAML service provider": {
			"name", "Payroll", "entity_id", "https://payroll.example.com/saml", "acs_url", "https://payroll.example.com/acs", "attribute_statements", `[{"name": "mail", "value": "email"}]`,
		},
	} {
		b.open("/console/applications/new")
		b.press(typ)
		b.do(chromedp.WaitVisible(chromedp.CSS("[name=name]")))
		b.put(fields...)
		b.send("Create")
		b.says("Application created.")
		b.accessible(typ)
		b.picture("console-applications", typ)
		b.press("Edit")
		b.do(chromedp.WaitVisible(chromedp.CSS("[name=name]")))
		b.accessible(typ)
		b.send("Save")
		b.says("Saved.")
	}
}

// manageWebhooks creates, changes and deletes subscriptions in the console.
func manageWebhooks(b inspector, server *running, c credentials, receiver string, fails *atomic.Bool) {
	b.Helper()
	const hostile = `</pre><script>alert(1)</script>'"&`
	b.open("/console/webhooks")
	b.press("Types of events")
	b.at("/console/webhooks/event-types", "Types of events")
	b.says("user.created")
	b.curl(server.token(c))
	b.open("/console/webhooks")
	b.press("New subscription")
	b.at("/console/webhooks/new", "New subscription")
	b.put("name", "Books", "description", hostile, "url", "books.example.com", "events", "book.*", "owners", `[{"type": "user", "id": "ann"}]`)
	b.send("Create")
	b.refused("url")
	b.put("url", receiver)
	b.send("Create")
	b.refused("events")
	b.at("/console/webhooks/new", "New subscription")
	b.put("events", "group.*\n\ntest.ping", "visible_to", "all")
	b.send("Create")
	b.refused("visible_to")
	b.put("visible_to", "")
	b.send("Create")
	b.at("/console/webhooks/new", "Subscription created")
	secret := b.text("#secret")
	b.press("I have saved it")
	b.says("Send a test event")
	page := strings.TrimPrefix(ask(b.browser, chromedp.Location()), b.base)
	id := strings.TrimPrefix(page, "/console/webhooks/")
	read := func() map[string]any { return server.call(b.T, c, "GET", "webhooks/subscriptions/"+id, "", 200) }
	if s := read(); fmt.Sprint(s["events"], s["owners"]) != "[group.* test.ping] [map[id:ann type:user]]" || s["description"] != hostile || !strings.HasPrefix(secret, "whsec_") {
		b.Errorf("created: %v", s)
	}

	b.press("Edit")
	b.at(page+"/edit", "Edit Books")
	b.curl(server.token(c))
	b.put("owners", "", "description", "", "visible_to", `{"subject": {"type": "user", "id": "ann"}, "action": "view"}`)
	b.send("Save")
	b.says("Saved.")
	if s := read(); fmt.Sprint(s["events"], s["owners"], s["visible_to"]) != "[group.* test.ping] [] map[action:view subject:map[id:ann type:user]]" {
		b.Errorf("saved: %v", s)
	}
	b.press("New secret")
	b.at(page+"/rotate-secret", "New secret for Books")
	b.put("previous", "3600")
	b.press("Create a new secret")
	b.says("The old secret is valid until ")
	if rotated := b.text("#secret"); rotated == secret || !strings.HasPrefix(rotated, "whsec_") {
		b.Errorf("the new secret is %q", rotated)
	}
	b.press("I have saved it")
	b.says("the previous one signs, too")

	// Dead letters are dropped after a question.
	fails.Store(true)
	for range 2 {
		b.send("Send a test event")
		b.says("Test event queued.")
	}
	b.press("Disable")
	b.at(page+"/disable", "Disable Books?")
	b.press("Disable")
	b.says("Subscription disabled.")
	for deadline := time.Now().Add(pagePatience); ask(b.browser, chromedp.Evaluate[int](`document.querySelectorAll("[name=entry]").length`)) != 2; b.open(page) {
		if time.Now().After(deadline) {
			b.Fatalf("the page has not two dead letters:\n%s", b.text("main"))
		}
	}
	b.at(page, "Books")
	b.do(chromedp.Evaluate[chromedp.Void](`document.querySelectorAll("[name=entry]").forEach(e => e.checked = true)`))
	b.press("Drop chosen")
	b.at(page+"/drop", "Drop 2 dead letters?")
	b.press("Drop")
	b.says("Dropped.")
	b.says("None.")
	fails.Store(false)
	b.press("Delete")
	b.at(page+"/delete", "Delete Books?")
	b.press("Delete")
	b.says("Subscription deleted.")
	server.call(b.T, c, "GET", "webhooks/subscriptions/"+id, "", 404)
}

// readAudit finds events in the console.
func readAudit(b inspector, server *running, c credentials, userID string) {
	b.Helper()
	b.open("/console/audit")
	b.at("/console/audit", "Audit")
	b.fill("since", "yesterday")
	b.send("Find")
	b.refused("since")
	b.at("/console/audit", "Audit")
	b.fill("since", "", "type", "user.created", "about", userID)
	b.send("Find")
	b.says("JSON lines")
	if got := b.curl(server.token(c))[0]["data"].([]any); len(got) != 1 {
		b.Errorf("the command lists %v", got)
	}
	b.press("user.created")
	b.do(chromedp.WaitVisible(chromedp.CSS("#data")))
	page := strings.TrimPrefix(ask(b.browser, chromedp.Location()), b.base)
	b.at(page, "user.created")
	b.curl(server.token(c))
	b.press(userID)
	b.at("/console/audit", "Audit")
	b.fill("about", "nothing")
	b.send("Find")
	b.says("No events match")
}

// runAssertions stores and runs assertions in the console.
func runAssertions(b inspector, server *running, c credentials) {
	b.Helper()
	b.open("/console/tests")
	b.press("New assertions")
	b.at("/console/tests/new", "New assertions")
	b.put("text", "tests: [")
	b.send("Run")
	b.refused("text")
	b.put("text", "tests: []")
	b.send("Run")
	b.refused("text")
	b.at("/console/tests/new", "New assertions")
	const text = `relations:
  - {resource: {type: folder, external_id: f}, relation: owner, subject: {type: user, id: "<script>"}}
tests:
  - name: owners
    allow:
      - {subject: {type: user, id: "<script>"}, action: view, resource: {type: folder, external_id: f}}
      - {subject: {type: user, id: eve}, action: view, resource: {type: folder, external_id: f}}
`
	b.put("text", text)
	b.send("Run")
	b.says("✗ 1 of 2 fail")
	b.at("/console/tests/new", "New assertions")
	b.curl(server.token(c))
	b.put("name", "Bad Name")
	b.send("Save")
	b.refused("name")
	b.put("name", "folders")
	b.send("Save")
	b.at("/console/tests/sets/folders", "folders")
	b.says("Saved.")
	if got := b.value("text"); !strings.Contains(got, "<script>") {
		b.Errorf("the text is %s", got)
	}
	b.curl(server.token(c))
	b.open("/console/tests")
	b.send("Run all")
	b.says("✗ 1 of 2 fail")
	b.at("/console/tests", "Tests")
	b.press("folders")
	b.browser.at("/console/tests/sets/folders", "folders")
	b.put("text", strings.Replace(text, "      - {subject: {type: user, id: eve}", "    deny:\n      - {subject: {type: user, id: eve}", 1))
	b.send("Run")
	b.says("✓ All 2 hold")
	b.send("Save")
	b.says("Saved.")
	b.press("Delete")
	b.at("/console/tests/sets/folders/delete", "Delete folders?")
	b.press("Delete")
	b.says("Deleted.")
	server.call(b.T, c, "GET", "assertions/folders", "", 404)
}

// manageConnections connects identity providers in the console.
func manageConnections(b inspector, server *running, c credentials, groupID string) {
	b.Helper()
	b.open("/console/connections")
	b.press("New connection")
	b.at("/console/connections/new", "New connection")
	b.press("GitHub")
	b.do(chromedp.WaitVisible(chromedp.CSS("[name=slug]")))
	b.put("slug", "Git Hub", "name", "GitHub <script>", "client_id", "id", "client_secret", "hidden secret")
	b.send("Create")
	b.refused("slug")
	b.at("/console/connections/new", "New connection")
	if b.value("client_secret") != "" {
		b.Error("the form shows the secret again")
	}
	b.put("slug", "github", "client_secret", "hidden secret", "group_mapping", "[")
	b.send("Create")
	b.refused("group_mapping")
	b.put("client_secret", "hidden secret", "group_mapping", fmt.Sprintf(`[{"value": "staff", "group_id": %q}]`, groupID), "jit_provisioning", "no")
	b.send("Create")
	b.says("Connection created.")
	page := strings.TrimPrefix(strings.Split(ask(b.browser, chromedp.Location()), "?")[0], b.base)
	id := strings.TrimPrefix(page, "/console/connections/")
	read := func() map[string]any { return server.call(b.T, c, "GET", "federation/connections/"+id, "", 200) }
	if got := read(); got["jit_provisioning"] != false || got["link_policy"] != "always_prompt" || got["client_secret_set"] != true {
		b.Errorf("created: %v", got)
	}
	b.at(page, "GitHub <script>")
	b.says("/federation/github/callback")
	b.curl(server.token(c))
	b.press("Edit")
	b.at(page+"/edit", "Edit GitHub <script>")
	b.curl(server.token(c))
	b.put("name", "GitHub", "domains", "example.com")
	b.send("Save")
	b.says("Saved.")
	if got := read(); got["name"] != "GitHub" || fmt.Sprint(got["domains"]) != "[example.com]" || got["client_secret_set"] != true {
		b.Errorf("saved: %v", got)
	}

	b.press("Edit and preview")
	b.at(page+"/mapping", "Mapping of GitHub")
	b.put("attribute_mapping", `{"attributes.team": "$.team", "name": "team"}`, "claims", `{"team": "x"}`)
	b.send("Preview")
	b.refused("attribute_mapping")
	b.put("attribute_mapping", `{"attributes.team": "$.team", "name": "$.title"}`, "claims", "x")
	b.send("Preview")
	b.refused("claims")
	b.put("claims", `{"team": "<script>", "email": "ann@example.com", "groups": ["staff"]}`)
	b.send("Preview")
	b.says("Profile")
	b.at(page+"/mapping", "Mapping of GitHub")
	if got := b.text("main section"); !strings.Contains(got, `"team": "<script>"`) {
		b.Errorf("the preview is %s", got)
	}
	b.curl(server.token(c))
	b.send("Save")
	b.says("Saved.")
	b.put("attribute_mapping", `{"attributes.team": "$.team"}`)
	b.send("Save")
	b.says("Saved.")
	if got := read()["attribute_mapping"]; fmt.Sprint(got) != "map[attributes.team:$.team]" {
		b.Errorf("the mapping is %v", got)
	}

	b.open(page)
	b.press("Test")
	b.at(page+"/test", "Test of the connection")
	b.press("See the report")
	b.says("The test is pending.")
	b.accessible("report")
	b.curl(server.token(c))
	b.press("Back to the connection")
	b.press("Disable")
	b.at(page+"/disable", "Disable GitHub?")
	b.press("Disable")
	b.says("Connection disabled.")
	b.press("Enable")
	b.says("Connection enabled.")
	b.press("Delete")
	b.at(page+"/delete", "Delete GitHub?")
	b.press("Delete")
	b.says("Connection deleted.")
	b.at("/console/connections", "Connections")
	for _, provider := range []string{"OpenID Connect", "SAML 2.0"} {
		b.open("/console/connections/new")
		b.press(provider)
		b.do(chromedp.WaitVisible(chromedp.CSS("[name=slug]")))
		b.accessible(provider)
		b.picture("console-connections", provider)
	}
}

// searchEverything finds users, groups, resources and pages, without scripts and by the shortcut.
func searchEverything(b inspector, server *running, c credentials) {
	b.Helper()
	find := func(words string) string {
		b.Helper()
		b.do(chromedp.Focus(chromedp.CSS("#everything")), chromedp.Evaluate[chromedp.Void](`document.querySelector("#everything").value = ""`), chromedp.KeyEvent(words+kb.Enter))
		b.do(chromedp.WaitVisible(chromedp.CSS(fmt.Sprintf(`#everything[value=%q]`, words))))
		return b.text("main")
	}
	b.open("/console/search")
	b.at("/console/search", "Search")
	for words, want := range map[string]string{"ann@": "ann@example.com", "readers": "Readers", "2026": "folder:2026", "folder:2026": "folder:2026", "second factors": "Users", "types of events": "Types of events", "nothing at all": "Nothing is found."} {
		if got := find(words); !strings.Contains(got, want) {
			b.Errorf("%q finds\n%s", words, got)
		}
	}
	find("bob")
	b.at("/console/search", "Search")
	b.curl(server.token(c))
	b.press("bob@example.com")
	b.says("Last sign-in")
	find(strings.Repeat("é", 200)) // too many bytes
	b.refused("search")
	b.accessible("search")

	b.scripts(true)
	defer b.scripts(false)
	b.open("/console/groups")
	b.browser.at("/console/groups", "Groups")
	b.do(chromedp.KeyEvent("k", chromedp.KeyModifiers(chromedp.ModifierCtrl)), chromedp.WaitVisible(chromedp.CSS("#everything:focus")))
	b.keys("readers" + kb.Enter)
	b.browser.at("/console/search", "Search")
	b.inspected("/console/search")
}

// manageIncidents opens an incident in the console, notifies its users, and closes it.
func manageIncidents(b inspector, server *running, c credentials) {
	b.Helper()
	const hostile = `</dd><script>alert(1)</script>'"&`
	b.open("/console/incidents")
	b.press("New incident")
	b.at("/console/incidents/new", "New incident")
	b.put("title", "Public backup", "severity", "high", "description", hostile, "assignee_id", "usr_none")
	b.send("Open")
	b.refused("assignee_id")
	b.at("/console/incidents/new", "New incident")
	b.put("assignee_id", "")
	b.send("Open")
	b.says("Incident opened.")
	page := strings.TrimPrefix(strings.TrimSuffix(ask(b.browser, chromedp.Location()), "?done=incident-opened"), b.base)
	id := strings.TrimPrefix(page, "/console/incidents/")
	read := func() map[string]any { return server.call(b.T, c, "GET", "breach-incidents/"+id, "", 200) }
	if i := read(); i["description"] != hostile || i["opened_by"].(map[string]any)["type"] != "user" {
		b.Errorf("opened: %v", i)
	}

	b.press("Edit")
	b.at(page+"/edit", "Edit Public backup")
	b.curl(server.token(c))
	b.put("severity", "critical", "description", "It was public.\n\nFor two days.")
	b.send("Save")
	b.says("Saved.")

	b.press("Notify users")
	b.at(page+"/notify", "Notify the affected users?")
	b.says("the users of the list (0)")
	b.put("subject", "A backup was public", "message", "It had your name.")
	b.send("Send")
	b.says("has no affected users")
	b.open(page)
	b.put("users", "nobody@example.com")
	b.send("Add")
	b.refused("users")
	b.put("users", "ann@example.com")
	b.send("Add")
	b.says("Added.")
	if got := b.text("section:has(#affected) tbody"); !strings.Contains(got, "ann@example.com") {
		b.Errorf("affected: %s", got)
	}
	b.put("users", "usr_none")
	b.send("Add")
	b.refused("users")
	b.says("the others were added")
	b.open(page)
	b.press("Notify users")
	b.says("the users of the list (1)")
	b.put("subject", "A backup was public", "message", "It had your name.")
	b.send("Send")
	b.says("The users are being notified.")
	for read := ""; !strings.Contains(read, "completed 1"); time.Sleep(10 * time.Millisecond) {
		b.open(page)
		read = strings.Join(strings.Fields(b.text("section:has(#notifications) tbody")), " ")
	}
	b.at(page, "Public backup")
	b.curl(server.token(c))

	b.press("Close")
	b.at(page+"/close", "Close this incident?")
	b.put("resolution", "It is private.")
	b.send("Close")
	b.says("Incident closed.")
	b.at(page, "Public backup")
	if i := read(); i["state"] != "closed" || i["severity"] != "critical" || i["affected_users"] != 1.0 {
		b.Errorf("closed: %v", i)
	}
	if text := b.text("main"); strings.Contains(text, "Notify users") || strings.Contains(text, "Add users") {
		b.Errorf("a closed incident can be changed:\n%s", text)
	}
	b.open("/console/incidents")
	b.at("/console/incidents", "Incidents")
	b.says("Public backup")
	b.open("/console/search?search=public+backup")
	b.press("Public backup")
	b.browser.at(page, "Public backup")
}

// manageReports saves a report in the console, runs it, reads and downloads its rows, schedules it,
// and deletes it.
func manageReports(b inspector, server *running, c credentials) {
	b.Helper()
	b.open("/console")
	b.at("/console", "Overview")
	b.curl(server.token(c))
	b.press("Sign-ins")
	b.browser.at("/console/audit", "Audit")
	b.says("user.signed_in")
	b.open("/console/reports")
	b.at("/console/reports", "Reports")
	b.press("Sign-ins by method")
	b.at("/console/reports/new", "New report: Sign-ins by method")
	b.put("name", `Sign-ins <b>&`, "parameters/days", "91")
	b.send("Save")
	b.refused("parameters/days")
	b.put("schedule/hour", "6") // of no schedule
	b.send("Save")
	b.refused("schedule/interval")
	b.put("parameters/days", "7", "schedule/interval", "weekly", "schedule/hour", "6", "schedule/recipients", "nobody@example.com")
	b.send("Save")
	b.refused("schedule/recipients")
	b.put("schedule/recipients", "ann@example.com")
	b.send("Save")
	b.says("Report saved.")
	page := strings.TrimPrefix(strings.TrimSuffix(ask(b.browser, chromedp.Location()), "?done=report-saved"), b.base)
	b.at(page, `Sign-ins <b>&`)
	b.says("weekly at 6:00 UTC")
	b.curl(server.token(c))

	b.press("Edit")
	b.at(page+"/edit", `Edit Sign-ins <b>&`)
	b.put("schedule/interval", "", "name", "Sign-ins")
	b.send("Save")
	b.says("Saved.")
	b.says("on request")

	b.send("Run")
	run := strings.TrimPrefix(ask(b.browser, chromedp.Location()), b.base)
	if !strings.HasPrefix(run, page+"/runs/run_") {
		b.Fatal(run)
	}
	for text := ""; !strings.Contains(text, "Download CSV"); time.Sleep(10 * time.Millisecond) {
		b.open(run)
		text = b.text("main")
	}
	b.at(run, "Sign-ins")
	b.says("pwd")
	b.curl(server.token(c))
	if got := ask(b.browser, chromedp.Evaluate[string](`[...document.querySelectorAll("a[download]")].map(a => a.getAttribute("href")).join(" ")`)); got != run+"/rows.csv "+run+"/rows.jsonl" {
		b.Errorf("the files are %s", got)
	}

	// A review of a type that does not exist fails, and says so.
	b.open("/console/reports/new?kind=access_review")
	b.put("parameters/resource_type", "no_such_type", "parameters/action", "view")
	b.send("Save")
	b.says("Report saved.")
	b.send("Run")
	run = strings.TrimPrefix(ask(b.browser, chromedp.Location()), b.base)
	for text := ""; !strings.Contains(text, "failed"); time.Sleep(10 * time.Millisecond) {
		b.open(run)
		text = b.text("main")
	}
	b.at(run, "Access review")

	b.open("/console/search?search=sign_ins_by_method")
	b.press("Sign-ins")
	b.browser.at(page, "Sign-ins")
	b.press("Delete")
	b.at(page+"/delete", "Delete Sign-ins?")
	b.send("Delete")
	b.says("Report deleted.")
}

// editGraph changes types in the panel beside the graph, by keyboard alone. The text follows, and the
// change is compared and applied as if it was typed.
func editGraph(b inspector, server *running, c credentials) {
	b.Helper()
	b.scripts(true)
	defer b.scripts(false)
	field := func(name string) string {
		b.Helper()
		return ask(b.browser, chromedp.Evaluate[string](fmt.Sprintf(`document.querySelector("[name=%s]").value`, name)))
	}
	// has waits until the text has some words, and the server has read it.
	has := func(words string) {
		b.Helper()
		b.until(fmt.Sprintf(`document.querySelector("[name=text]").value.includes(%q) && !document.querySelector(".editing button").disabled`, words))
	}
	press := func(label string) {
		b.Helper()
		b.tabTo(label)
		b.keys(kb.Enter)
	}
	b.open("/console/model")
	b.do(chromedp.WaitVisible(chromedp.CSS(".editing select")))
	before := field("text")
	comment := "# who works here\n" + before
	b.do(chromedp.Evaluate[chromedp.Void](fmt.Sprintf(`(e => { e.value = %q; e.dispatchEvent(new Event("input", { bubbles: true })) })(document.querySelector("[name=text]"))`, comment)))
	has("# who works here")

	// A relation, its subjects and its rule.
	b.tabTo("Type")
	b.keys("document")
	b.tabTo("New name")
	b.keys("Not a name")
	press("Add relation")
	b.says("A name begins with a lower-case letter")
	b.tabTo("New name")
	b.do(chromedp.KeyEvent("a", chromedp.KeyModifiers(chromedp.ModifierCtrl)), chromedp.KeyEvent("reviewer"))
	press("Add relation")
	has("- {name: reviewer, subjects: []}")
	b.tabTo("Add subjects")
	b.keys("group#member" + kb.Enter)
	has("- {name: reviewer, subjects: [group#member]}")
	b.do(chromedp.KeyEvent(kb.Tab, chromedp.KeyModifiers(chromedp.ModifierShift)), chromedp.KeyEvent(kb.Tab)) // the field keeps the focus
	b.keys("user:*" + kb.Enter)
	has("subjects: [group#member, 'user:*']")
	press("Remove")
	has("- {name: reviewer, subjects: ['user:*']}")

	// A relation without a rule, which nothing else names, gets another name and its own again.
	b.tabTo("New name")
	b.keys("checker")
	press("Rename reviewer")
	has("- {name: checker, subjects: ['user:*']}")
	press("Undo")
	has("- {name: reviewer, subjects: ['user:*']}")
	b.tabTo("Relation")
	b.keys("reviewer")
	b.tabTo("Rule")
	b.keys("one")
	has("kind: exclusion")
	if got := field("text"); !strings.HasPrefix(got, "# who works here\n") {
		b.Errorf("the text has lost a comment:\n%s", got)
	}
	b.inspected("/console/model")
	b.picture("console-model", "editing")

	// An error is shown where it is.
	b.tabTo("Rule")
	b.keys("another")
	b.tabTo("Relation") // that of the rule follows the one that is selected
	b.do(chromedp.WaitVisible(chromedp.CSS(".rewrite select")))
	for ask(b.browser, chromedp.Evaluate[bool](`document.activeElement.closest(".rewrite") === null`)) {
		b.tabTo("Relation")
	}
	b.keys("reviewer")
	b.do(chromedp.WaitVisible(chromedp.CSS("#island .box.wrong")), chromedp.WaitVisible(chromedp.CSS(".editing [role=alert]")))
	if got := ask(b.browser, chromedp.Evaluate[string](`document.querySelector("#island .box.wrong").textContent`)); !strings.Contains(got, "reviewer") {
		b.Errorf("the error is at %s", got)
	}
	b.inspected("/console/model")
	press("Undo")
	press("Undo")
	has("kind: exclusion")

	// A rename goes to the field for renames, and back with the history of the editor.
	b.tabTo("Type")
	for ask(b.browser, chromedp.Evaluate[bool](`document.activeElement.nodeName !== "SELECT"`)) {
		b.tabTo("Type")
	}
	b.tabTo("Relation")
	b.keys("viewer")
	b.tabTo("New name")
	b.keys("reader")
	press("Rename viewer")
	has("name: reader")
	if got := field("renames"); got != "document#viewer=reader" {
		b.Errorf("renames: %q", got)
	}
	b.says("stored relations and resources get the new name")
	press("Undo")
	b.until(`document.querySelector("[name=renames]").value === "" && !document.querySelector("[name=text]").value.includes("name: reader")`)
	has("kind: exclusion")

	// A type, which is removed again.
	b.tabTo("New name")
	b.keys("draft")
	press("Add type")
	has("- name: draft")
	press("Remove draft")
	b.until(`!document.querySelector("[name=text]").value.includes("draft")`)
	has("kind: exclusion")
	b.do(chromedp.WaitVisible(chromedp.Search(`//section//ins[contains(., "reviewer")]`)))
	b.until(`document.querySelector("form[action$=apply] button")?.disabled === false`)
	press("Apply")
	b.says("Model changed.")
	if got := fmt.Sprint(server.call(b.T, c, "GET", "resource-types/document", "", 200)["relations"]); !strings.Contains(got, "reviewer") || !strings.Contains(got, "exclusion") || !strings.Contains(got, "viewer") {
		b.Errorf("the type has %s", got)
	}
}

// manageGroups creates, changes and deletes a scope and a group that has it.
func manageGroups(b inspector, server *running, c credentials) {
	b.Helper()
	const scopes, hostile = "/console/security/scopes", "</textarea><b>Hostile"
	b.open("/console/security")
	b.press("Scopes")
	b.at(scopes, "Scopes")
	b.curl(server.token(c))
	b.press("New scope")
	b.at(scopes+"/new", "New scope")
	b.put("name", "notes read", "description", hostile)
	b.send("Create")
	b.refused("name")
	b.at(scopes+"/new", "New scope")
	b.put("name", "notes/read")
	b.send("Create")
	b.says("Scope created.")
	b.at(scopes, "Scopes")
	b.do(chromedp.Click(chromedp.CSS(`a[aria-label="Edit notes/read"]`)))
	b.at(scopes+"/notes%2Fread/edit", "Edit notes/read")
	if got := b.value("description"); got != hostile {
		b.Errorf("the description is %q", got)
	}
	b.put("description", "")
	b.send("Save")
	b.says("Saved.")

	b.open("/console/groups")
	b.press("New group")
	b.at("/console/groups/new", "New group")
	b.put("name", hostile, "slug", "Writers", "description", hostile)
	b.do(chromedp.Click(chromedp.CSS(`[name=scopes][value="notes/read"]`)))
	b.send("Create")
	b.refused("slug")
	b.at("/console/groups/new", "New group")
	b.put("slug", "writers")
	b.send("Create")
	b.says("Group created.")
	page := strings.TrimPrefix(strings.Split(ask(b.browser, chromedp.Location()), "?")[0], b.base)
	id := strings.TrimPrefix(page, "/console/groups/")
	b.at(page, hostile)
	if g := server.call(b.T, c, "GET", "groups/"+id, "", 200); fmt.Sprint(g["name"], g["scopes"]) != hostile+"[notes/read]" {
		b.Errorf("created: %v", g)
	}
	b.press("Edit")
	b.at(page+"/edit", "Edit "+hostile)
	b.put("name", "Writers")
	b.do(chromedp.Click(chromedp.CSS(`[name=scopes][value="resources:read"]`)))
	b.send("Save")
	b.says("Saved.")
	if g := server.call(b.T, c, "GET", "groups/"+id, "", 200); fmt.Sprint(g["name"], g["scopes"]) != "Writers[notes/read resources:read]" {
		b.Errorf("saved: %v", g)
	}
	b.open(scopes)
	b.do(chromedp.Click(chromedp.CSS(`a[aria-label="Delete notes/read"]`)))
	b.at(scopes+"/notes%2Fread/delete", "Delete notes/read?")
	b.press("Delete")
	b.says("Scope is in use by a group or an application.")
	b.at(scopes+"/notes%2Fread/delete", "Delete notes/read?")
	b.open(page)
	b.press("Delete")
	b.at(page+"/delete", "Delete Writers?")
	b.says("It has no members. All relations that name the group are deleted")
	b.press("Delete")
	b.says("Group deleted.")
	b.open(scopes + "/notes%2Fread/delete")
	b.press("Delete")
	b.says("Scope deleted.")
	server.call(b.T, c, "GET", "groups/"+id, "", 404)
}

// manageResources registers, edits and deletes a resource.
func manageResources(b inspector, server *running, c credentials) {
	b.Helper()
	const page, resource = "/console/relations/resources", "folder:a/<b>"
	b.open("/console/relations")
	b.press("Resources")
	b.at(page, "Resources")
	b.put("type", "none")
	b.send("List")
	b.refused("type")
	b.press("Register a resource")
	b.at(page+"/new", "Register a resource")
	b.put("type", "folder", "external_id", "a/<b>", "attributes", "[")
	b.send("Register")
	b.refused("attributes")
	b.put("attributes", `{"title": "<b>"}`)
	b.send("Register")
	b.says("Resource registered.")
	b.at(page, "Resources")
	b.curl(server.token(c))
	b.do(chromedp.Click(chromedp.CSS(`a[aria-label="Edit folder:a/<b>"]`)))
	b.at(page+"/edit", "Edit "+resource)
	b.put("attributes", `{"title": "Drafts"}`)
	b.send("Save")
	b.says("Saved.")
	if r := server.call(b.T, c, "GET", "resources/folder/a%2F%3Cb%3E", "", 200); fmt.Sprint(r["attributes"]) != "map[title:Drafts]" {
		b.Errorf("saved: %v", r)
	}
	b.do(chromedp.Click(chromedp.CSS(`a[aria-label="Delete folder:a/<b>"]`)))
	b.at(page+"/delete", "Delete "+resource+"?")
	b.press("Delete")
	b.says("Resource deleted, with its relations.")
	server.call(b.T, c, "GET", "resources/folder/a%2F%3Cb%3E", "", 404)
}
