package main

import (
	"fmt"
	"path/filepath"
	"strings"
	"testing"
)

// An administrator edits, previews, publishes and rolls back the sign-in flow in the console, without
// scripts.
func TestConsoleSignInFlow(t *testing.T) {
	dir := t.TempDir()
	server := start(t, "--dev", "--data-dir", dir, "--rate-limits", "sign-in.ip=unlimited,self-service.caller=unlimited,token.ip=unlimited")
	c := readJSON(t, filepath.Join(dir, "bootstrap.json"))
	b := newInspector(t, openBrowser(t, server))
	b.scripts(false)
	const page = "/console/sign-in-flow"
	b.open(page)
	b.browser.at("/auth/sign-in", "Sign in")
	b.fill("email", c.Admin.Email, "password", c.Admin.Password)
	b.press("Sign in")
	b.at(page, "Sign-in flow")
	server.confirm(t)
	b.says("No flow is active")
	read := func(path string) map[string]any { return server.call(b.T, c, "GET", "sign-in-flow"+path, "", 200) }

	// A step with an error, and without.
	b.press("Add a step to Sign-in")
	b.at(page+"/steps/sign_in/new", "New step")
	const hostile = `</td><script>alert(1)</script>'"&`
	b.put("name", hostile, "kind", "deny", "when", `emial == ""`, "message", "Not now.")
	b.send("Save")
	b.refused("when")
	b.says("undeclared reference to 'emial'")
	b.put("when", `email == "eve@example.com"`)
	b.send("Save")
	b.says("Draft saved.")
	b.at(page, "Sign-in flow")
	b.curl(server.token(c))
	if text := b.text("main"); !strings.Contains(text, hostile) || !strings.Contains(text, "new") {
		b.Errorf("the page shows %s", text)
	}

	// An action with its secret, and a step that calls it.
	b.press("Add an action")
	b.at(page+"/new-action", "New action")
	b.put("name", "risk", "url", "http://127.0.0.1:65533/risk", "on_error", "continue")
	b.put("effects", "yes") // the first one, deny
	b.send("Save")
	b.says("Draft saved.")
	b.press("New secret")
	b.at(page+"/actions/risk/secret", "New secret for risk")
	b.send("Create a new secret")
	if secret := b.text("#secret"); !strings.HasPrefix(secret, "whsec_") {
		b.Errorf("the secret is %q", secret)
	}
	b.press("I have saved it")
	b.browser.at(page, "Sign-in flow")
	b.press("Add a step to Sign-in")
	b.browser.at(page+"/steps/sign_in/new", "New step")
	b.put("name", "Risk", "kind", "action", "action", "risk")
	b.send("Save")
	b.send("Up")
	names := func() (names []string) {
		for _, s := range read("/draft")["sign_in"].([]any) {
			names = append(names, fmt.Sprint(s.(map[string]any)["name"]))
		}
		return names
	}
	if got := names(); len(got) != 2 || got[0] != "Risk" {
		b.Errorf("steps %q", got)
	}

	// A preview per step.
	b.press("Preview")
	b.at(page+"/preview", "Preview the sign-in flow")
	b.put("context/email", "eve@example.com")
	b.send("Preview")
	b.says("Denied")
	b.says("not_called")
	b.at(page+"/preview", "Preview the sign-in flow")
	b.curl(server.token(c))

	// Published, and rolled back.
	b.open(page)
	b.browser.at(page, "Sign-in flow")
	b.press("Publish")
	b.at(page+"/publish", "Publish the draft?")
	b.put("note", "Eve")
	b.send("Publish")
	b.says("Published.")
	b.says("Version 1 is active")
	if v := read(""); v["version"] != 1.0 || v["note"] != "Eve" {
		b.Errorf("active: %v", v)
	}
	b.send("Remove")
	b.says("Only in the active version: Risk.")
	b.at(page, "Sign-in flow")
	b.press("Publish")
	b.browser.at(page+"/publish", "Publish the draft?")
	b.send("Publish")
	b.press("Versions")
	b.at(page+"/versions", "Versions of the sign-in flow")
	b.press("1")
	b.at(page+"/versions/1", "Version 1")
	b.press("Roll back to this version")
	b.at(page+"/versions/1/rollback", "Roll back to version 1?")
	b.send("Roll back")
	b.says("Version 3 is active")
	b.open(page + "/versions")
	b.says("version 1 again")

	// A draft is discarded.
	b.open(page)
	b.send("Down")
	b.says("moved")
	b.press("Discard the draft")
	b.at(page+"/discard", "Discard the draft?")
	b.send("Discard")
	b.says("Draft discarded.")
	server.call(b.T, c, "GET", "sign-in-flow/draft", "", 404)

	// A page that shows an earlier version changes nothing.
	b.open(page)
	server.call(b.T, c, "PUT", "sign-in-flow/draft", `{"sign_in":[{"name":"Other","kind":"deny","when":"false"}]}`, 200)
	server.call(b.T, c, "POST", "sign-in-flow/publish", "", 200)
	b.send("Remove")
	b.says("The flow was changed meanwhile")
	server.call(b.T, c, "GET", "sign-in-flow/draft", "", 404)
}
