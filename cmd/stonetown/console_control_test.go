package main

import (
	"encoding/json"
	"fmt"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"
)

// managed calls an operation at the address of the control plane.
func (s *running) managed(t *testing.T, c credentials, token, method, path string, body map[string]any, want int) map[string]any {
	t.Helper()
	var text []byte
	if body != nil {
		var err error
		if text, err = json.Marshal(body); err != nil {
			t.Fatal(err)
		}
	}
	status, answer := s.do(method, "http://"+s.Addr()+"/api/v1"+path, hostOf(t, c.ControlURL), token, string(text))
	if status != want {
		t.Fatalf("%s %s: %d %v, want %d", method, path, status, answer, want)
	}
	data, _ := answer["data"].(map[string]any)
	return data
}

var mailedToken = regexp.MustCompile(`/(verify-email|invitation)\?token=([A-Za-z0-9_.-]+)`)

// mailed returns the token in the newest mail to an address that leads to a page.
func (s *running) mailed(t *testing.T, to, page string) string {
	t.Helper()
	for range 400 {
		items, err := s.server.API.Mailbox.Items(50)
		if err != nil {
			t.Fatal(err)
		}
		for _, item := range items {
			if found := mailedToken.FindStringSubmatch(item.Text); item.To == to && found != nil && found[1] == page {
				return found[2]
			}
		}
		time.Sleep(25 * time.Millisecond)
	}
	t.Fatalf("no mail to %s leads to %s", to, page)
	return ""
}

const colleaguePassword = "correct horse battery"

// colleague creates a user of the control plane, and returns the token of a session.
func (s *running) colleague(t *testing.T, c credentials, email string) (session string) {
	t.Helper()
	s.managed(t, c, " ", "POST", "/auth/sign-up", map[string]any{"email": email, "password": colleaguePassword}, 202)
	s.managed(t, c, " ", "POST", "/auth/email/verify", map[string]any{"token": s.mailed(t, email, "verify-email")}, 200)
	return s.managed(t, c, " ", "POST", "/auth/sign-in", map[string]any{"email": email, "password": colleaguePassword}, 200)["session_token"].(string)
}

// An owner manages an organisation in the console of the control plane, without scripts. An operator
// and a viewer are offered what they may do, and a person of another organisation sees none of it.
func TestControlConsole(t *testing.T) {
	dir := t.TempDir()
	server := start(t, "--dev", "--data-dir", dir, "--rate-limits", "sign-in.ip=unlimited,self-service.caller=unlimited,token.ip=unlimited")
	b := newInspector(t, openBrowser(t, server))
	c := readJSON(t, filepath.Join(dir, "bootstrap.json"))
	b.base = c.ControlURL
	const hostile = `</code><script>alert(1)</script>&`
	owner := server.signIn(t, c)
	org := "/organizations/" + c.OrgID
	page := "/console" + org
	for email, role := range map[string]string{"olga@example.com": "operator", "vic@example.com": "viewer"} {
		session := server.colleague(t, c, email)
		server.managed(t, c, owner, "POST", org+"/invitations", map[string]any{"email": email, "role": role}, 201)
		server.managed(t, c, session, "POST", "/invitations/accept", map[string]any{"token": server.mailed(t, email, "invitation")}, 200)
	}
	server.colleague(t, c, "eve@example.com")
	b.scripts(false)

	// The pages of the control plane sign the person in, who has one organisation.
	b.open("/console")
	b.signIn(c.Owner.Email, c.Owner.Password)
	b.at(page, "dev")
	server.confirm(t)
	b.says("decommission_tenant")
	b.curl(owner)
	b.press("Rename")
	b.at(page+"/edit", "Rename dev")
	b.put("name", strings.Repeat("é", 300)) // too many bytes
	b.send("Save")
	b.refused("name")
	b.accessible("rename")
	b.put("name", "Acme "+hostile)
	b.send("Save")
	b.says("Saved.")
	b.at(page, "Acme "+hostile)
	if got := ask(b.browser, chromedp.Evaluate[string](`[...document.querySelectorAll("nav a")].map(e => e.textContent).join()`)); got != "Overview,Tenants,Members,Invitations,Service accounts,Events,All organisations" {
		t.Errorf("the areas are %s", got)
	}

	var shop string // the page of a tenant
	t.Run("Tenants", func(t *testing.T) {
		b := b.in(t)
		b.press("Tenants")
		b.at(page+"/tenants", "Tenants")
		b.curl(owner)
		b.press("New tenant")
		b.at(page+"/tenants/new", "New tenant")
		b.put("name", "Shop "+hostile, "slug", "not a slug")
		b.send("Create")
		b.refused("slug")
		b.accessible("new tenant, refused")
		b.put("slug", "dev")
		b.send("Create")
		b.says("in use")
		b.put("slug", "shop", "region", "moon")
		b.send("Create")
		b.refused("region")
		b.put("region", "", "environment", "staging")
		b.send("Create")
		b.at(page+"/tenants/new", "Tenant created")
		secret := b.text("#secret")
		shop = strings.TrimPrefix(ask(b.browser, chromedp.Evaluate[string](`[...document.links].find(e => e.textContent == "I have saved it").href`)), b.base)
		b.do(chromedp.Reload()) // the form is sent again
		b.browser.at(page+"/tenants/new", "Tenant created")
		if again := b.text("#secret"); again != secret || !strings.HasPrefix(secret, "cs_") {
			t.Errorf("sent again, the form shows the secret %q, not %q", again, secret)
		}
		b.send("I have saved it")
		b.at(shop, "Shop "+hostile)
		if strings.Contains(b.text("main"), secret) {
			t.Error("the secret is shown again")
		}
		if got := b.curl(owner)[0]["data"].(map[string]any); got["slug"] != "shop" || got["environment"] != "staging" {
			t.Errorf("created: %v", got)
		}
		if got := ask(b.browser, chromedp.Evaluate[string](`[...document.links].find(e => e.textContent == "Sign in with an account of the tenant").href`)); got != strings.Replace(c.BaseURL, "//dev.", "//shop.", 1)+"/console" {
			t.Errorf("the console of the tenant is %s", got)
		}

		b.press("Rename")
		b.at(shop+"/edit", "Rename Shop "+hostile)
		server.managed(t, c, owner, "PATCH", strings.TrimPrefix(shop, "/console"), map[string]any{"name": "Shop of another"}, 200)
		b.put("name", "Shop")
		b.send("Save")
		b.says("This was changed meanwhile.")
		b.send("Save")
		b.says("Saved.")
		b.at(shop, "Shop")

		b.press("Suspend")
		b.at(shop+"/suspend", "Suspend Shop?")
		b.put("reason", strings.Repeat("é", 300))
		b.send("Suspend")
		b.refused("reason")
		b.put("reason", "Invoice "+hostile)
		b.send("Suspend")
		b.at(shop, "Shop")
		b.says("Tenant suspended.")
		b.says("Invoice " + "</code>")
		b.open(page + "/tenants?state=suspended")
		b.at(page+"/tenants", "Tenants")
		b.press("Shop")
		b.browser.at(shop, "Shop")
		server.managed(t, c, owner, "POST", strings.TrimPrefix(shop, "/console")+"/resume", nil, 200)
		b.send("Resume") // of a page that is out of date
		b.says("The tenant is active")
		b.at(shop+"/resume", "Shop")
		server.managed(t, c, owner, "POST", strings.TrimPrefix(shop, "/console")+"/suspend", nil, 200)
		b.open(shop)
		b.send("Resume")
		b.says("Tenant resumed.")

		b.press("Decommission")
		b.at(shop+"/decommission", "Decommission Shop?")
		b.put("confirm", "Shop")
		b.send("Decommission")
		b.refused("confirm")
		b.accessible("decommission, refused")
		b.press("Cancel")
		b.browser.at(shop, "Shop")
		b.open(page + "/tenants?state=none")
		b.refused("state")
		b.at(page+"/tenants", "Tenants")
	})

	t.Run("Members", func(t *testing.T) {
		b := b.in(t)
		b.open(page + "/members")
		b.at(page+"/members", "Members")
		b.curl(owner)
		b.send("vic@example.com")
		vic := strings.TrimPrefix(ask(b.browser, chromedp.Location()), b.base)
		b.at(vic, "vic@example.com")
		b.curl(owner)
		b.send("Change the role")
		b.at(vic+"/edit", "Role of vic@example.com")
		b.put("role", "admin")
		server.managed(t, c, owner, "PATCH", strings.TrimPrefix(vic, "/console"), map[string]any{"role": "operator"}, 200)
		b.send("Save")
		b.says("This was changed meanwhile.")
		b.put("role", "viewer")
		b.send("Save")
		b.says("Saved.")
		if got := server.managed(t, c, owner, "GET", strings.TrimPrefix(vic, "/console"), nil, 200); got["role"] != "viewer" {
			t.Errorf("the role is %v", got["role"])
		}
		b.press("Remove")
		b.at(vic+"/remove", "Remove vic@example.com?")
		b.press("Cancel")
		b.browser.at(vic, "vic@example.com")

		// The last owner stays.
		b.open(page + "/members")
		b.send(c.Owner.Email)
		me := strings.TrimPrefix(ask(b.browser, chromedp.Location()), b.base)
		b.send("Change the role")
		b.put("role", "viewer")
		b.send("Save")
		b.says("The organisation must keep an owner")
		b.at(me+"/edit", "Role of "+c.Owner.Email)
		b.open(me + "/remove")
		b.at(me+"/remove", "Leave Acme "+hostile+"?")
		b.send("Leave")
		b.says("The organisation must keep an owner")
		b.at("/console/organizations/left", "You can't leave")
	})

	t.Run("Invitations", func(t *testing.T) {
		b := b.in(t)
		b.open(page + "/invitations")
		b.at(page+"/invitations", "Invitations")
		b.curl(owner)
		b.press("Invite a person")
		b.at(page+"/invitations/new", "Invite a person")
		b.put("email", "nobody")
		b.send("Send the invitation")
		b.refused("email")
		b.put("email", "olga@example.com")
		b.send("Send the invitation")
		b.says("is a member")
		b.put("email", "sam@example.com", "role", "admin")
		b.send("Send the invitation")
		b.at(page+"/invitations", "Invitations")
		b.says("Invitation sent.")
		first := server.mailed(t, "sam@example.com", "invitation")
		b.send("sam@example.com")
		sam := strings.TrimPrefix(ask(b.browser, chromedp.Location()), b.base)
		b.at(sam, "sam@example.com")
		b.curl(owner)
		b.send("Send it again")
		b.says("Invitation sent again.")
		for deadline := time.Now().Add(20 * time.Second); server.mailed(t, "sam@example.com", "invitation") == first; time.Sleep(25 * time.Millisecond) {
			if time.Now().After(deadline) {
				t.Fatal("no second mail")
			}
		}
		b.press("Withdraw")
		b.at(sam+"/revoke", "Withdraw the invitation of sam@example.com?")
		b.send("Withdraw")
		b.at(sam, "sam@example.com")
		b.says("Invitation withdrawn.")
		b.says("revoked")
		b.open(page + "/invitations?state=accepted")
		b.says("vic@example.com")
	})

	t.Run("Service accounts", func(t *testing.T) {
		b := b.in(t)
		b.open(page + "/service-accounts")
		b.at(page+"/service-accounts", "Service accounts")
		b.press("New service account")
		b.at(page+"/service-accounts/new", "New service account")
		b.put("name", strings.Repeat("é", 150), "role", "operator")
		b.send("Create")
		b.refused("name")
		b.put("name", "Terraform")
		b.send("Create")
		b.at(page+"/service-accounts/new", "Service account created")
		secret := b.text("#secret")
		b.send("I have saved it")
		account := strings.TrimPrefix(ask(b.browser, chromedp.Location()), b.base)
		b.at(account, "Terraform")
		b.curl(owner)
		b.press("Edit")
		b.at(account+"/edit", "Edit Terraform")
		b.put("name", "Robot", "role", "viewer")
		b.send("Save")
		b.at(account, "Robot")
		b.press("New secret")
		b.at(account+"/rotate-secret", "New secret for Robot")
		b.send("Create a new secret")
		b.at(account+"/rotate-secret", "New secret")
		if got := b.text("#secret"); got == secret || !strings.HasPrefix(got, "cs_") {
			t.Errorf("the new secret is %q", got)
		}
		b.says("The old secret is valid until")
		b.send("I have saved it")
		b.open(page + "/service-accounts")
		b.at(page+"/service-accounts", "Service accounts")
		b.press("Robot")
		b.press("Delete")
		b.at(account+"/delete", "Delete Robot?")
		b.send("Delete")
		b.says("Service account deleted.")
		b.says("The organisation has no service accounts.")
	})

	t.Run("Events", func(t *testing.T) {
		b := b.in(t)
		b.open(page + "/events")
		b.at(page+"/events", "Events")
		b.says("service_account.deleted")
		b.curl(owner)
		b.fill("since", "yesterday")
		b.send("Find")
		b.refused("since")
		b.at(page+"/events", "Events")
		b.fill("since", "2020-01-01T00:00:00Z", "type", "tenant.suspended")
		b.send("Find")
		b.at(page+"/events", "Events")
		if got := b.curl(owner)[0]["data"].([]any); len(got) != 2 {
			t.Errorf("found %v", got)
		}
		b.do(chromedp.Click(chromedp.CSS("tbody tr:last-child summary")))
		if got := b.text("tbody tr:last-child pre"); !strings.Contains(got, `"suspend_reason": "Invoice`) {
			t.Errorf("the event is %s", got)
		}
		b.accessible("event")
		b.fill("type", "none")
		b.send("Find")
		b.says("No events match.")
	})

	t.Run("by keyboard", func(t *testing.T) {
		b := b.in(t)
		b.open(page)
		b.tabTo("Skip to content")
		b.tabTo("Tenants")
		b.keys(kb.Enter)
		b.browser.at(page+"/tenants", "Tenants")
		b.tabTo("Shop")
		b.keys(kb.Enter)
		b.browser.at(shop, "Shop")
		b.tabTo("Decommission")
		b.keys(kb.Enter)
		b.browser.at(shop+"/decommission", "Decommission Shop?")
		b.tabTo("Slug of the tenant")
		b.keys("shop" + kb.Enter)
		b.says("Tenant decommissioned.")
		b.at(shop, "Shop")
		if got := b.text("main"); !strings.Contains(got, "Its data is deleted on") {
			t.Errorf("the page says\n%s", got)
		}
		if ask(b.browser, chromedp.Evaluate[bool](`[...document.links].some(e => /^(Suspend|Decommission|Open console|Sign in with an account of the tenant)$/.test(e.textContent))`)) {
			t.Error("the page offers what can't be done to a tenant that has ended")
		}
	})

	// switchTo signs the person out, and another one in.
	switchTo := func(b inspector, email string) {
		b.Helper()
		b.open("/auth/sign-out?next=/console")
		b.press("Sign out")
		b.signIn(email, colleaguePassword)
		b.says(email) // in the header
		server.confirm(t)
	}
	// offers returns the links and buttons of a page that lead to forms.
	offers := func(b inspector, path string) string {
		b.Helper()
		b.open(path)
		return ask(b.browser, chromedp.Evaluate[string](`[...document.querySelectorAll("main .button, main button")].map(e => e.textContent.trim()).join()`))
	}
	dev := page + "/tenants/" + c.TenantID

	t.Run("an operator", func(t *testing.T) {
		b := b.in(t)
		switchTo(b, "olga@example.com")
		b.at(page, "Acme "+hostile)
		for path, want := range map[string]string{
			page: "", page + "/tenants": "Show", dev: "Open console,Suspend", page + "/members": "", page + "/invitations": "Show", page + "/service-accounts": "", page + "/events": "Find",
		} {
			if got := offers(b, path); got != want {
				t.Errorf("%s offers %q, want %q", path, got, want)
			}
		}
		b.open(dev + "/suspend")
		b.put("reason", "test")
		b.send("Suspend")
		b.says("Tenant suspended.")
		b.send("Resume")
		b.says("Tenant resumed.")
		b.open(dev + "/decommission")
		b.at(dev+"/decommission", "You may not do this")
		b.says("Your role in the organisation does not permit this")
	})

	t.Run("a viewer", func(t *testing.T) {
		b := b.in(t)
		switchTo(b, "vic@example.com")
		b.browser.at(page, "Acme "+hostile)
		if got := offers(b, dev); got != "" {
			t.Errorf("a viewer is offered %q", got)
		}
		b.at(dev, "dev")
		for _, path := range []string{"/edit", "/tenants/new", "/invitations/new", "/service-accounts/new", "/tenants/" + c.TenantID + "/suspend", "/tenants/" + c.TenantID + "/open-console"} {
			b.open(page + path)
			b.browser.at(page+path, "You may not do this")
		}
		b.open(page + "/members")
		b.send("vic@example.com")
		vic := strings.TrimPrefix(ask(b.browser, chromedp.Location()), b.base)
		if got := offers(b, vic); got != "Leave" {
			t.Errorf("a member is offered %q about itself", got)
		}
		b.press("Leave")
		b.at(vic+"/remove", "Leave Acme "+hostile+"?")
		b.send("Leave")
		b.says("You have left the organisation.")
		b.at("/console/organizations", "Organisations")
		b.says("vic@example.com")
		b.open(page + "/members")
		b.at(page+"/members", "Not found")
	})

	t.Run("a person of another organisation", func(t *testing.T) {
		b := b.in(t)
		switchTo(b, "eve@example.com")
		b.browser.at("/console/organizations", "Organisations")
		b.says("You are not a member of an organisation.")
		b.send("New organisation")
		b.at("/console/organizations/new", "New organisation")
		b.put("name", "Evil", "slug", "evil")
		b.send("Create")
		b.says("Organisation created.")
		server.managed(t, c, owner, "POST", "/organizations", map[string]any{"name": "Second", "slug": "second"}, 201)
		for _, path := range []string{"", "/tenants", "/tenants/" + c.TenantID, "/members", "/invitations", "/service-accounts", "/events", "/events/events.csv", "/edit"} {
			b.open(page + path)
			b.browser.at(page+path, "Not found")
			if text := b.text("body"); strings.Contains(text, "Acme") || strings.Contains(text, "olga@example.com") {
				t.Errorf("%s says\n%s", path, text)
			}
		}
		b.at(page+"/edit", "Not found")
		b.press("Go to your organisations")
		b.browser.at("/console/organizations", "Organisations")
	})

	// An owner of two organisations chooses.
	t.Run("two organisations", func(t *testing.T) {
		b := b.in(t)
		b.open("/auth/sign-out?next=/console")
		b.press("Sign out")
		b.signIn(c.Owner.Email, c.Owner.Password)
		b.at("/console/organizations", "Organisations")
		server.confirm(t)
		b.curl(owner)
		b.send("New organisation")
		b.put("name", "Third", "slug", "second")
		b.send("Create")
		b.says("in use")
		b.put("slug", "third")
		b.send("Create")
		b.says("Organisation created.")
		if at := strings.TrimPrefix(ask(b.browser, chromedp.Location()), b.base); !strings.HasPrefix(at, "/console/organizations/org_") {
			t.Errorf("at %s", at)
		}
		b.open(fmt.Sprintf("%s/tenants/%s", page, "tnt_none"))
		b.at(page+"/tenants/tnt_none", "Not found")
		b.press("Go to the overview")
		b.browser.at(page, "Acme "+hostile)
	})
}
