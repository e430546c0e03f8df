package main

import (
	"image"
	"image/color"
	"image/png"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/chromedp/chromedp"
)

// An administrator gives the tenant a look, and a mail a text, in the console, and sees both.
func TestConsoleBranding(t *testing.T) {
	dir := t.TempDir()
	server := start(t, "--dev", "--data-dir", dir)
	b := newInspector(t, openBrowser(t, server))
	c := readJSON(t, filepath.Join(dir, "bootstrap.json"))
	b.scripts(false)
	b.open("/console")
	b.browser.at("/auth/sign-in", "Sign in")
	b.fill("email", c.Admin.Email, "password", c.Admin.Password)
	b.press("Sign in")
	b.browser.at("/console", "Overview")
	server.confirm(t)
	const hostile = `</p><script>alert(1)</script>'"&`
	read := func() map[string]any { return server.call(t, c, "GET", "branding", "", 200) }
	b.open("/console")
	b.press("Branding")
	b.at("/console/branding", "Branding")
	b.put("colors/light/accent", "#FFEE00")
	b.send("Save colours")
	b.refused("colors/light/accent")
	b.says("the nearest colour with enough contrast is #")
	b.at("/console/branding/colours", "Branding")
	b.put("colors/light/accent", "#7a1f5c", "colors/light/background", "#fff8e7")
	b.send("Save colours")
	b.says("Saved.")
	b.put("display_name", "Acme & <b>Sons")
	b.send("Save name")
	b.says("Saved.")
	b.put("links/privacy_url", "http://www.example.com/privacy")
	b.send("Save links")
	b.refused("links/privacy_url")
	b.put("links/privacy_url", "https://www.example.com/privacy", "links/support_email", "help@example.com")
	b.send("Save links")
	b.says("Saved.")
	b.put("texts/en/sign_in_title", "Welcome back", "texts/en/sign_in_text", hostile)
	b.send("Save texts")
	b.says("Saved.")

	// The logo.
	file := filepath.Join(dir, "logo.png")
	store := func(text string) {
		t.Helper()
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		b.do(chromedp.SetUploadFiles(chromedp.CSS("[name=file]"), []string{file}))
		b.send("Save logo")
	}
	store(`<svg xmlns="http://www.w3.org/2000/svg"/>`)
	b.says("The body is not a PNG, JPEG or WebP picture")
	picture := image.NewNRGBA(image.Rect(0, 0, 240, 80))
	for i := range picture.Pix {
		picture.Pix[i] = []byte{122, 31, 92, 255}[i%4]
	}
	picture.Set(0, 0, color.White)
	var encoded strings.Builder
	if err := png.Encode(&encoded, picture); err != nil {
		t.Fatal(err)
	}
	store(encoded.String())
	b.says("Logo saved.")
	b.at("/console/branding", "Branding")
	if own := read(); own["display_name"] != "Acme & <b>Sons" || own["logo"].(map[string]any)["light"] == nil {
		t.Errorf("%v", own)
	}
	t.Chdir(filepath.Dir(file)) // the command names the file
	b.curl(server.token(c))

	// The hosted pages.
	for path, title := range map[string]string{"/auth/sign-in": "Welcome back", "/auth/sign-up": "Create an account", "/account": "Your profile"} {
		b.open(path)
		b.do(chromedp.WaitVisible(chromedp.CSS("main")))
		b.accessible(path)
		for what, want := range map[string]string{
			`document.querySelector("h1").textContent`:                                                           title,
			`document.querySelector("header img").alt + (document.querySelector("header img").naturalWidth > 0)`: "Acme & <b>Sonstrue",
			`getComputedStyle(document.querySelector("main a, nav a")).getPropertyValue("--accent")`:             "#7a1f5c",
			`getComputedStyle(document.documentElement).backgroundColor`:                                         "rgb(255, 248, 231)",
			`[...document.querySelectorAll("footer a")].map(a => a.textContent + " " + a.href).join("; ")`:       "Privacy https://www.example.com/privacy; help@example.com mailto:help@example.com",
		} {
			if got := ask(b.browser, chromedp.Evaluate[string](what)); got != want {
				t.Errorf("%s: %s is %q, want %q", path, what, got, want)
			}
		}
	}

	// A mail.
	b.open("/console/branding")
	b.press("Texts of mails")
	b.at("/console/branding/mails", "Mails")
	b.open("/console/branding/mails/new_sign_in/en")
	b.at("/console/branding/mails/new_sign_in/en", "New sign-in, in English")
	b.put("subject", "{{password}}")
	b.send("Save")
	b.refused("subject")
	b.put("subject", "New at {{tenant}}", "body", hostile+" {{name}}\n\n{{link}}\n\nFrom {{ip}}")
	preview := func(wants ...string) {
		t.Helper()
		for _, want := range wants {
			if text := ask(b.browser, chromedp.Evaluate[string](`document.body.innerText + getComputedStyle(document.querySelector(".action")).backgroundColor + document.querySelector("img").naturalWidth`)); !strings.Contains(text, want) {
				t.Errorf("no %q in %q", want, text)
			}
		}
	}
	ask(b.browser, chromedp.Evaluate[bool](`document.querySelector("[formtarget]").removeAttribute("formtarget"); true`)) // of the frame
	b.send("Preview")
	b.do(chromedp.WaitVisible(chromedp.CSS("a.action")))
	preview("New at Acme & <b>Sons", hostile+" Ann Example", "From 192.0.2.7", "rgb(122, 31, 92)", "240")
	b.open("/console/branding/mails/new_sign_in/en")
	b.put("subject", "New at {{tenant}}", "body", hostile+" {{name}}\n\n{{link}}\n\nFrom {{ip}}")
	b.send("Save")
	b.says("Saved.")
	b.at("/console/branding/mails/new_sign_in/en", "New sign-in, in English")
	b.curl(server.token(c))

	// The preview is that of the form, although another text is stored.
	text := server.call(t, c, "GET", "mail-templates/new_sign_in/en", "", 200)["built_in"].(map[string]any)
	b.put("subject", text["subject"].(string), "body", text["body"].(string))
	ask(b.browser, chromedp.Evaluate[bool](`document.querySelector("[formtarget]").removeAttribute("formtarget"); true`))
	b.send("Preview")
	b.do(chromedp.WaitVisible(chromedp.CSS("a.action")))
	preview("Someone, probably you, signed in")

	// A text that another person has saved meanwhile is not replaced.
	b.open("/console/branding/mails/new_sign_in/en")
	server.call(t, c, "PUT", "mail-templates/new_sign_in/en", `{"subject":"Of another person"}`, 200)
	b.put("subject", "Mine")
	b.send("Save")
	b.says("This was changed meanwhile.")
	if got := server.call(t, c, "GET", "mail-templates/new_sign_in/en", "", 200)["subject"]; got != "Of another person" {
		t.Errorf("the subject is %v", got)
	}
	b.send("Save")
	b.says("Saved.")
	if got := server.call(t, c, "GET", "mail-templates/new_sign_in/en", "", 200)["subject"]; got != "Mine" {
		t.Errorf("the subject is %v", got)
	}
	b.send("Send the saved mail to me")
	b.says("A test mail is on its way to your address.")
	b.press("Take the built-in text")
	b.at("/console/branding/mails/new_sign_in/en/reset", "Take the built-in text?")
	b.send("Take the built-in text")
	b.says("The mail has the built-in text again.")

	b.open("/console/branding")
	b.send("Remove the light logo")
	b.says("Logo removed.")
}
