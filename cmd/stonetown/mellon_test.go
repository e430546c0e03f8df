package main

import (
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"encoding/xml"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/chromedp/chromedp"
)

// apache is a website of Apache with a module for sign-in, see testdata/mellon and testdata/openidc.
type apache struct {
	*testing.T
	site   string // its address
	client *http.Client
	folder string
	port   int
	as     *syscall.SysProcAttr
	stop   func()
}

// newApache prepares a website of a folder in testdata. Key and certificate are those of its TLS, and
// of its messages.
func newApache(t *testing.T, website, key, certificate string) *apache {
	t.Helper()
	// Folders of testing are only for their owner, which Apache must not be when it is root.
	folder, err := os.MkdirTemp("", website)
	if err != nil {
		t.Fatal(err)
	}
	a := &apache{T: t, folder: folder, stop: func() {}}
	t.Cleanup(func() {
		a.stop()
		if t.Failed() {
			t.Logf("Apache: %s", a.log())
		}
		if err := os.RemoveAll(folder); err != nil {
			t.Error(err)
		}
	})
	if err := os.CopyFS(folder, os.DirFS("testdata/"+website)); err != nil {
		t.Fatal(err)
	}
	a.write("key.pem", key)
	a.write("certificate.pem", certificate)
	if os.Getuid() == 0 {
		a.as = nobody(t)
		if err := os.Chown(folder, int(a.as.Credential.Uid), int(a.as.Credential.Gid)); err != nil {
			t.Fatal(err)
		}
	}
	free, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	a.port = free.Addr().(*net.TCPAddr).Port
	free.Close()
	a.site = fmt.Sprintf("https://127.0.0.1:%d", a.port)
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM([]byte(certificate))
	a.client = &http.Client{Transport: &http.Transport{DisableKeepAlives: true, TLSClientConfig: &tls.Config{RootCAs: roots}}}
	return a
}

// nobody returns how root starts a process without privileges: Apache answers nothing as root.
func nobody(t *testing.T) *syscall.SysProcAttr {
	t.Helper()
	u, err := user.Lookup("nobody")
	if err != nil {
		t.Fatal(err)
	}
	uid, err := strconv.ParseUint(u.Uid, 10, 32)
	if err != nil {
		t.Fatal(err)
	}
	gid, err := strconv.ParseUint(u.Gid, 10, 32)
	if err != nil {
		t.Fatal(err)
	}
	return &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: uint32(uid), Gid: uint32(gid)}}
}

func (a *apache) write(name, text string) {
	a.Helper()
	if err := os.WriteFile(filepath.Join(a.folder, name), []byte(text), 0o644); err != nil {
		a.Fatal(err)
	}
}

func (a *apache) log() string {
	a.Helper()
	text, err := os.ReadFile(filepath.Join(a.folder, "error.log"))
	if err != nil {
		a.Error(err)
	}
	return string(text)
}

// mellonMetadata is the metadata that mod_auth_mellon makes of its configuration.
type mellonMetadata struct {
	EntityID string `xml:"entityID,attr"`
	Role     struct {
		AuthnRequestsSigned bool      `xml:"AuthnRequestsSigned,attr"`
		SLO                 []service `xml:"SingleLogoutService"`
		ACS                 []service `xml:"AssertionConsumerService"`
	} `xml:"SPSSODescriptor"`
}

// service is an endpoint in metadata.
type service struct {
	Binding  string `xml:"Binding,attr"`
	Location string `xml:"Location,attr"`
}

// with returns the location of the service with a binding.
func (m mellonMetadata) with(t *testing.T, list []service, binding string) string {
	t.Helper()
	for _, s := range list {
		if s.Binding == "urn:oasis:names:tc:SAML:2.0:bindings:"+binding {
			return s.Location
		}
	}
	t.Fatalf("no service with %s in %+v", binding, m)
	return ""
}

// start starts a website of Mellon with the metadata of its identity provider, and returns its own.
func (a *apache) start(provider string) (own mellonMetadata) {
	a.Helper()
	a.write("provider.xml", provider)
	document := a.serve("/private/saml/metadata")
	if err := xml.Unmarshal(document, &own); err != nil {
		a.Fatalf("%v\n%s", err, document)
	}
	return own
}

// serve starts the website, waits until a path is there, and returns what it answers. It ends the one
// before.
func (a *apache) serve(path string) []byte {
	a.Helper()
	a.stop()
	program, err := exec.LookPath("apache2")
	if err != nil {
		program = "/usr/sbin/apache2" // not in the PATH of all users
	}
	// One process, which does not wait for open connections when it ends: with this one at the latest.
	cmd := exec.Command("sh", "-c", `"$@" >>error.log 2>&1 & read -r end; kill -9 $!; wait $!`, "sh", program, "-X", "-d", a.folder, "-f", "apache.conf", "-C", fmt.Sprintf("Define PORT %d", a.port))
	cmd.Dir, cmd.SysProcAttr = a.folder, a.as
	stdin, err := cmd.StdinPipe()
	if err != nil {
		a.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		a.Fatal(err)
	}
	a.stop = func() {
		stdin.Close()
		_ = cmd.Wait()
		a.stop = func() {}
	}
	var res *http.Response
	for range 100 {
		if res, err = a.client.Get(a.site + path); err == nil {
			break
		}
		time.Sleep(100 * time.Millisecond)
	}
	if err != nil {
		a.Fatal("make setup installs Apache and its modules: ", err)
	}
	defer res.Body.Close()
	document, err := io.ReadAll(res.Body)
	if err != nil || res.StatusCode != http.StatusOK {
		a.Fatalf("%s %v\n%s", res.Status, err, document)
	}
	return document
}

// A website of Apache with mod_auth_mellon signs users in and out, in Chromium, before and after the
// certificate of its identity provider is replaced.
func TestMellon(t *testing.T) {
	dir := t.TempDir()
	server := start(t, "--dev", "--data-dir", dir, "--rate-limits", "sign-in.ip=unlimited,self-service.caller=unlimited,token.ip=unlimited")
	c := readJSON(t, filepath.Join(dir, "bootstrap.json"))
	key, certificate, pin := loopbackPair(t)
	b := openBrowser(t, server, chromedp.Flag("ignore-certificate-errors-spki-list", pin))
	metadata := func() string {
		t.Helper()
		res, err := direct(server).Get(c.BaseURL + "/saml/idp/metadata")
		if err != nil {
			t.Fatal(err)
		}
		defer res.Body.Close()
		document, err := io.ReadAll(res.Body)
		if err != nil || res.StatusCode != http.StatusOK {
			t.Fatalf("%s %v\n%s", res.Status, err, document)
		}
		return string(document)
	}
	website := newApache(t, "mellon", key, certificate)
	first := metadata()
	own := website.start(first)
	if !own.Role.AuthnRequestsSigned {
		t.Errorf("requests are not signed: %+v", own)
	}
	form, err := json.Marshal(map[string]any{
		"name": "Apache", "type": "saml", "entity_id": own.EntityID, "certificate": certificate, "name_id_format": "transient",
		"acs_url": own.with(t, own.Role.ACS, "HTTP-POST"), "slo_url": own.with(t, own.Role.SLO, "HTTP-Redirect"),
		"want_authn_requests_signed": true, "sign_response": true, "encrypt_assertion": true, "allow_idp_initiated": true, "first_party": false,
		"attribute_statements": []map[string]string{
			{"name": "mail", "name_format": "basic", "value": "email"},
			{"name": "name", "name_format": "basic", "value": "name"},
			{"name": "groups", "name_format": "basic", "value": "groups"},
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	app := server.call(t, c, "POST", "applications", string(form), 201)
	const password = "correct horse battery"
	zoe := server.call(t, c, "POST", "users", fmt.Sprintf(`{"email":"zoe@example.com","name":"Zoë & Co","email_verified":true,"password":%q}`, password), 201)["id"].(string)
	for _, slug := range []string{"readers", "writers"} {
		group := server.call(t, c, "POST", "groups", fmt.Sprintf(`{"slug":%q,"name":%q}`, slug, slug), 201)["id"].(string)
		server.call(t, c, "POST", "groups/"+group+"/members", fmt.Sprintf(`{"user_id":%q}`, zoe), 201)
	}

	page := website.site + "/private/page.html"
	visit := func() {
		t.Helper()
		b.do(chromedp.Navigate(page))
	}
	signIn := func() {
		t.Helper()
		b.at("/auth/sign-in", "Sign in")
		b.fill("email", "zoe@example.com", "password", password)
		b.press("Sign in")
	}
	arrived := func() {
		t.Helper()
		b.says("Hello Zoë & Co")
		b.says("zoe@example.com in readers, writers")
	}
	visit()
	signIn()
	b.at("/auth/consent", "Allow Apache to access your account?")
	b.says("See your groups")
	b.press("Allow")
	arrived()

	// Single logout ends the session at the website, and the one here.
	b.press("Sign out")
	b.says("Goodbye")
	b.open("/account")
	b.at("/auth/sign-in", "Sign in")

	// From here to the website.
	b.do(chromedp.Navigate(app["idp_sso_url"].(string) + "/" + app["id"].(string) + "?RelayState=" + url.QueryEscape(page)))
	signIn()
	arrived()

	// The next certificate is published before it signs.
	rotate := func(emergency bool) {
		t.Helper()
		body := fmt.Sprintf(`{"use":"identity_provider","emergency":%t}`, emergency)
		server.call(t, c, "POST", "settings/saml-certificates/rotate", body, 200)
	}
	rotate(false)
	second := metadata()
	if n := strings.Count(first, "<ds:X509Certificate>"); strings.Count(second, "<ds:X509Certificate>") != n+1 {
		t.Errorf("the next certificate is not published: %s", second)
	}
	b.press("Sign out")
	b.says("Goodbye")
	visit()
	signIn()
	arrived()
	website.start(second) // with both, and without the sessions of before
	visit()
	arrived()

	// A key that signs at once is refused until the website has the metadata with it.
	rotate(true)
	website.start(second)
	visit()
	b.do(chromedp.WaitVisible(chromedp.Search(`//h1[normalize-space()="Bad Request"]`)))
	if log := website.log(); !strings.Contains(log, "Failed to verify signature") {
		t.Errorf("refused for another reason: %s", log)
	}
	website.start(metadata())
	visit()
	arrived()
	b.press("Sign out")
	b.says("Goodbye")
}
