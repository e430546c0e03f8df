package main

import (
	"fmt"
	"path/filepath"
	"testing"

	"github.com/chromedp/chromedp"
)

// A website of Apache with mod_auth_openidc signs users in and out, in Chromium,
// with the response in the query and as a form.
func TestApacheOpenIDC(t *testing.T) {
	dir := t.TempDir()
	server := start(t, "--dev", "--data-dir", dir, "--rate-limits", "sign-in.ip=unlimited,self-service.caller=unlimited,token.ip=unlimited")
	c := readJSON(t, filepath.Join(dir, "bootstrap.json"))
	key, certificate, pin := loopbackPair(t)
	b := openBrowser(t, server, chromedp.Flag("ignore-certificate-errors-spki-list", pin))
	const password = "correct horse battery"
	zoe := server.call(t, c, "POST", "users", fmt.Sprintf(`{"email":"zoe@example.com","name":"Zoë & Co","email_verified":true,"password":%q}`, password), 201)["id"].(string)
	for _, slug := range []string{"readers", "writers"} {
		group := server.call(t, c, "POST", "groups", fmt.Sprintf(`{"slug":%q,"name":%q}`, slug, slug), 201)["id"].(string)
		server.call(t, c, "POST", "groups/"+group+"/members", fmt.Sprintf(`{"user_id":%q}`, zoe), 201)
	}
	website := newApache(t, "openidc", key, certificate)
	app := server.call(t, c, "POST", "applications", fmt.Sprintf(`{
		"name": "Apache", "type": "server", "id_token_signed_response_alg": "RS256",
		"redirect_uris": ["%s/private/callback"], "post_logout_redirect_uris": ["%[1]s/goodbye.html"],
		"claims": [{"name": "groups", "where": ["id_token"], "source": {"groups": "slug"}}]
	}`, website.site), 201)
	settings := fmt.Sprintf("OIDCProviderMetadataURL %s/.well-known/openid-configuration\nOIDCClientID %s\nOIDCClientSecret %s\nOIDCScope \"openid email profile\"\n",
		c.BaseURL, app["client_id"], app["client_secret"])
	for name, more := range map[string]string{"by query": "", "by form": "OIDCResponseMode form_post\n"} {
		t.Run(name, func(t *testing.T) {
			website.write("client.conf", settings+more)
			website.serve("/goodbye.html")
			b.do(chromedp.Navigate(website.site + "/private/page.html"))
			b.at("/auth/sign-in", "Sign in")
			b.fill("email", "zoe@example.com", "password", password)
			b.press("Sign in")
			b.says("Hello Zoë & Co")
			b.says("zoe@example.com in readers, writers")
			b.press("Sign out")
			b.says("Goodbye")
			b.open("/account") // the session here ended, too
			b.at("/auth/sign-in", "Sign in")
		})
	}
}
