package main

import (
	"bufio"
	"context"
	"crypto/rand"
	"crypto/rsa"
	"crypto/sha256"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/base64"
	"encoding/json"
	"encoding/pem"
	"math/big"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/chromedp"
)

// loopbackPair returns a key and its certificate for a server on this machine, in PEM, and the pin by
// which Chromium accepts it.
func loopbackPair(t *testing.T) (key, certificate, pin string) {
	t.Helper()
	private, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "localhost"}, IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)},
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(24 * time.Hour),
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, private.Public(), private)
	if err != nil {
		t.Fatal(err)
	}
	pkcs8, err := x509.MarshalPKCS8PrivateKey(private)
	if err != nil {
		t.Fatal(err)
	}
	public, err := x509.MarshalPKIXPublicKey(private.Public())
	if err != nil {
		t.Fatal(err)
	}
	sum := sha256.Sum256(public)
	text := func(typ string, der []byte) string {
		return string(pem.EncodeToMemory(&pem.Block{Type: typ, Bytes: der}))
	}
	return text("PRIVATE KEY", pkcs8), text("CERTIFICATE", der), base64.StdEncoding.EncodeToString(sum[:])
}

// A service provider that others wrote signs users in and out, in Chromium: with signed requests of
// both bindings, and encrypted assertions.
func TestServiceProvider(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	folder := npmFolder(ctx, t)
	dir := t.TempDir()
	server := start(t, "--dev", "--data-dir", dir, "--rate-limits", "sign-in.ip=unlimited,self-service.caller=unlimited,token.ip=unlimited")
	c := readJSON(t, filepath.Join(dir, "bootstrap.json"))
	key, certificate, pin := loopbackPair(t)
	b := openBrowser(t, server, chromedp.Flag("ignore-certificate-errors-spki-list", pin))

	setup, err := json.Marshal(map[string]string{"key": key, "certificate": certificate})
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(ctx, "node", "node-saml.mjs")
	cmd.Dir, cmd.Env, cmd.Stderr, cmd.WaitDelay = folder, append(os.Environ(), "SETUP="+string(setup)), os.Stderr, time.Second
	stdin, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	stdout, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { stdin.Close(); _ = cmd.Wait() })
	site, err := bufio.NewReader(stdout).ReadString('\n')
	if err != nil {
		t.Fatal(err)
	}
	site = strings.TrimSpace(site)

	group := server.call(t, c, "POST", "groups", `{"slug":"writers","name":"Writers"}`, 201)["id"].(string)
	ann := server.call(t, c, "POST", "users", `{"email":"ann@example.com","name":"Ann","email_verified":true,"password":"correct horse battery"}`, 201)["id"].(string)
	server.call(t, c, "POST", "groups/"+group+"/members", `{"user_id":"`+ann+`"}`, 201)
	form, err := json.Marshal(map[string]any{
		"name": "Wiki", "type": "saml", "entity_id": site + "/saml", "acs_url": site + "/acs", "slo_url": site + "/slo", "certificate": certificate,
		"name_id_format": "emailAddress", "want_authn_requests_signed": true, "sign_response": true, "encrypt_assertion": true, "allow_idp_initiated": true,
		"attribute_statements": []map[string]string{{"name": "mail", "name_format": "basic", "value": "email"}, {"name": "groups", "name_format": "basic", "value": "groups"}},
	})
	if err != nil {
		t.Fatal(err)
	}
	app := server.call(t, c, "POST", "applications", string(form), 201)
	metadata, err := direct(server).Get(app["idp_metadata_url"].(string))
	if err != nil || metadata.StatusCode != http.StatusOK {
		t.Fatal(metadata, err)
	}
	metadata.Body.Close()
	var certificates []string
	status, listed := server.do("GET", "http://"+server.Addr()+"/api/v1/settings/saml-certificates", hostOf(t, c.BaseURL), server.token(c), "")
	list, _ := listed["data"].([]any)
	for _, item := range list {
		certificates = append(certificates, item.(map[string]any)["certificate"].(string))
	}
	config, err := json.Marshal(map[string]any{
		"sso": app["idp_sso_url"], "slo": app["idp_slo_url"], "idp": app["idp_entity_id"], "certificates": certificates,
		"format": "urn:oasis:names:tc:SAML:1.1:nameid-format:emailAddress",
	})
	if err != nil || status != http.StatusOK {
		t.Fatal(status, err)
	}
	if _, err := stdin.Write(append(config, '\n')); err != nil {
		t.Fatal(err)
	}

	const password = "correct horse battery"
	arrived := func() {
		t.Helper()
		b.says("Hello ann@example.com")
		b.says("ann@example.com in writers")
	}
	b.do(chromedp.Navigate(site + "/sign-in"))
	b.at("/auth/sign-in", "Sign in")
	b.fill("email", "ann@example.com", "password", password)
	b.press("Sign in")
	arrived()
	b.do(chromedp.Navigate(site + "/sign-in?post"))
	arrived()
	b.do(chromedp.Navigate(site + "/sign-in?passive"))
	arrived()
	b.do(chromedp.Navigate(site + "/sign-in?force"))
	b.at("/auth/sign-in", "Sign in")
	b.fill("email", "ann@example.com", "password", password)
	b.press("Sign in")
	arrived()
	b.do(chromedp.Navigate(site + "/sign-in?mfa&passive"))
	b.says("NoAuthnContext")

	b.do(chromedp.Navigate(site + "/sign-out"))
	b.says("Goodbye")
	b.do(chromedp.Navigate(site + "/sign-in?passive"))
	b.says("Refused")
	b.open("/account")
	b.at("/auth/sign-in", "Sign in")
}
