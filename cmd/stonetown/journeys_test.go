package main

import (
	"fmt"
	"path/filepath"
	"testing"
	"time"

	"github.com/chromedp/chromedp"
	"github.com/pquerna/otp/totp"
)

// tab opens another tab of the same browser.
func (b *browser) tab() *browser {
	b.Helper()
	ctx, cancel := chromedp.NewContext(b.ctx)
	b.Cleanup(cancel)
	other := *b
	other.ctx = ctx
	if err := chromedp.Do(ctx, chromedp.Navigate("about:blank")); err != nil {
		b.Fatal(err)
	}
	return &other
}

// start begins a sign-in at an application.
func (b *browser) start(application string) {
	b.Helper()
	b.do(chromedp.Navigate(application + "/sign-in"))
}

// arrived requires that the application has its user, optionally with a level of assurance.
func (b *browser) arrived(email string, levels ...string) {
	b.Helper()
	b.do(chromedp.WaitVisible(chromedp.Search(fmt.Sprintf(`//h1[normalize-space()="Hello %s"]`, email))))
	for _, level := range levels {
		b.says("at " + level)
	}
}

// forget signs the browser out and deletes its data.
func (b *browser) forget() {
	b.Helper()
	b.open("/auth/sign-out")
	b.press("Sign out")
	b.at("/auth/sign-in", "Sign in")
}

// back returns to the previous page and reloads it, because the protocol loses track of pages
// in the browser's cache.
func (b *browser) back() {
	b.Helper()
	b.do(chromedp.NavigateBack(), chromedp.Reload())
}

func (b *browser) signIn(email, password string) {
	b.Helper()
	b.at("/auth/sign-in", "Sign in")
	b.fill("email", email, "password", password)
	b.press("Sign in")
}

// enrol adds an authenticator app on its page and returns the key.
func (b *browser) enrol() (key string) {
	b.Helper()
	b.press("Add an authenticator app")
	b.at("/account/totp", "Add an authenticator app")
	key = b.text("#secret")
	b.code(key, "Add")
	return key
}

func (b *browser) code(key, button string) {
	b.Helper()
	code, err := totp.GenerateCode(key, time.Now())
	if err != nil {
		b.Fatal(err)
	}
	b.fill("code", code)
	b.press(button)
}

// Every path of links from an application ends at the application.
func TestJourneys(t *testing.T) {
	dir := t.TempDir()
	server := start(t, "--dev", "--data-dir", dir, "--rate-limits", "sign-in.ip=unlimited,self-service.caller=unlimited,token.ip=unlimited")
	c := readJSON(t, filepath.Join(dir, "bootstrap.json"))
	b := openBrowser(t, server)
	site := openWebsite(t, server, c, "Website", true)
	const password, another = "correct horse battery", "another long secret"

	signUp := func(b *browser, email string) {
		t.Helper()
		b.at("/auth/sign-up", "Create an account")
		b.fill("email", email, "password", password)
		b.press("Create account")
		b.at("/auth/verify-email", "Confirm your e-mail address")
		b.posted(server, email)
	}
	confirm := func(b *browser) {
		t.Helper()
		b.letter("Confirm your e-mail address for dev")
		b.at("/auth/verify-email", "Confirm your e-mail address")
		b.press("Yes, this is my address")
		b.at("/auth/verify-email", "E-mail address confirmed")
		b.press("Continue")
	}

	run := func(name string, journey func(t *testing.T, b *browser)) {
		t.Helper()
		t.Run(name, func(t *testing.T) {
			own := *b
			own.T = t
			journey(t, &own)
			b.key = own.key
		})
		if t.Failed() { // the next one begins where this one ends
			t.FailNow()
		}
	}
	run("create an account, confirm in the same tab", func(t *testing.T, b *browser) {
		b.start(site)
		b.at("/auth/sign-in", "Sign in")
		b.press("Create an account")
		b.press("Sign in") // to the sign-in page and back
		b.at("/auth/sign-in", "Sign in")
		b.press("Create an account")
		signUp(b, "one@example.com")
		confirm(b)
		b.signIn("one@example.com", password)
		b.arrived("one@example.com")
	})
	run("prompt=create, confirm in another tab", func(t *testing.T, b *browser) {
		b.do(chromedp.Navigate(site + "/sign-in?prompt=create"))
		signUp(b, "two@example.com")
		mail := b.tab()
		confirm(mail)
		mail.signIn("two@example.com", password)
		mail.arrived("two@example.com")
	})
	run("confirm in another tab, go on in the first", func(t *testing.T, b *browser) {
		b.forget()
		b.start(site)
		b.at("/auth/sign-in", "Sign in")
		b.press("Create an account")
		signUp(b, "three@example.com")
		confirm(b.tab())
		b.press("I have confirmed it: sign in")
		b.signIn("three@example.com", password)
		b.arrived("three@example.com")
	})
	run("sign in before confirming", func(t *testing.T, b *browser) {
		b.forget()
		b.do(chromedp.Navigate(site + "/sign-in?prompt=create"))
		signUp(b, "four@example.com")
		b.press("I have confirmed it: sign in")
		b.signIn("four@example.com", password)
		b.at("/auth/verify-email", "Confirm your e-mail address")
		confirm(b)
		b.signIn("four@example.com", password)
		b.arrived("four@example.com")
	})
	run("forgot the password", func(t *testing.T, b *browser) {
		b.forget()
		b.start(site)
		b.at("/auth/sign-in", "Sign in")
		b.press("Forgot your password?")
		b.at("/auth/reset-password", "Forgot your password?")
		b.press("Back to sign-in")
		b.at("/auth/sign-in", "Sign in")
		b.press("Forgot your password?")
		b.at("/auth/reset-password", "Forgot your password?")
		b.fill("email", "one@example.com")
		b.press("Send the link")
		b.says("we have sent an e-mail")
		mail := b.tab()
		mail.letter("Choose a new password for dev")
		mail.at("/auth/reset-password", "Choose a new password")
		mail.fill("password", another)
		mail.press("Save password")
		mail.arrived("one@example.com")
	})
	run("step-up of a user without a factor", func(t *testing.T, b *browser) {
		b.do(chromedp.Navigate(site + "/sign-in?acr_values=aal2"))
		b.arrived("one@example.com", "aal1") // a preference
		b.do(chromedp.Navigate(site + "/sign-in?acr_values=aal2&max_age=900"))
		b.at("/account/security", "Sign-in and security")
		b.says("To continue, add a second factor")
		b.press("Add a passkey")
		b.at("/account/passkey", "Add a passkey")
		b.press("Cancel")
		b.enrol()
		b.arrived("one@example.com", "aal2")
	})
	run("step-up in a session that is too old to add a factor", func(t *testing.T, b *browser) {
		b.forget()
		b.start(site)
		b.signIn("two@example.com", password)
		b.arrived("two@example.com")
		server.age(t)
		b.do(chromedp.Navigate(site + "/sign-in?acr_values=aal2&max_age=7200"))
		b.at("/account/security", "Sign-in and security")
		b.press("Add an authenticator app")
		b.at("/auth/sign-in", "Sign in")
		b.says("please sign in again")
		b.signIn("two@example.com", password)
		b.at("/account/totp", "Add an authenticator app")
		b.code(b.text("#secret"), "Add")
		b.arrived("two@example.com", "aal2")
	})
	run("a second factor that is demanded of everybody", func(t *testing.T, b *browser) {
		server.set(t, c, `{"mfa_policy":{"mode":"required"}}`)
		defer server.set(t, c, `{"mfa_policy":{"mode":"optional"}}`)
		b.forget()
		b.start(site)
		b.signIn("three@example.com", password)
		b.at("/account/security", "Sign-in and security")
		b.enrol()
		b.arrived("three@example.com", "aal2")
	})
	run("a second factor, after another one and back", func(t *testing.T, b *browser) {
		b.forget()
		b.authenticator()
		b.start(site)
		b.signIn("four@example.com", password)
		b.arrived("four@example.com")
		b.open("/account/passkey")
		b.press("Create a passkey")
		b.says("Passkey added.")
		b.touch(false)
		b.forget()
		b.start(site)
		b.signIn("four@example.com", password)
		b.at("/auth/mfa", "Confirm that it is you")
		b.press("Use a passkey")
		b.says("security key")
		b.back()
		b.signIn("four@example.com", password)
		b.at("/auth/mfa", "Confirm that it is you")
		b.touch(true)
		b.press("Use a passkey")
		b.arrived("four@example.com", "aal2")
	})
	run("a passkey", func(t *testing.T, b *browser) {
		b.touch(false)
		b.forget()
		b.start(site)
		b.at("/auth/sign-in", "Sign in")
		b.press("Sign in with a passkey")
		b.touch(true) // not before: the browser would sign in by itself from the field of the address
		b.arrived("four@example.com", "aal2")
	})
	run("a password that has to be changed", func(t *testing.T, b *browser) {
		b.touch(false)
		server.exec(t, `UPDATE users SET password_must_be_reset = $1 WHERE email = $2`, true, "four@example.com")
		b.forget()
		b.start(site)
		b.signIn("four@example.com", password)
		b.at("/auth/mfa", "Confirm that it is you")
		b.touch(true)
		b.press("Use a passkey")
		b.at("/auth/reset-password", "Choose a new password")
		b.says("you have to change your password")
		b.fill("password", another)
		b.press("Save password")
		b.arrived("four@example.com")
	})
	run("two sites in two tabs", func(t *testing.T, b *browser) {
		b.touch(false)
		guest := openWebsite(t, server, c, "Holiday Planner", false)
		b.forget()
		b.start(site)
		b.at("/auth/sign-in", "Sign in")
		second := b.tab()
		second.start(guest)
		second.signIn(c.Admin.Email, c.Admin.Password)
		second.at("/auth/consent", "Allow Holiday Planner to access your account?")
		b.signIn(c.Admin.Email, c.Admin.Password) // the earlier one
		b.arrived(c.Admin.Email)
		second.press("Cancel")
		second.says("access_denied")
		second.start(guest)
		second.press("Allow")
		second.arrived(c.Admin.Email)
	})
	run("back from the application", func(t *testing.T, b *browser) {
		b.forget()
		b.start(site)
		b.signIn(c.Admin.Email, c.Admin.Password)
		b.arrived(c.Admin.Email)
		b.back()
		b.at("/auth/sign-in", "Sign in")
		b.start(site)
		b.arrived(c.Admin.Email)
	})
	run("a device", func(t *testing.T, b *browser) {
		b.forget()
		b.open("/device?user_code=BCDF-GHJK")
		b.at("/auth/sign-in", "Sign in")
		b.press("Create an account")
		signUp(b, "five@example.com")
		confirm(b)
		b.signIn("five@example.com", password)
		b.at("/device", "Connect a device")
		if got := ask(b, chromedp.Evaluate[string](`document.getElementById("user_code").value`)); got != "BCDF-GHJK" {
			t.Errorf("the code is %q", got)
		}
	})
}

// set changes the settings of the tenant.
func (s *running) set(t *testing.T, c credentials, patch string) {
	t.Helper()
	if status, answer := s.do("PATCH", "http://"+s.Addr()+"/api/v1/settings", hostOf(t, c.BaseURL), s.token(c), patch); status != 200 {
		t.Fatalf("settings: %d %v", status, answer)
	}
}

func (s *running) exec(t *testing.T, sql string, args ...any) {
	t.Helper()
	if n, err := s.server.DB.Exec(t.Context(), sql, args...); err != nil || n != 1 {
		t.Fatalf("%s: %d rows, %v", sql, n, err)
	}
}
