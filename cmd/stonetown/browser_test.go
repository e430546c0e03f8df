package main

import (
	"context"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/cdproto/webauthn"
	"github.com/chromedp/chromedp"
	"github.com/pquerna/otp/totp"

	"stonetown/identity/external"
	"stonetown/internal/notify"
	"stonetown/internal/sqldb"
)

// browser is a Chromium with an open page of a development server.
type browser struct {
	*testing.T
	ctx  context.Context
	base string
	// shots is a folder for screenshots, if STONETOWN_SCREENSHOTS names one.
	shots string
	seen  map[string]bool
	key   webauthn.AuthenticatorID
}

func openBrowser(t *testing.T, server *running, more ...chromedp.ExecAllocatorOption) *browser {
	t.Helper()
	path, err := exec.LookPath("chromium")
	if err != nil {
		t.Fatal("pages are tested in Chromium (Debian: apt install chromium): ", err)
	}
	options := append(chromedp.DefaultExecAllocatorOptions[:],
		chromedp.ExecPath(path), chromedp.NoSandbox, chromedp.DisableGPU, chromedp.UserDataDir(t.TempDir()),
		chromedp.Flag("disable-background-networking", true), chromedp.Flag("disable-dev-shm-usage", true), chromedp.WindowSize(1280, 900))
	options = append(options, more...)
	allocator, stop := chromedp.NewExecAllocator(t.Context(), options...)
	ctx, cancel := chromedp.NewContext(allocator)
	t.Cleanup(func() {
		_ = chromedp.Cancel(ctx) // waits for the browser to end
		cancel()
		stop()
	})
	_, port, err := net.SplitHostPort(server.Addr())
	if err != nil {
		t.Fatal(err)
	}
	b := &browser{T: t, ctx: ctx, base: "http://dev.localhost:" + port, shots: os.Getenv("STONETOWN_SCREENSHOTS"), seen: map[string]bool{}}
	if err := chromedp.Do(ctx, chromedp.Navigate("about:blank")); err != nil { // it ends with ctx
		t.Fatal(err)
	}
	console := chromedp.Console(ctx)
	var listening sync.WaitGroup
	listening.Go(func() {
		for message, err := range console {
			// Violations of a page's policy are also logged there.
			if err == nil && (message.IsException() || strings.Contains(message.String(), "Content Security Policy")) {
				t.Errorf("on the console: %s", message)
			}
		}
	})
	t.Cleanup(func() { cancel(); listening.Wait() })
	return b
}

// do runs actions within a time limit, and again if the page was replaced meanwhile.
func (b *browser) do(actions ...chromedp.Action[chromedp.Void]) {
	b.Helper()
	ctx, cancel := context.WithTimeout(b.ctx, pagePatience)
	defer cancel()
	err := chromedp.Do(ctx, actions...)
	for err != nil && strings.Contains(err.Error(), "Could not find node with given id") {
		err = chromedp.Do(ctx, actions...)
	}
	if err != nil {
		b.failed(err)
	}
}

// pagePatience is how long a page may take to reach the expected state.
const pagePatience = 20 * time.Second

// ask runs an action that returns a value.
func ask[T any](b *browser, action chromedp.Action[T]) T {
	b.Helper()
	ctx, cancel := context.WithTimeout(b.ctx, pagePatience)
	defer cancel()
	value, err := chromedp.Run(ctx, action)
	if err != nil {
		b.failed(err)
	}
	return value
}

// perform sends a command of the protocol.
func perform[P, R any](b *browser, c cdp.Command[P, R], params P) {
	b.Helper()
	if _, err := chromedp.Call(b.ctx, c, params); err != nil {
		b.failed(err)
	}
}

func (b *browser) failed(err error) {
	b.Helper()
	ctx, cancel := context.WithTimeout(b.ctx, pagePatience)
	defer cancel()
	at, _ := chromedp.Run(ctx, chromedp.Location())
	text, _ := chromedp.Run(ctx, chromedp.Text(chromedp.CSS("body")))
	b.Fatalf("%v, at %s:\n%s", err, at, text)
}

// open loads a page.
func (b *browser) open(path string) {
	b.Helper()
	b.do(chromedp.Navigate(b.base + path))
}

// at waits for a page, and takes screenshots.
func (b *browser) at(path, title string) {
	b.Helper()
	b.do(chromedp.WaitVisible(chromedp.Search(fmt.Sprintf(`//h1[normalize-space()=%q]`, title))))
	at := ask(b, chromedp.Location())
	if got, _, _ := strings.Cut(strings.TrimPrefix(at, b.base), "?"); got != path {
		b.Fatalf("at %s, want %s", at, path)
	}
	b.picture(strings.Trim(strings.ReplaceAll(path, "/", "-"), "-"), title)
}

// picture takes four screenshots of a page: narrow and wide, light and dark.
func (b *browser) picture(path, title string) {
	name := path + " " + title
	if b.shots == "" || b.seen[name] {
		return
	}
	b.seen[name] = true
	for device, width := range map[string]int64{"phone": 390, "desktop": 1280} {
		for _, scheme := range []string{"light", "dark"} {
			perform(b, emulation.SetDeviceMetricsOverride, emulation.SetDeviceMetricsOverrideParams{Width: width, Height: 844, DeviceScaleFactor: 1, Mobile: device == "phone"})
			perform(b, emulation.SetEmulatedMedia, emulation.SetEmulatedMediaParams{Features: []*emulation.MediaFeature{{Name: "prefers-color-scheme", Value: scheme}}})
			b.do(chromedp.Sleep(150 * time.Millisecond))
			png := ask(b, chromedp.FullScreenshot(100))
			file := fmt.Sprintf("%s %s %s.png", strings.ReplaceAll(name, "/", "-"), device, scheme)
			if err := os.WriteFile(filepath.Join(b.shots, file), png, 0o600); err != nil {
				b.Fatal(err)
			}
		}
	}
	perform(b, emulation.ClearDeviceMetricsOverride, cdp.Empty{})
}

// fill types into the fields of a form, by their names.
func (b *browser) fill(pairs ...string) {
	b.Helper()
	for i := 0; i < len(pairs); i += 2 {
		field := chromedp.CSS(fmt.Sprintf(`input[name=%q]:not([type=hidden])`, pairs[i]))
		b.do(chromedp.WaitVisible(field), chromedp.Clear(field), chromedp.SendKeys(field, pairs[i+1]))
	}
}

// press clicks a button or a link, by its text.
func (b *browser) press(label string) {
	b.Helper()
	b.do(chromedp.Click(chromedp.Search(fmt.Sprintf(`//main//*[self::button or self::a][normalize-space()=%q] | //header//button[normalize-space()=%q]`, label, label))))
}

// send clicks a button that sends a form, and waits for the next page: it can look like the one before.
func (b *browser) send(label string) {
	b.Helper()
	ask(b, chromedp.Evaluate[bool](`window.before = true`))
	b.press(label)
	b.until(`!window.before && document.readyState === "complete"`)
}

// until waits until a condition, in JavaScript, is true.
func (b *browser) until(condition string) {
	b.Helper()
	ctx, cancel := context.WithTimeout(b.ctx, pagePatience)
	defer cancel()
	for {
		met, err := chromedp.Run(ctx, chromedp.Evaluate[bool](condition))
		if err == nil && met {
			return
		}
		if ctx.Err() != nil { // other errors are those of a page that is being left
			b.failed(fmt.Errorf("not so: %s: %w", condition, ctx.Err()))
		}
		time.Sleep(10 * time.Millisecond)
	}
}

// says waits for a text on the page.
func (b *browser) says(words string) {
	b.Helper()
	b.do(chromedp.WaitVisible(chromedp.Search(fmt.Sprintf(`//*[contains(text(), %q)]`, words))))
}

// focused requires that an invalid field has the focus.
func (b *browser) focused(field string) {
	b.Helper()
	is := ask(b, chromedp.Evaluate[string](`(e => [e.name, e.ariaInvalid, document.getElementById(e.getAttribute("aria-describedby")?.split(" ")[0])?.id].join())(document.activeElement)`))
	if is != field+",true,problem" {
		b.Errorf("the cursor is in %q, want %s", is, field)
	}
}

func (b *browser) text(selector string) string {
	b.Helper()
	return strings.TrimSpace(ask(b, chromedp.Text(chromedp.CSS(selector))))
}

// letter follows the link in the newest mail with a subject.
func (b *browser) letter(subject string) {
	b.Helper()
	link := fmt.Sprintf(`(//article[h2[contains(., %q)]]//a)[1]`, subject)
	for range 40 {
		b.open("/dev/mailbox")
		if ask(b, chromedp.Evaluate[bool](fmt.Sprintf(`[...document.querySelectorAll("article h2")].some(h => h.textContent.includes(%q))`, subject))) {
			b.picture("dev-mailbox", "Mailbox")
			b.do(chromedp.Click(chromedp.Search(link)))
			return
		}
		time.Sleep(100 * time.Millisecond)
	}
	b.Fatalf("no letter with %q", subject)
}

// authenticator adds a virtual authenticator that verifies its user.
func (b *browser) authenticator() {
	b.Helper()
	perform(b, webauthn.Enable, webauthn.EnableParams{})
	made, err := chromedp.Call(b.ctx, webauthn.AddVirtualAuthenticator, webauthn.AddVirtualAuthenticatorParams{Options: &webauthn.VirtualAuthenticatorOptions{
		Protocol: webauthn.AuthenticatorProtocolCtap2, Transport: webauthn.AuthenticatorTransportInternal,
		HasResidentKey: true, HasUserVerification: true, IsUserVerified: true, AutomaticPresenceSimulation: true,
	}})
	if err != nil {
		b.failed(err)
	}
	b.key = made.AuthenticatorID
}

// touch sets whether the virtual authenticator confirms the presence of its user.
func (b *browser) touch(present bool) {
	b.Helper()
	perform(b, webauthn.SetAutomaticPresenceSimulation, webauthn.SetAutomaticPresenceSimulationParams{AuthenticatorID: b.key, Enabled: present})
}

// A user signs up, signs in with every method, and manages the account.
func TestPages(t *testing.T) {
	server := start(t, "--dev", "--data-dir", t.TempDir(), "--rate-limits", "sign-in.ip=unlimited,self-service.caller=unlimited")
	b := openBrowser(t, server)
	const email, password, another = "ann@example.com", "correct horse battery", "another long secret"

	// A user without a session is asked to sign in.
	b.open("/account/sessions")
	b.at("/auth/sign-in", "Sign in")
	b.press("Create an account")
	b.at("/auth/sign-up", "Create an account")
	b.fill("name", "Ann Example", "email", email, "password", "short")
	b.press("Create account")
	b.says("needs at least 8 characters")
	b.fill("password", password)
	b.press("Create account")
	b.at("/auth/verify-email", "Confirm your e-mail address")
	b.says(email)
	b.posted(server, email) // the account is created after the response
	b.open("/auth/sign-in?next=/account/sessions")
	b.fill("email", email, "password", password)
	b.press("Sign in")
	b.at("/auth/verify-email", "Confirm your e-mail address") // first
	b.letter("Confirm your e-mail address for dev")
	b.at("/auth/verify-email", "Confirm your e-mail address")
	b.press("Yes, this is my address")
	b.at("/auth/verify-email", "E-mail address confirmed")
	b.press("Continue") // to the destination of the pending sign-in
	b.at("/auth/sign-in", "Sign in")
	b.fill("email", email, "password", "wrong password")
	b.press("Sign in")
	b.says("is wrong")
	b.picture("auth-sign-in", "refused")
	b.focused("password")
	b.fill("password", password)
	b.press("Sign in")
	b.at("/account/sessions", "Where you are signed in")
	b.says("this device")
	b.open("/account")
	b.at("/account", "Your profile")
	b.fill("given_name", "Ann", "locale", "xx-invalid-language-tag-that-is-none")
	b.press("Save")
	b.says("language tag")
	b.fill("locale", "en-GB")
	b.press("Save")
	b.says("Profile saved.")

	// An authenticator app: the code is computed from the key that the page shows.
	b.open("/account/security")
	b.at("/account/security", "Sign-in and security")
	b.press("Add an authenticator app")
	b.at("/account/totp", "Add an authenticator app")
	key := b.text("#secret")
	b.fill("code", "000000")
	b.press("Add")
	b.says("This code is wrong.")
	code, err := totp.GenerateCode(key, time.Now())
	if err != nil {
		t.Fatal(err)
	}
	b.fill("code", code)
	b.press("Add")
	b.at("/account/security", "Sign-in and security")
	b.says("Second factor added.")

	// Backup codes, then a sign-in with one of them.
	b.press("Create new codes")
	b.at("/account/backup-codes", "Create new backup codes?")
	b.press("Create new codes")
	b.at("/account/backup-codes", "Your backup codes")
	backup := b.text(".codes li:first-child")
	b.press("I have saved them")
	b.press("Sign out")
	b.at("/auth/sign-in", "Sign in")
	b.open("/account")
	b.at("/auth/sign-in", "Sign in")
	b.fill("email", email, "password", password)
	b.press("Sign in")
	b.at("/auth/mfa", "Confirm that it is you")
	b.fill("code", "000000")
	b.press("Continue")
	b.says("This code is wrong.")
	b.press("Use a backup code")
	b.fill("code", strings.ToUpper(backup))
	b.press("Continue")
	b.at("/account", "Your profile")

	// A passkey, and a sign-in by it without a name.
	b.authenticator()
	b.open("/account/passkey")
	b.at("/account/passkey", "Add a passkey")
	b.press("Create a passkey")
	b.at("/account/security", "Sign-in and security")
	b.says("Passkey added.")
	b.touch(false)
	b.press("Sign out")
	b.at("/auth/sign-in", "Sign in")
	b.press("Sign in with a passkey")
	b.touch(true)
	b.at("/account", "Your profile")
	b.open("/account/sessions")
	b.press("Sign out") // then sign in again: the passkey is offered in the field of the address
	b.at("/account", "Your profile")

	// As a second factor.
	b.touch(false)
	b.press("Sign out")
	b.at("/auth/sign-in", "Sign in")
	b.open("/auth/sign-in?next=/account/security")
	b.fill("email", email, "password", password)
	b.press("Sign in")
	b.at("/auth/mfa", "Confirm that it is you")
	b.press("Use a passkey")
	b.at("/auth/mfa", "Confirm that it is you")
	b.says("security key")
	b.touch(true)
	b.press("Use a passkey")
	b.at("/account/security", "Sign-in and security")

	// A phone.
	b.press("Add a phone")
	b.at("/account/sms", "Add a phone")
	b.fill("phone_number", "030 12345")
	b.press("Send a code")
	b.says("not a phone number")
	b.fill("phone_number", "+4930123456")
	b.press("Send a code")
	b.fill("code", b.message(server, "+4930123456"))
	b.press("Add")
	b.at("/account/security", "Sign-in and security")
	b.says("Phone")

	// Operations that require a recent second factor ask for it.
	server.age(t)
	b.open("/account/email")
	b.fill("new_email", "ann@example.org")
	b.press("Continue")
	b.at("/account/step-up", "Confirm that it is you")
	b.press("Get a code on your phone")
	b.press("Send a code")
	b.fill("code", b.message(server, "+4930123456"))
	b.press("Continue")
	b.at("/account/email", "Change your e-mail address") // with the values of the first attempt
	b.press("Continue")
	b.says("We have sent an e-mail to the new address.")
	b.letter("Confirm your new e-mail address")
	b.at("/auth/verify-email", "E-mail address confirmed")
	b.open("/account")
	b.says("ann@example.org")
	b.letter("is about to change")
	b.at("/auth/revert-email", "Keep your e-mail address")
	b.press("Take my account back")
	b.at("/auth/revert-email", "Your account is yours again")
	b.touch(false)
	b.open("/account")
	b.at("/auth/sign-in", "Sign in")

	// A new password, by the link in a mail; the second factor is required as well.
	b.press("Forgot your password?")
	b.at("/auth/reset-password", "Forgot your password?")
	b.fill("email", email)
	b.press("Send the link")
	b.says("we have sent an e-mail")
	b.letter("Choose a new password")
	b.at("/auth/reset-password", "Choose a new password")
	b.fill("password", "password")
	b.press("Save password")
	b.says("most common")
	b.fill("password", another)
	b.press("Save password")
	b.at("/auth/mfa", "Confirm that it is you")
	b.press("Use a passkey")
	b.says("security key")
	b.touch(true)
	b.press("Use a passkey")
	b.at("/account", "Your profile")

	b.open("/.well-known/change-password")
	b.at("/account/security", "Sign-in and security")
	b.open("/account/password")
	b.at("/account/password", "Change your password")
	b.fill("current", "wrong", "next_password", password)
	b.press("Change password")
	b.says("The current password is wrong.")
	b.fill("current", another, "next_password", password)
	b.press("Change password")
	b.says("Password changed.")

	// Accounts at other providers, one of which is removed.
	server.linked(t, email, "google", "github", "staff")
	b.open("/account/security")
	b.says("Linked accounts")
	b.picture("account-security", "linked")
	b.do(chromedp.Click(chromedp.Search(`//li[contains(., "GitHub")]//a`)))
	b.at("/account/remove-identity", "Unlink your GitHub account?")
	b.press("Unlink")
	b.says("Removed.")
	b.open("/account/security") // the page no longer names the account
	b.says("Google")

	// A factor is removed, and all other devices are signed out.
	b.do(chromedp.Click(chromedp.Search(`//li[contains(., "Phone")]//a`)))
	b.at("/account/remove-factor", "Remove “Phone”?")
	b.press("Cancel")
	b.do(chromedp.Click(chromedp.Search(`//li[contains(., "Phone")]//a`)))
	b.press("Remove")
	b.says("Removed.")
	b.open("/account/end-session")
	b.at("/account/end-session", "Sign out all other devices?")
	b.press("Sign out all other devices")
	b.says("All other devices are signed out.")
	b.open("/auth/error")
	b.at("/auth/error", "Something went wrong")
	b.open("/auth/verify-email?token=nothing")
	b.says("has expired")
	b.open("/no/such/page")
	b.at("/no/such/page", "Page not found")
}

// posted waits until a message was sent to an address.
func (b *browser) posted(server *running, to string) {
	b.Helper()
	for range 200 {
		items, err := server.server.API.Mailbox.Items(10)
		if err != nil {
			b.Fatal(err)
		}
		if slices.ContainsFunc(items, func(item notify.Item) bool { return item.To == to }) {
			return
		}
		time.Sleep(50 * time.Millisecond)
	}
	b.Fatalf("nothing was sent to %s", to)
}

// message returns the code in the newest text message to a number.
func (b *browser) message(server *running, number string) string {
	b.Helper()
	for range 100 {
		items, err := server.server.API.Mailbox.Items(1)
		if err != nil {
			b.Fatal(err)
		}
		if len(items) == 1 && items[0].To == number && !b.seen[items[0].ID] {
			b.seen[items[0].ID] = true
			return items[0].Text[:6]
		}
		time.Sleep(50 * time.Millisecond)
	}
	b.Fatalf("no text to %s", number)
	return ""
}

// linked links a user to a subject at some connections.
func (s *running) linked(t *testing.T, email string, slugs ...string) {
	t.Helper()
	kinds := map[string]string{"google": "social.google", "github": "social.github", "staff": "saml"}
	identities := external.NewStore(s.server.DB, nil, time.Now) // links have no secrets
	err := s.server.DB.Tx(t.Context(), func(tx *sqldb.Tx) error {
		for _, slug := range slugs {
			i := external.Identity{ConnectionID: "con_" + slug, Slug: slug, Kind: kinds[slug], Subject: "1", Email: "ann@" + slug + ".example"}
			err := tx.QueryRow(t.Context(), `SELECT tenant_id, id FROM users WHERE email = $1`, email).Scan(&i.TenantID, &i.UserID)
			if err == nil {
				_, err = identities.Link(t.Context(), tx, i)
			}
			if err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}

// confirm makes all sessions such in which a second factor was just proved. How a person proves one
// is shown by other tests.
func (s *running) confirm(t *testing.T) {
	t.Helper()
	if _, err := s.server.DB.Exec(t.Context(), `UPDATE sessions SET second_factor_at = $1`, time.Now().UnixMicro()); err != nil {
		t.Fatal(err)
	}
}

// age makes the proofs of all sessions one hour old.
func (s *running) age(t *testing.T) {
	t.Helper()
	hour := time.Hour.Microseconds()
	if _, err := s.server.DB.Exec(t.Context(), `UPDATE sessions SET auth_time = auth_time - $1, second_factor_at = second_factor_at - $1, created_at = created_at - $1`, hour); err != nil {
		t.Fatal(err)
	}
}
