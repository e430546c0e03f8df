package main

import (
	"bufio"
	"bytes"
	"crypto/x509"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/chromedp"

	"stonetown/internal/samlprotocol/samltest"
)

// pythonWith returns the Python that has a module of a Debian package. Another one can be before it in
// PATH.
func pythonWith(t *testing.T, module, debian string) string {
	t.Helper()
	for _, name := range []string{"python3", "/usr/bin/python3"} {
		if exec.CommandContext(t.Context(), name, "-c", "import "+module).Run() == nil {
			return name
		}
	}
	t.Fatal("make setup installs ", debian)
	return ""
}

// samlProvider is an identity provider with pysaml2, see testdata/samlprovider.py.
type samlProvider struct {
	t        *testing.T
	base     string
	metadata string
}

// openSAMLProvider starts an identity provider. users are the attributes of its users.
func openSAMLProvider(t *testing.T, users map[string]map[string]string) *samlProvider {
	t.Helper()
	python := pythonWith(t, "saml2", "python3-pysaml2")
	if _, err := exec.LookPath("xmlsec1"); err != nil {
		t.Fatal("make setup installs xmlsec1: ", err)
	}
	key := samltest.NewKey(samltest.RSA(2048).Private, time.Now())
	private, err := x509.MarshalPKCS8PrivateKey(key.Private)
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	file := func(name, kind string, der []byte) string {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: der}), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	free, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	port := free.Addr().(*net.TCPAddr).Port
	free.Close()
	settings, err := json.Marshal(map[string]any{
		"port": port, "users": users, "key": file("key.pem", "PRIVATE KEY", private), "certificate": file("certificate.pem", "CERTIFICATE", key.Certificate.Raw),
	})
	if err != nil {
		t.Fatal(err)
	}
	var stderr bytes.Buffer
	cmd := exec.Command(python, "testdata/samlprovider.py")
	cmd.Stdin, cmd.Stderr = bytes.NewReader(append(settings, '\n')), &stderr
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
		if t.Failed() {
			t.Logf("pysaml2: %s", stderr.String())
		}
	})
	line, err := bufio.NewReader(out).ReadBytes('\n')
	var answer struct{ Metadata string }
	if err == nil {
		err = json.Unmarshal(line, &answer)
	}
	if err != nil {
		t.Fatalf("pysaml2: %v\n%s", err, stderr.String())
	}
	return &samlProvider{t, fmt.Sprintf("http://127.0.0.1:%d", port), answer.Metadata}
}

// trust makes a service provider known.
func (p *samlProvider) trust(metadata string) {
	p.t.Helper()
	res, err := http.Post(p.base+"/trust", "application/samlmetadata+xml", strings.NewReader(metadata))
	if err != nil {
		p.t.Fatal(err)
	}
	res.Body.Close()
	if res.StatusCode != 200 {
		p.t.Fatal(res.Status)
	}
}

// atPartner signs in at the identity provider.
func (b *browser) atPartner(user string) {
	b.Helper()
	b.do(chromedp.WaitVisible(chromedp.Search(`//h1[normalize-space()="Partner"]`)))
	b.fill("user", user)
	b.press("Sign in here")
}

var redirectService = regexp.MustCompile(`<[a-z0-9:]*SingleSignOnService [^>]*HTTP-Redirect[^>]*/>`)

// Users sign in at an identity provider with pysaml2, in Chromium, by each binding of requests, and
// sign out on both sides.
func TestSAMLPages(t *testing.T) {
	dir := t.TempDir()
	server := start(t, "--dev", "--data-dir", dir, "--rate-limits", "sign-in.ip=unlimited,self-service.caller=unlimited,token.ip=unlimited")
	c := readJSON(t, filepath.Join(dir, "bootstrap.json"))
	b := openBrowser(t, server)
	site := openWebsite(t, server, c, "Website", true)
	const password = "correct horse battery"
	idp := openSAMLProvider(t, map[string]map[string]string{
		"ann": {"mail": "ann@example.com", "displayName": "Ann Example"},
		"bob": {"mail": "bob@example.com"},
		"cid": {"mail": "cid@example.com"},
	})
	connect := func(slug, name, metadata string) (id string) {
		t.Helper()
		form, err := json.Marshal(map[string]any{"kind": "saml", "slug": slug, "name": name, "idp_metadata_xml": metadata, "trust_email": slug == "partner"})
		if err != nil {
			t.Fatal(err)
		}
		id, _ = server.call(t, c, "POST", "federation/connections", string(form), 201)["id"].(string)
		req, err := http.NewRequestWithContext(t.Context(), "GET", "http://"+server.Addr()+"/saml/sp/"+slug+"/metadata", nil)
		if err != nil {
			t.Fatal(err)
		}
		req.Host = hostOf(t, c.BaseURL)
		res, err := http.DefaultClient.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		defer res.Body.Close()
		document, err := io.ReadAll(res.Body)
		if err != nil || res.StatusCode != 200 {
			t.Fatalf("%s %v\n%s", res.Status, err, document)
		}
		idp.trust(string(document))
		return id
	}
	partner := connect("partner", "Partner", idp.metadata)
	byPost := redirectService.ReplaceAllString(idp.metadata, "")
	if byPost == idp.metadata {
		t.Fatalf("no redirect binding in %s", idp.metadata)
	}
	connect("posting", "Posting partner", byPost)

	b.start(site)
	b.press("Continue with Partner")
	b.atPartner("ann")
	b.arrived("ann@example.com")
	b.forget()
	b.start(site)
	b.press("Continue with Partner")
	b.atPartner("ann")
	b.arrived("ann@example.com")

	// A sign-out here leads through the identity provider, and one there ends the session here.
	b.open("/auth/sign-out")
	b.press("Sign out")
	b.at("/auth/sign-in", "Sign in")
	b.do(chromedp.Navigate(idp.base + "/left"))
	b.says("id of ann, id of ann") // forget signs out, too
	b.open("/account")
	b.at("/auth/sign-in", "Sign in")
	b.press("Continue with Partner")
	b.atPartner("ann")
	b.at("/account", "Your profile")
	b.do(chromedp.Navigate(idp.base + "/leave?user=ann"))
	b.says("Signed out everywhere")
	b.open("/account")
	b.at("/auth/sign-in", "Sign in")

	// A first sign-in proves the account.
	server.call(t, c, "POST", "users", fmt.Sprintf(`{"email":"bob@example.com","email_verified":true,"password":%q}`, password), 201)
	for _, linked := range []bool{false, true} {
		b.forget()
		b.start(site)
		b.press("Continue with Posting partner")
		b.atPartner("bob")
		if !linked {
			b.at("/auth/link-account", "You already have an account")
			b.says("bob@example.com")
			b.fill("password", password)
			b.press("Continue")
		}
		b.arrived("bob@example.com")
	}

	// From the account, with the session of the browser.
	server.call(t, c, "POST", "users", fmt.Sprintf(`{"email":"cid@example.com","email_verified":true,"password":%q}`, password), 201)
	b.forget()
	b.open("/auth/sign-in?next=/account/security")
	b.signIn("cid@example.com", password)
	for _, name := range []string{"Partner", "Posting partner"} {
		b.at("/account/security", "Sign-in and security")
		b.press("Link your " + name + " account")
		b.atPartner("cid")
		b.says("Account linked.")
	}

	// The user cancels.
	b.forget()
	b.start(site)
	b.press("Continue with Partner")
	b.do(chromedp.WaitVisible(chromedp.Search(`//h1[normalize-space()="Partner"]`)))
	b.press("Cancel")
	b.at("/auth/sign-in", "Sign in")
	b.says("cancelled")
	b.picture("auth-sign-in", "canceled at a SAML provider")
	if text := b.text("body"); strings.Contains(text, "555") {
		t.Errorf("the page quotes the provider: %s", text)
	}
	b.press("Continue with Partner")
	b.atPartner("ann")
	b.arrived("ann@example.com")

	// A test of the connection.
	b.forget()
	test := server.call(t, c, "POST", "federation/connections/"+partner+"/test", "", 200)
	b.do(chromedp.Navigate(test["test_url"].(string)))
	b.atPartner("ann")
	b.at("/saml/sp/partner/response", "The test succeeded")
	b.says("urn:oasis:names:tc:SAML:2.0:nameid-format:persistent")
	report := server.call(t, c, "GET", "federation/connections/"+partner+"/test/"+test["test_id"].(string), "", 200)
	if report["state"] != "completed" || report["success"] != true {
		t.Errorf("%v", report)
	}
	b.open("/account")
	b.at("/auth/sign-in", "Sign in")
}
