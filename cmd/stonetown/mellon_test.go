package main

import (
	"encoding/json"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/chromedp"
)

// apacheModules is where Debian keeps the modules of Apache.
const apacheModules = "/usr/lib/apache2/modules/"

// mellonConfig configures Apache: a folder that Mellon protects. The first argument is the folder, the
// second the port.
const mellonConfig = `
ServerRoot %[1]q
ServerName 127.0.0.1
PidFile %[1]s/pid
DefaultRuntimeDir %[1]s
ErrorLog %[1]s/error.log
Listen 127.0.0.1:%[2]d
%[3]s
DocumentRoot %[1]s/www
DirectoryIndex index.html
SSLEngine on
SSLCertificateFile %[1]s/cert.pem
SSLCertificateKeyFile %[1]s/key.pem
SSLSessionCache none
<Location />
	Require all granted
	MellonEnable info
	MellonEndpointPath /mellon
	MellonSPPrivateKeyFile %[1]s/key.pem
	MellonSPCertFile %[1]s/cert.pem
	MellonSPentityId %[4]s/saml
	MellonIdPMetadataFile %[1]s/idp.xml
	MellonSecureCookie On
	MellonSignatureMethod rsa-sha256
</Location>
<Location /private>
	MellonEnable auth
	Require valid-user
	Options +Includes
	SetOutputFilter INCLUDES
</Location>
`

// Mellon, the module of Apache, signs users in and out, in Chromium.
func TestMellon(t *testing.T) {
	apache, err := exec.LookPath("apache2")
	if err != nil {
		apache = "/usr/sbin/apache2" // which is not in the PATH of users
	}
	if _, err := os.Stat(apacheModules + "mod_auth_mellon.so"); err != nil {
		t.Fatal("SAML is tested with Mellon (Debian: apt install libapache2-mod-auth-mellon): ", err)
	}
	dir := t.TempDir()
	server := start(t, "--dev", "--data-dir", dir, "--rate-limits", "sign-in.ip=unlimited,self-service.caller=unlimited,token.ip=unlimited")
	c := readJSON(t, filepath.Join(dir, "bootstrap.json"))
	key, certificate, pin := loopbackPair(t)
	b := openBrowser(t, server, chromedp.Flag("ignore-certificate-errors-spki-list", pin))
	free, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	port := free.Addr().(*net.TCPAddr).Port
	free.Close()
	site := fmt.Sprintf("https://127.0.0.1:%d", port)

	const password = "correct horse battery"
	server.call(t, c, "POST", "users", `{"email":"ann@example.com","name":"Ann","email_verified":true,"password":"`+password+`"}`, 201)
	form, err := json.Marshal(map[string]any{
		"name": "Intranet", "type": "saml", "entity_id": site + "/saml", "acs_url": site + "/mellon/postResponse", "slo_url": site + "/mellon/logout", "certificate": certificate,
		"name_id_format": "transient", "want_authn_requests_signed": true, "first_party": false,
		"attribute_statements": []map[string]string{{"name": "mail", "name_format": "basic", "value": "email"}},
	})
	if err != nil {
		t.Fatal(err)
	}
	app := server.call(t, c, "POST", "applications", string(form), 201)
	answer, err := direct(server).Get(app["idp_metadata_url"].(string))
	if err != nil {
		t.Fatal(err)
	}
	metadata, err := io.ReadAll(answer.Body)
	answer.Body.Close()
	if err != nil {
		t.Fatal(err)
	}

	folder := t.TempDir()
	var modules strings.Builder
	for _, name := range []string{"mpm_event", "authn_core", "authz_core", "authz_user", "dir", "include", "ssl", "auth_mellon"} {
		fmt.Fprintf(&modules, "LoadModule %s_module %smod_%s.so\n", name, apacheModules, name)
	}
	if os.Getuid() == 0 { // Apache refuses to answer as root
		modules.WriteString("User www-data\nGroup www-data\n")
	}
	for name, text := range map[string]string{
		"key.pem": key, "cert.pem": certificate, "idp.xml": string(metadata),
		"httpd.conf":             fmt.Sprintf(mellonConfig, folder, port, modules.String(), site),
		"www/index.html":         "<!doctype html><main><h1>Goodbye</h1></main>",
		"www/private/index.html": `<!doctype html><main><h1>Hello <!--#echo var="MELLON_mail" --></h1></main>`,
	} {
		if err := os.MkdirAll(filepath.Dir(filepath.Join(folder, name)), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(folder, name), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	for at := folder; at != os.TempDir() && at != "/"; at = filepath.Dir(at) { // for another user
		if err := os.Chmod(at, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	cmd := exec.CommandContext(t.Context(), apache, "-f", filepath.Join(folder, "httpd.conf"), "-DFOREGROUND")
	cmd.Stderr, cmd.Cancel, cmd.WaitDelay = os.Stderr, func() error { return cmd.Process.Signal(os.Interrupt) }, 10*time.Second
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = cmd.Wait() // the context of the test has ended
		if t.Failed() {
			text, _ := os.ReadFile(filepath.Join(folder, "error.log"))
			t.Logf("Apache: %s", text)
		}
	})
	for end := time.Now().Add(10 * time.Second); ; time.Sleep(20 * time.Millisecond) {
		conn, err := net.Dial("tcp", fmt.Sprintf("127.0.0.1:%d", port))
		if err == nil {
			conn.Close()
			break
		}
		if time.Now().After(end) {
			t.Fatal("Apache does not start: ", err)
		}
	}

	b.do(chromedp.Navigate(site + "/private/"))
	b.at("/auth/sign-in", "Sign in")
	b.fill("email", "ann@example.com", "password", password)
	b.press("Sign in")
	b.at("/auth/consent", "Allow Intranet to access your account?")
	b.says("See your e-mail address")
	b.press("Allow")
	b.says("Hello ann@example.com")
	b.do(chromedp.Navigate(site + "/mellon/logout?ReturnTo=" + site + "/"))
	b.says("Goodbye")
	b.do(chromedp.Navigate(site + "/private/"))
	b.at("/auth/sign-in", "Sign in")
}
