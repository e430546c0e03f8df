package api_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"html"
	"image"
	"image/color"
	"image/png"
	"net/http"
	"net/url"
	"regexp"
	"strings"
	"testing"

	"stonetown/internal/eventlog"
)

const (
	brandingPath = "/api/v1/branding"
	logoPath     = brandingPath + "/logo"
)

// logoOf returns a picture of one colour.
func logoOf(t testing.TB, c color.Color, width, height int) []byte {
	t.Helper()
	p := image.NewNRGBA(image.Rect(0, 0, width, height))
	for x := range width {
		for y := range height {
			p.Set(x, y, c)
		}
	}
	var b bytes.Buffer
	if err := png.Encode(&b, p); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

// setLogo uploads a logo.
func (c *client) setLogo(t testing.TB, query, mediaType string, body []byte) answer {
	t.Helper()
	return c.send(t, "PUT", logoPath+query, http.Header{"Content-Type": {mediaType}}, body)
}

// brandings: a branding is changed by merge patches, with an event each, and refused unless it is valid
// as a whole.
func brandings(t *testing.T, w *world, c *client) {
	started := c.want(t, 200, "", "GET", brandingPath, nil).data()
	equal(t, "none", []any{started["display_name"], started["logo"], started["default_language"], len(started["languages"].([]any))}, []any{nil, object{"light": nil, "dark": nil}, "en", 7})
	if len(w.told(t, c, eventlog.BrandingUpdated)) != 0 {
		t.Error("an event without a change")
	}
	changed := c.want(t, 200, "", "PATCH", brandingPath, object{
		"display_name": "Acme", "colors": object{"light": object{"accent": "#0B5D3B"}}, "links": object{"privacy_url": "https://example.com/privacy", "support_email": "help@example.com"},
		"languages": []string{"de", "en"}, "default_language": "de", "texts": object{"de": object{"sign_in_title": "Willkommen", "sign_up_title": "Los"}},
	}).data()
	equal(t, "changed", []any{changed["display_name"], changed["languages"], changed["default_language"], changed["texts"]},
		[]any{"Acme", []any{"en", "de"}, "de", object{"de": object{"sign_in_title": "Willkommen", "sign_up_title": "Los"}}})
	light := changed["colors"].(object)["light"].(object)
	equal(t, "accent", []any{light["accent"], light["background"]}, []any{"#0b5d3b", nil})
	for _, contrast := range light["contrasts"].([]any) {
		var ratio, required float64
		c := contrast.(object)
		if _, err := fmt.Sscanf(c["ratio"].(string)+" "+c["required"].(string), "%f:1 %f:1", &ratio, &required); err != nil || ratio < required {
			t.Errorf("%v: %v", c, err)
		}
	}
	event := lastEvent(t, w, c, eventlog.BrandingUpdated)
	equal(t, "event", event["branding"], any(changed))
	equal(t, "changes", event["changes"].(object)["display_name"], any([]any{nil, "Acme"}))

	// Absent keeps, and null takes back.
	c.want(t, 200, "", "PATCH", brandingPath, object{"texts": object{"de": object{"sign_up_title": nil}, "fr": nil}, "links": object{"privacy_url": nil}, "colors": object{"dark": nil}})
	read := c.want(t, 200, "", "GET", brandingPath, nil).data()
	equal(t, "texts", read["texts"], any(object{"de": object{"sign_in_title": "Willkommen"}}))
	equal(t, "links", read["links"], any(object{"terms_url": nil, "privacy_url": nil, "imprint_url": nil, "support_url": nil, "support_email": "help@example.com"}))
	events := len(w.told(t, c, eventlog.BrandingUpdated))
	c.want(t, 200, "", "PATCH", brandingPath, object{"display_name": "Acme", "unknown": 1})
	equal(t, "events of a change that changes nothing", len(w.told(t, c, eventlog.BrandingUpdated)), events)

	// The logo.
	answered := c.setLogo(t, "", "image/png", logoOf(t, color.NRGBA{200, 20, 20, 255}, 240, 80))
	logo, _ := answered.data()["logo"].(object)["light"].(object)
	path, _ := logo["path"].(string)
	if answered.status != 200 || logo["width"] != 240.0 || logo["height"] != 80.0 || !strings.HasPrefix(path, "/branding/logo?variant=light&v=") {
		t.Fatal(answered.text)
	}
	equal(t, "dark", c.setLogo(t, "?variant=dark", "image/webp", logoOf(t, color.White, 900, 90)).data()["logo"].(object)["dark"].(object)["width"], 512.0)
	equal(t, "event", lastEvent(t, w, c, eventlog.BrandingUpdated)["changes"].(object)["logo"] == nil, false)
	c.want(t, 204, "", "DELETE", logoPath+"?variant=dark", nil)
	c.want(t, 204, "", "DELETE", logoPath+"?variant=dark", nil)
	for _, refused := range []struct {
		query, mediaType, code string
		body                   []byte
	}{
		{"", "image/svg+xml", "picture_invalid", []byte(`<svg xmlns="http://www.w3.org/2000/svg"/>`)},
		{"", "image/png", "picture_invalid", nil},
		{"", "image/png", "picture_size_invalid", logoOf(t, color.White, 8, 8)},
		{"?variant=blue", "image/png", "validation_failed", logoOf(t, color.White, 16, 16)},
		{"", "text/html", "unsupported_media_type", logoOf(t, color.White, 16, 16)},
		{"", "image/png", "payload_too_large", make([]byte, 512<<10+1)},
	} {
		equal(t, refused.mediaType, c.setLogo(t, refused.query, refused.mediaType, refused.body).code(), refused.code)
	}
	c.want(t, 400, "validation_failed", "DELETE", logoPath+"?variant=icon", nil)

	// Refusals.
	low := c.want(t, 400, "validation_failed", "PATCH", brandingPath, object{"colors": object{"light": object{"accent": "#ffee00"}}})
	if !strings.Contains(low.text, "contrast_too_low") || !strings.Contains(low.text, "has 1.20:1") || !strings.Contains(low.text, "4.5:1 is required") || !strings.Contains(low.text, "the nearest colour with enough contrast is #") {
		t.Error(low.text)
	}
	for _, form := range []string{
		`{"display_name":1}`, `{"display_name":"a\nb"}`, `{"display_name":"` + strings.Repeat("x", 101) + `"}`,
		`{"colors":"red"}`, `{"colors":{"light":"red"}}`, `{"colors":{"light":{"accent":"red"}}}`, `{"colors":{"dark":{"background":"url(x)"}}}`,
		`{"links":[]}`, `{"links":{"terms_url":"http://example.com"}}`, `{"links":{"terms_url":"javascript:alert(1)"}}`, `{"links":{"support_email":"x"}}`,
		`{"languages":[]}`, `{"languages":"de"}`, `{"languages":["tlh"]}`, `{"default_language":"tlh"}`, `{"languages":["fr"]}`,
		`{"texts":{"tlh":{}}}`, `{"texts":{"de":"x"}}`, `{"texts":{"de":{"footer":"x"}}}`, `{"texts":{"de":{"sign_in_text":["x"]}}}`,
	} {
		c.want(t, 400, "validation_failed", "PATCH", brandingPath, json.RawMessage(form))
	}
	c.want(t, 400, "immutable_field", "PATCH", brandingPath, object{"logo": nil})

	// Rights, and other tenants.
	reader := c.with(w.token(t, c, w.application(t, c, "settings:read", "audit:read")))
	reader.want(t, 200, "", "GET", brandingPath, nil)
	reader.want(t, 403, "insufficient_scope", "PATCH", brandingPath, object{"display_name": "x"})
	equal(t, "logo by a reader", reader.setLogo(t, "", "image/png", nil).code(), "insufficient_scope")
	other := w.tenant(t, c.name()+"-other")
	equal(t, "of another tenant", other.want(t, 200, "", "GET", brandingPath, nil).data()["display_name"], nil)

	// The end: the design of the deployment.
	c.want(t, 204, "", "DELETE", logoPath, nil)
	ended := c.want(t, 200, "", "PATCH", brandingPath, object{"display_name": nil, "colors": nil, "links": nil, "languages": nil, "default_language": nil, "texts": nil}).data()
	equal(t, "ended", any(ended), any(started))
	var mark string
	if err := w.db.QueryRow(t.Context(), `SELECT branding FROM tenants WHERE slug = $1`, c.name()).Scan(&mark); err != nil || mark != "" {
		t.Errorf("the mark is %q, %v", mark, err)
	}
}

// brandedPages: the pages of a tenant show its branding, and have nothing of it before.
func brandedPages(t *testing.T, w *world, c *client) {
	file := func(target string, header http.Header) shown {
		t.Helper()
		return c.visit(t, "GET", target, header, nil)
	}
	plain := file("/auth/sign-in", nil)
	if strings.Contains(plain.html, "/branding") || strings.Contains(plain.html, "<footer") || !strings.Contains(plain.html, "/favicon.ico") {
		t.Error(plain.html)
	}
	if p := file("/branding.css", nil); p.status != 200 || p.html != "" {
		t.Errorf("%d %q", p.status, p.html)
	}
	equal(t, "no logo", []int{file("/branding/logo", nil).status, file("/branding/icon?v=0", nil).status}, []int{404, 404})

	c.want(t, 200, "", "PATCH", brandingPath, object{
		"display_name": "Acme & <b>Sons", "colors": object{"light": object{"accent": "#0b5d3b"}},
		"links":     object{"terms_url": "https://example.com/terms?a=1&b=2", "privacy_url": "https://example.com/privacy", "imprint_url": "https://example.com/imprint", "support_url": "https://example.com/help", "support_email": "help@example.com"},
		"languages": []string{"de", "fr"}, "default_language": "fr",
		"texts": object{"de": object{"sign_in_title": "Hallo <script>", "sign_in_text": "Hier geht es weiter.", "sign_up_text": "Gleich fertig."}},
	})
	german := http.Header{"Accept-Language": {"de"}}
	p := file("/auth/sign-in", german)
	for _, want := range []string{
		`<html lang="de"`, `<title>Hallo &lt;script&gt; · Acme &amp; &lt;b&gt;Sons</title>`, `<h1>Hallo &lt;script&gt;</h1>`, "<p>Hier geht es weiter.</p>", `<span class="brand">Acme &amp; &lt;b&gt;Sons</span>`,
		`<a href="https://example.com/terms?a=1&amp;b=2">Nutzungsbedingungen</a>`, `<a href="https://example.com/privacy">Datenschutz</a>`, `<a href="https://example.com/imprint">Impressum</a>`,
		`<a href="https://example.com/help">Hilfe</a>`, `<a href="mailto:help@example.com">help@example.com</a>`, `<link rel="stylesheet" href="/branding.css?v=`,
	} {
		if !strings.Contains(p.html, want) {
			t.Errorf("no %s in\n%s", want, p.html)
		}
	}
	if policy := p.header.Get("Content-Security-Policy"); strings.Contains(policy, "unsafe") || strings.Contains(p.html, "style=") {
		t.Error(policy)
	}
	if p := file("/auth/sign-up", german); !strings.Contains(p.html, "<p>Gleich fertig.</p>") || strings.Contains(p.html, "Hallo") {
		t.Error(p.html)
	}
	for _, language := range []string{"en", "ja", ""} {
		speaks(t, c, "/auth/sign-in", http.Header{"Accept-Language": {language}}, "fr", "Mot de passe")
	}
	speaks(t, c, "/nowhere", http.Header{"Accept-Language": {"en"}, "Accept": {"text/html"}}, "fr", "Acme")

	// The style sheet.
	styled := file("/branding.css", nil)
	if !strings.HasPrefix(styled.html, ":root { --accent: #0b5d3b; --accent-ink: #ffffff; }\n@media") || styled.header.Get("Content-Type") != "text/css; charset=utf-8" || styled.header.Get("Cache-Control") != "public, max-age=60" {
		t.Errorf("%v %s", styled.header, styled.html)
	}
	tag := styled.header.Get("ETag")
	equal(t, "unchanged", file("/branding.css", http.Header{"If-None-Match": {tag}}).status, 304)
	c.want(t, 200, "", "PATCH", brandingPath, object{"colors": object{"light": object{"accent": "#7a1f5c"}}})
	equal(t, "changed", file("/branding.css", http.Header{"If-None-Match": {tag}}).status, 200)

	// The logo.
	equal(t, "logo", c.setLogo(t, "", "image/png", logoOf(t, color.Black, 64, 32)).status, 200)
	equal(t, "dark logo", c.setLogo(t, "?variant=dark", "image/png", logoOf(t, color.White, 64, 32)).status, 200)
	p = file("/auth/sign-in", german)
	sources := regexp.MustCompile(`(?:href|src|srcset)="(/branding/[^"]+)"`).FindAllStringSubmatch(p.html, -1)
	if len(sources) != 3 || !strings.Contains(p.html, `alt="Acme &amp; &lt;b&gt;Sons"`) || strings.Contains(p.html, "/favicon.ico") {
		t.Fatalf("%v in %s", sources, p.html)
	}
	hashes := map[string]bool{}
	for _, source := range sources {
		address := html.UnescapeString(source[1])
		picture := file(address, nil)
		if _, err := png.Decode(strings.NewReader(picture.html)); err != nil {
			t.Errorf("%s: %v", address, err)
		}
		head := picture.header
		equal(t, address, []string{head.Get("Content-Type"), head.Get("X-Content-Type-Options"), head.Get("Cache-Control"), head.Get("Content-Security-Policy")},
			[]string{"image/png", "nosniff", "public, max-age=31536000, immutable", "default-src 'none'; sandbox"})
		_, hash, _ := strings.Cut(address, "v=")
		hashes[hash] = true
		old := file(strings.Replace(address, hash, "0", 1), nil)
		equal(t, "an old address", []any{old.status, old.header.Get("Cache-Control")}, []any{200, "public, max-age=60"})
	}
	equal(t, "pictures", len(hashes), 3)

	// Discovery.
	discovered := c.want(t, 200, "", "GET", "/.well-known/openid-configuration", nil).body
	equal(t, "discovery", []any{discovered["ui_locales_supported"], discovered["op_policy_uri"], discovered["op_tos_uri"]}, []any{[]any{"de", "fr"}, "https://example.com/privacy", "https://example.com/terms?a=1&b=2"})

	// Other tenants, and the control plane, have the design of the deployment.
	other := w.tenant(t, c.name()+"-other")
	equal(t, "another tenant", other.visit(t, "GET", "/branding/logo", nil, nil).status, 404)
	equal(t, "another tenant", strings.Contains(other.visit(t, "GET", "/auth/sign-in", nil, nil).html, "/branding"), false)
}

// mailTemplates: a tenant replaces the text of a mail in a language, which users of that language get.
func mailTemplates(t *testing.T, w *world, c *client) {
	const list = "/api/v1/mail-templates"
	const path = list + "/new_sign_in/de"
	names := map[string]object{}
	next := ""
	for {
		a := c.want(t, 200, "", "GET", list+"?limit=5"+next, nil)
		for _, item := range a.list() {
			names[item.(object)["mail"].(string)] = item.(object)
		}
		cursor, more := a.meta("next_cursor").(string)
		if !more {
			break
		}
		next = "&cursor=" + url.QueryEscape(cursor)
	}
	if len(names) < 15 || names["code"] != nil {
		t.Errorf("%v", names)
	}
	equal(t, "variables", names["new_sign_in"]["variables"], any([]any{"tenant", "email", "name", "link", "device", "place", "at", "ip"}))
	started := c.want(t, 200, "", "GET", path, nil).data()
	builtIn := started["built_in"].(object)
	equal(t, "not replaced", []any{started["subject"], started["body"]}, []any{nil, nil})
	if !strings.Contains(builtIn["body"].(string), "\n\n{{link}}\n\n") || !strings.Contains(builtIn["subject"].(string), "{{tenant}}") {
		t.Errorf("%v", builtIn)
	}

	own := object{"subject": "Neu bei {{tenant}}: {{device}}", "body": "Hallo {{name}} <b>.\n\n{{link}}\n\nVon {{ip}}.", "button": "Geräte"}
	stored := c.want(t, 200, "", "PUT", path, own).data()
	equal(t, "stored", []any{stored["subject"], stored["heading"], stored["button"]}, []any{own["subject"], nil, own["button"]})
	equal(t, "read", any(c.want(t, 200, "", "GET", path, nil).data()), any(stored))
	event := lastEvent(t, w, c, eventlog.MailTemplateUpdated)
	equal(t, "event", []any{event["mail_template"].(object)["subject"], event["changes"].(object)["subject"]}, []any{own["subject"], []any{nil, own["subject"]}})
	events := len(w.told(t, c, eventlog.MailTemplateUpdated))
	c.want(t, 200, "", "PUT", path, own)
	equal(t, "events of the same text", len(w.told(t, c, eventlog.MailTemplateUpdated)), events)

	// A user of the language gets it, and another gets the built-in text.
	c.want(t, 200, "", "PATCH", brandingPath, object{"display_name": "Acme", "colors": object{"light": object{"accent": "#0b5d3b"}}, "links": object{"privacy_url": "https://example.com/privacy"}})
	c.setLogo(t, "", "image/png", logoOf(t, color.Black, 32, 32))
	for _, user := range []struct{ email, locale, subject string }{{"ann@mails.example", "de", "Neu bei Acme: "}, {"bob@mails.example", "en", "New sign-in to your Acme account"}} {
		member(t, c, user.email)
		first := signIn(t, c, user.email, secret, "complete").data()["session_token"].(string)
		c.with(first).want(t, 200, "", "PATCH", mePath+"/profile", object{"locale": user.locale, "name": "{{link}} Ann"})
		c.with("").send(t, "POST", authPath+"/sign-in", http.Header{"User-Agent": {"Mozilla/5.0 (iPhone)"}, "Content-Type": {"application/json"}}, []byte(`{"email":"`+user.email+`","password":"`+secret+`"}`))
		mail := w.mailbox.take(t, user.email, user.subject)
		if user.locale == "de" && (!strings.Contains(mail.Text, "Hallo {{link}} Ann <b>.\n\nGeräte:\nhttps://") || !strings.Contains(mail.HTML, "Hallo {{link}} Ann &lt;b&gt;.")) {
			t.Error(mail.Text)
		}
		for _, want := range []string{"background: #0b5d3b", `src="https://` + c.host + `/branding/logo?variant=light&amp;v=`, `href="https://example.com/privacy"`} {
			if !strings.Contains(mail.HTML, want) {
				t.Errorf("no %s in %s", want, mail.HTML)
			}
		}
		equal(t, "sender", mail.FromName, "Acme")
	}

	// Previews.
	shown := c.want(t, 200, "", "POST", path+"/preview", nil).data()
	equal(t, "stored text", shown["subject"], any("Neu bei Acme: Computer"))
	shown = c.want(t, 200, "", "POST", path+"/preview", object{"subject": "Draft {{at}}", "heading": "<script>"}).data()
	if shown["subject"] != "Draft 2026-11-20 19:27 UTC" || !strings.Contains(shown["html"].(string), "<h1>&lt;script&gt;</h1>") || !strings.Contains(shown["text"].(string), "ann@example.com") {
		t.Errorf("%v", shown)
	}
	equal(t, "the stored text", c.want(t, 200, "", "GET", path, nil).data()["subject"], own["subject"])

	// A test mail goes to the user who asks for it.
	ann := c.with(consoleToken(t, w, c, "ann@mails.example"))
	ann.want(t, 204, "", "POST", path+"/test", nil)
	if mail := w.mailbox.take(t, "ann@mails.example", "Neu bei Acme: Computer"); mail.To != "ann@mails.example" {
		t.Errorf("%+v", mail)
	}
	for range 9 {
		ann.want(t, 204, "", "POST", path+"/test", nil)
	}
	limited := ann.want(t, 429, "rate_limited", "POST", path+"/test", nil)
	equal(t, "Retry-After", limited.header.Get("Retry-After") != "", true)
	if _, err := w.db.Exec(t.Context(), `UPDATE users SET email_verified = FALSE WHERE email = 'ann@mails.example'`); err != nil {
		t.Fatal(err)
	}
	ann.want(t, 409, "email_not_verified", "POST", path+"/test", nil)
	c.want(t, 403, "user_required", "POST", path+"/test", nil)

	// Refusals.
	for _, form := range []object{
		{},
		{"subject": "two\r\nBcc: eve@example.com"},
		{"subject": "{{inviter}}"},
		{"subject": "{{{{tenant}}}}"},
		{"subject": "{{.Tenant}}"},
		{"subject": "{{link}}"},
		{"body": "No link"},
		{"body": "{{link}}\n\n{{link}}"},
		{"body": "\u0000\n\n{{link}}"},
		{"body": strings.Repeat("x", 5001)},
		{"button": strings.Repeat("x", 81)},
		{"heading": 1},
	} {
		c.want(t, 400, "validation_failed", "PUT", path, form)
		if len(form) > 0 {
			c.want(t, 400, "validation_failed", "POST", path+"/preview", form)
		}
	}
	for _, unknown := range []string{"/code/de", "/nothing/de", "/new_sign_in/tlh"} {
		c.want(t, 404, "mail_template_not_found", "GET", list+unknown, nil)
		c.want(t, 404, "mail_template_not_found", "PUT", list+unknown, own)
		c.want(t, 404, "mail_template_not_found", "DELETE", list+unknown, nil)
		c.want(t, 404, "mail_template_not_found", "POST", list+unknown+"/preview", nil)
		c.want(t, 404, "mail_template_not_found", "POST", list+unknown+"/test", nil)
	}
	c.want(t, 400, "validation_failed", "GET", list+"?limit=0", nil)
	c.want(t, 400, "cursor_invalid", "GET", list+"?cursor=x", nil)

	// The end.
	c.want(t, 204, "", "DELETE", path, nil)
	c.want(t, 204, "", "DELETE", path, nil)
	equal(t, "built in", any(c.want(t, 200, "", "GET", path, nil).data()), any(started))
	equal(t, "events", len(w.told(t, c, eventlog.MailTemplateUpdated)), events+1)
}

// consoleToken returns a token with the rights of an administrator, as the console has it, of a user.
func consoleToken(t *testing.T, w *world, c *client, email string) string {
	t.Helper()
	group := c.want(t, 201, "", "POST", groupsPath, object{"slug": "designers", "name": "Designers", "scopes": []string{"settings:read", "settings:write"}}).data()["id"].(string)
	found := c.want(t, 200, "", "GET", "/api/v1/users?email="+url.QueryEscape(email), nil).list()[0].(object)["id"].(string)
	c.want(t, 201, "", "POST", groupsPath+"/"+group+"/members", object{"user_id": found})
	p := newParty(t, c, object{"allowed_scopes": []any{"openid", "settings:read", "settings:write"}, "group_scopes": "all"})
	p.session = signIn(t, c, email, secret, "complete").data()["session_token"].(string)
	return p.exchange(t, p.code(t, url.Values{"scope": {"openid settings:read settings:write"}}), nil).body["access_token"].(string)
}
