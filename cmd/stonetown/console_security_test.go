package main

import (
	"bytes"
	"compress/gzip"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"
)

// An administrator sets the rules of a tenant, replaces its keys, trusts issuers and imports users in
// the console, without scripts.
func TestConsoleSecurity(t *testing.T) {
	dir := t.TempDir()
	server := start(t, "--dev", "--data-dir", dir, "--rate-limits", "sign-in.ip=unlimited,self-service.caller=unlimited,token.ip=unlimited")
	b := newInspector(t, openBrowser(t, server))
	c := readJSON(t, filepath.Join(dir, "bootstrap.json"))
	b.scripts(false)
	b.open("/console/security")
	b.browser.at("/auth/sign-in", "Sign in")
	b.fill("email", c.Admin.Email, "password", c.Admin.Password)
	b.press("Sign in")
	b.at("/console/security", "Security")
	t.Run("Second factor", func(t *testing.T) { proveFirst(b.in(t), server, c) })
	server.confirm(t)

	t.Run("Policies", func(t *testing.T) { setPolicies(b.in(t), server, c) })
	t.Run("Keys", func(t *testing.T) { replaceSigned(b.in(t), server, c) })
	t.Run("Threats", func(t *testing.T) { compareThreats(b.in(t), server, c) })
	t.Run("Issuers", func(t *testing.T) { trustIssuers(b.in(t), server, c) })
	t.Run("Imports", func(t *testing.T) { importFromFile(b.in(t), server, c) })
}

// setPolicies changes the settings of the tenant, group by group.
func setPolicies(b inspector, server *running, c credentials) {
	b.Helper()
	const page = "/console/security/policies"
	read := func() map[string]any { return server.call(b.T, c, "GET", "settings", "", 200) }
	b.press("Policies")
	b.at(page, "Policies")
	before := read()
	b.curl(server.token(c))
	if after := read(); fmt.Sprint(after) != fmt.Sprint(before) {
		b.Errorf("the commands of the page change the settings from %v to %v", before, after)
	}

	// An error is at its field, and what was typed is kept, in this group and no other.
	b.put("password_policy/min_length", "3", "password_policy/max_length", "100", "session/idle_s", "600")
	b.send("Save passwords")
	b.refused("password_policy/min_length")
	b.says("between 8 and 64")
	b.at(page+"/passwords", "Policies")
	if got := b.value("password_policy/max_length"); got != "100" {
		b.Errorf("the form has forgotten what was typed: %q", got)
	}
	if got := b.value("session/idle_s"); got != "86400" {
		b.Errorf("the form of another group shows %q", got)
	}
	b.put("password_policy/min_length", "twelve")
	b.send("Save passwords")
	b.refused("password_policy/min_length")
	b.says("must be a whole number")

	// Another group that was changed meanwhile is no conflict, the same one is.
	server.call(b.T, c, "PATCH", "settings", `{"session":{"idle_s":7200}}`, 200)
	b.put("password_policy/min_length", "12")
	b.send("Save passwords")
	b.at(page, "Policies")
	b.says("Saved.")
	if got := read(); fmt.Sprint(got["password_policy"], got["session"]) != "map[max_length:100 min_length:12] map[absolute_s:2.592e+06 idle_s:7200]" {
		b.Errorf("saved: %v", got)
	}
	server.call(b.T, c, "PATCH", "settings", `{"session":{"idle_s":3600}}`, 200)
	b.put("session/idle_s", "1800")
	b.send("Save sessions")
	b.says("This was changed meanwhile.")
	b.put("session/idle_s", "1800", "session/absolute_s", "")
	b.send("Save sessions")
	b.says("Saved.")
	if got := read()["session"]; fmt.Sprint(got) != "map[absolute_s:2.592e+06 idle_s:1800]" { // empty is the default
		b.Errorf("saved: %v", got)
	}

	b.put("sign_up", "closed", "require_verified_email", "no")
	b.send("Save accounts")
	b.says("Saved.")
	b.put("trusted_origins", "https://tools.example.com/path")
	b.send("Save authentication")
	b.refused("trusted_origins")
	b.put("trusted_origins", "https://tools.example.com\nhttps://more.example.com")
	b.send("Save authentication")
	b.says("Saved.")
	b.do(chromedp.Click(chromedp.CSS(`[name="mfa_policy/kinds"][value=sms]`)))
	b.send("Save second factors")
	b.says("Saved.")
	b.put("rate_limits/admin.caller", "many")
	b.send("Save limits")
	b.refused("rate_limits/admin.caller")
	b.put("rate_limits/admin.caller", "100000/h", "rate_limits/page.ip", "unlimited")
	b.send("Save limits")
	b.says("Saved.")
	b.put("rate_limits/page.ip", "")
	b.send("Save limits")
	b.says("Saved.")
	got := read()
	if fmt.Sprintf("%v %v %v %v %v", got["sign_up"], got["require_verified_email"], got["trusted_origins"], got["mfa_policy"], got["rate_limits"]) != "closed false [https://tools.example.com https://more.example.com] map[kinds:[totp webauthn] mode:optional] map[admin.caller:100000/h]" {
		b.Errorf("saved: %v", got)
	}

	// By keyboard alone.
	b.open(page)
	b.tabTo("Skip to content")
	b.keys(kb.Enter)
	b.tabTo("Shortest length (characters)")
	b.keys(kb.Tab)
	b.tabTo("Save passwords")
	b.keys(kb.Enter)
	b.says("Saved.")
}

// replaceSigned replaces the keys of tokens, and the certificates of SAML messages.
func replaceSigned(b inspector, server *running, c credentials) {
	b.Helper()
	const page = "/console/security/keys"
	states := func(path string) string {
		b.Helper()
		_, answer := server.do("GET", "http://"+server.Addr()+"/api/v1/settings/"+path, hostOf(b.T, c.BaseURL), server.token(c), "")
		var all []string
		for _, item := range answer["data"].([]any) {
			all = append(all, item.(map[string]any)["state"].(string))
		}
		return strings.Join(all, ",")
	}
	b.open("/console/security")
	b.press("Signing keys")
	b.at(page, "Signing keys")
	b.curl(server.token(c))
	b.press("Publish new keys")
	b.at(page+"/rotate", "Publish new signing keys?")
	b.press("Cancel")
	b.browser.at(page, "Signing keys")
	b.press("Publish new keys")
	b.browser.at(page+"/rotate", "Publish new signing keys?")
	b.press("Publish new keys")
	b.says("New keys published.")
	if got := states("signing-keys"); !strings.Contains(got, "active") || !strings.Contains(got, "next") {
		b.Errorf("the keys are %s", got)
	}
	b.at(page, "Signing keys")
	old := server.token(c)
	b.press("Replace all keys now")
	b.at(page+"/replace", "Replace all signing keys now?")
	b.press("Replace all keys now")
	b.says("All keys replaced.") // the session goes on
	if status, _ := server.do("GET", "http://"+server.Addr()+"/api/v1/settings", hostOf(b.T, c.BaseURL), old, ""); status != 401 {
		b.Errorf("a token from before has the status %d", status)
	}
	b.at(page, "Signing keys")

	const certificates = "/console/security/certificates"
	b.open("/console/security")
	b.press("SAML certificates")
	b.at(certificates, "SAML certificates")
	b.curl(server.token(c))
	for _, use := range []string{"identity_provider", "service_provider"} {
		b.open(certificates + "/" + use + "/rotate")
		b.at(certificates+"/"+use+"/rotate", "Publish a new certificate of the "+strings.ReplaceAll(use, "_", " ")+"?")
		b.press("Publish a new certificate")
		b.says("New certificate published.")
	}
	b.at(certificates, "SAML certificates")
	if got := states("saml-certificates"); !strings.Contains(got, "active") {
		b.Errorf("the certificates are %s", got)
	}
	b.open(certificates + "/identity_provider/replace")
	b.at(certificates+"/identity_provider/replace", "Replace the certificate of the identity provider now?")
	b.press("Replace it now")
	b.says("Certificate replaced.")
	b.open(certificates + "/another/replace")
	b.browser.at(certificates+"/another/replace", "Not found")
}

// trustIssuers trusts issuers of workloads.
func trustIssuers(b inspector, server *running, c credentials) {
	b.Helper()
	const page = "/console/security/issuers"
	b.open("/console/security")
	b.press("Trusted issuers")
	b.at(page, "Trusted issuers")
	b.says("None.")
	b.press("Trust an issuer")
	b.at(page+"/new", "Trust an issuer")
	b.press("GitHub Actions")
	b.do(chromedp.WaitVisible(chromedp.CSS("[name=issuer]")))
	b.at(page+"/new", "Trust an issuer")
	b.put("description", `GitHub <script>`)
	b.send("Trust")
	b.says("Issuer trusted.")
	at := strings.TrimPrefix(strings.Split(ask(b.browser, chromedp.Location()), "?")[0], b.base)
	id := strings.TrimPrefix(at, page+"/")
	read := func() map[string]any { return server.call(b.T, c, "GET", "trusted-issuers/"+id, "", 200) }
	if got := read(); got["issuer"] != "https://token.actions.githubusercontent.com" || got["max_lifetime_s"] != 900.0 || got["single_use"] != true || got["description"] != "GitHub <script>" {
		b.Errorf("created: %v", got)
	}
	b.at(at, "GitHub <script>")
	b.curl(server.token(c))

	// The same once more, then another.
	b.open(page + "/new?preset=github")
	b.send("Trust")
	b.refused("issuer")
	b.open(page + "/new?preset=kubernetes")
	b.browser.at(page+"/new", "Trust an issuer")
	b.put("issuer", "https://kubernetes.default.svc", "jwks", "{")
	b.send("Trust")
	b.refused("jwks")
	b.accessible("a refused issuer")
	if got := b.value("issuer"); got != "https://kubernetes.default.svc" {
		b.Errorf("the form has forgotten what was typed: %q", got)
	}
	b.put("jwks", `{"keys": [{"kty": "EC", "crv": "P-256", "x": "MKBCTNIcKUSDii11ySs3526iDZ8AiTo7Tu6KPAqv7D4", "y": "4Etl6SRW2YiLUrN5vfvVHuhp7x8PxltmWWlbbM4IFyM"}]}`)
	b.send("Trust")
	b.says("Issuer trusted.")
	b.says("until it expires")

	b.open(at)
	b.press("Edit")
	b.at(at+"/edit", "Edit GitHub <script>")
	b.put("description", "GitHub Actions", "max_lifetime_s", "5")
	b.send("Save")
	b.refused("max_lifetime_s")
	b.put("max_lifetime_s", "600")
	b.send("Save")
	b.says("Saved.")
	if got := read(); got["max_lifetime_s"] != 600.0 || got["description"] != "GitHub Actions" || len(got["signing_algs"].([]any)) != 4 {
		b.Errorf("saved: %v", got)
	}
	b.press("Disable")
	b.at(at+"/disable", "Disable GitHub Actions?")
	b.press("Disable")
	b.says("Trusted issuer disabled.")
	if read()["enabled"] != false {
		b.Error("the issuer is enabled")
	}
	b.press("Enable")
	b.says("Trusted issuer enabled.")
	b.open(page)
	b.at(page, "Trusted issuers")
	b.curl(server.token(c))

	app := server.call(b.T, c, "POST", "applications", fmt.Sprintf(`{"name":"Deployments","type":"m2m","workload_identities":[{"issuer_id":%q,"subject":"repo:acme/app:environment:production"}]}`, id), 201)["id"].(string)
	b.open("/console/applications/" + app)
	b.says("repo:acme/app:environment:production")
	b.accessible("an application with a workload")
	b.press(id)
	b.browser.at(at, "GitHub Actions")
	b.press("Delete")
	b.at(at+"/delete", "Delete GitHub Actions?")
	b.send("Delete")
	b.says("Workload identities of applications name the trusted issuer")
	b.accessible("a refused deletion")
	server.call(b.T, c, "PATCH", "applications/"+app, `{"workload_identities":[]}`, 200)
	b.send("Delete")
	b.says("Trusted issuer deleted.")
	server.call(b.T, c, "GET", "trusted-issuers/"+id, "", 404)
}

// importFromFile imports users from files.
func importFromFile(b inspector, server *running, c credentials) {
	b.Helper()
	const page = "/console/users/imports"
	choose := func(name, text string) {
		b.Helper()
		file := filepath.Join(b.TempDir(), name)
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			b.Fatal(err)
		}
		b.do(chromedp.SetUploadFiles(chromedp.CSS("[name=file]"), []string{file}))
	}
	b.open("/console/users")
	b.press("Imports")
	b.at(page, "Imports")
	b.says("None in the last 30 days.")
	if got := ask(b.browser, chromedp.Evaluate[string](`document.querySelector(".curl").textContent`)); !strings.Contains(got, "--data-binary '@users.ndjson'") {
		b.Errorf("the page shows the commands %s", got)
	}
	choose("empty.ndjson", "\n\n")
	b.send("Import")
	b.refused("file")
	b.says("an import must have at least one row")
	b.at(page+"/upload", "Imports")

	// A compressed file, some of whose rows fail. The progress is that of the page when it is loaded.
	var compressed bytes.Buffer
	z := gzip.NewWriter(&compressed)
	for i := range 300 {
		fmt.Fprintf(z, `{"email":"imported%d@example.com","name":"=cmd()"}`+"\n", i)
	}
	fmt.Fprintln(z, `{"email":"=1+1"}`+"\n"+`{"email":"imported1@example.com"}`+"\n"+`{"email":"<script>"`)
	if err := z.Close(); err != nil {
		b.Fatal(err)
	}
	choose("users.ndjson.gz", compressed.String())
	b.send("Import")
	b.do(chromedp.WaitVisible(chromedp.CSS("#progress")))
	at := strings.TrimPrefix(strings.Split(ask(b.browser, chromedp.Location()), "?")[0], b.base)
	for deadline := time.Now().Add(pagePatience); !strings.Contains(b.text("#progress"), "completed"); b.open(at) {
		if time.Now().After(deadline) {
			b.Fatalf("the import does not end:\n%s", b.text("#progress"))
		}
	}
	b.at(at, "Import of users")
	b.curl(server.token(c))
	for _, want := range []string{"300", "301", "302", "email_invalid", "user_exists", "invalid_json"} {
		if got := b.text("#progress"); !strings.Contains(got, want) {
			b.Errorf("the page does not say %q:\n%s", want, got)
		}
	}
	if got := ask(b.browser, chromedp.Evaluate[string](`document.querySelector("a[download]").getAttribute("href")`)); got != at+"/errors.csv" {
		b.Errorf("the file of errors is %s", got)
	}
	b.press("All imports")
	b.at(page, "Imports")
	b.says("completed")

	// An import that goes on is followed with a script, and stopped. The passwords of all its rows would
	// take minutes to hash.
	var many strings.Builder
	for i := range 20_000 {
		fmt.Fprintf(&many, `{"email":"many%d@example.com","password":"correct horse battery %d"}`+"\n", i, i)
	}
	choose("many.ndjson", many.String())
	b.send("Import")
	b.do(chromedp.WaitVisible(chromedp.CSS("#progress[data-underway]")))
	at = strings.TrimPrefix(strings.Split(ask(b.browser, chromedp.Location()), "?")[0], b.base)
	b.accessible("an import that goes on")
	b.picture("console-users-import", "underway")
	b.scripts(true)
	b.open(at)
	b.do(chromedp.WaitVisible(chromedp.CSS("#progress")), chromedp.Evaluate[chromedp.Void](`void (document.querySelector("#progress").dataset.old = "yes")`))
	b.do(chromedp.WaitNotPresent(chromedp.CSS("#progress[data-old]")), chromedp.WaitVisible(chromedp.CSS("#progress[data-underway]")))
	b.inspected(at)
	b.scripts(false)
	b.open(at)
	b.press("Stop")
	b.at(at+"/cancel", "Stop this import?")
	b.press("Stop the import")
	b.says("Import stopped.")
	b.says("cancelled")
	b.at(at, "Import of users")
}

// compareThreats creates threat feeds, uploads a list, and is warned before it refuses the browser.
func compareThreats(b inspector, server *running, c credentials) {
	b.Helper()
	const page = "/console/security/threat-feeds"
	b.open("/console/security")
	b.press("Threat feeds")
	b.at(page, "Threat feeds")
	b.curl(server.token(c))
	b.press("New threat feed")
	b.at(page+"/new", "New threat feed")
	b.put("name", "</td><b>Hostile", "kind", "address", "mode", "log", "url", "ftp://feeds.example.com")
	b.send("Create")
	b.refused("url")
	b.put("url", "")
	b.send("Create")
	b.says("Threat feed created.")
	at := strings.TrimPrefix(strings.TrimSuffix(ask(b.browser, chromedp.Location()), "?done=threat-created"), b.base)
	id := strings.TrimPrefix(at, page+"/")
	read := func() map[string]any { return server.call(b.T, c, "GET", "threat-feeds/"+id, "", 200) }

	list := filepath.Join(b.TempDir(), "list.txt")
	must := func(err error) {
		b.Helper()
		if err != nil {
			b.Fatal(err)
		}
	}
	must(os.WriteFile(list, []byte("<html>\n"), 0o600))
	b.do(chromedp.SetUploadFiles(chromedp.CSS("[name=file]"), []string{list}))
	b.send("Upload")
	b.refused("file")
	b.says("the list has no valid entries")
	b.open(at)
	must(os.WriteFile(list, []byte("# Own list\n127.0.0.0/8 ; loopback\n::1\nbad\n"), 0o600))
	b.do(chromedp.SetUploadFiles(chromedp.CSS("[name=file]"), []string{list}))
	b.send("Upload")
	b.says("List replaced.")
	b.says("You are in this list yourself, by the entry")
	b.at(at, "</td><b>Hostile")
	if f := read(); f["entries"] != 2.0 || f["bad_lines"] != 1.0 {
		b.Errorf("uploaded: %v", f)
	}
	b.put("value", "127.1.2.3")
	b.send("Look up")
	b.says("is in the list, by the entry")
	b.put("value", "example.com")
	b.send("Look up")
	b.refused("value")

	b.open(at + "/edit")
	b.put("mode", "refuse")
	b.send("Save")
	b.refused("even_so")
	b.at(at+"/edit", "Edit </td><b>Hostile")
	if f := read(); f["mode"] != "log" {
		b.Errorf("saved before the warning was answered: %v", f)
	}
	b.send("Save") // without the answer
	b.refused("even_so")
	b.put("even_so", "yes", "enabled", "no")
	b.send("Save")
	b.says("Saved.")
	if f := read(); f["mode"] != "refuse" || f["enabled"] != false {
		b.Errorf("saved: %v", f)
	}
	b.open(page)
	b.at(page, "Threat feeds")
	b.says("disabled")
	b.open(at)
	b.press("Delete")
	b.at(at+"/delete", "Delete </td><b>Hostile?")
	b.send("Delete")
	b.says("Threat feed deleted.")
}

// proveFirst adds a second factor in another tab, as a form asks, and then continues the form.
func proveFirst(b inspector, server *running, c credentials) {
	b.Helper()
	const page = "/console/security/policies"
	read := func() any {
		return server.call(b.T, c, "GET", "settings", "", 200)["session"].(map[string]any)["idle_s"]
	}
	b.open(page)
	b.put("session/idle_s", "5400")
	b.send("Save sessions")
	b.at(page+"/sessions", "Confirm that it is you")
	if got := read(); got == 5400.0 {
		b.Error("saved before the proof")
	}
	if got := ask(b.browser, chromedp.Evaluate[string](`document.querySelector("main li a").target`)); got != "_blank" {
		b.Errorf("the proof replaces what was typed: target %q", got)
	}
	server.confirm(b.T)
	b.send("Continue")
	b.says("Saved.")
	if got := read(); got != 5400.0 {
		b.Errorf("saved: %v", got)
	}
	b.open("/console/confirmed")
	b.at("/console/confirmed", "Confirmed")
	server.call(b.T, c, "PATCH", "settings", `{"session":{"idle_s":86400}}`, 200)
	b.open("/console/security")
}
