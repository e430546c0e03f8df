package main

import (
	"path/filepath"
	"strings"
	"testing"

	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"
)

// A member of an organisation opens the console of a tenant from the control plane, works there without
// scripts, and is seen there.
func TestConsoleFromControlPlane(t *testing.T) {
	dir := t.TempDir()
	server := start(t, "--dev", "--data-dir", dir, "--rate-limits", "sign-in.ip=unlimited,self-service.caller=unlimited,token.ip=unlimited")
	b := newInspector(t, openBrowser(t, server))
	c := readJSON(t, filepath.Join(dir, "bootstrap.json"))
	sam := server.call(t, c, "POST", "users", `{"email":"sam@example.com","name":"Sam","email_verified":true}`, 201)["id"].(string)
	page := "/console/organizations/" + c.OrgID + "/tenants/" + c.TenantID
	b.scripts(false)

	b.base = c.ControlURL
	b.open(page)
	b.signIn(c.Owner.Email, c.Owner.Password)
	b.browser.at(page, "dev")
	server.confirm(t)
	b.press("Open console")
	b.at(page+"/open-console", "Open the console of dev")
	b.send("Open console")

	// The page of the tenant says as whom the person enters. A second look at it changes nothing.
	b.base = c.BaseURL
	b.at("/console/enter", "Open the console")
	b.do(chromedp.Reload())
	b.at("/console/enter", "Open the console")
	b.says(c.Owner.Email)
	link := ask(b.browser, chromedp.Location())
	b.send("Enter")
	b.at("/console", "Overview")
	b.says("You are here as a member of")
	b.do(chromedp.Navigate(link))
	b.at("/console/enter", "This link is not valid any more")

	// What the person does has their name.
	b.open("/console/users/" + sam)
	b.press("Disable")
	b.send("Disable")
	b.says("User disabled")
	b.open("/console/audit?type=user.disabled")
	b.at("/console/audit", "Audit")
	b.send("user.disabled")
	if got := b.text("main dl"); !strings.Contains(got, ", Owner ("+c.Owner.Email+")") {
		t.Errorf("the event is of\n%s", got)
	}
	b.accessible("the event")
	b.open("/console/users")
	b.at("/console/users", "Users")
	b.says("active, managed by the control plane")

	// A delicate form is kept while the person proves a second factor in the control plane.
	b.open("/console/applications/new?type=m2m")
	b.browser.at("/console/applications/new", "New application")
	b.put("name", "Robot")
	server.age(t)
	b.send("Create")
	b.at("/console/applications/new", "Open this console again")
	if got := ask(b.browser, chromedp.Evaluate[string](`[...document.links].find(e => e.textContent == "Open this console again from the control plane").href`)); got != c.ControlURL+page+"/open-console" {
		t.Errorf("it is opened again at %s", got)
	}
	server.confirm(t)
	b.send("Continue")
	b.browser.at("/console/applications/new", "Application created")
	b.says("You are here as a member of")

	t.Run("by keyboard", func(t *testing.T) {
		b := b.in(t)
		b.open("/console")
		b.tabTo("Back to the control plane")
		b.keys(kb.Enter)
		b.base = c.ControlURL
		b.browser.at(page, "dev")
		b.tabTo("Open console")
		b.keys(kb.Enter)
		b.browser.at(page+"/open-console", "Open the console of dev")
		b.tabTo("Open console")
		b.keys(kb.Enter)
		b.base = c.BaseURL
		b.browser.at("/console/enter", "Open the console")
		b.says("That session is replaced in this browser.")
		b.tabTo("Enter")
		b.keys(kb.Enter)
		b.at("/console", "Overview")
	})

	// Signing out of the control plane ends the session there, too.
	b.base = c.ControlURL
	b.open("/auth/sign-out?next=/console")
	b.press("Sign out")
	b.browser.at("/auth/sign-in", "Sign in")
	b.base = c.BaseURL
	b.open("/console/users")
	b.browser.at("/auth/sign-in", "Sign in")
}
